/* Orders of updates that are given: by hand, by a model of delays, by a log. And those that are refused. */
#include "support/training.h"

#include "base/alloc.h"
#include "base/numbers/math.h"
#include "base/numbers/rng.h"
#include "strategy/updates/file.h"
#include "strategy/updates/text.h"

#include <math.h>
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

/* Time of a worker's contribution: one, or what a slow one takes, and a delay of a half on average. */
static double time_of(uint64_t seed, uint32_t worker, uint32_t turn, double slow)
{
    uint32_t word[4];
    tr_rng_philox(tr_rng_key_make(seed, TR_RNG_DELAY), worker, turn, 0, 0, word);
    return slow - 0.5 * tr_log(((double)word[0] + 0.5) / 0x1p32);
}

/* Who is ready first hands in, and takes the next number at once; the statistics are those of the log. */
static void the_order_is_that_of_the_model(void **state)
{
    (void)state;
    enum { WORKERS = 3 };
    static const double slow[WORKERS] = {1, 2.5, 1};
    struct {
        double done;
        uint32_t turns;
        int64_t number, version;
    } worker[WORKERS];
    struct job job;
    struct tr_update_log log = {0};
    struct tr_train_statistics statistics = TR_TRAIN_STATISTICS_INIT;
    int64_t staleness[TR_UPDATE_BINS] = {0};
    char directory[SCRATCH_PATH], path[SCRATCH_PATH];
    prepare(&job);
    job.settings.simulate_delays = 9;
    job.settings.simulate_workers = WORKERS;
    job.settings.slow = "1:2.5";
    job.settings.out = scratch_join(directory, place, "model");
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    must_train(tr_update_file_read(scratch_join(path, directory, TR_UPDATE_FILE), &log, NULL));
    assert_int_equal(log.records, 40);
    for (uint32_t w = 0; w < WORKERS; w++) {
        worker[w].number = w;
        worker[w].version = 0;
        worker[w].turns = 1;
        worker[w].done = time_of(9, w, 0, slow[w]);
    }
    for (int64_t i = 0; i < log.records; i++) {
        uint32_t first = 0;
        for (uint32_t w = 1; w < WORKERS; w++)
            if (worker[w].done < worker[first].done) first = w;
        const struct tr_update *record = &log.record[i];
        assert_int_equal(record->kind, TR_UPDATE_APPLIED);
        assert_int_equal(record->worker, first);
        assert_int_equal(record->number, worker[first].number);
        assert_int_equal(record->missed, i - worker[first].version);
        staleness[record->missed]++;
        worker[first].number = i + WORKERS;
        worker[first].version = i + 1;
        worker[first].done += time_of(9, first, worker[first].turns++, slow[first]);
        if (i + WORKERS >= log.records) worker[first].done = INFINITY; /* there is nothing left to compute */
    }
    must_train(tr_trainer_statistics(trainer, &statistics));
    assert_true(statistics.asynchronous);
    assert_int_equal(statistics.ranks, 1);
    assert_int_equal(statistics.steps, 40);
    assert_int_equal(statistics.dropped, 0);
    assert_int_equal(statistics.staleness_bins, TR_UPDATE_BINS);
    assert_memory_equal(statistics.staleness, staleness, sizeof staleness);
    assert_int_equal(log.session[0].workers, WORKERS);
    assert_int_equal(log.session[0].servers, 1);
    assert_int_equal(log.session[0].parts, 1);
    assert_int_equal(log.session[0].mode, TR_UPDATE_ASYNC);
    assert_int_equal(log.session[0].steps, 40);
    assert_true(log.session[0].staleness == TR_UPDATE_ANY);
    tr_update_log_release(&log);
    tr_trainer_destroy(&trainer);
}

/* Old parameters are kept as long as they are needed, in memory that later ones take. */
struct watch {
    int64_t at[2];
};

static int watch_memory(void *user, const struct tr_train_event *event)
{
    struct watch *watch = user;
    if (event->kind == TR_EVENT_STEP && event->step == 10) watch->at[0] = tr_alloc_total();
    if (event->kind == TR_EVENT_STEP && event->step == 39) watch->at[1] = tr_alloc_total();
    return 0;
}

static void old_parameters_take_each_others_place(void **state)
{
    (void)state;
    struct job job;
    struct watch watch = {{0}};
    prepare(&job);
    job_set(&job, "train.log_every=1");
    job_set(&job, "train.prefetch=0");
    job.settings.simulate_delays = 9;
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_run(trainer, watch_memory, &watch));
    tr_trainer_destroy(&trainer);
    assert_true(watch.at[0] > 0);
    assert_in_range(watch.at[1] - watch.at[0], 0, 6); /* the log grows, too */
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
    /* As many steps as updates are enough. */
    job.settings.steps = 2;
    job.settings.schedule = write_text("hand", "applied 0 0 0\napplied 1 1 1\n");
    run(&job, "as many", &outcome);
    job.settings.schedule = write_text("hand", "applied 0 0 0\napplied 1 1 1\napplied 2 0 2\n");
    expect_fails(&job, TR_EINVAL, "the log has 3 updates, the job 2 steps; set train.steps higher");
    job.settings.steps = 40;
    job.settings.schedule = write_text("numerics", "session workers=1 numerics=999 steps=9\n");
    expect_fails(&job, TR_EMISMATCH, "version 999 of the arithmetic");
    job.settings.schedule =
        write_text("state", "applied 0 0 0\n"
                            "state 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n");
    expect_fails(&job, TR_EMISMATCH,
                 "after step 1, where it was saved, the run had parameters of hash 0123456789abcdef");
}

/* A network of three numbers, which lie in two cache lines. */
static void servers_have_numbers_to_share(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    char model[SCRATCH_PATH];
    write_text("few.csv", "a,b,y\n1,2,3\n2,-1,1\n-1,3,2\n");
    snprintf(model, sizeof model, "%s",
             write_text("few.yaml", "name: few\ndata: {train: {csv: {path: few.csv, label: value}}}\n"
                                    "layers: [{dense: 1}]\nloss: mean_squared_error\n"
                                    "optimizer: {rule: sgd, rate: 0.01}\ntrain: {batch: 2, steps: 3}\n"));
    job_begin(&job, model);
    job.settings.schedule = write_text("many", "session workers=1 servers=32 steps=3\napplied 0 0 0\n");
    run(&job, "a number for each", &outcome);
    assert_int_equal(outcome.step, 1);
    job.settings.schedule = write_text("many", "session workers=1 servers=33 steps=3\napplied 0 0 0\n");
    expect_fails(&job, TR_EINVAL, "33 servers of the log share 32 numbers");
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
        cmocka_unit_test(the_order_is_that_of_the_model),
        cmocka_unit_test(old_parameters_take_each_others_place),
        cmocka_unit_test(servers_have_numbers_to_share),
        cmocka_unit_test(a_schedule_is_followed),
        cmocka_unit_test(a_hand_written_schedule_may_be_short),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests_name("strategy.simulated", tests, make, drop);
}
