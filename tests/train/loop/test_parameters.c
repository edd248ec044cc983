/* Parameters from outside: listed, taken, given; and a listener that ends a run. */
#include "support/ranks.h"

#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A family with a moving average: mnist-mlp. */
static void begin(struct job *job, uint64_t seed)
{
    for (int i = 0; i < family_count; i++)
        if (strcmp(families[i].name, "mnist-mlp") == 0) family_job(job, &families[i], family_place);
    job->settings.has_seed = true;
    job->settings.seed = seed;
}

static void test_listed(void **state)
{
    (void)state;
    struct job job;
    struct tr_train_info facts = TR_TRAIN_INFO_INIT;
    struct tr_parameter_info info = TR_PARAMETER_INFO_INIT;
    int64_t total = 0;
    char part[200];
    begin(&job, 1);
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_info(trainer, &facts));
    for (int32_t i = 0; i < tr_trainer_parameter_count(trainer); i++) {
        int64_t count = 1;
        must_train(tr_trainer_parameter_at(trainer, i, &info));
        for (int32_t k = 0; k < info.dimensions; k++) count *= info.shape[k];
        assert_int_equal(count, info.count);
        total += count;
        /* By this name, in this size. */
        float *values = malloc(((size_t)count + 1) * sizeof *values);
        must_train(tr_trainer_parameter(trainer, info.name, values, count));
        for (int way = -1; way <= 1; way += 2) {
            assert_int_equal(tr_trainer_parameter(trainer, info.name, values, count + way), TR_EMISMATCH);
            snprintf(part, sizeof part, "\"%s\" has %lld values, %lld are given", info.name, (long long)count,
                     (long long)count + way);
            assert_non_null(strstr(tr_error_message(), part));
        }
        free(values);
    }
    assert_int_equal(total, facts.parameters);
    assert_int_equal(tr_trainer_parameter_at(trainer, tr_trainer_parameter_count(trainer), &info),
                     TR_ENOTFOUND);
    assert_int_equal(tr_trainer_parameter_at(trainer, -1, &info), TR_ENOTFOUND);
    tr_trainer_destroy(&trainer);
}

/* All parameters of one trainer given to another make it the same, moving averages included. */
static void test_given(void **state)
{
    (void)state;
    struct job job;
    char hash[2][65];
    tr_trainer *from, *to;
    struct tr_train_event evaluated[2] = {TR_TRAIN_EVENT_INIT, TR_TRAIN_EVENT_INIT};
    begin(&job, 7);
    from = job_trainer(&job);
    begin(&job, 1);
    to = job_trainer(&job);
    must_train(tr_trainer_hash(from, hash[0]));
    must_train(tr_trainer_hash(to, hash[1]));
    assert_string_not_equal(hash[0], hash[1]);
    for (int32_t i = 0; i < tr_trainer_parameter_count(from); i++) {
        struct tr_parameter_info info = TR_PARAMETER_INFO_INIT;
        must_train(tr_trainer_parameter_at(from, i, &info));
        float *values = malloc((size_t)info.count * sizeof *values);
        must_train(tr_trainer_parameter(from, info.name, values, info.count));
        must_train(tr_trainer_set_parameter(to, info.name, values, info.count));
        assert_int_equal(tr_trainer_set_parameter(to, info.name, values, info.count + 1), TR_EMISMATCH);
        free(values);
    }
    must_train(tr_trainer_hash(to, hash[1]));
    assert_string_equal(hash[0], hash[1]);
    must_train(tr_trainer_evaluate(from, "test", &evaluated[0]));
    must_train(tr_trainer_evaluate(to, "test", &evaluated[1]));
    assert_true(evaluated[0].loss == evaluated[1].loss);
    assert_int_equal(tr_trainer_set_parameter(to, "no.such", &(float){0}, 1), TR_ENOTFOUND);
    tr_trainer_destroy(&from);
    tr_trainer_destroy(&to);
}

/* ---- several processes ---- */

enum { VALUES = 1 << 15 };

/* Some steps, two parameters that get other values, some more, and the rest. */
static tr_status train_disturbed(tr_trainer *trainer)
{
    static const char *const ends[] = {"weights", "bias"};
    struct tr_parameter_info info = TR_PARAMETER_INFO_INIT;
    float *values = malloc(VALUES * sizeof *values);
    tr_status status = TR_OK;
    for (int step = 0; step < 3 && status == TR_OK; step++) status = tr_trainer_step(trainer, NULL);
    for (int which = 0; which < 2 && status == TR_OK; which++) {
        bool found = false;
        for (int32_t i = 0; i < tr_trainer_parameter_count(trainer) && !found; i++) {
            tr_trainer_parameter_at(trainer, i, &info);
            found = strstr(info.name, ends[which]) && info.count <= VALUES;
        }
        for (int i = 0; i < VALUES; i++) values[i] = (float)((i * 7 + which) % 19 - 9) / 64;
        status = found ? tr_trainer_set_parameter(trainer, info.name, values, info.count) : TR_ENOTFOUND;
    }
    free(values);
    return status == TR_OK ? tr_trainer_run(trainer, NULL, NULL) : status;
}

/* What is wrong on one rank, or not alike, is refused on all, and changes nothing. */
static tr_status train_refused(tr_trainer *trainer, int rank)
{
    struct tr_parameter_info info = TR_PARAMETER_INFO_INIT;
    float *values = calloc(VALUES, sizeof *values);
    tr_trainer_parameter_at(trainer, 1, &info);
    values[0] = (float)rank;
    bool refused =
        tr_trainer_set_parameter(trainer, info.name, values, info.count) == TR_EMISMATCH &&
        strstr(tr_error_message(), "set the same one to the same values on all") &&
        tr_trainer_set_parameter(trainer, "no.such", values, info.count) == TR_ENOTFOUND &&
        tr_trainer_set_parameter(trainer, info.name, values, info.count + (rank == 1)) == TR_EMISMATCH &&
        strstr(tr_error_message(), rank == 1 ? "values, " : "has \"refused\"");
    free(values);
    return refused ? tr_trainer_run(trainer, NULL, NULL) : TR_EINVAL;
}

