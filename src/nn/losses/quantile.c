/* quantile: values, of which outputs are quantiles; the quantiles of one value, named by `quantiles`, are
 * consecutive.
 */
#include "nn/losses/table.h"

static tr_status check(const struct tr_loss *loss, const struct tr_shape *output)
{
    char text[TR_SHAPE_TEXT];
    const int32_t count = loss->quantiles.count;
    if (count == 0)
        return tr_fail(TR_EINVAL,
                       "the loss quantile needs quantiles, for instance quantiles: [0.1, 0.5, 0.9]");
    if (tr_shape_count(output) % count == 0) return TR_OK;
    return tr_fail(
        TR_EINVAL,
        "the network has %s outputs, which are not %d quantiles for each value; give its last layer "
        "as many units as quantiles times values",
        tr_shape_text(output, text), (int)count);
}

static tr_status run(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    struct tr_op_fill none_correct = {call->rows, 0, call->correct};
    TR_TRY(tr_device_fill(call->device, &none_correct));
    struct tr_op_quantile_error op = {
        .rows = call->rows,
        .width = width,
        .each = loss->quantiles.count,
        .scale = call->scale,
        .x = call->output,
        .target = call->target,
        .quantile = call->weight,
        .loss = call->loss,
        .dx = call->gradient,
    };
    return tr_device_quantile_error(call->device, &op);
}

const struct tr_loss_class tr_loss_quantile = {
    .name = "quantile",
    .help =
        "values, of which the network gives the `quantiles`, in their order, one value after the other; the "
        "mean over the outputs of an example",
    .check = check,
    .run = run,
};
