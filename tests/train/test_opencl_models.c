/* Every model file that ships, and two with the layers that they leave out, train on the first OpenCL device
 * to the hash of the cpu device, and a network that generates text generates the same there. (Those of
 * families[] do so in strategy.opencl.)
 *
 * test_train_opencl_models [cuda] [TEST]       cuda: on the first CUDA device
 */
#include "base/files/file.h"
#include "support/gpu/opencl.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define IDX                                                                                                  \
    "data.train.idx={images: train-images, labels: train-labels}",                                           \
        "data.test.idx={images: test-images, labels: test-labels}"
#define TEXT                                                                                                 \
    "data.train.text.path=train.tsv", "data.validation.text.path=test.tsv", "data.test.text.path=test.tsv"

/* What makes the shipped files small; those of families[] are made small there. */
static const struct {
    const char *name;
    bool here; /* its data are those of families[] */
    const char *set[12];
} shipped[] = {
    {"dates", false, {"optimizer.schedule.warmup=1", "train.batch=7", "train.microbatches=3"}},
    {"mnist-vit", true, {IDX, "optimizer.schedule.warmup=1", "train.batch=7"}},
    {"mnist-light", true, {IDX, "train.batch=11", "train.microbatches=3"}},
    {"mnist-quick", true, {IDX, "train.batch=13", "train.microbatches=3"}},
    {"penguins", false, {NULL}},
    {"shakespeare-gpt",
     false,
     {"data.train.corpus.window=37", "data.validation=null", "optimizer.schedule.warmup=1", "train.batch=5",
      "train.microbatches=3"}},
    {"sst2-transformer",
     true,
     {TEXT, "optimizer.schedule.warmup=1", "train.batch=9", "train.microbatches=2",
      "train.evaluate_every=2"}},
};
enum { SHIPPED = sizeof shipped / sizeof shipped[0], STEPS = 2 };

/* Recurrent layers, convolutions and poolings of tokens, both ways to know positions. */
static const char tokens[] =
    "name: tokens\n"
    "seed: 8\n"
    "data:\n"
    "  train: {text: {path: train.tsv, max_tokens: 19}}\n"
    "  test: {text: {path: test.tsv}}\n"
    "layers:\n"
    "  - embedding: 12\n"
    "  - conv1d: {filters: 10, kernel: 3, activation: tanh}\n"
    "  - bidirectional: {units: 5, cell: gru}\n"
    "  - attention: {heads: 1, rotary: 100, dropout: 0.2}\n"
    "  - rms_norm\n"
    "  - gru: 9\n"
    "  - bidirectional: {units: 4}\n"
    "  - global_max_pool\n"
    "  - dense: 2\n"
    "loss: softmax_cross_entropy\n"
    "optimizer: {rule: adam, rate: 1e-2}\n"
    "train: {batch: 11, microbatches: 4, steps: 3, log_every: 1, evaluate_every: 2}\n";

/* Layers over images that no shipped model has. */
static const char images[] =
    "name: images\n"
    "seed: 9\n"
    "data:\n"
    "  train: {idx: {images: train-images, labels: train-labels}}\n"
    "  test: {idx: {images: test-images, labels: test-labels}}\n"
    "layers:\n"
    "  - conv: {filters: 8, kernel: 3, stride: 3}\n"
    "  - group_norm: 4\n"
    "  - silu: {name: image}\n"
    "  - global_average_pool\n"
    "  - dense: 4\n"
    "  - hard_swish\n"
    "  - dense: {units: 8, activation: sigmoid}\n"
    "  - multiply: image\n"
    "  - conv: {filters: 8, kernel: 3, padding: same, groups: 4}\n"
    "  - group_norm: {groups: 2, epsilon: 0.01}\n"
    "  - global_average_pool\n"
    "  - dense: 10\n"
    "loss: softmax_cross_entropy\n"
    "optimizer: {rule: adam, rate: 1e-2}\n"
    "train: {batch: 11, microbatches: 4, steps: 3, log_every: 1, evaluate_every: 2}\n";

static const char *computes = "opencl";

static void expect_hash(struct job *job, const char *name)
{
    struct outcome expected, got;
    job->settings.program_cache = TEST_PROGRAMS;
    job->settings.device = "cpu";
    job_outcome(job, &expected);
    if (expected.status != TR_OK) fail_msg("%s: %s", name, expected.message);
    job->settings.device = computes;
    job_outcome(job, &got);
    expect_same(&expected, &got, name);
}

