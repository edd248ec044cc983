#include "job/feed.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/rng.h"
#include "base/timeline.h"

struct tr_feed {
    tr_device *device;
    const struct tr_job *job;
    const tr_source *source;
    bool augment;
    const uint8_t *images; /* device: all images of a resident source */
    void *uploaded;    /* device memory behind `images` where it is a copy, or room for a batch's images */
    int64_t *index;    /* device [rows] */
    int64_t *identity; /* host [rows]: 0, 1, 2, ... for images that come with the batch */
};

static tr_status upload_images(tr_feed *feed, int64_t rows)
{
    const tr_source *source = feed->source;
    const struct tr_source_info *info = tr_source_info(source);
    size_t image = (size_t)info->height * (size_t)info->width * (size_t)info->channels;
    TR_TRY(tr_device_alloc(feed->device, (size_t)rows * sizeof *feed->index, (void **)&feed->index));
    if (source->resident) {
        feed->images = tr_device_adopt(feed->device, source->resident);
        if (feed->images) return TR_OK;
        TR_TRY(tr_device_alloc(feed->device, image * (size_t)info->count, &feed->uploaded));
        TR_TRY(
            tr_device_to_device(feed->device, feed->uploaded, source->resident, image * (size_t)info->count));
        feed->images = feed->uploaded;
        return tr_device_wait(feed->device);
    }
    feed->identity = tr_alloc((size_t)rows, sizeof *feed->identity);
    if (!feed->identity) return TR_ENOMEM;
    for (int64_t i = 0; i < rows; i++) feed->identity[i] = i;
    TR_TRY(tr_device_alloc(feed->device, image * (size_t)rows, &feed->uploaded));
    feed->images = feed->uploaded;
    return TR_OK;
}

tr_status tr_feed_create(tr_device *device, const struct tr_job *job, const tr_source *source, int64_t rows,
                         bool augment, tr_feed **out)
{
    tr_feed *feed = tr_alloc_zero(1, sizeof *feed);
    if (!feed) return TR_ENOMEM;
    *feed = (tr_feed){.device = device, .job = job, .source = source, .augment = augment};
    tr_status status = job->features == TR_FEATURE_IMAGE ? upload_images(feed, rows) : TR_OK;
    if (status != TR_OK) {
        tr_feed_destroy(&feed);
        return status;
    }
    *out = feed;
    return TR_OK;
}

void tr_feed_destroy(tr_feed **handle)
{
    tr_feed *feed = *handle;
    if (!feed) return;
    tr_device_free(feed->device, feed->uploaded);
    tr_device_free(feed->device, feed->index);
    tr_free(feed->identity);
    tr_free(feed);
    *handle = NULL;
}

/* Item `i` of a list that holds one number for each channel, or one for all. */
static float of_channel(const struct tr_float_list *list, int i)
{
    return list->item[list->count > 1 && i < list->count ? i : 0];
}

bool tr_job_image_entry(const struct tr_job *job, struct tr_op_load_images *op)
{
    const struct tr_input_options *input = &job->input;
    const int64_t *stored = job->stored.size, *wanted = job->model->input.size;
    if (job->features != TR_FEATURE_IMAGE) return false;
    *op = (struct tr_op_load_images){
        .in_h = (int32_t)stored[0],
        .in_w = (int32_t)stored[1],
        .out_h = (int32_t)wanted[0],
        .out_w = (int32_t)wanted[1],
        .channels = (int32_t)stored[2],
        .pad = input->pad,
        .flip = input->flip,
    };
    for (int i = 0; i < 4; i++) {
        op->scale[i] = of_channel(&input->scale, i);
        op->shift[i] = of_channel(&input->shift, i);
    }
    return true;
}

