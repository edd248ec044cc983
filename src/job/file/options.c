#include "job/file/options.h"

#include "data/order/batch.h"

#include <math.h>

static const struct tr_choice last_batches[] = {
    {"keep", TR_LAST_BATCH_KEEP, "an epoch may end with a smaller batch"},
    {"drop", TR_LAST_BATCH_DROP, "examples that fill no batch are left out in that epoch"},
    {NULL, 0},
};

static const struct tr_choice keep_bests[] = {
    {"auto", TR_KEEP_BEST_AUTO, "with `patience`, `until_accuracy` or `monitor`"},
    {"always", TR_KEEP_BEST_ALWAYS, NULL},
    {"never", TR_KEEP_BEST_NEVER, NULL},
    {NULL, 0},
};

static const struct tr_choice samplings[] = {
    {"once", TR_SAMPLING_ONCE, "each once"},
    {"balanced", TR_SAMPLING_BALANCED, "drawn with replacement, all classes equally often"},
    {"shares", TR_SAMPLING_SHARES,
     "drawn with replacement, the classes in the proportion of `sampling_shares`"},
    {NULL, 0},
};

static const struct tr_choice splits[] = {
    {"random", TR_SPLIT_RANDOM, "drawn from all"},
    {"stratified", TR_SPLIT_STRATIFIED, "drawn so that both parts have the same share of every class"},
    {NULL, 0, NULL},
};

static const struct tr_choice policies[] = {
    {"stop", TR_NONFINITE_STOP, "end the run and keep the last good checkpoint"},
    {"skip", TR_NONFINITE_SKIP, "leave the step out and warn"},
    {NULL, 0},
};

#define AT(field) offsetof(struct tr_train_options, field)
const struct tr_option tr_train_option_table[] = {
    {"batch", TR_OPTION_INT64, AT(batch), NULL, 1, 1 << 24, NULL,
     "examples of a global batch, over all workers together"},
    {"microbatches", TR_OPTION_INT64, AT(microbatches), "0", 0, 65536, NULL,
     "parts of the batch; their gradients are added in a fixed tree, and at most as many workers can share a "
     "step. `batch_norm` computes its means over a part. 0: the largest power of two, at most 16, with 25 or "
     "more examples each"},
    {"pass", TR_OPTION_INT64, AT(pass), "0", 0, 65536, NULL,
     "microbatches computed at a time, a power of two; fewer need less memory. 0: all, or in a pipeline the "
     "fastest number. Does not change results"},
    {"recompute", TR_OPTION_STRING_LIST, AT(recompute), "", 0, 0, NULL,
     "compute layers again in backward instead of keeping their outputs: `true` for those that save most "
     "memory, or names of layers. Does not change results"},
    {"steps", TR_OPTION_INT64, AT(steps), "0", 0, TR_OPTION_WHOLE, NULL, "steps to train; or give epochs"},
    {"epochs", TR_OPTION_INT64, AT(epochs), "0", 0, TR_OPTION_WHOLE, NULL, "epochs to train; or give steps"},
    {"log_every", TR_OPTION_INT64, AT(log_every), "100", 0, TR_OPTION_WHOLE, NULL,
     "steps between reports; 0: none"},
    {"evaluate_every", TR_OPTION_INT64, AT(evaluate_every), "0", 0, TR_OPTION_WHOLE, NULL,
     "steps between evaluations on the validation data, or without those on the test data; 0: at the end "
     "only"},
    {"evaluate_batch", TR_OPTION_INT64, AT(evaluate_batch), "250", 1, 1 << 20, NULL,
     "examples computed at a time in evaluations. Does not change results"},
    {"checkpoint_every", TR_OPTION_INT64, AT(checkpoint_every), "0", 0, TR_OPTION_WHOLE, NULL,
     "steps between checkpoints; 0: at the end only"},
    {"checkpoint_seconds", TR_OPTION_DOUBLE, AT(checkpoint_seconds), "600", 0, 1e9, NULL,
     "seconds between checkpoints; 0: never"},
    {"keep", TR_OPTION_INT32, AT(keep), "2", 2, 1000000, NULL, "checkpoints to keep"},
    {"receipt", TR_OPTION_BOOL, AT(receipt), "false", 0, 0, NULL,
     "keep a receipt, run.receipt, with which others can verify the run. Does not change results"},
    {"receipt_every", TR_OPTION_INT64, AT(receipt_every), "1000", 0, TR_OPTION_WHOLE, NULL,
     "steps between digests of the state in a receipt; each checkpoint adds one, too; 0: only these"},
    {"keep_best", TR_OPTION_CHOICE, AT(keep_best), "auto", 0, 0, keep_bests,
     "whether the checkpoint of the best evaluation is kept as `checkpoint-best`: by `monitor` where it is "
     "given, the highest accuracy with `until_accuracy`, else the lowest loss"},
    {"shuffle", TR_OPTION_BOOL, AT(shuffle), "true", 0, 0, NULL,
     "a new order of the examples in every epoch"},
    {"last_batch", TR_OPTION_CHOICE, AT(last_batch), "keep", 0, 0, last_batches,
     "examples at the end of an epoch that do not fill a batch"},
    {"prefetch", TR_OPTION_INT32, AT(prefetch), "-1", -1, TR_PREFETCH_MAX, NULL,
     "batches read ahead by a thread; -1: 2 if reading is slow, 1 by idle threads from files of the cache, "
     "else 0; never for images in memory"},
    {"on_nonfinite", TR_OPTION_CHOICE, AT(on_nonfinite), "stop", 0, 0, policies,
     "reaction to a loss or gradient that is not finite"},
    {"until_accuracy", TR_OPTION_DOUBLE, AT(until_accuracy), "0", 0, 1, NULL,
     "stop once an evaluation reaches this accuracy; 0: never"},
    {"patience", TR_OPTION_INT64, AT(patience), "0", 0, TR_OPTION_WHOLE, NULL,
     "stop after this number of evaluations without a better loss, or figure of `monitor`; 0: never"},
    {"monitor", TR_OPTION_STRING, AT(monitor), "", 0, 0, NULL,
     "figure by which `patience`, `keep_best` and the schedule `plateau` compare evaluations: a metric, "
     "such as f1 (or macro_f1), roc_auc or rmse; default: the loss"},
    {"top_k", TR_OPTION_INT32, AT(top_k), "5", 1, 1 << 24, NULL,
     "evaluations count how often the right class is among this number of highest scores"},
    {"sampling", TR_OPTION_CHOICE, AT(sampling), "once", 0, 0, samplings,
     "training examples of an epoch, whose size stays the same"},
    {"sampling_shares", TR_OPTION_FLOAT_LIST, AT(sampling_shares), "", 0, INFINITY, NULL,
     "for `sampling: shares`: proportions of the classes, one number for each"},
};
#undef AT
const int32_t tr_train_option_count = TR_OPTION_COUNT(tr_train_option_table);

