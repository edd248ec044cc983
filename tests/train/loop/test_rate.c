/* The learning rate that a program sets between steps: that of a job that has it, on all ranks alike, and
 * kept. */
#include "train/loop/short_job.h"

#include "support/ranks.h"

#include "train/loop/trainer.h"

#include "base/fail.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void test_rate_is_that_of_a_job(void **state)
{
    struct job job;
    char expected[65], hash[65];
    double rate;
    struct tr_train_event event = TR_TRAIN_EVENT_INIT;
    (void)state;
    short_job_begin(&job);
    job_set(&job, "optimizer.rate=0.0078125");
    job_set(&job, "optimizer.schedule=constant");
    tr_trainer *trainer = job_trainer(&job);
    short_job_finish(&trainer, expected);
    short_job_begin(&job);
    trainer = job_trainer(&job);
    must_train(tr_trainer_set_rate(trainer, 0.0078125));
    must_train(tr_trainer_rate(trainer, &rate));
    assert_true(rate == 0.0078125);
    must_train(tr_trainer_step(trainer, &event));
    assert_true(event.rate == 0.0078125);
    short_job_finish(&trainer, hash);
    assert_string_equal(hash, expected);
    /* And back again. */
    short_job_hash(expected);
    short_job_begin(&job);
    trainer = job_trainer(&job);
    must_train(tr_trainer_set_rate(trainer, 3));
    must_train(tr_trainer_set_rate(trainer, NAN));
    short_job_finish(&trainer, hash);
    assert_string_equal(hash, expected);
    short_job_begin(&job);
    trainer = job_trainer(&job);
    assert_int_equal(tr_trainer_set_rate(trainer, -1), TR_EINVAL);
    assert_int_equal(tr_trainer_set_rate(trainer, INFINITY), TR_EINVAL);
    assert_int_equal(tr_trainer_set_rate(trainer, 1e39), TR_EINVAL);
    short_job_finish(&trainer, hash);
    assert_string_equal(hash, expected);
}

/* A listener that sets the rate after the fourth step, so that it holds from the sixth on. */
static int slow_down(void *user, const struct tr_train_event *event)
{
    if (event->kind == TR_EVENT_STEP && event->step == 4) must_train(tr_trainer_set_rate(user, 0.0009765625));
    if (event->kind == TR_EVENT_STEP && event->step > 5) assert_true(event->rate == 0.0009765625);
    if (event->kind == TR_EVENT_STEP && event->step <= 5) assert_true(event->rate != 0.0009765625);
    return 0;
}

