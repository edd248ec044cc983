/* Reading is in two passes over the text in memory: survey() settles columns and counts and checks every
 * line, load() fills the arrays. Both use tr_csv_read(), so they agree on which lines are good.
 */
#include "data/tables/csv.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/log.h"
#include "data/tables/csv_choices.h"
#include "data/tables/csv_table.h"
#include "data/tables/scaling.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

const struct tr_choice tr_csv_separators[] = {
    {.name = "auto", .value = 0, .help = "as in the first line"},
    {.name = "comma", .value = ','},
    {.name = "tab", .value = '\t'},
    {.name = "semicolon", .value = ';'},
    {.name = "blank", .value = ' ', .help = "any number of blanks"},
    {.name = NULL},
};
const struct tr_choice tr_csv_headers[] = {
    {.name = "auto", .value = TR_CSV_HEADER_AUTO, .help = "yes if a field of the first line is no number"},
    {.name = "yes", .value = TR_CSV_HEADER_YES},
    {.name = "no", .value = TR_CSV_HEADER_NO},
    {.name = NULL},
};
static const struct tr_choice label_uses[] = {
    {.name = "class", .value = TR_CSV_CLASS, .help = "an integer from 0, or a name if no row has a number"},
    {.name = "value", .value = TR_CSV_VALUE, .help = "one or more numbers to be predicted"},
    {.name = "none", .value = TR_CSV_NONE},
    {.name = "name",
     .value = TR_CSV_NAME,
     .help = "a name, even if it looks like a number; classes are numbered in the order of their names"},
    {.name = NULL},
};
static const struct tr_choice unknowns[] = {
    {.name = "zeros", .value = TR_CSV_UNKNOWN_ZEROS, .help = "none of the names: zeros for all of them"},
    {.name = "stop", .value = TR_CSV_UNKNOWN_STOP, .help = "error with line and column"},
    {.name = NULL},
};
static const struct tr_choice gaps[] = {TR_MISSING_CHOICES("column", TR_MISSING_SKIPS), {.name = NULL}};

#define FIELD(name) .offset = offsetof(struct tr_csv_options, name)
static const struct tr_option csv_options[] = {
    {.key = "path",
     .type = TR_OPTION_STRING,
     FIELD(path),
     .fallback = NULL,
     .help = "file of lines of numbers, and names of classes, plain or gzip"},
    {.key = "label",
     .type = TR_OPTION_CHOICE,
     FIELD(label),
     .fallback = "class",
     .choices = label_uses,
     .help = "content of the label columns"},
    {.key = "label_columns",
     .type = TR_OPTION_STRING_LIST,
     FIELD(label_columns),
     .fallback = "",
     .help = "columns that are labels, by name or number from 0; the others are features. Default: the last "
             "column; class labels take one column"},
    TR_CSV_OPTION_SKIP_COLUMNS(struct tr_csv_options),
    {.key = "categories",
     .type = TR_OPTION_STRING_LIST,
     FIELD(categories),
     .fallback = "",
     .help = "feature columns that hold names, by name or number from 0: each becomes as many numbers as the "
             "training data have names there, 1 for the row's own and 0 for all others"},
    {.key = "unknown",
     .type = TR_OPTION_CHOICE,
     FIELD(unknown),
     .fallback = "zeros",
     .choices = unknowns,
     .help = "for `categories`: a name that the training data do not have"},
    TR_OPTION_CLASSES(struct tr_csv_options, TR_CSV_CLASSES_MAX),
    {.key = "missing",
     .type = TR_OPTION_CHOICE,
     FIELD(missing),
     .fallback = "stop",
     .choices = gaps,
     .help = "replacement of a missing feature (empty, ?, NA, N/A, NaN, null or None)"},
    TR_OPTION_MISSING_VALUE(struct tr_csv_options),
    {.key = "standardize",
     .type = TR_OPTION_BOOL,
     FIELD(standardize),
     .fallback = "false",
     .help =
         "shift and scale each feature, but for `categories`, to mean 0 and deviation 1 over the training "
         "data"},
    TR_OPTIONS_BAD(struct tr_csv_options),
    /* Options that JSON does not have come last. */
    TR_CSV_OPTION_SEPARATOR(struct tr_csv_options),
    TR_CSV_OPTION_HEADER(struct tr_csv_options),
};
#define JSON_OPTIONS (TR_OPTION_COUNT(csv_options) - 2)

