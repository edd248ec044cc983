#include "data/text/text_source.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/text/text_labels.h"
#include "data/text/words_source.h"

#include <inttypes.h>
#include <string.h>

struct text_options {
    char *path;
    struct tr_words_options words;
    bool tags, next;
    struct tr_text_form form;
    int32_t classes, max_tokens, ids;
    int on_bad_record;
    double max_bad;
};

static const struct tr_choice layouts[] = {
    {"lines", TR_TEXT_LINES, "a text on each line, then a tab and the label"},
    {"table", TR_TEXT_TABLE, "rows of fields, which may be quoted (RFC 4180)"},
    {"json", TR_TEXT_JSON, "a JSON object on each line, whose members are the columns of a table"},
    {NULL, 0},
};
static const struct tr_choice separators[] = {
    {"comma", ',', NULL},
    {"tab", '\t', NULL},
    {"semicolon", ';', NULL},
    {NULL, 0},
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
     FIELD(form.labels),
     .fallback = "true",
     .help =
         "whether each line ends with a tab and a label: a number from 0, or, where no line has a number, "
         "the name of a class"},
    {.key = "tags",
     .type = TR_OPTION_BOOL,
     FIELD(tags),
     .fallback = "false",
     .help = "each token has a label: numbers from 0 split by blanks, - for none"},
    {.key = "next",
     .type = TR_OPTION_BOOL,
     FIELD(next),
     .fallback = "false",
     .help = "the label of each token is the next one, for networks that write whole texts: a boundary token "
             "comes in front of every text and is the label of its last token; there are no other labels"},
    {.key = "unit",
     .type = TR_OPTION_CHOICE,
     FIELD(words.unit),
     .fallback = "words",
     .choices = tr_text_unit_choices,
     .help = "what a token is"},
    TR_OPTION_CLASSES(struct text_options, TR_TEXT_CLASSES_MAX),
    TR_OPTIONS_WORDS(struct text_options),
    {.key = "max_tokens",
     .type = TR_OPTION_INT32,
     FIELD(max_tokens),
     .fallback = "0",
     .most = 1 << 20,
     .help = "longer texts are cut to this many words; 0: no text is cut"},
    {.key = "layout",
     .type = TR_OPTION_CHOICE,
     FIELD(form.layout),
     .fallback = "lines",
     .choices = layouts,
     .help = "form of the file"},
    {.key = "separator",
     .type = TR_OPTION_CHOICE,
     FIELD(form.separator),
     .fallback = "comma",
     .choices = separators,
     .help = "of a table: character between two fields"},
    {.key = "header",
     .type = TR_OPTION_BOOL,
     FIELD(form.header),
     .fallback = "false",
     .help = "for a table: whether the first row names the columns"},
    {.key = "text_columns",
     .type = TR_OPTION_STRING_LIST,
     FIELD(form.text_columns),
     .fallback = "",
     .help = "for a table: columns of the text, joined by a blank, by name or number from 0; default: the "
             "first column"},
    {.key = "label_column",
     .type = TR_OPTION_STRING,
     FIELD(form.label_column),
     .fallback = "",
     .help = "for a table: the column of the label; default: the last one"},
    TR_OPTIONS_BAD(struct text_options),
    {.key = "ids",
     .type = TR_OPTION_INT32,
     FIELD(ids),
     .fallback = "0",
     .most = TR_IDS_MAX,
     .help = "with unit: ids, the number of different tokens; a text is then numbers below that, split by "
             "blanks"},
};

struct text_source {
    struct tr_words_source words; /* examples one after another */
    int64_t *start;               /* [count + 1] in tokens */
    int32_t *label;               /* [count], or of all tokens; NULL without labels */
    struct tr_class_names names;  /* of classes, where labels are names */
};

static tr_status text_read(const tr_source *base, int64_t index, void *features, int64_t *length, void *label)
{
    const struct text_source *source = (const struct text_source *)base;
    *length = source->start[index + 1] - source->start[index];
    if (features)
        memcpy(features, source->words.tokens + source->start[index], (size_t)*length * sizeof(int32_t));
    if (label && base->info.labels == TR_LABEL_TOKENS)
        memcpy(label, source->label + source->start[index], (size_t)*length * sizeof(int32_t));
    else if (label && source->label)
        *(int32_t *)label = source->label[index];
    return TR_OK;
}

