/* One run, one hash: whole training runs on every device, instruction set, number of threads, size of a pass
 * and way of reading end with the same bits, losses and evaluations included.
 *
 * The jobs are the model files that ship, made small (tests/support/families.c). Their batches do not divide
 * by their microbatches, nor their examples by their batches, so that uneven cuts and ragged last batches
 * occur.
 */
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* The hashes at the end of the families' runs. They change whenever arithmetic, initialization, the order of
 * examples or the jobs change, which must be on purpose: checkpoints of earlier versions then do not continue
 * as they would have. On such a change say so in its description, copy the new hash from the test's message,
 * and count tr_numerics_version() up unless that was done since the last release. */
static const int golden_numerics = 3;
static const char *const golden[] = {
    "ec679f55426dc1aaff86e745ca8a7828bb5ebd4a162a6535c1bd9ec88ff3e246", /* mnist-cnn */
    "6b71b10db87653c1ee5dd83a40b15a4ea5aad1c264fc9967367b9dd937d329a7", /* mnist-cnn-wide */
    "33706ded60ad6b5f33868536326f0344bc8e190231afbbf498dd7d3dd38cb008", /* mnist-mlp */
    "5ed5b2f324117c8f82781e7ddb5adf52bf19677ccc6bf0e4a8e49fe257c724c4", /* sst2-lstm */
    "2aae70016cb9233fcd5cc5dec7aa537651dc9b906376109ea273b7e63939b7da", /* everything */
    "c5b82c78fc9b5e6f0fe207462c7152cde5c6cfe197749792ef6e4bf590b16dce", /* language */
};

/* ---- the promise ---- */

static void vary(struct job *job, int pass, int prefetch, int evaluate_batch)
{
    static const char *const passes[] = {"train.pass=0", "train.pass=1", "train.pass=2"};
    job_set(job, passes[pass]);
    job_set(job, prefetch ? "train.prefetch=3" : "train.prefetch=0");
    job_set(job, evaluate_batch ? "train.evaluate_batch=7" : "train.evaluate_batch=250");
}

static void baseline(const struct family *family, struct outcome *outcome)
{
    struct job job;
    family_job(&job, family, family_place);
    job.settings.device = "ref";
    vary(&job, 0, 0, 0);
    job_outcome(&job, outcome);
    if (outcome->status != TR_OK) fail_msg("%s: %s", family->name, outcome->message);
    assert_int_equal(strlen(outcome->hash), 64);
}

static void compare_all(const struct family *family)
{
    struct outcome expected, got;
    baseline(family, &expected);
    assert_true(expected.steps_seen > 3);
    assert_true(expected.evaluations > 0);
    const char *const *isas = training_isas();
    for (int i = -1; i < 0 || isas[i]; i++)
        for (int threads = 1; threads <= (i < 0 ? 1 : 4); threads++)
            for (int pass = 0; pass < 3; pass++) {
                struct job job;
                char how[128];
                family_job(&job, family, family_place);
                job.settings.device = i < 0 ? "ref" : "cpu";
                job.settings.isa = i < 0 ? NULL : isas[i];
                job.settings.threads = threads;
                /* These two do not depend on the others; all their pairs occur. */
                int prefetch = (threads + pass) % 2, evaluate_batch = threads / 2 % 2;
                vary(&job, pass, prefetch, evaluate_batch);
                job_outcome(&job, &got);
                snprintf(how, sizeof how, "%s on %s %s, %d threads, pass %d, prefetch %d, evaluate_batch %d",
                         family->name, job.settings.device, i < 0 ? "" : isas[i], threads, pass, prefetch,
                         evaluate_batch);
                expect_same(&expected, &got, how);
            }
}

static void test_mnist_cnn(void **state)
{
    (void)state;
    compare_all(&families[0]);
}

static void test_mnist_cnn_wide(void **state)
{
    (void)state;
    compare_all(&families[1]);
}

static void test_mnist_mlp(void **state)
{
    (void)state;
    compare_all(&families[2]);
}

static void test_sst2_lstm(void **state)
{
    (void)state;
    compare_all(&families[3]);
}

static void test_everything(void **state)
{
    (void)state;
    compare_all(&families[4]);
}

