/* What a communicator refuses, in which words; it goes on, and the nearest that is allowed is done. */
#include "comm/comm.h"
#include "support/comm_thread/thread.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static tr_comm *comm;
static tr_ticket *ticket;

static void refused(tr_status status, const char *message)
{
    assert_int_equal(status, TR_EINVAL);
    assert_null(ticket);
    assert_string_equal(tr_error_message(), message);
}

static void done(tr_status status)
{
    assert_int_equal(status, TR_OK);
    assert_int_equal(tr_comm_wait(comm, &ticket), TR_OK);
}

static int make(void **state)
{
    static const struct tr_comm_settings settings = {.timeout = 30, .patience = 30};
    (void)state;
    return tr_comm_thread_create(1, NULL, &settings, &comm) == TR_OK ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    tr_comm_destroy(&comm);
    return comm ? -1 : 0;
}

static void time_limits(void **state)
{
    static const struct tr_comm_settings bad[] = {
        {.timeout = 0, .patience = 1},   {.timeout = -1, .patience = 1},
        {.timeout = 2, .patience = 1.5}, {.timeout = NAN, .patience = 1},
        {.timeout = 1, .patience = NAN}, {.timeout = 1, .patience = INFINITY}};
    (void)state;
    tr_comm *other;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tr_comm_thread_create(1, NULL, &bad[i], &other), TR_EINVAL);
        assert_null(other);
        if (i == 2)
            assert_string_equal(tr_error_message(),
                                "time limits of the communicator: a time-out of 2 s and a patience of 1.5 s; "
                                "choose a time-out above 0 and at most the patience");
    }
    struct tr_comm_settings least = {.timeout = DBL_MIN, .patience = DBL_MIN};
    assert_int_equal(tr_comm_thread_create(1, NULL, &least, &other), TR_OK);
    tr_comm_destroy(&other);
}

static void messages(void **state)
{
    (void)state;
    char byte = 7, got = 0;
    tr_ticket *sent;
    refused(tr_comm_send(comm, 1, 0, &byte, 1, NULL, &ticket), "send: there is no rank 1; choose 0 to 0");
    refused(tr_comm_receive(comm, -1, 0, &byte, 1, NULL, &ticket),
            "receive: there is no rank -1; choose 0 to 0");
    refused(tr_comm_send(comm, 0, -1, &byte, 1, NULL, &ticket),
            "send: tag -1 is out of range; choose 0 to 1048575");
    refused(tr_comm_receive(comm, 0, 1 << 20, &byte, 1, NULL, &ticket),
            "receive: tag 1048576 is out of range; choose 0 to 1048575");
    assert_int_equal(tr_comm_send(comm, 0, TR_COMM_TAG_MOST, &byte, 1, NULL, &sent), TR_OK);
    done(tr_comm_receive(comm, 0, TR_COMM_TAG_MOST, &got, 1, NULL, &ticket));
    assert_int_equal(tr_comm_wait(comm, &sent), TR_OK);
    assert_int_equal(got, 7);
}

static void collectives(void **state)
{
    static const int64_t late[] = {1, 1}, falling[] = {0, -1}, none[] = {0, 0};
    static char block[TR_COMM_COMBINE_MOST + 1];
    (void)state;
    refused(tr_comm_broadcast(comm, 1, block, 1, NULL, &ticket),
            "broadcast: there is no rank 1; choose 0 to 0");
    refused(tr_comm_broadcast(comm, -1, block, 1, NULL, &ticket),
            "broadcast: there is no rank -1; choose 0 to 0");
    done(tr_comm_broadcast(comm, 0, block, 1, NULL, &ticket));
    refused(tr_comm_all_gather(comm, block, late, NULL, NULL, &ticket),
            "all-gather: the bounds of 1 ranks must ascend from 0");
    refused(tr_comm_all_gather(comm, block, falling, NULL, NULL, &ticket),
            "all-gather: the bounds of 1 ranks must ascend from 0");
    done(tr_comm_all_gather(comm, block, none, NULL, NULL, &ticket));
    refused(tr_comm_combine(comm, block, sizeof block, NULL, NULL, &ticket),
            "combine: 4097 bytes; at most 4096");
    done(tr_comm_combine(comm, block, sizeof block - 1, NULL, NULL, &ticket));
}

static void bounds_of_reductions(void **state)
{
    static const struct {
        int64_t leaves, bound[2];
        const char *message;
    } bad[] = {
        {0, {0, 0}, "reduction: 0 leaves; choose 1 to 2147483647"},
        {(int64_t)INT32_MAX + 1,
         {0, (int64_t)INT32_MAX + 1},
         "reduction: 2147483648 leaves; choose 1 to 2147483647"},
        {2, {1, 2}, "reduction: the bounds of 1 ranks must ascend from 0 to 2"},
        {2, {0, 1}, "reduction: the bounds of 1 ranks must ascend from 0 to 2"},
        {2, {0, 3}, "reduction: the bounds of 1 ranks must ascend from 0 to 2"},
    };
    (void)state;
    tr_reduction *reduction;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        refused(tr_reduction_create(comm, bad[i].leaves, bad[i].bound, NULL, &reduction), bad[i].message);
        assert_null(reduction);
    }
    static const int64_t whole[] = {0, INT32_MAX};
    assert_int_equal(tr_reduction_create(comm, INT32_MAX, whole, NULL, &reduction), TR_OK);
    tr_reduction_destroy(&reduction);
}

