/* Every scenario with ranks as threads: 1 to 8 of them, on one host and on several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "comm/class.h"
#include "support/comm_thread/thread.h"
#include "comm/ranks.h"

#include <string.h>

/* A rank that waits this long in a test waits for ever. */
static const struct tr_comm_settings settings = {.timeout = 30, .patience = 30};

static const struct scenario *find(const char *name)
{
    const struct scenario *scenario = scenarios;
    while (strcmp(scenario->name, name) != 0) scenario++;
    return scenario;
}

static void test_sizes(void **state)
{
    (void)state;
    int64_t live = tr_alloc_live();
    for (int size = 1; size <= RANKS_MOST; size++)
        for (const struct scenario *scenario = scenarios; scenario->name; scenario++) {
            ranks_run(size, NULL, &settings, scenario->run);
            if (tr_alloc_live() != live)
                fail_msg("%s on %d ranks leaves memory behind", scenario->name, size);
        }
}

/* Neighbours together, every other one, each alone, one apart: islands of all shapes, whose leaves need not
 * be neighbours. */
static void test_hosts(void **state)
{
    (void)state;
    static const int layout[][RANKS_MOST] = {
        {0, 0, 0, 0, 1, 1, 1, 1},
        {0, 1, 0, 1, 0, 1, 0, 1},
        {0, 1, 2, 3, 4, 5, 6, 7},
        {0, 0, 1, 0, 0, 2, 2, 0},
    };
    static const char *const names[] = {"window", "window_gather", "sums_in_window",
                                        "bytes",  "agree",         "parts"};
    for (size_t i = 0; i < sizeof layout / sizeof layout[0]; i++)
        for (int size = 2; size <= RANKS_MOST; size++)
            for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
                ranks_run(size, layout[i], &settings, find(names[k])->run);
}

static tr_status make_routed(enum tr_routing routing, int size, const int *host,
                             const struct tr_comm_settings *limits, tr_comm **out)
{
    tr_status status = tr_comm_thread_create(size, host, limits, out);
    for (int i = 0; i < size && status == TR_OK; i++) out[i]->routing = routing;
    return status;
}

static tr_status make_direct(int size, const int *host, const struct tr_comm_settings *limits, tr_comm **out)
{
    return make_routed(TR_ROUTING_DIRECT, size, host, limits, out);
}

static tr_status make_tree(int size, const int *host, const struct tr_comm_settings *limits, tr_comm **out)
{
    return make_routed(TR_ROUTING_TREE, size, host, limits, out);
}

/* Every scenario where all exchange with all, and where all goes in rounds, wherever there are two. */
static void test_routes(void **state)
{
    (void)state;
    int64_t live = tr_alloc_live();
    static const int layout[][RANKS_MOST] = {
        {0, 1, 2, 3, 4, 5, 6, 7}, {0, 0, 0, 1, 1, 2, 2, 2}, {0, 0, 1, 0, 0, 2, 2, 0}};
    static const char *const names[] = {"window_gather", "all_gather", "sums",  "sums_in_window",
                                        "all_reduce",    "buckets",    "apply", "bytes",
                                        "combine",       "parts"};
    for (size_t i = 0; i < sizeof layout / sizeof layout[0]; i++)
        for (int size = 2; size <= RANKS_MOST; size++)
            for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
                ranks_run_made(make_tree, size, layout[i], &settings, find(names[k])->run);
                if (i == 0) ranks_run_made(make_direct, size, layout[i], &settings, find(names[k])->run);
                if (tr_alloc_live() != live) fail_msg("%s on %d ranks leaves memory behind", names[k], size);
            }
}

/* A transport that has collectives of its own: all that the engine makes of messages elsewhere comes out the
   same. How many bytes messages carry is not its concern. */
static void test_own_collectives(void **state)
{
    (void)state;
    int64_t live = tr_alloc_live();
    static const int apart[RANKS_MOST] = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int size = 1; size <= RANKS_MOST; size++)
        for (const struct scenario *scenario = scenarios; scenario->name; scenario++) {
            if (strcmp(scenario->name, "bytes") == 0) continue;
            bool alone = size % 2 == 0 && !strstr(scenario->name, "window");
            ranks_run_made(tr_comm_thread_create_collective, size, alone ? apart : NULL, &settings,
                           scenario->run);
            if (tr_alloc_live() != live)
                fail_msg("%s on %d ranks leaves memory behind", scenario->name, size);
        }
}

static void test_places(void **state)
{
    (void)state;
    static const int host[] = {7, 3, 7, 5, 3};
    tr_comm *comm[5];
    assert_int_equal(tr_comm_thread_create(5, host, &settings, comm), TR_OK);
    static const int number[] = {0, 1, 0, 2, 1}; /* by lowest rank */
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tr_comm_hosts(comm[i]), 3);
        for (int k = 0; k < 5; k++) assert_int_equal(tr_comm_host_of(comm[i], k), number[k]);
        assert_string_equal(tr_comm_host(comm[i], 1), "thread-host-3");
        assert_int_equal(tr_comm_local(comm[i], tr_comm_local_rank(comm[i])), i);
    }
    assert_int_equal(tr_comm_local_size(comm[0]), 2);
    assert_int_equal(tr_comm_local_size(comm[3]), 1);
    assert_int_equal(tr_comm_local_rank(comm[4]), 1);
    for (int i = 0; i < 5; i++) tr_comm_abort(comm[i], "enough"); /* else leaving would wait for all */
    for (int i = 0; i < 5; i++) tr_comm_destroy(&comm[i]);
}

static void test_refused(void **state)
{
    (void)state;
    tr_comm *comm[1];
    struct tr_comm_settings bad = {.timeout = 0, .patience = 1};
    assert_int_equal(tr_comm_thread_create(0, NULL, &settings, comm), TR_EINVAL);
    assert_int_equal(tr_comm_thread_create(TR_COMM_THREADS_MOST + 1, NULL, &settings, comm), TR_EINVAL);
    assert_int_equal(tr_comm_thread_create(1, NULL, &bad, comm), TR_EINVAL);
    assert_null(comm[0]);
    bad = (struct tr_comm_settings){.timeout = 2, .patience = 1};
    assert_int_equal(tr_comm_thread_create(1, NULL, &bad, comm), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "patience"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),  cmocka_unit_test(test_hosts),  cmocka_unit_test(test_own_collectives),
        cmocka_unit_test(test_routes), cmocka_unit_test(test_places), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("comm.thread", tests, NULL, NULL);
}
