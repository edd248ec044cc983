/* Tokenizers for programs: the public functions over data/bpe/bpe.h. */
#include "trireme/tokenizer.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/sized.h"
#include "data/bpe/bpe.h"
#include "data/files/lines.h"

#include <string.h>

struct tr_tokenizer {
    tr_bpe *bpe;
};

static tr_status wrap(tr_status status, tr_bpe **bpe, tr_tokenizer **out)
{
    tr_tokenizer *tokenizer = status == TR_OK ? tr_alloc(1, sizeof *tokenizer) : NULL;
    if (!tokenizer) {
        tr_bpe_destroy(bpe);
        return status == TR_OK ? TR_ENOMEM : status;
    }
    tokenizer->bpe = *bpe;
    *out = tokenizer;
    return TR_OK;
}

tr_status tr_tokenizer_open(const char *path, tr_tokenizer **out)
{
    tr_bpe *bpe = NULL;
    tr_status status = tr_bpe_open(path, &bpe);
    return wrap(status, &bpe, out);
}

void tr_tokenizer_destroy(tr_tokenizer **handle)
{
    if (!*handle) return;
    tr_bpe_destroy(&(*handle)->bpe);
    tr_free(*handle);
    *handle = NULL;
}

/* ---- training ---- */

static tr_status check_settings(const struct tr_tokenizer_settings *settings, enum tr_bpe_pattern *pattern)
{
    const struct tr_choice *choice = tr_bpe_pattern_choices;
    while (choice->name && (!settings->pattern || strcmp(choice->name, settings->pattern) != 0)) choice++;
    if (!choice->name)
        return tr_fail(TR_EINVAL, "pattern \"%s\" is none of gpt2, cl100k and qwen2",
                       settings->pattern ? settings->pattern : "");
    if (settings->path_count < 1)
        return tr_fail(TR_EINVAL, "no file of text is given to train a tokenizer on");
    if (settings->least < 1)
        return tr_fail(TR_EINVAL, "pairs are merged from %lld occurrences on; give at least 1",
                       (long long)settings->least);
    *pattern = (enum tr_bpe_pattern)choice->value;
    return TR_OK;
}

static tr_status count_file(tr_bpe_trainer *trainer, const char *path)
{
    struct tr_load file;
    TR_TRY(tr_load_file(path, &file));
    tr_status status = tr_bpe_trainer_count(trainer, (const char *)file.data, file.size);
    tr_free(file.data);
    return status;
}

static tr_status train(const struct tr_tokenizer_settings *settings, struct tr_bpe_training *training,
                       tr_bpe **bpe)
{
    tr_bpe_trainer *trainer;
    TR_TRY(tr_bpe_trainer_create(training, &trainer));
    tr_status status = TR_OK;
    for (int32_t i = 0; i < settings->path_count && status == TR_OK; i++)
        status = count_file(trainer, settings->paths[i]);
    if (status == TR_OK) status = tr_bpe_trainer_finish(trainer, bpe);
    tr_bpe_trainer_destroy(&trainer);
    return status;
}

tr_status tr_tokenizer_train(const struct tr_tokenizer_settings *given, tr_tokenizer **out)
{
    static const struct tr_tokenizer_settings defaults = TR_TOKENIZER_SETTINGS_INIT;
    struct tr_tokenizer_settings settings;
    struct tr_bpe_training training = {0};
    tr_bpe *bpe = NULL;
    TR_TRY(tr_sized_take(given, &defaults, sizeof defaults, "TR_TOKENIZER_SETTINGS_INIT", &settings));
    TR_TRY(check_settings(&settings, &training.pattern));
    const char **special = tr_alloc((size_t)settings.special_count + 1, sizeof *special);
    if (!special) return TR_ENOMEM;
    for (int32_t i = 0; i < settings.special_count; i++) special[i] = settings.special[i];
    special[settings.special_count] = NULL;
    training.size = settings.tokens;
    training.least = settings.least;
    training.special = special;
    tr_status status = train(&settings, &training, &bpe);
    tr_free(special);
    return wrap(status, &bpe, out);
}

tr_status tr_tokenizer_save(const tr_tokenizer *tokenizer, const char *path)
{
    char *text;
    TR_TRY(tr_bpe_write(tokenizer->bpe, &text));
    tr_status status = tr_file_write_atomic(NULL, path, text, strlen(text));
    tr_free(text);
    return status;
}

/* ---- use ---- */

int32_t tr_tokenizer_size(const tr_tokenizer *tokenizer)
{
    return tr_bpe_size(tokenizer->bpe);
}

tr_status tr_tokenizer_encode(const tr_tokenizer *tokenizer, const char *text, size_t length, int64_t room,
                              int32_t *tokens, int64_t *count)
{
    int32_t *all;
    TR_TRY(tr_bpe_encode(tokenizer->bpe, text, length, &all, count));
    const int64_t taken = *count < room ? *count : room;
    if (taken > 0) memcpy(tokens, all, (size_t)taken * sizeof *tokens);
    tr_free(all);
    return TR_OK;
}

tr_status tr_tokenizer_decode(const tr_tokenizer *tokenizer, const int32_t *tokens, int64_t count,
                              size_t room, char *text, size_t *length)
{
    *length = 0;
    for (int64_t i = 0; i < count; i++) {
        size_t size = 0;
        const char *bytes = NULL;
        if (tokens[i] >= 0 && tokens[i] < tr_bpe_size(tokenizer->bpe))
            bytes = tr_bpe_token(tokenizer->bpe, tokens[i], &size);
        if (size == 0)
            return tr_fail(TR_EINVAL, "number %lld, %d, is no token; the tokenizer has %d, counted from 0",
                           (long long)i + 1, (int)tokens[i], (int)tr_bpe_size(tokenizer->bpe));
        if (*length < room) memcpy(text + *length, bytes, size < room - *length ? size : room - *length);
        *length += size;
    }
    return TR_OK;
}
