/* When a gpu device has done what it was asked, on an interface without a driver (host.h): marks that are
 * reached in their order, and times as spans of a timeline; and what stays when a call fails.
 */
#include "device/gpu/on_host.h"

#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

/* ---- order ---- */

static bool is_reached(tr_event event)
{
    bool there = false;
    assert_int_equal(tr_device_reached(device, event, &there), TR_OK);
    return there;
}

static void marks_are_reached_in_order(void **state)
{
    (void)state;
    tr_event mark[4];
    bool there;
    host.late = true;
    for (int i = 0; i < 4; i++) assert_int_equal(tr_device_record(device, &mark[i]), TR_OK);
    assert_int_equal(host.events, 4);
    for (int i = 0; i < 4; i++) assert_false(is_reached(mark[i]));
    assert_int_equal(tr_device_wait_for(device, mark[1]), TR_OK);
    assert_int_equal(host.waits, 1);
    assert_int_equal(host.events, 2); /* what is before it has been reached, too */
    assert_true(is_reached(mark[0]) && is_reached(mark[1]));
    assert_false(is_reached(mark[2]) || is_reached(mark[3]));
    assert_int_equal(tr_device_wait_for(device, mark[0]), TR_OK);
    assert_int_equal(tr_device_wait_for(device, mark[1]), TR_OK);
    assert_int_equal(host.waits, 1);
    fail_at("wait_for", 0);
    assert_int_equal(tr_device_wait_for(device, mark[2]), TR_EPEER);
    fail_at("reached", 0);
    assert_int_equal(tr_device_reached(device, mark[3], &there), TR_EPEER);
    fail_at("record", 0);
    const tr_event before = mark[0];
    assert_int_equal(tr_device_record(device, &mark[0]), TR_EPEER);
    host.fails = NULL;
    assert_int_equal(host.events, 2);
    assert_true(is_reached(mark[2])); /* by the wait that failed */
    assert_false(is_reached(mark[3]));
    assert_int_equal(tr_device_wait(device), TR_OK);
    assert_int_equal(host.events, 0);
    for (int i = 1; i < 4; i++) assert_true(is_reached(mark[i]));
    assert_true(is_reached(before));
    for (int64_t at = 0, done = 0; !done; at++) {
        refuse_begin(at);
        const tr_status status = tr_device_record(device, &mark[0]);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
    }
    assert_true(mark[0].number > mark[3].number);
    assert_false(is_reached(mark[0]));
    host.late = false;
    assert_int_equal(tr_device_record(device, &mark[1]), TR_OK);
    assert_false(is_reached(mark[1])); /* not before the one before it */
    fail_at("wait", 0);
    assert_int_equal(tr_device_wait(device), TR_EPEER);
    assert_message_has("wait failed");
}

/* ---- times ---- */

static void times_become_spans(void **state)
{
    (void)state;
    static const struct tr_timeline_settings all = {100, 0, INT64_MAX, true};
    tr_timeline *timeline;
    void *memory;
    float numbers[16];
    int64_t count;
    tr_device_destroy(&device);
    device = host_open(NULL, true);
    snprintf(device->name, sizeof device->name, "host:0");
    assert_true(device->timed);
    assert_int_equal(tr_timeline_create(&all, &timeline), TR_OK);
    assert_int_equal(tr_device_alloc(device, 64, &memory), TR_OK);
    const struct tr_op_fill fill = {16, 1, memory};
    tr_timeline_enter(timeline, "main");
    assert_int_equal(tr_device_fill(device, &fill), TR_OK); /* in no span */
    assert_int_equal(host.events, 0);
    for (int clock = 0; clock < 2; clock++) {
        /* A clock that is far ahead is known from the first commands; one that changes, anew. */
        host.ahead = clock ? -70000000000 : 5000000000;
        const int64_t before = tr_timeline_clock();
        tr_span_begin(TR_ACTIVITY_FORWARD, "layer");
        assert_int_equal(tr_device_fill(device, &fill), TR_OK);
        assert_int_equal(tr_device_to_host(device, numbers, memory, sizeof numbers), TR_OK);
        assert_int_equal(tr_device_to_device(device, memory, numbers, sizeof numbers), TR_OK);
        fail_at("launch", 0);
        assert_int_equal(tr_device_fill(device, &fill), TR_EPEER);
        host.fails = NULL;
        assert_int_equal(tr_device_to_host_beside(device, numbers, memory, sizeof numbers), TR_OK);
        tr_span_end();
        assert_int_equal(host.events, 4);
        assert_int_equal(tr_timeline_lanes(timeline), 1 + clock);
        assert_int_equal(tr_device_wait(device), TR_OK);
        const int64_t after = tr_timeline_clock();
        assert_int_equal(host.events, 0);
        assert_int_equal(tr_timeline_lanes(timeline), 2);
        tr_lane *lane = tr_timeline_lane(timeline, 1);
        assert_string_equal(tr_lane_name(lane), "host:0");
        const struct tr_span *span = tr_lane_spans(lane, &count);
        assert_int_equal(count, 4 * (clock + 1));
        for (int64_t i = 4 * clock; i < count; i++) {
            assert_int_equal(span[i].end - span[i].begin, 200);
            assert_string_equal(tr_lane_text(lane, span[i].name), "layer");
            assert_true(span[i].begin >= before && span[i].begin <= after + 100);
        }
    }
    /* What cannot be told is forgotten, and so is what nobody waits for. */
    for (int waits = 0; waits < 2; waits++) {
        tr_span_begin(TR_ACTIVITY_FORWARD, "layer");
        for (int i = 0; i < 3; i++) assert_int_equal(tr_device_fill(device, &fill), TR_OK);
        tr_span_end();
        if (waits) break;
        fail_at("times", 1);
        assert_int_equal(tr_device_wait(device), TR_EPEER);
        host.fails = NULL;
        assert_int_equal(host.events, 0);
    }
    refuse_begin(0);
    tr_span_begin(TR_ACTIVITY_FORWARD, "layer");
    tr_span_end();
    refuse_end();
    tr_device_free(device, memory);
    tr_timeline_leave();
    assert_int_equal(host.events, 3);
    tr_device_destroy(&device);
    assert_int_equal(host.events, 0);
    tr_lane_spans(tr_timeline_lane(timeline, 1), &count);
    assert_int_equal(count, 8);
    tr_timeline_destroy(&timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_HOST(marks_are_reached_in_order),
        ON_HOST(times_become_spans),
    };
    return cmocka_run_group_tests_name("times of a gpu", tests, NULL, NULL);
}
