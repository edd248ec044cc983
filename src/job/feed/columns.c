#include "job/feed/columns.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/ascii.h"
#include "data/memory/format.h"
#include "data/tables/csv.h"
#include "data/tables/csv_table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Replaces a missing number: by the mean of the training data, or by a constant. */
static tr_status read_fill(const struct tr_job *job, bool mean, double constant, struct tr_job_columns *out)
{
    int32_t floats = (int32_t)tr_shape_count(&job->stored), classes, place = 0;
    struct tr_scaling scaling = {0};
    if (mean && job->state) TR_TRY(tr_scaling_read(job->state, &scaling, &classes));
    tr_status status = TR_OK;
    if (!mean || (scaling.fill && scaling.count == floats)) {
        out->fill = tr_alloc((size_t)out->count, sizeof *out->fill);
        if (!out->fill) status = TR_ENOMEM;
    }
    for (int32_t c = 0; out->fill && c < out->count; c++) {
        bool names = out->categories.columns > 0 && out->categories.names[c].count > 0;
        out->fill[c] = names ? NAN : (float)(mean ? scaling.fill[place] : constant);
        place += out->categories.columns > 0 ? tr_category_width(&out->categories, c) : 1;
    }
    tr_scaling_release(&scaling);
    return status;
}

/* Columns may be given by number, which is not a name for people. */
static tr_status read_labels(const struct tr_csv_options *options, struct tr_job_columns *out)
{
    const struct tr_string_list *given = &options->label_columns;
    if (given->count == 0) return TR_OK;
    for (int32_t i = 0; i < given->count; i++)
        if (tr_is_digit(given->item[i][0])) return TR_OK;
    out->labels.item = tr_alloc_zero((size_t)given->count, sizeof *out->labels.item);
    if (!out->labels.item) return TR_ENOMEM;
    for (; out->labels.count < given->count; out->labels.count++) {
        char *name = tr_strdup(given->item[out->labels.count]);
        if (!name) return TR_ENOMEM;
        out->labels.item[out->labels.count] = name;
    }
    return TR_OK;
}

static tr_status read_table(const struct tr_job *job, const struct tr_csv_options *options,
                            struct tr_job_columns *out)
{
    const bool mean = options->missing == TR_MISSING_MEAN;
    out->unknown_stops = options->unknown == TR_CSV_UNKNOWN_STOP;
    if (mean || options->missing == TR_MISSING_CONSTANT)
        TR_TRY(read_fill(job, mean, options->missing_value, out));
    return read_labels(options, out);
}

static tr_status read_memory(const struct tr_job *job, const struct tr_memory_options *options,
                             struct tr_job_columns *out)
{
    if (options->missing == TR_MISSING_STOP) return TR_OK;
    return read_fill(job, options->missing == TR_MISSING_MEAN, options->missing_value, out);
}

tr_status tr_job_columns_read(const struct tr_job *job, struct tr_job_columns *out)
{
    const struct tr_entry *entry;
    const tr_config *own;
    void *options;
    *out = (struct tr_job_columns){0};
    if (job->features == TR_FEATURE_FLOATS && job->parts.count == 0) {
        if (job->state) TR_TRY(tr_categories_read(job->state, &out->categories));
        out->count =
            out->categories.columns > 0 ? out->categories.columns : (int32_t)tr_shape_count(&job->stored);
    }
    if (!job->data.train || tr_registry_choose(&tr_source_formats, job->data.train, &entry, &own) != TR_OK)
        return TR_OK;
    const bool table = entry == &tr_source_format_csv.entry || entry == &tr_source_format_json.entry;
    if (!table && entry != &tr_source_format_memory.entry) return TR_OK;
    TR_TRY(tr_registry_read(&tr_source_formats, job->data.train, &entry, &options));
    tr_status status = table ? read_table(job, options, out) : read_memory(job, options, out);
    tr_entry_release(entry, options);
    return status;
}

void tr_job_columns_release(struct tr_job_columns *columns)
{
    tr_free(columns->fill);
    tr_categories_release(&columns->categories);
    for (int32_t i = 0; i < columns->labels.count; i++) tr_free(columns->labels.item[i]);
    tr_free(columns->labels.item);
    *columns = (struct tr_job_columns){0};
}

tr_status tr_job_columns_find(const struct tr_job_columns *columns, int32_t column, const char *name,
                              float *value)
{
    const struct tr_class_names *names = &columns->categories.names[column];
    *value = tr_category_find(&columns->categories, column, name, strlen(name));
    if (*value >= 0 || !columns->unknown_stops) return TR_OK;
    const char *nearest = tr_text_nearest(name, (const char *const *)names->name, names->count);
    return tr_fail(TR_EINVAL,
                   "value %" PRId32 ": \"%.60s\" is none of the %" PRId32 " names of the training data%s%s%s",
                   column + 1, name, names->count, nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                   nearest ? "\"?" : "");
}

tr_status tr_job_columns_fill(const struct tr_job *job, const struct tr_job_columns *columns, int64_t count,
                              float *values)
{
    const int64_t floats = columns->count;
    for (int64_t i = 0; i < count * floats; i++) {
        if (!isnan(values[i])) continue;
        if (!columns->fill)
            return tr_fail(TR_EINVAL,
                           "example %" PRId64 ": value %" PRId64 " of %" PRId64
                           " is missing, and has no replacement: the network of \"%s\" was not trained "
                           "on a table with missing: mean or constant; give a number",
                           i / floats + 1, i % floats + 1, floats, job->file.name);
        values[i] = columns->fill[i % floats];
    }
    return TR_OK;
}
