/* Elastic averaging: one hash for a number of replicas, whatever the ranks; replicas and centre pull each
 * other as the formula says, to the bit; both survive a resume at any step, on any number of ranks.
 */
#include "strategy/replicas/apart.h"

#include "io/safetensors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void every_family_has_one_hash(void **state)
{
    (void)state;
    static const char *const strategies[] = {
        "easgd,replicas=4,every=3",
        "easgd,replicas=5,every=2,beta=0.5",
        "easgd,replicas=3,every=2,beta=1",
    };
    static const int replicas[] = {4, 5, 3};
    for (int f = 0; f < family_count; f++)
        for (int s = 0; s < 3; s++) {
            struct job job;
            family_job(&job, &families[f], family_place);
            job_set(&job, "train.microbatches=6");
            job.settings.strategy = strategies[s];
            apart_expect_one_hash(&job, s == f % 3 ? replicas[s] : 2, families[f].name);
        }
}

/* The bits of a small job, on one process and on four. */
static void the_hash_is_the_golden_one(void **state)
{
    (void)state;
    static const char golden[] = "a787b80b419af5cdc1bb0b43bdeb5a3b504bf96aea85555c9ce0d2e32bda49c9";
    struct job job;
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=4");
    for (int size = 1; size <= 4; size += 3) {
        struct outcome outcome;
        char out[SCRATCH_PATH + 64];
        snprintf(out, sizeof out, "%s/golden%d", family_place, size);
        apart_train_to(&job, "easgd,replicas=4,every=2", out, false, 8, size, &outcome);
        assert_string_equal(outcome.hash, golden);
    }
}

/* ---- the formula ---- */

#define WEIGHTS "dense2.weights"
#define COUNT   500
#define MOST    5
#define EVERY   3
#define NEVER   1000000

/* A parameter of the centre and of all replicas. */
struct elastic {
    float centre[COUNT], replica[MOST][COUNT];
};

static void read_tensor(const char *checkpoint, const char *file, const char *name, float *values)
{
    char path[SCRATCH_PATH + 64];
    tr_safetensors *tensors;
    snprintf(path, sizeof path, "%s/%s", checkpoint, file);
    must_train(tr_safetensors_open(path, &tensors));
    const struct tr_safetensors_entry *entry = tr_safetensors_find(tensors, name);
    if (!entry) fail_msg("%s has no tensor \"%s\"", path, name);
    assert_int_equal(entry->bytes, COUNT * sizeof *values);
    must_train(tr_safetensors_read(tensors, entry, values, NULL));
    tr_safetensors_close(&tensors);
}

/* A perceptron under plain SGD for EVERY steps, and what its checkpoint has. */
static void train_elastic(int replicas, int every, float beta, int size, struct elastic *out)
{
    struct job job;
    struct outcome outcome;
    char strategy[96], place[SCRATCH_PATH + 64], name[64];
    snprintf(strategy, sizeof strategy, "easgd,replicas=%d,every=%d,beta=%g", replicas, every, (double)beta);
    snprintf(place, sizeof place, "%s/elastic-%d-%d-%d", family_place, replicas, every, size);
    family_job(&job, &families[2], family_place);
    job_set(&job, "optimizer={rule: sgd, rate: 0.2}");
    job_set(&job, "input.scale=1/255");
    job_set(&job, "train.microbatches=5");
    apart_train_to(&job, strategy, place, false, EVERY, size, &outcome);
    read_tensor(outcome.checkpoint, "parameters.safetensors", WEIGHTS, out->centre);
    for (int r = 0; r < replicas; r++) {
        snprintf(name, sizeof name, "replica%d.parameters." WEIGHTS, r);
        read_tensor(outcome.checkpoint, "optimizer.safetensors", name, out->replica[r]);
    }
}

