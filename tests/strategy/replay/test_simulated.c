/* Orders of updates that are given: by hand, by a model of delays, by a log. And those that are refused. */
#include "support/training.h"

#include "base/alloc.h"
#include "strategy/updates/file.h"
#include "strategy/updates/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static char place[SCRATCH_PATH];

static void prepare(struct job *job)
{
    family_job(job, &families[0], family_place);
    job_set(job, "layers=[{flatten: null}, {dense: {units: 8, activation: relu}}, {dense: 10}]");
    job_set(job, "optimizer={rule: adam, rate: 0.01}");
    job_set(job, "train.batch=20");
    job_set(job, "train.microbatches=4");
    job->settings.set = job->set;
    job->settings.steps = 40;
    job->settings.strategy = "parameter-server,mode=async";
}

static void run(struct job *job, const char *how, struct outcome *outcome)
{
    job_outcome(job, outcome);
    if (outcome->status != TR_OK) fail_msg("%s: %s", how, outcome->message);
}

/* Runs in a directory of this name, and reads the log there. */
static void run_at(struct job *job, const char *name, struct outcome *outcome, struct tr_update_log *log)
{
    char directory[SCRATCH_PATH], path[SCRATCH_PATH];
    job->settings.out = scratch_join(directory, place, name);
    run(job, name, outcome);
    *log = (struct tr_update_log){0};
    must_train(tr_update_file_read(scratch_join(path, directory, TR_UPDATE_FILE), log, NULL));
}

static void expect_fails(struct job *job, tr_status status, const char *said)
{
    struct outcome outcome;
    job_outcome(job, &outcome);
    if (outcome.status != status || !strstr(outcome.message, said))
        fail_msg("status %d, \"%s\", not \"%s\"", (int)outcome.status, outcome.message, said);
}

/* One worker is never late, so the simulated run is that of a process alone. */
static void one_worker_has_the_hash_of_one_process(void **state)
{
    (void)state;
    struct job job;
    struct outcome alone, simulated;
    prepare(&job);
    run(&job, "alone", &alone);
    job.settings.simulate_delays = 5;
    job.settings.simulate_workers = 1;
    run(&job, "simulated", &simulated);
    assert_string_equal(simulated.hash, alone.hash);
    assert_int_equal(simulated.statistics.dropped, 0);
}

static double mean(const struct tr_update_log *log, struct tr_update_figures *figures)
{
    tr_update_log_count(log, figures);
    return figures->missed / (double)figures->applied;
}

/* The same seed gives the same run, another one another; a straggler makes what it computes staler. */
static void delays_follow_from_the_seed(void **state)
{
    (void)state;
    struct job job;
    struct outcome first, again, other, slow;
    struct tr_update_log a, b, c, d;
    struct tr_update_figures figures, of_slow;
    prepare(&job);
    job.settings.simulate_delays = 5;
    run_at(&job, "first", &first, &a);
    run_at(&job, "again", &again, &b);
    assert_string_equal(first.hash, again.hash);
    assert_int_equal(a.records, b.records);
    assert_memory_equal(a.record, b.record, (size_t)a.records * sizeof *a.record);
    tr_update_log_release(&b);
    job.settings.simulate_delays = 6;
    run_at(&job, "other", &other, &c);
    assert_string_not_equal(first.hash, other.hash);
    job.settings.simulate_delays = 5;
    job.settings.slow = "1:9";
    run_at(&job, "slow", &slow, &d);
    assert_true(mean(&a, &figures) > 0);
    assert_int_equal(a.session[0].workers, 4);
    mean(&d, &of_slow);
    assert_true(of_slow.most > figures.most);
    job.settings.slow = NULL;
    job.settings.strategy = "parameter-server,mode=bounded,staleness=1";
    run_at(&job, "bounded", &slow, &b);
    mean(&b, &figures);
    assert_int_equal(figures.most, 1);
    tr_update_log_release(&b);
    job.settings.strategy = "parameter-server,mode=backup,backup=1";
    run_at(&job, "backup", &slow, &b);
    mean(&b, &figures);
    assert_true(figures.dropped > 0);
    assert_int_equal(figures.most, 0);
    assert_int_equal(b.session[0].parts, 3);
    tr_update_log_release(&a);
    tr_update_log_release(&b);
    tr_update_log_release(&c);
    tr_update_log_release(&d);
}