static int64_t text_labelled(const tr_source *base, int64_t index)
{
    const struct text_source *source = (const struct text_source *)base;
    int64_t first = source->start[index];
    return tr_labels_count(source->label + first, source->start[index + 1] - first);
}

static tr_status text_digest(const tr_source *base, tr_sha256 *hash)
{
    const struct text_source *source = (const struct text_source *)base;
    size_t count = (size_t)base->info.count;
    tr_sha256_add(hash, source->start, (count + 1) * sizeof *source->start);
    tr_sha256_add(hash, source->words.tokens, (size_t)source->start[count] * sizeof *source->words.tokens);
    if (base->info.labels == TR_LABEL_TOKENS) count = (size_t)source->start[count];
    if (source->label) tr_sha256_add(hash, source->label, count * sizeof *source->label);
    return TR_OK;
}

static tr_status text_state(const tr_source *base, char **text)
{
    const struct text_source *source = (const struct text_source *)base;
    struct tr_text state = TR_TEXT_INIT;
    char *words;
    TR_TRY(tr_words_state(base, &words));
    tr_text_add(&state, words);
    tr_free(words);
    tr_class_names_write(&source->names, &state);
    return tr_text_finish(&state, text);
}

static tr_status text_show(const tr_source *base, int64_t index, struct tr_text *text)
{
    const struct text_source *source = (const struct text_source *)base;
    int64_t first = source->start[index];
    tr_words_show(&source->words, first, source->start[index + 1] - first, text);
    return TR_OK;
}

static void text_destroy(tr_source *base)
{
    struct text_source *source = (struct text_source *)base;
    tr_words_release(&source->words);
    tr_free(source->start);
    tr_free(source->label);
    tr_class_names_release(&source->names);
    tr_free(source);
}

static const struct tr_source_class text_class = {
    .name = "text",
    .version = TR_SOURCE_VERSION,
    .read = text_read,
    .labelled = text_labelled,
    .digest = text_digest,
    .state_name = "vocabulary.txt",
    .state = text_state,
    .show = text_show,
    .destroy = text_destroy,
};

/* Shared by both passes over the file. */
struct reading {
    const char *path;
    const struct text_options *options;
    struct tr_load file;
    const tr_vocabulary *vocabulary;
    struct tr_text_labels labels;
};

/* A record, parsed. */
struct example {
    struct tr_text_record record;
    int32_t label; /* of the text */
};

/* Reads and checks the next record. */
static tr_status next_example(struct reading *reading, struct tr_text_records *records, bool *more,
                              struct example *example)
{
    const struct tr_text_record *record = &example->record;
    const struct tr_lines *lines = &records->lines;
    TR_TRY(tr_text_records_next(records, more, &example->record));
    if (!*more) return TR_OK;
    const char *misfit = tr_vocabulary_misfit(reading->vocabulary, record->text, record->length);
    if (misfit)
        return tr_lines_fail(lines, reading->options->form.layout == TR_TEXT_LINES ? misfit : lines->line,
                             *misfit ? "a byte that is part of no UTF-8 character; correct it, or set "
                                       "unit: bytes"
                                     : "a byte 0; give a text file");
    const int64_t wrong = tr_vocabulary_no_id(reading->vocabulary, record->text, record->length);
    if (wrong >= 0)
        return tr_lines_fail(lines, lines->line,
                             "token %" PRId64 " of the text is no number from 0 to %" PRId32
                             "; give the numbers that the tokenizer gave, or raise `ids`",
                             wrong, tr_vocabulary_size(reading->vocabulary) - 1);
    int64_t tokens = tr_vocabulary_tokens(reading->vocabulary, record->text, record->length);
    if (tokens == 0) return tr_lines_fail(lines, lines->line, "no words; leave the line out");
    return tr_text_labels_check(&reading->labels, lines, record, tokens, &example->label);
}

/* First pass: checks every record, counts examples, finds the largest label, and counts words if wanted. */
static tr_status survey(struct reading *reading, struct tr_text_records *records, tr_vocabulary *counted,
                        struct tr_bad *bad)
{
    for (;;) {
        struct example example;
        bool more;
        tr_status status = next_example(reading, records, &more, &example);
        if (status == TR_OK && !more) return tr_bad_finish(bad, reading->path);
        bad->records++;
        if (status != TR_OK) {
            TR_TRY(tr_bad_record(bad, status));
            continue;
        }
        if (counted) TR_TRY(tr_vocabulary_count(counted, example.record.text, example.record.length));
    }
}

