/* The text is tokenized once. Its tokens are kept as one stream, and a window is a place in it. So windows
 * that overlap cost no memory, and a window may begin at every token.
 */
#include "data/text/corpus_source.h"

#include "base/alloc.h"
#include "base/encoding.h"
#include "base/fail.h"
#include "data/files/lines.h"
#include "data/text/token_ids.h"
#include "data/text/words_source.h"

#include <inttypes.h>
#include <string.h>

struct corpus_options {
    char *path, *tokenizer;
    struct tr_words_options words;
    int32_t window, stride, ids;
    double begin, end;
};

#define FIELD(name) .offset = offsetof(struct corpus_options, name)
static const struct tr_option corpus_options[] = {
    {.key = "path",
     .type = TR_OPTION_STRING,
     FIELD(path),
     .fallback = NULL,
     .help = "file of text, plain or gzip; of ids, a NumPy array of integers, or unsigned integers of 16 "
             "bits, the "
             "low byte first"},
    {.key = "unit",
     .type = TR_OPTION_CHOICE,
     FIELD(words.unit),
     .fallback = "characters",
     .choices = tr_unit_choices,
     .help = "what a token is"},
    {.key = "window",
     .type = TR_OPTION_INT32,
     FIELD(window),
     .fallback = NULL,
     .least = 1,
     .most = TR_TOKENS_MAX,
     .help = "tokens of an example; the label of each is the next token"},
    {.key = "stride",
     .type = TR_OPTION_INT32,
     FIELD(stride),
     .fallback = "0",
     .most = TR_TOKENS_MAX,
     .help = "tokens between the beginnings of examples; 0: the size of a window, so windows do not overlap; "
             "1: a window begins at every token"},
    {.key = "begin",
     .type = TR_OPTION_DOUBLE,
     FIELD(begin),
     .fallback = "0",
     .most = 1,
     .flags = TR_OPTION_BELOW_MOST,
     .help = "fraction of the file's tokens where the used part begins, rounded down to a token"},
    {.key = "end",
     .type = TR_OPTION_DOUBLE,
     FIELD(end),
     .fallback = "1",
     .most = 1,
     .flags = TR_OPTION_ABOVE_LEAST,
     .help = "where it ends, likewise: training data to 0.9 and validation data from 0.9 share a file"},
    TR_OPTIONS_WORDS(struct corpus_options),
    {.key = "ids",
     .type = TR_OPTION_INT32,
     FIELD(ids),
     .fallback = "0",
     .most = TR_IDS_MAX,
     .help = "with unit: ids, the number of different tokens; with unit: bpe, that of the network, if it is "
             "larger "
             "than the tokenizer's"},
    {.key = "tokenizer",
     .type = TR_OPTION_STRING,
     FIELD(tokenizer),
     .fallback = "",
     .help =
         "with unit: bpe, a file tokenizer.json, or a directory that has one, or vocab.json and merges.txt; "
         "`trireme data tokenizer` trains one"},
};

/* ---- the class ---- */

static tr_status corpus_digest(const tr_source *base, tr_sha256 *hash)
{
    const int64_t figures[] = {base->window, base->stride};
    int64_t tokens = (base->info.count - 1) * base->stride + base->window + 1;
    tr_sha256_add(hash, figures, sizeof figures);
    tr_sha256_add(hash, base->stream, (size_t)tokens * sizeof *base->stream);
    return TR_OK;
}

static tr_status corpus_show(const tr_source *base, int64_t index, struct tr_text *text)
{
    tr_words_show((const struct tr_words_source *)base, index * base->stride, base->window, text);
    return TR_OK;
}

static void corpus_destroy(tr_source *base)
{
    struct tr_words_source *source = (struct tr_words_source *)base;
    tr_words_release(source);
    tr_free(source);
}

static const struct tr_source_class corpus_class = {
    .name = "corpus",
    .version = TR_SOURCE_VERSION,
    .read = tr_source_read_window,
    .labelled = tr_source_window_labels,
    .digest = corpus_digest,
    .state_name = "vocabulary.txt",
    .state = tr_words_state,
    .show = corpus_show,
    .destroy = corpus_destroy,
};

/* ---- opening ---- */

/* The text of a file while it is read. */
struct reading {
    const char *path, *tokenizer;
    const struct corpus_options *options;
    struct tr_load file;
    const char *text; /* after a byte order mark */
    size_t length;
};

