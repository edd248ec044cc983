#include "job/feed.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/timeline.h"
#include "job/input.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A set that is larger than a device's room divided by this is not kept there: passes and evaluations want
   some, too. */
#define ROOM_PARTS 2

/* Host memory for what is put together for the device, which takes it while the next is put together. */
struct outgoing {
    void *memory[2];
    tr_event sent[2];
    bool used[2];
    int turn;
};

struct tr_feed {
    tr_device *device;
    const struct tr_job *job;
    const tr_source *source;
    bool augment;
    /* Images: */
    bool kept;                /* all of a resident source are on the device, or where it reads them */
    const uint8_t *images;    /* device: all, or those of a run */
    void *uploaded;           /* the device's memory that they are in, where it is a copy */
    int64_t *index;           /* device [rows] */
    int64_t *identity;        /* host [rows]: 0, 1, 2, ... for images that come with the batch */
    struct outgoing gathered; /* [rows] images that were taken from a resident source on the host */
    /* Tokens: */
    struct outgoing offsets; /* [rows + 1] */
    /* Of joined sources with images: each image of a batch as bytes and as numbers, and the vectors. */
    struct tr_source_parts parts; /* as the network takes them */
    void *part_bytes[TR_SOURCE_PARTS];
    void *part_floats[TR_SOURCE_PARTS + 1]; /* behind the images the vectors */
};

/* ---- outgoing ---- */

static tr_status make_outgoing(tr_feed *feed, size_t bytes, struct outgoing *outgoing)
{
    for (int i = 0; i < 2; i++) TR_TRY(tr_device_alloc_pinned(feed->device, bytes, &outgoing->memory[i]));
    return TR_OK;
}

static void release_outgoing(tr_feed *feed, struct outgoing *outgoing)
{
    for (int i = 0; i < 2; i++) tr_device_free_pinned(feed->device, outgoing->memory[i]);
}

/* Memory that the device has taken what was in it from. */
static tr_status take_outgoing(tr_feed *feed, struct outgoing *outgoing, void **out)
{
    bool there = true;
    outgoing->turn ^= 1;
    if (outgoing->used[outgoing->turn])
        TR_TRY(tr_device_reached(feed->device, outgoing->sent[outgoing->turn], &there));
    if (!there) TR_TRY(tr_device_wait(feed->device));
    *out = outgoing->memory[outgoing->turn];
    return TR_OK;
}

static tr_status send_outgoing(tr_feed *feed, struct outgoing *outgoing, void *to, size_t bytes)
{
    TR_TRY(tr_device_to_device(feed->device, to, outgoing->memory[outgoing->turn], bytes));
    outgoing->used[outgoing->turn] = true;
    return tr_device_record(feed->device, &outgoing->sent[outgoing->turn]);
}

/* ---- making ---- */

/* Memory for the numbers of all images of `rows` examples, 0, 1, 2, ... of them. */
static tr_status number_images(tr_feed *feed, int64_t rows)
{
    TR_TRY(tr_device_alloc(feed->device, (size_t)rows * sizeof *feed->index, (void **)&feed->index));
    feed->identity = tr_alloc((size_t)rows, sizeof *feed->identity);
    if (!feed->identity) return TR_ENOMEM;
    for (int64_t i = 0; i < rows; i++) feed->identity[i] = i;
    return TR_OK;
}

static tr_status alloc_parts(tr_feed *feed, int64_t rows)
{
    const struct tr_source_parts *stored = &feed->job->parts, *parts = &feed->parts;
    TR_TRY(number_images(feed, rows));
    for (int32_t i = 0; i < parts->images; i++) {
        size_t bytes = (size_t)(rows * tr_shape_count(&stored->part[i].shape)),
               floats = (size_t)(rows * tr_shape_count(&parts->part[i].shape)) * sizeof(float);
        TR_TRY(tr_device_alloc(feed->device, bytes, &feed->part_bytes[i]));
        TR_TRY(tr_device_alloc(feed->device, floats, &feed->part_floats[i]));
    }
    size_t rest = (size_t)(rows * tr_source_parts_floats(parts)) * sizeof(float);
    return rest ? tr_device_alloc(feed->device, rest, &feed->part_floats[parts->images]) : TR_OK;
}

