#include "train/single.h"

#include "base/alloc.h"
#include "base/fail.h"

struct tr_single {
    tr_device *device;
    const struct tr_job *job;
    tr_source blank; /* stands for the source that there is not: no labels, images come with the batch */
    tr_feed *feed;
    tr_pass *pass;
    int64_t tokens; /* room in the pass */
};

/* Makes the pass, or a larger one for longer texts. */
static tr_status fit(tr_single *single, int64_t tokens)
{
    if (single->pass && tokens <= single->tokens) return TR_OK;
    tr_pass_destroy(&single->pass);
    single->tokens = tokens > 64 ? 2 * tokens : 64;
    struct tr_pass_limits limits = {.examples = 1, .tokens = single->tokens, .microbatches = 1};
    return tr_pass_create(single->device, single->job->model, &limits, &single->pass);
}

tr_status tr_single_create(tr_device *device, const struct tr_job *job, tr_single **out)
{
    tr_single *single = tr_alloc_zero(1, sizeof *single);
    if (!single) return TR_ENOMEM;
    *single = (tr_single){.device = device, .job = job};
    single->blank.info = (struct tr_source_info){
        .count = 1,
        .features = job->features,
        .labels = TR_LABEL_NONE,
    };
    if (job->features == TR_FEATURE_IMAGE) {
        single->blank.info.height = (int32_t)job->stored.size[0];
        single->blank.info.width = (int32_t)job->stored.size[1];
        single->blank.info.channels = (int32_t)job->stored.size[2];
    }
    tr_status status = fit(single, 1);
    const struct tr_feed_options feed = {.rows = 1, .features = true};
    if (status == TR_OK) status = tr_feed_create(device, job, &single->blank, &feed, &single->feed);
    if (status != TR_OK) {
        tr_single_destroy(&single);
        return status;
    }
    *out = single;
    return TR_OK;
}

void tr_single_destroy(tr_single **handle)
{
    tr_single *single = *handle;
    if (!single) return;
    tr_feed_destroy(&single->feed);
    tr_pass_destroy(&single->pass);
    tr_free(single);
    *handle = NULL;
}

tr_status tr_single_run(tr_single *single, const float *parameters, const struct tr_example *example,
                        float *output)
{
    int64_t index = 0;
    int32_t offset[2] = {0, (int32_t)example->token_count};
    /* The feed only reads what a batch points to. */
    struct tr_batch batch = {
        .global_rows = 1,
        .rows = 1,
        .index = &index,
        .images = (uint8_t *)example->image,
        .floats = (float *)example->floats,
        .tokens = (int32_t *)example->tokens,
        .offset = offset,
    };
    struct tr_pass_batch part = {.examples = 1, .tokens = example->token_count, .global_examples = 1};
    TR_TRY(fit(single, example->token_count));
    TR_TRY(tr_feed_rows(single->feed, single->pass, &batch, 0, 1, 0, NULL));
    TR_TRY(tr_pass_forward(single->pass, &part, parameters, NULL, 0));
    size_t bytes = (size_t)tr_shape_count(&single->job->model->output) * sizeof *output;
    TR_TRY(tr_device_to_host(single->device, output, tr_pass_output(single->pass), bytes));
    return tr_device_wait(single->device);
}
