/* Spans nest, add up, and are kept as the settings say. */
#include "base/threads/timeline.h"

#include "refuse.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct tr_timeline_settings all = {1000, 0, INT64_MAX, true};

static const struct tr_span_total *find_total(tr_lane *lane, const char *name)
{
    int count;
    const struct tr_span_total *totals = tr_lane_totals(lane, &count);
    for (int i = 0; i < count; i++)
        if (strcmp(tr_lane_text(lane, totals[i].name), name) == 0) return &totals[i];
    return NULL;
}

static void own_times_add_up(void **state)
{
    (void)state;
    tr_timeline *timeline;
    assert_int_equal(tr_timeline_create(&all, &timeline), TR_OK);
    tr_timeline_enter(timeline, "main");
    assert_ptr_equal(tr_timeline_current(), timeline);
    for (int i = 0; i < 3; i++) {
        tr_timeline_step(i);
        tr_span_begin(TR_ACTIVITY_STEP, "step");
        tr_span_begin(TR_ACTIVITY_FORWARD, "conv1");
        tr_span_begin(TR_ACTIVITY_WAITING, "gradient");
        tr_span_end_about(2);
        tr_span_end();
        tr_span_end();
    }
    tr_timeline_leave();
    assert_null(tr_timeline_current());
    assert_int_equal(tr_timeline_lanes(timeline), 1);
    tr_lane *lane = tr_timeline_lane(timeline, 0);
    int64_t count;
    const struct tr_span *spans = tr_lane_spans(lane, &count);
    assert_int_equal(count, 9);
    int64_t waited = 0, stepped = 0;
    /* Children end before their parents and lie within them. */
    for (int i = 0; i < 3; i++) {
        const struct tr_span *wait = &spans[3 * i], *forward = wait + 1, *step = wait + 2;
        assert_int_equal(wait->about, 2);
        assert_int_equal(step->about, -1);
        assert_int_equal(step->step, i);
        assert_true(step->begin <= forward->begin && forward->begin <= wait->begin);
        assert_true(wait->begin <= wait->end && wait->end <= forward->end && forward->end <= step->end);
        waited += wait->end - wait->begin;
        stepped += step->end - step->begin;
    }
    const struct tr_span_total *step = find_total(lane, "step"), *forward = find_total(lane, "conv1"),
                               *wait = find_total(lane, "gradient");
    assert_int_equal(step->count, 3);
    assert_int_equal(wait->about, 2);
    assert_int_equal(step->whole, step->own + forward->own + wait->own);
    assert_int_equal(forward->whole, forward->own + wait->whole);
    assert_int_equal(wait->whole, waited);
    assert_int_equal(step->whole, stepped);
    tr_timeline_destroy(&timeline);
    assert_null(timeline);
}

/* Waits are kept as one if they follow each other at once, and are for the same. */
static void waits_that_are_one_wait(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum tr_activity activity;
        int64_t begin, end;
        int64_t count; /* spans that there are then */
    } cases[] = {
        {"a", TR_ACTIVITY_WAITING, 100, 200, 1},         {"a", TR_ACTIVITY_WAITING, 201, 300, 1},
        {"b", TR_ACTIVITY_WAITING, 301, 400, 2},         {"b", TR_ACTIVITY_COMMUNICATION, 401, 500, 3},
        {"b", TR_ACTIVITY_COMMUNICATION, 501, 600, 4},   {"b", TR_ACTIVITY_WAITING, 601, 700, 5},
        {"b", TR_ACTIVITY_WAITING, 1000700, 1000701, 6},
    };
    tr_timeline *timeline;
    int64_t count;
    assert_int_equal(tr_timeline_create(&all, &timeline), TR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_span_here here = {timeline, cases[i].activity, cases[i].name, 0};
        tr_timeline_add(&here, "device", cases[i].begin, cases[i].end);
        const struct tr_span *spans = tr_lane_spans(tr_timeline_lane(timeline, 0), &count);
        assert_int_equal(count, cases[i].count);
        assert_int_equal(spans[count - 1].end, cases[i].end);
    }
    /* The rank that was waited for is part of that. */
    tr_timeline_enter(timeline, "main");
    for (int rank = 0; rank < 3; rank++) {
        tr_span_begin(TR_ACTIVITY_WAITING, "a");
        tr_span_end_about(rank);
    }
    tr_timeline_enter(timeline, "other"); /* a thread has one lane */
    tr_span_begin(TR_ACTIVITY_WAITING, "c");
    tr_span_end();
    tr_timeline_leave();
    assert_int_equal(tr_timeline_lanes(timeline), 2);
    const struct tr_span *spans = tr_lane_spans(tr_timeline_lane(timeline, 1), &count);
    assert_int_equal(count, 4);
    for (int rank = 0; rank < 3; rank++) assert_int_equal(spans[rank].about, rank);
    tr_timeline_destroy(&timeline);
}