static size_t image_bytes(const tr_feed *feed)
{
    const struct tr_source_info *info = tr_source_info(feed->source);
    return (size_t)info->height * (size_t)info->width * (size_t)info->channels;
}

static void tell_why_not_kept(const tr_feed *feed, size_t bytes)
{
    char all[TR_TEXT_NUMBER_SIZE], room[TR_TEXT_NUMBER_SIZE];
    tr_log_line(
        TR_LOG_WARNING,
        "the images of a data set, %s, are not kept on %s, which has room for %s: those of each step go "
        "there",
        tr_text_from_bytes((int64_t)bytes, all), feed->device->description,
        tr_text_from_bytes(tr_device_room(feed->device), room));
}

/* Brings a resident set to the device for good, if it has the room. */
static tr_status keep_images(tr_feed *feed)
{
    size_t bytes = image_bytes(feed) * (size_t)tr_source_info(feed->source)->count;
    feed->images = tr_device_adopt(feed->device, feed->source->resident);
    feed->kept = feed->images != NULL;
    if (feed->kept) return TR_OK;
    if ((int64_t)bytes > tr_device_room(feed->device) / ROOM_PARTS) {
        tell_why_not_kept(feed, bytes);
        return TR_OK;
    }
    TR_TRY(tr_device_alloc(feed->device, bytes, &feed->uploaded));
    TR_TRY(tr_device_to_device(feed->device, feed->uploaded, feed->source->resident, bytes));
    feed->images = feed->uploaded;
    feed->kept = true;
    return tr_device_wait(feed->device);
}

static tr_status make_images(tr_feed *feed, int64_t rows)
{
    if (feed->source->resident) TR_TRY(keep_images(feed));
    if (feed->kept)
        return tr_device_alloc(feed->device, (size_t)rows * sizeof *feed->index, (void **)&feed->index);
    TR_TRY(number_images(feed, rows));
    if (feed->source->resident)
        TR_TRY(make_outgoing(feed, image_bytes(feed) * (size_t)rows, &feed->gathered));
    TR_TRY(tr_device_alloc(feed->device, image_bytes(feed) * (size_t)rows, &feed->uploaded));
    feed->images = feed->uploaded;
    return TR_OK;
}

tr_status tr_feed_create(tr_device *device, const struct tr_job *job, const tr_source *source, int64_t rows,
                         bool augment, tr_feed **out)
{
    tr_feed *feed = tr_alloc_zero(1, sizeof *feed);
    if (!feed) return TR_ENOMEM;
    *feed = (tr_feed){.device = device, .job = job, .source = source, .augment = augment};
    tr_job_input_parts(job, &feed->parts);
    tr_status status = TR_OK;
    if (job->features == TR_FEATURE_IMAGE)
        status = make_images(feed, rows);
    else if (job->features == TR_FEATURE_TOKENS)
        status = make_outgoing(feed, (size_t)(rows + 1) * sizeof(int32_t), &feed->offsets);
    else if (feed->parts.images > 0)
        status = alloc_parts(feed, rows);
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
    for (int i = 0; i < TR_SOURCE_PARTS; i++) tr_device_free(feed->device, feed->part_bytes[i]);
    for (int i = 0; i <= TR_SOURCE_PARTS; i++) tr_device_free(feed->device, feed->part_floats[i]);
    tr_free(feed->identity);
    release_outgoing(feed, &feed->gathered);
    release_outgoing(feed, &feed->offsets);
    tr_free(feed);
    *handle = NULL;
}

/* Item `i` of a list that holds one number for each channel, or one for all. */
static float of_channel(const struct tr_float_list *list, int i)
{
    return list->item[list->count > 1 && i < list->count ? i : 0];
}

/* Of an image that is stored in one size and wanted in another. */
static void image_entry(const struct tr_input_options *input, const int64_t *stored, const int64_t *wanted,
                        struct tr_op_load_images *op)
{
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
}

