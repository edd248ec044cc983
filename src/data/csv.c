/* Reading is in two passes over the text in memory: survey() settles columns and counts and checks every
 * line, load() fills the arrays. Both use tr_csv_read(), so they agree on which lines are good.
 */
#include "data/csv.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/csv_table.h"
#include "data/state.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static const struct tr_choice separators[] = {
    {.name = "auto", .value = 0, .help = "what the first line has"},
    {.name = "comma", .value = ','},
    {.name = "tab", .value = '\t'},
    {.name = "semicolon", .value = ';'},
    {.name = "blank", .value = ' ', .help = "any number of blanks"},
    {.name = NULL},
};
static const struct tr_choice headers[] = {
    {.name = "auto", .value = TR_CSV_HEADER_AUTO, .help = "yes if a field of the first line is no number"},
    {.name = "yes", .value = TR_CSV_HEADER_YES},
    {.name = "no", .value = TR_CSV_HEADER_NO},
    {.name = NULL},
};
static const struct tr_choice label_uses[] = {
    {.name = "class", .value = TR_CSV_CLASS, .help = "a whole number from 0"},
    {.name = "value", .value = TR_CSV_VALUE, .help = "one or more numbers to be predicted"},
    {.name = "none", .value = TR_CSV_NONE},
    {.name = NULL},
};

#define FIELD(name) .offset = offsetof(struct tr_csv_options, name)
static const struct tr_option csv_options[] = {
    {.key = "path",
     .type = TR_OPTION_STRING,
     FIELD(path),
     .fallback = NULL,
     .help = "file of lines of numbers, plain or gzip"},
    {.key = "separator",
     .type = TR_OPTION_CHOICE,
     FIELD(separator),
     .fallback = "auto",
     .choices = separators,
     .help = "what stands between two fields"},
    {.key = "header",
     .type = TR_OPTION_CHOICE,
     FIELD(header),
     .fallback = "auto",
     .choices = headers,
     .help = "whether the first line names the columns"},
    {.key = "label",
     .type = TR_OPTION_CHOICE,
     FIELD(label),
     .fallback = "class",
     .choices = label_uses,
     .help = "what the label columns hold"},
    {.key = "label_columns",
     .type = TR_OPTION_STRING_LIST,
     FIELD(label_columns),
     .fallback = "",
     .help =
         "columns that are labels, by name or number from 0; the others are features. The last column if not "
         "given; class labels take one column"},
    TR_OPTION_CLASSES(struct tr_csv_options, TR_CSV_CLASSES_MAX),
    {.key = "standardize",
     .type = TR_OPTION_BOOL,
     FIELD(standardize),
     .fallback = "false",
     .help = "shift and scale each feature to mean 0 and deviation 1 over the training data"},
    TR_OPTIONS_BAD(struct tr_csv_options),
};

struct csv_source {
    tr_source base;
    float *features;          /* [count][floats] */
    int32_t *label;           /* [count], classes */
    float *values;            /* [count][values] */
    double *mean, *deviation; /* [floats] */
};

static tr_status csv_read(const tr_source *base, int64_t index, void *features, int64_t *length, void *label)
{
    const struct csv_source *source = (const struct csv_source *)base;
    const struct tr_source_info *info = &base->info;
    *length = info->floats;
    if (features)
        memcpy(features, source->features + index * info->floats, (size_t)info->floats * sizeof(float));
    if (label && source->label) *(int32_t *)label = source->label[index];
    if (label && source->values) {
        memcpy(label, source->values + index * info->values, (size_t)info->values * sizeof(float));
    }
    return TR_OK;
}

static tr_status csv_digest(const tr_source *base, tr_sha256 *hash)
{
    const struct csv_source *source = (const struct csv_source *)base;
    size_t count = (size_t)base->info.count;
    tr_sha256_add(hash, source->features, count * (size_t)base->info.floats * sizeof(float));
    if (source->label) tr_sha256_add(hash, source->label, count * sizeof *source->label);
    if (source->values)
        tr_sha256_add(hash, source->values, count * (size_t)base->info.values * sizeof(float));
    return TR_OK;
}

static tr_status csv_state(const tr_source *base, char **out)
{
    const struct csv_source *source = (const struct csv_source *)base;
    struct tr_text text = TR_TEXT_INIT;
    char mean[TR_TEXT_NUMBER_SIZE], deviation[TR_TEXT_NUMBER_SIZE];
    tr_state_add_head(&text, "scaling", base->info.classes, base->info.floats);
    for (int32_t i = 0; i < base->info.floats; i++) {
        tr_text_addf(&text, "%s %s\n", tr_text_from_double(source->mean[i], mean),
                     tr_text_from_double(source->deviation[i], deviation));
    }
    return tr_text_finish(&text, out);
}

