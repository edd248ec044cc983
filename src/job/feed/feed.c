#include "job/feed/feed.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/rng.h"
#include "base/threads/timeline.h"
#include "job/feed/augment.h"
#include "job/feed/intake.h"
#include "job/feed/outgoing.h"
#include "job/feed/resident.h"
#include "job/file/augmentation.h"
#include "job/file/input.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct tr_feed {
    tr_device *device;
    const struct tr_job *job;
    const tr_source *source;
    bool augment;
    tr_augmenter *augmenter;     /* for augmentation beyond shifts and mirrors, and mixed labels; or NULL */
    bool mixes;                  /* each image and its label are mixed with another example's */
    struct tr_resident resident; /* empty where nothing is resident: then all data come with the batch */
    int64_t *index;              /* device [rows]: numbers of examples, or of images among those of a run */
    struct tr_outgoing numbers;  /* device [rows]: numbers of examples, or of images among those of a run */
    size_t memory;               /* of the device, without the resident data */
    /* Images: */
    uint8_t *images;             /* device: images of a run */
    float *floats;               /* device: images of numbers of a run, where they change on their way */
    struct tr_outgoing gathered; /* [rows] images copied from a resident source on the host */
    int32_t *labels;             /* device [rows][height][width] as stored, where pixels have labels */
    /* Tokens: */
    struct tr_outgoing offsets, second_offsets; /* [rows + 1] */
    /* For joined sources with images: each image of a batch as bytes and as numbers, and the vectors. */
    struct tr_source_parts parts; /* in the network's order */
    void *part_bytes[TR_SOURCE_PARTS];
    void *part_floats[TR_SOURCE_PARTS + 1]; /* after the images the vectors */
};

/* ---- making ---- */

/* Images for a row of a batch. */
static int64_t images_a_row(const tr_feed *feed)
{
    return feed->mixes ? 2 : 1;
}

static tr_status alloc(tr_feed *feed, int64_t bytes, void **out)
{
    feed->memory += (size_t)bytes;
    return tr_device_alloc(feed->device, (size_t)bytes, out);
}

/* The numbers 0, 1, 2, ... for the images of a run that come with the batch. */
static tr_status number_images(tr_feed *feed, int64_t rows)
{
    int64_t *identity = tr_alloc((size_t)rows, sizeof *identity);
    if (!identity) return TR_ENOMEM;
    for (int64_t i = 0; i < rows; i++) identity[i] = i;
    tr_status status =
        tr_device_to_device(feed->device, feed->index, identity, (size_t)rows * sizeof *identity);
    if (status == TR_OK) status = tr_device_wait(feed->device);
    tr_free(identity);
    return status;
}

static tr_status alloc_parts(tr_feed *feed, int64_t rows)
{
    const struct tr_source_parts *stored = &feed->job->parts, *parts = &feed->parts;
    for (int32_t i = 0; i < parts->images; i++) {
        int64_t bytes = rows * tr_shape_count(&stored->part[i].shape),
                floats = rows * tr_shape_count(&parts->part[i].shape) * (int64_t)sizeof(float);
        TR_TRY(alloc(feed, bytes, &feed->part_bytes[i]));
        TR_TRY(alloc(feed, floats, &feed->part_floats[i]));
    }
    int64_t rest = rows * tr_source_parts_floats(parts) * (int64_t)sizeof(float);
    return rest ? alloc(feed, rest, &feed->part_floats[parts->images]) : TR_OK;
}

static size_t image_bytes(const tr_feed *feed)
{
    const struct tr_source_info *info = tr_source_info(feed->source);
    return (size_t)info->height * (size_t)info->width * (size_t)info->channels;
}

static tr_status make_images(tr_feed *feed, int64_t rows)
{
    size_t bytes = image_bytes(feed) * (size_t)(rows * images_a_row(feed));
    if (feed->resident.images) return TR_OK;
    if (tr_resident_in_place(feed->device, feed->source))
        TR_TRY(tr_outgoing_make(feed->device, bytes, &feed->gathered));
    return alloc(feed, (int64_t)bytes, (void **)&feed->images);
}

