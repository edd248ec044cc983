/* Windows over time series.
 *
 * The rows of a series are consecutive, in the order of time; a series ends where the column `series` has
 * another name. Of the n rows of each, a part [from, until) has rows n * from to n * until - 1, both
 * bounds rounded, so that adjacent parts share no row. Example k of a series is the window that begins at
 * row k * stride of its part; its labels are the targets `horizon` rows after the last row of the window,
 * or of all rows up to there. Windows and labels lie within one series and one part.
 *
 * Rows are kept once, as numbers for the network; examples are places in them.
 */
#include "data/tables/series.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/log.h"
#include "data/tables/csv_choices.h"
#include "data/tables/csv_table.h"
#include "data/tables/scaling.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define NUMBERS_MOST (1 << 24) /* of an example */

struct series_options {
    char *path, *series, *time;
    int separator, header;
    struct tr_string_list inputs, targets, skip_columns;
    int64_t window, horizon, stride;
    bool every_step;
    struct tr_float_list part;
    int missing; /* enum tr_missing */
    double missing_value;
    bool standardize;
};

#define SKIPS {.name = "skip", .value = TR_MISSING_SKIP, .help = "leave windows with a gap out"},
static const struct tr_choice gaps[] = {TR_MISSING_CHOICES("column", SKIPS), {.name = NULL}};

#define FIELD(name) .offset = offsetof(struct series_options, name)
static const struct tr_option series_options[] = {
    {.key = "path",
     .type = TR_OPTION_STRING,
     FIELD(path),
     .fallback = NULL,
     .help = "file of lines of numbers, a row each, in the order of time; plain or gzip"},
    {.key = "window",
     .type = TR_OPTION_INT64,
     FIELD(window),
     .fallback = NULL,
     .least = 1,
     .most = NUMBERS_MOST,
     .help = "rows of an example, a sequence of vectors"},
    {.key = "horizon",
     .type = TR_OPTION_INT64,
     FIELD(horizon),
     .fallback = "1",
     .least = 1,
     .most = NUMBERS_MOST,
     .help = "rows from the last one of the window to the one that is predicted"},
    {.key = "stride",
     .type = TR_OPTION_INT64,
     FIELD(stride),
     .fallback = "1",
     .least = 1,
     .most = TR_OPTION_WHOLE,
     .help = "rows from the beginning of one window to that of the next one"},
    {.key = "every_step",
     .type = TR_OPTION_BOOL,
     FIELD(every_step),
     .fallback = "false",
     .help = "predict the targets of every row up to the horizon, the next row first, not only of the row "
             "at the horizon"},
    {.key = "inputs",
     .type = TR_OPTION_STRING_LIST,
     FIELD(inputs),
     .fallback = "",
     .help = "columns of the windows, by name or number from 0; default: all but `series`, `time` and "
             "`skip_columns`"},
    {.key = "targets",
     .type = TR_OPTION_STRING_LIST,
     FIELD(targets),
     .fallback = "",
     .help = "columns to predict, likewise, which may be inputs, too; default: all inputs"},
    {.key = "series",
     .type = TR_OPTION_STRING,
     FIELD(series),
     .fallback = "",
     .help = "column with the name of each row's series; the rows of a series are contiguous. Default: one "
             "series"},
    {.key = "time",
     .type = TR_OPTION_STRING,
     FIELD(time),
     .fallback = "",
     .help = "column that must ascend within a series: numbers, or texts such as 2024-01-31, compared by "
             "their bytes"},
    {.key = "part",
     .type = TR_OPTION_FLOAT_LIST,
     FIELD(part),
     .fallback = "0, 1",
     .least = 0,
     .most = 1,
     .help = "part of each series, by time: [0, 0.8] for training and [0.8, 1] for validation have no row "
             "in common"},
    TR_CSV_OPTION_SKIP_COLUMNS(struct series_options),
    TR_CSV_OPTION_SEPARATOR(struct series_options),
    TR_CSV_OPTION_HEADER(struct series_options),
    {.key = "missing",
     .type = TR_OPTION_CHOICE,
     FIELD(missing),
     .fallback = "stop",
     .choices = gaps,
     .help = "replacement of a missing number of a window (empty, ?, NA, N/A, NaN, null or None)"},
    TR_OPTION_MISSING_VALUE(struct series_options),
    {.key = "standardize",
     .type = TR_OPTION_BOOL,
     FIELD(standardize),
     .fallback = "false",
     .help = "shift and scale each input to mean 0 and deviation 1 over the rows of the training data; "
             "targets stay"},
};

