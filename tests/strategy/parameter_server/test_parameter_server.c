/* Parameter servers on ranks that are threads: the hash of one process where they are synchronous; else what
 * is promised of gradients, of ranks that are slow, die or ask for an end, and of checkpoints. */
#include "support/ranks.h"

#include "base/alloc.h"
#include "support/comm_thread/thread.h"
#include "comm/transport.h"
#include "strategy/parameter_server/parameter_server.h"
#include "train/loop/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* ---- a run in which something happens ---- */

enum happening { NOTHING, KILL, STOP };

struct team;

struct member {
    struct team *team;
    int rank;
    tr_comm *comm;
    tr_trainer *trainer; /* while it runs */
    pthread_t thread;
    tr_status status;
    char message[1024];
};

struct team {
    const struct tr_train_settings *settings;
    int size;
    /* What happens to whom once the root tells of this step. */
    enum happening happening;
    int victim;
    int64_t at;
    pthread_barrier_t ready;
    struct member member[RANKS];
    /* Of the root. */
    int64_t step, examples, steps_told, warnings;
    int64_t fewest, most; /* examples a step, of what was told at once */
    double loss, accuracy;
    char hash[65], saved[SCRATCH_PATH];
    struct tr_train_statistics statistics;
    int64_t staleness[TR_STALENESS_BINS];
    struct tr_train_rank figures[RANKS];
    float *weights; /* [count] of the parameter `name`, if wanted */
    const char *name;
    int64_t count;
};

static int hear(void *user, const struct tr_train_event *event)
{
    struct team *team = user;
    if (event->kind == TR_EVENT_WARNING) team->warnings++;
    if (event->kind == TR_EVENT_EVALUATION) team->accuracy = event->accuracy;
    if (event->kind == TR_EVENT_CHECKPOINT) snprintf(team->saved, sizeof team->saved, "%s", event->name);
    if (event->kind == TR_EVENT_END) snprintf(team->hash, sizeof team->hash, "%s", event->hash);
    if (event->kind != TR_EVENT_STEP) return 0;
    team->steps_told++;
    int64_t steps = event->step - team->step;
    team->step = event->step;
    if (team->steps_told == 1 || event->examples < steps * team->fewest)
        team->fewest = event->examples / steps;
    if (event->examples > steps * team->most) team->most = (event->examples + steps - 1) / steps;
    team->examples += event->examples;
    team->loss = event->loss;
    if (team->happening == NOTHING || event->step < team->at) return 0;
    struct member *victim = &team->member[team->victim];
    if (team->happening == KILL) tr_comm_thread_kill(victim->comm);
    if (team->happening == STOP) tr_trainer_stop(victim->trainer);
    team->happening = NOTHING;
    return 0;
}

static void keep_figures(struct team *team, tr_trainer *trainer)
{
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    must_train(tr_trainer_info(trainer, &info));
    team->step = info.step;
    if (team->name) must_train(tr_trainer_parameter(trainer, team->name, team->weights, team->count));
    team->statistics.size = sizeof team->statistics;
    if (tr_trainer_statistics(trainer, &team->statistics) != TR_OK) return;
    for (int i = 0; i < team->statistics.staleness_bins; i++)
        team->staleness[i] = team->statistics.staleness[i];
    for (int r = 0; r < team->size; r++) team->figures[r] = team->statistics.rank[r];
}

static void *run_member(void *user)
{
    struct member *member = user;
    struct team *team = member->team;
    member->status = trainer_create(team->settings, member->comm, &member->trainer);
    pthread_barrier_wait(&team->ready);
    if (member->status == TR_OK) {
        member->status = tr_trainer_run(member->trainer, member->rank == 0 ? hear : NULL, team);
        snprintf(member->message, sizeof member->message, "%s",
                 member->status == TR_OK ? "" : tr_error_message());
        if (member->rank == 0 && (member->status == TR_OK || member->status == TR_EINTERRUPTED))
            keep_figures(team, member->trainer);
    } else {
        snprintf(member->message, sizeof member->message, "%s", tr_error_message());
        tr_comm_abort(member->comm, member->message);
    }
    tr_trainer_destroy(&member->trainer);
    tr_comm_destroy(&member->comm);
    return NULL;
}

