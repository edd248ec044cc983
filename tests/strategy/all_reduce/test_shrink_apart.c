/* Synchronous jobs on several hosts that go on without ranks that died, by the copies that others have of
 * their moments; what these take is what is said. */
#include "strategy/all_reduce/shrink.h"

#include "train/loop/trainer.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void expect_survival_apart(struct job *job, const struct outcome *alone, const struct plan *blows,
                                  int size, int apart, const char *how)
{
    char shares[SHARES];
    job->settings.replicas_of_state = 1;
    shrink_expect_of(job, alone, blows, size, apart, how, shares);
    job->settings.replicas_of_state = 0;
}

/* Each on a host of its own, or two on each: every kind of network and update, any rank, at any place. */
static void hosts_go_on(void **state)
{
    (void)state;
    for (int f = 0; f < family_count; f++) {
        struct job job;
        struct outcome alone;
        shrink_begin(&job, &families[f], &alone);
        for (int apart = 1; apart <= 2; apart++)
            for (int torn = 0; torn < 2; torn++) {
                char how[120];
                int victim = (f + apart) % 4;
                struct plan plan = {.blow = {{torn ? AT_UPDATE : AT_LAYER, victim, 3, 0, 0}}};
                snprintf(how, sizeof how, "apart %d, %s, %s of rank %d", apart, families[f].name,
                         torn ? "an update" : "a layer", victim);
                expect_survival_apart(&job, &alone, &plan, 4, apart, how);
            }
    }
}

static void hosts_go_on_at_any_step(void **state)
{
    (void)state;
    static const enum tr_train_event_kind kinds[] = {TR_EVENT_STEP, TR_EVENT_EVALUATION};
    struct job job;
    struct outcome alone;
    shrink_begin(&job, &families[family_count - 1], &alone);
    job_set(&job, "train.log_every=1");
    for (int64_t step = 0; step < STEPS; step += 2)
        for (int victim = 0; victim < 4; victim++) {
            char how[120];
            struct plan inside = {.blow = {{AT_UPDATE, victim, step, 0, 0}}};
            struct plan between = {.blow = {{AT_EVENT, victim, step + 1, 0, kinds[victim % 2]}}};
            snprintf(how, sizeof how, "apart, step %d, rank %d", (int)step, victim);
            expect_survival_apart(&job, &alone, &inside, 4, 1, how);
            expect_survival_apart(&job, &alone, &between, 4, 1 + victim % 2, how);
        }
    struct plan later = {.blow = {{AT_LAYER, 0, 2, 1, 0},
                                  {AT_EVENT, 1, 3, 0, TR_EVENT_STEP},
                                  {AT_EVENT, 2, 5, 0, TR_EVENT_STEP}}};
    expect_survival_apart(&job, &alone, &later, 4, 1, "apart, one after another");
}

/* Moments that lie on a device come to the host for that. */
static void devices_go_on(void **state)
{
    (void)state;
    struct job job;
    struct outcome alone;
    shrink_begin(&job, &families[family_count - 1], &alone);
    job.settings.device = "shadow";
    for (int victim = 0; victim < 3; victim++) {
        struct plan plan = {.blow = {{AT_LAYER, victim, 3, 0, 0}}};
        expect_survival_apart(&job, &alone, &plan, 3, 1, "on devices");
    }
}

/* A whole host at once: what its ranks had, ranks of other hosts have. */
static void a_host_may_die(void **state)
{
    (void)state;
    struct job job;
    struct outcome alone;
    shrink_begin(&job, &families[family_count - 1], &alone);
    for (int host = 0; host < 2; host++)
        for (int torn = 0; torn < 2; torn++) {
            const enum place place = torn ? AT_UPDATE : AT_LAYER;
            struct plan plan = {.blow = {{place, 2 * host, 3, 0, 0}, {place, 2 * host + 1, 3, 0, 0}}};
            char how[120];
            snprintf(how, sizeof how, "host %d, %s", host, torn ? "updates" : "layers");
            expect_survival_apart(&job, &alone, &plan, 4, 2, how);
        }
}

/* A rank and the one that has its copy. */
static void who_has_no_copy_says_so(void **state)
{
    (void)state;
    struct job job;
    struct outcome alone;
    struct rank ranks[RANKS];
    const struct plan plan = {.blow = {{AT_UPDATE, 1, 3, 0, 0}, {AT_UPDATE, 2, 3, 0, 0}}};
    shrink_begin(&job, &families[0], &alone);
    job.settings.replicas_of_state = 1;
    shrink_run(&job, &plan, 4, 1, ranks);
    for (int r = 0; r < 4; r += 3) {
        assert_int_equal(ranks[r].outcome.status, TR_EPEER);
        if (!strstr(ranks[r].outcome.message, "had the copy of its moments, both died") &&
            !strstr(ranks[r].outcome.message, "gave up"))
            fail_msg("rank %d: %s", r, ranks[r].outcome.message);
    }
}

/* ---- memory is refused ---- */