/* Waiting for one rank is another sum than waiting for the next, also where the table is half full; once it
   is full, the sums that it has go on. */
static void sums_are_apart_by_what_they_are_about(void **state)
{
    (void)state;
    enum { NAMES = 20, ABOUT = 200, MANY = 500 };
    tr_timeline *timeline;
    int count, met[ABOUT] = {0};
    assert_int_equal(tr_timeline_create(&all, &timeline), TR_OK);
    tr_timeline_enter(timeline, "main");
    for (int i = 0; i < ABOUT; i++)
        for (int k = 0; k < NAMES * (1 + i % 2); k++) {
            char name[16];
            snprintf(name, sizeof name, "buffer %d", k % NAMES);
            tr_span_begin(TR_ACTIVITY_WAITING, name);
            tr_span_end_about(i);
        }
    tr_timeline_leave();
    const struct tr_span_total *totals = tr_lane_totals(tr_timeline_lane(timeline, 0), &count);
    assert_int_equal(count, NAMES * ABOUT);
    for (int i = 0; i < count; i++) {
        assert_in_range(totals[i].about, 0, ABOUT - 1);
        assert_int_equal(totals[i].count, 1 + totals[i].about % 2);
        met[totals[i].about]++;
    }
    for (int i = 0; i < ABOUT; i++) assert_int_equal(met[i], NAMES);
    tr_timeline_enter(timeline, "full");
    for (int i = 0; i < 2 * MANY; i++)
        for (int k = 0; k < NAMES; k++) {
            char name[24];
            snprintf(name, sizeof name, "buffer %d", k);
            tr_span_begin(TR_ACTIVITY_WAITING, name);
            tr_span_end_about(i % MANY);
        }
    tr_timeline_leave();
    totals = tr_lane_totals(tr_timeline_lane(timeline, 1), &count);
    assert_in_range(count, NAMES * ABOUT, NAMES * MANY - 1);
    for (int i = 0; i < count; i++) assert_int_equal(totals[i].count, 2);
    tr_timeline_destroy(&timeline);
}

static void threads_without_a_lane_record_nothing(void **state)
{
    (void)state;
    tr_span_begin(TR_ACTIVITY_STEP, "nothing");
    tr_span_end();
    tr_timeline_enter(NULL, "main");
    assert_null(tr_timeline_current());
}

static void spans_outside_the_steps_are_only_summed(void **state)
{
    (void)state;
    static const struct tr_timeline_settings some = {4, 2, 10, true};
    tr_timeline *timeline;
    assert_int_equal(tr_timeline_create(&some, &timeline), TR_OK);
    tr_timeline_enter(timeline, "main");
    for (int i = 0; i < 10; i++) {
        tr_timeline_step(i);
        tr_span_begin(TR_ACTIVITY_UPDATE, "update");
        tr_span_end();
    }
    tr_timeline_leave();
    tr_lane *lane = tr_timeline_lane(timeline, 0);
    int64_t count;
    const struct tr_span *spans = tr_lane_spans(lane, &count);
    assert_int_equal(count, 4);
    assert_int_equal(spans[0].step, 2);
    assert_int_equal(tr_lane_dropped(lane), 4);
    assert_int_equal(find_total(lane, "update")->count, 10);
    tr_timeline_destroy(&timeline);
}