static void *run_slowed(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer = NULL;
    rank->outcome = (struct outcome){.status = trainer_create(rank->settings, rank->comm, &trainer)};
    if (rank->outcome.status == TR_OK) rank->outcome.status = tr_trainer_run(trainer, slow_down, trainer);
    if (rank->outcome.status == TR_OK) rank->outcome.status = tr_trainer_hash(trainer, rank->outcome.hash);
    if (rank->outcome.status != TR_OK)
        snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void test_rate_on_all_ranks(void **state)
{
    struct job job;
    struct rank ranks[3];
    struct outcome alone = {.status = TR_OK};
    (void)state;
    /* Between steps, by hand. */
    short_job_begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    short_job_steps(trainer, 5);
    must_train(tr_trainer_set_rate(trainer, 0.0009765625));
    short_job_finish(&trainer, alone.hash);
    static const struct {
        const char *strategy;
        int ranks;
    } ways[] = {{"allreduce", 1}, {"allreduce", 3}, {"parameter-server", 3}, {"pipeline", 2}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        short_job_begin(&job);
        job.settings.strategy = ways[i].strategy;
        run_ranks_by(run_slowed, &job.settings, ways[i].ranks, 0, ranks);
        expect_well(ranks, ways[i].ranks, ways[i].strategy);
        assert_string_equal(ranks[0].outcome.hash, alone.hash);
    }
}

static void test_rate_is_kept(void **state)
{
    struct job job;
    char expected[65], hash[65];
    void *bytes = NULL;
    size_t size = 0;
    double rate;
    (void)state;
    short_job_begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    short_job_steps(trainer, 3);
    must_train(tr_trainer_set_rate(trainer, 0.1));
    short_job_steps(trainer, 2);
    must_train(tr_trainer_save_state(trainer, &bytes, &size));
    short_job_finish(&trainer, expected);
    short_job_begin(&job);
    job.settings.state = (struct tr_run_state){.bytes = bytes, .size = size};
    trainer = job_trainer(&job);
    must_train(tr_trainer_rate(trainer, &rate));
    assert_true(rate == 0.1);
    short_job_finish(&trainer, hash);
    assert_string_equal(hash, expected);
    tr_state_free(bytes);
}

/* ---- when a rank dies ---- */

#define FIRST_RATE  0.000244140625
#define SECOND_RATE 0.0001220703125

static _Thread_local struct rank *this_rank; /* of those that outlive each other; else NULL */
static _Thread_local int taken;              /* rates */
static _Thread_local int heard;              /* bits of steps */
static int told;                             /* what rank 1 has heard */
static int fatal;                            /* the rate with which rank 0 dies: 1 or 2 */

tr_status __real_trainer_take_rate(tr_trainer *trainer);
tr_status __wrap_trainer_take_rate(tr_trainer *trainer);

/* Rank 0 dies when all have the rate, which rank 2 notices here, and rank 1 in the next step. */
tr_status __wrap_trainer_take_rate(tr_trainer *trainer)
{
    TR_TRY(__real_trainer_take_rate(trainer));
    if (!this_rank || ++taken != fatal) return TR_OK;
    if (tr_comm_rank(this_rank->comm) == 0) {
        ranks_die(this_rank->comm);
        return tr_fail(TR_EPEER, "this rank was to die here");
    }
    return tr_comm_rank(this_rank->comm) == 2 ? __real_trainer_take_rate(trainer) : TR_OK;
}

/* Sets a rate after the second step and another after the fourth; they hold from the fourth and the sixth. */
static int set_two_rates(void *user, const struct tr_train_event *event)
{
    if (event->kind != TR_EVENT_STEP) return 0;
    if (event->step == 2) must_train(tr_trainer_set_rate(user, FIRST_RATE));
    if (event->step == 4) must_train(tr_trainer_set_rate(user, SECOND_RATE));
    heard |= 1 << event->step;
    if (event->step <= 3 ? !(event->rate > FIRST_RATE)
                         : event->rate != (event->step <= 5 ? FIRST_RATE : SECOND_RATE))
        fail_msg("step %lld has the rate %g", (long long)event->step, event->rate);
    return 0;
}

static void *run_outlived(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer = NULL;
    this_rank = tr_comm_size(rank->comm) > 1 ? rank : NULL;
    taken = heard = 0;
    rank->outcome = (struct outcome){.status = trainer_create(rank->settings, rank->comm, &trainer)};
    if (rank->outcome.status == TR_OK) rank->outcome.status = tr_trainer_run(trainer, set_two_rates, trainer);
    if (rank->outcome.status == TR_OK) rank->outcome.status = tr_trainer_hash(trainer, rank->outcome.hash);
    if (rank->outcome.status != TR_OK)
        snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
    if (this_rank && tr_comm_rank(rank->comm) == 1) told = heard;
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    this_rank = NULL;
    return NULL;
}

/* A rate that only some have when a rank dies is set once more; what is told again has the rate before. */
static void test_rate_outlives_a_rank(void **state)
{
    struct job job;
    struct rank alone[1], ranks[3];
    (void)state;
    short_job_begin(&job);
    run_ranks_by(run_outlived, &job.settings, 1, 0, alone);
    expect_well(alone, 1, "alone");
    job.settings.outlives = true;
    for (fatal = 1; fatal <= 2; fatal++) {
        run_ranks_by(run_outlived, &job.settings, 3, 0, ranks);
        assert_int_equal(ranks[0].outcome.status, TR_EPEER);
        assert_int_equal(told, fatal == 1 ? 0x1ff8 : 0x1fe0); /* from step 3 or 5 on */
        for (int r = 1; r < 3; r++) {
            if (ranks[r].outcome.status != TR_OK) fail_msg("rank %d: %s", r, ranks[r].outcome.message);
            assert_string_equal(ranks[r].outcome.hash, alone[0].outcome.hash);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_is_that_of_a_job),
        cmocka_unit_test(test_rate_on_all_ranks),
        cmocka_unit_test(test_rate_is_kept),
        cmocka_unit_test(test_rate_outlives_a_rank),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
