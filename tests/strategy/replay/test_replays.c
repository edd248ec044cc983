/* Thirty asynchronous runs, with workers that die, that are slow, with ends and resumes: each is replayed by
 * its log, by one process, to the same hash, figures and log. */
#include "support/ranks.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "strategy/updates/file.h"
#include "support/comm_thread/thread.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum happening {
    NOTHING,
    A_WORKER_DIES,
    AN_END,        /* asked for, and taken up again */
    THE_ROOT_DIES, /* taken up again from a checkpoint, behind which the log went on */
    HAPPENINGS
};

#define STEPS 60

/* A run. Whatever is told is noted by the root. */
struct run {
    enum happening happening;
    int victim;
    int64_t at;
    tr_comm *victims;
    tr_trainer *root;
    char hash[65], told[64 << 10]; /* a line for each event */
    size_t length;
};

static int hear(void *user, const struct tr_train_event *event)
{
    struct run *run = user;
    int wrote = 0;
    if (event->kind == TR_EVENT_END) snprintf(run->hash, sizeof run->hash, "%s", event->hash);
    if (event->kind == TR_EVENT_STEP || event->kind == TR_EVENT_EVALUATION ||
        event->kind == TR_EVENT_CHECKPOINT)
        wrote = snprintf(run->told + run->length, sizeof run->told - run->length, "%d %lld %a %a %s\n",
                         (int)event->kind, (long long)event->step, event->loss, event->accuracy, event->hash);
    assert_true(wrote >= 0 && run->length + (size_t)wrote < sizeof run->told);
    run->length += (size_t)wrote;
    if (event->kind != TR_EVENT_STEP || event->step < run->at || run->happening == NOTHING) return 0;
    if (run->happening == AN_END) tr_trainer_stop(run->root);
    if (run->happening != AN_END) tr_comm_thread_kill(run->victims);
    run->happening = NOTHING;
    return 0;
}

