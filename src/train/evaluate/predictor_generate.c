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

/* Puts the boundary in front of the tokens. */
static tr_status put_boundary(int32_t boundary, int32_t **tokens, int64_t *count)
{
    int32_t *grown = tr_realloc(*tokens, (size_t)*count + 1, sizeof *grown);
    if (!grown) return TR_ENOMEM;
    *tokens = grown;
    memmove(grown + 1, grown, (size_t)*count * sizeof *grown);
    grown[0] = boundary;
    ++*count;
    return TR_OK;
}

/* The tokens of a prompt; returned, free with tr_free(), also after a failure. */
static tr_status read_prompt(tr_predictor *predictor, const char *prompt, int32_t **out, int64_t *count)
{
    TR_TRY(tr_predictor_open_vocabulary(predictor));
    const tr_vocabulary *vocabulary = predictor->vocabulary;
    const int32_t boundary = tr_vocabulary_boundary(vocabulary);
    if (!prompt) prompt = boundary < 0 ? "\n" : "";
    size_t length = strlen(prompt);
    int32_t *tokens;
    TR_TRY(tr_vocabulary_encode_all(vocabulary, prompt, length, &tokens, count));
    *out = tokens;
    if (*count == 0 && boundary < 0)
        return tr_fail(TR_EINVAL, "the prompt is empty; give at least one token to go on from");
    if (*count > TR_TOKENS_MAX)
        return tr_fail(TR_EINVAL, "the prompt has %lld tokens; at most %d are taken", (long long)*count,
                       TR_TOKENS_MAX);
    int64_t unknown = find_unknown(vocabulary, prompt, tokens, *count);
    if (unknown < 0) return boundary < 0 ? TR_OK : put_boundary(boundary, out, count);
    size_t begin = tr_vocabulary_reach(vocabulary, prompt, length, unknown);
    size_t end = tr_vocabulary_reach(vocabulary, prompt, length, unknown + 1);
    return tr_fail(TR_EINVAL, "the prompt's token %lld, \"%.*s\", is none of the %d that the network knows",
                   (long long)unknown + 1, (int)(end - begin < 80 ? end - begin : 80), prompt + begin,
                   (int)tr_vocabulary_size(vocabulary));
}

/* Gives the generator the second text. */
static tr_status read_source(tr_predictor *predictor, const char *text, tr_generator *generator)
{
    const char *name = predictor->job->parts.second;
    if (!name[0] && !text) return TR_OK;
    if (!name[0])
        return tr_fail(TR_EINVAL,
                       "a source is given, and the network of \"%s\" takes one text; give it as the prompt",
                       predictor->path);
    if (!text)
        return tr_fail(TR_EINVAL, "the network of \"%s\" takes another text, \"%s\"; give it as the source",
                       predictor->path, name);
    const tr_vocabulary *vocabulary = predictor->second;
    const size_t length = strlen(text);
    const int64_t wrong = tr_vocabulary_no_id(vocabulary, text, length);
    if (wrong >= 0)
        return tr_fail(TR_EINVAL, "token %lld of the source is no number below %d", (long long)wrong + 1,
                       (int)tr_vocabulary_size(vocabulary));
    const int64_t count = tr_vocabulary_length(vocabulary, text, length);
    if (count == 0 || count > TR_TOKENS_MAX)
        return tr_fail(TR_EINVAL, "the source has %lld tokens; 1 to %d are taken", (long long)count,
                       TR_TOKENS_MAX);
    int32_t *tokens = tr_alloc((size_t)count, sizeof *tokens);
    if (!tokens) return TR_ENOMEM;
    tr_vocabulary_encode(vocabulary, text, length, count, tokens);
    tr_status status = tr_generator_source(generator, tokens, count);
    tr_free(tokens);
    return status;
}

