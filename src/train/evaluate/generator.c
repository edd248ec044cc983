/* If layers can continue a sequence, a token costs only its own row, and the layers remember the earlier
 * rows. Otherwise, and whenever the network sees only the last tokens and these move on, all rows are
 * computed again. The bits are the same.
 */
#include "train/evaluate/generator.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "nn/pass/pass.h"

#include <string.h>

#define TOKENS_LEAST 64 /* room at first */

struct tr_generator {
    tr_device *device;
    const struct tr_job *job;
    const float *parameters;
    int64_t context; /* 0: unlimited */
    tr_pass *pass;
    int64_t room;      /* tokens of the pass */
    void **memory;     /* [layers] memory of layers that continue */
    void *whole;       /* device int32_t [2], see struct tr_layer_past */
    bool extends;      /* they all can */
    int64_t remembers; /* tokens in that memory */
    int32_t *tokens;   /* [count] tokens that the network sees: the last ones, at most `context` */
    int64_t count, token_room;
    int32_t *second;                   /* [second_count] tokens of the second text; NULL without one */
    int64_t second_count, second_room; /* room of the pass */
    uint64_t drawn;                    /* tokens after the prompt */
    float *scores;                     /* host [outputs] */
};

static int64_t outputs_of(const tr_generator *generator)
{
    return tr_shape_count(&generator->job->model->output);
}

/* ---- making ---- */

static tr_status check(const struct tr_job *job)
{
    const struct tr_model *model = job->model;
    char text[TR_SHAPE_TEXT];
    if (job->features != TR_FEATURE_TOKENS)
        return tr_fail(TR_EUNSUPPORTED,
                       "the network takes no text; text comes from one that was trained on a corpus");
    if (job->parts.count > 0)
        return tr_fail(TR_EUNSUPPORTED, "the network takes numbers beside its text; text comes from one that "
                                        "was trained on a corpus, or on two texts");
    if (!tr_job_takes_classes(job) || tr_shape_count(&model->output) < model->vocabulary ||
        !(job->state && tr_job_is_of_tokens(job)))
        return tr_fail(
            TR_EUNSUPPORTED,
            "the network's output is %s, not a score for each of %lld tokens after each token; text comes "
            "from one that was trained on a corpus, or on texts with `next`",
            tr_shape_text(&model->output, text), (long long)model->vocabulary);
    return TR_OK;
}

static void forget(tr_generator *generator)
{
    const struct tr_model *model = generator->job->model;
    for (int i = 0; generator->memory && i < model->layer_count; i++) {
        tr_device_free(generator->device, generator->memory[i]);
        generator->memory[i] = NULL;
    }
    tr_pass_destroy(&generator->pass);
    generator->remembers = 0;
}

static tr_status make_memory(tr_generator *generator)
{
    const struct tr_model *model = generator->job->model;
    for (int i = 0; generator->extends && i < model->layer_count; i++) {
        const struct tr_layer_class *class = model->layers[i].class;
        const int64_t room = model->layers[i].tokens_memory < 0 ? generator->second_room : generator->room;
        int64_t bytes = class->memory ? class->memory(&model->layers[i], room) : 0;
        if (bytes > 0) TR_TRY(tr_device_alloc(generator->device, (size_t)bytes, &generator->memory[i]));
    }
    return TR_OK;
}

/* Makes room for `tokens` in the pass and in the layers' memory, which begins anew if it grows. */
static tr_status fit(tr_generator *generator, int64_t tokens)
{
    if (generator->pass && tokens <= generator->room && generator->second_count <= generator->second_room)
        return TR_OK;
    forget(generator);
    if (generator->second_count > generator->second_room) generator->second_room = generator->second_count;
    generator->room = tokens > TOKENS_LEAST ? 2 * tokens : TOKENS_LEAST;
    if (generator->context > 0 && generator->room > generator->context) generator->room = generator->context;
    struct tr_pass_limits limits = {
        .examples = 1, .tokens = generator->room, .second_tokens = generator->second_room, .microbatches = 1};
    TR_TRY(tr_pass_create(generator->device, generator->job->model, &limits, &generator->pass));
    tr_status status = make_memory(generator);
    if (status != TR_OK) forget(generator); /* a pass alone would be taken for room next time */
    return status;
}

/* The requested context, limited by what all layers allow. */
static int64_t context_of(const struct tr_model *model, int64_t wanted)
{
    const int64_t longest = tr_model_longest(model);
    return longest > 0 && (wanted == 0 || wanted > longest) ? longest : wanted;
}

tr_status tr_generator_create(tr_device *device, const struct tr_job *job, const float *parameters,
                              int64_t context, tr_generator **out)
{
    TR_TRY(check(job));
    tr_generator *generator = tr_alloc_zero(1, sizeof *generator);
    if (!generator) return TR_ENOMEM;
    *generator = (tr_generator){
        .device = device,
        .job = job,
        .parameters = parameters,
        .context = context_of(job->model, context),
        .extends = tr_model_extends(job->model),
        .second_room = job->model->second_text[0] ? 1 : 0,
    };
    generator->memory = tr_alloc_zero((size_t)job->model->layer_count, sizeof *generator->memory);
    generator->scores = tr_alloc((size_t)outputs_of(generator), sizeof *generator->scores);
    tr_status status = generator->memory && generator->scores
                           ? tr_device_alloc(device, 2 * sizeof(int32_t), &generator->whole)
                           : TR_ENOMEM;
    if (status == TR_OK) status = fit(generator, 1);
    if (status != TR_OK) {
        tr_generator_destroy(&generator);
        return status;
    }
    *out = generator;
    return TR_OK;
}

