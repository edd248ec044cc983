/* How a step is judged, what is reported of it by a replica, and what all ranks make of their reports. */
#include "strategy/driver.h"

#include "support/comm_thread/thread.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

static struct tr_job job_that(enum tr_nonfinite_policy policy, float clip, float sam)
{
    struct tr_job job = {.train = {.on_nonfinite = (int32_t)policy}};
    job.optimizer.clip_norm = clip;
    job.optimizer.sam = sam;
    return job;
}

/* ---- judging ---- */

static void steps_are_judged(void **state)
{
    (void)state;
    static const struct {
        enum tr_nonfinite_policy policy;
        float most;
        bool finite;
        double norm;
        bool bad_loss, skipped;
        float clip;
    } cases[] = {
        {TR_NONFINITE_STOP, 0, true, 0, false, false, 1},
        {TR_NONFINITE_STOP, 0, true, 1e9, false, false, 1},
        {TR_NONFINITE_STOP, 4, true, 3.9, false, false, 1},
        {TR_NONFINITE_STOP, 4, true, 4, false, false, 1},
        {TR_NONFINITE_STOP, 4, true, 16, false, false, 0.25F},
        {TR_NONFINITE_STOP, 4, true, NAN, false, false, 1},
        {TR_NONFINITE_STOP, 0, true, INFINITY, false, false, 1},
        {TR_NONFINITE_STOP, 0, false, 0, true, false, 1},
        {TR_NONFINITE_SKIP, 0, false, 0, false, true, 1},
        {TR_NONFINITE_SKIP, 0, true, 1, false, false, 1},
        {TR_NONFINITE_SKIP, 0, true, NAN, false, true, 1},
        {TR_NONFINITE_SKIP, 2, true, INFINITY, false, true, 0},
        {TR_NONFINITE_SKIP, 2, true, 4, false, false, 0.5F},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_job job = job_that(cases[i].policy, cases[i].most, 0);
        const struct tr_verdict verdict = tr_judge(&job, cases[i].finite, cases[i].norm);
        assert_int_equal(verdict.bad_loss, cases[i].bad_loss);
        assert_int_equal(verdict.skipped, cases[i].skipped);
        assert_true(verdict.clip == cases[i].clip);
    }
    const struct tr_job plain = job_that(TR_NONFINITE_STOP, 0, 0), skips = job_that(TR_NONFINITE_SKIP, 0, 0),
                        clips = job_that(TR_NONFINITE_STOP, 1, 0), sharp = job_that(TR_NONFINITE_STOP, 0, 1);
    assert_false(tr_strategy_skips(&plain) || tr_strategy_measures(&plain));
    assert_true(tr_strategy_skips(&skips) && tr_strategy_measures(&skips));
    assert_true(!tr_strategy_skips(&clips) && tr_strategy_measures(&clips));
    assert_true(!tr_strategy_skips(&sharp) && tr_strategy_measures(&sharp));
}

static void a_loss_opens_a_step(void **state)
{
    (void)state;
    tr_strategy strategy = {.rank = 0};
    const float sums[][TR_PASS_SUMS] = {{2, 3}, {INFINITY, 3}, {NAN, 0}};
    for (int i = 0; i < 3; i++) {
        strategy.open = false;
        tr_driver_open(&strategy, sums[i]);
        assert_true(strategy.open);
        assert_int_equal(strategy.spoilt, i > 0);
        assert_memory_equal(strategy.sums, sums[i], sizeof sums[i]);
    }
}

/* ---- a replica's report ---- */

static tr_status gradient(tr_strategy *strategy, int64_t step, struct tr_combined *out)
{
    (void)strategy, (void)step, (void)out;
    return TR_OK;
}

static const struct tr_strategy_class together = {.gradient = gradient}, apart = {.name = "apart"};

static void expect_report(const struct tr_report *report, int64_t learned, int64_t skipped, int64_t bad_step,
                          int bad_loss)
{
    assert_int_equal(report->examples, 4 * learned);
    assert_true(report->loss == 2.5 * (double)learned);
    assert_true(report->correct == 3 * (double)learned);
    assert_int_equal(report->skipped, skipped);
    assert_int_equal(report->bad_step, bad_step);
    assert_int_equal(report->bad_loss, bad_loss);
}