bool tr_job_image_entry(const struct tr_job *job, struct tr_op_load_images *op)
{
    if (job->features != TR_FEATURE_IMAGE) return false;
    image_entry(&job->input, job->stored.size, job->model->input.size, op);
    return true;
}

/* Sets what is drawn at random: the same for all images of an example. */
static void augment(const tr_feed *feed, const struct tr_batch *batch, int64_t begin, uint64_t seed,
                    const struct tr_step_scalars *scalars, struct tr_op_load_images *op)
{
    tr_rng_key key = tr_rng_key_make(seed, TR_RNG_AUGMENT);
    op->random = feed->augment && (op->pad > 0 || op->flip || op->in_h != op->out_h || op->in_w != op->out_w);
    op->key[0] = key.k0;
    op->key[1] = key.k1;
    op->first_example = (uint32_t)(batch->first + begin);
    op->scalars = scalars;
}

/* The images of rows [begin, begin + rows), where the set is not kept. */
static tr_status send_images(tr_feed *feed, const struct tr_batch *batch, int64_t begin, int64_t rows)
{
    size_t image = image_bytes(feed);
    void *memory;
    if (!feed->source->resident)
        return tr_device_to_device(feed->device, feed->uploaded, batch->images + (size_t)begin * image,
                                   (size_t)rows * image);
    TR_TRY(take_outgoing(feed, &feed->gathered, &memory));
    for (int64_t i = 0; i < rows; i++)
        memcpy((uint8_t *)memory + (size_t)i * image,
               feed->source->resident + (size_t)batch->index[begin + i] * image, image);
    return send_outgoing(feed, &feed->gathered, feed->uploaded, (size_t)rows * image);
}

static tr_status feed_images(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                             int64_t rows, uint64_t seed, const struct tr_step_scalars *scalars)
{
    const int64_t *index = feed->kept ? batch->index + begin : feed->identity;
    TR_TRY(tr_device_to_device(feed->device, feed->index, index, (size_t)rows * sizeof *index));
    if (!feed->kept) TR_TRY(send_images(feed, batch, begin, rows));
    struct tr_op_load_images op;
    tr_job_image_entry(feed->job, &op);
    augment(feed, batch, begin, seed, scalars, &op);
    op.rows = rows;
    op.source = feed->images;
    op.index = feed->index;
    op.y = tr_pass_input(pass);
    return tr_device_load_images(feed->device, &op);
}

/* Image `i` of the rows, as numbers. */
static tr_status feed_part(tr_feed *feed, int32_t i, const struct tr_batch *batch, int64_t begin,
                           int64_t rows, uint64_t seed, const struct tr_step_scalars *scalars)
{
    const struct tr_shape *stored = &feed->job->parts.part[i].shape;
    int64_t image = tr_shape_count(stored);
    struct tr_op_load_images op;
    TR_TRY(tr_device_to_device(feed->device, feed->part_bytes[i], batch->part[i] + begin * image,
                               (size_t)(rows * image)));
    image_entry(&feed->job->input, stored->size, feed->parts.part[i].shape.size, &op);
    augment(feed, batch, begin, seed, scalars, &op);
    op.rows = rows;
    op.source = feed->part_bytes[i];
    op.index = feed->index;
    op.y = feed->part_floats[i];
    return tr_device_load_images(feed->device, &op);
}

/* The images of each row and then its vectors, side by side. */
static tr_status feed_parts(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                            int64_t rows, uint64_t seed, const struct tr_step_scalars *scalars)
{
    const struct tr_source_parts *parts = &feed->parts;
    int64_t width = tr_source_parts_floats(parts);
    struct tr_op_join_columns op = {.rows = rows, .parts = parts->images + (width > 0)};
    TR_TRY(
        tr_device_to_device(feed->device, feed->index, feed->identity, (size_t)rows * sizeof *feed->index));
    for (int32_t i = 0; i < parts->images; i++) {
        TR_TRY(feed_part(feed, i, batch, begin, rows, seed, scalars));
        op.width[i] = tr_shape_count(&parts->part[i].shape);
        op.x[i] = feed->part_floats[i];
    }
    if (width > 0) {
        TR_TRY(tr_device_to_device(feed->device, feed->part_floats[parts->images],
                                   batch->floats + begin * width, (size_t)(rows * width) * sizeof(float)));
        op.width[parts->images] = width;
        op.x[parts->images] = feed->part_floats[parts->images];
    }
    op.y = tr_pass_input(pass);
    return tr_device_join_columns(feed->device, &op);
}