static tr_status check_text(const struct reading *reading, const tr_vocabulary *vocabulary)
{
    const char *at = tr_vocabulary_misfit(vocabulary, reading->text, reading->length), *line = reading->text;
    int64_t number = 1;
    if (!at) return TR_OK;
    for (const char *p = reading->text; p < at; p++) {
        if (*p != '\n') continue;
        number++;
        line = p + 1;
    }
    return tr_fail(TR_EFORMAT, "%s:%" PRId64 ":%td: byte 0x%02x is %s; correct the file, or set unit: bytes",
                   reading->path, number, at - line + 1, (uint8_t)*at,
                   *at ? "no part of a UTF-8 character" : "not text");
}

/* The range of used tokens, [*first, *end) of `all`. */
static tr_status share(const struct reading *reading, int64_t all, int64_t *first, int64_t *end)
{
    const struct corpus_options *options = reading->options;
    const int64_t wanted = (int64_t)options->window + 1;
    *first = (int64_t)(options->begin * (double)all);
    *end = (int64_t)(options->end * (double)all);
    if (*end - *first >= wanted) return TR_OK;
    return tr_fail(TR_EFORMAT,
                   "%s: %" PRId64 " tokens from begin to end, a window and the token after it are %" PRId64
                   "; make the window smaller or the part larger",
                   reading->path, *end > *first ? *end - *first : 0, wanted);
}

/* The used range in bytes. */
static tr_status find_part(struct reading *reading, const tr_vocabulary *vocabulary)
{
    int64_t all = tr_vocabulary_tokens(vocabulary, reading->text, reading->length), first, end;
    TR_TRY(share(reading, all, &first, &end));
    size_t from = tr_vocabulary_reach(vocabulary, reading->text, reading->length, first);
    reading->length = tr_vocabulary_reach(vocabulary, reading->text, reading->length, end) - from;
    reading->text += from;
    return TR_OK;
}

static tr_status make_vocabulary(struct reading *reading, const char *state, struct tr_words_source *source)
{
    const struct corpus_options *options = reading->options;
    int32_t classes;
    TR_TRY(tr_words_begin(source, &options->words, 0, state, &classes));
    if (state && tr_vocabulary_unit(source->vocabulary) == TR_UNIT_IDS)
        return tr_fail(TR_EMISMATCH, "%s: the network was trained on ids; set unit: ids", reading->path);
    TR_TRY(check_text(reading, source->vocabulary));
    TR_TRY(find_part(reading, source->vocabulary));
    if (!state) TR_TRY(tr_vocabulary_count(source->vocabulary, reading->text, reading->length));
    return tr_words_settle(source, &options->words, state);
}

/* The stream of a text. */
static tr_status fill_from_text(struct reading *reading, const char *state, struct tr_words_source *source,
                                int64_t *tokens)
{
    TR_TRY(make_vocabulary(reading, state, source));
    *tokens = tr_vocabulary_tokens(source->vocabulary, reading->text, reading->length);
    source->tokens = tr_alloc((size_t)*tokens, sizeof *source->tokens);
    if (!source->tokens) return TR_ENOMEM;
    tr_vocabulary_encode(source->vocabulary, reading->text, reading->length, *tokens, source->tokens);
    return TR_OK;
}

/* The same of a file of ids. */
static tr_status fill_from_ids(struct reading *reading, const char *state, struct tr_words_source *source,
                               int64_t *tokens)
{
    const struct corpus_options *options = reading->options;
    int64_t all, first, end;
    int32_t classes, ids = options->ids;
    if (!state && ids <= 0)
        return tr_fail(TR_EINVAL, "%s: unit is ids, but not how many there are; set ids", reading->path);
    TR_TRY(tr_words_begin(source, &options->words, 0, state, &classes));
    if (!state) TR_TRY(tr_vocabulary_settle_ids(source->vocabulary, ids));
    if (state && tr_vocabulary_unit(source->vocabulary) != TR_UNIT_IDS)
        return tr_fail(TR_EMISMATCH, "%s: unit is ids, the network was trained on another one",
                       reading->path);
    ids = tr_vocabulary_size(source->vocabulary);
    TR_TRY(
        tr_token_ids_read(reading->path, reading->file.data, reading->file.size, ids, &source->tokens, &all));
    TR_TRY(share(reading, all, &first, &end));
    *tokens = end - first;
    memmove(source->tokens, source->tokens + first, (size_t)*tokens * sizeof *source->tokens);
    return TR_OK;
}

/* The same for subwords. The part is taken from the tokens of the whole text, so that cutting does not
   change them. */
