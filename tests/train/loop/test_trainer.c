/* Trainers among others: who reports when ranks are gone; replays that take the job of the run that they
 * repeat. */
#include "support/ranks.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"
#include "strategy/updates/file.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static int make(void **state)
{
    scratch_place_make(state);
    scratch_write_text("tiny.csv", "a,b,y\n1,2,3\n2,-1,1\n-1,3,2\n0.5,0.25,0.75\n1,1,2\n");
    scratch_write_text("tiny.yaml", "name: tiny\n"
                                    "data: {train: {csv: {path: tiny.csv, label: value}}}\n"
                                    "layers: [{dense: 1}]\nloss: mean_squared_error\n"
                                    "optimizer: {rule: momentum, rate: 0.01}\n"
                                    "train: {batch: 2, microbatches: 2, steps: 20}\n");
    return 0;
}

static void begin(struct job *job)
{
    static char path[SCRATCH_PATH];
    job_begin(job, scratch_join(path, scratch_place, "tiny.yaml"));
    job->settings.set = job->set;
}

/* ---- who reports ---- */

enum end { STAYS, GIVES_UP, DIES };

struct part {
    enum end first; /* what rank 0 does after a step */
    bool before, after;
};

static void *take_part(void *user)
{
    struct rank *rank = user;
    struct part *part = &((struct part *)rank->user)[tr_comm_rank(rank->comm)];
    const bool first = tr_comm_rank(rank->comm) == 0;
    tr_ticket *ticket = NULL;
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    must_train(tr_trainer_step(trainer, NULL));
    part->before = tr_trainer_is_reporter(trainer);
    must_train(tr_comm_barrier(rank->comm, &ticket)); /* none ends before all have looked */
    must_train(tr_comm_wait(rank->comm, &ticket));
    if (first && part->first == GIVES_UP) tr_comm_abort(rank->comm, "enough");
    if (first && part->first == DIES) ranks_die(rank->comm);
    rank->outcome = (struct outcome){.status = tr_trainer_step(trainer, NULL)};
    part->after = tr_trainer_is_reporter(trainer);
    if (rank->outcome.status != TR_OK) tr_comm_abort(rank->comm, "gone on");
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void the_first_living_one_reports(void **state)
{
    (void)state;
    struct job job;
    begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    assert_true(tr_trainer_is_reporter(trainer));
    tr_trainer_destroy(&trainer);
    for (int end = STAYS; end <= DIES; end++) {
        struct rank ranks[RANKS] = {{0}};
        struct part parts[2] = {{.first = (enum end)end}, {.first = (enum end)end}};
        for (int r = 0; r < 2; r++) ranks[r].user = parts;
        run_ranks_by(take_part, &job.settings, 2, 0, ranks);
        assert_int_equal(ranks[1].outcome.status, end == STAYS ? TR_OK : TR_EPEER);
        assert_false(parts[1].before);
        /* One that gave up says itself why; a dead one cannot. */
        assert_int_equal(parts[1].after, end == DIES);
        assert_true(parts[0].before);
    }
}

/* ---- replays ---- */

static void expect_replay(const char *replay, const char *hash)
{
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    tr_trainer *trainer;
    char own[65];
    settings.replay = replay;
    settings.threads = 1;
    settings.journal = "";
    must_train(tr_trainer_create(&settings, &trainer));
    assert_int_equal(trainer_steps_done(trainer), 0);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    must_train(tr_trainer_hash(trainer, own));
    assert_string_equal(own, hash);
    tr_trainer_destroy(&trainer);
}

static void a_replay_takes_the_job_of_its_run(void **state)
{
    (void)state;
    struct job job;
    struct rank ranks[RANKS];
    char out[SCRATCH_PATH], log[SCRATCH_PATH];
    begin(&job);
    job.settings.strategy = "parameter-server,mode=async";
    job.settings.out = scratch_join(out, scratch_place, "run");
    run_ranks(&job.settings, 3, 0, ranks);
    expect_well(ranks, 3, "asynchronous");
    expect_replay(out, ranks[0].outcome.hash);
    expect_replay(scratch_join(log, out, TR_UPDATE_FILE), ranks[0].outcome.hash);
    for (int64_t at = 0, done = 0; !done; at++) {
        struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
        tr_trainer *trainer;
        const int64_t live = tr_alloc_live();
        settings.replay = out;
        settings.threads = 1;
        settings.journal = "";
        refuse_begin(at);
        const tr_status status = tr_trainer_create(&settings, &trainer);
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM))
            fail_msg("allocation %lld: %s", (long long)at, tr_status_name(status));
        tr_trainer_destroy(&trainer);
        assert_int_equal(tr_alloc_live(), live);
    }
    /* The other order, by simulated delays, of one process. */
    begin(&job);
    job.settings.strategy = "parameter-server,mode=async";
    for (int64_t at = 0, done = 0; !done; at++) {
        tr_trainer *trainer;
        const int64_t live = tr_alloc_live();
        job.settings.simulate_delays = 5;
        job.settings.slow = "1:3";
        refuse_begin(at);
        const tr_status status = tr_trainer_create(&job.settings, &trainer);
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM))
            fail_msg("allocation %lld: %s", (long long)at, tr_status_name(status));
        tr_trainer_destroy(&trainer);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_living_one_reports),
        cmocka_unit_test(a_replay_takes_the_job_of_its_run),
    };
    return cmocka_run_group_tests(tests, make, scratch_place_remove);
}
