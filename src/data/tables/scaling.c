#include "data/tables/scaling.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "data/tables/csv_fields.h"
#include "data/state.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

tr_status tr_scaling_create(int32_t count, struct tr_scaling *out)
{
    size_t room = (size_t)count + 1;
    *out = (struct tr_scaling){
        .count = count,
        .mean = tr_alloc_zero(room, sizeof *out->mean),
        .deviation = tr_alloc(room, sizeof *out->deviation),
    };
    if (!out->mean || !out->deviation) {
        tr_scaling_release(out);
        return TR_ENOMEM;
    }
    for (int32_t i = 0; i < count; i++) out->deviation[i] = 1;
    return TR_OK;
}

void tr_scaling_release(struct tr_scaling *scaling)
{
    tr_free(scaling->mean);
    tr_free(scaling->deviation);
    tr_free(scaling->fill);
    tr_categories_release(&scaling->categories);
    *scaling = (struct tr_scaling){0};
}

tr_status tr_scaling_add_fill(struct tr_scaling *scaling)
{
    scaling->fill = tr_alloc_zero((size_t)scaling->count + 1, sizeof *scaling->fill);
    return scaling->fill ? TR_OK : TR_ENOMEM;
}

/* Takes the next number of a line, up to a blank or the end. */
static const char *take_number(struct tr_csv_field *rest, double *number)
{
    const char *blank = memchr(rest->at, ' ', rest->length);
    struct tr_csv_field field = {rest->at, blank ? (size_t)(blank - rest->at) : rest->length};
    *rest = blank ? (struct tr_csv_field){blank + 1, rest->length - field.length - 1}
                  : (struct tr_csv_field){rest->at + rest->length, 0};
    return tr_csv_number(field, number);
}

/* Reads the third number of a line; all lines have one, or none has. */
static tr_status read_fill(struct tr_csv_field rest, int64_t i, struct tr_scaling *out)
{
    if (i == 0 && rest.length > 0) TR_TRY(tr_scaling_add_fill(out));
    if (!out->fill && rest.length == 0) return TR_OK;
    if (out->fill && !take_number(&rest, &out->fill[i]) && rest.length == 0) return TR_OK;
    return tr_fail(TR_EFORMAT,
                   "scaling.txt:%" PRId64
                   ": has no number to fill in, or more than one; take the file that was "
                   "saved with the model",
                   i + 2);
}

static tr_status read_lines(struct tr_state_reader *reader, struct tr_scaling *out)
{
    for (int64_t i = 0; i < out->count; i++) {
        const char *line;
        size_t length;
        TR_TRY(tr_state_next(reader, &line, &length));
        struct tr_csv_field rest = {line, length};
        if (take_number(&rest, &out->mean[i]) || take_number(&rest, &out->deviation[i]) ||
            out->deviation[i] <= 0)
            return tr_fail(TR_EFORMAT,
                           "scaling.txt:%" PRId64
                           ": is not a mean and a deviation above 0; take the file that was saved with the "
                           "model",
                           i + 2);
        TR_TRY(read_fill(rest, i, out));
    }
    return tr_state_end(reader);
}

tr_status tr_scaling_read(const char *state, struct tr_scaling *out, int32_t *classes)
{
    struct tr_state_reader reader;
    *out = (struct tr_scaling){0};
    TR_TRY(tr_state_begin(state, "scaling", &reader));
    if (reader.lines > INT32_MAX - 1)
        return tr_fail(TR_EFORMAT, "scaling.txt:1: %" PRId64 " columns are too many", reader.lines);
    TR_TRY(tr_scaling_create((int32_t)reader.lines, out));
    tr_status status = read_lines(&reader, out);
    if (status == TR_OK) status = tr_categories_read(state, &out->categories);
    if (status == TR_OK && out->categories.columns > 0 && tr_categories_width(&out->categories) != out->count)
        status = tr_fail(TR_EFORMAT,
                         "scaling.txt is of %" PRId32 " numbers, its categories make %" PRId64
                         "; take the file that was saved with the model",
                         out->count, tr_categories_width(&out->categories));
    if (status != TR_OK) tr_scaling_release(out);
    *classes = reader.classes;
    return status;
}

tr_status tr_scaling_write(const struct tr_scaling *scaling, int32_t classes, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    char mean[TR_TEXT_NUMBER_SIZE], deviation[TR_TEXT_NUMBER_SIZE], fill[TR_TEXT_NUMBER_SIZE];
    tr_state_add_head(&text, "scaling", classes, scaling->count);
    for (int32_t i = 0; i < scaling->count; i++) {
        tr_text_addf(&text, "%s %s", tr_text_from_double(scaling->mean[i], mean),
                     tr_text_from_double(scaling->deviation[i], deviation));
        if (scaling->fill) tr_text_addf(&text, " %s", tr_text_from_double(scaling->fill[i], fill));
        tr_text_add(&text, "\n");
    }
    return tr_text_finish(&text, out);
}

