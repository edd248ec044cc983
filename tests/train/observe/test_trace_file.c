/* Files of traces: whose spans they are, what was left out of them, events of all ranks however many, and
 * what is told where the file cannot be written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/ranks.h"
#include "scratch.h"

#include "base/fail.h"
#include "train/observe/trace.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const struct tr_trace_clock same = {{0, 0}, {0, 0}};

static tr_timeline *timeline_make(int64_t spans)
{
    const struct tr_timeline_settings settings = {.spans = spans, .end_step = 100};
    tr_timeline *timeline;
    assert_int_equal(tr_timeline_create(&settings, &timeline), TR_OK);
    return timeline;
}

static void add(tr_timeline *timeline, const char *lane, int64_t step, enum tr_activity activity,
                const char *name, int64_t begin, int64_t end)
{
    const struct tr_span_here what = {timeline, activity, name, step};
    tr_timeline_add(&what, lane, begin, end);
}

static const json_t *read_events(const char *name, json_t **root)
{
    json_error_t error;
    *root = json_load_file(scratch_in(name), JSON_REJECT_DUPLICATES, &error);
    if (!*root) fail_msg("%s in line %d", error.text, error.line);
    assert_string_equal(json_string_value(json_object_get(*root, "displayTimeUnit")), "ms");
    return json_object_get(*root, "traceEvents");
}

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

static int number_of(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    assert_true(json_is_number(value));
    return (int)json_number_value(value);
}

/* The name that a process, or one of its lanes, has; NULL: none. */
static const char *name_of(const json_t *events, const char *kind, int rank, int lane)
{
    size_t i;
    json_t *event;
    json_array_foreach((json_t *)(uintptr_t)events, i, event)
    {
        if (strcmp(text_of(event, "ph"), "M") != 0 || strcmp(text_of(event, "name"), kind) != 0) continue;
        if (number_of(event, "pid") == rank && number_of(event, "tid") == lane)
            return json_string_value(json_object_get(json_object_get(event, "args"), "name"));
    }
    return NULL;
}

static const json_t *span_of(const json_t *events, const char *name)
{
    size_t i;
    json_t *event;
    json_array_foreach((json_t *)(uintptr_t)events, i, event)
    {
        if (strcmp(text_of(event, "ph"), "X") == 0 && strcmp(text_of(event, "name"), name) == 0) return event;
    }
    return NULL;
}

static void expect_span(const json_t *events, const char *name, int lane, const char *category, int step,
                        int about)
{
    const json_t *event = span_of(events, name);
    if (!event) fail_msg("there is no span \"%s\"", name);
    const json_t *facts = json_object_get(event, "args"), *rank = json_object_get(facts, "for rank");
    assert_int_equal(number_of(event, "tid"), lane);
    assert_string_equal(text_of(event, "cat"), category);
    assert_int_equal(number_of(facts, "step"), step);
    assert_int_equal(rank ? number_of(facts, "for rank") : -1, about);
}

static void spans_have_their_places(void **state)
{
    (void)state;
    json_t *root;
    bool whole = false;
    tr_timeline *timeline = timeline_make(3);
    tr_timeline_enter(timeline, "main");
    tr_timeline_step(4);
    tr_span_begin(TR_ACTIVITY_WAITING, "for \"others\"");
    tr_span_end_about(0);
    tr_span_begin(TR_ACTIVITY_COMMUNICATION, "nobody");
    tr_span_end();
    tr_span_begin(TR_ACTIVITY_FORWARD, "third");
    tr_span_end();
    for (int i = 0; i < 2; i++) {
        tr_span_begin(TR_ACTIVITY_FORWARD, "later");
        tr_span_end();
    }
    tr_timeline_leave();
    add(timeline, "reader", 6, TR_ACTIVITY_INPUT, "batch", 1234567, 2345678);
    tr_timeline_close(timeline);
    assert_int_equal(tr_trace_write(timeline, &same, NULL, scratch_in("one.json"), &whole), TR_OK);
    assert_true(whole);
    const json_t *events = read_events("one.json", &root), *batch = span_of(events, "batch");
    assert_string_equal(name_of(events, "process_name", 0, 0), "rank 0");
    assert_string_equal(name_of(events, "thread_name", 0, 0), "main (2 later spans left out)");
    assert_string_equal(name_of(events, "thread_name", 0, 1), "reader");
    assert_null(name_of(events, "thread_name", 0, 2));
    expect_span(events, "for \"others\"", 0, "waiting", 5, 0);
    expect_span(events, "nobody", 0, "communication", 5, -1);
    expect_span(events, "third", 0, "forward", 5, -1);
    expect_span(events, "batch", 1, "input", 7, -1);
    assert_null(span_of(events, "later"));
    /* Microseconds, with the nanoseconds behind the point. */
    assert_float_equal(json_number_value(json_object_get(batch, "ts")), 1234.567, 1e-9);
    assert_float_equal(json_number_value(json_object_get(batch, "dur")), 1111.111, 1e-9);
    json_decref(root);
    tr_timeline_destroy(&timeline);
}