struct series_source {
    tr_source base;
    int32_t inputs, targets; /* columns */
    int64_t window, horizon;
    bool every_step;
    int64_t rows;
    float *input;              /* [rows][inputs] */
    float *target;             /* [rows][targets] */
    int64_t *begin;            /* [count] first row of each window */
    struct tr_scaling scaling; /* of the numbers of an example: that of the inputs, `window` times */
};

static tr_status series_read(const tr_source *base, int64_t index, void *features, int64_t *length,
                             void *label)
{
    const struct series_source *source = (const struct series_source *)base;
    int64_t first = source->begin[index], last = first + source->window - 1;
    *length = base->info.floats;
    if (features)
        memcpy(features, source->input + first * source->inputs, (size_t)base->info.floats * sizeof(float));
    if (!label) return TR_OK;
    int64_t row = source->every_step ? last + 1 : last + source->horizon;
    memcpy(label, source->target + row * source->targets, (size_t)base->info.values * sizeof(float));
    return TR_OK;
}

static tr_status series_digest(const tr_source *base, tr_sha256 *hash)
{
    const struct series_source *source = (const struct series_source *)base;
    tr_sha256_add_number(hash, source->window);
    tr_sha256_add_number(hash, source->horizon);
    tr_sha256_add_number(hash, source->every_step);
    tr_sha256_add_number(hash, source->inputs);
    tr_sha256_add(hash, source->input, (size_t)(source->rows * source->inputs) * sizeof(float));
    tr_sha256_add(hash, source->target, (size_t)(source->rows * source->targets) * sizeof(float));
    for (int64_t i = 0; i < base->info.count; i++) tr_sha256_add_number(hash, source->begin[i]);
    return TR_OK;
}

static tr_status series_state(const tr_source *base, char **out)
{
    return tr_scaling_write(&((const struct series_source *)base)->scaling, 0, out);
}

static void series_destroy(tr_source *base)
{
    struct series_source *source = (struct series_source *)base;
    tr_free(source->input);
    tr_free(source->target);
    tr_free(source->begin);
    tr_scaling_release(&source->scaling);
    tr_free(source);
}

static const struct tr_source_class series_class = {
    .name = "series",
    .version = TR_SOURCE_VERSION,
    .read = series_read,
    .digest = series_digest,
    .state_name = "scaling.txt",
    .state = series_state,
    .destroy = series_destroy,
};

/* ---- reading the table ---- */

/* State while the table is read. */
struct reading {
    const struct series_options *options;
    struct series_source *source;
    struct tr_csv_options csv; /* lists are owned, their texts borrowed */
    struct tr_csv_table table;
    int32_t *input, *target; /* columns of the table */
    int32_t series, time;    /* likewise; -1: there is none */
    int64_t room;            /* of rows */
    int64_t *first;          /* [series_count + 1] first rows of series */
    int64_t series_count, series_room;
    char *name, *then; /* the series and time of the last row; NULL before the first */
    /* Rows of the part that windows are taken from, for means and deviations. */
    int64_t *part_row, part_rows;
};

static void end_reading(struct reading *reading)
{
    tr_free(reading->csv.skip_columns.item);
    tr_csv_table_release(&reading->table);
    tr_free(reading->input);
    tr_free(reading->target);
    tr_free(reading->first);
    tr_free(reading->name);
    tr_free(reading->then);
    tr_free(reading->part_row);
}