bool tr_scaling_is_plain(const struct tr_scaling *scaling)
{
    if (scaling->categories.columns > 0) return false;
    for (int32_t i = 0; i < scaling->count; i++)
        if (scaling->mean[i] != 0 || scaling->deviation[i] != 1) return false;
    return true;
}

void tr_scaling_keep_names(struct tr_scaling *scaling)
{
    const struct tr_categories *categories = &scaling->categories;
    int32_t i = 0;
    for (int32_t c = 0; c < categories->columns; c++) {
        int32_t end = i + tr_category_width(categories, c);
        for (; categories->names[c].count > 0 && i < end; i++) {
            scaling->mean[i] = 0;
            scaling->deviation[i] = 1;
        }
        i = end;
    }
}

void tr_scaling_apply(const struct tr_scaling *scaling, int64_t rows, const float *from, float *to)
{
    const struct tr_categories *categories = &scaling->categories;
    for (int64_t row = 0; row < rows; row++, to += scaling->count) {
        const float *whole = from;
        if (categories->columns > 0) {
            tr_categories_expand(categories, from, to);
            whole = to;
        }
        for (int32_t i = 0; i < scaling->count; i++)
            to[i] = (float)(((double)whole[i] - scaling->mean[i]) / scaling->deviation[i]);
        from += tr_scaling_columns(scaling);
    }
}

/* ---- measuring ---- */

/* Adds a function of each row to sums of columns. */
typedef void (*adder)(struct tr_scaling *scaling, const float *row, double *sum, int64_t *present);

static void add_present(struct tr_scaling *scaling, const float *row, double *sum, int64_t *present)
{
    for (int32_t i = 0; i < scaling->count; i++) {
        if (isnan(row[i])) continue;
        sum[i] += (double)row[i];
        present[i]++;
    }
}

static void add_square(struct tr_scaling *scaling, const float *row, double *sum, int64_t *present)
{
    (void)present;
    for (int32_t i = 0; i < scaling->count; i++) {
        double difference = (double)row[i] - scaling->mean[i];
        sum[i] += difference * difference;
    }
}

struct sums {
    float *row;
    double *sum;      /* [count] */
    int64_t *present; /* [count] numbers that are not NaN */
};

static void release_sums(struct sums *sums)
{
    tr_free(sums->row);
    tr_free(sums->sum);
    tr_free(sums->present);
}

static tr_status add_rows(struct tr_scaling *scaling, int64_t rows, tr_scaling_row row, void *user, adder add,
                          struct sums *sums)
{
    size_t count = (size_t)scaling->count + 1;
    if (!sums->row) {
        sums->row = tr_alloc(count, sizeof *sums->row);
        sums->sum = tr_alloc(count, sizeof *sums->sum);
        sums->present = tr_alloc(count, sizeof *sums->present);
    }
    if (!sums->row || !sums->sum || !sums->present) return TR_ENOMEM;
    memset(sums->sum, 0, count * sizeof *sums->sum);
    memset(sums->present, 0, count * sizeof *sums->present);
    for (int64_t index = 0; index < rows; index++) {
        TR_TRY(row(user, index, sums->row));
        add(scaling, sums->row, sums->sum, sums->present);
    }
    return TR_OK;
}

tr_status tr_scaling_measure_present(struct tr_scaling *scaling, int64_t rows, tr_scaling_row row, void *user,
                                     const char *name)
{
    struct sums sums = {0};
    TR_TRY(tr_scaling_add_fill(scaling));
    tr_status status = add_rows(scaling, rows, row, user, add_present, &sums);
    for (int32_t i = 0; status == TR_OK && i < scaling->count; i++) {
        if (sums.present[i] == 0)
            status = tr_fail(TR_EFORMAT,
                             "%s: feature %" PRId32
                             " (counted from 0, without labels) has no value in any row, so "
                             "no mean; leave its column out",
                             name, i);
        else
            scaling->fill[i] = sums.sum[i] / (double)sums.present[i];
    }
    release_sums(&sums);
    return status;
}

tr_status tr_scaling_measure(struct tr_scaling *scaling, int64_t rows, tr_scaling_row row, void *user)
{
    struct sums sums = {0};
    tr_status status = add_rows(scaling, rows, row, user, add_present, &sums);
    for (int32_t i = 0; status == TR_OK && i < scaling->count; i++)
        scaling->mean[i] = sums.sum[i] / (double)rows;
    if (status == TR_OK) status = add_rows(scaling, rows, row, user, add_square, &sums);
    for (int32_t i = 0; status == TR_OK && i < scaling->count; i++) {
        double deviation = sqrt(sums.sum[i] / (double)rows);
        scaling->deviation[i] = deviation > 0 && deviation <= DBL_MAX ? deviation : 1;
    }
    release_sums(&sums);
    return status;
}
