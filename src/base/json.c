#include "base/json.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#define INDENT 2

/* jansson reports a failed allocation as bad syntax, mostly. A checkpoint that is whole must not be given up
   for an older one since memory is short, so failures are noted where they happen. */
static _Thread_local bool allocation_failed;

static void *allocate(size_t size)
{
    void *block = tr_alloc(size, 1);
    allocation_failed = allocation_failed || !block;
    return block;
}

/* Blocks of tr_alloc() are malloc's, so what jansson allocated before is freed rightly after and the other
 * way round. */
static void take_allocator(void)
{
    json_malloc_t present_allocate;
    json_free_t present_free;
    json_get_alloc_funcs(&present_allocate, &present_free);
    if (present_allocate == malloc && present_free == free) json_set_alloc_funcs(allocate, tr_free);
}

tr_status tr_json_parse(const char *text, size_t size, const char *where, json_t **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, take_allocator);
    json_error_t error;
    *out = NULL;
    allocation_failed = false;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!root && (allocation_failed || json_error_code(&error) == json_error_out_of_memory))
        return tr_fail(TR_ENOMEM, "%s: out of memory for %zu bytes of JSON", where, size);
    if (!root)
        return tr_fail(TR_EFORMAT, "%s:%d:%d: bad JSON: %s", where, error.line, error.column, error.text);
    if (!json_is_object(root)) {
        json_decref(root);
        return tr_fail(TR_EFORMAT, "%s: bad JSON: an object {...} is needed", where);
    }
    *out = root;
    return TR_OK;
}

static const char *kind_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a text";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a point";
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    default:
        return "null";
    }
}

/* The member `key` of `object` if it has the kind. */
static tr_status get(const json_t *object, const char *where, const char *key, json_type kind,
                     const char *wanted, json_t **out)
{
    *out = json_object_get(object, key);
    if (!*out) return tr_fail(TR_EFORMAT, "%s: \"%s\" is missing", where, key);
    if (json_typeof(*out) == kind) return TR_OK;
    return tr_fail(TR_EFORMAT, "%s: \"%s\" is %s; it must be %s", where, key, kind_name(*out), wanted);
}

tr_status tr_json_get_integer(const json_t *object, const char *where, const char *key, int64_t least,
                              int64_t most, int64_t *out)
{
    json_t *value;
    TR_TRY(get(object, where, key, JSON_INTEGER, "an integer", &value));
    *out = json_integer_value(value);
    if (*out >= least && *out <= most) return TR_OK;
    return tr_fail(TR_EFORMAT, "%s: \"%s\" is %" PRId64 "; it must be from %" PRId64 " to %" PRId64, where,
                   key, *out, least, most);
}

tr_status tr_json_get_text(const json_t *object, const char *where, const char *key, const char **out)
{
    json_t *value;
    TR_TRY(get(object, where, key, JSON_STRING, "a text", &value));
    *out = json_string_value(value);
    return TR_OK;
}

tr_status tr_json_get_object(const json_t *object, const char *where, const char *key, json_t **out)
{
    return get(object, where, key, JSON_OBJECT, "an object", out);
}

tr_status tr_json_get_array(const json_t *object, const char *where, const char *key, json_t **out)
{
    return get(object, where, key, JSON_ARRAY, "an array", out);
}

/* ---- writing ---- */

static void new_line(struct tr_json_writer *json)
{
    tr_text_add(&json->text, "\n");
    tr_text_pad(&json->text, ' ', (size_t)json->depth * INDENT);
}

/* What stands before a value: separator, line and key. */
static void lead(struct tr_json_writer *json, const char *key)
{
    bool in_array = !key;
    if (json->started) tr_text_add(&json->text, in_array && json->lines ? ", " : ",");
    json->started = true;
    if (in_array) return;
    if (json->lines) new_line(json);
    tr_text_add_quoted(&json->text, key);
    tr_text_add(&json->text, json->lines ? ": " : ":");
}

static void open_bracket(struct tr_json_writer *json, const char *bracket)
{
    tr_text_add(&json->text, bracket);
    json->depth++;
    json->started = false;
}

static void close_bracket(struct tr_json_writer *json, const char *bracket, bool own_line)
{
    assert(json->depth > 0);
    json->depth--;
    if (json->started && own_line) new_line(json);
    tr_text_add(&json->text, bracket);
    json->started = true;
}

void tr_json_begin(struct tr_json_writer *json, bool lines)
{
    *json = (struct tr_json_writer){.text = TR_TEXT_INIT, .lines = lines};
    open_bracket(json, "{");
}

void tr_json_open_object(struct tr_json_writer *json, const char *key)
{
    lead(json, key);
    open_bracket(json, "{");
}

void tr_json_close_object(struct tr_json_writer *json)
{
    close_bracket(json, "}", json->lines);
}

void tr_json_open_array(struct tr_json_writer *json, const char *key)
{
    lead(json, key);
    open_bracket(json, "[");
}

void tr_json_close_array(struct tr_json_writer *json)
{
    close_bracket(json, "]", false);
}

void tr_json_text(struct tr_json_writer *json, const char *key, const char *value)
{
    lead(json, key);
    tr_text_add_quoted(&json->text, value);
}

void tr_json_integer(struct tr_json_writer *json, const char *key, int64_t value)
{
    lead(json, key);
    tr_text_addf(&json->text, "%" PRId64, value);
}

void tr_json_double(struct tr_json_writer *json, const char *key, double value)
{
    char buffer[TR_TEXT_NUMBER_SIZE];
    lead(json, key);
    tr_text_add(&json->text, isfinite(value) ? tr_text_from_double(value, buffer) : "null");
}

void tr_json_float(struct tr_json_writer *json, const char *key, float value)
{
    char buffer[TR_TEXT_NUMBER_SIZE];
    lead(json, key);
    tr_text_add(&json->text, isfinite(value) ? tr_text_from_float(value, buffer) : "null");
}

void tr_json_bool(struct tr_json_writer *json, const char *key, bool value)
{
    lead(json, key);
    tr_text_add(&json->text, value ? "true" : "false");
}

tr_status tr_json_finish(struct tr_json_writer *json, char **out)
{
    assert(json->depth == 1);
    close_bracket(json, "}", json->lines);
    if (json->lines) tr_text_add(&json->text, "\n");
    return tr_text_finish(&json->text, out);
}

void tr_json_release(struct tr_json_writer *json)
{
    tr_text_release(&json->text);
}
