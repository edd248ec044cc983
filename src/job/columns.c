#include "job/columns.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/tables/csv.h"
#include "data/tables/csv_table.h"

#include <inttypes.h>
#include <math.h>

/* The options of the table; NULL: the training data are none. Returned, free with tr_entry_release(). */
static tr_status read_options(const struct tr_job *job, struct tr_csv_options **out)
{
    const struct tr_entry *entry;
    const tr_config *own;
    void *options;
    *out = NULL;
    if (!job->data.train || tr_registry_choose(&tr_source_formats, job->data.train, &entry, &own) != TR_OK ||
        entry != &tr_source_format_csv.entry)
        return TR_OK;
    TR_TRY(tr_registry_read(&tr_source_formats, job->data.train, &entry, &options));
    *out = options;
    return TR_OK;
}

static tr_status read_fill(const struct tr_job *job, const struct tr_csv_options *options,
                           struct tr_job_columns *out)
{
    int32_t floats = (int32_t)tr_shape_count(&job->stored), classes;
    struct tr_scaling scaling = {0};
    bool mean = options->missing == TR_CSV_MISSING_MEAN;
    if (!mean && options->missing != TR_CSV_MISSING_CONSTANT) return TR_OK;
    if (mean && job->state) TR_TRY(tr_scaling_read(job->state, &scaling, &classes));
    tr_status status = TR_OK;
    if (!mean || (scaling.fill && scaling.count == floats)) {
        out->fill = tr_alloc((size_t)floats, sizeof *out->fill);
        if (!out->fill) status = TR_ENOMEM;
    }
    for (int32_t i = 0; out->fill && i < floats; i++)
        out->fill[i] = (float)(mean ? scaling.fill[i] : options->missing_value);
    tr_scaling_release(&scaling);
    return status;
}

/* Columns may be given by number, which is no name for people. */
static tr_status read_labels(const struct tr_csv_options *options, struct tr_job_columns *out)
{
    const struct tr_string_list *given = &options->label_columns;
    if (given->count == 0) return TR_OK;
    for (int32_t i = 0; i < given->count; i++)
        if (given->item[i][0] >= '0' && given->item[i][0] <= '9') return TR_OK;
    out->labels.item = tr_alloc_zero((size_t)given->count, sizeof *out->labels.item);
    if (!out->labels.item) return TR_ENOMEM;
    for (; out->labels.count < given->count; out->labels.count++) {
        char *name = tr_strdup(given->item[out->labels.count]);
        if (!name) return TR_ENOMEM;
        out->labels.item[out->labels.count] = name;
    }
    return TR_OK;
}

tr_status tr_job_columns_read(const struct tr_job *job, struct tr_job_columns *out)
{
    struct tr_csv_options *options;
    *out = (struct tr_job_columns){0};
    TR_TRY(read_options(job, &options));
    if (!options) return TR_OK;
    tr_status status = read_fill(job, options, out);
    if (status == TR_OK) status = read_labels(options, out);
    tr_entry_release(&tr_source_format_csv.entry, options);
    return status;
}

void tr_job_columns_release(struct tr_job_columns *columns)
{
    tr_free(columns->fill);
    for (int32_t i = 0; i < columns->labels.count; i++) tr_free(columns->labels.item[i]);
    tr_free(columns->labels.item);
    *columns = (struct tr_job_columns){0};
}

tr_status tr_job_columns_fill(const struct tr_job *job, const struct tr_job_columns *columns, int64_t count,
                              float *values)
{
    int64_t floats = tr_shape_count(&job->stored);
    for (int64_t i = 0; i < count * floats; i++) {
        if (!isnan(values[i])) continue;
        if (!columns->fill)
            return tr_fail(TR_EINVAL,
                           "example %" PRId64 ": value %" PRId64 " of %" PRId64
                           " is missing, and nothing stands for it: the network of \"%s\" was not trained "
                           "on a table with missing: mean or constant; give a number",
                           i / floats + 1, i % floats + 1, floats, job->file.name);
        values[i] = columns->fill[i % floats];
    }
    return TR_OK;
}
