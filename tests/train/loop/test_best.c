/* The best evaluation of a run: its weights are kept whatever comes after, under every strategy, over stops,
 * kills and resumptions, and are those that --best takes. */
#include "support/ranks.h"
#include "train/loop/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#define STEPS 24
#define EVERY "2"

/* Evaluations on the way, as the test judges them. */
struct seen {
    bool by_accuracy;
    int64_t step; /* of the best one; -1 before */
    double loss, accuracy;
    int evaluations, told; /* told to be the best so far */
    int64_t stop_at;       /* > 0: stop the trainer at this step */
    tr_trainer *trainer;
};

static int see(void *user, const struct tr_train_event *event)
{
    struct seen *seen = user;
    if (event->kind == TR_EVENT_STEP && seen->stop_at > 0 && event->step >= seen->stop_at)
        tr_trainer_stop(seen->trainer);
    if (event->kind != TR_EVENT_EVALUATION || event->step % strtol(EVERY, NULL, 10) != 0) return 0;
    seen->evaluations++;
    seen->told += event->best;
    bool better = seen->by_accuracy && event->accuracy != seen->accuracy ? event->accuracy > seen->accuracy
                                                                         : event->loss < seen->loss;
    if (seen->step >= 0 && !better) return 0;
    *seen = (struct seen){.by_accuracy = seen->by_accuracy,
                          .step = event->step,
                          .loss = event->loss,
                          .accuracy = event->accuracy,
                          .evaluations = seen->evaluations,
                          .told = seen->told,
                          .stop_at = seen->stop_at,
                          .trainer = seen->trainer};
    return 0;
}

static const char *out_of(const char *name)
{
    static char path[4][SCRATCH_PATH];
    static int next;
    return scratch_join(path[next++ % 4], family_place, name);
}

/* Trains too fast, so that the loss goes up and down; saves after every step, and keeps few. */
static void begin(struct job *job, const char *out)
{
    const struct family *family = families;
    while (strcmp(family->name, "mnist-mlp") != 0) family++;
    family_job(job, family, family_place);
    job_set(job, "train.evaluate_every=" EVERY);
    job_set(job, "train.checkpoint_every=1");
    job_set(job, "train.patience=1000");
    job_set(job, "optimizer={rule: sgd, rate: 0.005}");
    job->settings.out = out;
    job->settings.steps = STEPS;
    must_train(tr_file_remove(NULL, out));
}

/* What a directory's best checkpoint is, when it is used. */
struct kept {
    int64_t step;
    double loss, accuracy;
};

static struct kept kept_in(const char *out)
{
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    tr_predictor *predictor;
    tr_source *source;
    struct kept kept;
    settings.checkpoint = out;
    settings.threads = 1;
    settings.best = true;
    must_train(tr_predictor_create(&settings, &predictor));
    must_train(tr_predictor_info(predictor, &info));
    must_train(tr_predictor_open_data(predictor, "test", &source));
    must_train(tr_predictor_evaluate(predictor, source, &kept.loss, &kept.accuracy, NULL));
    kept.step = info.step;
    tr_source_close(&source);
    tr_predictor_destroy(&predictor);
    return kept;
}

static void expect_kept(const struct seen *seen, const char *out, const char *how)
{
    struct kept kept = kept_in(out);
    if (kept.step != seen->step || kept.loss != seen->loss || kept.accuracy != seen->accuracy)
        fail_msg("%s: kept is step %lld with loss %.17g and accuracy %g, best was %lld with %.17g and %g",
                 how, (long long)kept.step, kept.loss, kept.accuracy, (long long)seen->step, seen->loss,
                 seen->accuracy);
}

/* The last line of the journal names it. */
static void expect_journal(const struct seen *seen, const char *out)
{
    char path[SCRATCH_PATH], part[64];
    struct tr_file_content journal;
    must_train(tr_file_read(scratch_join(path, out, "journal.jsonl"), 1 << 20, &journal));
    const char *end = strstr(journal.data, "{\"event\":\"end\"");
    assert_non_null(end);
    snprintf(part, sizeof part, "\"best\":{\"step\":%lld,\"set\":\"test\",\"loss\":", (long long)seen->step);
    if (!strstr(end, part)) fail_msg("no %s in %s", part, end);
    tr_file_content_free(&journal);
}

/* Runs a trainer that is destroyed then, and compares what it says of its best with what was seen. */
static void run_and_see(tr_trainer *trainer, tr_status expected, struct seen *seen)
{
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    seen->trainer = trainer;
    assert_int_equal(tr_trainer_run(trainer, see, seen), expected);
    must_train(tr_trainer_info(trainer, &info));
    assert_int_equal(info.best_step, seen->step);
    assert_true(info.best_loss == seen->loss && info.best_accuracy == seen->accuracy);
    assert_string_equal(info.best_set, info.best_step < 0 ? "" : "test");
    tr_trainer_destroy(&trainer);
}