/* Makes room for `length` more numbers after `count`. */
static bool make_room(int32_t **array, int64_t count, int64_t length, int64_t *room)
{
    if (count + length <= *room) return true;
    int64_t wanted = 2 * *room + length + 4096;
    int32_t *grown = tr_realloc(*array, (size_t)wanted, sizeof *grown);
    if (!grown) return false;
    *array = grown;
    *room = wanted;
    return true;
}

/* Output of the second pass. */
struct encoding {
    struct text_source *source;
    int64_t tokens, token_room, label_room, examples;
};

/* A text after its boundary, each token with the next as its label. The last token of a text that was cut has
   none. */
static void encode_next(const struct tr_text_record *record, int64_t length, int32_t boundary,
                        struct text_source *source, int64_t first)
{
    const tr_vocabulary *vocabulary = source->words.vocabulary;
    int32_t *tokens = source->words.tokens + first, *label = source->label + first;
    const bool whole = tr_vocabulary_tokens(vocabulary, record->text, record->length) == length;
    tokens[0] = boundary;
    tr_vocabulary_encode(vocabulary, record->text, record->length, length, tokens + 1);
    memcpy(label, tokens + 1, (size_t)length * sizeof *label);
    label[length] = whole ? boundary : TR_NO_LABEL;
}

static tr_status encode_example(struct reading *reading, const struct tr_lines *lines,
                                const struct example *example, struct encoding *encoding)
{
    struct text_source *source = encoding->source;
    struct tr_source_info *info = &source->words.base.info;
    const struct tr_text_record *record = &example->record;
    int64_t length = tr_vocabulary_length(source->words.vocabulary, record->text, record->length);
    int64_t first = encoding->tokens;
    if (length > TR_TOKENS_MAX - (reading->options->next ? 1 : 0))
        return tr_lines_fail(lines, lines->line, "%" PRId64 " words; set max_tokens to cut long texts",
                             length);
    const int32_t boundary = tr_vocabulary_boundary(source->words.vocabulary);
    const int64_t rows = length + (boundary >= 0);
    if (!make_room(&source->words.tokens, first, rows, &encoding->token_room)) return TR_ENOMEM;
    if (boundary < 0)
        tr_vocabulary_encode(source->words.vocabulary, record->text, record->length, length,
                             source->words.tokens + first);
    if (boundary >= 0) {
        if (!make_room(&source->label, first, rows, &encoding->label_room)) return TR_ENOMEM;
        encode_next(record, length, boundary, source, first);
    } else if (info->labels == TR_LABEL_TOKENS) {
        if (!make_room(&source->label, first, length, &encoding->label_room)) return TR_ENOMEM;
        TR_TRY(tr_text_labels_tags(&reading->labels, lines, record, source->label + first, length));
    } else if (info->labels == TR_LABEL_CLASS) {
        if (!make_room(&source->label, encoding->examples, 1, &encoding->label_room)) return TR_ENOMEM;
        source->label[encoding->examples] = example->label;
    }
    if (rows > info->max_tokens) info->max_tokens = (int32_t)rows;
    encoding->tokens += rows;
    source->start[++encoding->examples] = encoding->tokens;
    return TR_OK;
}

/* Second pass: the tokens of the good records. */
static tr_status encode(struct reading *reading, struct tr_text_records *records, struct text_source *source)
{
    struct encoding encoding = {.source = source};
    source->start[0] = 0;
    for (;;) {
        struct example example;
        bool more;
        tr_status status = next_example(reading, records, &more, &example);
        if (status == TR_ENOMEM) return status;
        if (status != TR_OK) continue;
        if (!more) return TR_OK;
        TR_TRY(encode_example(reading, &records->lines, &example, &encoding));
    }
}

/* Runs a pass over the records from the first one on. */
static tr_status walk(struct reading *reading, struct text_source *source, tr_vocabulary *counted,
                      struct tr_bad *bad)
{
    struct tr_text_records records;
    tr_status status = tr_text_records_begin(&reading->options->form, reading->path,
                                             (char *)reading->file.data, reading->file.size, &records);
    if (status == TR_OK)
        status = bad ? survey(reading, &records, counted, bad) : encode(reading, &records, source);
    tr_text_records_release(&records);
    return status;
}

/* Ids are known before the first text. */
static tr_status begin_ids(const struct reading *reading, struct text_source *source)
{
    if (reading->options->ids > 0)
        return tr_vocabulary_settle_ids(source->words.vocabulary, reading->options->ids);
    return tr_fail(TR_EINVAL, "%s: unit is ids, but not how many there are; set ids", reading->path);
}

