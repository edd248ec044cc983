#include "data/text_source.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/lines.h"
#include "data/vocabulary.h"

#include <inttypes.h>
#include <string.h>

#define CLASSES_MAX (1 << 20)

struct text_options {
    char *path;
    bool labels, lower_case;
    int32_t classes, min_count, max_words, max_tokens;
    int on_bad_record;
    double max_bad;
};

#define FIELD(name) .offset = offsetof(struct text_options, name)
static const struct tr_option text_options[] = {
    {.key = "path",
     .type = TR_OPTION_STRING,
     FIELD(path),
     .fallback = NULL,
     .help = "file of lines, plain or gzip: words split by blanks, a tab, the label"},
    {.key = "labels",
     .type = TR_OPTION_BOOL,
     FIELD(labels),
     .fallback = "true",
     .help = "whether each line ends with a tab and a label, a number from 0"},
    TR_OPTION_CLASSES(struct text_options, CLASSES_MAX),
    {.key = "lower_case",
     .type = TR_OPTION_BOOL,
     FIELD(lower_case),
     .fallback = "false",
     .help = "read A to Z as a to z"},
    {.key = "min_count",
     .type = TR_OPTION_INT32,
     FIELD(min_count),
     .fallback = "1",
     .least = 1,
     .most = INT32_MAX,
     .help = "words that occur less often in the training text are unknown"},
    {.key = "max_words",
     .type = TR_OPTION_INT32,
     FIELD(max_words),
     .fallback = "0",
     .most = TR_VOCABULARY_MAX,
     .help = "size of the vocabulary, the unknown word included; the rarest words are left out; 0 keeps all"},
    {.key = "max_tokens",
     .type = TR_OPTION_INT32,
     FIELD(max_tokens),
     .fallback = "0",
     .most = 1 << 20,
     .help = "longer texts are cut to this many words; 0 cuts nothing"},
    TR_OPTIONS_BAD(struct text_options),
};

struct text_source {
    tr_source base;
    tr_vocabulary *vocabulary;
    int32_t *tokens; /* examples one after another */
    int64_t *start;  /* [count + 1] in tokens */
    int32_t *label;  /* [count]; NULL without labels */
};

static tr_status text_read(const tr_source *base, int64_t index, void *features, int64_t *length, void *label)
{
    const struct text_source *source = (const struct text_source *)base;
    *length = source->start[index + 1] - source->start[index];
    if (features) memcpy(features, source->tokens + source->start[index], (size_t)*length * sizeof(int32_t));
    if (label && source->label) *(int32_t *)label = source->label[index];
    return TR_OK;
}

static tr_status text_digest(const tr_source *base, tr_sha256 *hash)
{
    const struct text_source *source = (const struct text_source *)base;
    size_t count = (size_t)base->info.count;
    tr_sha256_add(hash, source->start, (count + 1) * sizeof *source->start);
    tr_sha256_add(hash, source->tokens, (size_t)source->start[count] * sizeof *source->tokens);
    if (source->label) tr_sha256_add(hash, source->label, count * sizeof *source->label);
    return TR_OK;
}

static tr_status text_state(const tr_source *base, char **text)
{
    const struct text_source *source = (const struct text_source *)base;
    return tr_vocabulary_write(source->vocabulary, base->info.classes, text);
}

static tr_status text_show(const tr_source *base, int64_t index, struct tr_text *text)
{
    const struct text_source *source = (const struct text_source *)base;
    for (int64_t at = source->start[index]; at < source->start[index + 1]; at++) {
        if (at > source->start[index]) tr_text_add(text, " ");
        tr_text_add(text, tr_vocabulary_word(source->vocabulary, source->tokens[at]));
    }
    tr_text_add(text, "\n");
    return TR_OK;
}

static void text_destroy(tr_source *base)
{
    struct text_source *source = (struct text_source *)base;
    tr_vocabulary_destroy(&source->vocabulary);
    tr_free(source->tokens);
    tr_free(source->start);
    tr_free(source->label);
    tr_free(source);
}

static const struct tr_source_class text_class = {
    .name = "text",
    .version = TR_SOURCE_VERSION,
    .read = text_read,
    .digest = text_digest,
    .state_name = "vocabulary.txt",
    .state = text_state,
    .show = text_show,
    .destroy = text_destroy,
};

/* One line taken apart. */
struct example {
    const char *text;
    size_t length;
    int32_t label;
};

static tr_status parse_label(const struct tr_lines *lines, const char *at, size_t length, int32_t classes,
                             int32_t *label)
{
    char digits[16];
    int64_t value;
    const char *wrong = "is not a whole number";
    if (length < sizeof digits) {
        memcpy(digits, at, length);
        digits[length] = 0;
        wrong = tr_text_int64(digits, &value);
    }
    int shown = length < 40 ? (int)length : 40;
    if (wrong)
        return tr_lines_fail(lines, at, "label \"%.*s\" %s; labels are numbers from 0", shown, at, wrong);
    int32_t limit = classes > 0 ? classes : CLASSES_MAX;
    if (value < 0 || value >= limit) {
        return tr_lines_fail(lines, at,
                             "label %" PRId64 " is not in 0 to %" PRId32 "; correct the line or set classes",
                             value, limit - 1);
    }
    *label = (int32_t)value;
    return TR_OK;
}

