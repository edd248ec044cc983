#include "train/evaluate/given.h"

#include "base/alloc.h"
#include "base/fail.h"

struct tr_given {
    tr_device *device;
    const struct tr_job *job;
    tr_source blank; /* a substitute for a source: no labels, images come with the batch */
    tr_feed *feed;
    tr_pass *pass;
    int64_t *index;       /* [rows] */
    int64_t rows, tokens; /* room in feed and pass */
};

static void release(tr_given *given)
{
    tr_feed_destroy(&given->feed);
    tr_pass_destroy(&given->pass);
    tr_free(given->index);
    given->index = NULL;
}

static tr_status make(tr_given *given)
{
    const struct tr_pass_limits limits = {
        .examples = given->rows, .tokens = given->tokens, .microbatches = 1};
    const struct tr_feed_options feed = {.rows = given->rows, .features = true};
    given->index = tr_alloc_zero((size_t)given->rows, sizeof *given->index);
    if (!given->index) return TR_ENOMEM;
    TR_TRY(tr_feed_create(given->device, given->job, &given->blank, &feed, &given->feed));
    return tr_pass_create(given->device, given->job->model, &limits, &given->pass);
}

/* Makes feed and pass, or larger ones. */
static tr_status fit(tr_given *given, int64_t rows, int64_t tokens)
{
    if (given->pass && rows <= given->rows && tokens <= given->tokens) return TR_OK;
    release(given);
    if (rows > given->rows) given->rows = rows;
    if (tokens > given->tokens) given->tokens = tokens > 64 ? 2 * tokens : 64;
    tr_status status = make(given);
    if (status != TR_OK) release(given);
    return status;
}

tr_status tr_given_create(tr_device *device, const struct tr_job *job, tr_given **out)
{
    tr_given *given = tr_alloc_zero(1, sizeof *given);
    if (!given) return TR_ENOMEM;
    *given = (tr_given){.device = device, .job = job};
    given->blank.info = (struct tr_source_info){
        .count = 1,
        .features = job->features,
        .labels = TR_LABEL_NONE,
    };
    if (job->features == TR_FEATURE_IMAGE) {
        given->blank.info.height = (int32_t)job->stored.size[0];
        given->blank.info.width = (int32_t)job->stored.size[1];
        given->blank.info.channels = (int32_t)job->stored.size[2];
    }
    *out = given;
    return TR_OK;
}

void tr_given_destroy(tr_given **handle)
{
    tr_given *given = *handle;
    if (!given) return;
    release(given);
    tr_free(given);
    *handle = NULL;
}

tr_status tr_given_run(tr_given *given, const float *parameters, const struct tr_given_examples *examples,
                       float *output)
{
    const struct tr_shape *shape = &given->job->model->output;
    int64_t count = examples->count, tokens = examples->offset ? examples->offset[count] : 0;
    TR_TRY(fit(given, count, tokens));
    /* The feed only reads what a batch points to. */
    const struct tr_batch batch = {
        .global_rows = count,
        .rows = count,
        .index = given->index,
        .images = (uint8_t *)examples->images,
        .floats = (float *)examples->floats,
        .tokens = (int32_t *)examples->tokens,
        .offset = (int32_t *)examples->offset,
    };
    struct tr_pass_batch part = {.examples = count, .tokens = tokens, .global_examples = count};
    TR_TRY(tr_feed_rows(given->feed, given->pass, &batch, 0, count, 0, NULL));
    TR_TRY(tr_pass_forward(given->pass, &part, parameters, NULL, 0));
    int64_t rows = shape->sequence ? tokens : count;
    size_t bytes = (size_t)(rows * tr_shape_count(shape)) * sizeof *output;
    TR_TRY(tr_device_to_host(given->device, output, tr_pass_output(given->pass), bytes));
    return tr_device_wait(given->device);
}
