/* Devices of plans: one measures what operations take while it computes what its inner device does; the other
 * one computes nothing, and spends what was measured.
 */
#include "plan/costs.h"

#include "base/alloc.h"
#include "refuse.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

static struct tr_cost_key key_of(int64_t count)
{
    const struct tr_op_fill fill = {count, 0, NULL};
    struct tr_cost_key key;
    tr_cost_key_of(TR_OPERATION_fill, &fill, true, &key);
    return key;
}

/* ---- measuring ---- */

enum { FLOATS = 1000 };

static void measured_operations_compute(void **state)
{
    static float numbers[FLOATS], back[FLOATS];
    tr_device *inner, *device;
    tr_costs *costs;
    void *memory;
    (void)state;
    must(tr_device_create("cpu", 1, NULL, &inner));
    must(tr_costs_create(&costs));
    must(tr_timing_device_create(inner, costs, true, &device));
    assert_string_equal(device->class->name, inner->class->name);
    assert_int_equal(device->threads, inner->threads);
    assert_true(tr_costs_reads_rows(costs));
    must(tr_device_alloc(device, 2 * sizeof numbers, &memory));
    float *at = memory;
    for (int i = 0; i < FLOATS; i++) numbers[i] = (float)i;
    must(tr_device_to_device(device, at, numbers, sizeof numbers));
    struct tr_op_scale twice = {FLOATS, 2, at, at + FLOATS};
    struct tr_op_add sum = {FLOATS, at, at + FLOATS, at};
    must(tr_device_scale(device, &twice)); /* nothing is noted before it is wanted */
    assert_int_equal(tr_costs_count(costs), 0);
    tr_timing_device_enable(device, true);
    must(tr_device_scale(device, &twice));
    must(tr_device_add(device, &sum));
    tr_timing_device_enable(device, false);
    twice.count = 10;
    must(tr_device_scale(device, &twice));
    must(tr_device_to_host(device, back, at, sizeof back));
    must(tr_device_wait(device));
    for (int i = 0; i < FLOATS; i++) assert_true(back[i] == 3 * numbers[i]);
    tr_costs_settle(costs);
    assert_int_equal(tr_costs_count(costs), 2);
    assert_true(tr_costs_know(costs, TR_OPERATION_scale) && tr_costs_know(costs, TR_OPERATION_add));
    assert_false(tr_costs_know(costs, TR_OPERATION_fill));
    assert_false(tr_costs_know_fusions(costs));
    tr_device_free(device, memory);
    tr_device_destroy(&device);
    tr_costs_destroy(&costs);
    tr_device_destroy(&inner);
}

/* With fusions, those of the inner device, or without all of them. */
static void fusions_may_be_left_out(void **state)
{
    (void)state;
    tr_device *inner, *device;
    must(tr_device_create("cpu", 1, NULL, &inner));
    for (int fuses = 0; fuses < 2; fuses++) {
        must(tr_timing_device_create(inner, NULL, fuses, &device));
#define CHECK(op) assert_int_equal(!device->class->op, !(fuses && inner->class->op));
        TR_DEVICE_FUSIONS(CHECK)
#undef CHECK
#define CHECK(op) assert_int_equal(!device->class->op, !inner->class->op);
        TR_DEVICE_CORE_OPS(CHECK)
#undef CHECK
        tr_device_destroy(&device);
    }
    tr_device_destroy(&inner);
}

/* ---- pretending ---- */

static double spent;
static tr_status spend(void *user, double seconds)
{
    *(double *)user += seconds;
    return seconds < 1000 ? TR_OK : TR_EPEER;
}

/* 1 s for every 100 floats; with more threads proportionally less, whatever it was made like. */
static void pretended_operations_take_what_was_measured(void **state)
{
    static const struct {
        int threads;
        double seconds;
    } likes[] = {{2, 8}, {4, 4}, {8, 2}, {1, 16}};
    const struct tr_cost_key key = key_of(100);
    struct tr_op_fill fill = {800, 7, NULL};
    float numbers[2] = {1, 2}, copies[2] = {0};
    tr_device *device, *other, *third;
    tr_costs *costs;
    void *memory;
    (void)state;
    must(tr_costs_create(&costs));
    must(tr_costs_add(costs, &key, 1));
    tr_costs_settle(costs);
    must(tr_virtual_device_create(costs, 2, spend, &spent, &device));
    assert_int_equal(device->threads, 2);
    assert_string_equal(device->description, "virtual (2 threads)");
    assert_string_equal(device->name, "virtual");
    spent = 0;
    must(tr_device_fill(device, &fill));
    assert_true(fabs(spent - 8) < 1e-9);
    fill.count = 100000;
    assert_int_equal(tr_device_fill(device, &fill), TR_EPEER); /* what spends says so */
    fill.count = 800;
    /* Of other operations nothing is known; the device has no fusions that were not measured. */
    const struct tr_op_scale scale = {800, 1, NULL, NULL};
    spent = 0;
    must(tr_device_scale(device, &scale));
    assert_true(spent == 0);
#define CHECK(op) assert_null(device->class->op);
    TR_DEVICE_FUSIONS(CHECK)
#undef CHECK
    for (size_t i = 0; i < sizeof likes / sizeof likes[0]; i++) {
        must(tr_device_create_like(device, 4, &other));
        must(tr_device_create_like(other, likes[i].threads, &third));
        assert_int_equal(third->threads, likes[i].threads);
        spent = 0;
        must(tr_device_fill(third, &fill));
        assert_true(fabs(spent - likes[i].seconds) < 1e-9);
        tr_device_destroy(&third);
        tr_device_destroy(&other);
    }
    /* Memory is there, and small data are copied, since what operations take may depend on them. */
    must(tr_device_alloc(device, sizeof numbers, &memory));
    must(tr_device_to_device(device, memory, numbers, sizeof numbers));
    must(tr_device_to_host(device, copies, memory, sizeof copies));
    must(tr_device_wait(device));
    assert_memory_equal(copies, numbers, sizeof copies);
    tr_device_free(device, memory);
    tr_device_destroy(&device);
    tr_costs_destroy(&costs);
}

static void missing_memory_is_told(void **state)
{
    tr_device *inner, *device;
    tr_costs *costs;
    (void)state;
    must(tr_device_create("cpu", 1, NULL, &inner));
    must(tr_costs_create(&costs));
    for (int kind = 0; kind < 2; kind++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(0);
        const tr_status status = kind == 0 ? tr_timing_device_create(inner, costs, true, &device)
                                           : tr_virtual_device_create(costs, 1, spend, &spent, &device);
        assert_false(refuse_end());
        assert_int_equal(status, TR_ENOMEM);
        assert_null(device);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_costs_destroy(&costs);
    tr_device_destroy(&inner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measured_operations_compute),
        cmocka_unit_test(fusions_may_be_left_out),
        cmocka_unit_test(pretended_operations_take_what_was_measured),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("plan.devices", tests, NULL, NULL);
}
