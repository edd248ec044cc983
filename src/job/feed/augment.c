#include "job/feed/augment.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "job/feed/draw.h"
#include "job/feed/outgoing.h"
#include "job/file/augmentation.h"
#include "job/file/input.h"

#include <math.h>

struct tr_augmenter {
    tr_device *device;
    const struct tr_job *job;
    struct tr_input_options input; /* without augmentation outside of training; borrows from the job */
    const tr_source *source;
    bool mixes;
    size_t memory;              /* of the device */
    struct tr_image_view *view; /* device [rows], twice where images are mixed */
    struct tr_image_mix *mix;   /* device [rows] */
    float *single;              /* device: images before they are mixed */
    struct tr_outgoing views, mixtures, targets;
};

static tr_status alloc(tr_augmenter *augmenter, int64_t bytes, void **out)
{
    augmenter->memory += (size_t)bytes;
    return tr_device_alloc(augmenter->device, (size_t)bytes, out);
}

/* Floats of an example's mixed labels. */
static int64_t width_of(const tr_augmenter *augmenter)
{
    const struct tr_source_info *info = tr_source_info(augmenter->source);
    return info->labels == TR_LABEL_VALUES ? info->values : tr_shape_count(&augmenter->job->model->output);
}

static tr_status make_mixing(tr_augmenter *augmenter, int64_t rows)
{
    tr_device *device = augmenter->device;
    const int64_t mixtures = rows * (int64_t)sizeof *augmenter->mix,
                  floats = 2 * rows * tr_shape_count(&augmenter->job->model->input) * (int64_t)sizeof(float);
    TR_TRY(alloc(augmenter, mixtures, (void **)&augmenter->mix));
    TR_TRY(alloc(augmenter, floats, (void **)&augmenter->single));
    TR_TRY(tr_outgoing_make(device, (size_t)mixtures, &augmenter->mixtures));
    return tr_outgoing_make(device, (size_t)(rows * width_of(augmenter)) * sizeof(float),
                            &augmenter->targets);
}

static tr_status make(tr_augmenter *augmenter, int64_t rows)
{
    const int64_t views = rows * (1 + augmenter->mixes) * (int64_t)sizeof *augmenter->view;
    TR_TRY(alloc(augmenter, views, (void **)&augmenter->view));
    TR_TRY(tr_outgoing_make(augmenter->device, (size_t)views, &augmenter->views));
    return augmenter->mixes ? make_mixing(augmenter, rows) : TR_OK;
}

bool tr_augmenter_is_needed(const struct tr_job *job, bool training)
{
    const struct tr_input_options *input = &job->input;
    if (training && tr_augmentation_is_any(&input->augment)) return true;
    return tr_job_fits_numbers(job) ||
           (training && tr_job_is_number_image(job) && (input->pad > 0 || input->flip));
}

tr_status tr_augmenter_create(tr_device *device, const struct tr_job *job, const tr_source *source,
                              int64_t rows, bool training, tr_augmenter **out)
{
    tr_augmenter *augmenter = tr_alloc_zero(1, sizeof *augmenter);
    if (!augmenter) return TR_ENOMEM;
    *augmenter = (tr_augmenter){.device = device, .job = job, .source = source, .input = job->input};
    if (!training) augmenter->input.augment = (struct tr_augment_options){0};
    augmenter->mixes = tr_augmentation_mixes(&augmenter->input.augment);
    tr_status status = make(augmenter, rows);
    if (status != TR_OK)
        tr_augmenter_destroy(&augmenter);
    else
        *out = augmenter;
    return status;
}

void tr_augmenter_destroy(tr_augmenter **handle)
{
    tr_augmenter *augmenter = *handle;
    if (!augmenter) return;
    tr_device_free(augmenter->device, augmenter->view);
    tr_device_free(augmenter->device, augmenter->mix);
    tr_device_free(augmenter->device, augmenter->single);
    tr_outgoing_release(augmenter->device, &augmenter->views);
    tr_outgoing_release(augmenter->device, &augmenter->mixtures);
    tr_outgoing_release(augmenter->device, &augmenter->targets);
    tr_free(augmenter);
    *handle = NULL;
}

int64_t tr_augmenter_expect(const struct tr_job *job, int64_t rows)
{
    if (!tr_augmenter_is_needed(job, true)) return 0;
    const int64_t views = (int64_t)sizeof(struct tr_image_view);
    if (!tr_augmentation_mixes(&job->input.augment)) return rows * views;
    const int64_t image = tr_shape_count(&job->model->input) * (int64_t)sizeof(float);
    return rows * (2 * (views + image) + (int64_t)sizeof(struct tr_image_mix));
}

size_t tr_augmenter_memory(const tr_augmenter *augmenter)
{
    return augmenter ? augmenter->memory : 0;
}

/* ---- images ---- */

static struct tr_draw draw_of(const struct tr_augmented *part, int64_t row, uint32_t which)
{
    return (struct tr_draw){
        .key = part->key,
        .example = (uint32_t)(part->batch->first + part->begin + row),
        .step = (uint32_t)part->batch->step,
        .which = which,
    };
}

