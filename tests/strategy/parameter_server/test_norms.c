/* Norms of gradients that several servers have parts of: they are those of one process, and clip as there. */
#include "support/ranks.h"

#include "train/loop/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define STEPS   6
#define WEIGHTS (28 * 28 * 10)

struct course {
    double norm[STEPS];
    int steps;
    float weights[WEIGHTS];
};

static int hear(void *user, const struct tr_train_event *event)
{
    struct course *course = user;
    if (event->kind != TR_EVENT_STEP) return 0;
    assert_true(course->steps < STEPS);
    course->norm[course->steps++] = event->gradient_norm;
    return 0;
}

static tr_status follow(tr_trainer *trainer, struct course *course)
{
    tr_status status = tr_trainer_run(trainer, hear, course);
    return status == TR_OK ? tr_trainer_parameter(trainer, "sum.weights", course->weights, WEIGHTS) : status;
}

static void *run(void *user)
{
    struct rank *rank = user;
    bool root = tr_comm_rank(rank->comm) == 0;
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    rank->outcome.status = root ? follow(trainer, rank->user) : tr_trainer_run(trainer, NULL, NULL);
    snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void expect_near(double expected, double got, const char *what, const char *how)
{
    if (!(fabs(expected - got) <= 1e-4 * fabs(expected) + 1e-7))
        fail_msg("%s: a %s of %.9g instead of %.9g", how, what, got, expected);
}

/* With a single worker nothing is stale. Clipping makes all but nothing of the gradient, so a norm or a
   factor that is wrong shows in the weights. */
static void servers_clip_as_one_process(void **state)
{
    (void)state;
    static const char *const strategies[] = {
        "parameter-server,mode=async", "parameter-server,mode=async,servers=2",
        "parameter-server,mode=bounded,servers=4", "parameter-server,mode=backup,backup=0,servers=3"};
    static const int sizes[] = {2, 3, 5, 4};
    static const char *const bounds[] = {"0.01", "1000"};
    for (int b = 0; b < 2; b++) {
        static struct course alone, got;
        struct job job;
        char optimizer[80];
        snprintf(optimizer, sizeof optimizer, "optimizer={rule: sgd, rate: 0.5, clip_norm: %s}", bounds[b]);
        family_job(&job, &families[0], family_place);
        job_set(&job, "layers=[{flatten: null}, {dense: {units: 10, name: sum}}]");
        job_set(&job, optimizer);
        job_set(&job, "train.batch=20");
        job_set(&job, "train.microbatches=4");
        job_set(&job, "train.log_every=1");
        job_set(&job, "train.evaluate_every=0");
        job.settings.set = job.set;
        job.settings.steps = STEPS;
        alone = (struct course){.steps = 0};
        tr_trainer *trainer = job_trainer(&job);
        must_train(follow(trainer, &alone));
        tr_trainer_destroy(&trainer);
        assert_int_equal(alone.steps, STEPS);
        for (int i = 0; i < 4; i++)
            for (int apart = 0; apart < 2; apart++) {
                struct rank ranks[RANKS];
                memset(ranks, 0, sizeof ranks);
                got = (struct course){.steps = 0};
                for (int r = 0; r < sizes[i]; r++) ranks[r].user = &got;
                job.settings.strategy = strategies[i];
                run_ranks_by(run, &job.settings, sizes[i], apart, ranks);
                expect_well(ranks, sizes[i], strategies[i]);
                assert_int_equal(got.steps, STEPS);
                for (int s = 0; s < STEPS; s++) {
                    assert_true(alone.norm[s] > 0.1 && alone.norm[s] < 1000);
                    expect_near(alone.norm[s], got.norm[s], "norm", strategies[i]);
                }
                for (int w = 0; w < WEIGHTS; w++)
                    expect_near((double)alone.weights[w], (double)got.weights[w], "weight", strategies[i]);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_clip_as_one_process),
    };
    return cmocka_run_group_tests_name("strategy.norms", tests, family_place_make, family_place_remove);
}
