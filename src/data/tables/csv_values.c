#include "data/tables/csv_values.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <inttypes.h>
#include <math.h>

/* The fields of the current line; returned, free with tr_free(). */
static tr_status split(const struct tr_lines *lines, char separator, int32_t *count,
                       struct tr_csv_field **out)
{
    *out = NULL;
    TR_TRY(tr_csv_split(lines, separator, NULL, 0, count));
    struct tr_csv_field *fields = tr_alloc((size_t)*count + 1, sizeof *fields);
    if (!fields) return TR_ENOMEM;
    *out = fields;
    return tr_csv_split(lines, separator, fields, *count, count);
}

static bool is_named(const struct tr_csv_namer *namer, int32_t column)
{
    return namer && namer->names(namer->user, column) > 0;
}

static tr_status read_name(const struct tr_lines *lines, int32_t i, struct tr_csv_field field,
                           const struct tr_csv_namer *namer, float *value)
{
    char *name = tr_format("%.*s", (int)field.length, field.at);
    if (!name) return TR_ENOMEM;
    tr_status status = namer->find(namer->user, i, name, value);
    tr_free(name);
    return status == TR_EINVAL ? tr_lines_fail(lines, field.at, "%s", tr_error_message()) : status;
}

static tr_status read_field(const struct tr_lines *lines, int32_t i, struct tr_csv_field field,
                            const struct tr_csv_namer *namer, float *value)
{
    double number;
    *value = NAN;
    if (tr_csv_is_missing(field)) return TR_OK;
    if (is_named(namer, i)) return read_name(lines, i, field, namer, value);
    const char *wrong = tr_csv_number(field, &number);
    if (!wrong && isinf((float)number)) wrong = "is too large";
    if (wrong)
        return tr_lines_fail(lines, field.at, "field %" PRId32 " \"%.*s\" %s", i,
                             (int)(field.length < 40 ? field.length : 40), field.at, wrong);
    *value = (float)number;
    return TR_OK;
}

tr_status tr_csv_values(const struct tr_lines *lines, char separator, int32_t count,
                        const struct tr_csv_namer *namer, float *values)
{
    struct tr_csv_field *fields;
    int32_t given;
    tr_status status = split(lines, separator, &given, &fields);
    if (status == TR_OK && given != count)
        status = tr_lines_fail(lines, lines->line, "%" PRId32 " %s, the network takes %" PRId32, given,
                               namer ? "values" : "numbers", count);
    for (int32_t i = 0; status == TR_OK && i < count; i++)
        status = read_field(lines, i, fields[i], namer, &values[i]);
    tr_free(fields);
    return status;
}

bool tr_csv_is_names(const struct tr_lines *lines, char separator, const struct tr_csv_namer *namer)
{
    struct tr_csv_field *fields;
    int32_t count, judged = 0;
    double number;
    bool names = split(lines, separator, &count, &fields) == TR_OK;
    for (int32_t i = 0; names && i < count; i++) {
        if (is_named(namer, i)) continue;
        names = !tr_csv_is_missing(fields[i]) && tr_csv_number(fields[i], &number) != NULL;
        judged++;
    }
    tr_free(fields);
    return names && (judged > 0 || !namer);
}
