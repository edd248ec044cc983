#include "nn/loss.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "nn/losses/table.h"

#include <math.h>
#include <string.h>

#define ENTRY(class) &tr_loss_##class.entry,
static const struct tr_entry *const entries[] = {TR_LOSS_TABLE(ENTRY) NULL};
#undef ENTRY

const struct tr_registry tr_loss_classes = {.kind = "loss", .entries = entries};

static const struct tr_choice units[] = {
    {.name = "example", .value = TR_LOSS_PER_EXAMPLE, .help = "one"},
    {.name = "pixel",
     .value = TR_LOSS_PER_PIXEL,
     .help =
         "one for each pixel, and the network's output is height x width x classes (segmentation); the loss "
         "of an example is the mean over its pixels that have a label"},
    {.name = NULL},
};

const struct tr_option tr_loss_options[] = {
    {.key = "kind",
     .type = TR_OPTION_CHOICE,
     .offset = offsetof(struct tr_loss, kind),
     .fallback = "softmax_cross_entropy",
     .registry = &tr_loss_classes,
     .help = "the measure of the error"},
    {"label_smoothing", TR_OPTION_FLOAT, offsetof(struct tr_loss, label_smoothing), "0", 0, 1, NULL,
     "fraction of the target that is spread over all classes in training; evaluations use the plain "
     "cross-entropy",
     TR_OPTION_BELOW_MOST},
    {.key = "class_weights",
     .type = TR_OPTION_FLOAT_LIST,
     .offset = offsetof(struct tr_loss, class_weights),
     .fallback = "",
     .least = 0,
     .most = 1e6,
     .flags = TR_OPTION_QUIET,
     .only = 1u << TR_LOSS_softmax_cross_entropy | 1u << TR_LOSS_binary_cross_entropy | 1u << TR_LOSS_focal,
     .help = "weights in training, one for each class, or, with `binary_cross_entropy`, for the yes of each "
             "output (one number: for all)"},
    {.key = "delta",
     .type = TR_OPTION_FLOAT,
     .offset = offsetof(struct tr_loss, delta),
     .fallback = "1",
     .least = 0,
     .most = INFINITY,
     .flags = TR_OPTION_QUIET | TR_OPTION_ABOVE_LEAST,
     .only = 1u << TR_LOSS_huber,
     .help = "distance beyond which the error is linear"},
    {.key = "per",
     .type = TR_OPTION_CHOICE,
     .offset = offsetof(struct tr_loss, per),
     .fallback = "example",
     .choices = units,
     .flags = TR_OPTION_QUIET,
     .only = 1u << TR_LOSS_softmax_cross_entropy,
     .help = "labels of an example"},
    {.key = "gamma",
     .type = TR_OPTION_FLOAT,
     .offset = offsetof(struct tr_loss, gamma),
     .fallback = "2",
     .least = 0,
     .most = 100,
     .flags = TR_OPTION_QUIET,
     .only = 1u << TR_LOSS_focal,
     .help =
         "the cross-entropy of an example counts by (1 - p)^gamma, where p is the probability of its class"},
    {.key = "quantiles",
     .type = TR_OPTION_FLOAT_LIST,
     .offset = offsetof(struct tr_loss, quantiles),
     .fallback = "",
     .least = 0,
     .most = 1,
     .flags = TR_OPTION_QUIET | TR_OPTION_ABOVE_LEAST | TR_OPTION_BELOW_MOST,
     .only = 1u << TR_LOSS_quantile,
     .help = "the quantiles of each value, for instance [0.1, 0.5, 0.9]"},
    {.key = "logs",
     .type = TR_OPTION_BOOL,
     .offset = offsetof(struct tr_loss, logs),
     .fallback = "true",
     .flags = TR_OPTION_QUIET,
     .only = 1u << TR_LOSS_poisson,
     .help = "outputs are logarithms of rates; else they are rates"},
    {.key = "epsilon",
     .type = TR_OPTION_FLOAT,
     .offset = offsetof(struct tr_loss, epsilon),
     .fallback = "1e-8",
     .least = 0,
     .most = 1,
     .flags = TR_OPTION_QUIET,
     .only = 1u << TR_LOSS_poisson,
     .help = "added to a rate before its logarithm, with `logs: false`"},
    {.key = "margin",
     .type = TR_OPTION_FLOAT,
     .offset = offsetof(struct tr_loss, margin),
     .fallback = "1",
     .least = 0,
     .most = INFINITY,
     .flags = TR_OPTION_QUIET | TR_OPTION_ABOVE_LEAST,
     .only = 1u << TR_LOSS_contrastive | 1u << TR_LOSS_triplet,
     .help = "`contrastive`: pairs of different kinds are pushed apart up to this distance; `triplet`: the "
             "unlike "
             "vector is pushed away until its distance exceeds that of the like one by this"},
    {.key = "squared",
     .type = TR_OPTION_BOOL,
     .offset = offsetof(struct tr_loss, squared),
     .fallback = "true",
     .flags = TR_OPTION_QUIET,
     .only = 1u << TR_LOSS_triplet,
     .help = "use squared distances, as in the paper; otherwise Euclidean ones, as PyTorch does"},
};
const int32_t tr_loss_option_count = TR_OPTION_COUNT(tr_loss_options);

