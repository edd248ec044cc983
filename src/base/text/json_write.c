#include "base/text/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#define INDENT 2

static void new_line(struct tr_json_writer *json)
{
    tr_text_add(&json->text, "\n");
    tr_text_pad(&json->text, ' ', (size_t)json->depth * INDENT);
}

/* Writes all before a value: separator, line and key. */
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