static void run_team(struct team *team, const struct tr_train_settings *settings, int size, bool apart)
{
    static const int hosts[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct tr_comm_settings patience = TR_COMM_SETTINGS_INIT;
    tr_comm *comms[RANKS];
    team->settings = settings;
    team->size = size;
    must_train(tr_comm_thread_create(size, apart ? hosts : NULL, &patience, comms));
    pthread_barrier_init(&team->ready, NULL, (unsigned)size);
    for (int r = 0; r < size; r++) {
        team->member[r] = (struct member){.team = team, .rank = r, .comm = comms[r]};
        assert_int_equal(pthread_create(&team->member[r].thread, NULL, run_member, &team->member[r]), 0);
    }
    for (int r = 0; r < size; r++) pthread_join(team->member[r].thread, NULL);
    pthread_barrier_destroy(&team->ready);
}

/* All went well but, perhaps, one. */
static void expect_team(const struct team *team, const char *how, int but)
{
    for (int r = 0; r < team->size; r++)
        if (r != but && team->member[r].status != TR_OK)
            fail_msg("%s, rank %d of %d: %s", how, r, team->size, team->member[r].message);
    assert_int_equal(team->step, team->settings->steps);
}

/* ---- synchronous ---- */

static void synchronous_servers_keep_the_hash(void **state)
{
    (void)state;
    for (int f = 0; f < family_count; f++) {
        struct job job;
        struct outcome alone;
        family_job(&job, &families[f], family_place);
        job_set(&job, "train.microbatches=5");
        job_outcome(&job, &alone);
        assert_int_equal(alone.status, TR_OK);
        for (int servers = 1; servers <= 2; servers++)
            for (int workers = 1; workers <= 3; workers += 2)
                for (int apart = 0; apart < 2; apart++) {
                    struct rank ranks[RANKS];
                    char how[160], strategy[64];
                    snprintf(strategy, sizeof strategy, "parameter-server,servers=%d", servers);
                    snprintf(how, sizeof how, "%s, %d workers, %s%s", families[f].name, workers, strategy,
                             apart ? ", apart" : "");
                    job.settings.strategy = strategy;
                    run_ranks(&job.settings, workers + servers, apart, ranks);
                    expect_ranks(&alone, ranks, workers + servers, how);
                }
    }
}

/* ---- asynchronous: what is learned ---- */

/* A linear classifier that starts at zero and learns so little that its gradients stay what they are at the
   start: then the weights are the sum of the gradients that were applied, in whatever order they were. */
static void begin_counting(struct job *job, int64_t steps)
{
    family_job(job, &families[0], family_place);
    job_set(job, "layers=[{flatten: null}, {dense: {units: 10, weights: zeros, name: sum}}]");
    job_set(job, "optimizer={rule: sgd, rate: 1e-6}");
    job_set(job, "train.batch=20");
    job_set(job, "train.microbatches=4");
    job->settings.set = job->set;
    job->settings.steps = steps;
}

#define WEIGHTS (28 * 28 * 10)

/* Fails unless every gradient of the run was applied once: one too many or too few would show as a difference
   of the order of 1 / steps. */
static void expect_same_sum(const float *expected, const float *got, int64_t steps, const char *how)
{
    double largest = 0, difference = 0;
    for (int i = 0; i < WEIGHTS; i++) {
        largest = fmax(largest, fabs((double)expected[i]));
        difference = fmax(difference, fabs((double)expected[i] - (double)got[i]));
    }
    assert_true(largest > 0);
    if (difference > 0.01 / (double)steps * largest)
        fail_msg("%s: weights differ by %g of %g; a gradient is missing or was applied twice", how,
                 difference, largest);
}

static void sum_alone(struct job *job, float *weights)
{
    tr_trainer *trainer = job_trainer(job);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    must_train(tr_trainer_parameter(trainer, "sum.weights", weights, WEIGHTS));
    tr_trainer_destroy(&trainer);
}

static const char *const modes[] = {"mode=async", "mode=bounded,staleness=1", "mode=backup,backup=1"};
/* Ranks that share memory; that do not, where servers have room for all gradients; for one at a time. */
static const char *const rooms[] = {"", ",buffers=4", ",buffers=1"};
#define ROOMS ((int)(sizeof rooms / sizeof rooms[0]))

static void every_gradient_is_applied_once(void **state)
{
    (void)state;
    static float alone[WEIGHTS], sum[WEIGHTS];
    enum { STEPS = 25 };
    struct job job;
    begin_counting(&job, STEPS);
    sum_alone(&job, alone);
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++)
        for (int servers = 1; servers <= 2; servers++)
            for (int workers = 2; workers <= 3; workers++)
                for (int apart = 0; apart < ROOMS; apart++) {
                    char strategy[80], how[120];
                    struct team team = {.name = "sum.weights", .weights = sum, .count = WEIGHTS};
                    snprintf(strategy, sizeof strategy, "parameter-server,servers=%d,%s%s", servers, modes[m],
                             rooms[apart]);
                    snprintf(how, sizeof how, "%s, %d workers%s", strategy, workers, apart ? ", apart" : "");
                    job.settings.strategy = strategy;
                    run_team(&team, &job.settings, workers + servers, apart);
                    expect_team(&team, how, -1);
                    expect_same_sum(alone, sum, STEPS, how);
                    assert_int_equal(team.statistics.steps, STEPS);
                    assert_true(team.statistics.asynchronous);
                    int64_t taken = 0, applied = 0, parts = m == 2 ? workers - 1 : 1;
                    for (int i = 0; i < TR_STALENESS_BINS; i++) taken += team.staleness[i];
                    for (int r = 0; r < team.size; r++) applied += team.figures[r].contributions;
                    assert_int_equal(taken, STEPS * parts);
                    assert_int_equal(applied, STEPS * parts);
                    if (m != 2) assert_int_equal(team.statistics.dropped, 0);
                    for (int i = m == 2 ? 1 : 2; m > 0 && i < TR_STALENESS_BINS; i++)
                        assert_int_equal(team.staleness[i], 0);
                }
}

