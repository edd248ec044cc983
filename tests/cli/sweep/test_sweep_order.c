/* The order of a sweep's points: the best first, those that did not run to their end last, and of equals the
 * first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "cli/sweep/sweep.h"
#include "refuse.h"

#include <math.h>
#include <stdio.h>

/* `figure` is what the sweep is judged by; the test sets it. */
static struct cli_sweep_point points[] = {
    {.wanted = true, .state = CLI_SWEEP_DONE, .loss = 2, .accuracy = 0.7},
    {.wanted = true, .state = CLI_SWEEP_FAILED, .loss = 0.5, .accuracy = 1},
    {.wanted = false, .state = CLI_SWEEP_DONE, .loss = 0.1, .accuracy = 1},
    {.wanted = true, .state = CLI_SWEEP_DONE, .loss = 1, .accuracy = 0.6},
    {.wanted = true, .state = CLI_SWEEP_DONE, .loss = NAN, .accuracy = NAN},
    {.wanted = true, .state = CLI_SWEEP_DONE, .loss = 1, .accuracy = 0.7},
};
static const struct cli_sweep_plan plan = {.points = points, .count = sizeof points / sizeof points[0]};

static void the_best_comes_first(void **state)
{
    static const int expected[2][5] = {{3, 5, 0, 4, 1}, {0, 5, 3, 4, 1}};
    (void)state;
    for (int by_accuracy = 0; by_accuracy < 2; by_accuracy++) {
        struct cli_sweep_orders orders = {0};
        snprintf(orders.by, sizeof orders.by, "%s", by_accuracy ? "accuracy" : "loss");
        for (int i = 0; i < plan.count; i++)
            points[i].figure = by_accuracy ? points[i].accuracy : points[i].loss;
        int *order, count;
        assert_int_equal(cli_sweep_rank(&orders, &plan, &order, &count), TR_OK);
        assert_int_equal(count, 5);
        assert_memory_equal(order, expected[by_accuracy], sizeof expected[by_accuracy]);
        tr_free(order);
    }
}

static void without_memory_nothing_stays(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        const struct cli_sweep_orders orders = {.by = "loss"};
        int64_t live = tr_alloc_live();
        int *order, count;
        refuse_begin(at);
        tr_status status = cli_sweep_rank(&orders, &plan, &order, &count);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) tr_free(order);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_comes_first),
        cmocka_unit_test(without_memory_nothing_stays),
    };
    return cmocka_run_group_tests_name("cli.sweep_order", tests, NULL, NULL);
}
