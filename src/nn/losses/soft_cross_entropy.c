/* soft_cross_entropy: classes, from scores and a row of probabilities for each example. */
#include "nn/losses/table.h"

static tr_status check(const struct tr_loss *loss, const struct tr_shape *output)
{
    (void)loss;
    char text[TR_SHAPE_TEXT];
    if (tr_shape_count(output) >= 2) return TR_OK;
    return tr_fail(TR_EINVAL, "soft_cross_entropy needs at least 2 outputs, the network has %s",
                   tr_shape_text(output, text));
}

static tr_status run(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    struct tr_op_soft_cross_entropy op = {
        .rows = call->rows,
        .classes = width,
        .smoothing = call->training ? loss->label_smoothing : 0,
        .scale = call->scale,
        .x = call->output,
        .target = call->target,
        .loss = call->loss,
        .correct = call->correct,
        .dx = call->gradient,
    };
    return tr_device_soft_cross_entropy(call->device, &op);
}

const struct tr_loss_class tr_loss_soft_cross_entropy = {
    .name = "soft_cross_entropy",
    .help = "classes, from scores and the probability of each class for each example",
    .answers = true,
    .entropy = true,
    .soft = true,
    .smooths = true,
    .mixes = true,
    .check = check,
    .run = run,
};