/* Where nobody else is there, nothing is stale, and the modes come to the bits of one process. */
static void a_single_worker_has_the_hash_of_one_process(void **state)
{
    (void)state;
    for (int f = 0; f < family_count; f++) {
        struct job job;
        struct outcome alone;
        family_job(&job, &families[f], family_place);
        job_set(&job, "train.microbatches=3");
        job_set(&job, "optimizer.clip_norm=0"); /* norms over several servers are formed in another order */
        job_outcome(&job, &alone);
        assert_int_equal(alone.status, TR_OK);
        for (int servers = 0; servers <= 3; servers++) {
            char strategy[80], how[120];
            struct rank ranks[RANKS];
            /* No server: a single process, which needs none, whatever the model file says. */
            snprintf(strategy, sizeof strategy, "parameter-server,servers=%d,mode=%s", servers ? servers : 1,
                     servers == 2 ? "bounded,staleness=0" : "async");
            snprintf(how, sizeof how, "%s, %s", families[f].name, strategy);
            job.settings.strategy = strategy;
            run_ranks(&job.settings, 1 + servers, servers == 3, ranks);
            expect_well(ranks, 1 + servers, how);
            if (strcmp(alone.hash, ranks[0].outcome.hash) != 0)
                fail_msg("%s: hash %s, one process has %s", how, ranks[0].outcome.hash, alone.hash);
            struct outcome without; /* a communicator */
            job_outcome(&job, &without);
            expect_same(&alone, &without, how);
        }
    }
}

/* ---- gradients in pieces ---- */