/* Additional options of one loss among several. */
static const struct tr_option head_options[] = {
    {"outputs", TR_OPTION_INT64, offsetof(struct tr_loss, outputs), NULL, 1, 1 << 28, NULL,
     "how many of the outputs it is of"},
    {"weight", TR_OPTION_FLOAT, offsetof(struct tr_loss, weight), "1", 0, INFINITY, NULL, "what it counts",
     TR_OPTION_ABOVE_LEAST},
};
#define LOSS_OPTIONS TR_OPTION_COUNT(tr_loss_options)
#define HEAD_OPTIONS (LOSS_OPTIONS + TR_OPTION_COUNT(head_options))

static void head_table(struct tr_option table[HEAD_OPTIONS])
{
    memcpy(table, tr_loss_options, sizeof tr_loss_options);
    memcpy(table + LOSS_OPTIONS, head_options, sizeof head_options);
}

static tr_status read_one(const struct tr_option *table, int32_t count, const tr_config *node,
                          struct tr_loss *loss)
{
    TR_TRY(tr_options_defaults(table, count, loss));
    TR_TRY(tr_options_read(table, count, node, "loss", loss));
    if (loss->kind == TR_LOSS_heads)
        return tr_config_fail(TR_EINVAL, node,
                              "heads are written as a list: loss: [{kind: ..., outputs: ...}, ...]");
    if (loss->label_smoothing > 0 && !tr_loss_class_of(loss)->smooths)
        return tr_config_fail(TR_EINVAL, node, "%s has no label_smoothing", tr_loss_class_of(loss)->name);
    return TR_OK;
}

static tr_status read_heads(const tr_config *list, struct tr_loss *loss)
{
    struct tr_option table[HEAD_OPTIONS];
    int32_t count = tr_config_count(list);
    if (count < 1 || count > TR_LOSS_HEADS)
        return tr_config_fail(TR_EINVAL, list, "%d losses; 1 to %d are allowed", (int)count, TR_LOSS_HEADS);
    head_table(table);
    loss->kind = TR_LOSS_heads;
    loss->head = tr_alloc_zero((size_t)count, sizeof *loss->head);
    if (!loss->head) return TR_ENOMEM;
    loss->head_count = count;
    for (int32_t i = 0; i < count; i++) {
        TR_TRY(read_one(table, HEAD_OPTIONS, tr_config_at(list, i), &loss->head[i]));
        if (tr_loss_embeds(&loss->head[i]))
            return tr_config_fail(TR_EUNSUPPORTED, tr_config_at(list, i), "%s stands alone, not among others",
                                  tr_loss_class_of(&loss->head[i])->name);
        if (loss->head[i].per == TR_LOSS_PER_PIXEL)
            return tr_config_fail(TR_EUNSUPPORTED, tr_config_at(list, i),
                                  "a loss per pixel stands alone, not among others");
    }
    return TR_OK;
}

tr_status tr_loss_read(const tr_config *node, struct tr_loss *loss)
{
    *loss = (struct tr_loss){0};
    if (node && tr_config_kind(node) == TR_CONFIG_SEQUENCE) {
        TR_TRY(tr_options_defaults(tr_loss_options, tr_loss_option_count, loss));
        return read_heads(node, loss);
    }
    return read_one(tr_loss_options, tr_loss_option_count, node, loss);
}

void tr_loss_release(struct tr_loss *loss)
{
    tr_free(loss->head);
    loss->head = NULL;
    loss->head_count = 0;
}

static tr_status dump_one(const struct tr_option *table, int32_t count, const struct tr_loss *loss,
                          struct tr_text *text)
{
    char *dump;
    TR_TRY(tr_options_dump(table, count, loss, &dump));
    tr_text_add(text, dump);
    tr_free(dump);
    return TR_OK;
}

tr_status tr_loss_dump(const struct tr_loss *loss, struct tr_text *text)
{
    struct tr_option table[HEAD_OPTIONS];
    if (loss->kind != TR_LOSS_heads) return dump_one(tr_loss_options, tr_loss_option_count, loss, text);
    head_table(table);
    for (int32_t i = 0; i < loss->head_count; i++) {
        tr_text_add(text, i ? ", " : "[");
        TR_TRY(dump_one(table, HEAD_OPTIONS, &loss->head[i], text));
    }
    tr_text_add(text, "]");
    return TR_OK;
}

bool tr_loss_answers(const struct tr_loss *loss)
{
    bool any = loss->kind != TR_LOSS_heads && tr_loss_class_of(loss)->answers;
    for (int32_t i = 0; i < loss->head_count; i++) any |= tr_loss_class_of(&loss->head[i])->answers;
    return any;
}

