/* Messages that cannot be begun, as one without memory: wherever it is in a rank's whole run, the rank tells
 * of it, and no other rank waits for it or goes on as if nothing were.
 *
 * The linker puts the functions of the test in front of those of the communicator (--wrap).
 */
#include "support/ranks.h"
#include "train/loop/told_job.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static _Thread_local bool is_victim; /* this rank's messages count */
static int failing, calls;           /* number of the message that fails, from 0; and how many there were */

static tr_status count_one(const char *name)
{
    return is_victim && calls++ == failing ? tr_fail(TR_ENOMEM, "message %s fails", name) : TR_OK;
}

#define WRAP(function, parameters, arguments, name)                                                          \
    tr_status __real_##function parameters;                                                                  \
    tr_status __wrap_##function parameters;                                                                  \
    tr_status __wrap_##function parameters                                                                   \
    {                                                                                                        \
        TR_TRY(count_one(name));                                                                             \
        return __real_##function arguments;                                                                  \
    }
WRAP(tr_comm_send,
     (tr_comm * comm, int to, int tag, const void *data, size_t bytes, const char *name, tr_ticket **out),
     (comm, to, tag, data, bytes, name, out), name)
WRAP(tr_comm_receive,
     (tr_comm * comm, int from, int tag, void *data, size_t bytes, const char *name, tr_ticket **out),
     (comm, from, tag, data, bytes, name, out), name)
WRAP(tr_comm_broadcast,
     (tr_comm * comm, int root, void *data, size_t bytes, const char *name, tr_ticket **out),
     (comm, root, data, bytes, name, out), name)
WRAP(tr_comm_barrier, (tr_comm * comm, tr_ticket **out), (comm, out), "barrier")
WRAP(tr_comm_exchange, (tr_comm * comm, void *blocks, size_t bytes, const char *name),
     (comm, blocks, bytes, name), name)
WRAP(tr_comm_gather, (tr_comm * comm, void *data, const int64_t *bound, const char *name, tr_ticket **out),
     (comm, data, bound, name, out), name)

/* ---- runs ---- */

static const struct {
    const char *what, *strategy;
    bool resumed, watched;
    int stride; /* each failure takes a moment, until the other rank finds out */
} cases[] = {
    {"all-reduce, watched", "allreduce", false, true, 13},
    {"all-reduce, resumed", "allreduce", true, false, 13},
};

static void *run(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer = NULL;
    const int *victim = rank->user;
    is_victim = tr_comm_rank(rank->comm) == *victim;
    rank->outcome = (struct outcome){.status = trainer_create(rank->settings, rank->comm, &trainer)};
    if (rank->outcome.status == TR_OK) {
        trainer_outcome(trainer, &rank->outcome);
    } else {
        snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
        tr_comm_abort(rank->comm, rank->outcome.message);
    }
    is_victim = false;
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* Message `at` of rank `victim` fails. Returns whether there was one. */
static bool fail_one(size_t c, int victim, int at, const char *before)
{
    struct job job;
    struct rank ranks[RANKS];
    char out[SCRATCH_PATH], trace[SCRATCH_PATH];
    const int64_t live = tr_alloc_live();
    told_job_begin(&job, "tiny.yaml");
    job_set(&job, "train.batch=4");
    job_set(&job, "train.microbatches=2");
    job_set(&job, "train.log_every=1");
    job_set(&job, "optimizer={rule: adam, rate: 0.01, ema: 0.5}");
    job.settings.set = job.set;
    job.settings.steps = 4;
    job.settings.strategy = cases[c].strategy;
    job.settings.out = scratch_join(out, scratch_place, "out");
    if (cases[c].resumed) job.settings.resume = before;
    if (cases[c].watched) {
        job.settings.trace = scratch_join(trace, scratch_place, "trace.json");
        job.settings.trace_steps = 2;
        job.settings.record_digests = 1;
        job.settings.receipt = true;
    }
    memset(ranks, 0, sizeof ranks);
    for (int r = 0; r < RANKS; r++) ranks[r].user = &victim;
    calls = 0;
    failing = at;
    run_ranks_by(run, &job.settings, 2, 1, ranks);
    const bool failed = calls > at;
    const struct outcome *own = &ranks[victim].outcome, *other = &ranks[1 - victim].outcome;
    if (!failed) expect_well(ranks, 2, cases[c].what);
    if (failed && ((own->status != TR_ENOMEM && own->status != TR_EPEER) || !strstr(own->message, " fails")))
        fail_msg("%s: message %d of rank %d fails, which ends with: %s, \"%s\"", cases[c].what, at, victim,
                 tr_status_name(own->status), own->message);
    if (failed && other->status == TR_OK)
        fail_msg("%s: message %d of rank %d fails (%s), but the other goes on", cases[c].what, at, victim,
                 own->message);
    if (tr_file_is_directory(out)) scratch_remove(out);
    assert_int_equal(tr_alloc_live(), live);
    return failed;
}

static void each_message(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    char before[SCRATCH_PATH];
    told_job_begin(&job, "tiny.yaml");
    job_set(&job, "train.batch=4");
    job_set(&job, "train.microbatches=2");
    job_set(&job, "train.log_every=1");
    job_set(&job, "optimizer={rule: adam, rate: 0.01, ema: 0.5}");
    job.settings.steps = 2;
    job.settings.out = scratch_join(before, scratch_place, "before");
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (int victim = 0; victim < 2; victim++) {
            int at = victim;
            while (fail_one(c, victim, at, before)) at += cases[c].stride;
            assert_true(at > 3);
        }
    }
}

static int make(void **state)
{
    scratch_place_make(state);
    told_job_make(scratch_place);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message),
    };
    return cmocka_run_group_tests_name("train.failing_messages", tests, make, scratch_place_remove);
}