#define FLOATS_MOST (1 << 20)
#define LEFT_BEHIND ((size_t)8 << 20) /* bytes */

struct csv_source {
    tr_source base;
    int32_t columns; /* of features */
    float *features; /* [count][columns]: scaled numbers, and numbers that stand for names */
    int32_t *label;  /* [count], classes */
    float *values;   /* [count][values] */
    /* Holds these three where they may be larger than memory; and the bytes of it that were used since its
       pages were last released. */
    struct tr_spill spill;
    atomic_size_t looked_at;
    struct tr_scaling scaling;
    struct tr_class_names names; /* of classes, where labels are names */
};

/* Notes the use of a row: from time to time the pages of a spill are released. */
static void leave_behind(const struct csv_source *source)
{
    if (!source->spill.data) return;
    atomic_size_t *looked_at = (atomic_size_t *)&source->looked_at; /* not part of the source's value */
    const size_t row = (size_t)(source->columns + source->base.info.values + 1) * sizeof(float);
    if (atomic_fetch_add(looked_at, row) < LEFT_BEHIND) return;
    atomic_store(looked_at, 0);
    tr_spill_leave(&source->spill);
}

static tr_status csv_read(const tr_source *base, int64_t index, void *features, int64_t *length, void *label)
{
    const struct csv_source *source = (const struct csv_source *)base;
    const struct tr_source_info *info = &base->info;
    *length = info->floats;
    leave_behind(source);
    const float *row = source->features + index * source->columns;
    if (features && source->scaling.categories.columns > 0)
        tr_categories_expand(&source->scaling.categories, row, features);
    else if (features)
        memcpy(features, row, (size_t)info->floats * sizeof(float));
    if (label && source->label) *(int32_t *)label = source->label[index];
    if (label && source->values) {
        memcpy(label, source->values + index * info->values, (size_t)info->values * sizeof(float));
    }
    return TR_OK;
}

static void add_numbers(const struct csv_source *source, tr_sha256 *hash, const void *numbers, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += LEFT_BEHIND) {
        tr_sha256_add(hash, (const char *)numbers + at, bytes - at < LEFT_BEHIND ? bytes - at : LEFT_BEHIND);
        tr_spill_leave(&source->spill);
    }
}

static tr_status csv_digest(const tr_source *base, tr_sha256 *hash)
{
    const struct csv_source *source = (const struct csv_source *)base;
    size_t count = (size_t)base->info.count;
    add_numbers(source, hash, source->features, count * (size_t)source->columns * sizeof(float));
    if (source->scaling.categories.columns > 0) {
        struct tr_text text = TR_TEXT_INIT;
        tr_categories_write(&source->scaling.categories, &text);
        const bool failed = text.failed;
        if (!failed) tr_sha256_add(hash, text.bytes, text.length);
        tr_text_release(&text);
        if (failed) return TR_ENOMEM;
    }
    if (source->label) add_numbers(source, hash, source->label, count * sizeof *source->label);
    if (source->values)
        add_numbers(source, hash, source->values, count * (size_t)base->info.values * sizeof(float));
    return TR_OK;
}

static tr_status csv_state(const tr_source *base, char **out)
{
    const struct csv_source *source = (const struct csv_source *)base;
    struct tr_text text = TR_TEXT_INIT;
    char *columns;
    TR_TRY(tr_scaling_write(&source->scaling, base->info.classes, &columns));
    tr_text_add(&text, columns);
    tr_free(columns);
    tr_class_names_write(&source->names, &text);
    tr_categories_write(&source->scaling.categories, &text);
    return tr_text_finish(&text, out);
}

