/* A rank of an asynchronous parameter server gets no memory when it is made: it says so, the others hear of
 * it, and nothing is left behind.
 */
#include "support/ranks.h"

#include "base/alloc.h"
#include "strategy/class.h"
#include "support/comm_thread/thread.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Of the calling thread: allocations that are left before one is refused; -1: all are allowed. */
static _Thread_local int64_t left = -1;

static int refuse(size_t size, void *user)
{
    (void)size, (void)user;
    return left >= 0 && left-- == 0;
}

struct attempt {
    int victim;
    int64_t at; /* of the allocations of the class */
    bool begins, refused;
};

static _Thread_local struct attempt *attempt; /* of the victim's thread, else NULL */

static tr_status refused(tr_strategy *strategy, tr_status (*make)(tr_strategy *strategy), bool begins)
{
    if (!attempt || attempt->begins != begins) return make(strategy);
    left = attempt->at;
    tr_status status = make(strategy);
    attempt->refused = left < 0;
    left = -1;
    return status;
}

static tr_status create(tr_strategy *strategy)
{
    return refused(strategy, tr_strategy_parameter_server.create, false);
}

static tr_status begin(tr_strategy *strategy)
{
    return refused(strategy, tr_strategy_parameter_server.begin, true);
}

static void *run(void *user)
{
    struct rank *rank = user;
    struct attempt *own = rank->user;
    tr_trainer *trainer = NULL;
    attempt = tr_comm_rank(rank->comm) == own->victim ? own : NULL;
    tr_status status = trainer_create(rank->settings, rank->comm, &trainer);
    if (status == TR_OK) status = tr_trainer_run(trainer, NULL, NULL);
    rank->outcome.status = status;
    snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
    if (status != TR_OK) tr_comm_abort(rank->comm, rank->outcome.message);
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* Whether the class had so many allocations on that rank. */
static bool try(const struct tr_train_settings *settings, int size, bool apart, struct attempt *own)
{
    /* Nobody is silent here, so nobody is lost for it; the others look for losses often. */
    static const struct tr_comm_settings patience = {.timeout = 0.1, .patience = 300};
    static const int hosts[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};
    int64_t live = tr_alloc_live();
    struct rank ranks[RANKS];
    tr_comm *comms[RANKS];
    must_train(tr_comm_thread_create(size, apart ? hosts : NULL, &patience, comms));
    for (int r = 0; r < size; r++) {
        ranks[r] = (struct rank){.settings = settings, .comm = comms[r], .user = own};
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, run, &ranks[r]), 0);
    }
    for (int r = 0; r < size; r++) pthread_join(ranks[r].thread, NULL);
    assert_int_equal(tr_alloc_live(), live);
    /* Ranks that get no memory to share exchange messages instead. */
    bool ends = own->refused && ranks[own->victim].outcome.status != TR_OK;
    for (int r = 0; r < size; r++) {
        const struct outcome *outcome = &ranks[r].outcome;
        tr_status expected = !ends ? TR_OK : r == own->victim ? TR_ENOMEM : TR_EPEER;
        if (outcome->status != expected)
            fail_msg("rank %d, allocation %lld of rank %d refused: %s, \"%s\"", r, (long long)own->at,
                     own->victim, tr_status_name(outcome->status), outcome->message);
    }
    return own->refused;
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    static struct tr_strategy_class class;
    static const struct {
        const char *strategy;
        int size;
        bool apart;
    } cases[] = {
        {"refused,mode=backup,backup=0", 3, true},
        {"refused,mode=async,servers=2", 4, false},
    };
    class = tr_strategy_parameter_server;
    class.name = "refused";
    class.resolve = NULL;
    class.create = create;
    class.begin = begin;
    must_train(tr_strategy_register(&class));
    tr_alloc_set_hook(refuse, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        family_job(&job, &families[0], family_place);
        job_set(&job, "layers=[{flatten: null}, {dense: 10}]");
        job_set(&job, "train.microbatches=2");
        job_set(&job, "train.evaluate_every=0");
        job.settings.set = job.set;
        job.settings.steps = 2;
        job.settings.strategy = cases[i].strategy;
        for (int begins = 0; begins < 2; begins++)
            for (int victim = 0; victim < cases[i].size; victim++) {
                struct attempt own = {.victim = victim, .begins = begins};
                while (try(&job.settings, cases[i].size, cases[i].apart, &own)) {
                    own.at++;
                    own.refused = false;
                }
                assert_true(own.at > 0);
            }
    }
    tr_alloc_set_hook(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("strategy.refused", tests, family_place_make, family_place_remove);
}
