/* Text from a predictor, piece by piece. */
#include "train/evaluate/predictor.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/sized.h"
#include "train/evaluate/generator.h"

#include <string.h>

/* Which token of a prompt is unknown, -1 for none. All bytes are known. */
static int64_t find_unknown(const tr_vocabulary *vocabulary, const char *prompt, const int32_t *tokens,
                            int64_t count)
{
    for (int64_t i = 0; tr_vocabulary_has_unknown(vocabulary) && i < count; i++)
        if (tokens[i] == 0) return i;
    return tr_vocabulary_no_id(vocabulary, prompt, strlen(prompt));
}

/* The tokens of a prompt; returned, free with tr_free(), also after a failure. */
static tr_status read_prompt(tr_predictor *predictor, const char *prompt, int32_t **out, int64_t *count)
{
    TR_TRY(tr_predictor_open_vocabulary(predictor));
    const tr_vocabulary *vocabulary = predictor->vocabulary;
    size_t length = strlen(prompt);
    int32_t *tokens;
    TR_TRY(tr_vocabulary_encode_all(vocabulary, prompt, length, &tokens, count));
    *out = tokens;
    if (*count == 0) return tr_fail(TR_EINVAL, "the prompt is empty; give at least one token to go on from");
    if (*count > TR_TOKENS_MAX)
        return tr_fail(TR_EINVAL, "the prompt has %lld tokens; at most %d are taken", (long long)*count,
                       TR_TOKENS_MAX);
    int64_t unknown = find_unknown(vocabulary, prompt, tokens, *count);
    if (unknown < 0) return TR_OK;
    size_t begin = tr_vocabulary_reach(vocabulary, prompt, length, unknown);
    size_t end = tr_vocabulary_reach(vocabulary, prompt, length, unknown + 1);
    return tr_fail(TR_EINVAL, "the prompt's token %lld, \"%.*s\", is none of the %d that the network knows",
                   (long long)unknown + 1, (int)(end - begin < 80 ? end - begin : 80), prompt + begin,
                   (int)tr_vocabulary_size(vocabulary));
}

static tr_status check_generate(const struct tr_generate_settings *settings)
{
    if (!settings->prompt) return tr_fail(TR_EINVAL, "no prompt is given");
    if (settings->tokens < 1 || settings->tokens > 1 << 30)
        return tr_fail(TR_EINVAL, "%lld tokens are wanted; give 1 to %d", (long long)settings->tokens,
                       1 << 30);
    if (!(settings->temperature >= 0 && settings->temperature <= 1e6))
        return tr_fail(TR_EINVAL, "temperature is %g; give 0 to 1e6", settings->temperature);
    if (settings->top_k < 0 || settings->context < 0)
        return tr_fail(TR_EINVAL, "top_k is %d and context %lld; neither may be negative",
                       (int)settings->top_k, (long long)settings->context);
    return TR_OK;
}

static tr_status generate(tr_predictor *predictor, const struct tr_generate_settings *settings,
                          tr_generator *generator, tr_text_listener listener, void *user)
{
    const tr_vocabulary *vocabulary = predictor->vocabulary;
    const struct tr_decoding sampling = {
        .temperature = (float)settings->temperature,
        .top_k = settings->top_k,
        .has_unknown = tr_vocabulary_has_unknown(vocabulary),
        .seed = settings->seed,
    };
    struct tr_text piece = TR_TEXT_INIT;
    tr_status status = TR_OK;
    for (int64_t i = 0; status == TR_OK && i < settings->tokens; i++) {
        int32_t token;
        status = tr_generator_next(generator, &sampling, &token);
        if (status != TR_OK) break;
        piece.length = 0;
        tr_vocabulary_decode(vocabulary, &token, 1, true, &piece);
        if (piece.failed)
            status = TR_ENOMEM;
        else if (listener && listener(user, piece.bytes, piece.length))
            status = tr_fail(TR_EINTERRUPTED, "the text was ended after %lld tokens", (long long)i + 1);
    }
    tr_text_release(&piece);
    return status;
}

tr_status tr_predictor_generate(tr_predictor *predictor, const struct tr_generate_settings *given,
                                tr_text_listener listener, void *user)
{
    static const struct tr_generate_settings defaults = TR_GENERATE_SETTINGS_INIT;
    struct tr_generate_settings settings;
    tr_generator *generator;
    int32_t *tokens = NULL;
    int64_t count;
    TR_TRY(tr_predictor_check_process(predictor));
    TR_TRY(tr_sized_take(given, &defaults, sizeof defaults, "TR_GENERATE_SETTINGS_INIT", &settings));
    TR_TRY(check_generate(&settings));
    TR_TRY(tr_generator_create(predictor->device, predictor->job, predictor->parameters, settings.context,
                               &generator));
    tr_status status = read_prompt(predictor, settings.prompt, &tokens, &count);
    if (status == TR_OK) status = tr_generator_begin(generator, tokens, count);
    if (status == TR_OK) status = generate(predictor, &settings, generator, listener, user);
    tr_free(tokens);
    tr_generator_destroy(&generator);
    return status;
}