static void csv_destroy(tr_source *base)
{
    struct csv_source *source = (struct csv_source *)base;
    if (!source->spill.data) {
        tr_free(source->features);
        tr_free(source->label);
        tr_free(source->values);
    }
    tr_spill_release(&source->spill);
    tr_scaling_release(&source->scaling);
    tr_class_names_release(&source->names);
    tr_free(source);
}

static const struct tr_source_class csv_class = {
    .name = "csv",
    .version = TR_SOURCE_VERSION,
    .read = csv_read,
    .digest = csv_digest,
    .state_name = "scaling.txt",
    .state = csv_state,
    .destroy = csv_destroy,
};

static const struct tr_source_class json_class = {
    .name = "json",
    .version = TR_SOURCE_VERSION,
    .read = csv_read,
    .digest = csv_digest,
    .state_name = "scaling.txt",
    .state = csv_state,
    .destroy = csv_destroy,
};

/* ---- rows ---- */

/* Whether the current row, which is valid, is left out for its missing values. */
static bool is_left_out(const struct tr_csv_table *table)
{
    return table->gaps && table->options->missing == TR_MISSING_SKIP;
}

/* Counts up *left_out, rows left out for missing values, and *largest, the largest label; both begin with 0.
 */
static tr_status survey(struct tr_csv_table *table, struct tr_bad *bad, int64_t *left_out, int32_t *largest)
{
    struct tr_lines lines = tr_csv_rows(table);
    while (tr_csv_next(&lines)) {
        bad->records++;
        tr_status status = tr_csv_read(table, &lines);
        if (status != TR_OK) {
            TR_TRY(tr_bad_record(bad, status));
            continue;
        }
        if (is_left_out(table)) {
            ++*left_out;
            continue;
        }
        for (int32_t i = 0; i < table->columns; i++) {
            if (table->is_label[i] && table->row[i] > *largest)
                *largest = (int32_t)fmin(table->row[i], TR_CSV_CLASSES_MAX);
        }
    }
    if (bad->records == 0)
        return tr_fail(TR_EFORMAT,
                       "%s: no row after the first line, which has the names of the columns; add "
                       "rows, or set header: no if it is one",
                       table->path);
    TR_TRY(tr_bad_finish(bad, table->path));
    if (*left_out == 0) return TR_OK;
    if (*left_out == bad->records - bad->bad)
        return tr_fail(TR_EFORMAT, "%s: every row misses a value; set missing: mean or constant",
                       table->path);
    tr_log_line(TR_LOG_INFO, "%s: left out %" PRId64 " of %" PRId64 " rows, which miss values", table->path,
                *left_out, bad->records);
    return TR_OK;
}

static tr_status load(struct tr_csv_table *table, struct csv_source *source)
{
    int64_t example = 0;
    float *feature = source->features, *value = source->values;
    struct tr_lines lines = tr_csv_rows(table);
    while (tr_csv_next(&lines)) {
        const tr_status status = tr_csv_read(table, &lines);
        if (status == TR_ENOMEM) return status;
        if (status != TR_OK || is_left_out(table)) continue;
        leave_behind(source);
        for (int32_t i = 0; i < table->columns; i++) {
            if (table->is_skipped[i]) continue;
            if (!table->is_label[i]) {
                *feature++ = (float)table->row[i];
            } else if (source->label) {
                source->label[example] = (int32_t)table->row[i];
            } else {
                *value++ = (float)table->row[i];
            }
        }
        example++;
    }
    return TR_OK;
}

/* ---- what is missing ---- */

static tr_status row_of(void *user, int64_t index, float *to)
{
    const struct csv_source *source = user;
    leave_behind(source);
    const float *row = source->features + (size_t)index * (size_t)source->columns;
    if (source->scaling.categories.columns > 0)
        tr_categories_expand(&source->scaling.categories, row, to);
    else
        memcpy(to, row, (size_t)source->columns * sizeof *to);
    return TR_OK;
}