/* Leaves columns without numbers out of the table. */
static tr_status describe_table(struct reading *reading)
{
    const struct series_options *options = reading->options;
    const struct tr_string_list *given = &options->skip_columns;
    struct tr_string_list *skipped = &reading->csv.skip_columns;
    skipped->item = tr_alloc_zero((size_t)given->count + 2, sizeof *skipped->item);
    if (!skipped->item) return TR_ENOMEM;
    for (; skipped->count < given->count; skipped->count++)
        skipped->item[skipped->count] = given->item[skipped->count];
    if (options->series) skipped->item[skipped->count++] = options->series;
    if (options->time) skipped->item[skipped->count++] = options->time;
    reading->csv.path = options->path;
    reading->csv.separator = options->separator;
    reading->csv.header = options->header;
    reading->csv.label = TR_CSV_NONE;
    reading->csv.missing = options->missing;
    return TR_OK;
}

/* The columns of a list; where it is empty, those of `others` [count]. */
static tr_status find_columns(const struct tr_csv_table *table, const char *what,
                              const struct tr_string_list *list, const int32_t *others, int32_t other_count,
                              int32_t **columns, int32_t *count)
{
    *count = list->count > 0 ? list->count : other_count;
    *columns = tr_alloc((size_t)*count + 1, sizeof **columns);
    if (!*columns) return TR_ENOMEM;
    for (int32_t i = 0; i < *count; i++) {
        if (list->count == 0) {
            (*columns)[i] = others[i];
            continue;
        }
        TR_TRY(tr_csv_find_column(table, what, list->item[i], &(*columns)[i]));
        if (table->is_skipped[(*columns)[i]])
            return tr_fail(TR_EINVAL,
                           "%s: column \"%s\" is among the %ss, and series, time or left out; name columns "
                           "of numbers",
                           table->path, list->item[i], what);
        for (int32_t k = 0; k < i; k++)
            if ((*columns)[k] == (*columns)[i])
                return tr_fail(TR_EINVAL, "%s: column \"%s\" is named twice among the %ss", table->path,
                               list->item[i], what);
    }
    return TR_OK;
}

static tr_status settle_columns(struct reading *reading)
{
    const struct series_options *options = reading->options;
    const struct tr_csv_table *table = &reading->table;
    struct series_source *source = reading->source;
    int32_t *all = tr_alloc((size_t)table->columns + 1, sizeof *all), features = 0;
    if (!all) return TR_ENOMEM;
    for (int32_t i = 0; i < table->columns; i++)
        if (!table->is_skipped[i]) all[features++] = i;
    tr_status status =
        find_columns(table, "input", &options->inputs, all, features, &reading->input, &source->inputs);
    if (status == TR_OK)
        status = find_columns(table, "target", &options->targets, reading->input, source->inputs,
                              &reading->target, &source->targets);
    tr_free(all);
    reading->series = reading->time = -1;
    if (status == TR_OK && options->series)
        status = tr_csv_find_column(table, "series", options->series, &reading->series);
    if (status == TR_OK && options->time)
        status = tr_csv_find_column(table, "time", options->time, &reading->time);
    return status;
}

static bool is_text(const char *text, struct tr_csv_field field)
{
    return strlen(text) == field.length && memcmp(text, field.at, field.length) == 0;
}

static tr_status keep_text(char **text, struct tr_csv_field field)
{
    tr_free(*text);
    *text = tr_format("%.*s", (int)field.length, field.at);
    return *text ? TR_OK : TR_ENOMEM;
}