static void record_steps(int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; i++) {
        tr_timeline_step(i);
        tr_span_begin(TR_ACTIVITY_UPDATE, "update");
        tr_span_end();
    }
}

static int64_t kept(tr_timeline *timeline)
{
    int64_t count;
    tr_lane_spans(tr_timeline_lane(timeline, 0), &count);
    return count;
}

static void without_sums_nothing_else_is_recorded(void **state)
{
    (void)state;
    static const struct tr_timeline_settings some = {1000, 2, 5, false};
    tr_timeline *timeline;
    int count;
    assert_int_equal(tr_timeline_create(&some, &timeline), TR_OK);
    tr_timeline_enter(timeline, "main");
    record_steps(0, 2);
    assert_string_equal(tr_lane_text(tr_timeline_lane(timeline, 0), 0), "?"); /* not even the name */
    record_steps(2, 100);
    assert_int_equal(kept(timeline), 3);
    tr_lane_totals(tr_timeline_lane(timeline, 0), &count);
    assert_int_equal(count, 0);
    /* A span that begins where nothing is recorded is not there, and does not disturb those around it. */
    tr_span_begin(TR_ACTIVITY_STEP, "outer");
    tr_timeline_step(3);
    tr_span_begin(TR_ACTIVITY_UPDATE, "inner");
    tr_span_end();
    tr_span_end();
    assert_int_equal(kept(timeline), 4);
    tr_timeline_leave();
    tr_timeline_destroy(&timeline);
}

static void a_closed_timeline_only_sums(void **state)
{
    (void)state;
    tr_timeline *timeline;
    assert_int_equal(tr_timeline_create(&all, &timeline), TR_OK);
    tr_timeline_enter(timeline, "main");
    record_steps(0, 3);
    tr_timeline_close(timeline);
    record_steps(3, 7);
    assert_int_equal(kept(timeline), 3);
    tr_timeline_freeze(timeline);
    record_steps(7, 9);
    tr_timeline_leave();
    assert_int_equal(kept(timeline), 3);
    assert_int_equal(find_total(tr_timeline_lane(timeline, 0), "update")->count, 7);
    tr_timeline_destroy(&timeline);
}

static void a_timeline_begins_where_its_run_does(void **state)
{
    (void)state;
    static const struct tr_timeline_settings some = {1000, 10, 20, false};
    static const int64_t begins[] = {0, 10, 15, 500, INT64_MAX - 5}, ends[] = {20, 20, 25, 510, INT64_MAX};
    for (int i = 0; i < 5; i++) {
        tr_timeline *timeline;
        assert_int_equal(tr_timeline_create(&some, &timeline), TR_OK);
        tr_timeline_enter(timeline, "main");
        tr_timeline_from(timeline, begins[i]);
        assert_int_equal(tr_timeline_end_step(timeline), ends[i]);
        record_steps(ends[i] - 30, ends[i]);
        assert_int_equal(kept(timeline), i == 4 ? 5 : 10);
        tr_timeline_leave();
        tr_timeline_destroy(&timeline);
    }
}

static void deep_spans_and_many_names_are_survived(void **state)
{
    (void)state;
    tr_timeline *timeline;
    assert_int_equal(tr_timeline_create(&all, &timeline), TR_OK);
    tr_timeline_enter(timeline, "main");
    for (int i = 0; i < 2 * TR_TIMELINE_DEPTH; i++) tr_span_begin(TR_ACTIVITY_STEP, "deep");
    struct tr_span_here here;
    assert_false(tr_span_here(&here)); /* so deep nothing is recorded */
    for (int i = 1; i < 2 * TR_TIMELINE_DEPTH; i++) tr_span_end();
    assert_true(tr_span_here(&here));
    for (int i = 0; i < 10000; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        tr_span_begin(TR_ACTIVITY_INPUT, name);
        tr_span_end();
    }
    tr_timeline_leave(); /* ends the rest */
    assert_int_equal(find_total(tr_timeline_lane(timeline, 0), "deep")->count, TR_TIMELINE_DEPTH);
    /* Names beyond 4095 share one. */
    assert_int_equal(find_total(tr_timeline_lane(timeline, 0), "n4000")->count, 1);
    assert_null(find_total(tr_timeline_lane(timeline, 0), "n4096"));
    assert_int_equal(find_total(tr_timeline_lane(timeline, 0), "...")->count, 10000 - 4094);
    tr_timeline_destroy(&timeline);
}