#define AT(field) offsetof(struct tr_input_options, field)
const struct tr_option tr_input_option_table[] = {
    {"shape", TR_OPTION_INT_LIST, AT(shape), "", 1, 1 << 24, NULL,
     "shape of an example: height, width, channels, or a number of values; default: from the data"},
    {"steps", TR_OPTION_INT64, AT(steps), "0", 0, 1 << 24, NULL,
     "divides the numbers of an example into this number of vectors, a sequence; 0: as the data say",
     .flags = TR_OPTION_QUIET},
    {"image", TR_OPTION_INT_LIST, AT(image), "", 1, 1 << 24, NULL,
     "height, width and channels of the image that the numbers of an example are; default: as the data say",
     .flags = TR_OPTION_QUIET},
    {"vocabulary", TR_OPTION_INT64, AT(vocabulary), "0", 0, 1 << 28, NULL,
     "number of different tokens; 0: from the data"},
    {"classes", TR_OPTION_STRING_LIST, AT(classes), "", 0, 0, NULL,
     "names of the classes; default: from the data"},
    {"sources", TR_OPTION_STRING_LIST, AT(sources), "", 0, 0, NULL,
     "for joined data: name and shape of each source, as \"photo 28x28x3\"; default: from the data",
     .flags = TR_OPTION_QUIET},
    {"state", TR_OPTION_STRING, AT(state), "", 0, 0, NULL,
     "file of a checkpoint with the state shared by the data sets (vocabulary, scaling); written by the "
     "program"},
    {"scale", TR_OPTION_FLOAT_LIST, AT(scale), "1/255", 0, 0, NULL,
     "stored values of images are multiplied by this; one number, or one for each channel. Not given: "
     "1/65535 "
     "for PNG files of 16 bits, 1 for other images of numbers"},
    {"shift", TR_OPTION_FLOAT_LIST, AT(shift), "0", 0, 0, NULL,
     "added after scaling; one number, or one for each channel"},
    {"range", TR_OPTION_FLOAT_LIST, AT(range), "", 0, 0, NULL,
     "least and most of the stored values of images of numbers, as [0, 4095], for brightness, contrast, "
     "saturation and randaugment; default: that of integers of 16 bits",
     .flags = TR_OPTION_QUIET},
    {"pad", TR_OPTION_INT32, AT(pad), "0", 0, 1024, NULL,
     "rows and columns of zeros on every side; in training a random part of the size of the image is cut "
     "out, which shifts it"},
    {"crop", TR_OPTION_PAIR, AT(crop), "0", 0, 65536, NULL,
     "height and width of the part that is cut out: random in training, the middle otherwise; 0: all"},
    {"flip", TR_OPTION_BOOL, AT(flip), "false", 0, 0, NULL, "mirror half of the images in training"},
    {"rotate", TR_OPTION_DOUBLE, AT(augment.rotate), "0", 0, 180, NULL,
     "in training images are turned by up to so many degrees, to either side", .flags = TR_OPTION_QUIET},
    {"zoom", TR_OPTION_FLOAT_LIST, AT(augment.zoom), "", 0.1, 10, NULL,
     "in training images are enlarged by a factor between two numbers, as [0.8, 1.25]; default: 1",
     .flags = TR_OPTION_QUIET},
    {"brightness", TR_OPTION_DOUBLE, AT(augment.brightness), "0", 0, 1, NULL,
     "in training the brightness is multiplied by a factor within 1 minus and plus this",
     .flags = TR_OPTION_QUIET},
    {"contrast", TR_OPTION_DOUBLE, AT(augment.contrast), "0", 0, 1, NULL,
     "the same of the distance from the middle of the range", .flags = TR_OPTION_QUIET},
    {"saturation", TR_OPTION_DOUBLE, AT(augment.saturation), "0", 0, 1, NULL,
     "the same of the distance of colours from their grey", .flags = TR_OPTION_QUIET},
    {"erase", TR_OPTION_DOUBLE, AT(augment.erase), "0", 0, 1, NULL,
     "share of the images of which a rectangle is erased in training", .flags = TR_OPTION_QUIET},
    {"erase_area", TR_OPTION_FLOAT_LIST, AT(augment.erase_area), "", 0, 1, NULL,
     "its part of the image, least and most; default: [0.02, 0.33]", .flags = TR_OPTION_QUIET},
    {"erase_value", TR_OPTION_DOUBLE, AT(augment.erase_value), "0", -1e9, 1e9, NULL,
     "value of erased pixels, as they are stored", .flags = TR_OPTION_QUIET},
    {"randaugment", TR_OPTION_INT32, AT(augment.randaugment), "0", 0, 16, NULL,
     "operations that are drawn for each image in training, from turns, shears, shifts and colours",
     .flags = TR_OPTION_QUIET},
    {"magnitude", TR_OPTION_DOUBLE, AT(augment.magnitude), "9", 0, 30, NULL,
     "strength of the operations of `randaugment`", .flags = TR_OPTION_QUIET},
    {"mixup", TR_OPTION_DOUBLE, AT(augment.mixup), "0", 0, 2, NULL,
     "in training each image is blended with another one, and so are their labels, in a proportion from the "
     "distribution Beta(mixup, mixup); 0: never",
     .flags = TR_OPTION_QUIET},
    {"cutmix", TR_OPTION_DOUBLE, AT(augment.cutmix), "0", 0, 2, NULL,
     "in training a rectangle of each image is another one's, whose label has its part of the area from the "
     "distribution Beta(cutmix, cutmix); 0: never. With `mixup` each of the two takes half of the images",
     .flags = TR_OPTION_QUIET},
};
#undef AT
const int32_t tr_input_option_count = TR_OPTION_COUNT(tr_input_option_table);