/* A series ends where a row has another name; within a series time must increase. */
static tr_status follow(struct reading *reading, const struct tr_lines *lines)
{
    const struct tr_csv_table *table = &reading->table;
    bool begins = reading->series_count == 0;
    if (reading->series >= 0) {
        struct tr_csv_field field = table->fields[reading->series];
        if (tr_csv_is_missing(field))
            return tr_lines_fail(lines, field.at, "the name of the series is missing; give one");
        begins = begins || !is_text(reading->name, field);
        if (begins) TR_TRY(keep_text(&reading->name, field));
    }
    if (begins) {
        if (reading->series_count + 1 >= reading->series_room) {
            int64_t room = 2 * reading->series_room + 16;
            int64_t *grown = tr_realloc(reading->first, (size_t)room, sizeof *grown);
            if (!grown) return TR_ENOMEM;
            reading->first = grown;
            reading->series_room = room;
        }
        reading->first[reading->series_count++] = reading->source->rows;
    }
    if (reading->time < 0) return TR_OK;
    struct tr_csv_field field = table->fields[reading->time];
    if (!begins) {
        double now, then;
        struct tr_csv_field before = {reading->then, strlen(reading->then)};
        bool numbers = !tr_csv_number(field, &now) && !tr_csv_number(before, &then);
        size_t shorter = field.length < before.length ? field.length : before.length;
        int order = memcmp(before.at, field.at, shorter);
        bool ascends = numbers ? then < now : order < 0 || (order == 0 && before.length < field.length);
        if (!ascends)
            return tr_lines_fail(
                lines, field.at,
                "time \"%.*s\" does not come after \"%.40s\" of the row before; sort the rows of each "
                "series by time",
                (int)(field.length < 40 ? field.length : 40), field.at, reading->then);
    }
    return keep_text(&reading->then, field);
}

static tr_status make_room(struct reading *reading)
{
    struct series_source *source = reading->source;
    if (source->rows < reading->room) return TR_OK;
    int64_t room = 2 * reading->room + 1024;
    float *input = tr_realloc(source->input, (size_t)(room * source->inputs), sizeof *input);
    if (input) source->input = input;
    float *target =
        input ? tr_realloc(source->target, (size_t)(room * source->targets), sizeof *target) : NULL;
    if (target) source->target = target;
    if (!input || !target) return TR_ENOMEM;
    reading->room = room;
    return TR_OK;
}

static tr_status read_rows(struct reading *reading)
{
    struct series_source *source = reading->source;
    struct tr_lines lines = tr_csv_rows(&reading->table);
    while (tr_csv_next(&lines)) {
        TR_TRY(tr_csv_read(&reading->table, &lines));
        TR_TRY(follow(reading, &lines));
        TR_TRY(make_room(reading));
        float *input = source->input + source->rows * source->inputs,
              *target = source->target + source->rows * source->targets;
        for (int32_t i = 0; i < source->inputs; i++) input[i] = (float)reading->table.row[reading->input[i]];
        for (int32_t i = 0; i < source->targets; i++)
            target[i] = (float)reading->table.row[reading->target[i]];
        source->rows++;
    }
    if (source->rows == 0)
        return tr_fail(TR_EFORMAT, "%s: no row after the first line, which has the names of the columns",
                       reading->table.path);
    reading->first[reading->series_count] = source->rows;
    return TR_OK;
}

/* ---- windows ---- */

/* The rows of the part within a series. */
static void part_of(const struct reading *reading, int64_t series, int64_t *begin, int64_t *end)
{
    int64_t first = reading->first[series], rows = reading->first[series + 1] - first;
    const float *part = reading->options->part.item;
    *begin = first + (int64_t)floor((double)rows * (double)part[0] + 0.5);
    *end = first + (int64_t)floor((double)rows * (double)part[1] + 0.5);
}

static tr_status list_part(struct reading *reading)
{
    reading->part_row = tr_alloc((size_t)reading->source->rows, sizeof *reading->part_row);
    if (!reading->part_row) return TR_ENOMEM;
    for (int64_t s = 0; s < reading->series_count; s++) {
        int64_t begin, end;
        part_of(reading, s, &begin, &end);
        for (int64_t row = begin; row < end; row++) reading->part_row[reading->part_rows++] = row;
    }
    return TR_OK;
}

static bool has_gap(const float *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (isnan(numbers[i])) return true;
    return false;
}

/* Whether the window that begins at this row has a gap that no value fills. */
static bool is_left_out(const struct series_source *source, int64_t begin)
{
    int64_t target = begin + source->window - 1 + (source->every_step ? 1 : source->horizon),
            targets = source->every_step ? source->horizon : 1;
    return has_gap(source->input + begin * source->inputs, source->window * source->inputs) ||
           has_gap(source->target + target * source->targets, targets * source->targets);
}

