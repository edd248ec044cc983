/* Which rank a wait finds missing, and when: in the time of a simulated cluster, with the default time-out of
 * a minute and patience of half an hour.
 */
#include "base/text/log.h"
#include "comm/check.h"
#include "comm/class.h"
#include "comm/pairs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const char *contains(const char *text, const char *part)
{
    if (strstr(text, part)) return NULL;
    snprintf(check_text(), 1600, "no \"%s\" in \"%s\"", part, text);
    return check_text();
}

/* Starts a barrier or gather of all, and waits. */
static tr_status wait_for(tr_comm *comm, bool gathers)
{
    static const int64_t bound[SIMULATED_MOST + 1] = {0};
    tr_ticket *ticket;
    char none[1];
    tr_status status =
        gathers ? tr_comm_gather(comm, none, bound, "all", &ticket) : tr_comm_barrier(comm, &ticket);
    return status == TR_OK ? tr_comm_wait(comm, &ticket) : status;
}

static tr_status receive(tr_comm *comm, int from)
{
    tr_ticket *ticket;
    char byte;
    tr_status status = tr_comm_receive(comm, from, 1, &byte, 1, "a word", &ticket);
    return status == TR_OK ? tr_comm_wait(comm, &ticket) : status;
}

static const char *send(tr_comm *comm, int to)
{
    tr_ticket *ticket;
    CHECK_DONE(comm, &ticket, tr_comm_send(comm, to, 1, "x", 1, "a word", &ticket));
    return NULL;
}

/* ---- ranks that live ---- */

/* Rank 1 sends after this time, and does nothing meanwhile. */
static double late;

static const char *be_late(tr_comm *comm, int rank)
{
    if (rank == 0) {
        double began = simulated_now();
        tr_status status = receive(comm, 1);
        if (late < 1800) {
            CHECK(status == TR_OK);
            CHECK(fabs(simulated_now() - began - late) < 0.1);
            return NULL;
        }
        CHECK(status == TR_EPEER);
        CHECK(fabs(simulated_now() - began - 1800) < 1);
        CHECK_RUN(contains(tr_error_message(), "receive \"a word\" on rank 0: missing after 1.8e+03 s"));
        CHECK_RUN(contains(tr_error_message(), "(patience 1800 s), although alive: rank 1 on host host-0; "));
        CHECK(receive(comm, 1) == TR_EPEER); /* and so it is from then on */
        CHECK_RUN(contains(tr_error_message(), "missing after"));
        return NULL;
    }
    simulated_rest_until(late);
    if (late < 1800) CHECK_RUN(send(comm, 0));
    tr_comm_dissolve(comm);
    return NULL;
}

static void who_lives_is_waited_for(void **state)
{
    static const double times[] = {59, 61, 1799, 1802};
    (void)state;
    for (int i = 0; i < 4; i++) {
        late = times[i];
        pairs_run(2, be_late);
        assert_int_equal(warnings, i > 0);
        if (i > 0)
            assert_string_equal(logged, "receive a word: rank 0 has been waiting for 60 s; slow, but alive: "
                                        "rank 1 on host host-0");
    }
}

/* Rank 0 lacks a message from each other one. */
static const char *lack_many(tr_comm *comm, int rank)
{
    char blocks[12];
    if (rank != 0) {
        simulated_rest_until(3000);
        tr_comm_dissolve(comm);
        return NULL;
    }
    comm->routing = TR_ROUTING_DIRECT;
    CHECK(tr_comm_exchange(comm, blocks, 1, "all") == TR_EPEER);
    CHECK_RUN(contains(tr_error_message(), "alive: rank 1 on host host-0, rank 2 on host host-1, "));
    return NULL;
}

static void many_are_named_by_some(void **state)
{
    (void)state;
    pairs_run(9, lack_many);
    assert_non_null(strstr(logged, "alive: rank 1 on host host-0, rank 2 on host host-1, "));
    assert_non_null(strstr(logged, ", rank 8 on host host-4"));
    assert_null(strstr(logged, "and more"));
    pairs_run(12, lack_many);
    assert_non_null(strstr(logged, ", rank 8 on host host-4 and more"));
    assert_null(strstr(logged, "rank 9"));
}

/* ---- ranks that are lost ---- */

/* Rank 2 gives up, of which nobody learns who does not need it: rank 1 sends later. */
static const char *need_another(tr_comm *comm, int rank)
{
    if (rank == 2) {
        simulated_rest_until(1);
        tr_comm_abort(comm, "no more disk");
        tr_comm_abort(comm, "not heard any more");
        return NULL;
    }
    if (rank == 1) {
        simulated_rest_until(10);
        CHECK_RUN(send(comm, 0));
    } else {
        CHECK_OK(receive(comm, 1));
    }
    CHECK(wait_for(comm, false) == TR_EPEER);
    CHECK_RUN(contains(tr_error_message(), "rank 2 on host host-1 gave up: no more disk"));
    CHECK(simulated_now() > 10 && simulated_now() < 11);
    return NULL;
}

static void others_are_not_needed(void **state)
{
    (void)state;
    pairs_run(3, need_another);
    assert_int_equal(warnings, 0);
}

/* Ranks 1 and 2 are lost in one of these ways, before rank 0 waits for both. */
static bool gives_up[3];

static const char *lose_two(tr_comm *comm, int rank)
{
    if (rank != 0) {
        if (gives_up[rank])
            tr_comm_abort(comm, rank == 1 ? "the first reason" : "the second reason");
        else
            tr_comm_dissolve(comm);
        return NULL;
    }
    simulated_rest_until(1);
    CHECK(wait_for(comm, true) == TR_EPEER);
    CHECK(simulated_now() < 3);
    CHECK_RUN(contains(tr_error_message(), "gather \"all\" on rank 0: rank "));
    if (gives_up[1] && gives_up[2])
        return contains(tr_error_message(), "rank 1 on host host-0 gave up: the first reason");
    /* Who gave up may have done so for the other. */
    return contains(tr_error_message(), gives_up[1] ? "rank 2 on host host-1 has left without taking part; "
                                                    : "rank 1 on host host-0 has left without taking part; ");
}

static void the_cause_is_named(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        gives_up[1] = i & 1;
        gives_up[2] = i & 2;
        pairs_run(3, lose_two);
    }
}

/* Who left after all that others need has done its part. */
static const char *leave_early(tr_comm *comm, int rank)
{
    if (rank == 1) {
        tr_comm_tolerate(comm);
        CHECK(wait_for(comm, true) == TR_OK);
        tr_comm_dissolve(comm);
        return NULL;
    }
    simulated_rest_until(rank == 2 ? 10 : 1);
    CHECK_OK(wait_for(comm, true));
    CHECK(rank == 2 || simulated_now() > 10);
    tr_comm_dissolve(comm);
    return NULL;
}

static void who_left_in_order_is_not_missing(void **state)
{
    (void)state;
    pairs_run(3, leave_early);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_lives_is_waited_for),
        cmocka_unit_test(many_are_named_by_some),
        cmocka_unit_test(others_are_not_needed),
        cmocka_unit_test(the_cause_is_named),
        cmocka_unit_test(who_left_in_order_is_not_missing),
    };
    return cmocka_run_group_tests_name("comm.deadline", tests, NULL, NULL);
}