#define AT(field) offsetof(struct tr_file_options, field)
const struct tr_option tr_file_option_table[] = {
    {"name", TR_OPTION_STRING, AT(name), NULL, 0, 0, NULL, "name of the job"},
    {"seed", TR_OPTION_INT64, AT(seed), "1", 0, TR_OPTION_WHOLE, NULL,
     "decides initial weights, order of examples, dropout and augmentation"},
    {"directory", TR_OPTION_STRING, AT(directory), "", 0, 0, NULL,
     "start of relative paths; default: the directory of the file"},
    {"data", TR_OPTION_NODE, AT(data), "", 0, 0, NULL, "the data sets"},
    {"input", TR_OPTION_NODE, AT(input), "", 0, 0, NULL, "preparation of an example before the first layer"},
    {"layers", TR_OPTION_NODE, AT(layers), NULL, 0, 0, NULL, "the network, first layer first"},
    {"adapters", TR_OPTION_NODE, AT(adapters), "", 0, 0, NULL,
     "small trainable products beside the weights of a frozen network"},
    {"loss", TR_OPTION_NODE, AT(loss), "softmax_cross_entropy", 0, 0, NULL, "the measure of the error"},
    {"distill", TR_OPTION_NODE, AT(distill), "", 0, 0, NULL,
     "learning from the scores of a trained network, the teacher, in addition to the labels"},
    {"optimizer", TR_OPTION_NODE, AT(optimizer), NULL, 0, 0, NULL, "the update of parameters"},
    {"train", TR_OPTION_NODE, AT(train), NULL, 0, 0, NULL, "the run"},
    {"strategy", TR_OPTION_NODE, AT(strategy), "", 0, 0, NULL,
     "how several processes share the run; the command line may choose another"},
};
#undef AT
const int32_t tr_file_option_count = TR_OPTION_COUNT(tr_file_option_table);