static void *record_elsewhere(void *user)
{
    tr_timeline_enter(user, "reader");
    tr_span_begin(TR_ACTIVITY_INPUT, "batch");
    tr_span_end();
    tr_timeline_leave();
    return NULL;
}

static void threads_have_lanes_of_their_own(void **state)
{
    (void)state;
    tr_timeline *timeline;
    assert_int_equal(tr_timeline_create(&all, &timeline), TR_OK);
    tr_timeline_enter(timeline, "main");
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, record_elsewhere, timeline), 0);
        pthread_join(thread, NULL);
    }
    tr_timeline_leave();
    /* The second reader took up the first one's lane. */
    assert_int_equal(tr_timeline_lanes(timeline), 2);
    assert_string_equal(tr_lane_name(tr_timeline_lane(timeline, 1)), "reader");
    assert_int_equal(find_total(tr_timeline_lane(timeline, 1), "batch")->count, 2);
    tr_timeline_destroy(&timeline);
}

/* What a thread asked for is told of by others, in a lane of its own, with the activity and the name of the
   span in which it was asked for; within an evaluation that is one. */
static void spans_of_devices_are_added(void **state)
{
    (void)state;
    tr_timeline *timeline;
    struct tr_span_here here, evaluated;
    assert_false(tr_span_here(&here)); /* no lane */
    assert_int_equal(tr_timeline_create(&all, &timeline), TR_OK);
    tr_timeline_enter(timeline, "main");
    assert_false(tr_span_here(&here)); /* no span */
    tr_timeline_step(5);
    tr_span_begin(TR_ACTIVITY_STEP, "step");
    tr_span_begin(TR_ACTIVITY_BACKWARD, "conv1");
    assert_true(tr_span_here(&here));
    tr_span_end();
    tr_span_begin(TR_ACTIVITY_EVALUATION, "test");
    tr_span_begin(TR_ACTIVITY_FORWARD, "conv1");
    assert_true(tr_span_here(&evaluated));
    tr_span_end();
    tr_span_end();
    tr_span_end();
    tr_timeline_step(6);
    tr_timeline_add(&here, "device", 100, 130);
    tr_timeline_add(&evaluated, "device", 130, 131);
    tr_timeline_add(&here, "device", 131, 141);
    tr_timeline_leave();
    assert_int_equal(tr_timeline_lanes(timeline), 2);
    tr_lane *lane = tr_timeline_lane(timeline, 1);
    assert_string_equal(tr_lane_name(lane), "device");
    int64_t count;
    int totals;
    const struct tr_span *span = tr_lane_spans(lane, &count);
    const struct tr_span_total *total = tr_lane_totals(lane, &totals);
    assert_int_equal(count, 3);
    assert_int_equal(totals, 2);
    assert_true(span[0].begin == 100 && span[0].end == 130 && span[0].step == 5);
    assert_true(span[0].about == -1 && total[0].about == -1); /* no rank was waited for */
    assert_int_equal(span[1].activity, TR_ACTIVITY_EVALUATION);
    assert_string_equal(tr_lane_text(lane, span[1].name), "conv1");
    assert_int_equal(total[0].activity, TR_ACTIVITY_BACKWARD);
    assert_true(total[0].count == 2 && total[0].whole == 40 && total[0].own == 40);
    tr_timeline_freeze(timeline);
    tr_timeline_add(&here, "device", 200, 300);
    tr_lane_spans(lane, &count);
    assert_int_equal(count, 3);
    tr_timeline_destroy(&timeline);
}

