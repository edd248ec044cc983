/* The warm-up of a run that settings make shorter than its model file says. */
#include "job/file/warmup.h"

#include "base/text/log.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Opens a job of ten examples with this schedule and length. */
static tr_status open_job(const char *schedule, const char *length, int64_t steps, int64_t epochs,
                          struct tr_job **job)
{
    char text[512];
    const struct tr_job_settings settings = {.steps = steps, .epochs = epochs};
    const int size = snprintf(text, sizeof text,
                              "name: n\ndata: {train: {csv: ten.csv}}\nlayers: [dense: 2]\n"
                              "optimizer: {rule: sgd, rate: 1, schedule: %s}\ntrain: {batch: 2, %s}\n",
                              schedule, length);
    const struct tr_job_text model = {text, (size_t)size, "m.yaml", scratch_place};
    *job = NULL;
    return tr_job_open_text(&model, &settings, job);
}

/* It keeps its share of a run that it would fill, to the nearest step; and leaves one of either. */
static void warmups_keep_their_share(void **state)
{
    static const struct {
        const char *schedule, *length;
        int64_t steps, epochs; /* of the settings; 0: none */
        int64_t warmup;        /* what it becomes; -1: the job is refused */
    } cases[] = {
        {"{kind: cosine, warmup: 20}", "steps: 100", 0, 0, 20},
        {"{kind: cosine, warmup: 20}", "steps: 100", 21, 0, 20}, /* there is room for it */
        {"{kind: cosine, warmup: 20}", "steps: 100", 20, 0, 4},
        {"{kind: cosine, warmup: 20}", "steps: 100", 12, 0, 2}, /* 2.4 */
        {"{kind: cosine, warmup: 20}", "steps: 100", 13, 0, 3}, /* 2.6 */
        {"{kind: cosine, warmup: 25}", "steps: 100", 10, 0, 3}, /* 2.5 */
        {"{kind: cosine, warmup: 1}", "steps: 100", 2, 0, 1},
        {"{kind: cosine, warmup: 20}", "steps: 1000", 5, 0, 1}, /* 0.1 */
        {"{kind: cosine, warmup: 99}", "steps: 100", 10, 0, 9}, /* 9.9 */
        {"{kind: linear, warmup: 20}", "steps: 100", 10, 0, 2},
        /* 5 steps an epoch */
        {"{kind: linear, warmup: 20}", "steps: 100", 0, 2, 2},
        {"{kind: cosine, warmup: 20}", "epochs: 20", 10, 0, 2},
        {"{kind: cosine, warmup: 20}", "epochs: 20", 0, 2, 2},
        {"{kind: cosine, warmup: 20}", "epochs: 20", 0, 5, 20},
        /* Others stay, whatever is left of them. */
        {"{kind: constant, warmup: 20}", "steps: 100", 10, 0, 20},
        {"{kind: step, milestones: 50, warmup: 20}", "steps: 100", 10, 0, 20},
        {"{kind: cosine, warmup: 20, steps: 50}", "steps: 100", 10, 0, 20},
        /* Nor does it mend what the file says, or a run of one step. */
        {"{kind: cosine, warmup: 20}", "steps: 20", 0, 0, -1},
        {"{kind: cosine, warmup: 20}", "steps: 20", 10, 0, -1},
        {"{kind: cosine, warmup: 20}", "epochs: 4", 10, 0, -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_job *job;
        const tr_status status =
            open_job(cases[i].schedule, cases[i].length, cases[i].steps, cases[i].epochs, &job);
        if (status != (cases[i].warmup < 0 ? TR_EINVAL : TR_OK))
            fail_msg("%s of %s: %s", cases[i].schedule, cases[i].length,
                     status == TR_OK ? "is taken" : tr_error_message());
        if (status == TR_OK && job->optimizer.schedule.warmup != cases[i].warmup)
            fail_msg("%s of %s: %d steps, not %d", cases[i].schedule, cases[i].length,
                     (int)job->optimizer.schedule.warmup, (int)cases[i].warmup);
        if (status != TR_OK)
            assert_non_null(strstr(tr_error_message(), "a warm-up of 20 steps leaves nothing of"));
        tr_job_destroy(&job);
    }
}

static char said[512];
static void keep(void *user, enum tr_log_level level, const char *line)
{
    (void)user;
    if (level == TR_LOG_WARNING) snprintf(said, sizeof said, "%s", line);
}

static void a_shorter_warmup_is_told(void **state)
{
    struct tr_job *job;
    (void)state;
    tr_log_set_sink(keep, NULL, TR_LOG_WARNING);
    *said = 0;
    assert_int_equal(open_job("{kind: cosine, warmup: 20}", "epochs: 20", 21, 0, &job), TR_OK);
    assert_string_equal(said, "");
    tr_job_destroy(&job);
    assert_int_equal(open_job("{kind: cosine, warmup: 20}", "epochs: 20", 10, 0, &job), TR_OK);
    assert_non_null(
        strstr(said, "a warm-up of 20 steps leaves nothing of 10; it takes 2, the same share as of the 100 "
                     "steps that the model file trains"));
    tr_job_destroy(&job);
    tr_log_set_sink(NULL, NULL, TR_LOG_WARNING);
}

static int set_up(void **state)
{
    scratch_place_make(state);
    scratch_write_text("ten.csv", "1,0\n2,1\n1,0\n2,1\n1,0\n2,1\n1,0\n2,1\n1,0\n2,1\n");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warmups_keep_their_share),
        cmocka_unit_test(a_shorter_warmup_is_told),
    };
    return cmocka_run_group_tests_name("job.warmup", tests, set_up, scratch_place_remove);
}
