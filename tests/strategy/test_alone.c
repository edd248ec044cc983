/* A process alone on a device with memory of its own, which judges its steps by itself: what becomes of steps
 * that are bad, and of those that are begun before the one in front of them is judged.
 */
#include "strategy/values.h"
#include "support/operations/shadow.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void begin(struct job *job, int family)
{
    family_job(job, &families[family], family_place);
    job_set(job, "train.microbatches=5");
    job->settings.steps = 5;
    job->settings.set = job->set;
}

/* A device that goes through a step by itself holds back what the host would have: the same steps are
   skipped, or end the run, with the same words. */
static void steps_that_are_not_finite(void **state)
{
    static const char skip[] = "train.on_nonfinite=skip", clip[] = "optimizer.clip_norm=1";
    static const struct {
        const char *line, *set[3];
        tr_status status;
        const char *message; /* part of it */
    } runs[] = {
        {"0,3e38,0,-3e38,0\n", {NULL}, TR_ENONFINITE, "the loss is not finite"},
        {"0,3e38,0,-3e38,0\n", {clip, NULL}, TR_ENONFINITE, "the loss is not finite"},
        {"0,3e38,0,-3e38,0\n", {skip, NULL}, TR_OK, ""},
        {"0,3e38,0,-3e38,0\n", {skip, clip, NULL}, TR_OK, ""},
        /* the loss is finite, the norm of the gradient is not */
        {"1e10,1e18,0,1,0\n", {skip, NULL}, TR_OK, ""},
        {"1e10,1e18,0,1,0\n",
         {"optimizer.rate=3e38", NULL},
         TR_ENONFINITE,
         "the updated network is not finite"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        struct job job;
        struct outcome expected, got;
        values_job(&job, family_place, runs[i].line);
        for (int k = 0; runs[i].set[k]; k++) job_set(&job, runs[i].set[k]);
        job.settings.device = "cpu";
        job_outcome(&job, &expected);
        if (expected.status != runs[i].status || !strstr(expected.message, runs[i].message) ||
            expected.warnings != (runs[i].status == TR_OK))
            fail_msg("run %d: status %d, %d warnings, %s", (int)i, (int)expected.status, expected.warnings,
                     expected.message);
        job.settings.device = "shadow";
        job_outcome(&job, &got);
        assert_int_equal(got.status, expected.status);
        assert_int_equal(got.warnings, expected.warnings);
        assert_string_equal(got.message, expected.message);
        assert_string_equal(got.losses, expected.losses);
        if (expected.status == TR_OK) assert_string_equal(got.hash, expected.hash);
    }
}

static int overtaken;
static tr_trainer *to_stop;

static void count_overtaken(void)
{
    overtaken++;
    if (to_stop) tr_trainer_stop(to_stop);
}

/* A run on a device, and the hash of what it leaves, also where it fails. */
static void run_on(struct job *job, const char *device, struct outcome *outcome)
{
    job->settings.device = device;
    tr_trainer *trainer = job_trainer(job);
    trainer_outcome(trainer, outcome);
    must_train(tr_trainer_hash(trainer, outcome->hash));
    tr_trainer_destroy(&trainer);
}

/* On the shadow device all is as on the cpu device, `status` included. *times: how often a step was judged
   with the next one under way. */
static void expect_run_of_cpu(struct job *job, tr_status status, int *times)
{
    struct outcome expected, got;
    run_on(job, "cpu", &expected);
    overtaken = 0;
    shadow_goes_on = count_overtaken;
    run_on(job, "shadow", &got);
    shadow_goes_on = NULL;
    *times = overtaken;
    assert_int_equal(expected.status, status);
    assert_int_equal(got.status, status);
    assert_string_equal(got.message, expected.message);
    assert_int_equal(got.step, expected.step);
    assert_int_equal(got.steps_seen, expected.steps_seen);
    assert_string_equal(got.losses, expected.losses);
    assert_int_equal(got.warnings, expected.warnings);
    assert_string_equal(got.hash, expected.hash);
    assert_int_equal(got.rank[0].contributions, expected.rank[0].contributions);
    assert_int_equal(got.rank[0].compute_seconds > 0, expected.rank[0].compute_seconds > 0);
}

/* Where nothing comes between two steps, the device has the second one before the first one is judged;
   whatever that one says then. */
static void the_next_step_is_begun_before(void **state)
{
    static const char bad_loss[] = "0,3e38,0,-3e38,0\n", bad_update[] = "1e10,1e18,0,1,0\n",
                      bad_answer[] = "0,1,0,7,0\n";
    static const char silent[] = "train.log_every=0", skip[] = "train.on_nonfinite=skip",
                      answers[] = "data.train.csv.path=answers.csv";
    static const struct {
        int family;       /* -1: values */
        const char *line; /* of them */
        const char *set[5];
        bool overtakes;
        tr_status status;
    } runs[] = {
        {0, NULL, {silent, NULL}, true, TR_OK},
        {3, NULL, {silent, "train.pass=2", NULL}, true, TR_OK},
        {4, NULL, {silent, NULL}, true, TR_OK},              /* but not an evaluation */
        {5, NULL, {"train.log_every=4", NULL}, true, TR_OK}, /* behind step 2 */
        {0, NULL, {"train.log_every=1", NULL}, false, TR_OK},
        {0, NULL, {silent, "train.evaluate_every=1", NULL}, false, TR_OK},
        {0, NULL, {silent, "train.checkpoint_every=1", NULL}, false, TR_OK},
        {0, NULL, {silent, skip, NULL}, true, TR_OK},
        /* steps that are skipped hold no others, and one that spoils the network holds all */
        {-1, bad_loss, {silent, skip, NULL}, true, TR_OK},
        {-1, bad_update, {silent, skip, "optimizer.clip_norm=1", NULL}, true, TR_OK},
        {-1, "0,1,0,7,0\n", {silent, skip, "optimizer.rate=3e38", NULL}, true, TR_ENONFINITE},
        {-1, bad_loss, {silent, NULL}, true, TR_ENONFINITE},
        {-1, bad_loss, {silent, "optimizer.clip_norm=1", NULL}, true, TR_ENONFINITE},
        {-1, bad_update, {silent, "optimizer.rate=3e38", NULL}, true, TR_ENONFINITE},
        /* the next step cannot be begun, and the one before it is done all the same */
        {-1, bad_answer, {silent, answers, "loss=binary_cross_entropy", NULL}, true, TR_EFORMAT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        struct job job;
        int times;
        if (runs[i].family < 0)
            values_job(&job, family_place, runs[i].line);
        else
            begin(&job, runs[i].family);
        for (int k = 0; runs[i].set[k]; k++) job_set(&job, runs[i].set[k]);
        expect_run_of_cpu(&job, runs[i].status, &times);
        if ((times > 0) != runs[i].overtakes) fail_msg("run %d: %d times", (int)i, times);
    }
}

/* Who asks to stop while two steps are under way gets both, and what is kept is the second one's. */
static void a_stop_waits_for_what_is_under_way(void **state)
{
    struct job job;
    struct outcome expected, got;
    char out[SCRATCH_PATH];
    (void)state;
    begin(&job, 4);
    job_set(&job, "train.log_every=0");
    job_set(&job, "train.evaluate_every=0");
    job.settings.device = "shadow";
    job_outcome(&job, &expected);
    job.settings.out = scratch_join(out, family_place, "stopped");
    to_stop = job_trainer(&job);
    shadow_goes_on = count_overtaken;
    trainer_outcome(to_stop, &got);
    shadow_goes_on = NULL;
    tr_trainer_destroy(&to_stop);
    assert_int_equal(got.status, TR_EINTERRUPTED);
    assert_int_equal(got.step, 2);
    job.settings.continues = true;
    job_outcome(&job, &got);
    expect_same(&expected, &got, "went on");
}

/* Who looks at some steps is shown them; nothing else is under way then. */
static void a_run_that_is_watched_is_not_overtaken(void **state)
{
    struct job job;
    char out[SCRATCH_PATH];
    int times;
    (void)state;
    begin(&job, 0);
    job_set(&job, "train.log_every=0");
    job.settings.record_digests = 2;
    job.settings.out = scratch_join(out, family_place, "watched");
    expect_run_of_cpu(&job, TR_OK, &times);
    assert_int_equal(times, 0);
}

enum { NORMS_MOST = 8 };

struct norms {
    double norm[NORMS_MOST];
    int count;
};

static int hear_norm(void *user, const struct tr_train_event *event)
{
    struct norms *norms = user;
    if (event->kind != TR_EVENT_STEP) return 0;
    assert_true(norms->count < NORMS_MOST);
    norms->norm[norms->count++] = event->gradient_norm;
    return 0;
}

/* Norms are told of each step, or of several, as on the cpu device. */
static void norms_are_told(void **state)
{
    static const char *const sets[] = {"optimizer.clip_norm=0.5", "optimizer.clip_norm=0",
                                       "train.on_nonfinite=skip"};
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct norms norms[2] = {{.count = 0}};
        for (int device = 0; device < 2; device++) {
            struct job job;
            begin(&job, 0);
            job_set(&job, sets[i / 2]);
            job_set(&job, i % 2 ? "train.log_every=2" : "train.log_every=1");
            job.settings.steps = 6;
            job.settings.device = device ? "shadow" : "cpu";
            tr_trainer *trainer = job_trainer(&job);
            must_train(tr_trainer_run(trainer, hear_norm, &norms[device]));
            tr_trainer_destroy(&trainer);
        }
        assert_in_range(norms[0].count, i % 2 ? 3 : 6, i % 2 ? 4 : 6);
        assert_int_equal(norms[1].count, norms[0].count);
        for (int k = 0; k < norms[0].count; k++) {
            assert_int_equal(isnan(norms[0].norm[k]), i / 2 == 1);
            assert_int_equal(isnan(norms[1].norm[k]), i / 2 == 1);
            if (i / 2 != 1) assert_true(norms[0].norm[k] > 0 && norms[1].norm[k] == norms[0].norm[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_that_are_not_finite),
        cmocka_unit_test(the_next_step_is_begun_before),
        cmocka_unit_test(a_stop_waits_for_what_is_under_way),
        cmocka_unit_test(a_run_that_is_watched_is_not_overtaken),
        cmocka_unit_test(norms_are_told),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
