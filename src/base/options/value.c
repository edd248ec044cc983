/* Single values: reading from texts, range checks, release. */
#include "base/options/table.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static_assert(sizeof(enum tr_option_type) == sizeof(int), "CHOICE fields are written as int");

tr_status option_fail(struct option_origin origin, const char *format, ...)
{
    char message[768];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return origin.node ? tr_config_fail(TR_EINVAL, origin.node, "%s", message)
                       : tr_fail(TR_EINVAL, "%s: %s", origin.name, message);
}

/* ---- ranges ---- */

static bool limited(const struct tr_option *option)
{
    return option->least != 0 || option->most != 0;
}

static bool inside(const struct tr_option *option, double value, double least, double most)
{
    if (!limited(option)) return true;
    bool above = option->flags & TR_OPTION_ABOVE_LEAST ? value > least : value >= least;
    bool below = option->flags & TR_OPTION_BELOW_MOST ? value < most : value <= most;
    return above && below;
}

/* Integers in full, since limits such as 1e+06 are hard to read. */
static const char *write_limit(double limit, char buffer[TR_TEXT_NUMBER_SIZE])
{
    if (limit != floor(limit) || fabs(limit) > 0x1p53) return tr_text_from_double(limit, buffer);
    snprintf(buffer, TR_TEXT_NUMBER_SIZE, "%lld", (long long)limit);
    return buffer;
}

static const char *write_range(const struct tr_option *option, double most_of_people,
                               char buffer[OPTION_RANGE_SIZE])
{
    char least[TR_TEXT_NUMBER_SIZE], most[TR_TEXT_NUMBER_SIZE];
    bool has_least = limited(option) && fabs(option->least) < most_of_people,
         has_most = limited(option) && fabs(option->most) < most_of_people;
    bool tiny = option->least > 0 && option->least * most_of_people < 1e3; /* practically "above 0" */
    bool closed = !tiny && !(option->flags & (TR_OPTION_ABOVE_LEAST | TR_OPTION_BELOW_MOST));
    const char *above = tiny || option->flags & TR_OPTION_ABOVE_LEAST ? ">" : ">=";
    const char *below = option->flags & TR_OPTION_BELOW_MOST ? "<" : "<=";
    if (has_least) write_limit(tiny ? 0 : option->least, least);
    if (has_most) write_limit(option->most, most);
    buffer[0] = '\0';
    if (has_least && has_most && closed) {
        snprintf(buffer, OPTION_RANGE_SIZE, "%s .. %s", least, most);
    } else if (has_least && has_most) {
        snprintf(buffer, OPTION_RANGE_SIZE, "%s %s and %s %s", above, least, below, most);
    } else if (has_least) {
        snprintf(buffer, OPTION_RANGE_SIZE, "%s %s", above, least);
    } else if (has_most) {
        snprintf(buffer, OPTION_RANGE_SIZE, "%s %s", below, most);
    }
    return buffer;
}

const char *option_range(const struct tr_option *option, char buffer[OPTION_RANGE_SIZE])
{
    return write_range(option, INFINITY, buffer);
}

const char *option_range_for_people(const struct tr_option *option, char buffer[OPTION_RANGE_SIZE])
{
    return write_range(option, 1e9, buffer);
}

static tr_status fail_range(const struct tr_option *option, const char *text, struct option_origin origin)
{
    char range[OPTION_RANGE_SIZE];
    return option_fail(origin, "%s is out of range; allowed: %s (%s)", text, option_range(option, range),
                       option->help);
}

/* ---- single values ---- */

static tr_status read_integer(const struct tr_option *option, const char *text, struct option_origin origin,
                              int64_t *out)
{
    const char *wrong = tr_text_int64(text, out);
    if (wrong) return option_fail(origin, "\"%s\" %s (%s)", text, wrong, option->help);
    if (!inside(option, (double)*out, option->least, option->most)) return fail_range(option, text, origin);
    return TR_OK;
}

static tr_status read_int32(const struct tr_option *option, const char *text, struct option_origin origin,
                            int32_t *out)
{
    int64_t value;
    TR_TRY(read_integer(option, text, origin, &value));
    if (value < INT32_MIN || value > INT32_MAX)
        return option_fail(origin, "%s is out of range; allowed: -2147483648 .. 2147483647 (%s)", text,
                           option->help);
    *out = (int32_t)value;
    return TR_OK;
}

/* Whether a number above 0, where the option allows only such, would become 0 or lose its digits in
   computation, which uses 32-bit floats. */
static bool vanishes(const struct tr_option *option, double value)
{
    return limited(option) && option->least >= 0 && value > 0 && value < (double)FLT_MIN;
}

static tr_status read_double(const struct tr_option *option, const char *text, struct option_origin origin,
                             double *out)
{
    const char *wrong = tr_text_double(text, out);
    if (wrong) return option_fail(origin, "\"%s\" %s (%s)", text, wrong, option->help);
    if (vanishes(option, *out))
        return option_fail(origin,
                           "%s is too small: the least that 32-bit floats hold in full is 1.1755e-38 (%s)",
                           text, option->help);
    return inside(option, *out, option->least, option->most) ? TR_OK : fail_range(option, text, origin);
}