/* A network whose gradient takes several pieces, with layers larger and smaller than one. */
static void begin_large(struct job *job)
{
    family_job(job, &families[0], family_place);
    job_set(job, "layers=[{flatten: null}, {dense: {units: 700, activation: relu}}, {dense: {units: 500, "
                 "activation: relu}}, {dense: 10}]");
    job_set(job, "optimizer={rule: adam, rate: 1e-3}");
    job_set(job, "train.batch=20");
    job_set(job, "train.microbatches=4");
    job->settings.set = job->set;
    job->settings.steps = 4;
}

static void gradients_in_pieces_are_whole(void **state)
{
    (void)state;
    struct job job;
    struct outcome alone;
    begin_large(&job);
    job_outcome(&job, &alone);
    assert_int_equal(alone.status, TR_OK);
    for (int servers = 1; servers <= 3; servers++) {
        char strategy[80];
        struct rank ranks[RANKS];
        snprintf(strategy, sizeof strategy, "parameter-server,mode=async,servers=%d", servers);
        job.settings.strategy = strategy;
        run_ranks(&job.settings, 1 + servers, true, ranks);
        expect_well(ranks, 1 + servers, strategy);
        if (strcmp(alone.hash, ranks[0].outcome.hash) != 0)
            fail_msg("%s: hash %s, one process has %s", strategy, ranks[0].outcome.hash, alone.hash);
    }
    /* Parts of a batch, which differ in size and may be empty. */
    job_set(&job, "train.batch=33"); /* of 100 examples: the fourth has one */
    job.settings.strategy = "parameter-server,mode=backup,backup=0";
    struct team team = {0};
    run_team(&team, &job.settings, 5, true);
    expect_team(&team, "parts in pieces", -1);
    assert_true(isfinite(team.loss));
}

static void *run_worker(void *user)
{
    struct member *worker = user;
    worker->status = trainer_create(worker->team->settings, worker->comm, &worker->trainer);
    if (worker->status == TR_OK) worker->status = tr_trainer_run(worker->trainer, NULL, NULL);
    snprintf(worker->message, sizeof worker->message, "%s", tr_error_message());
    if (worker->status != TR_OK) tr_comm_abort(worker->comm, worker->message);
    tr_trainer_destroy(&worker->trainer);
    tr_comm_destroy(&worker->comm);
    return NULL;
}

/* This thread plays the server: it gives work to a worker that is slow after it has computed, and has the
   whole gradient before the worker says that it is there. */