static tr_status feed_images(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                             int64_t rows, uint64_t seed, const struct tr_step_scalars *scalars)
{
    const struct tr_job *job = feed->job;
    const struct tr_input_options *input = &job->input;
    const int64_t *stored = job->stored.size, *wanted = job->model->input.size;
    const int64_t *index = feed->source->resident ? batch->index + begin : feed->identity;
    TR_TRY(tr_device_to_device(feed->device, feed->index, index, (size_t)rows * sizeof *index));
    if (!feed->source->resident) {
        size_t image = (size_t)(stored[0] * stored[1] * stored[2]);
        TR_TRY(tr_device_to_device(feed->device, feed->uploaded, batch->images + (size_t)begin * image,
                                   (size_t)rows * image));
    }
    tr_rng_key key = tr_rng_key_make(seed, TR_RNG_AUGMENT);
    struct tr_op_load_images op;
    tr_job_image_entry(job, &op);
    op.rows = rows;
    op.random =
        feed->augment && (input->pad > 0 || input->flip || wanted[0] != stored[0] || wanted[1] != stored[1]);
    op.key[0] = key.k0;
    op.key[1] = key.k1;
    op.first_example = (uint32_t)(batch->first + begin);
    op.source = feed->images;
    op.index = feed->index;
    op.y = tr_pass_input(pass);
    op.scalars = scalars;
    return tr_device_load_images(feed->device, &op);
}

static tr_status feed_tokens(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                             int64_t rows)
{
    int64_t first = batch->offset[begin];
    size_t count = (size_t)(batch->offset[begin + rows] - first);
    /* Offsets of a part start at its own first token. In a whole batch that is 0 already. */
    int32_t *offset = batch->offset + begin;
    for (int64_t i = 0; first && i <= rows; i++) offset[i] -= (int32_t)first;
    tr_status status =
        tr_device_to_device(feed->device, tr_pass_offset(pass), offset, (size_t)(rows + 1) * sizeof *offset);
    if (status == TR_OK && first) status = tr_device_wait(feed->device);
    for (int64_t i = 0; first && i <= rows; i++) offset[i] += (int32_t)first;
    if (status != TR_OK || !tr_pass_token(pass)) return status;
    return tr_device_to_device(feed->device, tr_pass_token(pass), batch->tokens + first,
                               count * sizeof *batch->tokens);
}

static tr_status feed_rows(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                           int64_t rows, uint64_t seed, const struct tr_step_scalars *scalars)
{
    switch (feed->job->features) {
    case TR_FEATURE_IMAGE:
        if (tr_pass_input(pass)) TR_TRY(feed_images(feed, pass, batch, begin, rows, seed, scalars));
        break;
    case TR_FEATURE_FLOATS: {
        if (!tr_pass_input(pass)) break;
        int64_t width = tr_shape_count(&feed->job->stored);
        TR_TRY(tr_device_to_device(feed->device, tr_pass_input(pass), batch->floats + begin * width,
                                   (size_t)(rows * width) * sizeof(float)));
        break;
    }
    case TR_FEATURE_TOKENS:
        TR_TRY(feed_tokens(feed, pass, batch, begin, rows));
        break;
    }
    const struct tr_source_info *info = tr_source_info(feed->source);
    if (info->labels == TR_LABEL_CLASS && tr_pass_label(pass))
        return tr_device_to_device(feed->device, tr_pass_label(pass), batch->labels + begin,
                                   (size_t)rows * sizeof(int32_t));
    if (info->labels == TR_LABEL_VALUES && tr_pass_target(pass))
        return tr_device_to_device(feed->device, tr_pass_target(pass), batch->targets + begin * info->values,
                                   (size_t)(rows * info->values) * sizeof(float));
    return TR_OK;
}

tr_status tr_feed_rows(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin, int64_t end,
                       uint64_t seed, const struct tr_step_scalars *scalars)
{
    if (end == begin) return TR_OK;
    tr_span_begin(TR_ACTIVITY_INPUT, "to the network");
    tr_status status = feed_rows(feed, pass, batch, begin, end - begin, seed, scalars);
    tr_span_end();
    return status;
}