static tr_status read_float(const struct tr_option *option, const char *text, struct option_origin origin,
                            float *out)
{
    double exact;
    TR_TRY(read_double(option, text, origin, &exact));
    const char *wrong = tr_text_float(text, out);
    if (wrong) return option_fail(origin, "\"%s\" %s (%s)", text, wrong, option->help);
    /* 0.99999999 is below 1, but not as a float. */
    bool rounded = inside(option, (double)*out, (double)(float)option->least, (double)(float)option->most);
    return rounded ? TR_OK : fail_range(option, text, origin);
}

static tr_status read_choice(const struct tr_option *option, const char *text, struct option_origin origin,
                             int *out)
{
    const char *names[TR_OPTIONS_MAX];
    int32_t count = 0;
    struct tr_choice choice;
    for (; (choice = tr_option_choice(option, count)).name; count++) {
        if (strcmp(choice.name, text) == 0) {
            *out = choice.value;
            return TR_OK;
        }
        assert(count < TR_OPTIONS_MAX);
        names[count] = choice.name;
    }
    struct tr_text unknown = TR_TEXT_INIT;
    tr_text_add_unknown(&unknown, text, names, count);
    tr_status status = unknown.failed ? TR_ENOMEM : option_fail(origin, "%s", unknown.bytes);
    tr_text_release(&unknown);
    return status;
}

static tr_status append_string(struct tr_string_list *list, const char *text, struct option_origin origin)
{
    if (list->count >= TR_OPTION_STRINGS_MAX)
        return option_fail(origin, "more than %d items", TR_OPTION_STRINGS_MAX);
    char *copy = tr_strdup(text);
    char **grown = copy ? tr_realloc(list->item, (size_t)list->count + 1, sizeof *grown) : NULL;
    if (!grown) {
        tr_free(copy);
        return TR_ENOMEM;
    }
    list->item = grown;
    list->item[list->count++] = copy;
    return TR_OK;
}

tr_status option_put(const struct tr_option *option, const char *text, struct option_origin origin,
                     void *object)
{
    void *field = option_field(option, object);
    switch (option->type) {
    case TR_OPTION_BOOL: {
        const char *wrong = tr_text_bool(text, field);
        return wrong ? option_fail(origin, "\"%s\" %s (%s)", text, wrong, option->help) : TR_OK;
    }
    case TR_OPTION_INT32:
        return read_int32(option, text, origin, field);
    case TR_OPTION_INT64:
        return read_integer(option, text, origin, field);
    case TR_OPTION_FLOAT:
        return read_float(option, text, origin, field);
    case TR_OPTION_DOUBLE:
        return read_double(option, text, origin, field);
    case TR_OPTION_CHOICE:
        return read_choice(option, text, origin, field);
    case TR_OPTION_STRING: {
        char *copy = tr_strdup(text);
        if (!copy) return TR_ENOMEM;
        tr_free(*(char **)field);
        *(char **)field = copy;
        return TR_OK;
    }
    case TR_OPTION_PAIR: {
        int32_t *pair = field;
        TR_TRY(read_int32(option, text, origin, &pair[0]));
        pair[1] = pair[0];
        return TR_OK;
    }
    case TR_OPTION_INT_LIST: {
        struct tr_int_list *list = field;
        if (list->count >= TR_OPTION_LIST_MAX)
            return option_fail(origin, "more than %d items", TR_OPTION_LIST_MAX);
        TR_TRY(read_integer(option, text, origin, &list->item[list->count]));
        list->count++;
        return TR_OK;
    }
    case TR_OPTION_FLOAT_LIST: {
        struct tr_float_list *list = field;
        if (list->count >= TR_OPTION_LIST_MAX)
            return option_fail(origin, "more than %d items", TR_OPTION_LIST_MAX);
        TR_TRY(read_float(option, text, origin, &list->item[list->count]));
        list->count++;
        return TR_OK;
    }
    case TR_OPTION_STRING_LIST:
        return append_string(field, text, origin);
    case TR_OPTION_NODE:
        break;
    }
    return option_fail(origin, "cannot be given as a text; write it in the model file");
}

tr_status option_put_second(const struct tr_option *option, const char *text, struct option_origin origin,
                            void *object)
{
    return read_int32(option, text, origin, (int32_t *)option_field(option, object) + 1);
}

void option_clear(const struct tr_option *option, void *object)
{
    void *field = option_field(option, object);
    switch (option->type) {
    case TR_OPTION_BOOL:
        *(bool *)field = false;
        break;
    case TR_OPTION_INT32:
        *(int32_t *)field = 0;
        break;
    case TR_OPTION_INT64:
        *(int64_t *)field = 0;
        break;
    case TR_OPTION_FLOAT:
        *(float *)field = 0;
        break;
    case TR_OPTION_DOUBLE:
        *(double *)field = 0;
        break;
    case TR_OPTION_CHOICE:
        *(int *)field = 0;
        break;
    case TR_OPTION_PAIR:
        memset(field, 0, 2 * sizeof(int32_t));
        break;
    case TR_OPTION_INT_LIST:
        ((struct tr_int_list *)field)->count = 0;
        break;
    case TR_OPTION_FLOAT_LIST:
        ((struct tr_float_list *)field)->count = 0;
        break;
    case TR_OPTION_NODE:
        *(const tr_config **)field = NULL;
        break;
    case TR_OPTION_STRING:
        tr_free(*(char **)field);
        *(char **)field = NULL;
        break;
    case TR_OPTION_STRING_LIST: {
        struct tr_string_list *list = field;
        for (int32_t i = 0; i < list->count; i++) tr_free(list->item[i]);
        tr_free(list->item);
        *list = (struct tr_string_list){0};
        break;
    }
    }
}