/* The views of all rows; with mixing also those of their partners. */
static tr_status send_views(tr_augmenter *augmenter, const struct tr_augmented *part,
                            const struct tr_op_load_images *plain, uint32_t kinds)
{
    void *memory;
    TR_TRY(tr_outgoing_take(augmenter->device, &augmenter->views, &memory));
    struct tr_image_view *view = memory;
    for (uint32_t which = 0; which < kinds; which++) {
        for (int64_t r = 0; r < part->rows; r++) {
            const struct tr_draw draw = draw_of(part, r, which);
            tr_draw_view(&augmenter->input, plain, &draw, view++);
        }
    }
    return tr_outgoing_send(augmenter->device, &augmenter->views, augmenter->view,
                            (size_t)(part->rows * kinds) * sizeof *view);
}

static tr_status send_mixtures(tr_augmenter *augmenter, const struct tr_augmented *part,
                               const struct tr_op_load_images *plain)
{
    void *memory;
    TR_TRY(tr_outgoing_take(augmenter->device, &augmenter->mixtures, &memory));
    for (int64_t r = 0; r < part->rows; r++) {
        const struct tr_draw draw = draw_of(part, r, 0);
        double share;
        tr_draw_mix(&augmenter->input.augment, plain->out_h, plain->out_w, &draw,
                    (struct tr_image_mix *)memory + r, &share);
    }
    return tr_outgoing_send(augmenter->device, &augmenter->mixtures, augmenter->mix,
                            (size_t)part->rows * sizeof *augmenter->mix);
}

tr_status tr_augmenter_images(tr_augmenter *augmenter, const struct tr_augmented *part,
                              const struct tr_op_load_images *plain)
{
    const struct tr_input_options *input = &augmenter->input;
    struct tr_op_augment_images op = {
        .rows = part->rows * (1 + augmenter->mixes),
        .in_h = plain->in_h,
        .in_w = plain->in_w,
        .out_h = plain->out_h,
        .out_w = plain->out_w,
        .channels = plain->channels,
        .tint = tr_augmentation_tints(&input->augment),
        .least = input->range.count == 2 ? input->range.item[0] : 0,
        .most = input->range.count == 2 ? input->range.item[1] : 255,
        .erased = (float)input->augment.erase_value,
        .source = plain->source,
        .numbers = part->numbers,
        .index = plain->index,
        .view = augmenter->view,
        .y = augmenter->mixes ? augmenter->single : plain->y,
    };
    for (int i = 0; i < 4; i++) {
        op.scale[i] = plain->scale[i];
        op.shift[i] = plain->shift[i];
    }
    TR_TRY(send_views(augmenter, part, plain, augmenter->mixes ? 2 : 1));
    TR_TRY(tr_device_augment_images(augmenter->device, &op));
    if (!augmenter->mixes) return TR_OK;
    const struct tr_op_mix_images mix = {
        .rows = part->rows,
        .height = plain->out_h,
        .width = plain->out_w,
        .channels = plain->channels,
        .x = augmenter->single,
        .z = augmenter->single + part->rows * plain->out_h * plain->out_w * plain->channels,
        .mix = augmenter->mix,
        .y = plain->y,
    };
    TR_TRY(send_mixtures(augmenter, part, plain));
    return tr_device_mix_images(augmenter->device, &mix);
}

/* ---- labels ---- */

tr_status tr_augmenter_labels(tr_augmenter *augmenter, const struct tr_augmented *part,
                              const struct tr_op_load_images *plain, const struct tr_op_load_labels *labels)
{
    const struct tr_op_augment_labels op = {
        .rows = part->rows,
        .in_h = labels->in_h,
        .in_w = labels->in_w,
        .out_h = labels->out_h,
        .out_w = labels->out_w,
        .source = labels->source,
        .index = labels->index,
        .view = augmenter->view,
        .y = labels->y,
    };
    TR_TRY(send_views(augmenter, part, plain, 1));
    return tr_device_augment_labels(augmenter->device, &op);
}

/* The target of row `own` of the batch with weight `share`, mixed with that of row `other`. */
static void mix_targets(const struct tr_batch *batch, int64_t own, int64_t other, double share, int64_t width,
                        float *to)
{
    for (int64_t k = 0; k < width; k++) {
        const double x = batch->targets ? (double)batch->targets[own * width + k] : batch->labels[own] == k,
                     z = batch->targets ? (double)batch->targets[other * width + k]
                                        : batch->labels[other] == k;
        to[k] = (float)(share * x + (1 - share) * z);
    }
}

tr_status tr_augmenter_targets(tr_augmenter *augmenter, const struct tr_augmented *part, float *to)
{
    const int64_t width = width_of(augmenter);
    struct tr_shape stored, image;
    void *memory;
    tr_job_image(augmenter->job, &stored, &image);
    TR_TRY(tr_outgoing_take(augmenter->device, &augmenter->targets, &memory));
    for (int64_t r = 0; r < part->rows; r++) {
        const struct tr_draw draw = draw_of(part, r, 0);
        struct tr_image_mix mix;
        double share;
        tr_draw_mix(&augmenter->input.augment, (int32_t)image.size[0], (int32_t)image.size[1], &draw, &mix,
                    &share);
        mix_targets(part->batch, part->begin + r, part->batch->others + part->begin + r, share, width,
                    (float *)memory + r * width);
    }
    return tr_outgoing_send(augmenter->device, &augmenter->targets, to,
                            (size_t)(part->rows * width) * sizeof(float));
}
