#include <yaml.h>

#include <stdlib.h>
#include <string.h>

enum phase { START, DOCUMENT, CONTENT, AFTER, END };

int yaml_parser_initialize(yaml_parser_t *parser)
{
    *parser = (yaml_parser_t){0};
    return 1;
}

void yaml_parser_delete(yaml_parser_t *parser)
{
    (void)parser;
}

void yaml_parser_set_encoding(yaml_parser_t *parser, int encoding)
{
    (void)parser, (void)encoding;
}

void yaml_parser_set_input_string(yaml_parser_t *parser, const unsigned char *text, size_t length)
{
    parser->text = text;
    parser->length = length;
}

void yaml_event_delete(yaml_event_t *event)
{
    if (event->type == YAML_SCALAR_EVENT) free(event->data.scalar.value);
    *event = (yaml_event_t){0};
}

/* The next byte, 0 at the end. */
static int peek(const yaml_parser_t *parser)
{
    return parser->at.index < parser->length ? parser->text[parser->at.index] : 0;
}

static int take(yaml_parser_t *parser)
{
    int byte = peek(parser);
    parser->at.index++;
    parser->at.column++;
    if (byte == '\n') {
        parser->at.line++;
        parser->at.column = 0;
    }
    return byte;
}

static void skip_blanks(yaml_parser_t *parser)
{
    while (peek(parser) && strchr(" \t\r\n", peek(parser))) take(parser);
}

static int fail(yaml_parser_t *parser, const char *problem)
{
    parser->error = YAML_PARSER_ERROR;
    parser->problem = problem;
    parser->problem_mark = parser->at;
    return 0;
}

static int read_quoted(yaml_parser_t *parser, yaml_event_t *event)
{
    unsigned char *value = event->data.scalar.value;
    take(parser);
    while (peek(parser) != '"') {
        if (!peek(parser)) return fail(parser, "a text has no end");
        int byte = take(parser);
        if (byte == '\\') {
            byte = take(parser);
            if (byte == 'n')
                byte = '\n';
            else if (byte == 't')
                byte = '\t';
            else if (!byte || !strchr("\"\\/", byte))
                return fail(parser, "an escape that is not known here");
        }
        value[event->data.scalar.length++] = (unsigned char)byte;
    }
    take(parser);
    event->data.scalar.style = YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    return 1;
}

static int read_plain(yaml_parser_t *parser, yaml_event_t *event)
{
    unsigned char *value = event->data.scalar.value;
    size_t *length = &event->data.scalar.length;
    const char *stops = parser->depth > 0 ? ",:{}[]\"\n" : "\n";
    while (peek(parser) && !strchr(stops, peek(parser))) value[(*length)++] = (unsigned char)take(parser);
    while (*length > 0 && strchr(" \t\r", value[*length - 1])) --*length;
    event->data.scalar.style = YAML_PLAIN_SCALAR_STYLE;
    return 1;
}

static int read_scalar(yaml_parser_t *parser, yaml_event_t *event)
{
    event->data.scalar.value = calloc(parser->length - parser->at.index + 1, 1);
    if (!event->data.scalar.value) {
        parser->error = YAML_MEMORY_ERROR;
        return 0;
    }
    event->type = YAML_SCALAR_EVENT;
    return peek(parser) == '"' ? read_quoted(parser, event) : read_plain(parser, event);
}

static int begin(yaml_parser_t *parser, yaml_event_t *event, char close)
{
    if (parser->depth == YAML_STAND_IN_DEPTH) return fail(parser, "nested too deep");
    take(parser);
    event->type = close == '}' ? YAML_MAPPING_START_EVENT : YAML_SEQUENCE_START_EVENT;
    parser->open[parser->depth].close = close;
    parser->open[parser->depth].started = parser->open[parser->depth].value = 0;
    parser->depth++;
    return 1;
}

/* Ends the innermost collection if it ends here; else goes over the comma or colon before the next item. */
static int end_or_go_on(yaml_parser_t *parser, yaml_event_t *event)
{
    char close = parser->open[parser->depth - 1].close;
    int *started = &parser->open[parser->depth - 1].started, *value = &parser->open[parser->depth - 1].value;
    if (peek(parser) == close && !*value) {
        take(parser);
        event->type = close == '}' ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
        parser->depth--;
        return 1;
    }
    if (*value) {
        if (take(parser) != ':') return fail(parser, "expected ':'");
    } else if (*started) {
        if (take(parser) != ',') return fail(parser, "expected ',' or the end of a collection");
    }
    skip_blanks(parser);
    *started = 1;
    if (close == '}') *value = !*value;
    return 1;
}

static int read_node(yaml_parser_t *parser, yaml_event_t *event)
{
    skip_blanks(parser);
    if (parser->depth > 0) {
        if (!end_or_go_on(parser, event)) return 0;
        if (event->type != YAML_NO_EVENT) return 1;
    }
    event->start_mark = parser->at;
    if (peek(parser) == '{') return begin(parser, event, '}');
    if (peek(parser) == '[') return begin(parser, event, ']');
    return read_scalar(parser, event);
}

int yaml_parser_parse(yaml_parser_t *parser, yaml_event_t *event)
{
    *event = (yaml_event_t){.start_mark = parser->at};
    switch ((enum phase)parser->phase) {
    case START:
        event->type = YAML_STREAM_START_EVENT;
        parser->phase = DOCUMENT;
        return 1;
    case DOCUMENT:
        event->type = YAML_DOCUMENT_START_EVENT;
        parser->phase = CONTENT;
        return 1;
    case CONTENT:
        if (!read_node(parser, event)) {
            yaml_event_delete(event);
            return 0;
        }
        if (parser->depth == 0) parser->phase = AFTER;
        return 1;
    case AFTER:
        skip_blanks(parser);
        if (peek(parser)) return fail(parser, "more follows the document");
        event->type = YAML_DOCUMENT_END_EVENT;
        parser->phase = END;
        return 1;
    case END:
        break;
    }
    event->type = YAML_STREAM_END_EVENT;
    return 1;
}
