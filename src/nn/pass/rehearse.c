/* A pass on a device that lacks operations: runs all calls once, with operations that do nothing, so that
 * a missing one is reported when the network is built and not in the middle of a step.
 */
#include "nn/pass/internal.h"

#include "base/threads/timeline.h"

#include "base/fail.h"

#include <stdio.h>

#define NOTHING(op)                                                                                          \
    static tr_status nothing_##op(tr_device *device, const struct tr_op_##op *arguments)                     \
    {                                                                                                        \
        (void)device;                                                                                        \
        (void)arguments;                                                                                     \
        return TR_OK;                                                                                        \
    }
TR_DEVICE_OPS(NOTHING)
#undef NOTHING

static bool has_all(const struct tr_device_class *class)
{
#define ASK(op) &&class->op
    return true TR_DEVICE_OPS(ASK);
#undef ASK
}

/* One example with one token, as one microbatch. The memory is never read. */
static tr_status run(struct tr_pass *pass)
{
    const int64_t row[] = {0, 1};
    const int32_t bound[] = {0, 1};
    const struct tr_pass_batch batch = {.examples = 1,
                                        .tokens = 1,
                                        .global_examples = 1,
                                        .microbatches = 1,
                                        .nodes = 1,
                                        .example_row = row,
                                        .token_row = row,
                                        .second_tokens = 1,
                                        .second_row = row,
                                        .node_bound = bound,
                                        .scalars = pass->memory};
    float *some = pass->memory;
    TR_TRY(tr_pass_forward(pass, &batch, some, some, 0));
    if (pass_is_last(pass)) TR_TRY(tr_pass_loss(pass, &batch));
    return pass->limits.training ? tr_pass_backward(pass, &batch, some, some, 0) : TR_OK;
}

tr_status pass_rehearse(struct tr_pass *pass)
{
    const struct tr_device_class *class = pass->device->class;
    if (has_all(class)) return TR_OK;
    const struct tr_device_class nothing = {.name = class->name,
                                            .version = TR_DEVICE_VERSION,
                                            .host_memory = true, /* nothing to wait for */
#define SLOT(op) .op = class->op ? nothing_##op : NULL,
                                            TR_DEVICE_OPS(SLOT)
#undef SLOT
    };
    tr_device *device = pass->device, stand_in = *device;
    stand_in.class = &nothing;
    tr_lane *lane = tr_lane_current; /* nothing is computed, so nothing is recorded */
    pass->device = &stand_in;
    tr_lane_current = NULL;
    tr_status status = run(pass);
    tr_lane_current = lane;
    pass->device = device;
    return status;
}
