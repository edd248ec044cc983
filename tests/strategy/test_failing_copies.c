/* Devices with memory of their own of which one call fails: whichever it is, from the making of a trainer to
 * what is asked of it after its last step, the rank tells of it, and nothing stays behind.
 */
#include "support/operations/failing.h"
#include "support/operations/shadow.h"
#include "support/ranks.h"

#include "base/alloc.h"
#include "device/cpu/cpu.h"
#include "support/comm_thread/thread.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- the device ---- */

static _Thread_local bool fails; /* those that this thread makes */

static tr_status create(const struct tr_device_choice *choice, tr_device **out)
{
    static struct tr_device_class class;
    tr_status status = shadow_create(choice->threads, choice->isa, out);
    if (status != TR_OK || !fails) return status;
    class = failing_wholly_like(*out);
    (*out)->class = &class;
    return TR_OK;
}

static const struct tr_device_kind failing = {
    .name = "failing", .help = "the shadow device, of which calls fail", .create = create};

static const struct tr_entry *const entries[] = {&tr_device_kind_cpu.entry, &failing.entry, NULL};

const struct tr_registry tr_device_kinds = {.kind = "device", .entries = entries};

/* ---- the runs ---- */

#define SIZE 2

struct life {
    const char *strategy;
    int ranks;  /* 0: one without a communicator */
    int stride; /* every so many calls, one fails */
    const char *set;
    bool simulated;    /* an order of updates */
    bool asynchronous; /* nothing is asked after the end */
    bool copies;       /* of state, on another host */
};

#define SHARED                                                                                               \
    "layers=[{flatten: null}, {dense: {units: 8, name: a}}, {dense: {units: 8, name: b}}, "                  \
    "{dense: {units: 8, share: b}}, {dense: 10}]"

static const struct life lives[] = {
    {"allreduce", 0, 1},
    {"allreduce", 0, 7, "optimizer.sam=0.1"},
    {"local-sgd,replicas=2,every=1,momentum=0.5", 0, 11},
    {"easgd,replicas=2,every=1", 0, 11},
    {"gossip,replicas=2,consensus=1,every=1", 0, 11},
    {"pipeline,stages=1", 0, 7},
    {"parameter-server,mode=async,servers=2", 0, 7, .simulated = true},
    {"allreduce", 2, 11},
    {"allreduce", 2, 11, .copies = true},
    {"allreduce,bucket=0.004", 2, 11},
    {"allreduce,factors=always", 2, 11, "optimizer.clip_norm=0"}, /* a norm wants whole gradients */
    {"allreduce", 2, 11, "optimizer.sam=0.1"},
    {"parameter-server,servers=1", 2, 11},
    {"parameter-server,mode=async", 2, 11, "train.evaluate_every=1", .asynchronous = true},
    {"local-sgd,every=1,replicas=2,momentum=0.5", 2, 11},
    {"easgd,every=1,replicas=2", 2, 11},
    {"gossip,every=1,consensus=2,replicas=2", 2, 11},
    {"pipeline,stages=1", 2, 11},
    {"pipeline,stages=2", 2, 11, SHARED},
};

static int calls; /* that the last run made, except in its end, where failures do not matter */

static tr_status train(const struct tr_train_settings *settings, tr_comm *comm, bool quiet, char hash[65])
{
    tr_trainer *trainer = NULL;
    struct tr_train_event event = TR_TRAIN_EVENT_INIT;
    tr_status status =
        comm ? trainer_create(settings, comm, &trainer) : tr_trainer_create(settings, &trainer);
    if (status == TR_OK) status = tr_trainer_run(trainer, NULL, NULL);
    if (status == TR_OK && !quiet) {
        void *bytes = NULL;
        size_t size;
        status = tr_trainer_evaluate(trainer, "test", &event);
        if (status == TR_OK) status = tr_trainer_save_state(trainer, &bytes, &size);
        tr_state_free(bytes);
    }
    if (status == TR_OK) status = tr_trainer_hash(trainer, hash);
    if (fails) calls = atomic_load(&operation_calls);
    tr_trainer_destroy(&trainer);
    return status;
}

struct part {
    const struct life *life;
    int victim;
};

