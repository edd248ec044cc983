/* binary_cross_entropy: yes or no for each output, from scores and targets between 0 and 1. */
#include "nn/losses/table.h"

static tr_status run(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    (void)loss;
    struct tr_op_binary_cross_entropy op = {
        .rows = call->rows,
        .width = width,
        .scale = call->scale,
        .x = call->output,
        .target = call->target,
        .weight = call->training ? call->weight : NULL,
        .loss = call->loss,
        .correct = call->correct,
        .dx = call->gradient,
    };
    return tr_device_binary_cross_entropy(call->device, &op);
}

const struct tr_loss_class tr_loss_binary_cross_entropy = {
    .name = "binary_cross_entropy",
    .help = "yes or no for each output, from scores and values that are 1 or 0 (several may be 1); the mean "
            "over the outputs of an example",
    .answers = true,
    .mixes = true,
    .run = run,
};
