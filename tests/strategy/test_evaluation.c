/* All ranks evaluate together: under every synchronous strategy, each on its part, and all come to the bits
 * of one process. */
#include "base/alloc.h"
#include "base/files/file.h"
#include "comm/transport.h"
#include "data/images/image.h"
#include "support/ranks.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#define STEPS 4

/* What is asked of a trainer, on every rank. */
struct asked {
    struct tr_train_event before, after; /* on the test data, before and after some steps */
    double metric[16];                   /* of `after`, those that are defined */
    int metrics;
    tr_status missing; /* for data that the job does not have */
    int layers;        /* of the network */
    int evaluators;    /* kept in the end */
};

static void ask(tr_trainer *trainer, struct asked *asked)
{
    struct tr_train_event none = TR_TRAIN_EVENT_INIT;
    asked->before = asked->after = none;
    must_train(tr_trainer_evaluate(trainer, "test", &asked->before));
    while (trainer_steps_done(trainer) < STEPS) must_train(tr_trainer_step(trainer, NULL));
    must_train(tr_trainer_evaluate(trainer, "test", &asked->after));
    asked->metrics = 0;
    for (int i = 0; asked->after.metrics && i < asked->after.metrics->count; i++) {
        asked->metric[asked->metrics] = asked->after.metrics->metric[i].value;
        asked->metrics += !isnan(asked->metric[asked->metrics]);
    }
    asked->missing = tr_trainer_evaluate(trainer, "validation", &none);
    asked->layers = trainer_job(trainer)->model->layer_count;
    asked->evaluators = trainer_has_evaluator(trainer, TR_SET_TEST);
}

static void *ask_rank(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    ask(trainer, rank->user);
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void expect_equal(const struct tr_train_event *expected, const struct tr_train_event *got,
                         const char *how)
{
    if (expected->loss != got->loss || expected->accuracy != got->accuracy ||
        expected->examples != got->examples || expected->step != got->step)
        fail_msg(
            "%s: loss %.17g, accuracy %g of %lld examples at step %lld; one process finds %.17g, %g, %lld "
            "at %lld",
            how, got->loss, got->accuracy, (long long)got->examples, (long long)got->step, expected->loss,
            expected->accuracy, (long long)expected->examples, (long long)expected->step);
}

/* Runs the job alone and on ranks; all must find the same. Returns how many ranks had something to do. */
static int compare(struct job *job, const char *strategy, int size, bool apart)
{
    struct asked alone, asked[RANKS];
    struct rank ranks[RANKS];
    char how[160];
    int busy = 0;
    job->settings.strategy = strategy;
    tr_trainer *trainer = job_trainer(job);
    ask(trainer, &alone);
    tr_trainer_destroy(&trainer);
    assert_true(alone.before.loss != alone.after.loss);
    for (int r = 0; r < size; r++) ranks[r].user = &asked[r];
    run_ranks_by(ask_rank, &job->settings, size, apart, ranks);
    for (int r = 0; r < size; r++) {
        snprintf(how, sizeof how, "%s, rank %d of %d%s", strategy, r, size, apart ? ", apart" : "");
        expect_equal(&alone.before, &asked[r].before, how);
        expect_equal(&alone.after, &asked[r].after, how);
        /* Losses of tokens have a perplexity instead. */
        assert_true(alone.metrics > 0 || alone.after.perplexity > 1);
        assert_int_equal(asked[r].metrics, alone.metrics);
        for (int i = 0; i < alone.metrics; i++)
            if (asked[r].metric[i] != alone.metric[i])
                fail_msg("%s: metric %d is %.17g, one process finds %.17g", how, i, asked[r].metric[i],
                         alone.metric[i]);
        assert_int_equal(asked[r].missing, alone.missing);
        busy += asked[r].evaluators;
    }
    return busy;
}

static const struct {
    const char *strategy;
    int size, busy; /* ranks, and those that evaluate */
} ways[] = {
    {"allreduce", 2, 2},        {"allreduce", 3, 3},
    {"parameter-server", 3, 2}, {"local-sgd,replicas=3,every=2", 3, 3},
    {"pipeline", 2, 2},         {"pipeline", 4, 4},
};

static void one_job(struct job *job, const struct family *family, const char *variant)
{
    family_job(job, family, family_place);
    job_set(job, "train.microbatches=5");
    job_set(job, "train.evaluate_batch=7"); /* several, and a smaller one */
    if (variant) job_set(job, variant);
    job->settings.set = job->set;
    job->settings.steps = STEPS;
}

static void all_find_the_same(void **state)
{
    (void)state;
    static const char *const variants[] = {NULL, "optimizer.ema=0.9"};
    for (int f = 0; f < family_count; f++)
        for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++)
            for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
                struct job job;
                /* Layers that share weights stay together. */
                if (strcmp(families[f].name, "language") == 0 && strstr(ways[w].strategy, "pipeline"))
                    continue;
                one_job(&job, &families[f], variants[v]);
                bool apart = (f + (int)w + (int)v) % 2;
                assert_int_equal(compare(&job, ways[w].strategy, ways[w].size, apart), ways[w].busy);
            }
}