static void *run(void *user)
{
    struct rank *rank = user;
    struct outcome *outcome = &rank->outcome;
    const struct part *part = rank->user;
    int number = rank->comm ? tr_comm_rank(rank->comm) : 0;
    fails = number == part->victim;
    outcome->status = train(rank->settings, rank->comm, part->life->asynchronous, outcome->hash);
    snprintf(outcome->message, sizeof outcome->message, "%s",
             outcome->status == TR_OK ? "" : tr_error_message());
    if (outcome->status != TR_OK && rank->comm) tr_comm_abort(rank->comm, outcome->message);
    tr_comm_destroy(&rank->comm);
    fails = false;
    return NULL;
}

static void run_all(const struct life *life, const struct job *job, int victim, struct rank *ranks)
{
    /* Nobody is silent here, so nobody is lost for it; the others look for losses often. */
    static const struct tr_comm_settings patience = {.timeout = 0.01, .patience = 300};
    static const int hosts[SIZE] = {0, 1};
    struct part part = {life, victim};
    tr_comm *comms[SIZE] = {NULL};
    atomic_store(&operation_calls, 0);
    if (life->ranks > 0)
        must_train(tr_comm_thread_create(life->ranks, life->copies ? hosts : NULL, &patience, comms));
    for (int r = 0; r == 0 || r < life->ranks; r++) {
        ranks[r] = (struct rank){.settings = &job->settings, .comm = comms[r], .user = &part};
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, run, &ranks[r]), 0);
    }
    for (int r = 0; r == 0 || r < life->ranks; r++) pthread_join(ranks[r].thread, NULL);
}

static void check(const struct life *life, int victim)
{
    struct job job;
    struct rank ranks[SIZE];
    family_job(&job, &families[0], family_place);
    job_set(&job, "layers=[{flatten: null}, {dense: 10}]");
    job_set(&job, "train.microbatches=2");
    job_set(&job, "train.batch=4");
    job_set(&job, "train.prefetch=0");
    job_set(&job, "train.evaluate_every=0");
    job_set(&job, "optimizer={rule: adam, rate: 1e-3, ema: 0.9, clip_norm: 1}");
    if (life->set) job_set(&job, life->set);
    job.settings.set = job.set;
    job.settings.steps = 2;
    job.settings.device = "failing";
    job.settings.strategy = life->strategy;
    if (life->simulated) job.settings.simulate_delays = 3;
    job.settings.outlives = life->copies;
    job.settings.replicas_of_state = life->copies;
    failing_operation = -1;
    run_all(life, &job, victim, ranks);
    expect_well(ranks, life->ranks > 0 ? life->ranks : 1, life->strategy);
    const int all = calls;
    assert_true(all > 50);
    for (int at = victim; at < all; at += life->stride) {
        int64_t live = tr_alloc_live();
        failing_operation = at;
        run_all(life, &job, victim, ranks);
        const struct outcome *outcome = &ranks[victim].outcome;
        if (atomic_load(&operation_calls) <= at || calls <= at)
            continue; /* how many there are is chance for some */
        if (outcome->status != TR_EUNSUPPORTED || !strstr(outcome->message, " fails"))
            fail_msg("%s: call %d of %d of rank %d fails, which ends with: %s, \"%s\"", life->strategy, at,
                     all, victim, tr_status_name(outcome->status), outcome->message);
        if (tr_alloc_live() != live)
            fail_msg("%s: call %d of rank %d fails, which leaves %lld blocks", life->strategy, at, victim,
                     (long long)(tr_alloc_live() - live));
    }
}

/* A rank that fails makes the others wait a moment for what it may have sent: so the lives are processes
   beside each other. */
static void every_failing_call_is_told(void **state)
{
    (void)state;
    pid_t child[2 * sizeof lives / sizeof lives[0]];
    int children = 0;
    for (size_t i = 0; i < sizeof lives / sizeof lives[0]; i++)
        for (int victim = 0; victim == 0 || victim < lives[i].ranks; victim++) {
            shadow_open = true;
            child[children] = fork();
            assert_true(child[children] >= 0);
            if (child[children++] > 0) continue;
            prctl(PR_SET_PDEATHSIG, SIGKILL);    /* a test that is ended leaves nobody behind */
            setenv("CMOCKA_TEST_ABORT", "1", 1); /* else a process that failed would go on as the test */
            check(&lives[i], victim);
            _exit(0);
        }
    int failed = 0;
    for (int i = 0; i < children; i++) {
        int status;
        while (waitpid(child[i], &status, 0) < 0) continue;
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_call_is_told),
    };
    return cmocka_run_group_tests_name("strategy.failing_copies", tests, family_place_make,
                                       family_place_remove);
}