/* The fixed tree over 1 to 5 leaves. */
static float tree(const float x[MOST], int leaves)
{
    if (leaves == 1) return x[0];
    if (leaves == 2) return x[0] + x[1];
    if (leaves == 3) return (x[0] + x[1]) + x[2];
    float four = (x[0] + x[1]) + (x[2] + x[3]);
    return leaves == 4 ? four : four + x[4];
}

/* Of a run that pulls, from one that is the same up to there. */
static void expect_pulled(const struct elastic *before, const struct elastic *after, int replicas, float beta)
{
    for (int i = 0; i < COUNT; i++) {
        float x[MOST], c = before->centre[i];
        for (int r = 0; r < replicas; r++) x[r] = before->replica[r][i];
        float mean = tree(x, replicas) * (1.0F / (float)replicas), centre = fmaf(beta, mean - c, c);
        assert_memory_equal(&after->centre[i], &centre, sizeof centre);
        for (int r = 0; r < replicas; r++) {
            float pulled = fmaf(beta / (float)replicas, c - x[r], x[r]);
            assert_memory_equal(&after->replica[r][i], &pulled, sizeof pulled);
        }
    }
}

static void the_pull_is_its_formula(void **state)
{
    (void)state;
    static const float betas[] = {0.9F, 0.25F, 1};
    for (int replicas = 1; replicas <= MOST; replicas++) {
        struct elastic before, after;
        float beta = betas[replicas % 3];
        train_elastic(replicas, NEVER, beta, 1, &before);
        train_elastic(replicas, EVERY, beta, replicas < 3 ? replicas : 3, &after);
        expect_pulled(&before, &after, replicas, beta);
        assert_memory_not_equal(after.centre, before.centre, sizeof after.centre);
        if (replicas > 1) /* they stay apart */
            assert_memory_not_equal(after.replica[0], after.replica[1], sizeof after.replica[0]);
    }
}

/* ---- resumes ---- */

static void read_file(const char *checkpoint, const char *file, struct tr_file_content *out)
{
    char path[SCRATCH_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", checkpoint, file);
    must_train(tr_file_read(path, 1 << 24, out));
}

/* All that both keep: centre, replicas, moments. */
static void expect_same_files(const char *expected, const char *got, const char *how)
{
    static const char *const files[] = {"parameters.safetensors", "optimizer.safetensors"};
    for (int i = 0; i < 2; i++) {
        struct tr_file_content a, b;
        read_file(expected, files[i], &a);
        read_file(got, files[i], &b);
        if (a.size != b.size || memcmp(a.data, b.data, a.size) != 0)
            fail_msg("%s: %s differs", how, files[i]);
        tr_file_content_free(&a);
        tr_file_content_free(&b);
    }
}

/* Also at steps that end no period. */
static void any_step_is_resumed_on_any_ranks(void **state)
{
    (void)state;
    static const char strategy[] = "easgd,replicas=4,every=3,beta=0.7";
    static const int sizes[][2] = {{1, 4}, {4, 1}, {2, 3}, {3, 2}, {4, 2}, {1, 1}, {2, 4}};
    struct job job;
    struct outcome whole;
    family_job(&job, &families[4], family_place); /* statistics and averages of weights */
    job_set(&job, "train.microbatches=4");
    char out[SCRATCH_PATH + 64];
    snprintf(out, sizeof out, "%s/whole", family_place);
    apart_train_to(&job, strategy, out, false, 8, 2, &whole);
    for (int step = 1; step < 8; step++) {
        const int *size = sizes[step - 1];
        struct outcome half, resumed;
        char how[64];
        snprintf(how, sizeof how, "resumed at step %d", step);
        snprintf(out, sizeof out, "%s/step%d", family_place, step);
        apart_train_to(&job, strategy, out, false, step, size[0], &half);
        apart_train_to(&job, strategy, out, true, 8, size[1], &resumed);
        assert_string_equal(resumed.hash, whole.hash);
        expect_same_files(whole.checkpoint, resumed.checkpoint, how);
    }
}

/* A checkpoint goes on under another strategy, to the same end on any number of ranks, and with another
   number of replicas: what there is no room for is left out, and what is missing begins as the centre. */
static void checkpoints_do_not_know_strategies(void **state)
{
    (void)state;
    static const char *const ways[][2] = {
        {"easgd,replicas=3,every=2", "allreduce"},
        {"allreduce", "easgd,replicas=3,every=2"},
        {"easgd,replicas=3,every=2", "local-sgd,replicas=3,every=2,momentum=0.6"},
        {"local-sgd,replicas=3,every=2,momentum=0.6", "easgd,replicas=3,every=2"},
        {"easgd,replicas=3,every=2", "easgd,replicas=4,every=2"},
        {"easgd,replicas=5,every=2", "easgd,replicas=3,every=2"},
    };
    static const int sizes[] = {1, 3};
    struct job job;
    family_job(&job, &families[4], family_place);
    job_set(&job, "train.microbatches=5");
    char hash[2][65];
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
        for (int i = 0; i < 2; i++) {
            char out[SCRATCH_PATH + 64];
            struct outcome outcome;
            snprintf(out, sizeof out, "%s/way%zu-%d", family_place, way, i);
            apart_train_to(&job, ways[way][0], out, false, 4, 3, &outcome);
            apart_train_to(&job, ways[way][1], out, true, 8, sizes[i], &outcome);
            snprintf(hash[i], sizeof hash[i], "%s", outcome.hash);
        }
        assert_string_equal(hash[0], hash[1]);
    }
}

