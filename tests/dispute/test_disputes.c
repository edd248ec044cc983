/* Disputes: runs that differ in one forged number, in each operation that the steps of the jobs have and in
 * what lies between operations. Each time the number is found in its step and its operation, the right party
 * is named, and the referee comes to the same by the case alone.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "device/cpu/cpu.h"
#include "device/ref/ref.h"
#include "dispute/judge.h"
#include "dispute/referee.h"
#include "dispute/witness.h"
#include "job/job.h"
#include "receipt/receipt.h"
#include "support/training.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- a device that forges ---- */

enum forgery {
    NOTHING,
    OUTPUT, /* of an operation */
    MOMENT, /* a moment, in memory before it is updated */
    RATE,   /* the learning rate that is sent */
    PIXEL,  /* a byte of the examples that are sent */
    READ,   /* a moment, where the host reads it */
    ORDER   /* of the examples, as the receipt has it */
};

static struct plan {
    enum forgery what;
    enum tr_operation_number operation;
    uint32_t step;          /* that is made, from 0 */
    int occurrence, eighth; /* of an operation in the step; which of its numbers */
} plan;

/* What the device knows of the step under way. */
static uint32_t step_now;
static bool done_in_step;
static int met_in_step;
static const float *moments;
static size_t arena_bytes;
static bool seen[TR_OPERATIONS];

static void flip(void *at, uint32_t bits)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    word ^= bits;
    memcpy(at, &word, sizeof word);
}

/* Another number of about its size; one that is 0 becomes large enough to matter. */
static void change(void *at)
{
    float number;
    memcpy(&number, at, sizeof number);
    number = number * 1.25f + 0.25f;
    memcpy(at, &number, sizeof number);
}

static bool is_due(enum forgery what, enum tr_operation_number operation)
{
    if (plan.what != what || plan.operation != operation || plan.step != step_now || done_in_step)
        return false;
    done_in_step = true;
    return true;
}

/* A number of the last region that the operation writes, in its middle. */
static void forge_output(enum tr_operation_number number, const void *arguments)
{
    struct tr_unit_region region[TR_UNIT_REGIONS];
    const int64_t rows = tr_operation_rows(tr_operation_of(number), arguments, true);
    const int count = tr_unit_regions(number, arguments, rows, region);
    if (count == 0) return;
    /* Of scalars of a step only what an update leaves is no number to be proud of: the outputs come first. */
    const bool scalars = number == TR_OPERATION_hold || number == TR_OPERATION_clip_scale;
    const struct tr_unit_region *to = &region[scalars ? count - 1 : 0];
    const int64_t numbers = to->width / to->size, row = to->rows * plan.eighth / 8;
    char *at = (char *)to->begin + row * to->step + numbers * plan.eighth / 8 * to->size;
    if (scalars) at = (char *)to->begin + offsetof(struct tr_step_scalars, clip_scale);
    if (to->size == 1)
        *at ^= 1;
    else if (number == TR_OPERATION_gather_rows || number == TR_OPERATION_to_labels ||
             number == TR_OPERATION_load_labels || number == TR_OPERATION_augment_labels ||
             strstr(to->operand->name, "taken"))
        flip(at, 1);
    else
        change(at);
}

static tr_status (*real_to_device)(tr_device *device, void *to, const void *from, size_t bytes);
static tr_status (*real_to_host)(tr_device *device, void *to, const void *from, size_t bytes);

static tr_status forging_to_device(tr_device *device, void *to, const void *from, size_t bytes)
{
    TR_TRY(real_to_device(device, to, from, bytes));
    if (bytes == sizeof(struct tr_step_scalars)) {
        memcpy(&step_now, from, sizeof step_now);
        done_in_step = false;
        met_in_step = 0;
        if (is_due(RATE, 0)) flip(&((struct tr_step_scalars *)to)->rate, 2);
    } else if (plan.what == PIXEL && bytes > 28 * 28 * 10) { /* the examples, once and for all steps */
        static const size_t at = 28 * 14 + 14;
        for (size_t i = at; i < bytes; i += (size_t)28 * 28) ((unsigned char *)to)[i] ^= 3;
    }
    return TR_OK;
}

static tr_status forging_to_host(tr_device *device, void *to, const void *from, size_t bytes)
{
    TR_TRY(real_to_host(device, to, from, bytes));
    if (plan.what == READ && plan.step == step_now && from == moments && bytes == arena_bytes)
        flip((char *)to + 40, 1);
    return TR_OK;
}