static bool is_family(const char *name)
{
    for (int i = 0; i < family_count; i++)
        if (strcmp(families[i].name, name) == 0) return true;
    return false;
}

/* The job of a shipped model file, small; false where nobody has said how. */
static bool job_of(const char *name, struct job *job)
{
    static char directory[SCRATCH_PATH + 16], model[SCRATCH_PATH];
    for (int i = 0; i < SHIPPED; i++) {
        if (strcmp(shipped[i].name, name) != 0) continue;
        snprintf(model, sizeof model, TRIREME_SOURCE_DIR "/models/%s.yaml", name);
        job_begin(job, model);
        snprintf(directory, sizeof directory, "directory=%s", family_place);
        if (shipped[i].here) job_set(job, directory);
        for (int n = 0; shipped[i].set[n]; n++) job_set(job, shipped[i].set[n]);
        return true;
    }
    return false;
}

static void test_shipped_models(void **state)
{
    (void)state;
    struct tr_file_names names;
    assert_int_equal(tr_file_list(NULL, TRIREME_SOURCE_DIR "/models", &names), TR_OK);
    assert_true(names.count > SHIPPED);
    for (int64_t i = 0; i < names.count; i++) {
        struct job job;
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(strlen(names.name[i]) - strlen(".yaml")), names.name[i]);
        if (is_family(name)) continue;
        if (!job_of(name, &job)) fail_msg("%s: say in this test what makes it small", name);
        job.settings.steps = STEPS;
        expect_hash(&job, name);
    }
    tr_file_names_free(&names);
}

static void expect_hash_of(const char *name, const char *text)
{
    struct job job;
    char file[32], model[SCRATCH_PATH];
    snprintf(file, sizeof file, "%s.yaml", name);
    must_train(tr_file_write_atomic(NULL, scratch_join(model, family_place, file), text, strlen(text)));
    job_begin(&job, model);
    expect_hash(&job, name);
}

static void test_layers_over_tokens(void **state)
{
    (void)state;
    expect_hash_of("tokens", tokens);
}

static void test_layers_over_images(void **state)
{
    (void)state;
    expect_hash_of("images", images);
}

/* ---- text ---- */

struct text {
    char bytes[512];
    size_t length;
};

static int hear(void *context, const char *piece, size_t length)
{
    struct text *text = context;
    assert_true(text->length + length < sizeof text->bytes);
    memcpy(text->bytes + text->length, piece, length);
    text->length += length;
    text->bytes[text->length] = 0;
    return 0;
}

static void generate(const char *run, const char *device, struct text *text)
{
    struct tr_predict_settings predict = TR_PREDICT_SETTINGS_INIT;
    struct tr_generate_settings settings = TR_GENERATE_SETTINGS_INIT;
    tr_predictor *predictor;
    predict.checkpoint = run;
    predict.device = device;
    predict.program_cache = TEST_PROGRAMS;
    settings.prompt = "the film is ";
    settings.tokens = 30;
    must_train(tr_predictor_create(&predict, &predictor));
    text->length = 0;
    must_train(tr_predictor_generate(predictor, &settings, hear, text));
    tr_predictor_destroy(&predictor);
}

static void test_one_text(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    struct text expected, got;
    char model[SCRATCH_PATH], run[SCRATCH_PATH];
    job_begin(&job, scratch_join(model, family_place, "language.yaml"));
    job.settings.out = scratch_join(run, family_place, "run");
    job_outcome(&job, &outcome);
    assert_string_equal(outcome.message, "");
    generate(run, "cpu", &expected);
    generate(run, computes, &got);
    assert_string_equal(got.bytes, expected.bytes);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped_models),
        cmocka_unit_test(test_layers_over_tokens),
        cmocka_unit_test(test_layers_over_images),
        cmocka_unit_test(test_one_text),
    };
    if (!opencl_is_here()) return 0;
    bool cuda = count > 1 && strcmp(arguments[1], "cuda") == 0;
    if (cuda) computes = "cuda";
    if (count > 1 + cuda) cmocka_set_test_filter(arguments[1 + cuda]);
    return cmocka_run_group_tests_name("models on a device", tests, family_place_make, family_place_remove);
}
