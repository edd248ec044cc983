/* contrastive and triplet: embeddings of two or three inputs side by side, whose distances are compared with
 * a margin. The loss of an example is of its own embeddings alone: those of others, as losses within a batch
 * have them, would depend on how the batch is cut into microbatches.
 */
#include "nn/losses/table.h"

static tr_status check(const struct tr_loss *loss, const struct tr_shape *output)
{
    const struct tr_loss_class *class = tr_loss_class_of(loss);
    char text[TR_SHAPE_TEXT];
    if (output->rank == 1 && output->size[0] % class->embeddings == 0) return TR_OK;
    return tr_fail(TR_EINVAL,
                   "%s compares %d vectors of one width, the network's output is %s; end it with a concat of "
                   "the towers' vectors",
                   class->name, (int)class->embeddings, tr_shape_text(output, text));
}

static tr_status run_contrastive(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    struct tr_op_contrastive_error op = {
        .rows = call->rows,
        .width = width / 2,
        .margin = loss->margin,
        .scale = call->scale,
        .x = call->output,
        .label = call->label,
        .loss = call->loss,
        .correct = call->correct,
        .dx = call->gradient,
    };
    return tr_device_contrastive_error(call->device, &op);
}

static tr_status run_triplet(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    struct tr_op_triplet_error op = {
        .rows = call->rows,
        .width = width / 3,
        .squared = loss->squared,
        .margin = loss->margin,
        .scale = call->scale,
        .x = call->output,
        .loss = call->loss,
        .correct = call->correct,
        .dx = call->gradient,
    };
    return tr_device_triplet_error(call->device, &op);
}

const struct tr_loss_class tr_loss_contrastive = {
    .name = "contrastive",
    .help = "pairs: two vectors of one width side by side, and the classes 1 (same) and 0 (different); "
            "different ones are pushed apart up to a distance of `margin`",
    .classifies = true,
    .answers = true,
    .embeddings = 2,
    .check = check,
    .run = run_contrastive,
};

const struct tr_loss_class tr_loss_triplet = {
    .name = "triplet",
    .help = "triples: the vectors of an anchor, of one like it and of one unlike it side by side; the second "
            "distance should exceed the first by `margin`. Labels are ignored",
    .answers = true,
    .embeddings = 3,
    .check = check,
    .run = run_triplet,
};
