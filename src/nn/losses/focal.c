/* focal: classes, with less weight for examples that are already classified well (Lin and others 2017). */
#include "nn/losses/table.h"

static tr_status check(const struct tr_loss *loss, const struct tr_shape *output)
{
    (void)loss;
    char text[TR_SHAPE_TEXT];
    if (tr_shape_count(output) >= 2) return TR_OK;
    return tr_fail(TR_EINVAL, "focal needs at least 2 outputs, the network has %s",
                   tr_shape_text(output, text));
}

static tr_status run(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    struct tr_op_focal_cross_entropy op = {
        .rows = call->rows,
        .classes = width,
        .gamma = loss->gamma,
        .scale = call->scale,
        .x = call->output,
        .label = call->label,
        .loss = call->loss,
        .correct = call->correct,
        .dx = call->gradient,
    };
    TR_TRY(tr_device_focal_cross_entropy(call->device, &op));
    return tr_loss_weigh_classes(call, width);
}

const struct tr_loss_class tr_loss_focal = {
    .name = "focal",
    .help = "classes, from scores and integer labels; examples that are answered well count less, by `gamma`",
    .classifies = true,
    .answers = true,
    .check = check,
    .run = run,
};