static void a_gradient_leaves_while_its_worker_computes(void **state)
{
    (void)state;
    static const int hosts[] = {0, 1};
    struct tr_comm_settings patience = TR_COMM_SETTINGS_INIT;
    struct job job;
    struct team team = {.size = 2};
    tr_comm *comms[2], *comm;
    tr_trainer *trainer;
    begin_large(&job);
    job.settings.strategy = "parameter-server,mode=async";
    job.settings.slow = "0:40";
    team.settings = &job.settings;
    must_train(tr_comm_thread_create(2, hosts, &patience, comms));
    team.member[0] = (struct member){.team = &team, .comm = comms[0]};
    assert_int_equal(pthread_create(&team.member[0].thread, NULL, run_worker, &team.member[0]), 0);
    comm = comms[1];
    must_train(trainer_create(&job.settings, comm, &trainer));

    const struct ps *ps = ps_of(trainer_strategy(trainer));
    int64_t floats = ps->shard[1];
    int pieces = ps_pieces(ps, 0);
    tr_ticket *word, *got, *given[2], *piece[16];
    struct ps_up up, thanks;
    struct ps_down work = {.kind = PS_WORK, .granted = true};
    float *gradient = tr_alloc_zero((size_t)floats, sizeof *gradient);
    assert_non_null(gradient);
    assert_in_range(pieces, 3, 16);
    must_train(tr_comm_receive(comm, 0, PS_TAG_UP, &up, sizeof up, "word", &word));
    must_train(tr_comm_wait(comm, &word));
    assert_int_equal(up.kind, PS_ASK);
    must_train(tr_comm_receive(comm, 0, PS_TAG_UP, &thanks, sizeof thanks, "word", &got));
    must_train(tr_comm_receive(comm, 0, PS_TAG_UP, &up, sizeof up, "word", &word));
    for (int i = 0; i < pieces; i++) {
        int64_t begin, end;
        ps_piece(ps, 0, i, &begin, &end);
        must_train(tr_comm_receive(comm, 0, PS_TAG_GRADIENT, gradient + begin,
                                   (size_t)(end - begin) * sizeof *gradient, "gradient", &piece[i]));
    }
    must_train(tr_comm_send(comm, 0, PS_TAG_PARAMETERS,
                            tr_variables_arena(trainer_variables(trainer), TR_ARENA_PARAMETERS),
                            (size_t)floats * sizeof(float), "parameters", &given[0]));
    must_train(tr_comm_send(comm, 0, PS_TAG_DOWN, &work, sizeof work, "work", &given[1]));
    must_train(tr_comm_wait(comm, &got));
    assert_int_equal(thanks.kind, PS_GOT);
    for (int i = 0; i < pieces; i++) must_train(tr_comm_wait(comm, &piece[i]));
    assert_false(tr_comm_is_done(comm, &word));
    double sum = 0;
    for (int64_t i = 0; i < floats; i++) sum += fabs((double)gradient[i]);
    assert_true(sum > 0 && isfinite(sum));
    must_train(tr_comm_wait(comm, &word));
    assert_int_equal(up.kind, PS_PUSH);
    assert_int_equal(up.examples, 20);
    for (int i = 0; i < 2; i++) must_train(tr_comm_wait(comm, &given[i]));

    tr_comm_abort(comm, "enough");
    pthread_join(team.member[0].thread, NULL);
    assert_int_equal(team.member[0].status, TR_EPEER);
    assert_non_null(strstr(team.member[0].message, "enough"));
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&comm);
    tr_free(gradient);
}

/* What the root is told of a step is of the examples of this step, also where gradients of the next one have
   come before it is told. */
static void figures_belong_to_their_steps(void **state)
{
    (void)state;
    struct job job;
    struct team team = {0};
    begin_counting(&job, 400);
    job_set(&job, "train.batch=33"); /* of 100 examples: every fourth has one, and three parts without any */
    job.settings.strategy = "parameter-server,mode=backup,backup=0";
    job.settings.slow = "0:3";
    run_team(&team, &job.settings, 5, true);
    expect_team(&team, "ragged batches", -1);
    assert_int_equal(team.examples, 100 * 100);
    assert_true(team.fewest > 0);
    assert_true(team.most <= 36); /* four of the largest parts */
}

/* Every rule and option goes through: moments live on the servers, norms are formed over them. */
static void options_go_through(void **state)
{
    (void)state;
    static const char *const variants[] = {"optimizer.clip_norm=0.5", "train.on_nonfinite=skip",
                                           "optimizer.ema=0.9", "train.batch=23"};
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++)
        for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++)
            for (int servers = 1; servers <= 2; servers++) {
                char strategy[80], how[160];
                struct job job;
                struct team team = {0};
                family_job(&job, &families[v % 2 ? 4 : 0], family_place);
                job_set(&job, "train.microbatches=4");
                job_set(&job, variants[v]);
                job.settings.set = job.set;
                job.settings.steps = 12;
                snprintf(strategy, sizeof strategy, "parameter-server,servers=%d,%s", servers, modes[m]);
                snprintf(how, sizeof how, "%s with %s", strategy, variants[v]);
                job.settings.strategy = strategy;
                run_team(&team, &job.settings, 2 + servers, servers == 2);
                expect_team(&team, how, -1);
                assert_true(isfinite(team.loss));
                assert_int_equal(team.warnings, 0);
            }
}

