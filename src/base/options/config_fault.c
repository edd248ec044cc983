#include "base/options/config_fault.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The text to search. */
struct input {
    const char *text, *end;
    const struct config_notice *notice;
};

/* The beginning of a line, counted from 0; the end of the text if there is no such line. */
static const char *line_at(const struct input *input, size_t line)
{
    const char *at = input->text;
    for (; line > 0 && at < input->end; line--) {
        const char *feed = memchr(at, '\n', (size_t)(input->end - at));
        at = feed ? feed + 1 : input->end;
    }
    return at;
}

static size_t line_length(const struct input *input, const char *line)
{
    size_t length = 0;
    while (line + length < input->end && line[length] != '\n' && line[length] != '\r') length++;
    return length;
}

/* The bytes of the character at `at`; the text is known to be UTF-8 up to here. */
static size_t character_length(const char *at, const char *end)
{
    size_t length = 1;
    while (at + length < end && ((unsigned char)at[length] & 0xC0) == 0x80) length++;
    return length;
}

/* The position of a mark in the text: marks count characters. */
static const char *mark_at(const struct input *input, const struct config_mark *mark)
{
    const char *at = line_at(input, mark->line), *end = at + line_length(input, at);
    for (size_t column = 0; column < mark->column && at < end; column++) at += character_length(at, end);
    return at;
}

/* The byte at a mark, '\0' after the end. */
static char byte_at(const struct input *input, const struct config_mark *mark)
{
    const char *at = mark_at(input, mark);
    return at < input->end ? *at : '\0';
}

static bool is_plain(char byte)
{
    return byte > ' ' && byte <= '~';
}

static void say(struct config_fault *out, const struct config_mark *mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(struct config_fault *out, const struct config_mark *mark, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out->message, sizeof out->message, format, arguments);
    va_end(arguments);
    out->mark = *mark;
}

/* ---- kinds of faults ---- */

static void say_token(const struct input *input, struct config_fault *out)
{
    const struct config_mark *mark = &input->notice->problem_mark;
    char byte = byte_at(input, mark);
    if (byte == '\t')
        say(out, mark, "a tab stands here; lines are indented by blanks alone");
    else if (is_plain(byte))
        say(out, mark, "no value begins with %c; put quotes around it", byte);
    else
        say(out, mark, "no value begins like this; put quotes around it");
}

/* A line that should be `key: value`. */
static void say_colon(const struct input *input, struct config_fault *out)
{
    const struct config_mark *mark = &input->notice->context_mark;
    const char *key = mark_at(input, mark);
    size_t length = line_length(input, key), word = 0;
    while (word < length && key[word] != ' ' && key[word] != ':') word++;
    if (word < length && key[word] == ':')
        say(out, mark, "a blank is missing after the colon: write `%.*s: ...`", word < 64 ? (int)word : 64,
            key);
    else
        say(out, mark, "a colon is missing: a line is `key: value`, or `- value` in a list");
}

/* A colon where a value continues. */
static void say_value(const struct input *input, struct config_fault *out)
{
    const struct config_mark *mark = &input->notice->problem_mark;
    const char *line = line_at(input, mark->line), *colon = mark_at(input, mark);
    bool second = false;
    for (const char *at = line; at + 1 < colon; at++) second |= at[0] == ':' && at[1] == ' ';
    if (second)
        say(out, mark, "a second colon in one value; put quotes around a text that has one");
    else
        say(out, mark,
            "no key can stand here, since the value in the line before goes on; check how both lines are "
            "indented, and "
            "whether the line before has a value that should be below it");
}

static void say_quote(const struct input *input, struct config_fault *out)
{
    const struct config_mark *mark = &input->notice->context_mark;
    char quote = byte_at(input, mark);
    say(out, mark, "the quote %c that begins here has no end", is_plain(quote) ? quote : '"');
}

/* A brace or bracket that is not closed, or lacks a comma. */
static void say_open(const struct input *input, char open, char close, struct config_fault *out)
{
    const struct config_mark *begin = &input->notice->context_mark, *noticed = &input->notice->problem_mark;
    if (begin->line == noticed->line)
        say(out, noticed, "a comma or %c is missing before this place; the %c is in column %zu", close, open,
            begin->column + 1);
    else if (mark_at(input, noticed) == input->end)
        say(out, begin, "the %c that stands here is not closed: %c is missing", open, close);
    else
        say(out, begin, "the %c that stands here is not closed: %c is missing, or a comma before line %zu",
            open, close, noticed->line + 1);
}

static void say_node(const struct input *input, struct config_fault *out)
{
    const struct config_mark *mark = &input->notice->problem_mark;
    char byte = byte_at(input, mark);
    if (is_plain(byte))
        say(out, mark, "a value is missing before %c", byte);
    else
        say(out, mark, "a value is missing here");
}