static struct tr_answer_part part_of(const struct tr_loss *loss, int64_t outputs)
{
    const struct tr_answer_part part = {tr_loss_scores_classes(loss)      ? TR_ANSWER_CLASSES
                                        : tr_loss_has_probabilities(loss) ? TR_ANSWER_YES
                                                                          : TR_ANSWER_VALUES,
                                        outputs, tr_loss_is_of_logs(loss)};
    return part;
}

int32_t tr_loss_parts(const struct tr_loss *loss, int64_t outputs, struct tr_answer_part part[TR_LOSS_HEADS])
{
    for (int32_t i = 0; i < loss->head_count; i++) part[i] = part_of(&loss->head[i], loss->head[i].outputs);
    if (loss->head_count > 0) return loss->head_count;
    part[0] = part_of(loss, outputs);
    return 1;
}

int64_t tr_loss_targets(const struct tr_loss *loss, int64_t outputs)
{
    int64_t sum = 0;
    if (tr_loss_embeds(loss)) return 0;
    if (loss->kind != TR_LOSS_heads)
        return tr_loss_class_of(loss)->classifies ? 0 : outputs / tr_loss_each(loss);
    for (int32_t i = 0; i < loss->head_count; i++) sum += tr_loss_head_targets(&loss->head[i]);
    return sum;
}

int64_t tr_loss_scratch(const struct tr_loss *loss, int64_t outputs, int64_t rows)
{
    if (loss->taught > 0) return rows * (3 * outputs + 2) * (int64_t)sizeof(float);
    if (loss->kind != TR_LOSS_heads) return 2 * rows * loss->pixels * (int64_t)sizeof(float);
    return rows * (2 * outputs + tr_loss_targets(loss, outputs) + 3) * (int64_t)sizeof(float);
}

static tr_status check_weights(const struct tr_loss *loss, int64_t outputs)
{
    int32_t count = loss->class_weights.count;
    bool for_all = count == 1 && !tr_loss_class_of(loss)->classifies;
    if (count == 0 || for_all || count == outputs) return TR_OK;
    return tr_fail(TR_EINVAL, "class_weights has %d numbers, the network %lld outputs%s; give one for each",
                   (int)count, (long long)outputs, loss->pixels > 0 ? " for a pixel" : "");
}

tr_status tr_loss_settle(struct tr_loss *loss, const struct tr_shape *input, const struct tr_shape *output)
{
    char have[TR_SHAPE_TEXT], text[TR_SHAPE_TEXT];
    if (loss->per != TR_LOSS_PER_PIXEL) return tr_loss_check(loss, output);
    if (output->rank != 3 || output->sequence)
        return tr_fail(
            TR_EINVAL,
            "a loss per pixel compares height x width x classes, the network has %s; end it with a "
            "conv of a channel for each class",
            tr_shape_text(output, have));
    if (input->rank != 3 || input->sequence)
        return tr_fail(TR_EINVAL, "a loss per pixel is of networks that take an image, this one takes %s",
                       tr_shape_text(input, have));
    if (output->size[0] != input->size[0] || output->size[1] != input->size[1])
        return tr_fail(TR_EINVAL,
                       "its output is %s, and the network's input %s: a loss per pixel wants scores for each "
                       "pixel of the input; end the network with conv_transpose or upsample",
                       tr_shape_text(output, have), tr_shape_text(input, text));
    loss->pixels = output->size[0] * output->size[1];
    if (loss->pixels > 1 << 24)
        return tr_fail(TR_EINVAL, "a loss per pixel is of at most 2^24 pixels, the network's output is %s",
                       tr_shape_text(output, have));
    return tr_loss_check(loss, output);
}

tr_status tr_loss_check(const struct tr_loss *loss, const struct tr_shape *output)
{
    const struct tr_loss_class *class = tr_loss_class_of(loss);
    char text[TR_SHAPE_TEXT];
    if (output->sequence && !class->of_tokens)
        return tr_fail(TR_EINVAL,
                       "its output is a sequence (%s), which %s does not compare token by token; end it with "
                       "last, global_average_pool or global_max_pool",
                       tr_shape_text(output, text), class->name);
    TR_TRY(check_weights(loss, tr_loss_width(loss, tr_shape_count(output))));
    return class->check ? class->check(loss, output) : TR_OK;
}

bool tr_loss_weights(const struct tr_loss *loss, int64_t width, float *weight)
{
    const struct tr_float_list *given = loss->quantiles.count > 0 ? &loss->quantiles : &loss->class_weights;
    bool any = given->count > 0;
    for (int64_t k = 0; loss->kind != TR_LOSS_heads && k < width; k++)
        weight[k] = any ? given->item[loss->quantiles.count > 0 ? k % given->count
                                      : given->count > 1        ? k
                                                                : 0]
                        : 1;
    for (int32_t i = 0; i < loss->head_count; weight += loss->head[i++].outputs)
        any |= tr_loss_weights(&loss->head[i], loss->head[i].outputs, weight);
    return any;
}

tr_status tr_loss_run(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call)
{
    return tr_loss_class_of(loss)->run(loss, width, call);
}
