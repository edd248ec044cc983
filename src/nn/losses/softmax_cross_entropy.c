/* softmax_cross_entropy: classes, from scores and integer labels, of examples, of tokens or of pixels. */
#include "nn/losses/table.h"

static tr_status check(const struct tr_loss *loss, const struct tr_shape *output)
{
    char text[TR_SHAPE_TEXT];
    if (tr_loss_width(loss, tr_shape_count(output)) >= 2) return TR_OK;
    return tr_fail(TR_EINVAL, "softmax_cross_entropy needs at least 2 outputs%s, the network has %s",
                   loss->pixels > 0 ? " for each pixel" : "", tr_shape_text(output, text));
}

static float smoothing_of(const struct tr_loss *loss, const struct tr_loss_call *call)
{
    return call->training ? loss->label_smoothing : 0;
}

/* Computes pixel by pixel, then the mean of each example. */
static tr_status run_pixels(const struct tr_loss *loss, int64_t classes, const struct tr_loss_call *call)
{
    const int64_t pixels = call->rows * loss->pixels;
    float *each_loss = call->scratch, *each_correct = each_loss + pixels;
    const struct tr_op_softmax_cross_entropy op = {
        .rows = pixels,
        .classes = classes,
        .smoothing = smoothing_of(loss, call),
        .scale = call->scale,
        .x = call->output,
        .label = call->label,
        .loss = each_loss,
        .correct = each_correct,
        .dx = call->gradient,
    };
    const struct tr_op_mean_labelled mean = {
        .rows = call->rows,
        .places = loss->pixels,
        .classes = classes,
        .label = call->label,
        .each_loss = each_loss,
        .each_correct = each_correct,
        .weight = call->training ? call->weight : NULL,
        .loss = call->loss,
        .correct = call->correct,
        .dx = call->gradient,
    };
    TR_TRY(tr_device_softmax_cross_entropy(call->device, &op));
    return tr_device_mean_labelled(call->device, &mean);
}

/* sum = factor * sum + share * x, where x is overwritten. */
static tr_status mix(tr_device *device, int64_t count, float factor, float share, float *x, float *sum)
{
    struct tr_op_scale own = {count, factor, sum, sum}, other = {count, share, x, x};
    struct tr_op_add add = {count, sum, x, sum};
    TR_TRY(tr_device_scale(device, &own));
    TR_TRY(tr_device_scale(device, &other));
    return tr_device_add(device, &add);
}

/* The contribution of a teacher (Hinton and others 2015, "Distilling the Knowledge in a Neural Network"),
   with its scores z and the temperature T, added to the loss of the labels: (1 - share) * that + share * T
   * T times the cross-entropy of softmax(x / T) to softmax(z / T). The gradient of the latter is share * T
   times that of its scores x / T. */
static tr_status run_teacher(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    const int64_t count = call->rows * width;
    const float heat = loss->temperature, share = loss->taught;
    float *probability = call->scratch, *scores = probability + count, *gradient = scores + count,
          *each = gradient + count;
    struct tr_op_scale theirs = {count, 1 / heat, call->teacher, scores},
                       ours = {count, 1 / heat, call->output, scores};
    struct tr_op_softmax_forward softmax = {call->rows, width, scores, probability};
    struct tr_op_soft_cross_entropy soft = {
        .rows = call->rows,
        .classes = width,
        .scale = call->scale,
        .x = scores,
        .target = probability,
        .loss = each,
        .correct = each + call->rows,
        .dx = call->gradient ? gradient : NULL,
    };
    TR_TRY(tr_device_scale(call->device, &theirs));
    TR_TRY(tr_device_softmax_forward(call->device, &softmax));
    TR_TRY(tr_device_scale(call->device, &ours));
    TR_TRY(tr_device_soft_cross_entropy(call->device, &soft));
    TR_TRY(mix(call->device, call->rows, 1 - share, share * heat * heat, each, call->loss));
    return call->gradient ? mix(call->device, count, 1 - share, share * heat, gradient, call->gradient)
                          : TR_OK;
}

/* With rows of probabilities as targets, which are mixtures of labels. */
static tr_status run_mixed(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    const struct tr_op_soft_cross_entropy op = {
        .rows = call->rows,
        .classes = width,
        .smoothing = smoothing_of(loss, call),
        .scale = call->scale,
        .x = call->output,
        .target = call->target,
        .loss = call->loss,
        .correct = call->correct,
        .dx = call->gradient,
    };
    return tr_device_soft_cross_entropy(call->device, &op);
}

static tr_status run(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    if (loss->mixes && call->training) {
        TR_TRY(run_mixed(loss, width, call));
        return call->teacher ? run_teacher(loss, width, call) : TR_OK;
    }
    if (loss->pixels > 0) return run_pixels(loss, tr_loss_width(loss, width), call);
    struct tr_op_softmax_cross_entropy op = {
        .rows = call->rows,
        .classes = width,
        .smoothing = smoothing_of(loss, call),
        .scale = call->scale,
        .x = call->output,
        .label = call->label,
        .loss = call->loss,
        .correct = call->correct,
        .dx = call->gradient,
    };
    TR_TRY(tr_device_softmax_cross_entropy(call->device, &op));
    if (call->teacher) TR_TRY(run_teacher(loss, width, call));
    return tr_loss_weigh_classes(call, width);
}

const struct tr_loss_class tr_loss_softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .help = "classes, from scores and integer labels, of examples, of the tokens of sequences or of pixels",
    .classifies = true,
    .answers = true,
    .entropy = true,
    .of_tokens = true,
    .smooths = true,
    .distils = true,
    .mixes = true,
    .check = check,
    .run = run,
};