/* Without a lane or without memory a thread goes on unrecorded. */
static void lanes_are_limited(void **state)
{
    (void)state;
    tr_timeline *timeline;
    char name[24];
    struct tr_span_here here;
    const int64_t live = tr_alloc_live();
    refuse_begin(0);
    assert_int_equal(tr_timeline_create(&all, &timeline), TR_ENOMEM);
    assert_false(refuse_end());
    assert_int_equal(tr_timeline_create(&all, &timeline), TR_OK);
    refuse_begin(0);
    tr_timeline_enter(timeline, "no memory");
    assert_false(refuse_end());
    assert_null(tr_timeline_current());
    for (int i = 0; i < 66; i++) {
        snprintf(name, sizeof name, "thread %d", i);
        tr_timeline_enter(timeline, name);
        assert_int_equal(tr_timeline_current() != NULL, i < 64);
        tr_span_begin(TR_ACTIVITY_STEP, "step");
        assert_int_equal(tr_span_here(&here), i < 64);
        tr_span_end();
        tr_timeline_leave();
    }
    assert_int_equal(tr_timeline_lanes(timeline), 64);
    tr_timeline_enter(timeline, "thread 7");
    tr_span_begin(TR_ACTIVITY_STEP, "step");
    assert_true(tr_span_here(&here));
    tr_timeline_add(&here, "device", 1, 2);
    assert_int_equal(tr_timeline_lanes(timeline), 64);
    tr_span_end();
    /* What has no memory for its name has none. */
    refuse_begin(0);
    tr_span_begin(TR_ACTIVITY_STEP, "another");
    assert_false(refuse_end());
    assert_false(tr_span_here(&here));
    tr_span_end();
    tr_timeline_leave();
    assert_int_equal(find_total(tr_timeline_lane(timeline, 7), "step")->count, 2);
    assert_int_equal(find_total(tr_timeline_lane(timeline, 7), "?")->count, 1);
    tr_timeline_destroy(&timeline);
    tr_timeline_destroy(&timeline);
    assert_int_equal(tr_alloc_live(), live);
}

static void the_end_holds_for_threads_that_come_later(void **state)
{
    (void)state;
    tr_timeline *timeline;
    int64_t count;
    int totals;
    struct tr_span_here here;
    assert_int_equal(tr_timeline_create(&all, &timeline), TR_OK);
    tr_timeline_close(timeline);
    tr_timeline_enter(timeline, "after closing");
    record_steps(0, 3);
    tr_timeline_leave();
    assert_int_equal(kept(timeline), 0);
    assert_int_equal(find_total(tr_timeline_lane(timeline, 0), "update")->count, 3);
    tr_timeline_freeze(timeline);
    tr_timeline_enter(timeline, "after freezing");
    tr_span_begin(TR_ACTIVITY_STEP, "step");
    assert_false(tr_span_here(&here));
    tr_span_end();
    tr_timeline_leave();
    tr_lane_spans(tr_timeline_lane(timeline, 1), &count);
    assert_int_equal(count, 0);
    tr_lane_totals(tr_timeline_lane(timeline, 1), &totals);
    assert_int_equal(totals, 0);
    assert_string_equal(tr_lane_text(tr_timeline_lane(timeline, 1), 0), "?");
    tr_timeline_destroy(&timeline);
}

