/* Costs: medians, straight lines between sizes, products between shapes; and the keys of operations. */
#include "plan/costs.h"

#include "refuse.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static struct tr_cost_key dense(int64_t rows, int64_t in, int64_t out)
{
    float x;
    struct tr_op_dense_forward op = {.rows = rows, .in = in, .out = out, .x = &x};
    struct tr_cost_key key;
    tr_cost_key_of(TR_OPERATION_dense_forward, &op, false, &key);
    return key;
}

static void near(double is, double expected)
{
    if (fabs(is - expected) > 1e-9 * fabs(expected) + 1e-15) fail_msg("%g, not %g", is, expected);
}

static void note(tr_costs *costs, struct tr_cost_key key, double seconds)
{
    assert_int_equal(tr_costs_add(costs, &key, seconds), TR_OK);
}

static double of(const tr_costs *costs, struct tr_cost_key key)
{
    return tr_costs_of(costs, &key);
}

static void costs_follow_lines(void **state)
{
    (void)state;
    tr_costs *costs;
    assert_int_equal(tr_costs_create(&costs), TR_OK);
    const double notes[] = {9, 2, 2.5, 1, 30};
    for (int i = 0; i < 5; i++) {
        note(costs, dense(10, 4, 3), 0);
        note(costs, dense(10, 4, 3), 2 * notes[i]); /* two calls of a step count by their mean */
        tr_costs_end_step(costs);
    }
    note(costs, dense(20, 4, 3), 4.5);
    note(costs, dense(40, 4, 3), 6.5);
    note(costs, dense(5, 100, 100), 1);
    assert_int_equal(tr_costs_count(costs), 4);
    tr_costs_settle(costs);
    near(of(costs, dense(10, 4, 3)), 2.5);
    near(of(costs, dense(15, 4, 3)), 3.5);
    near(of(costs, dense(30, 4, 3)), 5.5);
    near(of(costs, dense(60, 4, 3)), 8.5);
    near(of(costs, dense(5, 4, 3)), 1.5);
    near(of(costs, dense(10, 100, 100)), 2);
    near(of(costs, dense(5, 200, 50)), 1);
    near(of(costs, dense(5, 100, 50)), 0.5);
    struct tr_op_fill fill = {.count = 3};
    struct tr_cost_key key;
    tr_cost_key_of(TR_OPERATION_fill, &fill, false, &key);
    near(tr_costs_of(costs, &key), 0);
    tr_costs_destroy(&costs);
}

/* Sizes that were seen once each, as sequences have them, become medians of several; others stay. */
static void near_sizes_become_one(void **state)
{
    (void)state;
    tr_costs *costs;
    assert_int_equal(tr_costs_create(&costs), TR_OK);
    for (int i = 0; i < 40; i++) {
        /* 100, 101 ... 139 rows take 1 s each, but for some that were disturbed. */
        note(costs, dense(100 + i, 4, 3), (100 + i) * (i % 5 == 0 ? 7.0 : 1.0));
        tr_costs_end_step(costs);
    }
    note(costs, dense(400, 4, 3), 800);
    for (int i = 0; i < 20; i++) {
        note(costs, dense(410, 4, 3), 410);
        tr_costs_end_step(costs);
    }
    tr_costs_settle(costs);
    assert_int_equal(tr_costs_count(costs), 5);
    near(of(costs, dense(108, 4, 3)), 108);
    near(of(costs, dense(120, 4, 3)), 120);
    near(of(costs, dense(136, 4, 3)), 136);
    near(of(costs, dense(400, 4, 3)), 800);
    near(of(costs, dense(410, 4, 3)), 410);
    tr_costs_destroy(&costs);
}

/* Two sizes are one where the larger is at most a quarter larger; and its time is the median of both rates.
 */
static void sizes_are_near_within_a_quarter(void **state)
{
    (void)state;
    for (int far = 0; far < 2; far++) {
        tr_costs *costs;
        assert_int_equal(tr_costs_create(&costs), TR_OK);
        note(costs, dense(100, 4, 3), 100);
        note(costs, dense(125 + far, 4, 3), 3 * (125 + far));
        tr_costs_settle(costs);
        assert_int_equal(tr_costs_count(costs), 1 + far);
        if (far == 0) near(of(costs, dense(113, 4, 3)), 2 * 113); /* 112.5, rounded */
        tr_costs_destroy(&costs);
    }
}

/* Sizes that take less time than smaller ones, or nothing at all by the line: in proportion to the nearer. */
static void lines_do_not_fall(void **state)
{
    tr_costs *costs;
    (void)state;
    assert_int_equal(tr_costs_create(&costs), TR_OK);
    note(costs, dense(10, 4, 3), 1);
    note(costs, dense(20, 4, 3), 10);
    note(costs, dense(40, 4, 3), 5);
    tr_costs_settle(costs);
    near(of(costs, dense(5, 4, 3)), 0.5); /* -3.5 by the line */
    near(of(costs, dense(15, 4, 3)), 5.5);
    near(of(costs, dense(30, 4, 3)), 3.75); /* three quarters of that of 40 */
    near(of(costs, dense(80, 4, 3)), 10);
    tr_costs_destroy(&costs);
}

