/* Who goes on after some have left: who leads, who is waited for and how long, in the time of a simulated
 * cluster; with the default time-out of a minute and patience of half an hour. */
#include "base/alloc.h"
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

static const char *said(const char *message)
{
    if (strcmp(tr_error_message(), message) == 0) return NULL;
    snprintf(check_text(), 1600, "\"%s\" is not \"%s\"", tr_error_message(), message);
    return check_text();
}

/* ---- who is there ---- */

static const bool *stays; /* [ranks] */

/* Those who stay are a part, in their order, which talks; its ranks keep their numbers for people. */
static const char *go_on(tr_comm *comm, int rank)
{
    tr_comm *part = NULL;
    int32_t heard[SIMULATED_MOST] = {0};
    if (!stays[rank]) {
        tr_comm_dissolve(comm);
        return NULL;
    }
    simulated_rest_until(1);
    CHECK_OK(tr_comm_survivors(comm, &part));
    int size = 0;
    for (int r = 0; r < tr_comm_size(comm); r++) {
        if (!stays[r]) continue;
        CHECK(tr_comm_number(part, size) == r);
        CHECK(strcmp(tr_comm_host(part, size), tr_comm_host(comm, r)) == 0);
        if (r == rank) CHECK(tr_comm_rank(part) == size);
        size++;
    }
    CHECK(tr_comm_size(part) == size);
    CHECK(simulated_now() < 3); /* nobody waits for those who left */
    heard[tr_comm_rank(part)] = 100 + rank;
    CHECK_OK(tr_comm_exchange(part, heard, sizeof heard[0], "who"));
    for (int r = 0; r < size; r++) CHECK(heard[r] == 100 + tr_comm_number(part, r));
    CHECK(!tr_comm_lost_member(part));
    tr_comm_destroy(&part);
    tr_comm_dissolve(comm);
    return NULL;
}

static void who_stays_goes_on(void **state)
{
    static const bool cases[][6] = {
        {true, true, true, true, true, true},      {false, true, true, true, true, true},
        {true, true, true, true, true, false},     {false, false, true, false, true, true},
        {true, false, false, false, false, false}, {false, false, false, false, false, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stays = cases[i];
        pairs_run(6, go_on);
        assert_int_equal(warnings, 0);
    }
}

/* ---- who is late ---- */

static double late;

/* Those who leave are not missed any more. */
static const char *meet(tr_comm *part)
{
    tr_ticket *ticket;
    CHECK_DONE(part, &ticket, tr_comm_barrier(part, &ticket));
    return NULL;
}

static const char *be_late(tr_comm *comm, int rank)
{
    tr_comm *part = NULL;
    if (rank == 2) simulated_rest_until(late);
    double began = simulated_now();
    tr_status status = tr_comm_survivors(comm, &part);
    if (late < 1800) {
        CHECK(status == TR_OK && tr_comm_size(part) == 3);
        CHECK(rank == 2 || fabs(simulated_now() - late) < 1);
        CHECK_RUN(meet(part));
        tr_comm_destroy(&part);
        tr_comm_dissolve(comm);
        return NULL;
    }
    CHECK(status == TR_EPEER && !part);
    if (rank == 0) {
        CHECK(fabs(simulated_now() - began - 1800) < 1);
        CHECK_RUN(said("rank 2 on host host-1 lives, but did not come to go on within 1800 s"));
    } else if (rank == 1) {
        /* It waits for the one that leads, which is the first to lose patience, or does so itself. */
        CHECK(strstr(tr_error_message(), "rank 0 on host host-0 "));
    }
    return NULL;
}

static void who_is_late_is_waited_for(void **state)
{
    static const double times[] = {59, 61, 1799, 1803};
    (void)state;
    for (int i = 0; i < 4; i++) {
        late = times[i];
        pairs_run(3, be_late);
        assert_int_equal(warnings, i == 0 ? 0 : 2); /* by each of the two that wait, once */
        /* The leader misses who is late, the other one the leader. */
        if (i > 0)
            assert_true(strcmp(logged, "rank 0 has been waiting for rank 2 to go on for 60 s") == 0 ||
                        strcmp(logged, "rank 1 has been waiting for rank 0 to go on for 60 s") == 0);
    }
}

/* ---- who gives up ---- */

static int quitter;

static const char *give_up(tr_comm *comm, int rank)
{
    tr_comm *part = NULL;
    char text[200];
    if (rank == quitter) {
        simulated_rest_until(1);
        tr_comm_abort(comm, "no more disk");
        return NULL;
    }
    simulated_rest_until(quitter == 1 ? 0 : 2);
    CHECK(tr_comm_survivors(comm, &part) == TR_EPEER && !part);
    CHECK(simulated_now() < 4);
    snprintf(text, sizeof text,
             "rank %d on host host-%d gave up: no more disk; restart the job from its last checkpoint",
             quitter, quitter / 2);
    /* Or one that followed it. */
    CHECK(strcmp(tr_error_message(), text) == 0 || strstr(tr_error_message(), "gave up: rank "));
    CHECK(strstr(tr_error_message(), "no more disk"));
    return NULL;
}

static void who_gives_up_ends_it(void **state)
{
    (void)state;
    for (quitter = 0; quitter < 3; quitter++) pairs_run(3, give_up);
}

/* ---- many losses ---- */

/* As many parts as there may be at a time, each with a number of its own. */
static const char *go_on_often(tr_comm *comm, int rank)
{
    tr_comm *part[TR_COMM_SUBGROUPS + 1] = {NULL};
    int32_t heard[2] = {0};
    for (int i = 0; i < TR_COMM_SUBGROUPS; i++) CHECK_OK(tr_comm_survivors(comm, &part[i]));
    for (int i = TR_COMM_SUBGROUPS - 1; i >= 0; i--) {
        heard[rank] = 10 * i + rank;
        CHECK_OK(tr_comm_exchange(part[i], heard, sizeof heard[0], "who"));
        CHECK(heard[0] == 10 * i && heard[1] == 10 * i + 1);
    }
    /* One that ended leaves its number to another. */
    tr_comm_destroy(&part[5]);
    CHECK_OK(tr_comm_survivors(comm, &part[5]));
    tr_status status = tr_comm_survivors(comm, &part[TR_COMM_SUBGROUPS]);
    CHECK(status == (rank == 0 ? TR_EINVAL : TR_EPEER));
    if (rank == 0) CHECK_RUN(said("ranks were lost 15 times; restart the job from its last checkpoint"));
    if (rank == 1) CHECK(strstr(tr_error_message(), "ranks were lost 15 times"));
    CHECK(!part[TR_COMM_SUBGROUPS]);
    for (int i = 0; i < TR_COMM_SUBGROUPS; i++) tr_comm_destroy(&part[i]);
    return NULL;
}

static void parts_are_limited(void **state)
{
    (void)state;
    pairs_run(2, go_on_often);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_stays_goes_on),
        cmocka_unit_test(who_is_late_is_waited_for),
        cmocka_unit_test(who_gives_up_ends_it),
        cmocka_unit_test(parts_are_limited),
    };
    return cmocka_run_group_tests_name("comm.census", tests, NULL, NULL);
}