static tr_status feed_tokens(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                             int64_t rows)
{
    int64_t first = batch->offset[begin];
    size_t count = (size_t)(batch->offset[begin + rows] - first);
    void *memory;
    TR_TRY(take_outgoing(feed, &feed->offsets, &memory));
    int32_t *offset = memory; /* those of a part start at its own first token */
    for (int64_t i = 0; i <= rows; i++) offset[i] = batch->offset[begin + i] - (int32_t)first;
    TR_TRY(send_outgoing(feed, &feed->offsets, tr_pass_offset(pass), (size_t)(rows + 1) * sizeof *offset));
    if (!tr_pass_token(pass)) return TR_OK;
    return tr_device_to_device(feed->device, tr_pass_token(pass), batch->tokens + first,
                               count * sizeof *batch->tokens);
}

/* What a source gives as values may be any; a loss takes those of one kind. `target` are those of one example
   for this loss. */
static tr_status check_target(const struct tr_loss *loss, const float *target, int64_t values,
                              int64_t example)
{
    const struct tr_loss_class *class = tr_loss_class_of(loss);
    if (!class->answers) return TR_OK;
    for (int64_t k = 0; k < values; k++) {
        if (class->classifies &&
            !(target[k] >= 0 && target[k] < (float)loss->outputs && target[k] == floorf(target[k])))
            return tr_fail(TR_EFORMAT,
                           "example %" PRId64
                           " has the value %g where %s wants the number of a class below %" PRId64,
                           example, (double)target[k], class->name, loss->outputs);
        if (!class->classifies && !(target[k] >= 0 && target[k] <= 1))
            return tr_fail(TR_EFORMAT,
                           "example %" PRId64 " has the value %g; %s takes values between 0 (no) and 1 (yes)",
                           example, (double)target[k], class->name);
    }
    return TR_OK;
}

static tr_status check_targets(const tr_feed *feed, const struct tr_batch *batch, int64_t begin, int64_t rows)
{
    const struct tr_loss *loss = &feed->job->model->loss;
    int32_t values = tr_source_info(feed->source)->values;
    if (!tr_loss_answers(loss)) return TR_OK;
    for (int64_t i = begin; i < begin + rows; i++) {
        const float *target = batch->targets + i * values;
        if (loss->head_count == 0) TR_TRY(check_target(loss, target, values, batch->index[i]));
        for (int32_t h = 0; h < loss->head_count; h++) {
            int64_t own = tr_loss_class_of(&loss->head[h])->classifies ? 1 : loss->head[h].outputs;
            TR_TRY(check_target(&loss->head[h], target, own, batch->index[i]));
            target += own;
        }
    }
    return TR_OK;
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
        if (feed->parts.images > 0) {
            TR_TRY(feed_parts(feed, pass, batch, begin, rows, seed, scalars));
            break;
        }
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
    if (info->labels == TR_LABEL_TOKENS && tr_pass_label(pass)) {
        int64_t first = batch->offset[begin], end = batch->offset[begin + rows];
        return tr_device_to_device(feed->device, tr_pass_label(pass), batch->labels + first,
                                   (size_t)(end - first) * sizeof(int32_t));
    }
    if (info->labels == TR_LABEL_VALUES && tr_pass_target(pass)) {
        TR_TRY(check_targets(feed, batch, begin, rows));
        return tr_device_to_device(feed->device, tr_pass_target(pass), batch->targets + begin * info->values,
                                   (size_t)(rows * info->values) * sizeof(float));
    }
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
