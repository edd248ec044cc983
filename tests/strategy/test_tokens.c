/* Losses of tokens over several ranks: whoever computes which examples, the loss is the mean over all labels
 * of the batch, and weights that two layers share have one gradient, in a pipeline that is cut between them,
 * too.
 */
#include "support/ranks.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Texts of all lengths, some of whose tokens have no label; one has none at all. */
static const char tags[] = "one\t0\n"
                           "two words\t- -\n"
                           "here are three\t1 - 2\n"
                           "a text that is longer than all of the others are\t0 1 2 0 1 - 2 0 1 2 0\n"
                           "two again\t2 0\n"
                           "and then once more three words\t0 1 2 - 1 0\n"
                           "last\t1\n";

static const char tagging[] =
    "name: tagging\n"
    "data:\n"
    "  train: {text: {path: train.tags, tags: true}}\n"
    "  test: {text: {path: train.tags, tags: true}}\n"
    "layers:\n"
    "  - embedding: {width: 6, name: words}\n"
    "  - dropout: 0.1\n"
    "  - lstm: 7\n"
    "  - dense: 3\n"
    "loss: {kind: softmax_cross_entropy, label_smoothing: 0.1}\n"
    "optimizer: {rule: adam, rate: 1e-2}\n"
    "train: {batch: 5, microbatches: 4, steps: 7, log_every: 1, evaluate_every: 3}\n";

static char place[SCRATCH_PATH];

static void write_in_place(const char *name, const char *text)
{
    char path[SCRATCH_PATH];
    FILE *file = fopen(scratch_join(path, place, name), "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) < 0, 0);
    assert_int_equal(fclose(file), 0);
}

static int make_place(void **state)
{
    (void)state;
    scratch_make(place);
    family_files(place);
    write_in_place("train.tags", tags);
    write_in_place("tagging.yaml", tagging);
    return 0;
}

static int remove_place(void **state)
{
    (void)state;
    scratch_remove(place);
    return tr_alloc_live() == 0 ? 0 : -1;
}

static void begin(struct job *job, const char *model, char path[SCRATCH_PATH])
{
    job_begin(job, scratch_join(path, place, model));
    job->settings.set = job->set;
}

static void expect_hash(struct job *job, const char *strategy, int size, const struct outcome *alone)
{
    for (int apart = 0; apart < 2; apart++) {
        struct rank ranks[RANKS];
        char how[160];
        job->settings.strategy = strategy;
        snprintf(how, sizeof how, "%s, %s on %d ranks%s", job->settings.model, strategy, size,
                 apart ? " apart" : "");
        run_ranks(&job->settings, size, apart, ranks);
        expect_ranks(alone, ranks, size, how);
        expect_same(alone, &ranks[0].outcome, how);
    }
}

static void labels_of_all_ranks_count(void **state)
{
    (void)state;
    struct job job;
    struct outcome alone;
    char path[SCRATCH_PATH];
    begin(&job, "tagging.yaml", path);
    job_outcome(&job, &alone);
    if (alone.status != TR_OK) fail_msg("one process: %s", alone.message);
    expect_hash(&job, "allreduce", 2, &alone);
    expect_hash(&job, "allreduce", 4, &alone);
    expect_hash(&job, "parameter-server,servers=1", 3, &alone);
    expect_hash(&job, "pipeline,cut=[lstm1]", 2, &alone);
    expect_hash(&job, "pipeline,cut=[lstm1]", 4, &alone);
}

static void shared_weights_have_one_gradient(void **state)
{
    (void)state;
    struct job job;
    struct outcome alone;
    char path[SCRATCH_PATH];
    begin(&job, "language.yaml", path);
    job_set(&job, "train.microbatches=5");
    job_set(&job, "optimizer.ema=0.9");
    job_outcome(&job, &alone);
    if (alone.status != TR_OK) fail_msg("one process: %s", alone.message);
    expect_hash(&job, "allreduce,bucket=0.001", 3, &alone);
    expect_hash(&job, "parameter-server,servers=2", 4, &alone);
    expect_hash(&job, "pipeline,cut=[lstm1]", 2, &alone);
    expect_hash(&job, "pipeline,cut=[lstm1]", 4, &alone);
    expect_hash(&job, "pipeline,cut=[lstm1, dropout1, unembedding1]", 4, &alone);
    job_set(&job, "train.pass=2");
    expect_hash(&job, "pipeline,stages=2", 2, &alone);
}

/* Replicas train apart on labels of their own. */
static void replicas_learn(void **state)
{
    (void)state;
    static const char *const strategies[] = {"local-sgd,replicas=2,every=2", "gossip,replicas=2"};
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        struct job job;
        struct rank one[RANKS], two[RANKS];
        char path[SCRATCH_PATH];
        begin(&job, "tagging.yaml", path);
        job.settings.strategy = strategies[i];
        run_ranks(&job.settings, 1, false, one);
        run_ranks(&job.settings, 2, false, two);
        expect_well(one, 1, strategies[i]);
        expect_well(two, 2, strategies[i]);
        assert_string_equal(one[0].outcome.hash, two[0].outcome.hash);
        assert_true(one[0].outcome.loss > 0 && one[0].outcome.loss < 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_of_all_ranks_count),
        cmocka_unit_test(shared_weights_have_one_gradient),
        cmocka_unit_test(replicas_learn),
    };
    return cmocka_run_group_tests(tests, make_place, remove_place);
}
