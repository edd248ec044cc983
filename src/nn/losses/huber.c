/* mean_absolute_error and huber: values, where large errors count less than squared (Huber 1964). */
#include "nn/losses/table.h"

static tr_status run_with(float delta, int64_t width, const struct tr_loss_call *call)
{
    struct tr_op_fill none_correct = {call->rows, 0, call->correct};
    TR_TRY(tr_device_fill(call->device, &none_correct));
    struct tr_op_huber_error op = {
        .rows = call->rows,
        .width = width,
        .delta = delta,
        .scale = call->scale,
        .x = call->output,
        .target = call->target,
        .loss = call->loss,
        .dx = call->gradient,
    };
    return tr_device_huber_error(call->device, &op);
}

static tr_status run_absolute(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    (void)loss;
    return run_with(0, width, call);
}

static tr_status run_huber(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    return run_with(loss->delta, width, call);
}

const struct tr_loss_class tr_loss_mean_absolute_error = {
    .name = "mean_absolute_error",
    .help = "values; the mean of the distances over the outputs of an example",
    .run = run_absolute,
};

const struct tr_loss_class tr_loss_huber = {
    .name = "huber",
    .help = "values; half the squared distance up to `delta`, linear beyond; the mean over the outputs of an "
            "example",
    .run = run_huber,
};