static tr_status list_windows(struct reading *reading)
{
    const struct series_options *options = reading->options;
    struct series_source *source = reading->source;
    int64_t longest = 0, left_out = 0, room = 0, count = 0;
    for (int64_t s = 0; s < reading->series_count; s++) {
        int64_t begin, end;
        part_of(reading, s, &begin, &end);
        if (end - begin > longest) longest = end - begin;
        int64_t fit = end - begin - options->window - options->horizon;
        if (fit >= 0) room += fit / options->stride + 1;
    }
    if (room == 0)
        return tr_fail(TR_EFORMAT,
                       "%s: a window of %" PRId64 " rows and a horizon of %" PRId64
                       " fit into no series; the longest has %" PRId64 " rows in the part [%g, %g]",
                       reading->table.path, options->window, options->horizon, longest,
                       (double)options->part.item[0], (double)options->part.item[1]);
    source->begin = tr_alloc((size_t)room, sizeof *source->begin);
    if (!source->begin) return TR_ENOMEM;
    for (int64_t s = 0; s < reading->series_count; s++) {
        int64_t begin, end;
        part_of(reading, s, &begin, &end);
        for (; begin + options->window + options->horizon <= end; begin += options->stride) {
            if (is_left_out(source, begin))
                left_out++;
            else
                source->begin[count++] = begin;
        }
    }
    if (count == 0)
        return tr_fail(TR_EFORMAT, "%s: every window misses a number; set missing: mean or constant",
                       reading->table.path);
    if (left_out > 0)
        tr_log_line(TR_LOG_INFO, "%s: left out %" PRId64 " of %" PRId64 " windows, which miss numbers",
                    reading->table.path, left_out, room);
    source->base.info.count = count;
    source->base.info.skipped = left_out;
    return TR_OK;
}

/* ---- scaling ---- */

static tr_status row_of(void *user, int64_t index, float *to)
{
    const struct reading *reading = user;
    const struct series_source *source = reading->source;
    memcpy(to, source->input + reading->part_row[index] * source->inputs,
           (size_t)source->inputs * sizeof *to);
    return TR_OK;
}

/* The scaling of the inputs, from the training data or measured here. */
static tr_status make_scaling(struct reading *reading, const char *state, struct tr_scaling *own)
{
    const struct series_options *options = reading->options;
    struct series_source *source = reading->source;
    int32_t classes;
    if (!state) {
        TR_TRY(tr_scaling_create(source->inputs, own));
        if (options->missing != TR_MISSING_MEAN) return TR_OK;
        return tr_scaling_measure_present(own, reading->part_rows, row_of, reading, reading->table.path);
    }
    TR_TRY(tr_scaling_read(state, own, &classes));
    if (own->count != source->base.info.floats)
        return tr_fail(TR_EMISMATCH,
                       "%s has windows of %" PRId32 " numbers, the model was trained with %" PRId32
                       "; give the same window and inputs",
                       reading->table.path, source->base.info.floats, own->count);
    if (options->missing == TR_MISSING_MEAN && !own->fill)
        return tr_fail(
            TR_EMISMATCH,
            "%s: missing: mean takes the means of the training data, which were read without; set it for "
            "data.train too",
            reading->table.path);
    own->count = source->inputs; /* that of the first row; all rows of a window have the same */
    return TR_OK;
}

static void fill_gaps(const struct reading *reading, const struct tr_scaling *own)
{
    const struct series_options *options = reading->options;
    struct series_source *source = reading->source;
    bool mean = options->missing == TR_MISSING_MEAN;
    if (!mean && options->missing != TR_MISSING_CONSTANT) return;
    for (int64_t i = 0; i < source->rows * source->inputs; i++)
        if (isnan(source->input[i]))
            source->input[i] = (float)(mean ? own->fill[i % source->inputs] : options->missing_value);
}