static struct seen nothing_seen(bool by_accuracy)
{
    return (struct seen){.by_accuracy = by_accuracy, .step = -1, .loss = INFINITY};
}

static void the_best_is_kept(void **state)
{
    (void)state;
    for (int by_accuracy = 0; by_accuracy < 2; by_accuracy++) {
        struct job job;
        struct seen seen = nothing_seen(by_accuracy);
        const char *out = out_of("alone");
        begin(&job, out);
        if (by_accuracy) job_set(&job, "train.until_accuracy=1");
        run_and_see(job_trainer(&job), TR_OK, &seen);
        assert_int_equal(seen.evaluations, STEPS / 2);
        assert_true(seen.told > 1 && seen.told < seen.evaluations);
        assert_true(seen.step > 0 && seen.step < STEPS - 4); /* long gone, but for being the best */
        expect_kept(&seen, out, by_accuracy ? "by accuracy" : "by loss");
        expect_journal(&seen, out);
    }
}

static void only_those_that_ask_keep_it(void **state)
{
    (void)state;
    static const char *const sets[][2] = {{"train.patience=0", NULL},
                                          {"train.keep_best=never", NULL},
                                          {"train.patience=0", "train.keep_best=always"}};
    for (int i = 0; i < 3; i++) {
        struct job job;
        struct outcome outcome;
        char path[SCRATCH_PATH];
        const char *out = out_of("asked");
        begin(&job, out);
        job_set(&job, sets[i][0]);
        if (sets[i][1]) job_set(&job, sets[i][1]);
        job_outcome(&job, &outcome);
        must_train(outcome.status);
        assert_int_equal(tr_file_exists(scratch_join(path, out, TR_CHECKPOINT_BEST)), i == 2);
    }
}

static void a_stopped_run_goes_on_with_its_best(void **state)
{
    (void)state;
    struct job job;
    struct seen whole = nothing_seen(false);
    const char *out = out_of("whole");
    begin(&job, out);
    run_and_see(job_trainer(&job), TR_OK, &whole);
    for (int64_t stop = 1; stop < STEPS; stop += 3) {
        struct seen seen = nothing_seen(false);
        out = out_of("stopped");
        begin(&job, out);
        seen.stop_at = stop;
        run_and_see(job_trainer(&job), TR_EINTERRUPTED, &seen);
        seen.stop_at = 0;
        job.settings.resume = out;
        run_and_see(job_trainer(&job), TR_OK, &seen);
        assert_int_equal(seen.step, whole.step);
        expect_kept(&whole, out, "after a stop");
    }
}

/* A kill between saving and marking leaves a mark that lags behind, or none. */
static void a_mark_that_a_kill_prevented_is_made_up_for(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    struct job job;
    struct seen seen = nothing_seen(false);
    const char *out = out_of("killed");
    begin(&job, out);
    run_and_see(job_trainer(&job), TR_OK, &seen);
    for (int lags = 0; lags < 2; lags++) {
        assert_int_equal(unlink(scratch_join(path, out, TR_CHECKPOINT_BEST)), 0);
        if (lags) must_train(tr_checkpoint_mark_best(NULL, out, "checkpoint-00000024"));
        job.settings.resume = out;
        run_and_see(job_trainer(&job), TR_OK, &seen);
        expect_kept(&seen, out, "after a kill");
    }
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

struct full {
    struct seen seen; /* the first one alone */
    int refused, warnings;
};

/* The disk is full whenever the run has found a better one than the first, until it has told of that. */
static int fill_the_disk(void *user, const struct tr_train_event *event)
{
    struct full *full = user;
    if (event->kind == TR_EVENT_EVALUATION && event->best && full->seen.told > 0) {
        full->refused++;
        limit_files(0);
    } else if (event->kind == TR_EVENT_WARNING && strstr(event->name, "checkpoint")) {
        full->warnings++;
        limit_files(RLIM_INFINITY);
    } else if (full->seen.told == 0) {
        see(&full->seen, event);
    }
    return 0;
}

/* What could not be saved is not the best: it stays what it was, and each better one is tried. */
static void what_cannot_be_saved_is_not_the_best(void **state)
{
    (void)state;
    struct job job;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    struct full full = {.seen = nothing_seen(false)};
    const char *out = out_of("full");
    begin(&job, out);
    tr_trainer *trainer = job_trainer(&job);
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    must_train(tr_trainer_run(trainer, fill_the_disk, &full));
    limit_files(RLIM_INFINITY);
    signal(SIGXFSZ, before);
    must_train(tr_trainer_info(trainer, &info));
    tr_trainer_destroy(&trainer);
    assert_true(full.refused > 0);
    assert_int_equal(full.warnings, full.refused);
    assert_int_equal(info.best_step, full.seen.step);
    assert_true(info.best_loss == full.seen.loss && info.best_accuracy == full.seen.accuracy);
    expect_kept(&full.seen, out, "on a full disk");
}

/* Weights that are not in the directory are not claimed. */
static void what_lies_elsewhere_is_not_claimed(void **state)
{
    (void)state;
    struct job job;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    struct seen seen = nothing_seen(false);
    const char *out = out_of("first");
    begin(&job, out);
    job.settings.steps = STEPS - 1;
    run_and_see(job_trainer(&job), TR_OK, &seen);
    job.settings.resume = out;
    job.settings.out = out_of("second");
    job.settings.steps = STEPS + 3;
    must_train(tr_file_remove(NULL, job.settings.out));
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_info(trainer, &info));
    assert_int_equal(info.best_step, -1);
    assert_non_null(strstr(info.resume_warnings, "the best counts from here on"));
    seen = nothing_seen(false);
    run_and_see(trainer, TR_OK, &seen);
    expect_kept(&seen, job.settings.out, "elsewhere");
}