/* A job of the digits that shows whether something is learned. */
static void begin_learning(struct job *job, int64_t steps)
{
    family_job(job, &families[0], family_place);
    job_set(job, "layers=[{flatten: null}, {dense: {units: 32, activation: relu}}, {dense: 10}]");
    job_set(job, "optimizer={rule: adam, rate: 3e-3}");
    job_set(job, "train.batch=20");
    job_set(job, "train.microbatches=4");
    job_set(job, "train.log_every=1");
    job->settings.set = job->set;
    job->settings.steps = steps;
}

static void asynchronous_training_learns(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        char strategy[80];
        struct job job;
        struct team team = {0};
        begin_learning(&job, 200);
        snprintf(strategy, sizeof strategy, "parameter-server,%s", modes[m]);
        job.settings.strategy = strategy;
        run_team(&team, &job.settings, 4, false);
        expect_team(&team, strategy, -1);
        /* 100 examples, 40 epochs: by heart, but for what a worker that was not scheduled for long brings. */
        assert_true(team.loss < 1);
    }
}

/* ---- slow workers ---- */

static void a_slow_worker_is_late(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        char strategy[80];
        struct job job;
        struct team team = {0};
        family_job(&job, &families[0], family_place);
        job_set(&job, "train.microbatches=4");
        job.settings.set = job.set;
        job.settings.steps = 30;
        job.settings.slow = "1:100"; /* more than others lose when they are not scheduled */
        snprintf(strategy, sizeof strategy, "parameter-server,%s", modes[m]);
        job.settings.strategy = strategy;
        run_team(&team, &job.settings, 4, false);
        expect_team(&team, strategy, -1);
        int64_t stale = 0;
        for (int i = 2; i < TR_STALENESS_BINS; i++) stale += team.staleness[i];
        if (m == 0) assert_true(stale > 0); /* nobody waits for it */
        if (m == 1) assert_int_equal(stale, 0);
        if (m == 2) assert_true(team.statistics.dropped > 0 && team.staleness[1] == 0);
        /* Where nobody runs ahead, all contribute alike, but for the last steps. */
        if (m != 1) assert_true(team.figures[1].contributions < team.figures[2].contributions);
    }
}

/* ---- deaths ---- */

static void the_others_go_on_without_a_worker(void **state)
{
    (void)state;
    static float alone[WEIGHTS], sum[WEIGHTS];
    enum { STEPS = 60 };
    struct job job;
    begin_counting(&job, STEPS);
    sum_alone(&job, alone);
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++)
        for (int servers = 1; servers <= 2; servers++)
            for (int apart = 0; apart < ROOMS; apart++) {
                char strategy[80], how[120];
                struct team team = {.name = "sum.weights", .weights = sum, .count = WEIGHTS};
                team.happening = KILL;
                team.victim = 1;
                team.at = 10;
                snprintf(strategy, sizeof strategy, "parameter-server,servers=%d,%s%s", servers, modes[m],
                         rooms[apart]);
                snprintf(how, sizeof how, "%s%s", strategy, apart ? ", apart" : "");
                job.settings.strategy = strategy;
                run_team(&team, &job.settings, 3 + servers, apart);
                expect_team(&team, how, 1);
                assert_int_equal(team.member[1].status, TR_EPEER);
                expect_same_sum(alone, sum, STEPS, how);
            }
}

/* The root, or a server: everybody stops, and says who it was and how far the run had come. */
static void nobody_goes_on_without_root_or_server(void **state)
{
    (void)state;
    static const int victims[] = {0, 2, 3};
    for (size_t v = 0; v < sizeof victims / sizeof victims[0]; v++)
        for (int apart = 0; apart < 2; apart++) {
            char name[64];
            struct job job;
            struct team team = {.happening = KILL, .victim = victims[v], .at = 5};
            begin_learning(&job, 100000);
            job.settings.strategy = "parameter-server,mode=async,servers=2";
            run_team(&team, &job.settings, 4, apart);
            snprintf(name, sizeof name, "rank %d on host thread-host-%d died", victims[v],
                     apart ? victims[v] : 0);
            for (int r = 0; r < 4; r++) {
                const struct member *member = &team.member[r];
                assert_int_equal(member->status, TR_EPEER);
                if (r == victims[v]) continue;
                if (!strstr(member->message, name) || !strstr(member->message, "after step "))
                    fail_msg("rank %d says: %s", r, member->message);
            }
        }
}

