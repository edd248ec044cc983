/* Figures of a plan whose machine cannot be measured, or which memory is refused. In the place of
 * measurements stand ones that take no time, of a machine on which only messages do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/plan/plan.h"
#include "cli/session.h"
#include "job/job.h"
#include "refuse.h"

static struct tr_string_list no_set;

/* Measurements that succeed. */
static int measurements;

tr_status __wrap_tr_machine_measure(struct tr_machine *machine, const struct tr_job *job,
                                    const struct tr_device_choice *device, double seconds,
                                    tr_machine_listener listener, void *user);
tr_status __wrap_tr_machine_measure(struct tr_machine *machine, const struct tr_job *job,
                                    const struct tr_device_choice *device, double seconds,
                                    tr_machine_listener listener, void *user)
{
    (void)job, (void)device, (void)seconds, (void)listener, (void)user;
    if (measurements-- == 0) return tr_fail(TR_EUNSUPPORTED, "no device");
    for (int i = 0; i < machine->usages; i++) {
        if (tr_costs_create(&machine->usage[i].costs) != TR_OK) return TR_ENOMEM;
        tr_costs_settle(machine->usage[i].costs);
        machine->usage[i].rates.memory = 1 << 20;
    }
    return TR_OK;
}

static void expect_equal(const struct tr_plan *a, const struct tr_plan *b)
{
    assert_int_equal(a->rows, b->rows);
    assert_true(a->cluster.memory == 1 << 20 && b->cluster.memory == 1 << 20);
    for (int i = 0; i < a->rows; i++) {
        const struct tr_plan_row *one = &a->row[i], *other = &b->row[i];
        assert_string_equal(one->strategy, other->strategy);
        assert_true(one->workers == other->workers && one->ranks == other->ranks);
        assert_true(one->batch == other->batch && one->microbatches == other->microbatches);
        assert_string_equal(one->left_out ? one->left_out : "", other->left_out ? other->left_out : "");
        assert_true(one->figures.seconds == other->figures.seconds);
        assert_int_equal(one->figures.steps, other->figures.steps);
    }
}

/* A plan whose machine cannot be measured, in the beginning or again at the end, has failed; so has one
 * without memory.
 */
static void failures_end_a_plan(void **state)
{
    (void)state;
    struct tr_job *job;
    struct cli_screen screen;
    FILE *nowhere = fopen("/dev/null", "w");
    const struct tr_job_settings settings = {0};
    const struct cli_plan_orders orders = {.model = "tiny.yaml",
                                           .set = &no_set,
                                           .strategies = "allreduce,local-sgd,every=2",
                                           .workers = {2, 1},
                                           .worker_counts = 2,
                                           .grow = true,
                                           .processors = 1,
                                           .seconds = 1,
                                           .calls = 1,
                                           .traces = "traces",
                                           .device = {.name = "cpu"}};
    assert_non_null(nowhere);
    assert_int_equal(tr_job_open("tiny.yaml", &settings, &job), TR_OK);
    assert_int_equal(tr_job_open_set(job, TR_SET_TRAIN), TR_OK);
    cli_screen_begin(&screen, nowhere);
    for (int fails = 0; fails < 2; fails++) {
        struct tr_plan plan = {.cluster = tr_cluster_ordinary};
        measurements = fails;
        assert_int_equal(cli_plan_rows(&orders, &plan), TR_OK);
        assert_int_equal(cli_plan_figures(&orders, job, &screen, &plan), TR_EUNSUPPORTED);
        assert_int_equal(plan.row[1].figures.seconds > 0, fails);
        tr_plan_release(&plan);
    }
    struct tr_plan whole = {.cluster = tr_cluster_ordinary};
    measurements = 2;
    whole.cluster.memory = 0;
    assert_int_equal(cli_plan_rows(&orders, &whole), TR_OK);
    assert_int_equal(cli_plan_figures(&orders, job, &screen, &whole), TR_OK);
    assert_int_equal(whole.rows, 4); /* one process, two strategies on two, and one that needs two */
    assert_non_null(whole.row[3].left_out);
    for (int64_t at = 0, done = 0; !done; at += at < 400 ? 1 : 7) { /* the rows are made first */
        struct tr_plan plan = {.cluster = tr_cluster_ordinary};
        const int64_t live = tr_alloc_live();
        measurements = 2;
        plan.cluster.memory = 0;
        refuse_begin(at);
        tr_status status = cli_plan_rows(&orders, &plan);
        if (status == TR_OK) status = cli_plan_figures(&orders, job, &screen, &plan);
        done = refuse_end();
        if (status != TR_OK && status != TR_ENOMEM)
            fail_msg("allocation %d: %s\n", (int)at, tr_error_message());
        if (status == TR_OK) {
            expect_equal(&plan, &whole);
            assert_int_equal(measurements, 0); /* the machine was measured again */
        }
        if (done) assert_int_equal(status, TR_OK);
        tr_plan_release(&plan);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_plan_release(&whole);
    cli_screen_end(&screen);
    fclose(nowhere);
    tr_job_destroy(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_end_a_plan),
    };
    return cmocka_run_group_tests_name("cli.plan_failing", tests, place_make, place_remove);
}
