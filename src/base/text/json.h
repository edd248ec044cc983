/* JSON: reading with errors that name the member, writing with bytes that never vary.
 *
 * Reading is strict (RFC 8259, with the doubtful cases refused: duplicate keys, bad UTF-8, NULs in texts,
 * numbers that do not fit, nesting beyond 64) and takes memory in proportion to the text, so it may be
 * given hostile input. A failed allocation is distinguished from invalid text, so that lack of memory does
 * not make an intact file look damaged. Written numbers are the shortest that read back as the same value,
 * in any locale, so that equal values give equal bytes.
 */
#ifndef TR_BASE_JSON_H
#define TR_BASE_JSON_H

#include "base/text/text.h"

enum tr_json_kind {
    TR_JSON_NULL,
    TR_JSON_BOOL,
    TR_JSON_INTEGER, /* without point and exponent, and within 64 bits */
    TR_JSON_REAL,
    TR_JSON_TEXT,
    TR_JSON_ARRAY,
    TR_JSON_OBJECT
};

/* A value of a document. Read-only. */
struct tr_json_value {
    enum tr_json_kind kind;
    const char *key;                  /* of a member, NULL otherwise */
    const struct tr_json_value *next; /* the next sibling in the order of the text, or NULL */
    union {
        bool truth;
        int64_t integer;
        double real;
        const char *text;
        struct {
            int64_t count; /* elements or members */
            const struct tr_json_value *first;
            const struct tr_json_value **by_key; /* the members ascending by key; for tr_json_find() */
        };
    };
};

/* A parsed document; owns its values and texts. Any thread may read it. */
typedef struct tr_json tr_json;

/* Parses `size` bytes (borrowed for the call) that must be one JSON object. `where` (a path) goes into
   messages. Returned, free with tr_json_destroy(). TR_EFORMAT (`where` with line and column), TR_ENOMEM. */
tr_status tr_json_parse(const char *text, size_t size, const char *where, tr_json **out);
/* Accepts NULL, nulls the handle. */
void tr_json_destroy(tr_json **document);
const struct tr_json_value *tr_json_root(const tr_json *document);

/* The member `key` of an object; NULL if there is none, or `object` is not an object. */
const struct tr_json_value *tr_json_find(const struct tr_json_value *object, const char *key);
/* "an object", "a text", ... Static storage. */
const char *tr_json_kind_name(enum tr_json_kind kind);

/* Members of an object, by key. All are TR_EFORMAT when the member is missing or of another kind; the
   message has `where`, the key, and the found and the expected kind. Results that are pointers are
   borrowed from the document. */
tr_status tr_json_get_integer(const struct tr_json_value *object, const char *where, const char *key,
                              int64_t least, int64_t most, int64_t *out);
tr_status tr_json_get_text(const struct tr_json_value *object, const char *where, const char *key,
                           const char **out);
tr_status tr_json_get_object(const struct tr_json_value *object, const char *where, const char *key,
                             const struct tr_json_value **out);
tr_status tr_json_get_array(const struct tr_json_value *object, const char *where, const char *key,
                            const struct tr_json_value **out);

/* The same for optional members: where one is missing or of another kind, the result is NaN (an integer
   counts as a number), `fallback`, or "". Borrowed likewise. */
double tr_json_number_or_nan(const struct tr_json_value *object, const char *key);
int64_t tr_json_integer_or(const struct tr_json_value *object, const char *key, int64_t fallback);
const char *tr_json_text_or_empty(const struct tr_json_value *object, const char *key);

/* Writes one JSON object. A failed allocation is remembered and reported by tr_json_finish(), so that calls
   need no checks:

       struct tr_json_writer json;
       tr_json_begin(&json, false);
       tr_json_integer(&json, "step", 100);
       tr_json_float(&json, "loss", loss);
       status = tr_json_finish(&json, &line);     {"step":100,"loss":0.25}

   Keys are NULL for the elements of an array. Pointers are borrowed for the call. */
struct tr_json_writer {
    struct tr_text text;
    int depth;
    bool lines;   /* each member on a separate line, indented */
    bool started; /* the innermost object or array has a member */
};

void tr_json_begin(struct tr_json_writer *json, bool lines);
void tr_json_open_object(struct tr_json_writer *json, const char *key);
void tr_json_close_object(struct tr_json_writer *json);
/* An array stays on one line. */
void tr_json_open_array(struct tr_json_writer *json, const char *key);
void tr_json_close_array(struct tr_json_writer *json);
void tr_json_text(struct tr_json_writer *json, const char *key, const char *value);
void tr_json_integer(struct tr_json_writer *json, const char *key, int64_t value);
/* Numbers that are not finite have no form in JSON and are written as null. */
void tr_json_double(struct tr_json_writer *json, const char *key, double value);
void tr_json_float(struct tr_json_writer *json, const char *key, float value);
void tr_json_bool(struct tr_json_writer *json, const char *key, bool value);
/* Closes the object and gives its text (returned, free with tr_free()); it ends with a line feed where
   `lines`, otherwise without one. Everything opened must be closed. TR_ENOMEM. */
tr_status tr_json_finish(struct tr_json_writer *json, char **out);
/* Instead of tr_json_finish(): frees what was written. */
void tr_json_release(struct tr_json_writer *json);

#endif
