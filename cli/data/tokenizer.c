/* trireme data tokenizer, trireme data tokens: training of subwords, and texts as their numbers. */
#include "cli/data/data.h"

#include "cli/terminal/output.h"

#include "trireme/tokenizer.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- tokenizer ---- */

static const char *const pattern_names[] = {"gpt2", "cl100k", "qwen2"};
static const struct tr_choice patterns[] = {
    {"gpt2", 0, "GPT-2"}, {"cl100k", 1, "GPT-4, Llama 3"}, {"qwen2", 2, "Qwen 2"}, {0}};

struct train_options {
    struct cli_common common;
    struct tr_string_list path, special;
    char *out;
    int pattern; /* in pattern_names */
    int32_t tokens;
    int64_t least;
};

static const struct tr_option train_table[] = {
    {.key = "path",
     .type = TR_OPTION_STRING_LIST,
     .offset = offsetof(struct train_options, path),
     .fallback = NULL,
     .help = "files of text to learn from, plain or gzip",
     .flags = TR_OPTION_POSITIONAL,
     .value_name = "FILE"},
    {.key = "out",
     .type = TR_OPTION_STRING,
     .offset = offsetof(struct train_options, out),
     .fallback = "tokenizer.json",
     .help = "file to write",
     .letter = 'o',
     .value_name = "FILE"},
    {.key = "tokens",
     .type = TR_OPTION_INT32,
     .offset = offsetof(struct train_options, tokens),
     .fallback = "8192",
     .least = 256,
     .most = 1 << 20,
     .help = "size of the vocabulary: 256 bytes, the special tokens, and merged pairs",
     .letter = 'n'},
    {.key = "pattern",
     .type = TR_OPTION_CHOICE,
     .offset = offsetof(struct train_options, pattern),
     .fallback = "gpt2",
     .choices = patterns,
     .help = "where texts are cut before pairs merge; cl100k is that of GPT-4 and Llama 3"},
    {.key = "special",
     .type = TR_OPTION_STRING_LIST,
     .offset = offsetof(struct train_options, special),
     .fallback = "",
     .help = "a text that is one token, such as <|endoftext|>; may be given more than once",
     .value_name = "TEXT"},
    {.key = "least",
     .type = TR_OPTION_INT64,
     .offset = offsetof(struct train_options, least),
     .fallback = "2",
     .least = 1,
     .most = TR_OPTION_WHOLE,
     .help = "pairs that occur less often are not merged"},
    CLI_OPTION_HELP(struct train_options),
};

static tr_status run_train(const void *options_)
{
    const struct train_options *options = options_;
    struct tr_tokenizer_settings settings = TR_TOKENIZER_SETTINGS_INIT;
    char number[TR_TEXT_NUMBER_SIZE];
    tr_tokenizer *tokenizer;
    settings.pattern = pattern_names[options->pattern];
    settings.tokens = options->tokens;
    settings.least = options->least;
    settings.special = (const char *const *)options->special.item;
    settings.special_count = options->special.count;
    settings.paths = (const char *const *)options->path.item;
    settings.path_count = options->path.count;
    TR_TRY(tr_tokenizer_train(&settings, &tokenizer));
    tr_status status = tr_tokenizer_save(tokenizer, options->out);
    if (status == TR_OK)
        cli_printf("wrote %s tokens to %s\n", tr_text_from_count(tr_tokenizer_size(tokenizer), number),
                   options->out);
    tr_tokenizer_destroy(&tokenizer);
    return status;
}

const struct cli_command cli_data_tokenizer = {
    .name = "data tokenizer",
    .summary = "train a byte-level BPE tokenizer on files of text",
    .about =
        "Trains a vocabulary of subwords (byte-level BPE) and writes it as tokenizer.json, which model files "
        "name with unit: bpe and other programs read. Equal texts give equal files on every machine.",
    CLI_OPTIONS(train_table, struct train_options),
    .run = run_train,
};

/* ---- tokens ---- */

struct tokens_options {
    struct cli_common common;
    char *tokenizer, *path;
    bool decode;
};

