/* The values of an object: as JSON, and one by one. */
#include "base/options/table.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <math.h>
#include <string.h>

static void dump_double(struct tr_text *text, double value)
{
    char number[TR_TEXT_NUMBER_SIZE];
    tr_text_add(text, isfinite(value) ? tr_text_from_double(value, number) : "null");
}

static void dump_float(struct tr_text *text, float value)
{
    char number[TR_TEXT_NUMBER_SIZE];
    tr_text_add(text, isfinite(value) ? tr_text_from_float(value, number) : "null");
}

static void dump_string(struct tr_text *text, const char *value)
{
    if (value) {
        tr_text_add_quoted(text, value);
    } else {
        tr_text_add(text, "null");
    }
}

/* The name of the choice in a field. */
static const char *choice_name(const struct tr_option *option, const void *field)
{
    struct tr_choice choice;
    for (int32_t i = 0; (choice = tr_option_choice(option, i)).name; i++)
        if (choice.value == *(const int *)field) break;
    return choice.name;
}

static void dump_value(struct tr_text *text, const struct tr_option *option, const void *field)
{
    switch (option->type) {
    case TR_OPTION_BOOL:
        tr_text_add(text, *(const bool *)field ? "true" : "false");
        break;
    case TR_OPTION_INT32:
        tr_text_addf(text, "%ld", (long)*(const int32_t *)field);
        break;
    case TR_OPTION_INT64:
        tr_text_addf(text, "%lld", (long long)*(const int64_t *)field);
        break;
    case TR_OPTION_FLOAT:
        dump_float(text, *(const float *)field);
        break;
    case TR_OPTION_DOUBLE:
        dump_double(text, *(const double *)field);
        break;
    case TR_OPTION_STRING:
        dump_string(text, *(const char *const *)field);
        break;
    case TR_OPTION_CHOICE:
        dump_string(text, choice_name(option, field));
        break;
    case TR_OPTION_PAIR: {
        const int32_t *pair = field;
        tr_text_addf(text, "[%ld, %ld]", (long)pair[0], (long)pair[1]);
        break;
    }
    case TR_OPTION_INT_LIST: {
        const struct tr_int_list *list = field;
        tr_text_add(text, "[");
        for (int32_t i = 0; i < list->count; i++)
            tr_text_addf(text, "%s%lld", i ? ", " : "", (long long)list->item[i]);
        tr_text_add(text, "]");
        break;
    }
    case TR_OPTION_FLOAT_LIST: {
        const struct tr_float_list *list = field;
        tr_text_add(text, "[");
        for (int32_t i = 0; i < list->count; i++) {
            if (i) tr_text_add(text, ", ");
            dump_float(text, list->item[i]);
        }
        tr_text_add(text, "]");
        break;
    }
    case TR_OPTION_STRING_LIST: {
        const struct tr_string_list *list = field;
        tr_text_add(text, "[");
        for (int32_t i = 0; i < list->count; i++) {
            if (i) tr_text_add(text, ", ");
            dump_string(text, list->item[i]);
        }
        tr_text_add(text, "]");
        break;
    }
    case TR_OPTION_NODE: {
        const tr_config *node = *(const tr_config *const *)field;
        if (node) {
            tr_config_json(node, text);
        } else {
            tr_text_add(text, "null");
        }
        break;
    }
    }
}

/* Whether a field has the fallback of its option, as both are written. */
static tr_status has_fallback(const struct tr_option *option, const void *field, bool *has)
{
    union {
        struct tr_int_list integers;
        struct tr_float_list floats;
        struct tr_string_list strings;
        const tr_config *node;
        double number;
    } usual;
    struct tr_option alone = *option;
    struct tr_text own = TR_TEXT_INIT, other = TR_TEXT_INIT;
    alone.offset = 0;
    TR_TRY(tr_options_defaults(&alone, 1, &usual));
    dump_value(&own, option, field);
    dump_value(&other, &alone, &usual);
    tr_status status = own.failed || other.failed ? TR_ENOMEM : TR_OK;
    *has = status == TR_OK && own.length == other.length && memcmp(own.bytes, other.bytes, own.length) == 0;
    tr_text_release(&other);
    tr_text_release(&own);
    tr_options_release(&alone, 1, &usual);
    return status;
}

tr_status tr_options_dump(const struct tr_option *table, int32_t count, const void *object, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    bool first = true;
    tr_text_add(&text, "{");
    for (int32_t i = 0; i < count; i++) {
        const void *field = option_field_const(&table[i], object);
        bool silent = false;
        if (table[i].flags & TR_OPTION_QUIET) {
            tr_status status = has_fallback(&table[i], field, &silent);
            if (status != TR_OK) tr_text_release(&text);
            TR_TRY(status);
        }
        if (silent) continue;
        tr_text_addf(&text, "%s\"%s\": ", first ? "" : ", ", table[i].key);
        dump_value(&text, &table[i], field);
        first = false;
    }
    tr_text_add(&text, "}");
    return tr_text_finish(&text, out);
}

/* A copy of a text, or NULL where there is none. */
static tr_status get_text(const char *text, struct tr_value *out)
{
    if (!text) return TR_OK;
    out->text = tr_strdup(text);
    out->kind = TR_VALUE_TEXT;
    return out->text ? TR_OK : TR_ENOMEM;
}

tr_status tr_options_get(const struct tr_option *table, int32_t index, const void *object,
                         struct tr_value *out)
{
    const struct tr_option *option = &table[index];
    const void *field = option_field_const(option, object);
    *out = (struct tr_value){.kind = TR_VALUE_NONE};
    if (!option_applies(table, option, object)) return TR_OK;
    switch (option->type) {
    case TR_OPTION_BOOL:
        *out = (struct tr_value){.kind = TR_VALUE_BOOL, .integer = *(const bool *)field};
        return TR_OK;
    case TR_OPTION_INT32:
        *out = (struct tr_value){.kind = TR_VALUE_INTEGER, .integer = *(const int32_t *)field};
        return TR_OK;
    case TR_OPTION_INT64:
        *out = (struct tr_value){.kind = TR_VALUE_INTEGER, .integer = *(const int64_t *)field};
        return TR_OK;
    case TR_OPTION_FLOAT:
        *out = (struct tr_value){.kind = TR_VALUE_NUMBER, .number = (double)*(const float *)field};
        return TR_OK;
    case TR_OPTION_DOUBLE:
        *out = (struct tr_value){.kind = TR_VALUE_NUMBER, .number = *(const double *)field};
        return TR_OK;
    case TR_OPTION_STRING:
        return get_text(*(const char *const *)field, out);
    case TR_OPTION_CHOICE:
        return get_text(choice_name(option, field), out);
    case TR_OPTION_NODE:
        if (!*(const tr_config *const *)field) return TR_OK;
        break;
    default:
        break;
    }
    struct tr_text text = TR_TEXT_INIT;
    dump_value(&text, option, field);
    out->kind = TR_VALUE_TEXT;
    return tr_text_finish(&text, &out->text);
}