int64_t tr_generator_context(const tr_generator *generator)
{
    return generator->context;
}

void tr_generator_destroy(tr_generator **handle)
{
    tr_generator *generator = *handle;
    if (!generator) return;
    forget(generator);
    tr_device_free(generator->device, generator->whole);
    tr_free(generator->memory);
    tr_free(generator->tokens);
    tr_free(generator->second);
    tr_free(generator->scores);
    tr_free(generator);
    *handle = NULL;
}

/* ---- running ---- */

/* Adds a token to those that the network sees. */
static tr_status push(tr_generator *generator, int32_t token)
{
    if (generator->context > 0 && generator->count == generator->context) {
        /* All positions change, so the layers' memory is useless. */
        memmove(generator->tokens, generator->tokens + 1, (size_t)--generator->count * sizeof token);
        generator->remembers = 0;
    }
    if (generator->count == generator->token_room) {
        int64_t room = 2 * generator->token_room + TOKENS_LEAST;
        int32_t *grown = tr_realloc(generator->tokens, (size_t)room, sizeof *grown);
        if (!grown) return TR_ENOMEM;
        generator->tokens = grown;
        generator->token_room = room;
    }
    generator->tokens[generator->count++] = token;
    return TR_OK;
}

tr_status tr_generator_source(tr_generator *generator, const int32_t *tokens, int64_t count)
{
    const size_t bytes = (size_t)count * sizeof *tokens;
    int32_t *own = tr_alloc((size_t)count, sizeof *own);
    if (!own) return TR_ENOMEM;
    memcpy(own, tokens, bytes);
    tr_free(generator->second);
    generator->second = own;
    generator->second_count = count;
    generator->remembers = 0;
    return TR_OK;
}

tr_status tr_generator_begin(tr_generator *generator, const int32_t *tokens, int64_t count)
{
    generator->count = generator->remembers = 0;
    generator->drawn = 0;
    /* Tokens that the network would not see are skipped. */
    int64_t seen = generator->context > 0 && count > generator->context ? generator->context : count;
    for (int64_t i = count - seen; i < count; i++) TR_TRY(push(generator, tokens[i]));
    return TR_OK;
}

/* The second text, where the layers do not remember it. */
static tr_status send_second(tr_generator *generator, int64_t past, const int32_t offset[2])
{
    tr_device *device = generator->device;
    if (past > 0 || !generator->second) return TR_OK;
    TR_TRY(tr_device_to_device(device, tr_pass_second_offset(generator->pass), offset, 2 * sizeof *offset));
    return tr_device_to_device(device, tr_pass_second_token(generator->pass), generator->second,
                               (size_t)generator->second_count * sizeof *generator->second);
}

/* The scores of the next token. */
static tr_status score(tr_generator *generator)
{
    TR_TRY(fit(generator, generator->count));
    int64_t past = generator->extends ? generator->remembers : 0, rows = generator->count - past;
    int32_t offset[2] = {0, (int32_t)rows}, whole[2] = {0, (int32_t)generator->count};
    const int32_t second[2] = {0, (int32_t)generator->second_count};
    tr_device *device = generator->device;
    tr_pass *pass = generator->pass;
    TR_TRY(tr_device_to_device(device, tr_pass_offset(pass), offset, sizeof offset));
    TR_TRY(tr_device_to_device(device, tr_pass_token(pass), generator->tokens + past,
                               (size_t)rows * sizeof *generator->tokens));
    TR_TRY(send_second(generator, past, second));
    struct tr_pass_batch batch = {
        .examples = 1, .tokens = rows, .global_examples = 1, .second_tokens = generator->second_count};
    struct tr_layer_past before = {past, generator->room, generator->whole, generator->memory};
    TR_TRY(tr_device_to_device(device, generator->whole, whole, sizeof whole));
    if (generator->extends)
        TR_TRY(tr_pass_extend(pass, &batch, generator->parameters, &before));
    else
        TR_TRY(tr_pass_forward(pass, &batch, generator->parameters, NULL, 0));
    int64_t outputs = outputs_of(generator);
    TR_TRY(tr_device_to_host(device, generator->scores, tr_pass_output(pass) + (rows - 1) * outputs,
                             (size_t)outputs * sizeof *generator->scores));
    TR_TRY(tr_device_wait(device));
    generator->remembers = generator->count;
    return TR_OK;
}

tr_status tr_generator_next(tr_generator *generator, const struct tr_decoding *sampling, int32_t *token)
{
    TR_TRY(score(generator));
    *token = tr_sample(sampling, generator->drawn++, generator->scores, generator->job->model->vocabulary);
    return push(generator, *token);
}