static const struct tr_option tokens_table[] = {
    {.key = "tokenizer",
     .type = TR_OPTION_STRING,
     .offset = offsetof(struct tokens_options, tokenizer),
     .fallback = NULL,
     .help = "a tokenizer.json, or a directory that has one, or vocab.json and merges.txt",
     .flags = TR_OPTION_POSITIONAL,
     .value_name = "TOKENIZER"},
    {.key = "path",
     .type = TR_OPTION_STRING,
     .offset = offsetof(struct tokens_options, path),
     .fallback = NULL,
     .help = "file of text, or with --decode of numbers",
     .flags = TR_OPTION_POSITIONAL,
     .value_name = "FILE"},
    {.key = "decode",
     .type = TR_OPTION_BOOL,
     .offset = offsetof(struct tokens_options, decode),
     .fallback = "false",
     .help = "from numbers that blanks separate to their text",
     .letter = 'd'},
    CLI_OPTION_HELP(struct tokens_options),
};

#define FILE_MAX ((uint64_t)4 << 30)

static tr_status print_numbers(const tr_tokenizer *tokenizer, const struct tr_file_content *file)
{
    /* A token has at least one byte, but the composed form of a text may be longer than the text. */
    int64_t room, count = (int64_t)file->size + 1;
    int32_t *tokens = NULL;
    tr_status status;
    do {
        room = count;
        tr_free(tokens);
        tokens = tr_alloc((size_t)room, sizeof *tokens);
        status = tokens ? tr_tokenizer_encode(tokenizer, (const char *)file->data, (size_t)file->size, room,
                                              tokens, &count)
                        : TR_ENOMEM;
    } while (status == TR_OK && count > room);
    for (int64_t i = 0; status == TR_OK && i < count; i++)
        cli_printf("%s%" PRId32, i == 0 ? "" : i % 32 ? " " : "\n", tokens[i]);
    if (status == TR_OK) cli_printf("\n");
    tr_free(tokens);
    return status;
}

/* The numbers of a text, at most as many as it has bytes. TR_EFORMAT. */
static tr_status read_numbers(const struct tr_file_content *file, int32_t *tokens, int64_t *count)
{
    const char *at = (const char *)file->data, *end = at + file->size;
    *count = 0;
    for (;;) {
        char word[16] = "";
        size_t length = 0;
        int64_t number;
        while (at < end && (*at == ' ' || (*at >= '\t' && *at <= '\r'))) at++;
        if (at == end) return TR_OK;
        for (; at < end && *at != ' ' && !(*at >= '\t' && *at <= '\r'); at++)
            if (length < sizeof word - 1) word[length++] = *at;
        if (tr_text_int64(word, &number) || number < 0 || number > INT32_MAX)
            return tr_fail(TR_EFORMAT, "\"%s\", number %" PRId64 " of the file, is no token", word,
                           *count + 1);
        tokens[(*count)++] = (int32_t)number;
    }
}

static tr_status print_text(const tr_tokenizer *tokenizer, const struct tr_file_content *file)
{
    int64_t count;
    size_t length = 0, again;
    char *text = NULL;
    int32_t *tokens = tr_alloc((size_t)file->size + 1, sizeof *tokens);
    tr_status status = tokens ? read_numbers(file, tokens, &count) : TR_ENOMEM;
    if (status == TR_OK) status = tr_tokenizer_decode(tokenizer, tokens, count, 0, NULL, &length);
    if (status == TR_OK && !(text = tr_alloc(length + 1, 1))) status = TR_ENOMEM;
    if (status == TR_OK) status = tr_tokenizer_decode(tokenizer, tokens, count, length, text, &again);
    if (status == TR_OK) cli_output_raw(text, length);
    tr_free(text);
    tr_free(tokens);
    return status;
}

static tr_status run_tokens(const void *options_)
{
    const struct tokens_options *options = options_;
    struct tr_file_content file;
    tr_tokenizer *tokenizer;
    TR_TRY(tr_tokenizer_open(options->tokenizer, &tokenizer));
    tr_status status = tr_file_read(options->path, FILE_MAX, &file);
    if (status == TR_OK) {
        status = options->decode ? print_text(tokenizer, &file) : print_numbers(tokenizer, &file);
        tr_file_content_free(&file);
    }
    tr_tokenizer_destroy(&tokenizer);
    return status;
}

const struct cli_command cli_data_tokens = {
    .name = "data tokens",
    .summary = "print the tokens of a text, or the text of tokens",
    .about = "Prints the numbers of the tokens of a text, separated by blanks, or with --decode the text of "
             "numbers.",
    CLI_OPTIONS(tokens_table, struct tokens_options),
    .run = run_tokens,
};