/* ---- ends ---- */

/* Whoever is told to stop, the root hears of it, saves and releases the others; the run goes on from there.
 */
static void any_rank_may_stop_the_run(void **state)
{
    (void)state;
    for (int victim = 0; victim < 4; victim++) {
        char out[SCRATCH_PATH + 16];
        struct job job;
        struct team team = {.happening = STOP, .victim = victim, .at = 5};
        begin_learning(&job, 1000000);
        snprintf(out, sizeof out, "%s/stop%d", family_place, victim);
        job.settings.out = out;
        job.settings.strategy = "parameter-server,mode=async,servers=2";
        run_team(&team, &job.settings, 4, victim % 2);
        assert_int_equal(team.member[0].status, TR_EINTERRUPTED);
        for (int r = 1; r < 4; r++)
            if (team.member[r].status != TR_OK) fail_msg("rank %d: %s", r, team.member[r].message);
        assert_true(team.step >= 5 && team.step < 1000000);
        struct team next = {0};
        job.settings.resume = out;
        job.settings.steps = team.step + 10;
        run_team(&next, &job.settings, 4, false);
        expect_team(&next, "resumed", -1);
    }
}

/* A run that has done more steps than it is asked for is at its end. */
static void fewer_steps_than_were_done_are_none(void **state)
{
    (void)state;
    char out[SCRATCH_PATH + 16];
    struct job job;
    struct team team = {0}, next = {0};
    begin_learning(&job, 12);
    snprintf(out, sizeof out, "%s/fewer", family_place);
    job.settings.out = out;
    job.settings.strategy = "parameter-server,mode=async";
    run_team(&team, &job.settings, 3, false);
    expect_team(&team, "asynchronous", -1);
    job.settings.resume = out;
    job.settings.resume_changed = true;
    job.settings.steps = 5;
    run_team(&next, &job.settings, 3, false);
    for (int r = 0; r < 3; r++)
        if (next.member[r].status != TR_OK) fail_msg("rank %d: %s", r, next.member[r].message);
    assert_string_equal(next.hash, team.hash);
}

/* What an asynchronous run has saved, others go on with, and it with theirs. */
static void checkpoints_go_over_to_other_strategies(void **state)
{
    (void)state;
    char out[SCRATCH_PATH + 16], branch[SCRATCH_PATH + 16];
    struct job job;
    struct team team = {0};
    struct rank ranks[RANKS];
    begin_learning(&job, 30);
    snprintf(out, sizeof out, "%s/over", family_place);
    snprintf(branch, sizeof branch, "%s/branch", family_place);
    job.settings.out = out;
    job.settings.strategy = "parameter-server,mode=async,servers=2";
    run_team(&team, &job.settings, 4, false);
    expect_team(&team, "asynchronous", -1);
    assert_true(team.saved[0] && team.hash[0]);
    /* One process and all-reduce go on to the same hash. */
    struct outcome alone;
    char first[SCRATCH_PATH];
    snprintf(first, sizeof first, "%s", team.saved);
    job.settings.resume = first;
    job.settings.out = branch;
    job.settings.steps = 60;
    job.settings.strategy = "allreduce";
    job_outcome(&job, &alone);
    assert_int_equal(alone.status, TR_OK);
    assert_true(alone.loss < 1);
    job.settings.out = NULL;
    run_ranks(&job.settings, 3, true, ranks);
    expect_ranks(&alone, ranks, 3, "all-reduce after an asynchronous run");
    job.settings.strategy = "parameter-server";
    run_ranks(&job.settings, 3, false, ranks);
    expect_ranks(&alone, ranks, 3, "a synchronous server after an asynchronous run");
    /* And back. */
    struct team back = {0};
    job.settings.resume = branch;
    job.settings.steps = 90;
    job.settings.strategy = "parameter-server,mode=backup";
    run_team(&back, &job.settings, 3, false);
    expect_team(&back, "asynchronous again", -1);
    assert_true(back.loss < alone.loss);
}