static tr_device *reference;

#define FORGING(op)                                                                                          \
    static tr_status forging_##op(tr_device *device, const struct tr_op_##op *arguments)                     \
    {                                                                                                        \
        (void)device;                                                                                        \
        seen[TR_OPERATION_##op] = true;                                                                      \
        if (TR_OPERATION_##op == TR_OPERATION_update) before_update((const void *)arguments);                \
        TR_TRY(ref_##op(reference, arguments));                                                              \
        if (is_due(OUTPUT, TR_OPERATION_##op)) forge_output(TR_OPERATION_##op, arguments);                   \
        return TR_OK;                                                                                        \
    }
static void before_update(const struct tr_op_update *a)
{
    if (a->m && (!moments || a->m < moments)) moments = a->m;
    if (a->m && a->rule != TR_RULE_STATISTIC && is_due(MOMENT, 0)) change(a->m + a->count / 2);
}
TR_DEVICE_CORE_OPS(FORGING)
TR_DEVICE_HOST_OPS(FORGING)
#undef FORGING

static struct tr_device_class forging_class;

/* The bare device, of memory of the host, as a party has it. */
static tr_status create_bare(void *user, tr_device **out)
{
    const struct tr_device_choice choice = {.name = "ref"};
    (void)user;
    TR_TRY(tr_device_kind_ref.create(&choice, out));
    snprintf((*out)->name, sizeof(*out)->name, "forging");
    if (!forging_class.name) {
        forging_class = *(*out)->class;
        real_to_device = forging_class.to_device;
        real_to_host = forging_class.to_host;
        forging_class.to_device = forging_to_device;
        forging_class.to_host = forging_to_host;
#define SLOT(op) forging_class.op = forging_##op;
        TR_DEVICE_CORE_OPS(SLOT)
        TR_DEVICE_HOST_OPS(SLOT)
#undef SLOT
    }
    (*out)->class = &forging_class;
    moments = NULL;
    return TR_OK;
}

/* Under a witness, as its run had it. */
static tr_status create_watched(const struct tr_device_choice *choice, tr_device **out)
{
    tr_device *inner;
    (void)choice;
    TR_TRY(create_bare(NULL, &inner));
    return tr_witness_create(inner, out);
}

static const struct tr_device_kind forging = {
    .name = "forging", .help = "ref, with one number forged", .create = create_watched};
static const struct tr_entry *const entries[] = {&tr_device_kind_cpu.entry, &tr_device_kind_ref.entry,
                                                 &forging.entry, NULL};
const struct tr_registry tr_device_kinds = {.kind = "device", .entries = entries};

/* ---- runs ---- */

/* Jobs for the operations that those of tests/support have not. */
static const char sentences[] = "name: sentences\n"
                                "seed: 4\n"
                                "data:\n"
                                "  train: {text: {path: train.tsv}}\n"
                                "layers:\n"
                                "  - embedding: {width: 8, name: words}\n"
                                "  - conv1d: {filters: 8, kernel: 3, activation: tanh, name: neighbours}\n"
                                "  - bidirectional: {units: 4, cell: gru}\n"
                                "  - rms_norm\n"
                                "  - attention: {heads: 2, rotary: 100}\n"
                                "  - multiply: neighbours\n"
                                "  - group_norm: 2\n"
                                "  - gru: 5\n"
                                "  - global_max_pool\n"
                                "  - dense: 2\n"
                                "loss: softmax_cross_entropy\n"
                                "optimizer: {rule: rmsprop, rate: 1e-2}\n"
                                "train: {batch: 10, microbatches: 2, steps: 5, log_every: 1}\n";
static const char pictures[] = "name: pictures\n"
                               "seed: 4\n"
                               "data:\n"
                               "  train: {idx: {images: train-images, labels: train-labels}}\n"
                               "input: {scale: 1/255}\n"
                               "layers:\n"
                               "  - conv: {filters: 4, kernel: 3, stride: 2, activation: relu}\n"
                               "  - group_norm: 2\n"
                               "  - silu\n"
                               "  - global_average_pool\n"
                               "  - softmax\n"
                               "  - dense: 10\n"
                               "loss: softmax_cross_entropy\n"
                               "optimizer: {rule: adagrad, rate: 1e-2, clip_norm: 0.01}\n"
                               "train: {batch: 10, microbatches: 2, steps: 5, log_every: 1}\n";
static const char columns[] =
    "name: columns\n"
    "seed: 4\n"
    "data:\n"
    "  train: {csv: {path: columns.csv, label: value, label_columns: [kind, rough, fine, yes], "
    "skip_columns: [no]}}\n"
    "layers:\n"
    "  - dense: {units: 9, activation: tanh, name: trunk}\n"
    "  - dense: {units: 7, activation: sigmoid}\n"
    "  - dense: {units: 3, name: kind}\n"
    "  - dense: {units: 1, from: trunk, name: rough}\n"
    "  - dense: {units: 1, from: trunk, name: fine}\n"
    "  - dense: {units: 1, from: trunk, name: yes_or_no}\n"
    "  - concat: {from: [kind, rough, fine, yes_or_no]}\n"
    "loss:\n"
    "  - {kind: softmax_cross_entropy, outputs: 3, class_weights: [1, 2, 0.5]}\n"
    "  - {kind: mean_squared_error, outputs: 1}\n"
    "  - {kind: huber, outputs: 1}\n"
    "  - {kind: binary_cross_entropy, outputs: 1}\n"
    "optimizer: {rule: adam, rate: 1e-2, clip_norm: 0.5}\n"
    "train: {batch: 10, microbatches: 2, steps: 5, log_every: 1}\n";
static const char counts[] =
    "name: counts\n"
    "seed: 4\n"
    "data:\n"
    "  train: {csv: {path: columns.csv, label: value, label_columns: [kind, rough, fine, yes, no]}}\n"
    "layers:\n"
    "  - dense: {units: 9, activation: tanh, name: trunk}\n"
    "  - dense: {units: 3, name: kind}\n"
    "  - dense: {units: 2, from: trunk, name: rough}\n"
    "  - dense: {units: 1, from: trunk, name: fine}\n"
    "  - dense: {units: 2, from: trunk, name: yes_or_no}\n"
    "  - concat: {from: [kind, rough, fine, yes_or_no]}\n"
    "loss:\n"
    "  - {kind: focal, outputs: 3}\n"
    "  - {kind: quantile, outputs: 2, quantiles: [0.2, 0.9]}\n"
    "  - {kind: poisson, outputs: 1}\n"
    "  - {kind: soft_cross_entropy, outputs: 2}\n"
    "optimizer: {rule: adamw, rate: 1e-2, amsgrad: true, sam: 0.1, clip_norm: 0.5}\n"
    "train: {batch: 10, microbatches: 2, steps: 5, log_every: 1}\n";
static const char light[] =
    "name: light\n"
    "seed: 4\n"
    "data:\n"
    "  train: {idx: {images: train-images, labels: train-labels}}\n"
    "input: {scale: 1/255}\n"
    "layers:\n"
    "  - conv: {filters: 4, kernel: 3, stride: 4, activation: tanh, name: stem}\n"
    "  - conv: {filters: 4, kernel: 3, padding: same, groups: 4}\n"
    "  - stochastic_depth: 0.2\n"
    "  - add: stem\n"
    "  - conv: {filters: 4, kernel: 5, padding: same, algorithm: winograd}\n"
    "  - conv: {filters: 6, kernel: 3, padding: same, algorithm: winograd, name: image}\n"
    "  - global_average_pool\n"
    "  - dense: {units: 6, activation: sigmoid}\n"
    "  - multiply: image\n"
    "  - global_average_pool\n"
    "  - dense: 10\n"
    "optimizer: {rule: muon, rate: 1e-2}\n"
    "train: {batch: 10, microbatches: 2, steps: 5, log_every: 1}\n";
/* With four classes a label that is forged is one, too. */
static const char pixels[] = "name: pixels\n"
                             "seed: 4\n"
                             "data:\n"
                             "  train: {idx: {images: pixel-images, labels: pixel-labels}}\n"
                             "input: {scale: 1/255}\n"
                             "layers:\n"
                             "  - conv: {filters: 5, kernel: 3, padding: same, activation: tanh}\n"
                             "  - conv: {filters: 4, kernel: 1}\n"
                             "loss: {per: pixel, class_weights: [1, 2, 0.5, 3]}\n"
                             "optimizer: {rule: lamb, rate: 1e-1}\n"
                             "train: {batch: 10, microbatches: 2, steps: 5, log_every: 1}\n";
/* Images that are changed in every way, and mixed with others. */
static const char mixed[] = "name: mixed\n"
                            "seed: 4\n"
                            "data:\n"
                            "  train: {idx: {images: train-images, labels: train-labels}}\n"
                            "input: {pad: 2, flip: true, rotate: 20, zoom: [0.8, 1.2], brightness: 0.4, "
                            "contrast: 0.4, erase: 0.5, randaugment: 1, mixup: 0.5, cutmix: 1}\n"
                            "layers:\n"
                            "  - average_pool: 4\n"
                            "  - dense: 10\n"
                            "optimizer: {rule: sgd, rate: 1e-1}\n"
                            "train: {batch: 10, microbatches: 2, steps: 5, log_every: 1}\n";
static const char turned[] = "name: turned\n"
                             "seed: 4\n"
                             "data:\n"
                             "  train: {idx: {images: pixel-images, labels: pixel-labels}}\n"
                             "input: {rotate: 90}\n"
                             "layers:\n"
                             "  - conv: {filters: 4, kernel: 1}\n"
                             "loss: {per: pixel}\n"
                             "optimizer: {rule: sgd, rate: 1e-1}\n"
                             "train: {batch: 10, microbatches: 2, steps: 5, log_every: 1}\n";
static const char pairs[] = "name: pairs\n"
                            "seed: 4\n"
                            "data:\n"
                            "  train: {csv: {path: columns.csv, label_columns: [yes], skip_columns: [kind, "
                            "rough, fine, no]}}\n"
                            "layers:\n"
                            "  - slice: {begin: 0, size: 2, name: left}\n"
                            "  - slice: {begin: 2, size: 2, from: input, name: right}\n"
                            "  - dense: {units: 3, activation: tanh, from: left, name: one}\n"
                            "  - dense: {units: 3, activation: tanh, from: right, share: one, name: other}\n"
                            "  - concat: {from: [one, other]}\n"
                            "loss: {kind: contrastive, margin: 2}\n"
                            "optimizer: {rule: momentum, rate: 1e-1}\n"
                            "train: {batch: 10, microbatches: 2, steps: 5, log_every: 1}\n";
static const char triples[] = "name: triples\n"
                              "seed: 4\n"
                              "data:\n"
                              "  train: {csv: {path: columns.csv, label: none}}\n"
                              "layers:\n"
                              "  - dense: {units: 5, activation: tanh}\n"
                              "  - dense: 9\n"
                              "loss: {kind: triplet, margin: 2, squared: false}\n"
                              "optimizer: {rule: momentum, rate: 1e-2}\n"
                              "train: {batch: 10, microbatches: 2, steps: 5, log_every: 1}\n";
/* Numbers as words, and beside them. */
static const char beside[] =
    "name: beside\n"
    "seed: 4\n"
    "data:\n"
    "  train: {join: {sources: {words: {text: {path: columns.csv, layout: table, header: true, "
    "text_columns: [a, b], label_column: yes}}, facts: {csv: {path: columns.csv, label: none, "
    "skip_columns: [kind, rough, fine, yes, no]}}}}}\n"
    "layers:\n"
    "  - embedding: {width: 3, from: words}\n"
    "  - global_average_pool: {name: mean}\n"
    "  - dense: {units: 3, activation: tanh, from: facts, name: known}\n"
    "  - concat: {from: [mean, known]}\n"
    "  - dense: 2\n"
    "optimizer: {rule: momentum, rate: 1e-1}\n"
    "train: {batch: 10, microbatches: 2, steps: 5, log_every: 1}\n";
/* Its rate depends on evaluations, which no step has. */
static const char plateau[] =
    "name: plateau\n"
    "seed: 4\n"
    "data:\n"
    "  train: {csv: {path: columns.csv, label_columns: [yes], skip_columns: [no]}}\n"
    "  validation_split: 0.2\n"
    "layers:\n"
    "  - dense: 2\n"
    "optimizer: {rule: sgd, rate: 1e-1, schedule: plateau}\n"
    "train: {batch: 10, steps: 5, evaluate_every: 2, log_every: 1}\n";
static const struct own_family {
    struct family family;
    const char *model;
} own_families[] = {
    {{"sentences", NULL, {NULL}, {NULL}}, sentences}, {{"pictures", NULL, {NULL}, {NULL}}, pictures},
    {{"columns", NULL, {NULL}, {NULL}}, columns},     {{"counts", NULL, {NULL}, {NULL}}, counts},
    {{"light", NULL, {NULL}, {NULL}}, light},         {{"pixels", NULL, {NULL}, {NULL}}, pixels},
    {{"mixed", NULL, {NULL}, {NULL}}, mixed},         {{"turned", NULL, {NULL}, {NULL}}, turned},
    {{"pairs", NULL, {NULL}, {NULL}}, pairs},         {{"triples", NULL, {NULL}, {NULL}}, triples},
    {{"beside", NULL, {NULL}, {NULL}}, beside}};
static const struct family of_plateau = {"plateau", NULL, {NULL}, {NULL}};
#define OWN_FAMILIES ((int)(sizeof own_families / sizeof own_families[0]))

/* No step has these, or no number of theirs goes on. */
static const struct excused {
    enum tr_operation_number operation;
    const char *why;
} excused[] = {
    {TR_OPERATION_batch_norm_infer, "evaluations alone have it"},
};

static void write_table(void)
{
    char text[8192];
    size_t size = (size_t)snprintf(text, sizeof text, "a,b,c,d,kind,rough,fine,yes,no\n");
    for (int i = 0; i < 60; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%d,%d,%d,%d,%d,%d.%d,%d.%d,%d,%d\n",
                                 i % 7 - 3, i % 5 - 2, i % 11 - 5, i % 3, i / 3 % 2, i % 4, i % 10, i % 6,
                                 i % 9, i % 2, 1 - i % 2);
    char path[SCRATCH_PATH];
    must_train(tr_file_write_atomic(NULL, scratch_join(path, family_place, "columns.csv"), text, size));
}

/* 40 images of 4 x 4 and the classes of their pixels, as IDX files. */
static void write_pixels(void)
{
    enum { COUNT = 40, SIDE = 4, SIZE = COUNT * SIDE * SIDE };
    uint8_t images[16 + SIZE] = {0, 0, 8, 3, 0, 0, 0, COUNT, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    uint8_t labels[16 + SIZE];
    char path[SCRATCH_PATH];
    memcpy(labels, images, 16);
    for (int i = 0; i < SIZE; i++) {
        images[16 + i] = (uint8_t)(i * 37 % 251);
        labels[16 + i] = (uint8_t)(images[16 + i] / 64);
    }
    must_train(
        tr_file_write_atomic(NULL, scratch_join(path, family_place, "pixel-images"), images, sizeof images));
    must_train(
        tr_file_write_atomic(NULL, scratch_join(path, family_place, "pixel-labels"), labels, sizeof labels));
}

static void write_models(void)
{
    char path[SCRATCH_PATH], name[64];
    for (int i = 0; i < OWN_FAMILIES; i++) {
        snprintf(name, sizeof name, "%s.yaml", own_families[i].family.name);
        must_train(tr_file_write_atomic(NULL, scratch_join(path, family_place, name), own_families[i].model,
                                        strlen(own_families[i].model)));
    }
    must_train(tr_file_write_atomic(NULL, scratch_join(path, family_place, "plateau.yaml"), plateau,
                                    sizeof plateau - 1));
    write_table();
    write_pixels();
}

/* A later seed orders the examples; all else is there by then. */
static tr_status forge_order(void *user, tr_trainer *trainer)
{
    (void)user;
    arena_bytes = (size_t)trainer_job(trainer)->model->arena_floats * sizeof(float);
    if (plan.what == ORDER) trainer_job(trainer)->file.seed++;
    return TR_OK;
}

static void train(const struct family *family, const char *device, const char *out)
{
    struct job job;
    struct outcome outcome;
    tr_trainer *trainer;
    family_job(&job, family, family_place);
    job_set(&job, "train.receipt_every=3");
    job_set(&job, "train.checkpoint_every=2");
    job_set(&job, "train.keep=100");
    job.settings.receipt = true;
    job.settings.device = device;
    job.settings.out = out;
    trainer = job_trainer(&job);
    if (strcmp(device, "forging") == 0) must_train(forge_order(NULL, trainer));
    trainer_outcome(trainer, &outcome);
    tr_trainer_destroy(&trainer);
    if (outcome.status != TR_OK) fail_msg("%s: %s", family->name, outcome.message);
}

/* ---- parties ---- */

struct talk {
    tr_party *party;
    int spoils, asked; /* the answer that it spoils, from 1; 0: none */
};

static tr_status ask(void *user, const char *question, char **answer)
{
    struct talk *talk = user;
    TR_TRY(tr_party_answer(talk->party, question, answer));
    const size_t length = strlen(*answer);
    if (++talk->asked == talk->spoils && length > 10) {
        char *at = *answer + length / 2 + (length / 2 < length - 1);
        *at = *at == '3' ? '4' : '3';
    }
    return TR_OK;
}

static void settle(const char *const path[2], int forger, int spoils, struct tr_dispute_result *out)
{
    struct talk talk[2] = {{0}};
    const struct tr_party_settings judge = {.device = "ref"};
    for (int i = 0; i < 2; i++) {
        struct tr_party_settings settings = {.path = path[i], .device = "ref"};
        if (i == forger) {
            settings.open_device = create_bare;
            settings.prepare = forge_order;
            talk[i].spoils = spoils;
        }
        must_train(tr_party_create(&settings, &talk[i].party));
    }
    const struct tr_dispute_side side[2] = {{ask, &talk[0]}, {ask, &talk[1]}};
    must_train(tr_dispute_settle(&judge, side, out));
    for (int i = 0; i < 2; i++) tr_party_destroy(&talk[i].party);
}

static int referee(const char *text)
{
    return referee_on(family_place, text);
}

static char honest[SCRATCH_PATH], forged[SCRATCH_PATH];

static void make_forged(const struct family *family)
{
    static int number;
    char name[64];
    snprintf(name, sizeof name, "forged-%d", number++);
    train(family, "forging", scratch_join(forged, family_place, name));
}

/* The forged run against the honest one, each once in the first place. `place`: how the place begins. False
   where what was forged made no difference. */
static bool found(const struct family *family, int64_t step, const char *place, bool has_case)
{
    static int turn;
    const int forger = turn++ % 2;
    make_forged(family);
    const char *const path[2] = {forger == 0 ? forged : honest, forger == 0 ? honest : forged};
    struct tr_dispute_result result;
    settle(path, forger, 0, &result);
    if (result.outcome == TR_DISPUTE_EQUAL) {
        tr_dispute_release(&result);
        return false;
    }
    if (result.outcome != (forger == 0 ? TR_DISPUTE_B : TR_DISPUTE_A))
        fail_msg("%s, %s: outcome %d: %s", family->name, place, (int)result.outcome, result.text);
    if (result.step != step || strncmp(result.place, place, strlen(place)) != 0)
        fail_msg("%s: \"%s\" in step %lld instead of \"%s\" in step %lld: %s", family->name, result.place,
                 (long long)result.step, place, (long long)step, result.text);
    if (has_case != (result.referee != NULL)) fail_msg("%s: a case, or none: %s", place, result.text);
    if (has_case) assert_int_equal(referee(result.referee), forger == 0 ? 1 : 0);
    if (result.questions > 150) fail_msg("%s: %lld questions", place, (long long)result.questions);
    tr_dispute_release(&result);
    return true;
}

static void expect_found(const struct family *family, int64_t step, const char *place, bool has_case)
{
    if (!found(family, step, place, has_case)) fail_msg("%s, %s: equal", family->name, place);
}

/* ---- the tests ---- */

static bool forged_once[TR_OPERATIONS];

/* A number is found that makes a difference: some are dropped, masked, or measured and not needed. */
static void forge_operation(const struct family *family, enum tr_operation_number number)
{
    char place[64];
    snprintf(place, sizeof place, "%s ", tr_operation_of(number)->name);
    for (int i = 0; i < 16 && !forged_once[number]; i++) {
        plan.occurrence = i / 4;
        plan.eighth = 1 + i % 4 * 2;
        forged_once[number] = found(family, 2, place, true);
    }
}

static void each_operation_of_a_job(void **state)
{
    const struct family *family = *state;
    char name[64];
    plan = (struct plan){.what = NOTHING};
    snprintf(name, sizeof name, "honest-%s", family->name);
    train(family, "ref", scratch_join(honest, family_place, name));
    memset(seen, 0, sizeof seen);
    make_forged(family); /* with nothing forged */
    struct tr_dispute_result result;
    const char *const path[2] = {honest, forged};
    settle(path, 1, 0, &result);
    if (result.outcome != TR_DISPUTE_EQUAL) fail_msg("%s: %s", family->name, result.text);
    tr_dispute_release(&result);
    bool wanted[TR_OPERATIONS];
    memcpy(wanted, seen, sizeof wanted);
    for (int i = 0; i < TR_OPERATIONS; i++) {
        if (!wanted[i] || forged_once[i]) continue;
        plan = (struct plan){.what = OUTPUT,
                             .operation = (enum tr_operation_number)i,
                             .step = 1}; /* behind it nothing is evaluated */
        forge_operation(family, (enum tr_operation_number)i);
    }
}

static const struct family *everything(void)
{
    return &families[family_count - 2];
}

static void honest_run(void)
{
    char name[] = "honest-everything";
    scratch_join(honest, family_place, name);
    if (!tr_file_exists(honest)) {
        plan = (struct plan){.what = NOTHING};
        train(everything(), "ref", honest);
    }
}

static void a_moment_in_memory(void **state)
{
    (void)state;
    honest_run();
    plan = (struct plan){.what = MOMENT, .step = 4};
    expect_found(everything(), 5, "update ", true);
}

static void the_learning_rate(void **state)
{
    (void)state;
    honest_run();
    plan = (struct plan){.what = RATE, .step = 5};
    expect_found(everything(), 6, "upload ", true);
}

/* Where evaluations decide the rate, the judge does not know it. */
static void a_rate_that_follows_evaluations(void **state)
{
    (void)state;
    struct tr_dispute_result result;
    plan = (struct plan){.what = NOTHING};
    train(&of_plateau, "ref", scratch_join(honest, family_place, "honest-plateau"));
    plan = (struct plan){.what = RATE, .step = 2};
    make_forged(&of_plateau);
    const char *const path[2] = {honest, forged};
    settle(path, 1, 0, &result);
    assert_int_equal(result.outcome, TR_DISPUTE_OPEN);
    assert_int_equal(result.step, 3);
    assert_string_equal(result.text,
                        "step 3: they differ in the learning rate, which follows evaluations here");
    assert_null(result.referee);
    tr_dispute_release(&result);
}

static void a_byte_of_the_data(void **state)
{
    (void)state;
    honest_run();
    plan = (struct plan){.what = PIXEL};
    expect_found(everything(), 1, "load_images ", true);
}

static void a_moment_that_is_claimed(void **state)
{
    (void)state;
    honest_run();
    plan = (struct plan){.what = READ, .step = 7};
    expect_found(everything(), 8, "state ", true);
}

static void the_order_of_examples(void **state)
{
    (void)state;
    honest_run();
    plan = (struct plan){.what = ORDER};
    expect_found(everything(), 1, "batch [", false);
}

/* A party that spoils an answer gains nothing by it. */
static void a_spoilt_answer_never_wins(void **state)
{
    (void)state;
    honest_run();
    plan = (struct plan){.what = OUTPUT, .operation = TR_OPERATION_dense_forward, .step = 3};
    make_forged(everything());
    const char *const path[2] = {honest, forged};
    struct tr_dispute_result unspoilt;
    settle(path, 1, 0, &unspoilt);
    assert_int_equal(unspoilt.outcome, TR_DISPUTE_A);
    tr_dispute_release(&unspoilt);
    for (int spoils = 1; spoils < 60; spoils += spoils < 12 ? 1 : 7) {
        struct tr_dispute_result result;
        settle(path, 1, spoils, &result);
        if (result.outcome == TR_DISPUTE_B || result.outcome == TR_DISPUTE_BOTH)
            fail_msg("answer %d spoilt: %s", spoils, result.text);
        tr_dispute_release(&result);
    }
}

/* A damaged case proves nothing, or the same. */
static void a_damaged_case_proves_nothing_else(void **state)
{
    (void)state;
    honest_run();
    plan = (struct plan){.what = OUTPUT, .operation = TR_OPERATION_batch_norm_backward, .step = 3};
    make_forged(everything());
    const char *const path[2] = {honest, forged};
    struct tr_dispute_result result;
    settle(path, 1, 0, &result);
    assert_int_equal(result.outcome, TR_DISPUTE_A);
    const size_t length = strlen(result.referee);
    /* The program is for people to read; all else is committed to. */
    const char *end = strstr(result.referee, "\nfloat\n");
    assert_non_null(end);
    assert_int_equal(referee(result.referee), 0);
    int refused = 0;
    for (int i = 0; i < 60; i++) {
        const size_t at = (size_t)(end - result.referee) * (size_t)i / 60 + 40;
        if (at >= length || result.referee[at] == '\n') continue;
        const char before = result.referee[at];
        result.referee[at] = before == '1' ? '2' : '1';
        const int said = referee(result.referee);
        result.referee[at] = before;
        refused += said == 4;
        if (said != 4 && said != 0) fail_msg("byte %zu changed: the referee says %d", at, said);
    }
    assert_true(refused > 40);
    char *cut = tr_strdup(result.referee);
    cut[length / 2] = '\0';
    assert_int_equal(referee(cut), 4);
    tr_free(cut);
    tr_dispute_release(&result);
}

/* Whose run cannot be repeated has lost. */
static void a_run_that_does_not_repeat(void **state)
{
    (void)state;
    honest_run();
    plan = (struct plan){.what = OUTPUT, .operation = TR_OPERATION_conv_forward, .step = 3};
    make_forged(everything());
    plan = (struct plan){.what = NOTHING}; /* it was an accident */
    const char *const path[2] = {honest, forged};
    struct tr_dispute_result result;
    settle(path, 1, 0, &result);
    assert_int_equal(result.outcome, TR_DISPUTE_A);
    assert_non_null(strstr(result.text, "does not come again"));
    tr_dispute_release(&result);
}

static void other_settings_are_named(void **state)
{
    (void)state;
    honest_run();
    struct job job;
    struct outcome outcome;
    char path[SCRATCH_PATH];
    struct tr_dispute_result result;
    plan = (struct plan){.what = NOTHING};
    family_job(&job, everything(), family_place);
    job_set(&job, "optimizer.rate=0.06");
    job_set(&job, "train.receipt_every=3");
    job.settings.receipt = true;
    job.settings.device = "ref";
    job.settings.out = scratch_join(path, family_place, "other");
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_OK);
    const char *const paths[2] = {honest, path};
    settle(paths, 1, 0, &result);
    assert_int_equal(result.outcome, TR_DISPUTE_OPEN);
    assert_non_null(strstr(result.text, "settings"));
    tr_dispute_release(&result);
}

static int set_up(void **state)
{
    const struct tr_device_choice choice = {.name = "ref"};
    if (tr_device_kind_ref.create(&choice, &reference) != TR_OK) return -1;
    if (family_place_make(state) != 0) return -1;
    write_models();
    return 0;
}

/* Another operation is added here, to a job whose steps have it. */
static void every_operation_was_forged(void **state)
{
    (void)state;
    int missing = 0;
    for (int i = 0; i < TR_OPERATIONS; i++) {
        const struct tr_operation *operation = tr_operation_of((enum tr_operation_number)i);
        bool is_excused = false;
        for (size_t k = 0; k < sizeof excused / sizeof excused[0]; k++)
            is_excused = is_excused || (int)excused[k].operation == i;
        if (operation->class == TR_FUSION || forged_once[i] != is_excused) continue;
        print_error("%s: %s\n", operation->name,
                    is_excused ? "forged, though it is excused"
                               : "in no step of these jobs, or without influence");
        missing++;
    }
    assert_int_equal(missing, 0);
}

static int tear_down(void **state)
{
    tr_device_destroy(&reference);
    return family_place_remove(state);
}

int main(void)
{
    struct CMUnitTest tests[32];
    int count = 0;
    for (int i = 0; i < family_count; i++)
        tests[count++] =
            (struct CMUnitTest){families[i].name, each_operation_of_a_job, NULL, NULL, (void *)&families[i]};
    for (int i = 0; i < OWN_FAMILIES; i++)
        tests[count++] = (struct CMUnitTest){own_families[i].family.name, each_operation_of_a_job, NULL, NULL,
                                             (void *)&own_families[i].family};
    const struct CMUnitTest others[] = {cmocka_unit_test(every_operation_was_forged),
                                        cmocka_unit_test(a_moment_in_memory),
                                        cmocka_unit_test(the_learning_rate),
                                        cmocka_unit_test(a_byte_of_the_data),
                                        cmocka_unit_test(a_moment_that_is_claimed),
                                        cmocka_unit_test(the_order_of_examples),
                                        cmocka_unit_test(a_rate_that_follows_evaluations),
                                        cmocka_unit_test(a_spoilt_answer_never_wins),
                                        cmocka_unit_test(a_damaged_case_proves_nothing_else),
                                        cmocka_unit_test(a_run_that_does_not_repeat),
                                        cmocka_unit_test(other_settings_are_named)};
    memcpy(tests + count, others, sizeof others);
    count += (int)(sizeof others / sizeof others[0]);
    return _cmocka_run_group_tests("disputes", tests, (size_t)count, set_up, tear_down);
}
