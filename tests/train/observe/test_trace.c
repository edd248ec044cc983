/* Traces of hosts whose clocks differ: how far a clock is ahead is measured by the quickest exchange of
 * messages, and spans stand in the file at the root's times. The clocks are the test's own, so that all times
 * are known.
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
#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Ranks 0 and 1 run on one host and rank 2 on another, whose clock is ahead by these nanoseconds when the
   clocks are compared: in between it runs faster. */
static const int host[] = {0, 0, 1};
static const int64_t begins[] = {1000000, 3000000};
static const int64_t ahead[] = {7000000, 7002000};

/* Exchange i of a comparison begins at begins[moment] + 1000 * i. One is the quickest: it takes 30 ns to the
   root and 10 ns back. The others are slower, and their halves differ more. */
#define QUICKEST 5
static atomic_int calls; /* of the clock, in the exchanges of a comparison: rank 2, the root, rank 2, ... */
static atomic_int moment;
static _Thread_local bool apart, begun;

int64_t __wrap_tr_timeline_clock(void);
int64_t __wrap_tr_timeline_clock(void)
{
    const int64_t own = apart ? ahead[moment] : 0;
    if (!begun) {
        begun = true;
        return begins[moment] - 1000 + own;
    }
    const int call = atomic_fetch_add(&calls, 1), exchange = call / 3;
    const int64_t there = exchange == QUICKEST ? 30 : 400 - 10 * exchange,
                  back = exchange == QUICKEST ? 10 : 50;
    const int64_t after[] = {0, there, there + back};
    return begins[moment] + 1000 * exchange + after[call % 3] + own;
}

static bool meet(tr_comm *comm)
{
    tr_ticket *ticket = NULL;
    return tr_comm_barrier(comm, &ticket) == TR_OK && tr_comm_wait(comm, &ticket) == TR_OK;
}

static const char *compare(tr_comm *comm, int number, struct tr_trace_clock *clock)
{
    if (!meet(comm)) return tr_error_message();
    if (tr_comm_rank(comm) == 0) {
        moment = number;
        calls = 0;
    }
    begun = false;
    if (!meet(comm)) return tr_error_message();
    return tr_trace_compare_clocks(comm, number, clock) == TR_OK ? NULL : tr_error_message();
}

/* Spans in a rank's own time, and in that of the root. Rank 2 measured itself 7,000,000 - 10 ns ahead at
   8,005,020 and 7,002,000 - 10 ns at 10,007,020: the halves of its exchanges differ by 20 ns. Its clock gains
   1,000 ns in 1,001,000 of its own. */
static const struct {
    int rank;
    const char *name;
    int64_t begin, end;
    double microseconds, long_for;
} spans[] = {
    {0, "of the root", 2000000, 2400250, 2000, 400.25}, {1, "of its host", 2000500, 2400500, 2000.5, 400},
    {2, "between", 8005020, 9006020, 1005.03, 1000},    {2, "later", 10007020, 11008020, 3005.03, 1000},
    {2, "earlier", 7004020, 8005020, 5.03, 1000},
};
#define SPANS (sizeof spans / sizeof spans[0])

static const char *record(tr_comm *comm)
{
    const struct tr_timeline_settings settings = {.spans = SPANS, .end_step = 1};
    struct tr_trace_clock clock = {{0}, {0}};
    const int rank = tr_comm_rank(comm);
    tr_timeline *timeline;
    bool whole = false;
    char path[SCRATCH_PATH];
    apart = rank == 2;
    for (int i = 0; i < 2; i++) {
        const char *wrong = compare(comm, i, &clock);
        if (wrong) return wrong;
        if (rank == 1 && clock.ahead[i] != 0) return "a clock of the root's host was compared";
    }
    if (tr_timeline_create(&settings, &timeline) != TR_OK) return tr_error_message();
    for (size_t i = 0; i < SPANS; i++) {
        const struct tr_span_here what = {timeline, TR_ACTIVITY_FORWARD, spans[i].name, 0};
        if (spans[i].rank == rank) tr_timeline_add(&what, "compute", spans[i].begin, spans[i].end);
    }
    tr_timeline_close(timeline);
    tr_status status =
        tr_trace_write(timeline, &clock, comm, scratch_join(path, scratch_place, "trace.json"), &whole);
    tr_timeline_destroy(&timeline);
    return status != TR_OK ? tr_error_message() : whole ? NULL : "not written";
}

static double number_of(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void spans_stand_at_the_times_of_the_root(void **state)
{
    (void)state;
    const struct tr_comm_settings settings = TR_COMM_SETTINGS_INIT;
    char path[SCRATCH_PATH];
    json_error_t error;
    ranks_run(3, host, &settings, record);
    json_t *root = json_load_file(scratch_join(path, scratch_place, "trace.json"), 0, &error), *event;
    if (!root) fail_msg("%s in line %d", error.text, error.line);
    size_t at, found = 0;
    json_array_foreach(json_object_get(root, "traceEvents"), at, event)
    {
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0) continue;
        for (size_t i = 0; i < SPANS; i++) {
            if (strcmp(json_string_value(json_object_get(event, "name")), spans[i].name) != 0) continue;
            const double begin = number_of(event, "ts"), takes = number_of(event, "dur");
            if (fabs(begin - spans[i].microseconds) > 1e-6 || fabs(takes - spans[i].long_for) > 1e-6)
                fail_msg("\"%s\" at %.3f for %.3f, expected at %.3f for %.3f", spans[i].name, begin, takes,
                         spans[i].microseconds, spans[i].long_for);
            assert_int_equal((int)number_of(event, "pid"), spans[i].rank);
            found++;
        }
    }
    assert_int_equal(found, SPANS);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(spans_stand_at_the_times_of_the_root)};
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
