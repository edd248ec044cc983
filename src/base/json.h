/* JSON: reading with errors that name the member, writing with bytes that never vary.
 *
 * Reading is jansson's: duplicate keys, bad UTF-8 and NULs in strings are refused, nesting is limited. The
 * first parse points jansson's allocator, which belongs to the whole process, at base/alloc.h, unless
 * somebody else has set it. Writing is our own, on base/text.h: numbers are the shortest that read back as
 * the same value, whatever the locale, so that equal values are equal bytes.
 */
#ifndef TR_BASE_JSON_H
#define TR_BASE_JSON_H

#include "base/text.h"

#include <jansson.h>

/* Parses `size` bytes that must be one JSON object. `where` (a path) goes into messages. Returned, free with
   json_decref(). TR_EFORMAT (`where` with line and column), TR_ENOMEM. */
tr_status tr_json_parse(const char *text, size_t size, const char *where, json_t **out);

/* Members of an object, by key. All are TR_EFORMAT when the member is missing or of another kind; the message
   has `where`, the key, what was found and what is wanted. Results that are pointers are borrowed from
   `object`. */
tr_status tr_json_get_integer(const json_t *object, const char *where, const char *key, int64_t least,
                              int64_t most, int64_t *out);
tr_status tr_json_get_text(const json_t *object, const char *where, const char *key, const char **out);
tr_status tr_json_get_object(const json_t *object, const char *where, const char *key, json_t **out);
tr_status tr_json_get_array(const json_t *object, const char *where, const char *key, json_t **out);

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
    bool lines;   /* each member on a line of its own, indented */
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
/* What is not finite has no form in JSON and is written as null. */
void tr_json_double(struct tr_json_writer *json, const char *key, double value);
void tr_json_float(struct tr_json_writer *json, const char *key, float value);
void tr_json_bool(struct tr_json_writer *json, const char *key, bool value);
/* Closes the object and hands the text over (returned, free with tr_free()); one line feed ends it where
   `lines`, none otherwise. Everything opened must be closed. TR_ENOMEM. */
tr_status tr_json_finish(struct tr_json_writer *json, char **out);
/* Instead of tr_json_finish(): frees what was written. */
void tr_json_release(struct tr_json_writer *json);

#endif
