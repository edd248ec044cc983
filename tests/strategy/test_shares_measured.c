/* Shares by measured speeds, with speeds that the test says: when ranks compare them, which steps count, by
 * how much a new division must be better, and what is told of it. And the texts of shares, of few workers and
 * of many. */
#include "strategy/class.h"

#include "base/alloc.h"
#include "refuse.h"
#include "support/comm_thread/thread.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { RANKS_MOST = 4, BATCH = 10 };

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

static tr_status rebalance(tr_strategy *strategy)
{
    strategy->ahead++; /* counts */
    return TR_OK;
}

static const struct tr_strategy_class class = {.name = "own", .rebalance = rebalance};

/* ---- runs ---- */

/* A run of some ranks, the last of which may be servers. Rank r needs seconds[r] for a microbatch. */
struct run {
    int workers, servers, steps;
    int64_t microbatches;
    double seconds[RANKS_MOST];
    int64_t disturbed; /* a step that takes 1000 times as long; -1: none */
    int64_t ragged;    /* a step of fewer examples, which takes no time; -1: none */
    /* Afterwards, of all ranks: */
    int64_t bound[RANKS_MOST + 1];
    int rebalanced;
    int64_t at; /* the step after which they were, the last time */
    char text[256];
};

struct member {
    struct run *run;
    struct tr_job job;
    tr_strategy strategy;
    pthread_t thread;
    tr_status status;
    int rebalanced;
    int64_t at;
};

static void *work(void *user)
{
    struct member *member = user;
    const struct run *run = member->run;
    tr_strategy *strategy = &member->strategy;
    member->status = tr_shares_create(strategy);
    for (int64_t step = 0; step < run->steps && member->status == TR_OK; step++) {
        struct tr_step_figures figures = {.examples = step == run->ragged ? BATCH - 1 : BATCH};
        const int64_t *bound = strategy->shares.bound;
        double own =
            (double)(bound[strategy->rank + 1] - bound[strategy->rank]) * run->seconds[strategy->rank];
        if (step == run->disturbed) own *= 1000;
        if (step == run->ragged) own = 0;
        strategy->done.compute_seconds += own;
        member->status = tr_shares_end_step(strategy, &figures);
        if (!figures.rebalanced) continue;
        member->rebalanced++;
        member->at = step + 1;
    }
    return NULL;
}

static void run_all(struct run *run)
{
    static const struct tr_comm_settings settings = {.timeout = 60, .patience = 60};
    static struct member member[RANKS_MOST];
    tr_comm *comm[RANKS_MOST];
    int size = run->workers + run->servers;
    must(tr_comm_thread_create(size, NULL, &settings, comm));
    for (int r = 0; r < size; r++) {
        struct member *me = &member[r];
        *me = (struct member){.run = run, .job = {.train = {.batch = BATCH}}};
        me->job.train.microbatches = run->microbatches;
        me->strategy =
            (tr_strategy){.class = &class, .job = &me->job, .comm = comm[r], .rank = r, .size = size};
        me->strategy.servers = run->servers;
        me->strategy.settings.shares = "auto";
        assert_int_equal(pthread_create(&me->thread, NULL, work, me), 0);
    }
    for (int r = 0; r < size; r++) pthread_join(member[r].thread, NULL);
    for (int r = 0; r <= size; r++) run->bound[r] = member[0].strategy.shares.bound[r];
    run->rebalanced = member[0].rebalanced;
    run->at = member[0].at;
    snprintf(run->text, sizeof run->text, "%s",
             tr_strategy_shares(&member[0].strategy) ? tr_strategy_shares(&member[0].strategy) : "");
    for (int r = 0; r < size; r++) {
        const struct tr_shares *shares = &member[r].strategy.shares;
        assert_int_equal(member[r].status, TR_OK);
        assert_memory_equal(shares->bound, run->bound, ((size_t)size + 1) * sizeof run->bound[0]);
        assert_int_equal(member[r].rebalanced, run->rebalanced);
        assert_int_equal(member[r].strategy.ahead, run->rebalanced);
        assert_int_equal(member[r].at, run->at);
        tr_shares_destroy(&member[r].strategy);
        tr_comm_abort(comm[r], "enough");
    }
    for (int r = 0; r < size; r++) tr_comm_destroy(&comm[r]);
}

static void expect_bounds(const struct run *run, int64_t a, int64_t b, int64_t c)
{
    const int64_t expected[] = {a, b, c};
    for (int r = 0; r < run->workers; r++) assert_int_equal(run->bound[r + 1], expected[r]);
    assert_int_equal(run->bound[0], 0);
}