static bool refuses; /* what ranks do */

static void *run_rank(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer = NULL;
    int number = rank->comm ? tr_comm_rank(rank->comm) : 0;
    struct outcome *outcome = &rank->outcome;
    *outcome = (struct outcome){.status = trainer_create(rank->settings, rank->comm, &trainer)};
    if (outcome->status == TR_OK)
        outcome->status = refuses ? train_refused(trainer, number) : train_disturbed(trainer);
    if (outcome->status == TR_OK) outcome->status = tr_trainer_hash(trainer, outcome->hash);
    if (outcome->status != TR_OK)
        snprintf(outcome->message, sizeof outcome->message, "%s", tr_error_message());
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void begin_steps(struct job *job)
{
    begin(job, 1);
    job->settings.steps = 24;
    job->settings.set = job->set;
}

static void hash_alone(const char *strategy, bool disturbed, char hash[65])
{
    struct job job;
    begin_steps(&job);
    job.settings.strategy = strategy;
    tr_trainer *trainer = job_trainer(&job);
    must_train(disturbed ? train_disturbed(trainer) : tr_trainer_run(trainer, NULL, NULL));
    must_train(tr_trainer_hash(trainer, hash));
    tr_trainer_destroy(&trainer);
}

/* As one process does it that computes all replicas. */
static void test_given_to_several(void **state)
{
    static const struct {
        const char *strategy, *alone;
        int ranks;
    } ways[] = {
        {"allreduce", "allreduce", 2},
        {"allreduce", "allreduce", 3},
        {"parameter-server,mode=sync,servers=1", "allreduce", 3},
        {"parameter-server,mode=sync,servers=2", "allreduce", 4},
        {"pipeline,stages=2", "allreduce", 2},
        {"pipeline,stages=2", "allreduce", 4},
        {"local-sgd,replicas=2,every=2", "local-sgd,replicas=2,every=2", 2},
        {"easgd,replicas=2,every=2", "easgd,replicas=2,every=2", 2},
        {"gossip,replicas=2,every=2,consensus=2", "gossip,replicas=2,every=2,consensus=2", 2},
    };
    char undisturbed[65], expected[65];
    (void)state;
    refuses = false;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        hash_alone(ways[i].alone, false, undisturbed);
        hash_alone(ways[i].alone, true, expected);
        assert_string_not_equal(expected, undisturbed);
        for (int apart = 0; apart < 2; apart++) {
            struct rank ranks[4];
            struct job job;
            begin_steps(&job);
            job.settings.strategy = ways[i].strategy;
            run_ranks_by(run_rank, &job.settings, ways[i].ranks, apart, ranks);
            expect_well(ranks, ways[i].ranks, ways[i].strategy);
            if (strcmp(ranks[0].outcome.hash, expected) != 0)
                fail_msg("%s on %d ranks%s: %s, one process has %s", ways[i].strategy, ways[i].ranks,
                         apart ? " apart" : "", ranks[0].outcome.hash, expected);
        }
    }
}

static void test_refused_by_several(void **state)
{
    struct rank ranks[3];
    struct job job;
    char expected[65];
    (void)state;
    hash_alone("allreduce", false, expected);
    refuses = true;
    begin_steps(&job);
    run_ranks_by(run_rank, &job.settings, 3, 0, ranks);
    expect_well(ranks, 3, "refused");
    assert_string_equal(ranks[0].outcome.hash, expected);
}

static void *run_asynchronous(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer = NULL;
    struct tr_parameter_info info = TR_PARAMETER_INFO_INIT;
    float value = 0;
    struct outcome *outcome = &rank->outcome;
    *outcome = (struct outcome){.status = trainer_create(rank->settings, rank->comm, &trainer)};
    if (outcome->status == TR_OK) outcome->status = tr_trainer_parameter_at(trainer, 0, &info);
    if (outcome->status == TR_OK &&
        tr_trainer_set_parameter(trainer, info.name, &value, 1) != TR_EUNSUPPORTED)
        outcome->status = TR_EINVAL;
    if (outcome->status == TR_OK) outcome->status = tr_trainer_run(trainer, NULL, NULL);
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void test_asynchronous(void **state)
{
    struct rank ranks[3];
    struct job job;
    (void)state;
    begin_steps(&job);
    job.settings.strategy = "parameter-server,mode=async";
    run_ranks_by(run_asynchronous, &job.settings, 3, 0, ranks);
    expect_well(ranks, 3, "asynchronous");
}

static int end_at(void *user, const struct tr_train_event *event)
{
    return event->kind == TR_EVENT_STEP && event->step >= *(int64_t *)user;
}

static void test_listener_ends_the_run(void **state)
{
    (void)state;
    struct job job;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    int64_t last = 2;
    begin(&job, 1);
    job_set(&job, "train.log_every=1");
    tr_trainer *trainer = job_trainer(&job);
    assert_int_equal(tr_trainer_run(trainer, end_at, &last), TR_EINTERRUPTED);
    must_train(tr_trainer_info(trainer, &info));
    assert_int_equal(info.step, 2);
    tr_trainer_destroy(&trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listed),           cmocka_unit_test(test_given),
        cmocka_unit_test(test_given_to_several), cmocka_unit_test(test_refused_by_several),
        cmocka_unit_test(test_asynchronous),     cmocka_unit_test(test_listener_ends_the_run),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