/* ---- programs ---- */

/* A parameter that a program sets is that of the state and of all replicas. */
static void parameters_are_set_in_all_replicas(void **state)
{
    (void)state;
    static const char *const strategies[] = {"easgd,replicas=3,every=1,beta=0.9",
                                             "local-sgd,replicas=3,every=1,momentum=0.5,rate=0.5"};
    for (int s = 0; s < 2; s++) {
        struct job job;
        float zeros[COUNT] = {0}, got[COUNT];
        family_job(&job, &families[2], family_place);
        job_set(&job, "optimizer={rule: sgd, rate: 1e-30}"); /* nothing is learned */
        job_set(&job, "train.microbatches=3");
        job.settings.strategy = strategies[s];
        job.settings.steps = 4;
        tr_trainer *trainer = job_trainer(&job);
        for (int step = 0; step < 2; step++) {
            must_train(tr_trainer_set_parameter(trainer, WEIGHTS, zeros, COUNT));
            must_train(tr_trainer_step(trainer, NULL));
            must_train(tr_trainer_parameter(trainer, WEIGHTS, got, COUNT));
            for (int i = 0; i < COUNT; i++) assert_true(fabsf(got[i]) < 1e-20F);
        }
        tr_trainer_destroy(&trainer);
    }
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *strategy, *part;
    } cases[] = {
        {"easgd,replicas=5", "5 replicas share 4 microbatches"},
        {"easgd,beta=0", "beta"},
        {"easgd,beta=1.5", "beta"},
        {"easgd,every=0", "every"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        struct outcome outcome;
        family_job(&job, &families[0], family_place);
        job_set(&job, "train.microbatches=4");
        job.settings.strategy = cases[i].strategy;
        job_outcome(&job, &outcome);
        assert_int_equal(outcome.status, TR_EINVAL);
        if (!strstr(outcome.message, cases[i].part))
            fail_msg("\"%s\" is missing in: %s", cases[i].part, outcome.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_has_one_hash),
        cmocka_unit_test(the_hash_is_the_golden_one),
        cmocka_unit_test(the_pull_is_its_formula),
        cmocka_unit_test(any_step_is_resumed_on_any_ranks),
        cmocka_unit_test(checkpoints_do_not_know_strategies),
        cmocka_unit_test(parameters_are_set_in_all_replicas),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests_name("strategy.easgd", tests, family_place_make, family_place_remove);
}