static void *run_rank(void *user)
{
    struct rank *rank = user;
    struct run *run = rank->user;
    tr_trainer *trainer = NULL;
    int self = tr_comm_rank(rank->comm);
    struct outcome *outcome = &rank->outcome;
    *outcome = (struct outcome){.status = TR_OK};
    if (self == run->victim) run->victims = rank->comm;
    outcome->status = trainer_create(rank->settings, rank->comm, &trainer);
    if (self == 0) run->root = trainer;
    if (outcome->status == TR_OK) outcome->status = tr_trainer_run(trainer, self == 0 ? hear : NULL, run);
    if (outcome->status != TR_OK) {
        snprintf(outcome->message, sizeof outcome->message, "%s", tr_error_message());
        if (outcome->status != TR_EINTERRUPTED) tr_comm_abort(rank->comm, outcome->message);
    }
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void carry_out(struct run *run, const struct tr_train_settings *settings, int size, int apart,
                      struct rank *ranks)
{
    for (int r = 0; r < size; r++) ranks[r].user = run;
    run_ranks_by(run_rank, settings, size, apart, ranks);
}

/* ---- what is run ---- */

struct variant {
    const char *mode, *optimizer;
    int servers, workers, apart;
    enum happening happening;
};

static struct variant variant_of(int number)
{
    static const char *const modes[] = {"mode=async", "mode=bounded,staleness=2", "mode=backup,backup=1"};
    static const char *const optimizers[] = {
        "{rule: momentum, momentum: 0.9, rate: 0.05, clip_norm: 0.5}",
        "{rule: adam, rate: 0.01, ema: 0.9}",
        "{rule: sgd, rate: 0.1, schedule: {kind: cosine, warmup: 3}}",
        "{rule: adamw, rate: 0.01, weight_decay: 0.1, clip_norm: 0.1}",
    };
    return (struct variant){
        .mode = modes[number % 3],
        .optimizer = optimizers[number / 3 % 4],
        .servers = 1 + number / 2 % 3,
        .workers = 3 + number / 6 % 2,
        .apart = number / 5 % 2,
        .happening = (enum happening)(number / 3 % HAPPENINGS),
    };
}

static void prepare(struct job *job, const struct variant *variant, int number)
{
    family_job(job, &families[0], family_place);
    job_set(job,
            "layers=[{flatten: null}, {dense: {units: 8, activation: relu}}, batch_norm, {dropout: 0.2}, "
            "{dense: 10}]");
    job_set(job, "train.batch=33"); /* of 100 examples: the fourth has one */
    job_set(job, "train.microbatches=4");
    job_set(job, "train.log_every=1");
    job_set(job, "train.checkpoint_every=5");
    if (number % 4 == 1) job_set(job, "train.evaluate_every=4");
    static char optimizer[160];
    snprintf(optimizer, sizeof optimizer, "optimizer=%s", variant->optimizer);
    job_set(job, optimizer);
    job->settings.set = job->set;
    job->settings.steps = STEPS;
    job->settings.delay_seed = number % 2 ? 7 : 0;
    job->settings.slow = number % 5 == 2 ? "1:3" : NULL;
}

/* ---- what is compared ---- */

static void read_log(const char *directory, struct tr_update_log *log, int64_t *torn)
{
    char path[SCRATCH_PATH];
    *log = (struct tr_update_log){0};
    must_train(tr_update_file_read(scratch_join(path, directory, TR_UPDATE_FILE), log, torn));
}

static void expect_same_log(const char *there, const char *here, const char *how)
{
    struct tr_update_log a, b;
    read_log(there, &a, NULL);
    read_log(here, &b, NULL);
    if (a.records != b.records || memcmp(a.record, b.record, (size_t)a.records * sizeof *a.record) != 0)
        fail_msg("%s: the replay's log has other records (%lld, the run's %lld)", how, (long long)b.records,
                 (long long)a.records);
    assert_int_equal(a.sessions, b.sessions);
    for (int64_t i = 0; i < a.sessions; i++) {
        assert_int_equal(a.session[i].begin, b.session[i].begin);
        assert_int_equal(a.session[i].first, b.session[i].first);
        assert_int_equal(a.session[i].servers, b.session[i].servers);
        assert_int_equal(a.session[i].workers, b.session[i].workers);
        assert_string_equal(a.session[i].job, b.session[i].job);
        assert_string_equal(a.session[i].data, b.session[i].data);
        assert_string_equal(a.session[i].hash, b.session[i].hash);
    }
    tr_update_log_release(&a);
    tr_update_log_release(&b);
}

/* Both roots told the same. */
static void expect_same_words(const struct run *run, const struct run *again, const char *how)
{
    const char *a = run->told, *b = again->told;
    if (strcmp(a, b) == 0) return;
    while (strcspn(a, "\n") == strcspn(b, "\n") && strncmp(a, b, strcspn(a, "\n")) == 0) {
        a += strcspn(a, "\n") + 1;
        b += strcspn(b, "\n") + 1;
    }
    fail_msg("%s: the root told \"%.*s\", the replay's \"%.*s\"", how, (int)strcspn(a, "\n"), a,
             (int)strcspn(b, "\n"), b);
}

/* What a kill leaves in the middle of a write. */
static void tear(const char *directory)
{
    char path[SCRATCH_PATH];
    FILE *file = fopen(scratch_join(path, directory, TR_UPDATE_FILE), "ab");
    assert_non_null(file);
    assert_int_equal(fwrite("TRUL\2\0\0\0\60\0\0", 1, 11, file), 11);
    assert_int_equal(fclose(file), 0);
}

static void replay(struct job *job, const char *directory, const char *out, struct run *run)
{
    struct tr_train_settings settings = job->settings;
    tr_trainer *trainer;
    settings.out = out;
    settings.continues = false;
    settings.replay = directory;
    settings.strategy = NULL;
    settings.slow = NULL;
    settings.delay_seed = 0;
    *run = (struct run){0};
    must_train(tr_trainer_create(&settings, &trainer));
    must_train(tr_trainer_run(trainer, hear, run));
    tr_trainer_destroy(&trainer);
}

/* The same by several ranks, each of which computes some of the gradients. */
static void replay_together(struct job *job, const char *directory, const char *out, int size, int apart,
                            struct run *run, const char *how)
{
    struct tr_train_settings settings = job->settings;
    struct rank ranks[RANKS];
    settings.out = out;
    settings.continues = false;
    settings.replay = directory;
    settings.strategy = NULL;
    settings.slow = NULL;
    settings.delay_seed = 0;
    *run = (struct run){.victim = -1};
    carry_out(run, &settings, size, apart, ranks);
    for (int r = 0; r < size; r++)
        if (ranks[r].outcome.status != TR_OK)
            fail_msg("%s, replayed by %d, rank %d: %s", how, size, r, ranks[r].outcome.message);
}

/* ---- the runs ---- */

/* The run, up to its end. */
static void run_variant(struct job *job, const struct variant *variant, const char *directory,
                        const char *how, struct run *run)
{
    struct rank ranks[RANKS];
    static char strategy[96];
    int size = variant->workers + variant->servers;
    snprintf(strategy, sizeof strategy, "parameter-server,%s,servers=%d", variant->mode, variant->servers);
    job->settings.strategy = strategy;
    job->settings.out = directory;
    *run = (struct run){.happening = variant->happening,
                        .victim = variant->happening == THE_ROOT_DIES ? 0 : 1,
                        .at = variant->happening == THE_ROOT_DIES ? 13 : 7};
    carry_out(run, &job->settings, size, variant->apart, ranks);
    if (variant->happening == A_WORKER_DIES || variant->happening == NOTHING) {
        for (int r = 0; r < size; r++)
            if (!(variant->happening == A_WORKER_DIES && r == run->victim) &&
                ranks[r].outcome.status != TR_OK)
                fail_msg("%s, rank %d: %s", how, r, ranks[r].outcome.message);
        return;
    }
    if (ranks[0].outcome.status == TR_OK) return; /* it was over before the root was told of enough */
    if (variant->happening == THE_ROOT_DIES) tear(directory);
    /* Taken up again, by one worker less and one server more. */
    snprintf(strategy, sizeof strategy, "parameter-server,%s,servers=%d", variant->mode,
             variant->servers + 1);
    job->settings.continues = true; /* anew, where nothing had been saved */
    *run = (struct run){.happening = NOTHING, .victim = -1};
    carry_out(run, &job->settings, size, variant->apart, ranks);
    for (int r = 0; r < size; r++)
        if (ranks[r].outcome.status != TR_OK)
            fail_msg("%s, taken up again, rank %d: %s", how, r, ranks[r].outcome.message);
}

static void replays_have_the_hash_of_their_runs(void **state)
{
    (void)state;
    int64_t stale = 0, dropped = 0, lost = 0, sessions = 0;
    for (int number = 0; number < 30; number++) {
        struct variant variant = variant_of(number);
        static struct run run, again;
        struct job job;
        char place[SCRATCH_PATH], there[SCRATCH_PATH], here[SCRATCH_PATH], how[200];
        snprintf(how, sizeof how, "run %d, %s, %d workers, %d servers%s, happening %d", number, variant.mode,
                 variant.workers, variant.servers, variant.apart ? ", apart" : "", (int)variant.happening);
        scratch_make(place);
        scratch_join(there, place, "run");
        scratch_join(here, place, "replay");
        prepare(&job, &variant, number);
        run_variant(&job, &variant, there, how, &run);
        replay(&job, there, here, &again);
        assert_int_equal(strlen(run.hash), 64);
        if (strcmp(run.hash, again.hash) != 0)
            fail_msg("%s: hash %s, the replay has %s", how, run.hash, again.hash);
        if (variant.happening == NOTHING || variant.happening == A_WORKER_DIES)
            expect_same_words(&run, &again, how); /* the others told twice of what they began with */
        expect_same_log(there, here, how);
        if (number % 3 == 1) {
            static struct run together;
            scratch_join(here, place, "together");
            replay_together(&job, there, here, 2 + number % 2, variant.apart, &together, how);
            assert_string_equal(together.hash, again.hash);
            assert_string_equal(together.told, again.told);
            expect_same_log(there, here, how);
        }
        struct tr_update_figures figures;
        struct tr_update_log log;
        int64_t torn;
        read_log(there, &log, &torn);
        assert_int_equal(torn, 0);
        tr_update_log_count(&log, &figures);
        assert_int_equal(figures.updates, STEPS);
        stale += (int64_t)figures.missed;
        dropped += figures.dropped;
        lost += figures.lost;
        sessions += log.sessions;
        tr_update_log_release(&log);
        scratch_remove(place);
    }
    /* There was something to be replayed. */
    assert_true(stale > 0);
    assert_true(dropped > 0);
    assert_true(lost > 0);
    assert_true(sessions > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replays_have_the_hash_of_their_runs),
    };
    return cmocka_run_group_tests_name("strategy.replays", tests, family_place_make, family_place_remove);
}