static tr_status make(tr_feed *feed, const struct tr_feed_options *options)
{
    enum tr_feature_kind kind = feed->job->features;
    int64_t rows = options->rows, images_most = rows * images_a_row(feed),
            numbers = images_most * (int64_t)sizeof *feed->index;
    if (tr_augmenter_is_needed(feed->job, options->augment))
        TR_TRY(tr_augmenter_create(feed->device, feed->job, feed->source, rows, options->augment,
                                   &feed->augmenter));
    TR_TRY(tr_resident_make(feed->device, feed->source, options->keep, options->features, options->labels,
                            &feed->resident));
    const int64_t pixels = tr_source_pixels(tr_source_info(feed->source));
    if (options->labels && pixels > 0 && !feed->resident.labels)
        TR_TRY(alloc(feed, rows * pixels * (int64_t)sizeof *feed->labels, (void **)&feed->labels));
    bool images = kind == TR_FEATURE_IMAGE && options->features,
         parts = feed->parts.images > 0 && options->features,
         floats = feed->augmenter && tr_job_is_number_image(feed->job) && options->features,
         numbered = feed->resident.here || feed->resident.images;
    if (numbered || images || parts || floats) TR_TRY(alloc(feed, numbers, (void **)&feed->index));
    if (numbered)
        TR_TRY(tr_outgoing_make(feed->device, (size_t)numbers, &feed->numbers));
    else if (images || parts || floats)
        TR_TRY(number_images(feed, images_most));
    const size_t offsets = (size_t)(rows + 1) * sizeof(int32_t);
    if (feed->parts.second[0]) TR_TRY(tr_outgoing_make(feed->device, offsets, &feed->second_offsets));
    if (kind == TR_FEATURE_TOKENS) return tr_outgoing_make(feed->device, offsets, &feed->offsets);
    if (images) return make_images(feed, rows);
    if (floats && !feed->resident.here)
        return alloc(feed, images_most * tr_shape_count(&feed->job->stored) * (int64_t)sizeof(float),
                     (void **)&feed->floats);
    return parts ? alloc_parts(feed, rows) : TR_OK;
}

tr_status tr_feed_create(tr_device *device, const struct tr_job *job, const tr_source *source,
                         const struct tr_feed_options *options, tr_feed **out)
{
    tr_feed *feed = tr_alloc_zero(1, sizeof *feed);
    if (!feed) return TR_ENOMEM;
    *feed = (tr_feed){.device = device,
                      .job = job,
                      .source = source,
                      .augment = options->augment,
                      .mixes = options->augment && tr_augmentation_mixes(&job->input.augment)};
    tr_job_input_parts(job, &feed->parts);
    tr_status status = make(feed, options);
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
    tr_augmenter_destroy(&feed->augmenter);
    tr_resident_release(&feed->resident);
    tr_device_free(feed->device, feed->images);
    tr_device_free(feed->device, feed->floats);
    tr_device_free(feed->device, feed->labels);
    tr_device_free(feed->device, feed->index);
    for (int i = 0; i < TR_SOURCE_PARTS; i++) tr_device_free(feed->device, feed->part_bytes[i]);
    for (int i = 0; i <= TR_SOURCE_PARTS; i++) tr_device_free(feed->device, feed->part_floats[i]);
    tr_outgoing_release(feed->device, &feed->numbers);
    tr_outgoing_release(feed->device, &feed->gathered);
    tr_outgoing_release(feed->device, &feed->offsets);
    tr_outgoing_release(feed->device, &feed->second_offsets);
    tr_free(feed);
    *handle = NULL;
}

size_t tr_feed_memory(const tr_feed *feed)
{
    return feed->memory + feed->resident.memory + tr_augmenter_memory(feed->augmenter);
}

