/* mean_squared_error: values; the mean over the outputs of an example. */
#include "nn/losses/table.h"

static tr_status run(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    (void)loss;
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

const struct tr_loss_class tr_loss_mean_squared_error = {
    .name = "mean_squared_error",
    .help = "values; the mean over the outputs of an example",
    .mixes = true,
    .run = run,
};