#define AT(field) offsetof(struct tr_distill_options, field)
const struct tr_option tr_distill_option_table[] = {
    {.key = "teacher",
     .type = TR_OPTION_STRING,
     .offset = AT(teacher),
     .fallback = "",
     .help = "run or checkpoint of the teacher, with its moving averages if it keeps them; the option "
             "`teacher` of `trireme train` sets it"},
    {.key = "temperature",
     .type = TR_OPTION_FLOAT,
     .offset = AT(temperature),
     .fallback = "4",
     .least = 0,
     .most = 1000,
     .flags = TR_OPTION_ABOVE_LEAST,
     .help = "divides the scores of both networks before the softmax"},
    {.key = "alpha",
     .type = TR_OPTION_FLOAT,
     .offset = AT(alpha),
     .fallback = "0.9",
     .least = 0,
     .most = 1,
     .help = "share of the teacher in the loss; the rest is that of the labels"},
    {.key = "teacher_hash",
     .type = TR_OPTION_STRING,
     .offset = AT(teacher_hash),
     .fallback = "",
     .help = "hash of the teacher that a run began with, which a checkpoint keeps; empty: any"},
};
#undef AT
const int32_t tr_distill_option_count = TR_OPTION_COUNT(tr_distill_option_table);

#define AT(field) offsetof(struct tr_data_options, field)
const struct tr_option tr_data_option_table[] = {
    {"train", TR_OPTION_NODE, AT(train), NULL, 0, 0, NULL, "training data"},
    {"validation", TR_OPTION_NODE, AT(validation), "", 0, 0, NULL, "data of evaluations during the run"},
    {"test", TR_OPTION_NODE, AT(test), "", 0, 0, NULL, "data of the evaluation at the end"},
    {"validation_split", TR_OPTION_DOUBLE, AT(validation_split), "0", 0, 1, NULL,
     "fraction of the training data that is used for validation instead; the seed chooses the examples",
     .flags = TR_OPTION_BELOW_MOST},
    {"folds", TR_OPTION_INT32, AT(folds), "0", 0, 1000, NULL,
     "cross-validation: the training data are cut into this number of equal parts, of which one is used for "
     "validation; `trireme sweep --folds` runs all. 0: `validation_split` applies"},
    {"fold", TR_OPTION_INT32, AT(fold), "1", 1, 1000, NULL, "for `folds`: which part, from 1"},
    {"split", TR_OPTION_CHOICE, AT(split), "random", 0, 0, splits,
     "for `validation_split` and `folds`: choice of the examples"},
    {"split_seed", TR_OPTION_INT64, AT(split_seed), "-1", -1, TR_OPTION_WHOLE, NULL,
     "for `validation_split` and `folds`: seed of the choice, so that runs of other seeds have the same "
     "validation examples; -1: the job's seed"},
};
#undef AT
const int32_t tr_data_option_count = TR_OPTION_COUNT(tr_data_option_table);

int64_t tr_microbatch_rule(int64_t batch)
{
    int64_t parts = 1;
    while (parts < 16 && batch / (2 * parts) >= 25) parts *= 2;
    return parts;
}