static tr_status parse_line(const struct tr_lines *lines, bool labels, int32_t classes,
                            struct example *example)
{
    const char *line = lines->line, *end = line + lines->length, *tab = memchr(line, '\t', lines->length);
    const char *zero = memchr(line, 0, lines->length);
    if (zero) return tr_lines_fail(lines, zero, "a byte 0; give a text file");
    *example = (struct example){.text = line, .length = lines->length};
    if (labels) {
        if (!tab) return tr_lines_fail(lines, end, "no tab and label after the text; write: text TAB label");
        const char *second = memchr(tab + 1, '\t', (size_t)(end - tab - 1));
        if (second) return tr_lines_fail(lines, second, "a second tab; write: text TAB label");
        TR_TRY(parse_label(lines, tab + 1, (size_t)(end - tab - 1), classes, &example->label));
        example->length = (size_t)(tab - line);
    } else if (tab) {
        return tr_lines_fail(lines, tab,
                             "a tab, though the file is said to have no labels; set labels: true");
    }
    for (size_t i = 0; i < example->length; i++) {
        if (!tr_is_blank(line[i])) return TR_OK;
    }
    return tr_lines_fail(lines, line, "no words; leave the line out");
}

/* What both passes over the file share. */
struct reading {
    const char *path;
    const struct text_options *options;
    struct tr_load file;
    int32_t classes; /* given, or 0 */
};

/* First pass: checks every line, counts examples, finds the largest label, counts words if wanted. */
static tr_status survey(struct reading *reading, tr_vocabulary *counted, struct tr_bad *bad, int32_t *largest)
{
    struct tr_lines lines = tr_lines_of(reading->path, (char *)reading->file.data, reading->file.size);
    *largest = 0;
    while (tr_lines_next(&lines)) {
        struct example example;
        bad->records++;
        tr_status status = parse_line(&lines, reading->options->labels, reading->classes, &example);
        if (status != TR_OK) {
            TR_TRY(tr_bad_record(bad, status));
            continue;
        }
        if (example.label > *largest) *largest = example.label;
        if (counted) TR_TRY(tr_vocabulary_count(counted, example.text, example.length));
    }
    return tr_bad_finish(bad, reading->path);
}

/* Second pass: the tokens of the good lines. */
static tr_status encode(const struct reading *reading, struct text_source *source)
{
    struct tr_source_info *info = &source->base.info;
    int64_t tokens = 0, room = 0, example_number = 0;
    struct tr_lines lines = tr_lines_of(reading->path, (char *)reading->file.data, reading->file.size);
    source->start[0] = 0;
    while (tr_lines_next(&lines)) {
        struct example example;
        if (parse_line(&lines, reading->options->labels, reading->classes, &example) != TR_OK) continue;
        int64_t length = tr_vocabulary_length(source->vocabulary, example.text, example.length);
        if (length > (1 << 20)) {
            return tr_lines_fail(&lines, example.text, "%" PRId64 " words; set max_tokens to cut long texts",
                                 length);
        }
        if (tokens + length > room) {
            room = 2 * room + length + 4096;
            int32_t *grown = tr_realloc(source->tokens, (size_t)room, sizeof *grown);
            if (!grown) return TR_ENOMEM;
            source->tokens = grown;
        }
        tr_vocabulary_encode(source->vocabulary, example.text, example.length, source->tokens + tokens);
        if (length > info->max_tokens) info->max_tokens = (int32_t)length;
        tokens += length;
        if (source->label) source->label[example_number] = example.label;
        source->start[++example_number] = tokens;
    }
    return TR_OK;
}

static tr_status fill(struct reading *reading, const char *state, struct text_source *source)
{
    const struct text_options *options = reading->options;
    struct tr_source_info *info = &source->base.info;
    struct tr_bad bad = {.action = (enum tr_bad_action)options->on_bad_record, .most = options->max_bad};
    int32_t largest;
    if (state) {
        TR_TRY(tr_vocabulary_read(state, &source->vocabulary, &reading->classes));
    } else {
        TR_TRY(tr_vocabulary_create(options->lower_case, options->max_tokens, &source->vocabulary));
    }
    if (options->classes > 0) reading->classes = options->classes;
    TR_TRY(survey(reading, state ? NULL : source->vocabulary, &bad, &largest));
    if (!state) TR_TRY(tr_vocabulary_settle(source->vocabulary, options->min_count, options->max_words));

    info->count = bad.records - bad.bad;
    info->skipped = bad.bad;
    info->features = TR_FEATURE_TOKENS;
    info->vocabulary = tr_vocabulary_size(source->vocabulary);
    info->labels = options->labels ? TR_LABEL_CLASS : TR_LABEL_NONE;
    info->classes = !options->labels ? 0 : reading->classes > 0 ? reading->classes : largest + 1;
    source->start = tr_alloc((size_t)info->count + 1, sizeof *source->start);
    if (options->labels) source->label = tr_alloc((size_t)info->count, sizeof *source->label);
    if (!source->start || (options->labels && !source->label)) return TR_ENOMEM;
    return encode(reading, source);
}

static tr_status text_open(const void *options_, const char *directory, const char *state, tr_source **out)
{
    const struct text_options *options = options_;
    tr_status status = TR_ENOMEM;
    struct reading reading = {.options = options};
    char *path = tr_source_path(directory, options->path);
    struct text_source *source = tr_alloc_zero(1, sizeof *source);
    if (!path || !source) goto out;
    source->base.class = &text_class;
    reading.path = path;
    TR_TRY_GOTO(tr_load_file(path, &reading.file), out);
    TR_TRY_GOTO(fill(&reading, state, source), out);
    *out = &source->base;
    source = NULL;
out:
    tr_free(reading.file.data);
    if (source) text_destroy(&source->base);
    tr_free(path);
    return status;
}

const struct tr_source_format tr_source_format_text = {
    .name = "text",
    .help = "sentences with a class each, one example a line; a vocabulary is built from the training text",
    .options = text_options,
    .option_count = TR_OPTION_COUNT(text_options),
    .options_size = sizeof(struct text_options),
    .open = text_open,
};