/* Ranks without examples take part all the same. */
static void ranks_may_outnumber_examples(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    FILE *file = fopen(scratch_join(path, family_place, "three.tsv"), "w");
    assert_non_null(file);
    fputs("good\t1\nbad film\t0\na very good one\t1\n", file);
    assert_int_equal(fclose(file), 0);
    const struct family *family = families;
    while (!strstr(family->name, "lstm")) family++;
    struct job job;
    one_job(&job, family, "data.test.text.path=three.tsv");
    assert_int_equal(compare(&job, "allreduce", 5, false), 3);
    one_job(&job, family, "data.test.text.path=three.tsv");
    job_set(&job, "train.microbatches=8");
    assert_int_equal(compare(&job, "pipeline", 8, true), 6);
}

/* A picture for each digit in folders of `place`/pictures; the last one is cut short if `spoilt`. */
static void write_pictures(const char *place, bool spoilt)
{
    static const uint8_t pixels[28 * 28];
    uint8_t *png;
    size_t bytes;
    char path[SCRATCH_PATH], name[32];
    must_train(tr_image_encode(pixels, (struct tr_image_size){28, 28, 1}, &png, &bytes));
    assert_int_equal(mkdir(scratch_join(path, place, "pictures"), 0777), 0);
    for (int digit = 0; digit < 10; digit++) {
        snprintf(name, sizeof name, "pictures/%d", digit);
        assert_int_equal(mkdir(scratch_join(path, place, name), 0777), 0);
        snprintf(name, sizeof name, "pictures/%d/a.png", digit);
        bool cut = spoilt && digit == 9;
        must_train(
            tr_file_write_atomic(NULL, scratch_join(path, place, name), png, cut ? bytes - 16 : bytes));
    }
    tr_free(png);
}

static void take_pictures(struct job *job, const char *place, char set[2 * SCRATCH_PATH])
{
    char path[SCRATCH_PATH];
    snprintf(set, 2 * SCRATCH_PATH, "data.test={folder: {path: %s}}", scratch_join(path, place, "pictures"));
    job_set(job, set);
}

/* An example that only one rank cannot read ends the run on all, with the reason. */
static void a_failure_ends_all(void **state)
{
    (void)state;
    static const char *const strategies[] = {"allreduce", "pipeline"};
    char other[SCRATCH_PATH];
    scratch_make(other);
    family_files(other);
    write_pictures(family_place, false);
    write_pictures(other, true);
    for (int s = 0; s < 2; s++) {
        char set[2][2 * SCRATCH_PATH];
        struct job whole, spoilt;
        struct rank ranks[RANKS];
        one_job(&whole, &families[0], NULL);
        one_job(&spoilt, &families[0], NULL);
        take_pictures(&whole, family_place, set[0]);
        take_pictures(&spoilt, other, set[1]);
        const struct tr_train_settings *const each[] = {&whole.settings, &spoilt.settings};
        whole.settings.strategy = spoilt.settings.strategy = strategies[s];
        run_ranks_each(each, 2, false, ranks);
        assert_int_equal(ranks[1].outcome.status, TR_EFORMAT);
        if (ranks[0].outcome.status != TR_EPEER || !strstr(ranks[0].outcome.message, "pictures/9/a.png"))
            fail_msg("%s, rank 0 fails otherwise: %s", strategies[s], ranks[0].outcome.message);
    }
    scratch_remove(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_find_the_same),
        cmocka_unit_test(ranks_may_outnumber_examples),
        cmocka_unit_test(a_failure_ends_all),
    };
    return cmocka_run_group_tests_name("strategy.evaluation", tests, family_place_make, family_place_remove);
}