static void speeds_decide(void **state)
{
    (void)state;
    struct run run = {
        .workers = 2, .microbatches = 8, .seconds = {0.25, 0.75}, .ragged = -1, .disturbed = -1};
    /* Not before the fourth step. */
    run.steps = 3;
    run_all(&run);
    expect_bounds(&run, 4, 8, 0);
    assert_int_equal(run.rebalanced, 0);
    assert_string_equal(run.text, "");
    run.steps = 300;
    run_all(&run);
    expect_bounds(&run, 6, 8, 0);
    assert_int_equal(run.rebalanced, 1);
    assert_int_equal(run.at, 4);
    assert_string_equal(run.text, "ranks 0 to 1 compute 6, 2 of 8 microbatches; ms for one: 250, 750");
    /* Three workers, and a server, which computes nothing. */
    run = (struct run){
        .workers = 3, .servers = 1, .microbatches = 12, .ragged = -1, .disturbed = -1, .steps = 5};
    run.seconds[0] = 0.01, run.seconds[1] = 0.01, run.seconds[2] = 0.002;
    run_all(&run);
    assert_int_equal(run.bound[3], 12);
    assert_int_equal(run.bound[4], 12);
    assert_true(run.bound[3] - run.bound[2] > 6);
    assert_int_equal(run.rebalanced, 1);
    assert_non_null(strstr(run.text, "ranks 0 to 2 compute "));
    assert_non_null(strstr(run.text, " of 12 microbatches; ms for one: 10, 10, 2"));
}

/* What the first step takes, and one of fewer examples, and a single one that was disturbed, decides nothing.
 */
static void odd_steps_do_not_decide(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        struct run run = {
            .workers = 2, .microbatches = 8, .seconds = {0.25, 0.25}, .ragged = -1, .disturbed = -1};
        run.seconds[1] = which == 2 ? 0.75 : 0.25;
        run.steps = 4;
        if (which == 0) run.disturbed = 0;
        if (which == 1) run.disturbed = 1;
        if (which == 2) run.ragged = 2;
        run_all(&run);
        expect_bounds(&run, which == 2 ? 6 : 4, 8, 0);
        assert_int_equal(run.rebalanced, which == 2);
    }
}

/* A tenth of the slowest worker's time, or nothing changes. */
static void small_gains_change_nothing(void **state)
{
    (void)state;
    /* Of 20 microbatches each, one goes to the faster: 19 of 20 of the time; two: 18 of 20. */
    struct run run = {.workers = 2, .microbatches = 40, .ragged = -1, .disturbed = -1, .steps = 4};
    run.seconds[0] = 1, run.seconds[1] = 19.0 / 21;
    run_all(&run);
    expect_bounds(&run, 20, 40, 0);
    assert_int_equal(run.rebalanced, 0);
    run.seconds[1] = 17.0 / 23;
    run_all(&run);
    expect_bounds(&run, 17, 40, 0);
    assert_int_equal(run.rebalanced, 1);
    run.seconds[1] = 0.8125; /* 18 and 22: exactly a tenth */
    run_all(&run);
    expect_bounds(&run, 18, 40, 0);
    assert_int_equal(run.rebalanced, 1);
}

/* A worker whose speed is not known leaves all as it is. */
static void unknown_speeds_change_nothing(void **state)
{
    (void)state;
    static const double odd[] = {0, -1, NAN, INFINITY};
    for (int i = 0; i < 4; i++) {
        struct run run = {
            .workers = 2, .microbatches = 8, .seconds = {0.25, odd[i]}, .ragged = -1, .disturbed = -1};
        run.steps = 70;
        run_all(&run);
        expect_bounds(&run, 4, 8, 0);
        assert_int_equal(run.rebalanced, 0);
    }
}

/* ---- settings ---- */

static tr_status create(tr_strategy *strategy, struct tr_job *job, const char *shares, int workers)
{
    *job = (struct tr_job){.train = {.batch = BATCH, .microbatches = 100}};
    *strategy = (tr_strategy){.class = &class, .job = job, .size = workers, .settings = {.shares = shares}};
    return tr_shares_create(strategy);
}