/* A change to the numbers of a row; `place` is that of each among the network's inputs. */
typedef void (*number_change)(const struct csv_source *source, float *number, int32_t place, const void *how);

static void change_numbers(struct csv_source *source, number_change change, const void *how)
{
    const struct tr_categories *categories = &source->scaling.categories;
    for (int64_t row = 0; row < source->base.info.count; row++) {
        float *features = source->features + row * source->columns;
        int32_t place = 0;
        leave_behind(source);
        for (int32_t i = 0; i < source->columns; i++) {
            bool names = categories->columns > 0 && categories->names[i].count > 0;
            if (!names) change(source, &features[i], place, how);
            place += categories->columns > 0 ? tr_category_width(categories, i) : 1;
        }
    }
}

static void fill_number(const struct csv_source *source, float *number, int32_t place, const void *how)
{
    const struct tr_csv_options *options = how;
    bool mean = options->missing == TR_MISSING_MEAN;
    if (isnan(*number)) *number = (float)(mean ? source->scaling.fill[place] : options->missing_value);
}

static void scale_number(const struct csv_source *source, float *number, int32_t place, const void *how)
{
    const struct tr_scaling *scaling = &source->scaling;
    (void)how;
    *number = (float)(((double)*number - scaling->mean[place]) / scaling->deviation[place]);
}

/* With `trained`, uses the means of the training data. */
static tr_status fill_gaps(const struct tr_csv_table *table, bool trained, struct csv_source *source)
{
    const struct tr_source_info *info = &source->base.info;
    const struct tr_csv_options *options = table->options;
    bool mean = options->missing == TR_MISSING_MEAN;
    if (mean && !trained)
        TR_TRY(tr_scaling_measure_present(&source->scaling, info->count, row_of, source, table->path));
    if (mean && !source->scaling.fill)
        return tr_fail(
            TR_EMISMATCH,
            "%s: missing: mean takes the means of the training data, which were read without; set it "
            "for data.train too",
            table->path);
    change_numbers(source, fill_number, options);
    return TR_OK;
}

/* ---- names of classes ---- */

/* Determines whether labels are names, and takes those that are known. */
static tr_status settle_names(struct tr_csv_table *table, const char *state)
{
    int label = table->options->label;
    if (label != TR_CSV_CLASS && label != TR_CSV_NAME) return TR_OK;
    if (state) TR_TRY(tr_class_names_read(state, &table->names));
    table->named = label == TR_CSV_NAME || table->names.count > 0;
    if (!table->named && !state) return tr_csv_has_names(table, &table->named);
    if (!table->named || !state || table->names.count > 0) return TR_OK;
    return tr_fail(
        TR_EMISMATCH,
        "%s: label: name takes the classes of the training data, whose labels were numbers; set it "
        "for data.train too",
        table->path);
}

/* Moves the names to the source. */
static tr_status take_names(struct tr_csv_table *table, struct csv_source *source)
{
    int32_t wanted = table->options->classes;
    struct tr_source_info *info = &source->base.info;
    table->collects = false;
    if (!table->named) return TR_OK;
    if (wanted > 0 && wanted != table->names.count)
        return tr_fail(TR_EFORMAT, "%s: there are %" PRId32 " classes by name, but classes is %" PRId32,
                       table->path, table->names.count, wanted);
    info->classes = table->names.count;
    info->class_names = (const char *const *)table->names.name;
    return TR_OK;
}

/* ---- scaling ---- */

static tr_status read_state(const char *state, const char *path, struct csv_source *source, int32_t *classes)
{
    TR_TRY(tr_scaling_read(state, &source->scaling, classes));
    int32_t trained = tr_scaling_columns(&source->scaling);
    if (trained == source->columns) return TR_OK;
    return tr_fail(TR_EMISMATCH,
                   "%s has %" PRId32 " features, the model was trained with %" PRId32
                   "; give a table with the same columns",
                   path, source->columns, trained);
}

/* ---- categories ---- */