bool tr_feed_is_resident(const tr_feed *feed)
{
    return feed->resident.here;
}

/* Sets the random draws: the same for all images of an example. */
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

/* Sends the numbers of the examples in rows [begin, begin + rows), for operations that gather them. */
static tr_status send_numbers(tr_feed *feed, const struct tr_batch *batch, int64_t begin, int64_t rows)
{
    size_t bytes = (size_t)rows * sizeof *batch->index;
    void *memory;
    TR_TRY(tr_outgoing_take(feed->device, &feed->numbers, &memory));
    memcpy(memory, batch->index + begin, bytes);
    if (feed->mixes) memcpy((char *)memory + bytes, batch->index + batch->others + begin, bytes);
    return tr_outgoing_send(feed->device, &feed->numbers, feed->index, bytes * (size_t)images_a_row(feed));
}

/* Sends the images of rows [begin, begin + rows), where the set is not resident, to the run's images from
   `place` on. */
static tr_status send_images(tr_feed *feed, const struct tr_batch *batch, int64_t begin, int64_t rows,
                             int64_t place)
{
    const size_t image = image_bytes(feed);
    return tr_device_to_device(feed->device, feed->images + (size_t)place * image,
                               batch->images + (size_t)begin * image, (size_t)rows * image);
}

/* The same from a source that has the images in memory. */
static tr_status gather_images(tr_feed *feed, const struct tr_batch *batch, int64_t begin, int64_t rows)
{
    const size_t image = image_bytes(feed);
    void *memory;
    TR_TRY(tr_outgoing_take(feed->device, &feed->gathered, &memory));
    for (int64_t i = 0; i < rows * images_a_row(feed); i++) {
        const int64_t row = i < rows ? begin + i : batch->others + begin + i - rows;
        memcpy((uint8_t *)memory + (size_t)i * image,
               feed->source->resident + (size_t)batch->index[row] * image, image);
    }
    return tr_outgoing_send(feed->device, &feed->gathered, feed->images,
                            (size_t)(rows * images_a_row(feed)) * image);
}

static tr_status bring_images(tr_feed *feed, const struct tr_batch *batch, int64_t begin, int64_t rows)
{
    if (feed->resident.images) return TR_OK;
    if (tr_resident_in_place(feed->device, feed->source)) return gather_images(feed, batch, begin, rows);
    TR_TRY(send_images(feed, batch, begin, rows, 0));
    return feed->mixes ? send_images(feed, batch, batch->others + begin, rows, rows) : TR_OK;
}

/* Rows that are changed at random. */
static struct tr_augmented augmented(const struct tr_batch *batch, int64_t begin, int64_t rows, uint64_t seed)
{
    return (struct tr_augmented){
        .batch = batch, .begin = begin, .rows = rows, .key = tr_rng_key_make(seed, TR_RNG_AUGMENT)};
}

static tr_status load(tr_feed *feed, const struct tr_batch *batch, int64_t begin, uint64_t seed,
                      const struct tr_op_load_images *op)
{
    const struct tr_augmented part = augmented(batch, begin, op->rows, seed);
    return feed->augmenter ? tr_augmenter_images(feed->augmenter, &part, op)
                           : tr_device_load_images(feed->device, op);
}

static tr_status feed_images(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                             int64_t rows, uint64_t seed, const struct tr_step_scalars *scalars)
{
    struct tr_op_load_images op;
    TR_TRY(bring_images(feed, batch, begin, rows));
    tr_intake_of_example(feed->job, &op);
    augment(feed, batch, begin, seed, scalars, &op);
    op.rows = rows;
    op.source = feed->resident.images ? feed->resident.images : feed->images;
    op.index = feed->index;
    op.y = tr_pass_input(pass);
    return load(feed, batch, begin, seed, &op);
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
    tr_intake_of_image(feed->job, stored->size, feed->parts.part[i].shape.size, &op);
    augment(feed, batch, begin, seed, scalars, &op);
    op.rows = rows;
    op.source = feed->part_bytes[i];
    op.index = feed->index;
    op.y = feed->part_floats[i];
    return load(feed, batch, begin, seed, &op);
}