static tr_status fill(struct reading *reading, const char *state, struct text_source *source)
{
    const struct text_options *options = reading->options;
    struct tr_source_info *info = &source->words.base.info;
    struct tr_bad bad = {.action = (enum tr_bad_action)options->on_bad_record, .most = options->max_bad};
    struct tr_text_labels *labels = &reading->labels;
    if (options->next && options->tags)
        return tr_fail(TR_EINVAL, "%s: tags and next are both labels of tokens; give one of them",
                       reading->path);
    if (options->tags && !options->form.labels)
        return tr_fail(TR_EINVAL, "%s: tags are labels; set labels: true", reading->path);
    TR_TRY(tr_words_begin(&source->words, &options->words, options->max_tokens, state, &labels->classes));
    if (state && options->next != (tr_vocabulary_boundary(source->words.vocabulary) >= 0))
        return tr_fail(TR_EMISMATCH, "%s: the training data have next: %s; set the same", reading->path,
                       options->next ? "false" : "true");
    if (options->classes > 0) labels->classes = options->classes;
    TR_TRY(tr_text_labels_settle(labels, reading->path, (const char *)reading->file.data, reading->file.size,
                                 state));
    reading->vocabulary = source->words.vocabulary;
    const bool counts = !state && options->words.unit != TR_UNIT_IDS;
    if (!state && !counts) TR_TRY(begin_ids(reading, source));
    TR_TRY(walk(reading, source, counts ? source->words.vocabulary : NULL, &bad));
    if (counts) TR_TRY(tr_words_settle(&source->words, &options->words, state));
    if (options->next && !state) tr_vocabulary_add_boundary(source->words.vocabulary);

    info->count = bad.records - bad.bad;
    info->skipped = bad.bad;
    info->features = TR_FEATURE_TOKENS;
    info->vocabulary = tr_vocabulary_size(source->words.vocabulary);
    if (options->form.labels) {
        info->labels = options->tags ? TR_LABEL_TOKENS : TR_LABEL_CLASS;
        info->classes = labels->classes > 0 ? labels->classes : labels->largest + 1;
    }
    if (options->next) {
        info->labels = TR_LABEL_TOKENS;
        info->classes = info->vocabulary;
    }
    labels->collects = false;
    if (labels->named) {
        if (options->classes > 0 && options->classes != labels->names.count)
            return tr_fail(TR_EFORMAT, "%s: there are %" PRId32 " classes by name, but classes is %" PRId32,
                           reading->path, labels->names.count, options->classes);
        info->classes = labels->names.count;
        info->class_names = (const char *const *)labels->names.name;
    }
    source->start = tr_alloc((size_t)info->count + 1, sizeof *source->start);
    if (!source->start) return TR_ENOMEM;
    return walk(reading, source, NULL, NULL);
}

static tr_status text_open(const void *options_, const char *directory, const char *state, tr_source **out)
{
    struct text_options options = *(const struct text_options *)options_; /* what it points to is borrowed */
    if (options.next) options.form.labels = false;
    tr_status status = TR_ENOMEM;
    struct reading reading = {.options = &options, .labels = {.form = &options.form, .tags = options.tags}};
    char *path = tr_source_path(directory, options.path);
    struct text_source *source = tr_alloc_zero(1, sizeof *source);
    if (!path || !source) goto out;
    source->words.base.class = &text_class;
    reading.path = path;
    TR_TRY_GOTO(tr_load_lines(path, &reading.file), out);
    TR_TRY_GOTO(fill(&reading, state, source), out);
    source->names = reading.labels.names;
    *out = &source->words.base;
    source = NULL;
out:
    if (source) tr_class_names_release(&reading.labels.names);
    tr_free(reading.file.data);
    if (source) text_destroy(&source->words.base);
    tr_free(path);
    return status;
}

static tr_status text_files(const void *options, const char *directory, struct tr_source_files *files)
{
    return tr_source_files_add(files, directory, ((const struct text_options *)options)->path);
}

const struct tr_source_format tr_source_format_text = {
    .name = "text",
    .help = "sentences with a class each, one example a line; a vocabulary is built from the training text",
    .options = text_options,
    .option_count = TR_OPTION_COUNT(text_options),
    .options_size = sizeof(struct text_options),
    .open = text_open,
    .files = text_files,
};
