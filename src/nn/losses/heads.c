/* heads: the weighted sum of several losses, each of a consecutive part of the outputs.
 *
 * The targets of an example are values: for a head with classes one, the number of the class; for any
 * other head as many as it has outputs.
 */
#include "nn/losses/table.h"

/* The parts of the scratch memory, each [rows] times a width. */
struct parts {
    float *output, *target, *gradient; /* [rows][width of the head], head after head */
    float *loss, *correct;             /* [rows] of one head */
    int32_t *label;
};

static struct parts parts_of(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    float *at = call->scratch;
    struct parts parts = {.output = at};
    parts.gradient = parts.output + call->rows * width;
    parts.target = parts.gradient + call->rows * width;
    parts.loss = parts.target + call->rows * tr_loss_targets(loss, width);
    parts.correct = parts.loss + call->rows;
    parts.label = (int32_t *)(void *)(parts.correct + call->rows);
    return parts;
}

/* Gathers the columns of each head. */
static tr_status split(const struct tr_loss *loss, const struct tr_loss_call *call, const struct parts *parts)
{
    struct tr_op_split_columns outputs = {.rows = call->rows, .parts = loss->head_count, .x = call->output};
    struct tr_op_split_columns targets = {.rows = call->rows, .parts = loss->head_count, .x = call->target};
    float *output = parts->output, *target = parts->target;
    for (int32_t i = 0; i < loss->head_count; i++) {
        outputs.width[i] = loss->head[i].outputs;
        outputs.y[i] = output;
        output += call->rows * outputs.width[i];
        targets.width[i] = tr_loss_head_targets(&loss->head[i]);
        targets.y[i] = target;
        target += call->rows * targets.width[i];
    }
    TR_TRY(tr_device_split_columns(call->device, &outputs));
    return tr_device_split_columns(call->device, &targets);
}

/* sum += factor * x, where x is overwritten. */
static tr_status add_share(const struct tr_loss_call *call, float factor, float *x, float *sum)
{
    struct tr_op_scale scale = {call->rows, factor, x, x};
    struct tr_op_add add = {call->rows, sum, x, sum};
    TR_TRY(tr_device_scale(call->device, &scale));
    return tr_device_add(call->device, &add);
}

static tr_status run_head(const struct tr_loss *head, const struct tr_loss_call *call,
                          const struct parts *parts, float share)
{
    struct tr_loss_call own = {
        .device = call->device,
        .rows = call->rows,
        .training = call->training,
        .scale = call->scale * head->weight,
        .output = parts->output,
        .label = parts->label,
        .target = parts->target,
        .weight = head->class_weights.count + head->quantiles.count > 0 ? call->weight : NULL,
        .loss = parts->loss,
        .correct = parts->correct,
        .gradient = call->gradient ? parts->gradient : NULL,
    };
    if (tr_loss_class_of(head)->classifies) {
        struct tr_op_to_labels labels = {call->rows, parts->target, parts->label};
        TR_TRY(tr_device_to_labels(call->device, &labels));
    }
    TR_TRY(tr_loss_run(head, head->outputs, &own));
    TR_TRY(add_share(call, head->weight, parts->loss, call->loss));
    return tr_loss_class_of(head)->answers ? add_share(call, share, parts->correct, call->correct) : TR_OK;
}

static tr_status run(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    struct parts parts = parts_of(loss, width, call);
    struct tr_op_fill no_loss = {call->rows, 0, call->loss}, no_correct = {call->rows, 0, call->correct};
    struct tr_op_join_columns gradient = {.rows = call->rows, .parts = loss->head_count, .y = call->gradient};
    struct tr_loss_call rest = *call;
    int32_t answering = 0;
    for (int32_t i = 0; i < loss->head_count; i++) answering += tr_loss_class_of(&loss->head[i])->answers;
    TR_TRY(tr_device_fill(call->device, &no_loss));
    TR_TRY(tr_device_fill(call->device, &no_correct));
    TR_TRY(split(loss, call, &parts));
    for (int32_t i = 0; i < loss->head_count; i++) {
        const struct tr_loss *head = &loss->head[i];
        TR_TRY(run_head(head, &rest, &parts, 1 / (float)answering));
        gradient.width[i] = head->outputs;
        gradient.x[i] = parts.gradient;
        parts.output += call->rows * head->outputs;
        parts.gradient += call->rows * head->outputs;
        parts.target += call->rows * tr_loss_head_targets(head);
        if (rest.weight) rest.weight += head->outputs;
    }
    return call->gradient ? tr_device_join_columns(call->device, &gradient) : TR_OK;
}

static tr_status check(const struct tr_loss *loss, const struct tr_shape *output)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < loss->head_count; i++) {
        struct tr_shape own = {1, {loss->head[i].outputs}, false};
        TR_TRY(tr_loss_check(&loss->head[i], &own));
        sum += loss->head[i].outputs;
    }
    if (sum == tr_shape_count(output)) return TR_OK;
    return tr_fail(TR_EINVAL, "the losses are of %lld outputs in all, the network has %lld", (long long)sum,
                   (long long)tr_shape_count(output));
}

const struct tr_loss_class tr_loss_heads = {
    .name = "heads",
    .help = "several losses, written as a list, each of some of the outputs",
    .answers = true,
    .check = check,
    .run = run,
};