/* Waits for the same thing within 5 microseconds of each other are one, everything else is not. */
static void waits_are_joined(void **state)
{
    (void)state;
    static const struct {
        enum tr_activity activity;
        const char *name;
        int64_t begin, end;
        int count; /* of spans afterwards */
    } adds[] = {
        {TR_ACTIVITY_WAITING, "a", 100, 200, 1},     {TR_ACTIVITY_WAITING, "a", 5199, 6000, 1},
        {TR_ACTIVITY_WAITING, "a", 11000, 12000, 2}, {TR_ACTIVITY_WAITING, "b", 12000, 13000, 3},
        {TR_ACTIVITY_FORWARD, "b", 13000, 14000, 4}, {TR_ACTIVITY_FORWARD, "b", 14000, 15000, 5},
        {TR_ACTIVITY_WAITING, "b", 15000, 16000, 6},
    };
    tr_timeline *timeline;
    int64_t count;
    int totals;
    assert_int_equal(tr_timeline_create(&all, &timeline), TR_OK);
    for (size_t i = 0; i < sizeof adds / sizeof adds[0]; i++) {
        const struct tr_span_here what = {timeline, adds[i].activity, adds[i].name, 7};
        tr_timeline_add(&what, "device", adds[i].begin, adds[i].end);
        assert_int_equal(kept(timeline), adds[i].count);
    }
    const struct tr_span *spans = tr_lane_spans(tr_timeline_lane(timeline, 0), &count);
    assert_true(spans[0].begin == 100 && spans[0].end == 6000 && spans[0].step == 7);
    assert_true(spans[1].begin == 11000 && spans[1].end == 12000);
    const struct tr_span_total *total = tr_lane_totals(tr_timeline_lane(timeline, 0), &totals);
    assert_int_equal(totals, 3);
    assert_true(total[0].count == 3 && total[0].whole == 100 + 801 + 1000);
    tr_timeline_destroy(&timeline);
}

/* Operations are added up, of bytes the most counts; both go to the innermost span that is recorded. */
static void work_is_added_up(void **state)
{
    (void)state;
    tr_timeline *timeline;
    assert_int_equal(tr_timeline_create(&all, &timeline), TR_OK);
    tr_span_work(1, 1); /* no lane */
    tr_timeline_enter(timeline, "main");
    tr_span_work(1, 1); /* no span */
    tr_span_begin(TR_ACTIVITY_STEP, "outer");
    tr_span_work(0.5, 10);
    for (int i = 0; i < 2; i++) {
        tr_span_begin(TR_ACTIVITY_FORWARD, "inner");
        tr_span_work(100, 50 - 20 * i);
        tr_span_work(1000, 20);
        tr_span_end();
    }
    for (int i = 1; i < TR_TIMELINE_DEPTH; i++) tr_span_begin(TR_ACTIVITY_FORWARD, "deep");
    tr_span_work(7, 70);
    tr_span_begin(TR_ACTIVITY_FORWARD, "too deep");
    tr_span_work(1, 100);
    tr_timeline_leave();
    tr_lane *lane = tr_timeline_lane(timeline, 0);
    assert_true(find_total(lane, "outer")->work == 0.5 && find_total(lane, "outer")->bytes == 10);
    assert_true(find_total(lane, "inner")->work == 2200 && find_total(lane, "inner")->bytes == 50);
    assert_true(find_total(lane, "deep")->work == 7 && find_total(lane, "deep")->bytes == 70);
    assert_null(find_total(lane, "too deep"));
    tr_timeline_destroy(&timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_times_add_up),
        cmocka_unit_test(sums_are_apart_by_what_they_are_about),
        cmocka_unit_test(waits_that_are_one_wait),
        cmocka_unit_test(threads_without_a_lane_record_nothing),
        cmocka_unit_test(spans_outside_the_steps_are_only_summed),
        cmocka_unit_test(without_sums_nothing_else_is_recorded),
        cmocka_unit_test(a_closed_timeline_only_sums),
        cmocka_unit_test(a_timeline_begins_where_its_run_does),
        cmocka_unit_test(deep_spans_and_many_names_are_survived),
        cmocka_unit_test(threads_have_lanes_of_their_own),
        cmocka_unit_test(spans_of_devices_are_added),
        cmocka_unit_test(lanes_are_limited),
        cmocka_unit_test(the_end_holds_for_threads_that_come_later),
        cmocka_unit_test(waits_are_joined),
        cmocka_unit_test(work_is_added_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