/* Two replicas of rank 1, of which the second reports here. */
static void replicas_report_their_steps(void **state)
{
    (void)state;
    int64_t bound[] = {0, 1, 3};
    const struct tr_verdict well = {.clip = 1}, skipped = {.skipped = true}, bad = {.bad_loss = true};
    struct tr_report reports[4];
    for (int t = 0; t < 2; t++) {
        tr_strategy strategy = {.class = t ? &together : &apart, .rank = 1, .size = 2, .replica_count = 2};
        struct tr_report *report = &reports[2];
        strategy.reports = reports;
        strategy.replica_bound = bound;
        strategy.sums[0] = 2.5F;
        strategy.sums[1] = 3;
        memset(reports, 7, sizeof reports);
        const struct tr_report before = reports[0];
        tr_driver_begin_reports(&strategy, 6);
        assert_memory_equal(&reports[0], &before, sizeof before);
        assert_memory_equal(&reports[3], &before, sizeof before);
        for (int i = 1; i < 3; i++) {
            expect_report(&reports[i], 0, 0, -1, 0);
            assert_int_equal(reports[i].request, 6);
            assert_int_equal(reports[i].measured, 0);
            assert_true(reports[i].norms == 0);
        }
        tr_driver_tell(&strategy, &well, false, 5, 4, report);
        expect_report(report, 1, 0, -1, 0);
        tr_driver_tell(&strategy, &well, false, 6, 4, report);
        expect_report(report, 2, 0, -1, 0);
        /* Of steps that do not count, only those that all took together are in the figures. */
        tr_driver_tell(&strategy, &skipped, false, 7, 4, report);
        expect_report(report, 2 + t, 1, -1, 0);
        struct tr_report other = *report;
        tr_driver_tell(&strategy, &well, true, 8, 4, &other);
        expect_report(&other, 2 + 2 * t, 1, 8, 0);
        tr_driver_tell(&strategy, &bad, false, 8, 4, report);
        expect_report(report, 2 + 2 * t, 1, 8, 1);
    }
}

static void ranks_know_the_first_reports_of_others(void **state)
{
    (void)state;
    int64_t bound[] = {0, 2, 2, 7};
    tr_strategy strategy = {.class = &together, .size = 3};
    for (int r = 0; r <= 3; r++) assert_int_equal(tr_driver_first_report(&strategy, r), 0);
    strategy.class = &apart;
    for (int r = 0; r <= 3; r++) assert_int_equal(tr_driver_first_report(&strategy, r), r);
    strategy.replica_bound = bound;
    for (int r = 0; r <= 3; r++) assert_int_equal(tr_driver_first_report(&strategy, r), bound[r]);
}

/* ---- all reports ---- */

static void digests_add_up(void **state)
{
    (void)state;
    static const struct tr_report reports[] = {
        {.loss = 1,
         .correct = 2,
         .norms = 3,
         .examples = 4,
         .measured = 5,
         .skipped = 6,
         .bad_step = -1,
         .request = 1},
        {.loss = 10,
         .correct = 20,
         .norms = 30,
         .examples = 40,
         .measured = 50,
         .skipped = 60,
         .bad_step = 9,
         .bad_loss = 1,
         .request = 4},
        {.loss = 100, .bad_step = 9, .bad_loss = 0},
        {.loss = 1000, .bad_step = -1, .request = 5},
    };
    struct tr_digest digest;
    tr_driver_digest(reports, 4, &digest);
    assert_true(digest.all.loss == 1111 && digest.all.correct == 22 && digest.all.norms == 33);
    assert_int_equal(digest.all.examples, 44);
    assert_int_equal(digest.all.measured, 55);
    assert_int_equal(digest.all.skipped, 66);
    assert_int_equal(digest.all.request, 5);
    assert_int_equal(digest.replica, 1); /* the first of those of one step */
    assert_int_equal(digest.all.bad_step, 9);
    assert_int_equal(digest.all.bad_loss, 1);
    tr_driver_digest(reports, 0, &digest);
    assert_int_equal(digest.replica, -1);
    assert_int_equal(digest.all.bad_step, -1);
    assert_int_equal(digest.all.request, 0);
}