/* What one rank has is one node where its leaves fill a subtree. */
static void sums(void **state)
{
    static const int64_t bound[] = {0, 3}, shard[] = {0, 4}, late[] = {1, 4}, falling[] = {0, -1};
    float nodes[8] = {1, 2, 3, 4, 10, 20, 30, 40}, out[4] = {0};
    (void)state;
    tr_reduction *reduction;
    assert_int_equal(tr_reduction_create(comm, 3, bound, NULL, &reduction), TR_OK);
    assert_int_equal(tr_reduction_nodes(reduction, 0), 1);
    tr_reduction_destroy(&reduction);
    static const int64_t five[] = {0, 5};
    assert_int_equal(tr_reduction_create(comm, 5, five, NULL, &reduction), TR_OK);
    refused(tr_comm_reduce_scatter(comm, reduction, nodes, 4, late, out, NULL, &ticket),
            "reduce-scatter: the shards of 1 ranks must ascend from 0");
    refused(tr_comm_reduce_scatter(comm, reduction, nodes, 4, falling, out, NULL, &ticket),
            "reduce-scatter: the shards of 1 ranks must ascend from 0");
    refused(tr_comm_all_reduce(comm, reduction, nodes, 4, -1, out, NULL, &ticket), "all-reduce: -1 elements");
    done(tr_comm_reduce_scatter(comm, reduction, nodes, 4, shard, out, NULL, &ticket));
    done(tr_comm_reduce_scatter(comm, reduction, nodes, 0, shard, out, NULL, &ticket)); /* of a single node */
    assert_memory_equal(out, nodes, sizeof out);
    tr_reduction_destroy(&reduction);
}

/* The last number of a window may be the last of the data. */
static void data_outside_of_a_window(void **state)
{
    static const int64_t leaves[] = {0, 2};
    int64_t bytes[] = {0, 0}, shard[] = {0, 0};
    float nodes[64] = {1};
    tr_reduction *reduction;
    tr_window *window;
    size_t size;
    (void)state;
    assert_int_equal(tr_window_create(comm, 16 * sizeof(float), &window), TR_OK);
    char *memory = tr_window_segment(window, 0, &size);
    assert_in_range(size, 16 * sizeof(float), sizeof nodes - sizeof(float));
    assert_int_equal(tr_reduction_create(comm, 2, leaves, NULL, &reduction), TR_OK);
    for (int64_t over = 0; over <= 1; over++) {
        bytes[1] = (int64_t)size + over;
        shard[1] = (int64_t)(size / sizeof(float)) + over;
        tr_status gathered = tr_comm_all_gather(comm, memory, bytes, window, NULL, &ticket);
        if (over)
            refused(gathered, "all-gather: the data lie outside of the window");
        else
            done(gathered);
        tr_status reduced = tr_comm_reduce_start(comm, reduction, nodes, 64, shard, (float *)(void *)memory,
                                                 window, NULL, &ticket);
        if (over) {
            refused(reduced, "reduce-gather: the data lie outside of the window");
            continue;
        }
        assert_int_equal(reduced, TR_OK);
        assert_int_equal(tr_comm_wait_ready(comm, ticket), TR_OK);
        done(tr_comm_reduce_gather(comm, ticket));
    }
    tr_reduction_destroy(&reduction);
    tr_window_destroy(&window);
}

/* Three of five leaves are two nodes, which must not overlap. */
static void nodes_that_overlap(void **state)
{
    static const struct tr_comm_settings settings = {.timeout = 30, .patience = 30};
    static const int64_t bound[] = {0, 3, 5}, shard[] = {0, 2, 4};
    float nodes[8] = {0}, out[4];
    tr_comm *pair[2];
    tr_reduction *reduction;
    (void)state;
    assert_int_equal(tr_comm_thread_create(2, NULL, &settings, pair), TR_OK);
    assert_int_equal(tr_reduction_create(pair[0], 5, bound, NULL, &reduction), TR_OK);
    assert_int_equal(tr_reduction_nodes(reduction, 0), 2);
    refused(tr_comm_reduce_scatter(pair[0], reduction, nodes, 3, shard, out, NULL, &ticket),
            "reduce-scatter: nodes of 4 elements overlap at a stride of 3");
    tr_reduction_destroy(&reduction);
    for (int i = 0; i < 2; i++) tr_comm_abort(pair[i], "enough"); /* else leaving would wait for both */
    for (int i = 0; i < 2; i++) tr_comm_destroy(&pair[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(time_limits, make, drop),
        cmocka_unit_test_setup_teardown(messages, make, drop),
        cmocka_unit_test_setup_teardown(collectives, make, drop),
        cmocka_unit_test_setup_teardown(bounds_of_reductions, make, drop),
        cmocka_unit_test_setup_teardown(sums, make, drop),
        cmocka_unit_test_setup_teardown(data_outside_of_a_window, make, drop),
        cmocka_unit_test(nodes_that_overlap),
    };
    return cmocka_run_group_tests_name("comm.refused", tests, NULL, NULL);
}