/* The images of each row and then its vectors, concatenated. */
static tr_status feed_parts(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                            int64_t rows, uint64_t seed, const struct tr_step_scalars *scalars)
{
    const struct tr_source_parts *parts = &feed->parts;
    int64_t width = tr_source_parts_floats(parts);
    struct tr_op_join_columns op = {.rows = rows, .parts = parts->images + (width > 0)};
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

/* Sends the offsets of a part, where they begin at its first token. */
static tr_status send_offsets(tr_feed *feed, struct tr_outgoing *outgoing, const int32_t *of_batch,
                              int64_t rows, int32_t *to)
{
    void *memory;
    TR_TRY(tr_outgoing_take(feed->device, outgoing, &memory));
    int32_t *offset = memory;
    for (int64_t i = 0; i <= rows; i++) offset[i] = of_batch[i] - of_batch[0];
    return tr_outgoing_send(feed->device, outgoing, to, (size_t)(rows + 1) * sizeof *offset);
}

static tr_status feed_tokens(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                             int64_t rows)
{
    int64_t first = batch->offset[begin];
    size_t count = (size_t)(batch->offset[begin + rows] - first);
    TR_TRY(send_offsets(feed, &feed->offsets, batch->offset + begin, rows, tr_pass_offset(pass)));
    if (!tr_pass_token(pass)) return TR_OK;
    if (feed->resident.here)
        return tr_resident_features(&feed->resident, rows, feed->index, tr_pass_offset(pass),
                                    tr_pass_token(pass));
    return tr_device_to_device(feed->device, tr_pass_token(pass), batch->tokens + first,
                               count * sizeof *batch->tokens);
}

/* The numbers beside a text. They come with the batch also where its tokens are kept. */
static tr_status feed_columns(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                              int64_t rows)
{
    const int64_t width = tr_source_parts_floats(&feed->parts);
    float *to = tr_pass_columns(pass);
    if (!to) return TR_OK;
    return tr_device_to_device(feed->device, to, batch->floats + begin * width,
                               (size_t)(rows * width) * sizeof *to);
}

/* The second text. It comes with the batch, too. */
static tr_status feed_second(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                             int64_t rows)
{
    if (!feed->parts.second[0]) return TR_OK;
    const int32_t *offset = batch->second_offset + begin;
    int32_t *to = tr_pass_second_token(pass);
    TR_TRY(send_offsets(feed, &feed->second_offsets, offset, rows, tr_pass_second_offset(pass)));
    if (!to) return TR_OK;
    return tr_device_to_device(feed->device, to, batch->second + offset[0],
                               (size_t)(offset[rows] - offset[0]) * sizeof *to);
}

/* Tolerance for the sum of probabilities, since rows are often written with two digits. */
#define SUM_OFF 0.02

static tr_status check_probabilities(const struct tr_loss_class *class, const float *target, int64_t values,
                                     int64_t example)
{
    double sum = 0;
    for (int64_t k = 0; k < values; k++) {
        if (!(target[k] >= 0))
            return tr_fail(TR_EFORMAT,
                           "example %" PRId64
                           " has the value %g; %s takes probabilities, which are 0 or more",
                           example, (double)target[k], class->name);
        sum += (double)target[k];
    }
    if (fabs(sum - 1) <= SUM_OFF) return TR_OK;
    return tr_fail(TR_EFORMAT,
                   "the %" PRId64 " values of example %" PRId64
                   " add up to %g; %s takes the probabilities of "
                   "the classes, which add up to 1",
                   values, example, sum, class->name);
}

/* Checks values, which may be anything, for the kind that the loss requires. `target` are the values of
   one example for this loss. */
static tr_status check_target(const struct tr_loss *loss, const float *target, int64_t values,
                              int64_t example)
{
    const struct tr_loss_class *class = tr_loss_class_of(loss);
    for (int64_t k = 0; class->counts && k < values; k++)
        if (!(target[k] >= 0))
            return tr_fail(TR_EFORMAT,
                           "example %" PRId64 " has the value %g; %s takes counts, which are 0 or more",
                           example, (double)target[k], class->name);
    if (!class->answers) return TR_OK;
    if (class->soft) return check_probabilities(class, target, values, example);
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
    bool any = tr_loss_answers(loss) || tr_loss_class_of(loss)->counts;
    for (int32_t h = 0; h < loss->head_count; h++) any |= tr_loss_class_of(&loss->head[h])->counts;
    if (!any) return TR_OK;
    for (int64_t i = begin; i < begin + rows; i++) {
        const float *target = batch->targets + i * values;
        if (loss->head_count == 0) TR_TRY(check_target(loss, target, values, batch->index[i]));
        for (int32_t h = 0; h < loss->head_count; h++) {
            int64_t own = tr_loss_head_targets(&loss->head[h]);
            TR_TRY(check_target(&loss->head[h], target, own, batch->index[i]));
            target += own;
        }
    }
    return TR_OK;
}

static tr_status feed_floats(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                             int64_t rows)
{
    int64_t width = tr_shape_count(&feed->job->stored);
    if (feed->resident.here)
        return tr_resident_features(&feed->resident, rows, feed->index, NULL, tr_pass_input(pass));
    return tr_device_to_device(feed->device, tr_pass_input(pass), batch->floats + begin * width,
                               (size_t)(rows * width) * sizeof(float));
}

/* Images of numbers, changed on their way. */
static tr_status feed_number_images(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                                    int64_t rows, uint64_t seed, const struct tr_step_scalars *scalars)
{
    const int64_t width = tr_shape_count(&feed->job->stored);
    const bool here = feed->resident.here;
    struct tr_op_load_images op;
    for (int64_t k = 0; !here && k < images_a_row(feed); k++)
        TR_TRY(tr_device_to_device(feed->device, feed->floats + k * rows * width,
                                   batch->floats + (begin + (k > 0 ? batch->others : 0)) * width,
                                   (size_t)(rows * width) * sizeof(float)));
    tr_intake_of_example(feed->job, &op);
    augment(feed, batch, begin, seed, scalars, &op);
    op.rows = rows;
    op.index = feed->index;
    op.y = tr_pass_input(pass);
    struct tr_augmented part = augmented(batch, begin, rows, seed);
    part.numbers = here ? (const float *)(const void *)feed->resident.features : feed->floats;
    return tr_augmenter_images(feed->augmenter, &part, &op);
}

static tr_status feed_features(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                               int64_t rows, uint64_t seed, const struct tr_step_scalars *scalars)
{
    if (feed->job->features == TR_FEATURE_TOKENS) {
        TR_TRY(feed_tokens(feed, pass, batch, begin, rows));
        TR_TRY(feed_second(feed, pass, batch, begin, rows));
        return feed_columns(feed, pass, batch, begin, rows);
    }
    if (!tr_pass_input(pass)) return TR_OK;
    if (feed->job->features == TR_FEATURE_IMAGE)
        return feed_images(feed, pass, batch, begin, rows, seed, scalars);
    if (feed->parts.images > 0) return feed_parts(feed, pass, batch, begin, rows, seed, scalars);
    if (feed->augmenter) return feed_number_images(feed, pass, batch, begin, rows, seed, scalars);
    return feed_floats(feed, pass, batch, begin, rows);
}

/* Labels of pixels move with the pixels of their image. */
static tr_status feed_pixels(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                             int64_t rows, uint64_t seed, const struct tr_step_scalars *scalars)
{
    const int64_t pixels = tr_source_pixels(tr_source_info(feed->source));
    const bool here = feed->resident.labels;
    struct tr_op_load_images image;
    tr_intake_of_example(feed->job, &image);
    augment(feed, batch, begin, seed, scalars, &image);
    const struct tr_op_load_labels op = {
        .rows = rows,
        .in_h = image.in_h,
        .in_w = image.in_w,
        .out_h = image.out_h,
        .out_w = image.out_w,
        .pad = image.pad,
        .random = image.random,
        .flip = image.flip,
        .key = {image.key[0], image.key[1]},
        .first_example = image.first_example,
        .source = here ? feed->resident.labels : feed->labels,
        .index = here ? feed->index : NULL,
        .y = tr_pass_label(pass),
        .scalars = scalars,
    };
    if (!here)
        TR_TRY(tr_device_to_device(feed->device, feed->labels, batch->labels + begin * pixels,
                                   (size_t)(rows * pixels) * sizeof *feed->labels));
    const struct tr_augmented part = augmented(batch, begin, rows, seed);
    return feed->augmenter ? tr_augmenter_labels(feed->augmenter, &part, &image, &op)
                           : tr_device_load_labels(feed->device, &op);
}

static tr_status feed_labels(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                             int64_t rows)
{
    const struct tr_source_info *info = tr_source_info(feed->source);
    int64_t values = info->labels == TR_LABEL_VALUES ? info->values : 1, first = begin, end = begin + rows;
    void *to = info->labels == TR_LABEL_VALUES ? (void *)tr_pass_target(pass) : (void *)tr_pass_label(pass);
    if (info->labels == TR_LABEL_NONE || info->labels == TR_LABEL_PIXELS || !to) return TR_OK;
    if (tr_loss_embeds(&feed->job->model->loss) && !tr_job_takes_classes(feed->job)) return TR_OK;
    if (info->labels == TR_LABEL_VALUES) TR_TRY(check_targets(feed, batch, begin, rows));
    if (feed->resident.here)
        return tr_resident_labels(&feed->resident, rows, feed->index, tr_pass_offset(pass), to);
    if (info->labels == TR_LABEL_TOKENS) {
        first = batch->offset[begin];
        end = batch->offset[begin + rows];
    }
    const void *from = info->labels == TR_LABEL_VALUES ? (const void *)(batch->targets + first * values)
                                                       : (const void *)(batch->labels + first);
    return tr_device_to_device(feed->device, to, from, (size_t)((end - first) * values) * sizeof(float));
}

/* Labels or values mixed with those of other examples. */
static tr_status feed_mixed(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                            int64_t rows, uint64_t seed)
{
    const bool values = tr_source_info(feed->source)->labels == TR_LABEL_VALUES;
    const struct tr_augmented part = augmented(batch, begin, rows, seed);
    if (values) TR_TRY(check_targets(feed, batch, begin, rows));
    if (values) TR_TRY(check_targets(feed, batch, batch->others + begin, rows));
    return tr_augmenter_targets(feed->augmenter, &part, tr_pass_target(pass));
}

static tr_status feed_rows(tr_feed *feed, tr_pass *pass, const struct tr_batch *batch, int64_t begin,
                           int64_t rows, uint64_t seed, const struct tr_step_scalars *scalars)
{
    if (feed->resident.here || feed->resident.images) TR_TRY(send_numbers(feed, batch, begin, rows));
    TR_TRY(feed_features(feed, pass, batch, begin, rows, seed, scalars));
    if (tr_source_pixels(tr_source_info(feed->source)) > 0 && tr_pass_label(pass))
        return feed_pixels(feed, pass, batch, begin, rows, seed, scalars);
    if (feed->mixes && tr_pass_target(pass)) return feed_mixed(feed, pass, batch, begin, rows, seed);
    return feed_labels(feed, pass, batch, begin, rows);
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