static tr_status check_generate(const struct tr_generate_settings *settings)
{
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

/* After a prompt of so many tokens. */
static tr_status generate(const tr_predictor *predictor, const struct tr_generate_settings *settings,
                          int64_t prompt, tr_generator *generator, tr_text_listener listener, void *user)
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
    /* A whole text begins without a blank. */
    bool begun = tr_vocabulary_boundary(vocabulary) < 0 || (settings->prompt && *settings->prompt);
    const int64_t context = tr_generator_context(generator);
    for (int64_t i = 0; status == TR_OK && i < settings->tokens; i++) {
        int32_t token;
        /* Without its beginning a whole text is another one. */
        if (tr_vocabulary_boundary(vocabulary) >= 0 && context > 0 && prompt + i > context) break;
        status = tr_generator_next(generator, &sampling, &token);
        if (status != TR_OK || token == tr_vocabulary_boundary(vocabulary)) break;
        piece.length = 0;
        tr_vocabulary_decode(vocabulary, &token, 1, begun, &piece);
        begun = true;
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
    if (status == TR_OK) status = read_source(predictor, settings.source, generator);
    if (status == TR_OK) status = tr_generator_begin(generator, tokens, count);
    if (status == TR_OK) status = generate(predictor, &settings, count, generator, listener, user);
    tr_free(tokens);
    tr_generator_destroy(&generator);
    return status;
}

/* ---- from one text to another ---- */

static int keep_piece(void *user, const char *piece, size_t length)
{
    struct tr_text *text = user;
    tr_text_add_bytes(text, piece, length);
    return text->failed;
}

static tr_status begin_translation(tr_predictor *predictor)
{
    TR_TRY(tr_predictor_check_process(predictor));
    if (!predictor->writes || !predictor->job->parts.second[0])
        return tr_fail(
            TR_EUNSUPPORTED,
            "the network of \"%s\" does not make one text of another; it was not trained on two texts, the "
            "second with `next`",
            predictor->path);
    TR_TRY(tr_predictor_open_vocabulary(predictor));
    if (predictor->translator) return TR_OK;
    return tr_generator_create(predictor->device, predictor->job, predictor->parameters, 0,
                               &predictor->translator);
}

/* Writes what follows from the source that the translator has. */
static tr_status translate(tr_predictor *predictor, char **out)
{
    const struct tr_generate_settings settings = {.tokens = TR_TRANSLATION_TOKENS};
    const int32_t boundary = tr_vocabulary_boundary(predictor->vocabulary);
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "");
    tr_status status = tr_generator_begin(predictor->translator, &boundary, 1);
    if (status == TR_OK) status = generate(predictor, &settings, 1, predictor->translator, keep_piece, &text);
    if (text.failed) status = TR_ENOMEM;
    if (status == TR_OK) return tr_text_finish(&text, out);
    tr_text_release(&text);
    return status;
}

tr_status tr_predictor_translate(tr_predictor *predictor, const char *text, char **out)
{
    TR_TRY(begin_translation(predictor));
    TR_TRY(read_source(predictor, text, predictor->translator));
    return translate(predictor, out);
}

/* The text of an example's tokens. */
static tr_status read_truth(const tr_predictor *predictor, const tr_source *source, int64_t index, char **out)
{
    const int64_t room = tr_source_capacity(source);
    int32_t *tokens = tr_alloc((size_t)room, sizeof *tokens);
    struct tr_text text = TR_TEXT_INIT;
    int64_t count = 0;
    if (!tokens) return TR_ENOMEM;
    tr_text_add(&text, "");
    tr_status status = tr_source_read(source, index, tokens, room, &count, NULL);
    tr_vocabulary_decode(predictor->vocabulary, tokens, count, false, &text);
    tr_free(tokens);
    if (status == TR_OK) return tr_text_finish(&text, out);
    tr_text_release(&text);
    return status;
}

tr_status tr_predictor_translate_example(tr_predictor *predictor, const tr_source *source, int64_t index,
                                         char **out, char **truth)
{
    TR_TRY(begin_translation(predictor));
    TR_TRY(tr_job_check_source(predictor->job, source, "given", false));
    if (index < 0 || index >= tr_source_info(source)->count)
        return tr_fail(TR_EINVAL, "example %lld is asked for; the source has %lld, counted from 0",
                       (long long)index, (long long)tr_source_info(source)->count);
    int32_t *tokens = tr_alloc((size_t)source->parts->second_tokens, sizeof *tokens);
    int64_t count = 0;
    if (!tokens) return TR_ENOMEM;
    tr_status status = source->class->read_second(source, index, tokens, &count);
    if (status == TR_OK) status = tr_generator_source(predictor->translator, tokens, count);
    tr_free(tokens);
    TR_TRY(status);
    TR_TRY(translate(predictor, out));
    if (!truth) return TR_OK;
    status = read_truth(predictor, source, index, truth);
    if (status != TR_OK) {
        tr_text_free(*out);
        *out = NULL;
    }
    return status;
}