/* A line among the items of a list that is not an item. */
static void say_item(const struct input *input, struct config_fault *out)
{
    const struct config_mark *mark = &input->notice->problem_mark, *list = &input->notice->context_mark;
    const char *at = mark_at(input, mark);
    if (at + 1 < input->end && at[0] == '-' && at[1] != ' ')
        say(out, mark, "a blank is missing after the dash: an item of a list is `- value`");
    else
        say(out, mark,
            "this is no item of the list that begins in line %zu: its items begin with - in column %zu",
            list->line + 1, list->column + 1);
}

/* Text between the keys of a mapping that is not a key. */
static void say_key(const struct input *input, struct config_fault *out)
{
    const struct config_mark *mark = &input->notice->problem_mark, *mapping = &input->notice->context_mark;
    char byte = byte_at(input, mark);
    if (byte == '}' || byte == ']')
        say(out, mark, "the %c closes nothing that is open", byte);
    else
        say(out, mark,
            "this belongs to nothing: the keys of the mapping from line %zu begin in column %zu, and a value "
            "ends with its quotes or brackets",
            mapping->line + 1, mapping->column + 1);
}

/* ---- which it is ---- */

static bool problem_has(const struct config_notice *notice, const char *words)
{
    return notice->problem && strstr(notice->problem, words);
}

static bool context_has(const struct config_notice *notice, const char *words)
{
    return notice->context && strstr(notice->context, words);
}

/* libyaml says what was expected and in which context, in fixed words; unknown messages are passed on. */
static void find(const struct input *input, struct config_fault *out)
{
    const struct config_notice *notice = input->notice;
    if (problem_has(notice, "tab"))
        say(out, &notice->problem_mark, "a tab stands here; lines are indented by blanks alone");
    else if (problem_has(notice, "cannot start any token"))
        say_token(input, out);
    else if (problem_has(notice, "could not find expected ':'"))
        say_colon(input, out);
    else if (problem_has(notice, "mapping values are not allowed"))
        say_value(input, out);
    else if (problem_has(notice, "block sequence entries are not allowed"))
        say(out, &notice->problem_mark, "a list cannot begin here: put its items in the lines below the key");
    else if (context_has(notice, "quoted scalar") && problem_has(notice, "unexpected"))
        say_quote(input, out);
    else if (context_has(notice, "quoted scalar"))
        say(out, &notice->problem_mark,
            "no such escape after \\ in double quotes; write \\\\, or use single quotes");
    else if (problem_has(notice, "expected ',' or '}'"))
        say_open(input, '{', '}', out);
    else if (problem_has(notice, "expected ',' or ']'"))
        say_open(input, '[', ']', out);
    else if (problem_has(notice, "expected node content"))
        say_node(input, out);
    else if (problem_has(notice, "expected '-' indicator"))
        say_item(input, out);
    else if (problem_has(notice, "expected key"))
        say_key(input, out);
    else if (context_has(notice, "anchor") || context_has(notice, "alias"))
        say(out, &notice->problem_mark, "a value that begins with * or & needs quotes");
    else if (problem_has(notice, "expected <document start>"))
        say(out, &notice->problem_mark, "this belongs to nothing; check how the lines before are indented");
    else
        say(out, &notice->problem_mark, "cannot be read as YAML: %s%s%s",
            notice->problem ? notice->problem : "a fault", notice->context ? ", " : "",
            notice->context ? notice->context : "");
}

/* Copies the line of the fault so that a message can hold it. */
static void quote_line(const struct input *input, size_t number, char *out, size_t size)
{
    const char *line = line_at(input, number);
    size_t length = line_length(input, line), used = 0;
    while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t')) length--;
    const char *end = line + length;
    while (line < end && used + 8 < size) {
        size_t bytes = character_length(line, end);
        if (*line == '\t' || bytes > 4) {
            memcpy(out + used, "\\t", 2);
            used += 2;
        } else {
            memcpy(out + used, line, bytes);
            used += bytes;
        }
        line += bytes;
    }
    memcpy(out + used, line < end ? "..." : "", line < end ? 4 : 1);
}

void config_fault_find(const struct config_notice *notice, const char *text, size_t length,
                       struct config_fault *out)
{
    const struct input input = {text, text + length, notice};
    find(&input, out);
    /* A truncated text is noticed only after its last line. */
    const char *at = line_at(&input, out->mark.line);
    if (at == input.end && out->mark.line > 0) {
        out->mark.line--;
        at = line_at(&input, out->mark.line);
        out->mark.column = 0;
        for (const char *end = at + line_length(&input, at); at < end; at += character_length(at, end))
            out->mark.column++;
    }
    quote_line(&input, out->mark.line, out->line, sizeof out->line);
}