static tr_status fill_from_subwords(struct reading *reading, const char *state,
                                    struct tr_words_source *source, int64_t *tokens)
{
    int64_t all, first, end;
    int32_t classes;
    tr_bpe *bpe;
    TR_TRY(tr_words_begin(source, &reading->options->words, 0, state, &classes));
    if (!state && !reading->tokenizer)
        return tr_fail(TR_EINVAL, "%s: unit is bpe, but not by which tokenizer; set tokenizer",
                       reading->path);
    if (!state) {
        TR_TRY(tr_bpe_open(reading->tokenizer, &bpe));
        tr_vocabulary_settle_bpe(source->vocabulary, &bpe, reading->options->ids);
    }
    TR_TRY(
        tr_vocabulary_encode_all(source->vocabulary, reading->text, reading->length, &source->tokens, &all));
    TR_TRY(share(reading, all, &first, &end));
    *tokens = end - first;
    memmove(source->tokens, source->tokens + first, (size_t)*tokens * sizeof *source->tokens);
    return TR_OK;
}

/* Whether a state is a vocabulary whose second line, the settings, ends with this unit. */
static bool is_of_subwords(const char *state)
{
    static const char unit[] = " unit bpe";
    const char *settings = strchr(state, '\n'), *end = settings ? strchr(settings + 1, '\n') : NULL;
    const size_t size = sizeof unit - 1;
    return end && (size_t)(end - settings) > size && memcmp(end - size, unit, size) == 0;
}

static tr_status fill(struct reading *reading, const char *state, struct tr_words_source *source)
{
    const struct corpus_options *options = reading->options;
    struct tr_source_info *info = &source->base.info;
    int64_t tokens = 0;
    const bool subwords = state ? is_of_subwords(state) : options->words.unit == TR_UNIT_BPE;
    TR_TRY(options->words.unit == TR_UNIT_IDS ? fill_from_ids(reading, state, source, &tokens)
           : subwords                         ? fill_from_subwords(reading, state, source, &tokens)
                                              : fill_from_text(reading, state, source, &tokens));
    source->base.stream = source->tokens;
    source->base.window = options->window;
    source->base.stride = options->stride ? options->stride : options->window;
    info->features = TR_FEATURE_TOKENS;
    info->labels = TR_LABEL_TOKENS;
    info->count = (tokens - 1 - options->window) / source->base.stride + 1;
    info->max_tokens = options->window;
    info->vocabulary = info->classes = tr_vocabulary_size(source->vocabulary);
    return TR_OK;
}

static void skip_mark(struct reading *reading)
{
    reading->text = (const char *)reading->file.data;
    reading->length = reading->file.size;
    if (reading->options->words.unit == TR_UNIT_BYTES) return;
    const size_t mark = tr_encoding_mark(reading->text, reading->length);
    reading->text += mark;
    reading->length -= mark;
}

static tr_status corpus_open(const void *options_, const char *directory, const char *state, tr_source **out)
{
    const struct corpus_options *options = options_;
    tr_status status = TR_ENOMEM;
    struct reading reading = {.options = options};
    char *path = tr_source_path(directory, options->path);
    char *tokenizer = options->tokenizer ? tr_source_path(directory, options->tokenizer) : NULL;
    struct tr_words_source *source = tr_alloc_zero(1, sizeof *source);
    if (!path || !source || (options->tokenizer && !tokenizer)) goto out;
    source->base.class = &corpus_class;
    reading.path = path;
    reading.tokenizer = tokenizer;
    TR_TRY_GOTO(tr_load_file(path, &reading.file), out);
    skip_mark(&reading);
    if (options->words.unit != TR_UNIT_BYTES && options->words.unit != TR_UNIT_IDS)
        TR_TRY_GOTO(tr_encoding_check(path, reading.text, reading.length), out);
    TR_TRY_GOTO(fill(&reading, state, source), out);
    *out = &source->base;
    source = NULL;
out:
    tr_free(reading.file.data);
    if (source) corpus_destroy(&source->base);
    tr_free(tokenizer);
    tr_free(path);
    return status;
}

static tr_status corpus_files(const void *options, const char *directory, struct tr_source_files *files)
{
    const struct corpus_options *corpus = options;
    TR_TRY(tr_source_files_add(files, directory, corpus->path));
    return corpus->tokenizer ? tr_source_files_add(files, directory, corpus->tokenizer) : TR_OK;
}

const struct tr_source_format tr_source_format_corpus = {
    .name = "corpus",
    .help = "a running text in windows of tokens, each with the next token as its label: for language "
            "models. A vocabulary is built from the training text",
    .options = corpus_options,
    .option_count = TR_OPTION_COUNT(corpus_options),
    .options_size = sizeof(struct corpus_options),
    .open = corpus_open,
    .files = corpus_files,
};