static void expect_text(const char *shares, int workers, const char *begin, const char *end)
{
    tr_strategy strategy;
    struct tr_job job;
    int named = 1;
    must(create(&strategy, &job, shares, workers));
    const char *text = tr_strategy_shares(&strategy), *rest = strstr(text, " of 100 microbatches");
    assert_non_null(rest);
    assert_string_equal(rest, " of 100 microbatches");
    assert_int_equal(strncmp(text, begin, strlen(begin)), 0);
    assert_int_equal(strncmp(rest - strlen(end), end, strlen(end)), 0);
    for (const char *c = text; c < rest; c++) named += *c == ',' && c[2] != '.';
    assert_int_equal(named, 16);
    tr_shares_destroy(&strategy);
}

static void texts_name_sixteen_workers(void **state)
{
    (void)state;
    expect_text("1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", 16, "ranks 0 to 15 compute ", "");
    expect_text("9,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", 17, "ranks 0 to 16 compute ", ", ...");
}

static void settings_have_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *shares, *message;
    } cases[] = {
        {"1e-6,1e6", NULL},
        {"9e-7,1", "shares: a speed of 9e-07; give 1e-06 to 1e+06"},
        {"1,1.1e6", "shares: a speed of 1.1e+06; give 1e-06 to 1e+06"},
        {"1,2,3", "shares: speeds of 3 workers are given, the job has 2"},
        {".5", "shares: speeds of 1 workers are given, the job has 2"},
        {"x,2,3", "shares: \"x\" is not a number; give equal, auto, or the speed of each worker as in 3,1"},
        {"12345678901234567890123456789012345678901x,1",
         "shares: \"1234567890123456789012345678901234567890\" is not a number; give equal, auto, or the "
         "speed of "
         "each worker as in 3,1"},
    };
    tr_strategy strategy;
    struct tr_job job;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tr_status status = create(&strategy, &job, cases[i].shares, 2);
        assert_int_equal(status, cases[i].message ? TR_EINVAL : TR_OK);
        if (cases[i].message) assert_string_equal(tr_error_message(), cases[i].message);
        tr_shares_destroy(&strategy);
    }
    must(create(&strategy, &job, "auto", 1)); /* nobody to compare with */
    assert_false(strategy.shares.measures);
    tr_shares_destroy(&strategy);
    must(create(&strategy, &job, "auto", 2));
    assert_true(strategy.shares.measures);
    assert_int_equal(strategy.shares.bound[1], 50);
    tr_shares_destroy(&strategy);
    must(create(&strategy, &job, NULL, 3));
    assert_false(strategy.shares.measures);
    assert_null(strategy.shares.text);
    tr_shares_destroy(&strategy);
}

/* Classes that divide their work in other ways have no shares, and accept equal ones alone. */
static void other_classes_refuse(void **state)
{
    (void)state;
    static const struct tr_strategy_class other = {.name = "other"};
    struct tr_job job = {.train = {.batch = BATCH, .microbatches = 8}};
    for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
        tr_strategy strategy = {.class = asynchronous ? &class : &other, .job = &job, .size = 2};
        strategy.traits.asynchronous = asynchronous;
        strategy.settings.shares = "equal";
        must(tr_shares_create(&strategy));
        assert_int_equal(strategy.shares.bound != NULL, asynchronous);
        tr_shares_destroy(&strategy);
        for (int given = 0; given < 2; given++) {
            strategy.shares = (struct tr_shares){.workers = 0};
            strategy.settings.shares = given ? "3,1" : "auto";
            assert_int_equal(tr_shares_create(&strategy), TR_EUNSUPPORTED);
            char message[256];
            snprintf(
                message, sizeof message,
                "shares: the strategy \"other\" divides its work in another way, and cannot share "
                "microbatches as \"%s\" asks; choose allreduce or parameter-server, or leave `shares` out",
                strategy.settings.shares);
            assert_string_equal(tr_error_message(),
                                asynchronous
                                    ? "shares: in this mode of the strategy \"own\" a worker computes a "
                                      "batch, or the same part of one, whenever it is ready, so the fast "
                                      "ones do more anyway; leave `shares` out"
                                    : message);
        }
    }
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        tr_strategy strategy;
        struct tr_job job;
        refuse_begin(at);
        tr_status status = create(&strategy, &job, "3,1", 2);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_shares_destroy(&strategy);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speeds_decide),
        cmocka_unit_test(odd_steps_do_not_decide),
        cmocka_unit_test(small_gains_change_nothing),
        cmocka_unit_test(unknown_speeds_change_nothing),
        cmocka_unit_test(texts_name_sixteen_workers),
        cmocka_unit_test(settings_have_bounds),
        cmocka_unit_test(other_classes_refuse),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("strategy.shares_measured", tests, NULL, NULL);
}