/* ---- ranks ---- */

#define SIZE 3
static int spans_of_rank(int rank)
{
    return rank == 1 ? 3000 : rank; /* many times what a message holds, or a few */
}

static const char *where; /* the file */
static bool writes;       /* it can be written */

static const char *write_together(tr_comm *comm)
{
    const int rank = tr_comm_rank(comm);
    char name[64];
    bool whole = !writes;
    tr_timeline *timeline = timeline_make(10000);
    for (int i = 0; i < spans_of_rank(rank); i++) {
        snprintf(name, sizeof name, "span %d of rank %d", i, rank);
        add(timeline, "main", 0, TR_ACTIVITY_FORWARD, name, 10 * i, 10 * i + 5);
    }
    tr_timeline_close(timeline);
    tr_status status = tr_trace_write(timeline, &same, comm, where, &whole);
    tr_timeline_destroy(&timeline);
    if (whole != writes) return "it is written, or it is not";
    if (status == TR_OK) return writes || rank > 0 ? NULL : "a failure was not told";
    return rank == 0 && !writes && strstr(tr_error_message(), "missing") ? NULL : tr_error_message();
}

static void all_events_are_in_the_file(void **state)
{
    (void)state;
    static const int host[SIZE] = {0, 0, 1};
    json_t *root;
    int found[SIZE] = {0}, rank, number;
    size_t i;
    json_t *event;
    where = scratch_in("all.json");
    writes = true;
    ranks_run(SIZE, host, &(struct tr_comm_settings)TR_COMM_SETTINGS_INIT, write_together);
    const json_t *events = read_events("all.json", &root);
    json_array_foreach((json_t *)(uintptr_t)events, i, event)
    {
        if (strcmp(text_of(event, "ph"), "X") != 0) continue;
        assert_int_equal(sscanf(text_of(event, "name"), "span %d of rank %d", &number, &rank), 2);
        assert_int_equal(number, found[rank]++); /* each rank's in their order */
        assert_int_equal(number_of(event, "pid"), rank);
    }
    for (int r = 0; r < SIZE; r++) {
        char name[64];
        assert_int_equal(found[r], spans_of_rank(r));
        snprintf(name, sizeof name, "rank %d on thread-host-%d", r, host[r]);
        assert_string_equal(name_of(events, "process_name", r, 0), name);
    }
    json_decref(root);
}

static void nobody_waits_for_a_file_that_cannot_be_written(void **state)
{
    (void)state;
    where = scratch_in("missing/all.json");
    writes = false;
    ranks_run(SIZE, NULL, &(struct tr_comm_settings)TR_COMM_SETTINGS_INIT, write_together);
}

static const char *write_own(tr_comm *comm)
{
    const int rank = tr_comm_rank(comm);
    tr_timeline *timeline = timeline_make(10);
    add(timeline, "main", 0, TR_ACTIVITY_UPDATE, rank ? "another" : "the root's", 0, 5);
    tr_timeline_close(timeline);
    tr_status status = tr_trace_write_own(timeline, &same, comm, where);
    tr_timeline_destroy(&timeline);
    if (writes || rank > 0) return status == TR_OK ? NULL : tr_error_message();
    return status != TR_OK ? NULL : "a failure was not told";
}

/* Without the others, the root writes what it has. */
static void the_root_writes_its_own(void **state)
{
    (void)state;
    json_t *root;
    where = scratch_in("own.json");
    writes = true;
    ranks_run(2, NULL, &(struct tr_comm_settings)TR_COMM_SETTINGS_INIT, write_own);
    const json_t *events = read_events("own.json", &root);
    assert_non_null(span_of(events, "the root's"));
    assert_null(span_of(events, "another"));
    assert_string_equal(name_of(events, "process_name", 0, 0), "rank 0 on thread-host-0");
    json_decref(root);
    where = scratch_in("missing/own.json");
    writes = false;
    ranks_run(2, NULL, &(struct tr_comm_settings)TR_COMM_SETTINGS_INIT, write_own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_have_their_places),
        cmocka_unit_test(all_events_are_in_the_file),
        cmocka_unit_test(nobody_waits_for_a_file_that_cannot_be_written),
        cmocka_unit_test(the_root_writes_its_own),
    };
    return cmocka_run_group_tests_name("train.trace_file", tests, scratch_place_make, scratch_place_remove);
}