static void digests_become_figures(void **state)
{
    (void)state;
    struct tr_digest digest = {.replica = -1,
                               .all = {.loss = 2.5,
                                       .correct = 7,
                                       .norms = 9,
                                       .examples = 12,
                                       .measured = 2,
                                       .skipped = 1,
                                       .bad_step = -1,
                                       .request = 3}};
    const tr_strategy strategy = {.digest = &digest};
    struct tr_step_figures figures = {.norm = -1};
    tr_driver_sum_up(&strategy, 20, 4, &figures);
    assert_int_equal(figures.steps, 4);
    assert_int_equal(figures.examples, 12);
    assert_int_equal(figures.request, 3);
    assert_true(figures.loss == 2.5F && figures.correct == 7 && figures.norm == 4.5F);
    assert_true(figures.skipped && !figures.bad_loss && !figures.poisoned);
    digest.all.measured = digest.all.skipped = 0;
    figures = (struct tr_step_figures){.norm = -1};
    tr_driver_sum_up(&strategy, 20, 4, &figures);
    assert_true(figures.norm == -1);
    assert_false(figures.skipped || figures.bad_loss || figures.poisoned);
    /* A round ends with its bad step. */
    for (int loss = 0; loss < 2; loss++) {
        digest.replica = loss ? 0 : 3;
        digest.all.skipped = 1;
        digest.all.bad_step = 22;
        digest.all.bad_loss = loss;
        figures = (struct tr_step_figures){.norm = -1};
        tr_driver_sum_up(&strategy, 20, 4, &figures);
        assert_int_equal(figures.steps, 3);
        assert_false(figures.skipped);
        assert_int_equal(figures.bad_loss, loss);
        assert_int_equal(figures.poisoned, !loss);
    }
}

/* ---- their exchange ---- */

enum { RANKS = 3 };

struct member {
    tr_strategy strategy;
    struct tr_report report[RANKS];
    struct tr_digest digest;
    pthread_t thread;
    tr_status status;
};

static void *exchange(void *user)
{
    struct member *member = user;
    member->status = tr_driver_exchange(&member->strategy);
    tr_comm_destroy(&member->strategy.comm);
    return NULL;
}

static void exchange_all(struct member *member, const struct tr_strategy_class *class,
                         const struct tr_report *own)
{
    static const struct tr_comm_settings settings = {.timeout = 60, .patience = 60};
    tr_comm *comm[RANKS];
    must(tr_comm_thread_create(RANKS, NULL, &settings, comm));
    for (int r = 0; r < RANKS; r++) {
        bool many = class == &apart;
        member[r].strategy = (tr_strategy){.class = class, .rank = r, .size = RANKS, .comm = comm[r]};
        member[r].strategy.reports = member[r].report;
        member[r].strategy.digest = &member[r].digest;
        member[r].strategy.report_count = many ? RANKS : 1;
        member[r].report[many ? r : 0] = own[r];
        assert_int_equal(pthread_create(&member[r].thread, NULL, exchange, &member[r]), 0);
    }
    for (int r = 0; r < RANKS; r++) pthread_join(member[r].thread, NULL);
    for (int r = 0; r < RANKS; r++) assert_int_equal(member[r].status, TR_OK);
}

/* Ranks of one replica have learned the same, but each has its shard and its request; separate ones have
   their own figures. */
static void all_ranks_get_one_digest(void **state)
{
    (void)state;
    static const struct tr_report own[RANKS] = {
        {.loss = 8, .examples = 2, .skipped = 0, .bad_step = -1, .request = 1},
        {.loss = 8, .examples = 2, .skipped = 3, .bad_step = 7, .request = 4},
        {.loss = 8, .examples = 2, .skipped = 1, .bad_step = 6, .bad_loss = 1},
    };
    for (int t = 0; t < 2; t++) {
        struct member member[RANKS] = {0};
        exchange_all(member, t ? &together : &apart, own);
        for (int r = 0; r < RANKS; r++) {
            const struct tr_digest *digest = &member[r].digest;
            assert_memory_equal(digest, &member[0].digest, sizeof *digest);
            assert_int_equal(digest->all.bad_step, 6);
            assert_int_equal(digest->all.bad_loss, 1);
            assert_int_equal(digest->all.request, 5);
            assert_int_equal(digest->all.skipped, t ? 3 : 4);
            assert_int_equal(digest->all.examples, t ? 2 : 6);
            assert_true(digest->all.loss == (t ? 8 : 24));
            assert_int_equal(digest->replica, t ? 0 : 2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_judged),
        cmocka_unit_test(a_loss_opens_a_step),
        cmocka_unit_test(replicas_report_their_steps),
        cmocka_unit_test(ranks_know_the_first_reports_of_others),
        cmocka_unit_test(digests_add_up),
        cmocka_unit_test(digests_become_figures),
        cmocka_unit_test(all_ranks_get_one_digest),
    };
    return cmocka_run_group_tests_name("strategy.reports", tests, NULL, NULL);
}