static void test_language(void **state)
{
    (void)state;
    compare_all(&families[5]);
}

/* ---- classes of pixels ---- */

/* 40 images of 9 x 8 and the classes of their pixels, of which some have none. */
static void write_scenes(void)
{
    enum { COUNT = 40, HEIGHT = 9, WIDTH = 8, SIZE = COUNT * HEIGHT * WIDTH };
    uint8_t images[16 + SIZE] = {0, 0, 8, 3, 0, 0, 0, COUNT, 0, 0, 0, HEIGHT, 0, 0, 0, WIDTH};
    uint8_t labels[16 + SIZE];
    char path[SCRATCH_PATH];
    memcpy(labels, images, 16);
    for (int i = 0; i < SIZE; i++) {
        const int example = i / HEIGHT / WIDTH, h = i / WIDTH % HEIGHT, w = i % WIDTH;
        images[16 + i] = (uint8_t)(h * 23 + w * (example % 5) * 11 + example * 7);
        labels[16 + i] = (uint8_t)(i % 13 == 0 ? 255 : (h / 3 + w / 4 + example) % 3);
    }
    must_train(
        tr_file_write_atomic(NULL, scratch_join(path, family_place, "scene-images"), images, sizeof images));
    must_train(
        tr_file_write_atomic(NULL, scratch_join(path, family_place, "scene-labels"), labels, sizeof labels));
}

/* They are halved and made large again, with a branch beside it. */
static const char scenes[] =
    "name: scenes\n"
    "seed: 6\n"
    "data:\n"
    "  train: {idx: {images: scene-images, labels: scene-labels, ignore: 255}}\n"
    "  test: {idx: {images: scene-images, labels: scene-labels, ignore: 255}}\n"
    "input: {scale: 1/255, pad: 1, crop: [8, 8], flip: true}\n"
    "layers:\n"
    "  - conv: {filters: 5, kernel: 3, padding: same, activation: relu, name: fine}\n"
    "  - max_pool: 2\n"
    "  - conv: {filters: 6, kernel: 3, padding: same, groups: 1, activation: relu}\n"
    "  - group_norm: 2\n"
    "  - conv_transpose: {filters: 5, kernel: 2, stride: 2}\n"
    "  - concat: [fine]\n"
    "  - conv: {filters: 3, kernel: 1}\n"
    "loss: {per: pixel, class_weights: [1, 2, 0.5], label_smoothing: 0.1}\n"
    "optimizer: {rule: adam, rate: 1e-2}\n"
    "train: {batch: 11, microbatches: 4, steps: 9, log_every: 1, evaluate_every: 4}\n";

static void test_pixels(void **state)
{
    (void)state;
    static const struct family family = {"scenes", NULL, {NULL}, {NULL}};
    static const char hash[] = "5279c080f644ad2174a1352064424d26abf7f41928bc29366628ce4b7c8fd639";
    struct outcome outcome;
    char path[SCRATCH_PATH];
    write_scenes();
    scratch_join(path, family_place, "scenes.yaml");
    must_train(tr_file_write_atomic(NULL, path, scenes, strlen(scenes)));
    baseline(&family, &outcome);
    assert_string_equal(outcome.hash, hash);
    compare_all(&family);
}

/* Small networks keep threads idle: work of a few microseconds is not shared out. These are as large as the
   model files have them, for few examples, since the plain instruction set is slow. */
