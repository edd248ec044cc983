/* Stands in for libyaml's event parser. Reads YAML in flow style, of which JSON is a part: mappings in
 * braces, lists in brackets, double-quoted texts, and plain texts that end at a comma, colon, bracket or
 * line. No block style, anchors, tags or comments. */
#ifndef STAND_IN_YAML_H
#define STAND_IN_YAML_H

#include <stddef.h>

typedef unsigned char yaml_char_t;
enum { YAML_UTF8_ENCODING = 1 };
enum { YAML_NO_ERROR, YAML_MEMORY_ERROR, YAML_READER_ERROR, YAML_PARSER_ERROR };
enum { YAML_PLAIN_SCALAR_STYLE = 1, YAML_DOUBLE_QUOTED_SCALAR_STYLE = 3 };

typedef enum {
    YAML_NO_EVENT,
    YAML_STREAM_START_EVENT,
    YAML_STREAM_END_EVENT,
    YAML_DOCUMENT_START_EVENT,
    YAML_DOCUMENT_END_EVENT,
    YAML_ALIAS_EVENT,
    YAML_SCALAR_EVENT,
    YAML_SEQUENCE_START_EVENT,
    YAML_SEQUENCE_END_EVENT,
    YAML_MAPPING_START_EVENT,
    YAML_MAPPING_END_EVENT
} yaml_event_type_t;

typedef struct {
    size_t index, line, column;
} yaml_mark_t;

typedef struct {
    yaml_event_type_t type;
    union {
        struct {
            yaml_char_t *anchor;
        } alias;
        struct {
            yaml_char_t *anchor, *tag, *value;
            size_t length;
            int style;
        } scalar;
        struct {
            yaml_char_t *anchor, *tag;
        } sequence_start, mapping_start;
    } data;
    yaml_mark_t start_mark;
} yaml_event_t;

#define YAML_STAND_IN_DEPTH 64

typedef struct {
    int error;
    const char *problem, *context;
    size_t problem_offset;
    yaml_mark_t problem_mark;
    /* The stand-in's own. */
    const unsigned char *text;
    yaml_mark_t at; /* index: bytes read */
    size_t length;
    int phase, depth;
    struct {
        char close;         /* the bracket that ends the collection */
        int started, value; /* something was read; a mapping's key was read and its value comes next */
    } open[YAML_STAND_IN_DEPTH];
} yaml_parser_t;

/* They return 1, or 0 on failure. */
int yaml_parser_initialize(yaml_parser_t *parser);
void yaml_parser_delete(yaml_parser_t *parser);
void yaml_parser_set_encoding(yaml_parser_t *parser, int encoding);
void yaml_parser_set_input_string(yaml_parser_t *parser, const unsigned char *text, size_t length);
int yaml_parser_parse(yaml_parser_t *parser, yaml_event_t *event);
void yaml_event_delete(yaml_event_t *event);

#endif