/* Early stops are where they were without it, and the hash is the same. */
static void keeping_changes_nothing_else(void **state)
{
    (void)state;
    static const char *const stops[] = {"train.patience=2", "train.until_accuracy=0.3"};
    for (int i = 0; i < 2; i++) {
        struct outcome kept, plain;
        for (int never = 0; never < 2; never++) {
            struct job job;
            begin(&job, out_of("same"));
            job_set(&job, stops[i]);
            if (never) job_set(&job, "train.keep_best=never");
            job_outcome(&job, never ? &plain : &kept);
        }
        expect_same(&plain, &kept, stops[i]);
        assert_int_equal(kept.step, plain.step);
    }
}

/* ---- several ranks ---- */

struct shared {
    struct seen seen; /* of rank 0 */
    struct tr_train_info info;
};

static void *train_rank(void *user)
{
    struct rank *rank = user;
    struct shared *shared = rank->user;
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    shared->seen = nothing_seen(false);
    shared->info = (struct tr_train_info)TR_TRAIN_INFO_INIT;
    must_train(tr_trainer_run(trainer, see, &shared->seen));
    must_train(tr_trainer_info(trainer, &shared->info));
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void all_strategies_keep_it(void **state)
{
    (void)state;
    static const struct {
        const char *strategy;
        int size;
        bool synchronous;
    } ways[] = {
        {"allreduce", 2, true},
        {"parameter-server", 3, true},
        {"pipeline", 2, true},
        {"local-sgd,replicas=2,every=2", 2, true},
        {"parameter-server,mode=async", 3, false},
    };
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        struct job job;
        struct rank ranks[RANKS];
        struct shared shared[RANKS];
        const char *out = out_of("ranks");
        begin(&job, out);
        job_set(&job, "optimizer.ema=0.5");
        job.settings.set = job.set;
        job.settings.strategy = ways[w].strategy;
        for (int r = 0; r < ways[w].size; r++) ranks[r].user = &shared[r];
        run_ranks_by(train_rank, &job.settings, ways[w].size, false, ranks);
        if (shared[0].info.best_step < 0) fail_msg("%s: there is no best", ways[w].strategy);
        struct kept kept = kept_in(out);
        const struct tr_train_info *info = &shared[0].info;
        if (kept.step != info->best_step || kept.loss != info->best_loss ||
            kept.accuracy != info->best_accuracy)
            fail_msg("%s: kept is step %lld with loss %.17g, said was %lld with %.17g", ways[w].strategy,
                     (long long)kept.step, kept.loss, (long long)info->best_step, info->best_loss);
        for (int r = 1; r < ways[w].size && ways[w].synchronous; r++)
            assert_int_equal(shared[r].info.best_step, info->best_step);
        if (ways[w].synchronous) expect_kept(&shared[0].seen, out, ways[w].strategy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_is_kept),
        cmocka_unit_test(only_those_that_ask_keep_it),
        cmocka_unit_test(a_stopped_run_goes_on_with_its_best),
        cmocka_unit_test(a_mark_that_a_kill_prevented_is_made_up_for),
        cmocka_unit_test(what_cannot_be_saved_is_not_the_best),
        cmocka_unit_test(what_lies_elsewhere_is_not_claimed),
        cmocka_unit_test(keeping_changes_nothing_else),
        cmocka_unit_test(all_strategies_keep_it),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