static const char *write_text(const char *name, const char *text)
{
    static char path[SCRATCH_PATH];
    must_train(tr_file_write_atomic(NULL, scratch_join(path, place, name), text, strlen(text)));
    return path;
}

/* A log as text is a schedule, of the same run. */
static void a_schedule_is_followed(void **state)
{
    (void)state;
    struct job job;
    struct outcome simulated, scheduled;
    struct tr_update_log log, again;
    struct tr_text text = TR_TEXT_INIT;
    char *written;
    prepare(&job);
    job.settings.strategy = "parameter-server,mode=backup,backup=2,servers=3";
    job.settings.simulate_delays = 5;
    run_at(&job, "simulated", &simulated, &log);
    tr_update_text_write(&log, &text);
    must_train(tr_text_finish(&text, &written));
    job.settings.simulate_delays = 0;
    job.settings.schedule = write_text("schedule", written);
    run_at(&job, "scheduled", &scheduled, &again);
    assert_string_equal(scheduled.hash, simulated.hash);
    assert_int_equal(again.records, log.records);
    tr_free(written);
    tr_update_log_release(&log);
    tr_update_log_release(&again);
}

/* In turn, without staleness, is what a process alone does; it ends where the schedule does. */
static void a_hand_written_schedule_may_be_short(void **state)
{
    (void)state;
    struct job job;
    struct outcome alone, scheduled;
    prepare(&job);
    job.settings.schedule =
        write_text("hand", "applied 0 0 0\napplied 1 1 1\napplied 2 0 2   # and no more\n");
    run(&job, "scheduled", &scheduled);
    assert_int_equal(scheduled.step, 3);
    job.settings.schedule = NULL;
    job.settings.steps = 3;
    run(&job, "alone", &alone);
    assert_string_equal(scheduled.hash, alone.hash);
    job.settings.steps = 40;
    job.settings.schedule = write_text("stale", "applied 0 0 0\napplied 1 1 0\napplied 2 0 1\n");
    run(&job, "stale", &scheduled);
    assert_string_not_equal(scheduled.hash, alone.hash);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    struct tr_update_log log;
    char directory[SCRATCH_PATH];
    prepare(&job);
    job.settings.simulate_delays = 5;
    run_at(&job, "run", &outcome, &log);
    tr_update_log_release(&log);
    job.settings.out = NULL;
    job.settings.schedule = "schedule";
    expect_fails(&job, TR_EINVAL, "given more than once");
    job.settings.schedule = NULL;
    job.settings.resume = scratch_join(directory, place, "run");
    expect_fails(&job, TR_EINVAL, "resumes nothing");
    job.settings.resume = NULL;
    job.settings.strategy = "allreduce";
    expect_fails(&job, TR_EINVAL, "delays change nothing under the strategy allreduce");
    job.settings.strategy = "parameter-server";
    expect_fails(&job, TR_EINVAL, "mode=sync");
    job.settings.simulate_delays = 0;
    job.settings.replay = place;
    expect_fails(&job, TR_ENOTFOUND, "only asynchronous runs keep one");
    job.settings.replay = directory;
    job_set(&job, "optimizer.rate=0.02");
    expect_fails(&job, TR_EMISMATCH, "other settings");
    prepare(&job);
    job.settings.schedule = write_text("late", "session first=3 steps=9\napplied 3 0 3\n");
    expect_fails(&job, TR_EINVAL, "begins after step 3");
    job.settings.schedule = write_text("parts", "session workers=5 parts=5 steps=9\n");
    expect_fails(&job, TR_EINVAL, "a batch has 4 microbatches");
    job.settings.schedule = write_text("numerics", "session workers=1 numerics=999 steps=9\n");
    expect_fails(&job, TR_EMISMATCH, "version 999 of the arithmetic");
    job.settings.schedule =
        write_text("state", "applied 0 0 0\n"
                            "state 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n");
    expect_fails(&job, TR_EMISMATCH,
                 "after step 1, where it was saved, the run had parameters of hash 0123456789abcdef");
}

static int make(void **state)
{
    scratch_make(place);
    return family_place_make(state);
}

static int drop(void **state)
{
    scratch_remove(place);
    return family_place_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_worker_has_the_hash_of_one_process),
        cmocka_unit_test(delays_follow_from_the_seed),
        cmocka_unit_test(a_schedule_is_followed),
        cmocka_unit_test(a_hand_written_schedule_may_be_short),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests_name("strategy.simulated", tests, make, drop);
}