static void test_large_networks(void **state)
{
    (void)state;
    static const struct {
        const char *batch, *microbatches;
        bool plain;
    } large[] = {
        {"train.batch=12", "train.microbatches=3", true},
        {"train.batch=6", "train.microbatches=3", false},
        {"train.batch=100", "train.microbatches=2", true},
        {"train.batch=16", "train.microbatches=4", true},
    };
    const char *const *isas = training_isas();
    for (int family = 0; family < (int)(sizeof large / sizeof large[0]); family++) {
        struct outcome expected = {.status = TR_EINVAL};
        for (int i = 0; isas[i]; i++)
            for (int threads = 1; threads <= 4; threads++) {
                bool plain = !strcmp(isas[i], "plain") || !strcmp(isas[i], "sse2");
                if (plain && (threads != 2 || !large[family].plain)) continue;
                struct outcome got;
                struct job job;
                char how[96];
                family_job_large(&job, &families[family], family_place);
                job_set(&job, large[family].batch);
                job_set(&job, large[family].microbatches);
                job_set(&job, "train.epochs=0");
                job_set(&job, "train.steps=2");
                job_set(&job, "train.evaluate_every=0");
                job_set(&job, "data.test=null");
                job.settings.isa = isas[i];
                job.settings.threads = threads;
                job_outcome(&job, &got);
                if (expected.status != TR_OK) expected = got;
                snprintf(how, sizeof how, "large %s on %s, %d threads", families[family].name, isas[i],
                         threads);
                expect_same(&expected, &got, how);
            }
    }
}

static void test_golden_hashes(void **state)
{
    (void)state;
    assert_int_equal(family_count, sizeof golden / sizeof golden[0]);
    assert_int_equal(tr_numerics_version(), golden_numerics);
    int wrong = 0;
    for (int i = 0; i < family_count; i++) {
        struct outcome outcome;
        baseline(&families[i], &outcome);
        if (strcmp(outcome.hash, golden[i]) == 0) continue;
        print_error("%s: hash \"%s\", expected \"%s\"\n", families[i].name, outcome.hash, golden[i]);
        wrong++;
    }
    if (wrong) fail_msg("%d hashes changed; see the comment at `golden`", wrong);
}

/* Convolutions that the model file wants direct end as they did before there was another algorithm. */
static void test_direct_keeps_its_hash(void **state)
{
    (void)state;
    static const char before[] = "2a4b601f8617a3f6054f0a7be4265a38223f8b82f70ef257d0dc0b1895b2888c";
    for (int i = 0; i < 2; i++) {
        struct outcome outcome;
        struct job job;
        family_job(&job, &families[1], family_place);
        job_set(&job, "layers[2].algorithm=direct");
        job_set(&job, "layers[3].algorithm=direct");
        job.settings.device = i ? "cpu" : "ref";
        job.settings.threads = 1 + i;
        job_outcome(&job, &outcome);
        if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
        assert_string_equal(outcome.hash, before);
    }
}

/* What `auto` chooses for shapes as they ship is the same as naming it. */
static void test_auto_is_a_choice(void **state)
{
    (void)state;
    static const struct {
        int family;
        const char *layers[2]; /* whose convolutions have shapes for Winograd's algorithm */
    } cases[] = {{0, {"layers[2].algorithm", NULL}}, {1, {"layers[2].algorithm", "layers[3].algorithm"}}};
    static const char *const algorithms[3] = {"auto", "winograd", "direct"};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct outcome outcome[3];
        for (int i = 0; i < 3; i++) {
            struct job job;
            char assignment[2][64]; /* which the job reads later */
            family_job_large(&job, &families[cases[k].family], family_place);
            job_set(&job, "train.batch=4");
            job_set(&job, "train.microbatches=2");
            job_set(&job, "train.steps=1");
            job_set(&job, "data.test=null");
            for (int n = 0; n < 2 && cases[k].layers[n]; n++) {
                snprintf(assignment[n], sizeof assignment[n], "%s=%s", cases[k].layers[n], algorithms[i]);
                job_set(&job, assignment[n]);
            }
            job.settings.threads = 1;
            job_outcome(&job, &outcome[i]);
            if (outcome[i].status != TR_OK) fail_msg("%s", outcome[i].message);
        }
        assert_string_equal(outcome[0].hash, outcome[1].hash);
        assert_string_not_equal(outcome[0].hash, outcome[2].hash);
    }
}

/* ---- what must matter ---- */

static void differs(const struct family *family, const struct outcome *expected, const char *assignment)
{
    struct outcome got;
    struct job job;
    family_job(&job, family, family_place);
    job_set(&job, assignment);
    job_outcome(&job, &got);
    if (got.status != TR_OK) fail_msg("%s with %s: %s", family->name, assignment, got.message);
    if (strcmp(expected->hash, got.hash) == 0)
        fail_msg("%s with %s has the hash %s of the run without", family->name, assignment, got.hash);
}

