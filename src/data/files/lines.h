/* Text files as lines, plain or gzip, and how to treat bad records. */
#ifndef TR_DATA_LINES_H
#define TR_DATA_LINES_H

#include "base/options/option.h"

/* A whole file, unpacked if it is gzip. Returned, free data with tr_free(). */
struct tr_load {
    uint8_t *data;
    size_t size;
};
tr_status tr_load_file(const char *path, struct tr_load *out);
/* Loads a file of lines. TR_EFORMAT as soon as one has more than TR_LINE_MAX bytes, and for UTF-16 text. */
#define TR_LINE_MAX ((size_t)64 << 20)
tr_status tr_load_lines(const char *path, struct tr_load *out);
/* State of checking a text piece by piece; begins with only the path set. */
struct tr_line_check {
    const char *path;
    int64_t number; /* number of the current line, from 1; 0: no bytes yet */
    size_t length;  /* bytes of that line so far */
};
tr_status tr_line_check(void *check, const uint8_t *piece, size_t size);

/* A walk over the lines of a text. The last line may lack its line feed; a carriage return before the line
   feed and a byte order mark at the start are dropped. */
struct tr_lines {
    const char *path; /* for messages; borrowed */
    const char *at, *end;
    int64_t number; /* of the current line, from 1 */
    const char *line;
    size_t length;
};
/* All arguments are borrowed while lines are read. */
struct tr_lines tr_lines_of(const char *path, const char *text, size_t size);
/* Moves to the next line; false at the end. */
bool tr_lines_next(struct tr_lines *lines);
/* Records "path:line:column: <format...>" and returns TR_EFORMAT; `at` points into the current line. */
tr_status tr_lines_fail(const struct tr_lines *lines, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Blanks between words. */
static inline bool tr_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* How to treat a bad record; an option of all formats that have records. */
enum tr_bad_action {
    TR_BAD_STOP, /* opening fails */
    TR_BAD_SKIP  /* it is left out and counted */
};
extern const struct tr_choice tr_bad_actions[];
/* The options `on_bad_record` and `max_bad` of an object that has members of these names. */
#define TR_OPTIONS_BAD(object)                                                                               \
    {.key = "on_bad_record",                                                                                 \
     .type = TR_OPTION_CHOICE,                                                                               \
     .offset = offsetof(object, on_bad_record),                                                              \
     .fallback = "stop",                                                                                     \
     .choices = tr_bad_actions,                                                                              \
     .help = "reaction to a bad record: stop with an error, or skip it, up to "                              \
             "max_bad of all are bad"},                                                                      \
    {                                                                                                        \
        .key = "max_bad", .type = TR_OPTION_DOUBLE, .offset = offsetof(object, max_bad),                     \
        .fallback = "0.001", .most = 1, .help = "largest fraction of bad records for on_bad_record: skip"    \
    }
/* The option `classes`, at most `limit`. */
#define TR_OPTION_CLASSES(object, limit)                                                                     \
    {                                                                                                        \
        .key = "classes", .type = TR_OPTION_INT32, .offset = offsetof(object, classes), .fallback = "0",     \
        .most = limit, .help = "number of classes, greater than every label; 0: the largest label plus one"  \
    }

/* The option of formats in which pixels may have labels. */
#define TR_OPTION_IGNORE(object)                                                                             \
    {                                                                                                        \
        .key = "ignore", .type = TR_OPTION_INT32, .offset = offsetof(object, ignore), .fallback = "-1",      \
        .least = -1, .most = 1 << 24, .flags = TR_OPTION_QUIET,                                              \
        .help = "label of pixels that have no class, 255 in many sets: losses and metrics leave them out; "  \
                "-1: there is none"                                                                          \
    }

struct tr_bad {
    enum tr_bad_action action;
    double most; /* share */
    int64_t records, bad;
};
/* Call after a record failed with `status` and a message. TR_OK when it is to be skipped (the message goes
   to the log), else `status`. Other failures than a bad record (memory, input) always stop. */
tr_status tr_bad_record(struct tr_bad *bad, tr_status status);
/* Call after all `records` of `path`. TR_EFORMAT when too many were bad or none is left. */
tr_status tr_bad_finish(const struct tr_bad *bad, const char *path);

#endif