static atomic_int refuses, refused; /* blocks for the state of others: lines of floats, and one float */

static bool is_refused(size_t count, size_t size)
{
    if (!atomic_load(&refuses) || size != sizeof(float) || count < 1000 || count % 16 != 1) return false;
    atomic_fetch_add(&refused, 1);
    return true;
}

void *__real_tr_alloc_zero(size_t count, size_t size);
void *__wrap_tr_alloc_zero(size_t count, size_t size);
void *__wrap_tr_alloc_zero(size_t count, size_t size)
{
    return is_refused(count, size) ? NULL : __real_tr_alloc_zero(count, size);
}

/* Who lives, but has no memory for what the others hand on, says so. */
static void who_has_no_memory_says_so(void **state)
{
    (void)state;
    struct job job;
    struct outcome alone;
    struct rank ranks[RANKS];
    const struct plan plan = {.blow = {{AT_LAYER, 1, 3, 0, 0}}};
    shrink_begin(&job, &families[0], &alone);
    job.settings.replicas_of_state = 1;
    const int64_t before = tr_alloc_live();
    atomic_store(&refuses, 1);
    shrink_run(&job, &plan, 3, 1, ranks);
    atomic_store(&refuses, 0);
    assert_in_range(atomic_load(&refused), 1, 2); /* the other may be told before */
    for (int r = 0; r < 3; r += 2)
        if (ranks[r].outcome.status != TR_ENOMEM && ranks[r].outcome.status != TR_EPEER)
            fail_msg("rank %d: %s", r, ranks[r].outcome.message);
    assert_true(ranks[0].outcome.status == TR_ENOMEM || ranks[2].outcome.status == TR_ENOMEM);
    assert_int_equal(tr_alloc_live(), before);
}

struct figures {
    int64_t memory, sent, floats, steps;
};

static void *run_and_count(void *user)
{
    struct rank *rank = user;
    struct figures *figures = (struct figures *)rank->user + tr_comm_rank(rank->comm);
    tr_trainer *trainer = NULL;
    struct tr_train_statistics statistics = TR_TRAIN_STATISTICS_INIT;
    rank->outcome.status = trainer_create(rank->settings, rank->comm, &trainer);
    if (rank->outcome.status == TR_OK) rank->outcome.status = tr_trainer_run(trainer, NULL, NULL);
    if (rank->outcome.status == TR_OK && tr_trainer_statistics(trainer, &statistics) == TR_OK)
        *figures = (struct figures){
            .memory = (int64_t)tr_strategy_memory(trainer_strategy(trainer)),
            .sent = statistics.rank[tr_comm_rank(rank->comm)].bytes_sent,
            .floats = trainer_job(trainer)->model->arena_floats,
            .steps = trainer_steps_done(trainer),
        };
    snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* Twice the parameters and two shares of the moments more on each rank, and a share of the moments sent in
   each step. Adam has two arenas of moments; the others' shares are told by all shares being all floats. */
static void copies_take_what_is_said(void **state)
{
    (void)state;
    enum { SIZE = 3, MOMENTS = 2 };
    struct figures figures[2][RANKS] = {{{0}}};
    struct job job;
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=6");
    job_set(&job, "optimizer={rule: adam, rate: 0.01}");
    job.settings.set = job.set;
    job.settings.steps = STEPS;
    for (int copies = 0; copies < 2; copies++) {
        struct rank ranks[RANKS] = {{0}};
        for (int r = 0; r < RANKS; r++) ranks[r].user = figures[copies];
        job.settings.outlives = copies;
        job.settings.replicas_of_state = copies;
        run_ranks_by(run_and_count, &job.settings, SIZE, 1, ranks);
        expect_well(ranks, SIZE, copies ? "with copies" : "without copies");
    }
    int64_t memory = 0, sent = 0, floats = figures[0][0].floats, bytes = floats * (int64_t)sizeof(float);
    for (int r = 0; r < SIZE; r++) {
        memory += figures[1][r].memory - figures[0][r].memory;
        sent += figures[1][r].sent - figures[0][r].sent;
    }
    /* All shares together are an arena: each is kept by its rank and by its neighbour, in two sets. */
    assert_int_equal(memory, 2 * (SIZE * bytes + 2 * MOMENTS * bytes));
    assert_int_equal(sent, STEPS * MOMENTS * bytes);
    print_message("copies of %lld bytes of parameters on %d ranks: %lld bytes more, %lld sent in a step\n",
                  (long long)bytes, SIZE, (long long)memory, (long long)sent / STEPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_go_on),
        cmocka_unit_test(hosts_go_on_at_any_step),
        cmocka_unit_test(devices_go_on),
        cmocka_unit_test(a_host_may_die),
        cmocka_unit_test(who_has_no_copy_says_so),
        cmocka_unit_test(who_has_no_memory_says_so),
        cmocka_unit_test(copies_take_what_is_said),
    };
    return cmocka_run_group_tests_name("strategy.shrink_apart", tests, family_place_make,
                                       family_place_remove);
}