static void test_settings_that_matter(void **state)
{
    (void)state;
    static const char *const assignments[] = {"seed=77",
                                              "train.microbatches=2",
                                              "train.microbatches=1",
                                              "train.steps=5",
                                              "train.shuffle=false",
                                              "train.batch=20",
                                              "optimizer.rate=3e-3"};
    for (int i = 0; i < family_count; i++) {
        struct outcome expected;
        baseline(&families[i], &expected);
        for (size_t k = 0; k < sizeof assignments / sizeof assignments[0]; k++)
            differs(&families[i], &expected, assignments[k]);
    }
}

/* What only wants more memory, time or words must not matter, alone and without the cpu device's help. */
static void test_settings_that_do_not_matter(void **state)
{
    (void)state;
    static const char *const assignments[] = {
        "train.pass=4",           "train.log_every=0", "train.evaluate_batch=1",   "train.evaluate_every=0",
        "train.evaluate_every=1", "name=other",        "train.checkpoint_every=1", "train.prefetch=64"};
    for (int i = 0; i < family_count; i++) {
        struct outcome expected, got;
        baseline(&families[i], &expected);
        for (size_t k = 0; k < sizeof assignments / sizeof assignments[0]; k++) {
            struct job job;
            family_job(&job, &families[i], family_place);
            job_set(&job, assignments[k]);
            job_outcome(&job, &got);
            if (got.status != TR_OK)
                fail_msg("%s with %s: %s", families[i].name, assignments[k], got.message);
            if (strcmp(expected.hash, got.hash) != 0)
                fail_msg("%s with %s: hash %s instead of %s", families[i].name, assignments[k], got.hash,
                         expected.hash);
        }
    }
}

/* The same examples packed in another way are the same data. */
static void test_packing_does_not_matter(void **state)
{
    (void)state;
    struct outcome expected, got;
    baseline(&families[2], &expected);
    struct job job;
    family_job(&job, &families[2], family_place);
    job_set(&job, "data.train=null");
    job_set(&job, "data.train={idx: {images: train-images, labels: train-labels}}");
    job_outcome(&job, &got);
    expect_same(&expected, &got, "IDX in place of TFRecord");
}

/* A batch of more examples than there are, or of fewer than microbatches, is cut to what is there. */
static void test_odd_batches(void **state)
{
    (void)state;
    static const struct {
        const char *batch, *microbatches;
    } cases[] = {
        {"train.batch=1000", "train.microbatches=16"},
        {"train.batch=33", "train.microbatches=33"},
        {"train.batch=1", "train.microbatches=1"},
        {"train.batch=99", "train.microbatches=64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int k = 0; k < 4; k++) { /* `everything` drops last batches */
            struct outcome outcome[2];
            for (int run = 0; run < 2; run++) {
                struct job job;
                family_job(&job, &families[k], family_place);
                job_set(&job, cases[i].batch);
                job_set(&job, cases[i].microbatches);
                job_set(&job, "train.steps=4");
                job_set(&job, run ? "train.pass=2" : "train.pass=0");
                job.settings.device = run ? "cpu" : "ref";
                job.settings.threads = 2;
                job_outcome(&job, &outcome[run]);
            }
            char how[128];
            snprintf(how, sizeof how, "%s with %s, %s", families[k].name, cases[i].batch,
                     cases[i].microbatches);
            expect_same(&outcome[0], &outcome[1], how);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_hashes),
        cmocka_unit_test(test_direct_keeps_its_hash),
        cmocka_unit_test(test_auto_is_a_choice),
        cmocka_unit_test(test_mnist_cnn),
        cmocka_unit_test(test_mnist_cnn_wide),
        cmocka_unit_test(test_mnist_mlp),
        cmocka_unit_test(test_sst2_lstm),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_language),
        cmocka_unit_test(test_pixels),
        cmocka_unit_test(test_large_networks),
        cmocka_unit_test(test_settings_that_matter),
        cmocka_unit_test(test_settings_that_do_not_matter),
        cmocka_unit_test(test_packing_does_not_matter),
        cmocka_unit_test(test_odd_batches),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