/* Takes the names of the training data, which must have the same columns of names. */
static tr_status take_categories(struct tr_csv_table *table, const struct csv_source *source)
{
    const struct tr_categories *trained = &source->scaling.categories;
    for (int32_t f = 0; f < table->features; f++) {
        bool was = trained->columns > 0 && trained->names[f].count > 0,
             is = table->is_category && table->is_category[f];
        if (was != is)
            return tr_fail(TR_EMISMATCH,
                           "%s: feature %" PRId32
                           " (counted from 0, without labels) is %s, the model was trained "
                           "with %s there; give the same categories as for data.train",
                           table->path, f, is ? "of names" : "a number", was ? "names" : "numbers");
    }
    tr_categories_release(&table->categories);
    return tr_categories_copy(trained, &table->categories);
}

/* Moves the collected names to the source, and replaces them by their numbers in the data. */
static tr_status settle_categories(struct tr_csv_table *table, struct csv_source *source)
{
    struct tr_categories *categories = &table->categories;
    int64_t width = source->columns;
    for (int32_t f = 0; f < categories->columns; f++)
        if (table->is_category[f] && categories->names[f].count == 0)
            return tr_fail(TR_EFORMAT,
                           "%s: feature %" PRId32
                           " (counted from 0, without labels) has no name in any row; leave "
                           "its column out by skip_columns",
                           table->path, f);
    if (categories->columns > 0) width = tr_categories_width(categories);
    if (width > FLOATS_MOST)
        return tr_fail(TR_EFORMAT,
                       "%s: the names of its categories make %" PRId64 " numbers a row; at most %d can be",
                       table->path, width, FLOATS_MOST);
    TR_TRY(tr_scaling_create((int32_t)width, &source->scaling));
    return tr_categories_copy(categories, &source->scaling.categories);
}

/* ---- opening ---- */

/* Moves the data to a file in `directory`. */
static tr_status spill(struct csv_source *source, const char *directory)
{
    const struct tr_source_info *info = &source->base.info;
    size_t features = (size_t)info->count * (size_t)source->columns, values = 0, labels = 0, floats, bytes;
    if (info->labels == TR_LABEL_VALUES) values = (size_t)info->count * (size_t)info->values;
    if (info->labels == TR_LABEL_CLASS) labels = (size_t)info->count;
    if (__builtin_add_overflow(features, values + labels, &floats) ||
        __builtin_mul_overflow(floats, sizeof(float), &bytes))
        return TR_ENOMEM;
    TR_TRY(tr_spill_make(directory, bytes, &source->spill));
    source->base.spilled = true;
    source->features = (float *)(void *)source->spill.data;
    if (values > 0) source->values = source->features + features;
    if (labels > 0) source->label = (int32_t *)(void *)(source->features + features + values);
    return TR_OK;
}

static tr_status allocate(struct csv_source *source, const char *directory)
{
    const struct tr_source_info *info = &source->base.info;
    size_t count = (size_t)info->count, columns = (size_t)source->columns, values = (size_t)info->values;
    if (directory) return spill(source, directory);
    source->features = tr_alloc_aligned(count, columns * sizeof(float));
    if (info->labels == TR_LABEL_CLASS) source->label = tr_alloc(count, sizeof *source->label);
    if (info->labels == TR_LABEL_VALUES) source->values = tr_alloc(count, values * sizeof(float));
    bool labels = info->labels == TR_LABEL_NONE || source->label || source->values;
    return source->features && labels ? TR_OK : TR_ENOMEM;
}