/* Where saving and evaluating go on while the others work, every step is told of once. */
static void the_root_rests_while_others_work(void **state)
{
    (void)state;
    char out[SCRATCH_PATH + 16];
    struct job job;
    struct team team = {0};
    begin_learning(&job, 80);
    snprintf(out, sizeof out, "%s/rests", family_place);
    job_set(&job, "train.evaluate_every=7");
    job_set(&job, "train.checkpoint_every=5");
    job.settings.out = out;
    job.settings.strategy = "parameter-server,mode=async";
    run_team(&team, &job.settings, 3, true);
    expect_team(&team, "evaluating", -1);
    assert_int_equal(team.statistics.steps, 80);
    assert_true(team.examples <= 80 * 20);
    assert_true(team.figures[1].contributions > 0);
}

/* A loss that is not finite ends the run on the root, with a name; the others hear of it. */
static void what_is_not_finite_ends_the_run(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        char strategy[80];
        struct job job;
        struct team team = {0};
        begin_learning(&job, 1000);
        job_set(&job, "optimizer={rule: sgd, rate: 1e30}");
        snprintf(strategy, sizeof strategy, "parameter-server,servers=2,%s", modes[m]);
        job.settings.strategy = strategy;
        run_team(&team, &job.settings, 4, false);
        assert_int_equal(team.member[0].status, TR_ENONFINITE);
        for (int r = 1; r < 4; r++) assert_int_equal(team.member[r].status, TR_EPEER);
    }
}

/* ---- refusals ---- */

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *strategy, *word;
        int ranks;
    } cases[] = {
        {"parameter-server,servers=5,mode=async", "none is left to compute", 4},
        {"parameter-server,servers=2", "none is left to compute", 2},
        {"parameter-server", "6 workers share 4 microbatches", 7},
        {"parameter-server,mode=backup,backup=2", "no gradient would make a step", 3},
        {"parameter-server,mode=async,backup=2", "backup", 3},
        {"parameter-server,mode=later", "later", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        struct rank ranks[RANKS];
        begin_learning(&job, 10);
        job.settings.strategy = cases[i].strategy;
        run_ranks(&job.settings, cases[i].ranks, false, ranks);
        for (int r = 0; r < cases[i].ranks; r++) {
            assert_int_equal(ranks[r].outcome.status, TR_EINVAL);
            if (!strstr(ranks[r].outcome.message, cases[i].word))
                fail_msg("%s: %s", cases[i].strategy, ranks[r].outcome.message);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synchronous_servers_keep_the_hash),
        cmocka_unit_test(every_gradient_is_applied_once),
        cmocka_unit_test(a_single_worker_has_the_hash_of_one_process),
        cmocka_unit_test(gradients_in_pieces_are_whole),
        cmocka_unit_test(a_gradient_leaves_while_its_worker_computes),
        cmocka_unit_test(figures_belong_to_their_steps),
        cmocka_unit_test(options_go_through),
        cmocka_unit_test(asynchronous_training_learns),
        cmocka_unit_test(a_slow_worker_is_late),
        cmocka_unit_test(the_others_go_on_without_a_worker),
        cmocka_unit_test(nobody_goes_on_without_root_or_server),
        cmocka_unit_test(any_rank_may_stop_the_run),
        cmocka_unit_test(fewer_steps_than_were_done_are_none),
        cmocka_unit_test(checkpoints_go_over_to_other_strategies),
        cmocka_unit_test(the_root_rests_while_others_work),
        cmocka_unit_test(what_is_not_finite_ends_the_run),
        cmocka_unit_test(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests_name("strategy.parameter_server", tests, family_place_make,
                                       family_place_remove);
}