static void csv_destroy(tr_source *base)
{
    struct csv_source *source = (struct csv_source *)base;
    tr_free(source->features);
    tr_free(source->label);
    tr_free(source->values);
    tr_free(source->mean);
    tr_free(source->deviation);
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

/* ---- rows ---- */

static tr_status survey(struct tr_csv_table *table, struct tr_bad *bad, int32_t *largest)
{
    struct tr_lines lines = tr_csv_rows(table);
    *largest = 0;
    while (tr_csv_next(&lines)) {
        bad->records++;
        tr_status status = tr_csv_read(table, &lines);
        if (status != TR_OK) {
            TR_TRY(tr_bad_record(bad, status));
            continue;
        }
        for (int32_t i = 0; i < table->columns; i++) {
            if (table->is_label[i] && table->row[i] > *largest)
                *largest = (int32_t)fmin(table->row[i], TR_CSV_CLASSES_MAX);
        }
    }
    return tr_bad_finish(bad, table->path);
}

static tr_status load(struct tr_csv_table *table, struct csv_source *source)
{
    int64_t example = 0;
    float *feature = source->features, *value = source->values;
    struct tr_lines lines = tr_csv_rows(table);
    while (tr_csv_next(&lines)) {
        if (tr_csv_read(table, &lines) != TR_OK) continue;
        for (int32_t i = 0; i < table->columns; i++) {
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

/* ---- scaling ---- */

/* Mean and deviation of each feature: chains in double over ascending examples, so that they are the same
   everywhere. A constant feature keeps deviation 1. */
static void measure(struct csv_source *source)
{
    const struct tr_source_info *info = &source->base.info;
    for (int32_t i = 0; i < info->floats; i++) {
        double sum = 0, squares = 0;
        for (int64_t row = 0; row < info->count; row++)
            sum += (double)source->features[row * info->floats + i];
        double mean = sum / (double)info->count;
        for (int64_t row = 0; row < info->count; row++) {
            double difference = (double)source->features[row * info->floats + i] - mean;
            squares += difference * difference;
        }
        double deviation = sqrt(squares / (double)info->count);
        source->mean[i] = mean;
        source->deviation[i] = deviation > 0 && deviation <= DBL_MAX ? deviation : 1;
    }
}

static void scale(struct csv_source *source)
{
    const struct tr_source_info *info = &source->base.info;
    for (int64_t row = 0; row < info->count; row++) {
        for (int32_t i = 0; i < info->floats; i++) {
            float *feature = &source->features[row * info->floats + i];
            *feature = (float)(((double)*feature - source->mean[i]) / source->deviation[i]);
        }
    }
}

static tr_status read_state(const char *state, const char *path, struct csv_source *source, int32_t *classes)
{
    struct tr_state_reader reader;
    TR_TRY(tr_state_begin(state, "scaling", &reader));
    if (reader.lines != source->base.info.floats) {
        return tr_fail(TR_EMISMATCH,
                       "%s has %" PRId32 " features, the model was trained with %" PRId64
                       "; give a table with the "
                       "same columns",
                       path, source->base.info.floats, reader.lines);
    }
    for (int64_t i = 0; i < reader.lines; i++) {
        const char *line;
        size_t length;
        TR_TRY(tr_state_next(&reader, &line, &length));
        const char *blank = memchr(line, ' ', length);
        struct tr_csv_field mean = {line, blank ? (size_t)(blank - line) : 0};
        struct tr_csv_field deviation = {blank ? blank + 1 : line, blank ? length - mean.length - 1 : 0};
        if (tr_csv_number(mean, &source->mean[i]) || tr_csv_number(deviation, &source->deviation[i]) ||
            source->deviation[i] <= 0) {
            return tr_fail(TR_EFORMAT,
                           "scaling.txt:%" PRId64
                           ": is not a mean and a deviation above 0; take the file that was "
                           "saved with the model",
                           i + 2);
        }
    }
    *classes = reader.classes;
    return tr_state_end(&reader);
}

/* ---- opening ---- */

static tr_status allocate(struct csv_source *source)
{
    const struct tr_source_info *info = &source->base.info;
    size_t count = (size_t)info->count, floats = (size_t)info->floats, values = (size_t)info->values;
    source->features = tr_alloc_aligned(count, floats * sizeof(float));
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
    info->features = TR_FEATURE_FLOATS;
    info->floats = table->columns - table->labels;
    source->mean = tr_alloc_zero((size_t)info->floats, sizeof *source->mean);
    source->deviation = tr_alloc((size_t)info->floats, sizeof *source->deviation);
    if (!source->mean || !source->deviation) return TR_ENOMEM;
    for (int32_t i = 0; i < info->floats; i++) source->deviation[i] = 1;
    if (state) TR_TRY(read_state(state, table->path, source, &table->classes));
    if (options->classes > 0) table->classes = options->classes;

    TR_TRY(survey(table, &bad, &largest));
    info->count = bad.records - bad.bad;
    info->skipped = bad.bad;
    info->labels = options->label == TR_CSV_CLASS   ? TR_LABEL_CLASS
                   : options->label == TR_CSV_VALUE ? TR_LABEL_VALUES
                                                    : TR_LABEL_NONE;
    info->classes = info->labels != TR_LABEL_CLASS ? 0 : table->classes > 0 ? table->classes : largest + 1;
    info->values = info->labels == TR_LABEL_VALUES ? table->labels : 0;
    TR_TRY(allocate(source));
    TR_TRY(load(table, source));
    if (!state && options->standardize) measure(source);
    scale(source);
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
    source->base.class = &csv_class;
    TR_TRY_GOTO(tr_csv_table_open(path, options, &table), out);
    TR_TRY_GOTO(fill(&table, state, source), out);
    *out = &source->base;
    source = NULL;
out:
    tr_csv_table_release(&table);
    if (source) csv_destroy(&source->base);
    tr_free(path);
    return status;
}

const struct tr_source_format tr_source_format_csv = {
    .name = "csv",
    .help = "tables of numbers as text, with class or value labels",
    .options = csv_options,
    .option_count = TR_OPTION_COUNT(csv_options),
    .options_size = sizeof(struct tr_csv_options),
    .open = csv_open,
};