static tr_status fill(struct tr_csv_table *table, const char *state, struct csv_source *source)
{
    const struct tr_csv_options *options = table->options;
    struct tr_source_info *info = &source->base.info;
    struct tr_bad bad = {.action = (enum tr_bad_action)options->on_bad_record, .most = options->max_bad};
    int32_t largest = 0;
    int64_t left_out = 0;
    info->features = TR_FEATURE_FLOATS;
    source->columns = table->features;
    table->collects = table->learned = !state;
    if (state) TR_TRY(read_state(state, table->path, source, &table->classes));
    if (state) TR_TRY(take_categories(table, source));
    if (options->classes > 0) table->classes = options->classes;

    TR_TRY(settle_names(table, state));
    TR_TRY(survey(table, &bad, &left_out, &largest));
    info->count = bad.records - bad.bad - left_out;
    info->skipped = bad.bad + left_out;
    info->labels = options->label == TR_CSV_NONE    ? TR_LABEL_NONE
                   : options->label == TR_CSV_VALUE ? TR_LABEL_VALUES
                                                    : TR_LABEL_CLASS;
    info->classes = info->labels != TR_LABEL_CLASS ? 0 : table->classes > 0 ? table->classes : largest + 1;
    info->values = info->labels == TR_LABEL_VALUES ? table->labels : 0;
    TR_TRY(take_names(table, source));
    if (!state) TR_TRY(settle_categories(table, source));
    info->floats = source->scaling.count;
    TR_TRY(allocate(source, options->spill));
    TR_TRY(load(table, source));
    TR_TRY(fill_gaps(table, state != NULL, source));
    if (!state && options->standardize)
        TR_TRY(tr_scaling_measure(&source->scaling, info->count, row_of, source));
    tr_scaling_keep_names(&source->scaling);
    change_numbers(source, scale_number, NULL);
    return TR_OK;
}

static tr_status csv_open(const void *options_, const char *directory, const char *state, tr_source **out)
{
    tr_status status = TR_ENOMEM;
    const struct tr_csv_options *options = options_;
    struct tr_csv_table table = {.options = options};
    char *path = tr_source_path(directory, options->path);
    struct csv_source *source = tr_alloc_zero(1, sizeof *source);
    if (!path || !source) goto out;
    source->base.class = options->json ? &json_class : &csv_class;
    TR_TRY_GOTO(tr_csv_table_open(path, options, &table), out);
    TR_TRY_GOTO(fill(&table, state, source), out);
    source->names = table.names;
    *out = &source->base;
    source = NULL;
out:
    if (source) tr_class_names_release(&table.names);
    tr_csv_table_release(&table);
    if (source) csv_destroy(&source->base);
    tr_free(path);
    return status;
}

static tr_status json_open(const void *options_, const char *directory, const char *state, tr_source **out)
{
    struct tr_csv_options options = *(const struct tr_csv_options *)options_;
    options.json = true;
    return csv_open(&options, directory, state, out);
}

static tr_status csv_open_spilling(const void *options_, const char *directory, const char *state,
                                   const char *spill, tr_source **out)
{
    struct tr_csv_options options = *(const struct tr_csv_options *)options_;
    options.spill = spill;
    return csv_open(&options, directory, state, out);
}

static tr_status json_open_spilling(const void *options_, const char *directory, const char *state,
                                    const char *spill, tr_source **out)
{
    struct tr_csv_options options = *(const struct tr_csv_options *)options_;
    options.json = true;
    return csv_open_spilling(&options, directory, state, spill, out);
}

static tr_status csv_files(const void *options, const char *directory, struct tr_source_files *files)
{
    return tr_source_files_add(files, directory, ((const struct tr_csv_options *)options)->path);
}

const struct tr_source_format tr_source_format_csv = {
    .name = "csv",
    .help = "tables of numbers and names as text, with classes (numbers or names) or values as labels",
    .options = csv_options,
    .option_count = TR_OPTION_COUNT(csv_options),
    .options_size = sizeof(struct tr_csv_options),
    .open = csv_open,
    .open_spilling = csv_open_spilling,
    .files = csv_files,
};

const struct tr_source_format tr_source_format_json = {
    .name = "json",
    .help = "JSON lines: an object on each line, whose members are the columns of a table",
    .options = csv_options,
    .option_count = JSON_OPTIONS,
    .options_size = sizeof(struct tr_csv_options),
    .open = json_open,
    .open_spilling = json_open_spilling,
    .files = csv_files,
};
