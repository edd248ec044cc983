#include "nn/loss.h"

#include "base/fail.h"

static const struct tr_choice kinds[] = {
    {"softmax_cross_entropy", TR_LOSS_SOFTMAX_CROSS_ENTROPY, "classes, from scores and integer labels"},
    {"mean_squared_error", TR_LOSS_MEAN_SQUARED_ERROR, "values; the mean over the outputs of an example"},
    {NULL, 0},
};

const struct tr_option tr_loss_options[] = {
    {"kind", TR_OPTION_CHOICE, offsetof(struct tr_loss, kind), "softmax_cross_entropy", 0, 0, kinds,
     "what the output is compared with"},
    {"label_smoothing", TR_OPTION_FLOAT, offsetof(struct tr_loss, label_smoothing), "0", 0, 1, NULL,
     "share of the target that is spread over all classes", TR_OPTION_BELOW_MOST},
};
const int32_t tr_loss_option_count = TR_OPTION_COUNT(tr_loss_options);

tr_status tr_loss_read(const tr_config *node, const struct tr_shape *output, struct tr_loss *loss)
{
    char text[TR_SHAPE_TEXT];
    TR_TRY(tr_options_defaults(tr_loss_options, tr_loss_option_count, loss));
    TR_TRY(tr_options_read(tr_loss_options, tr_loss_option_count, node, "loss", loss));
    if (output->sequence)
        return tr_fail(TR_EINVAL, "the network's output is a sequence (%s); end it with a \"last\" layer",
                       tr_shape_text(output, text));
    if (loss->kind == TR_LOSS_SOFTMAX_CROSS_ENTROPY) {
        if (tr_shape_count(output) < 2)
            return tr_fail(TR_EINVAL, "softmax_cross_entropy needs at least 2 outputs, the network has %s",
                           tr_shape_text(output, text));
    } else if (loss->label_smoothing > 0) {
        return tr_config_fail(TR_EINVAL, node, "label_smoothing is for softmax_cross_entropy only");
    }
    return TR_OK;
}

tr_status tr_loss_run(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    if (loss->kind == TR_LOSS_SOFTMAX_CROSS_ENTROPY) {
        struct tr_op_softmax_cross_entropy op = {
            .rows = call->rows,
            .classes = width,
            .smoothing = loss->label_smoothing,
            .scale = call->scale,
            .x = call->output,
            .label = call->label,
            .loss = call->loss,
            .correct = call->correct,
            .dx = call->gradient,
        };
        return tr_device_softmax_cross_entropy(call->device, &op);
    }
    struct tr_op_fill none_correct = {call->rows, 0, call->correct};
    TR_TRY(tr_device_fill(call->device, &none_correct));
    struct tr_op_mean_squared_error op = {
        .rows = call->rows,
        .width = width,
        .scale = call->scale,
        .x = call->output,
        .target = call->target,
        .loss = call->loss,
        .dx = call->gradient,
    };
    return tr_device_mean_squared_error(call->device, &op);
}