/* Repeats the scaling for each row of a window. */
static tr_status repeat_scaling(struct series_source *source, const struct tr_scaling *own)
{
    TR_TRY(tr_scaling_create(source->base.info.floats, &source->scaling));
    if (own->fill) TR_TRY(tr_scaling_add_fill(&source->scaling));
    for (int32_t i = 0; i < source->scaling.count; i++) {
        source->scaling.mean[i] = own->mean[i % source->inputs];
        source->scaling.deviation[i] = own->deviation[i % source->inputs];
        if (own->fill) source->scaling.fill[i] = own->fill[i % source->inputs];
    }
    return TR_OK;
}

/* Fills gaps, measures the rows of the part, then scales all rows. */
static tr_status prepare(struct reading *reading, const char *state)
{
    struct series_source *source = reading->source;
    struct tr_scaling own = {0};
    tr_status status = make_scaling(reading, state, &own);
    if (status == TR_OK) {
        fill_gaps(reading, &own);
        status = list_windows(reading);
    }
    if (status == TR_OK && !state && reading->options->standardize)
        status = tr_scaling_measure(&own, reading->part_rows, row_of, reading);
    if (status == TR_OK) status = repeat_scaling(source, &own);
    if (status == TR_OK) tr_scaling_apply(&own, source->rows, source->input, source->input);
    tr_scaling_release(&own);
    return status;
}

/* ---- opening ---- */

static tr_status series_check(const void *options_)
{
    const struct series_options *options = options_;
    if (options->part.count == 2 && options->part.item[0] < options->part.item[1]) return TR_OK;
    return tr_fail(TR_EINVAL, "part: two numbers are wanted, the beginning and the end, as [0, 0.8]");
}

static tr_status fill(struct reading *reading, const char *path, const char *state)
{
    const struct series_options *options = reading->options;
    struct series_source *source = reading->source;
    struct tr_source_info *info = &source->base.info;
    TR_TRY(series_check(options));
    TR_TRY(describe_table(reading));
    TR_TRY(tr_csv_table_open(path, &reading->csv, &reading->table));
    TR_TRY(settle_columns(reading));
    source->window = options->window;
    source->horizon = options->horizon;
    source->every_step = options->every_step;
    int64_t floats = options->window * source->inputs,
            values = (options->every_step ? options->horizon : 1) * source->targets;
    if (floats > NUMBERS_MOST || values > NUMBERS_MOST)
        return tr_fail(TR_EINVAL,
                       "%s: an example has %" PRId64 " numbers and %" PRId64 " targets; at most %d are read",
                       path, floats, values, NUMBERS_MOST);
    *info = (struct tr_source_info){.features = TR_FEATURE_FLOATS,
                                    .labels = TR_LABEL_VALUES,
                                    .floats = (int32_t)floats,
                                    .steps = (int32_t)options->window,
                                    .values = (int32_t)values};
    source->base.overlaps = options->stride < options->window + options->horizon;
    TR_TRY(read_rows(reading));
    TR_TRY(list_part(reading));
    return prepare(reading, state);
}

static tr_status series_open(const void *options, const char *directory, const char *state, tr_source **out)
{
    char *path = tr_source_path(directory, ((const struct series_options *)options)->path);
    struct series_source *source = tr_alloc_zero(1, sizeof *source);
    struct reading reading = {.options = options, .source = source};
    tr_status status = path && source ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) {
        source->base.class = &series_class;
        status = fill(&reading, path, state);
    }
    end_reading(&reading);
    tr_free(path);
    if (status == TR_OK)
        *out = &source->base;
    else if (source)
        series_destroy(&source->base);
    return status;
}

static tr_status series_files(const void *options, const char *directory, struct tr_source_files *files)
{
    return tr_source_files_add(files, directory, ((const struct series_options *)options)->path);
}

/* Never: windows share their rows, which copies of examples would not. */
static bool series_unpacks(const void *options, const struct tr_source_files *files)
{
    (void)options;
    (void)files;
    return false;
}

const struct tr_source_format tr_source_format_series = {
    .name = "series",
    .help =
        "windows over time series: rows of a table in the order of time, values some rows ahead as labels",
    .options = series_options,
    .option_count = TR_OPTION_COUNT(series_options),
    .options_size = sizeof(struct series_options),
    .open = series_open,
    .files = series_files,
    .unpacks = series_unpacks,
    .check = series_check,
};
