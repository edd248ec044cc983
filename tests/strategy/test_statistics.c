/* What a run tells about its ranks: bytes, times, contributions. */
#include "support/ranks.h"

#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void begin(struct job *job)
{
    family_job(job, &families[0], family_place);
    job_set(job, "train.microbatches=4");
    job->settings.set = job->set;
}

static void ranks_and_bytes_add_up(void **state)
{
    (void)state;
    struct job job;
    begin(&job);
    for (int apart = 0; apart < 2; apart++) {
        struct rank ranks[RANKS];
        int64_t sent = 0, received = 0, shared = 0;
        job.settings.strategy = "allreduce,factors=never";
        run_ranks(&job.settings, 4, apart, ranks);
        expect_well(ranks, 4, "4 ranks");
        const struct outcome *root = &ranks[0].outcome;
        assert_int_equal(root->statistics.ranks, 4);
        assert_int_equal(root->statistics.steps, root->step);
        assert_false(root->statistics.asynchronous);
        for (int r = 0; r < 4; r++) {
            assert_int_equal(root->rank[r].contributions, root->step);
            assert_true(root->rank[r].compute_seconds > 0);
            assert_true(root->rank[r].wait_seconds >= 0);
            sent += root->rank[r].bytes_sent;
            received += root->rank[r].bytes_received;
            shared += root->rank[r].bytes_shared;
        }
        assert_true(sent > 0);
        /* Signs of life aside, what is sent in steps is received in steps; a message may be noted on one side
           of a step's end and on the other of the next. */
        int64_t parameters = 4 * (int64_t)(6 * 25 + 6 + 7 * 6 * 25 + 7 + 343 * 33 + 33 + 330 + 10);
        int64_t expected = 2 * 3 * parameters * root->step; /* 2 (W - 1) / W of them for each of W ranks */
        assert_true(sent - received < expected / 10 && received - sent < expected / 10);
        if (apart) {
            assert_int_equal(shared, 0);
            assert_true(sent > expected);
            assert_true(sent < expected + expected / 10);
        } else {
            assert_true(shared > parameters * root->step);
            assert_true(sent < expected / 10);
        }
    }
}

/* Workers and servers on hosts of their own: all send and receive, and a byte that one sends another
   receives, but for some words near the end. */
static void servers_tell_of_themselves(void **state)
{
    (void)state;
    struct job job;
    struct rank ranks[RANKS];
    int64_t sent = 0, received = 0;
    begin(&job);
    job.settings.strategy = "parameter-server,mode=async,servers=2";
    run_ranks(&job.settings, 4, 1, ranks);
    expect_well(ranks, 4, "2 workers and 2 servers");
    const struct outcome *root = &ranks[0].outcome;
    assert_int_equal(root->statistics.ranks, 4);
    assert_true(root->statistics.asynchronous);
    for (int r = 0; r < 4; r++) {
        assert_true(root->rank[r].bytes_sent > 0);
        assert_true(root->rank[r].bytes_received > 0);
        assert_int_equal(root->rank[r].bytes_shared, 0);
        sent += root->rank[r].bytes_sent;
        received += root->rank[r].bytes_received;
    }
    assert_true(received > sent / 2 && sent > received / 2);
}

/* A rank that computes slowly is the one that waits least. */
static void a_straggler_shows(void **state)
{
    (void)state;
    struct job job;
    struct rank ranks[RANKS];
    begin(&job);
    /* Much slower: where others use the processor, too, every rank is slow now and then. */
    job_set(&job, "train.steps=40");
    job.settings.slow = "1:50";
    run_ranks(&job.settings, 3, false, ranks);
    expect_well(ranks, 3, "3 ranks");
    const struct tr_train_rank *rank = ranks[0].outcome.rank;
    for (int r = 0; r < 3; r += 2) {
        assert_true(rank[1].compute_seconds > rank[r].compute_seconds);
        assert_true(rank[1].wait_seconds < rank[r].wait_seconds);
    }
}

static void there_are_none_before_a_run(void **state)
{
    (void)state;
    struct job job;
    struct tr_train_statistics statistics = TR_TRAIN_STATISTICS_INIT;
    begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    assert_int_equal(tr_trainer_statistics(trainer, &statistics), TR_EINVAL);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    must_train(tr_trainer_statistics(trainer, &statistics));
    assert_int_equal(statistics.ranks, 1);
    assert_int_equal(statistics.rank[0].bytes_sent + statistics.rank[0].bytes_received, 0);
    tr_trainer_destroy(&trainer);
}

/* A trainer that has made all its steps runs again. */
static void *run_twice(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    trainer_outcome(trainer, &rank->outcome);
    must_train(rank->outcome.status);
    *(struct outcome *)rank->user = rank->outcome;
    trainer_outcome(trainer, &rank->outcome);
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* What was moved before a run, to make it or in another one, is not of this run. */
static void a_run_counts_what_is_its_own(void **state)
{
    (void)state;
    enum { SIZE = 3 };
    struct job job;
    struct rank ranks[RANKS] = {0};
    struct outcome first[SIZE];
    begin(&job);
    job.settings.strategy = "allreduce,factors=never";
    for (int r = 0; r < SIZE; r++) ranks[r].user = &first[r];
    run_ranks_by(run_twice, &job.settings, SIZE, 1, ranks);
    expect_well(ranks, SIZE, "again");
    const struct outcome *second = &ranks[0].outcome;
    assert_true(first[0].statistics.steps > 4);
    assert_int_equal(second->statistics.steps, 0);
    for (int r = 0; r < SIZE; r++) {
        assert_int_equal(second->rank[r].contributions, 0);
        assert_true(second->rank[r].bytes_sent < first[0].rank[r].bytes_sent / 2);
        assert_true(second->rank[r].bytes_received < first[0].rank[r].bytes_received / 2);
        assert_true(second->rank[r].compute_seconds == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_and_bytes_add_up),
        cmocka_unit_test(servers_tell_of_themselves),
        cmocka_unit_test(a_straggler_shows),
        cmocka_unit_test(there_are_none_before_a_run),
        cmocka_unit_test(a_run_counts_what_is_its_own),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
