/* What is told of rounds, in which replicas make several steps before they meet: their figures are those of
 * the steps, and what goes wrong in the middle is told of the step in which it did. A single replica trains
 * as one process does, whose steps can be looked at one by one.
 */
#include "support/training.h"

#include "strategy/driver.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define STEPS 6

static void begin(struct job *job)
{
    family_job(job, &families[2], family_place);
    job->settings.steps = STEPS;
}

struct norms {
    double norm[STEPS];
    int count;
};

static int hear_norm(void *user, const struct tr_train_event *event)
{
    struct norms *norms = user;
    if (event->kind != TR_EVENT_STEP) return 0;
    assert_true(norms->count < STEPS);
    norms->norm[norms->count++] = event->gradient_norm;
    return 0;
}

static void run(struct job *job, struct norms *norms)
{
    tr_trainer *trainer = job_trainer(job);
    *norms = (struct norms){.count = 0};
    must_train(tr_trainer_run(trainer, hear_norm, norms));
    tr_trainer_destroy(&trainer);
}

/* The norm of a round is the mean over its steps. */
static void norms_are_means(void **state)
{
    (void)state;
    struct job job;
    struct norms steps, rounds;
    begin(&job);
    job_set(&job, "train.log_every=1");
    job_set(&job, "optimizer.clip_norm=1000");
    run(&job, &steps);
    job.settings.strategy = "local-sgd,every=3,replicas=1";
    run(&job, &rounds);
    assert_int_equal(steps.count, STEPS);
    assert_int_equal(rounds.count, STEPS / 3);
    for (int i = 0; i < rounds.count; i++) {
        double mean = (steps.norm[3 * i] + steps.norm[3 * i + 1] + steps.norm[3 * i + 2]) / 3;
        assert_true(fabs(rounds.norm[i] - mean) < 1e-5 * mean);
    }
}

/* However long the rounds are. */
static void bad_steps_are_told_by_their_number(void **state)
{
    (void)state;
    static const char *const rounds[] = {"local-sgd,every=4,replicas=1", "local-sgd,every=6,replicas=1"};
    struct job job;
    struct outcome alone, outcome;
    begin(&job);
    job_set(&job, "optimizer.rate=1e30");
    job_outcome(&job, &alone);
    assert_int_equal(alone.status, TR_ENONFINITE);
    assert_true(alone.step < 3); /* in the middle of a round */
    for (int i = 0; i < 2; i++) {
        job.settings.strategy = rounds[i];
        job_outcome(&job, &outcome);
        assert_int_equal(outcome.status, TR_ENONFINITE);
        size_t length = strcspn(alone.message, ";"); /* behind it, replicas have numbers */
        if (strncmp(outcome.message, alone.message, length) != 0)
            fail_msg("%s: \"%s\", one process says \"%s\"", rounds[i], outcome.message, alone.message);
    }
}

/* Of several replicas the one that went wrong first is told of. */
static void the_first_bad_replica_is_told_of(void **state)
{
    (void)state;
    struct tr_report reports[] = {{.bad_step = -1, .skipped = 1, .request = 2},
                                  {.bad_step = 7},
                                  {.bad_step = 5, .bad_loss = 1, .request = 1},
                                  {.bad_step = 9}};
    struct tr_digest digest;
    tr_driver_digest(reports, 4, &digest);
    assert_int_equal(digest.replica, 2);
    assert_int_equal(digest.all.bad_step, 5);
    assert_int_equal(digest.all.bad_loss, 1);
    assert_int_equal(digest.all.request, 3);
    assert_int_equal(digest.all.skipped, 1);
    reports[2].bad_step = -1;
    tr_driver_digest(reports, 4, &digest);
    assert_int_equal(digest.replica, 1);
    assert_int_equal(digest.all.bad_loss, 0);
    for (int i = 0; i < 4; i++) reports[i].bad_step = -1;
    tr_driver_digest(reports, 4, &digest);
    assert_int_equal(digest.replica, -1);
    assert_int_equal(digest.all.bad_step, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_are_means),
        cmocka_unit_test(bad_steps_are_told_by_their_number),
        cmocka_unit_test(the_first_bad_replica_is_told_of),
    };
    return cmocka_run_group_tests_name("strategy.rounds", tests, family_place_make, family_place_remove);
}
