/* poisson: counts; the outputs are their rates or the logarithms of these. */
#include "nn/losses/table.h"

static tr_status run(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    struct tr_op_fill none_correct = {call->rows, 0, call->correct};
    TR_TRY(tr_device_fill(call->device, &none_correct));
    struct tr_op_poisson_error op = {
        .rows = call->rows,
        .width = width,
        .logs = loss->logs,
        .epsilon = loss->epsilon,
        .scale = call->scale,
        .x = call->output,
        .target = call->target,
        .loss = call->loss,
        .dx = call->gradient,
    };
    return tr_device_poisson_error(call->device, &op);
}

const struct tr_loss_class tr_loss_poisson = {
    .name = "poisson",
    .help =
        "counts, of which the network gives the logarithm of the rate, or with `logs: false` the rate; the "
        "mean over the outputs of an example",
    .counts = true,
    .run = run,
};