/* The mean of the two in the middle; and of many steps the last 255. */
static void medians_are_of_the_last_steps(void **state)
{
    tr_costs *costs;
    (void)state;
    assert_int_equal(tr_costs_create(&costs), TR_OK);
    for (int i = 0; i < 4; i++) {
        note(costs, dense(10, 4, 3), i == 0 ? 9 : i);
        tr_costs_end_step(costs);
    }
    for (int i = 0; i < 255 + 128; i++) { /* 127 of the first ones are left */
        note(costs, dense(10, 9, 9), i < 255 ? 1 : 3);
        tr_costs_end_step(costs);
        tr_costs_end_step(costs); /* nothing was called */
    }
    tr_costs_settle(costs);
    near(of(costs, dense(10, 4, 3)), 2.5);
    near(of(costs, dense(10, 9, 9)), 3);
    tr_costs_destroy(&costs);
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        const struct tr_cost_key key = dense(10, 4, 3);
        tr_costs *costs = NULL;
        refuse_begin(at);
        tr_status status = tr_costs_create(&costs);
        for (int i = 0; i < 40 && status == TR_OK; i++) {
            status = tr_costs_add(costs, &key, 1);
            tr_costs_end_step(costs);
        }
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_costs_destroy(&costs);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* Sequences have rows of their own, which count where they can be read. */
static void sequences_count_by_rows(void **state)
{
    (void)state;
    const int32_t offset[] = {3, 5, 5, 12}, none[] = {0, 0, 0, 0};
    const int64_t row[] = {0, 3};
    const struct tr_op_lstm_forward forward = {.examples = 3, .hidden = 4, .offset = offset};
    struct tr_op_lstm_backward_weights weights = {
        .examples = 3, .hidden = 4, .offset = offset, .cut = {.count = 1, .row = row}};
    struct tr_cost_key key, other;
    tr_cost_key_of(TR_OPERATION_lstm_forward, &forward, true, &key);
    assert_int_equal(key.size, 9);
    tr_cost_key_of(TR_OPERATION_lstm_forward, &forward, false, &key);
    assert_int_equal(key.size, 3);
    tr_cost_key_of(TR_OPERATION_lstm_backward_weights, &weights, true, &key);
    assert_int_equal(key.size, 9);
    weights.examples = 2; /* is no part of the shape */
    tr_cost_key_of(TR_OPERATION_lstm_backward_weights, &weights, true, &other);
    assert_int_equal(other.size, 2);
    other.size = key.size;
    assert_memory_equal(&key, &other, sizeof key);
    weights.examples = 3;
    weights.offset = none; /* as where they were not copied */
    tr_cost_key_of(TR_OPERATION_lstm_backward_weights, &weights, true, &key);
    assert_int_equal(key.size, 3);
}

/* Memory and steps do not matter, what decides the time does. */
static void keys_know_what_matters(void **state)
{
    (void)state;
    float a, b;
    const int64_t row[] = {0, 3, 8}, other_row[] = {0, 1, 8};
    const int32_t bound[] = {0, 2};
    struct tr_op_conv_backward_weights op = {
        .in_c = 3, .out_c = 8, .x = &a, .cut = {.count = 2, .row = row, .nodes = 1, .bound = bound}};
    struct tr_cost_key one, two;
    tr_cost_key_of(TR_OPERATION_conv_backward_weights, &op, false, &one);
    assert_int_equal(one.size, 8);
    op.x = &b;
    op.cut.row = other_row;
    tr_cost_key_of(TR_OPERATION_conv_backward_weights, &op, false, &two);
    assert_memory_equal(&one, &two, sizeof one);
    op.window.kernel_h = 5;
    tr_cost_key_of(TR_OPERATION_conv_backward_weights, &op, false, &two);
    assert_memory_not_equal(&one, &two, sizeof one);
    struct tr_op_dense_backward_weights weights = {
        .in = 0, .out = 7, .db = &b, .cut = {.count = 2, .row = row, .nodes = 1, .bound = bound}};
    tr_cost_key_of(TR_OPERATION_dense_backward_weights, &weights, false, &one);
    near(one.volume, 7); /* a bias alone */
    struct tr_op_load_images images = {.rows = 4, .first_example = 5};
    tr_cost_key_of(TR_OPERATION_load_images, &images, false, &one);
    images.first_example = 9;
    tr_cost_key_of(TR_OPERATION_load_images, &images, false, &two);
    assert_memory_equal(&one, &two, sizeof one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_follow_lines),
        cmocka_unit_test(near_sizes_become_one),
        cmocka_unit_test(sizes_are_near_within_a_quarter),
        cmocka_unit_test(lines_do_not_fall),
        cmocka_unit_test(medians_are_of_the_last_steps),
        cmocka_unit_test(missing_memory_is_told),
        cmocka_unit_test(sequences_count_by_rows),
        cmocka_unit_test(keys_know_what_matters),
    };
    return cmocka_run_group_tests_name("plan.costs", tests, NULL, NULL);
}
