/* The transport of a simulated cluster: what its listener hears, messages that are given up or have the wrong
 * size, ranks that give up, and memory that runs out.
 */
#include "comm/check.h"
#include "comm/class.h"
#include "refuse.h"
#include "support/simulated.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { RANKS = 3, BYTES = 1000, LARGE = 3000 };
#define L 1e-3 /* seconds of latency between hosts */

/* Ranks 0 and 1 on one host, rank 2 on the other. */
static const struct tr_cluster cluster = {
    .hosts = 2,
    .per_host = 2,
    .threads = 1,
    .remote = {.latency = L, .rate = 1e9, .overhead = 0, .copying = INFINITY, .eager = 2000},
    .local = {.latency = 1e-5, .rate = 1e9, .overhead = 0, .copying = 4e7, .eager = 2000},
    .memory = 1e8,
};

static char heard[4096];

static void run(simulated_function act, const struct tr_sim_listener *listener)
{
    simulated_run(&cluster, RANKS, listener, act);
}

static const char *send(tr_comm *comm, int to, int value, size_t bytes)
{
    char data[LARGE];
    tr_ticket *ticket;
    memset(data, value, sizeof data);
    CHECK_OK(tr_comm_send(comm, to, 5, data, bytes, "test", &ticket));
    CHECK_OK(tr_comm_wait(comm, &ticket));
    return NULL;
}

static const char *expect(tr_comm *comm, int from, int value, size_t bytes)
{
    char data[LARGE + 1] = {0};
    tr_ticket *ticket;
    CHECK_OK(tr_comm_receive(comm, from, 5, data, bytes, "test", &ticket));
    CHECK_OK(tr_comm_wait(comm, &ticket));
    for (size_t i = 0; i <= bytes; i++) CHECK(data[i] == (i < bytes ? value : 0));
    return NULL;
}

/* ---- what is heard ---- */

static void hear(const void *user, const char *what, int rank, int other, int64_t number, double much)
{
    size_t length = strlen(heard);
    if (user != heard) return;
    snprintf(heard + length, sizeof heard - length, "%d %s %d %d %g\n", rank, what, other, (int)number, much);
}

static void computes(void *user, int rank, double seconds)
{
    hear(user, "computes", rank, -1, -1, seconds);
}

static void sends(void *user, int rank, int to, int64_t number, size_t bytes)
{
    hear(user, "sends", rank, to, number, (double)bytes);
}

static void receives(void *user, int rank, int from, int64_t number, size_t bytes)
{
    hear(user, "receives", rank, from, number, (double)bytes);
}

static void received(void *user, int rank, int from, int64_t number)
{
    hear(user, "received", rank, from, number, 0);
}

static const char *tell(tr_comm *comm, int rank)
{
    if (rank == 0) {
        CHECK_OK(tr_sim_compute(simulated.sim, 0.25));
        CHECK_RUN(send(comm, 2, 1, BYTES));
    } else if (rank == 1) {
        simulated_rest_until(3);
        CHECK(tr_comm_local_size(comm) == 2);
        CHECK(tr_comm_local_rank(comm) == 1);
        CHECK(tr_comm_hosts(comm) == 2);
        CHECK(strcmp(tr_comm_host(comm, 1), "host-0") == 0);
        CHECK(strcmp(tr_comm_host(comm, 2), "host-1") == 0);
        CHECK(strcmp(tr_comm_name(comm), "simulated") == 0);
        /* 4 MB through memory, and from another core's cache, which takes longer. */
        tr_sim_touch(simulated.sim, TR_MOTION_ALL, 1000000);
        CHECK(fabs(simulated_now() - 3.04) < 1e-9);
        tr_sim_touch(simulated.sim, TR_MOTION_OTHER, 1000000);
        CHECK(fabs(simulated_now() - 3.1) < 1e-9);
        /* The one message of 1000 bytes was on the links for a microsecond. */
        CHECK(fabs(tr_sim_busiest(simulated.sim) - 1e-6) < 1e-12);
    } else {
        CHECK_RUN(expect(comm, 0, 1, BYTES));
        CHECK(fabs(simulated_now() - (0.25 + L + 1e-6)) < 1e-9);
    }
    tr_comm_dissolve(comm); /* without the words of a common end */
    simulated_rest_until(4);
    return NULL;
}

static void listeners_hear_all(void **state)
{
    (void)state;
    const struct tr_sim_listener listener = {computes, sends, receives, received, heard};
    run(tell, &listener);
    assert_string_equal(heard, "0 computes -1 -1 0.25\n"
                               "2 receives 0 5 1000\n"
                               "0 sends 2 5 1000\n"
                               "2 received 0 5 0\n"
                               "1 computes -1 -1 0.04\n"
                               "1 computes -1 -1 0.06\n");
}

/* ---- messages that are given up ---- */

static char lost[LARGE];

static const char *give_up_receive(tr_comm *comm, size_t bytes, double asked, double cancelled)
{
    tr_ticket *ticket;
    simulated_rest_until(asked);
    CHECK_OK(tr_comm_receive(comm, 0, 5, lost, bytes, "test", &ticket));
    simulated_rest_until(cancelled);
    CHECK(tr_comm_cancel(comm, &ticket));
    CHECK(!ticket);
    return NULL;
}

static const char *give_up(tr_comm *comm, int rank)
{
    if (rank == 0)
        for (int time = 10; time <= 70; time += 10) {
            simulated_rest_until(time);
            CHECK_RUN(send(comm, 2, time, time < 50 ? BYTES : LARGE));
        }
    if (rank == 2) {
        /* Nothing came for it: the first message is the next one's. */
        CHECK_RUN(give_up_receive(comm, BYTES, 5, 6));
        CHECK_RUN(expect(comm, 0, 10, BYTES));
        /* One under way is gone with it. */
        CHECK_RUN(give_up_receive(comm, BYTES, 15, 20 + L / 2));
        int64_t live = tr_alloc_live(); /* with the message and its contents */
        simulated_rest_until(21);
        CHECK(tr_alloc_live() == live - 2);
        /* One that arrived, but was not looked at, too. */
        CHECK_RUN(give_up_receive(comm, BYTES, 25, 31));
        CHECK(tr_alloc_live() == live - 2);
        CHECK_RUN(expect(comm, 0, 40, BYTES));
        /* One that is announced: its sender gets rid of it nonetheless. */
        CHECK_RUN(give_up_receive(comm, LARGE, 45, 50 + L / 2));
        CHECK_RUN(expect(comm, 0, 60, LARGE));
        CHECK_RUN(expect(comm, 0, 70, LARGE));
    }
    return NULL;
}

static void messages_are_given_up(void **state)
{
    (void)state;
    run(give_up, NULL);
}

/* Senders that do not wait for their receiver: their next message arrives, and nothing is kept of the others
   once the receiver was there. */
static const char *give_up_sending(tr_comm *comm, int rank)
{
    static int64_t live[3];
    char data[LARGE];
    tr_ticket *ticket;
    for (int turn = 0; turn < 3; turn++) {
        simulated_rest_until(10 * turn);
        if (rank == 0) {
            CHECK_OK(tr_comm_send(comm, 2, 9, lost, LARGE, "test", &ticket));
            simulated_rest_until(10 * turn + 1);
            CHECK(tr_comm_cancel(comm, &ticket));
            CHECK_RUN(send(comm, 2, 3, LARGE));
        }
        if (rank == 2) {
            simulated_rest_until(10 * turn + 2);
            CHECK_OK(tr_comm_receive(comm, 0, 9, data, LARGE, "test", &ticket));
            CHECK_OK(tr_comm_wait(comm, &ticket)); /* without its contents */
            CHECK_RUN(expect(comm, 0, 3, LARGE));
        }
        simulated_rest_until(10 * turn + (rank == 1 ? 8 : 9));
        if (rank == 1) live[turn] = tr_alloc_live();
    }
    if (rank == 1) CHECK(live[1] == live[2]);
    return NULL;
}

static void senders_give_up(void **state)
{
    (void)state;
    run(give_up_sending, NULL);
}

/* ---- failures ---- */

static const char *fail_with(tr_status status, tr_status expected, const char *part)
{
    CHECK(status == expected);
    if (strstr(tr_error_message(), part)) return NULL;
    snprintf(check_text(), 1600, "no \"%s\" in \"%s\"", part, tr_error_message());
    return check_text();
}

static tr_status receive(tr_comm *comm, int from, void *data, size_t bytes)
{
    tr_ticket *ticket;
    tr_status status = tr_comm_receive(comm, from, 5, data, bytes, "test", &ticket);
    return status == TR_OK ? tr_comm_wait(comm, &ticket) : status;
}

/* One message is longer than its receiver expects, another one shorter. */
static const char *disagree(tr_comm *comm, int rank)
{
    char data[LARGE + 1] = {0};
    if (rank == 2) {
        CHECK_RUN(send(comm, 0, 1, BYTES));
        CHECK_RUN(send(comm, 1, 1, LARGE));
        return NULL;
    }
    if (rank == 0) simulated_rest_until(1); /* the message has come when it asks, and not when rank 1 does */
    tr_status status = receive(comm, 2, data, rank == 0 ? BYTES - 1 : LARGE + 1);
    CHECK_RUN(fail_with(status, TR_EMISMATCH,
                        rank == 0 ? "the message from rank 2 has 1000 bytes where 999 were expected"
                                  : "the message from rank 2 has 3000 bytes where 3001 were expected"));
    CHECK(data[0] == 0);
    return NULL;
}

static void sizes_must_agree(void **state)
{
    (void)state;
    run(disagree, NULL);
}

/* Rank 0 gives up after a second, and rank 1 leaves. */
static const char *leave(tr_comm *comm, int rank)
{
    char data[BYTES];
    if (rank < 2) {
        simulated_rest_until(1 + rank);
        if (rank == 0) tr_comm_abort(comm, "no more disk");
        if (rank == 1) tr_comm_dissolve(comm);
        return NULL;
    }
    tr_comm_tolerate(comm);
    char why[64];
    CHECK(tr_comm_life(comm, 0, why, sizeof why) == TR_COMM_ALIVE);
    simulated_rest_until(1.5);
    CHECK(tr_comm_life(comm, 0, why, sizeof why) == TR_COMM_GAVE_UP);
    CHECK(strcmp(why, "gave up: no more disk") == 0);
    CHECK(tr_comm_life(comm, 1, why, sizeof why) == TR_COMM_ALIVE);
    CHECK_RUN(fail_with(receive(comm, 1, data, BYTES), TR_EPEER, "rank 1 on host host-0 has left"));
    CHECK(tr_comm_life(comm, 1, why, sizeof why) == TR_COMM_LEFT);
    CHECK(simulated_now() > 2 && simulated_now() < 10);
    return NULL;
}

static void ranks_leave(void **state)
{
    (void)state;
    run(leave, NULL);
}

/* What a rank of a host shared is there as long as somebody uses it; who comes too late is told. */
static const char *share_and_leave(tr_comm *comm, int rank)
{
    static char key[TR_SHARE_KEY];
    void *memory;
    if (rank == 0) {
        CHECK_OK(comm->class->share_memory(comm, BYTES, 0, BYTES, &memory, key));
        memset(memory, 7, BYTES);
        simulated_rest_until(2);
        comm->class->unmap(comm, BYTES, memory);
    }
    if (rank == 1) {
        simulated_rest_until(1);
        CHECK_OK(comm->class->map(comm, BYTES, key, &memory));
        simulated_rest_until(3);
        CHECK(((char *)memory)[BYTES - 1] == 7);
        comm->class->unmap(comm, BYTES, memory);
        CHECK(comm->class->map(comm, BYTES, key, &memory) == TR_EPEER);
    }
    return NULL;
}

static void shared_memory_may_be_gone(void **state)
{
    (void)state;
    run(share_and_leave, NULL);
}

static int refuse_the_copy(size_t size, void *user)
{
    (void)user;
    return size == BYTES - 1;
}

/* There is no memory for the contents of a message: its sender fails, and its receiver learns why. */
static const char *run_out(tr_comm *comm, int rank)
{
    tr_ticket *ticket;
    char data[BYTES] = {0};
    if (rank == 0) {
        CHECK_RUN(send(comm, 2, 1, BYTES));
        tr_alloc_set_hook(refuse_the_copy, NULL);
        CHECK(tr_comm_send(comm, 2, 5, data, BYTES - 1, "test", &ticket) == TR_ENOMEM);
        tr_alloc_set_hook(NULL, NULL);
        CHECK(!ticket);
    }
    if (rank == 2) {
        CHECK_RUN(expect(comm, 0, 1, BYTES));
        CHECK_RUN(fail_with(receive(comm, 0, data, BYTES - 1), TR_EPEER,
                            "rank 0 on host host-0 gave up: out of memory: 999 bytes wanted"));
    }
    return NULL;
}

static void memory_runs_out_under_way(void **state)
{
    (void)state;
    run(run_out, NULL);
}

static void memory_runs_out_before(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        int64_t live = tr_alloc_live(); /* with the message and its contents */
        refuse_begin(at);
        tr_status status = tr_world_create(RANKS, &simulated.world);
        if (status == TR_OK) status = tr_world_share(simulated.world, 2, (const int[]){0, 2, 3}, 1, 1);
        if (status == TR_OK)
            status = tr_sim_create(simulated.world, &cluster, RANKS, NULL, simulated.comm, &simulated.sim);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (!done) assert_null(simulated.sim);
        tr_sim_destroy(&simulated.sim);
        tr_world_destroy(&simulated.world);
        assert_null(simulated.world);
        assert_int_equal(tr_alloc_live(), live);
    }
    assert_null(tr_sim_reserve(SIZE_MAX / 4));
    assert_non_null(strstr(tr_error_message(), "simulate fewer ranks"));
    char *memory = tr_sim_reserve(0);
    assert_non_null(memory);
    memory[0] = 1;
    tr_sim_unreserve(memory, 0);
    tr_sim_unreserve(NULL, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listeners_hear_all),
        cmocka_unit_test(messages_are_given_up),
        cmocka_unit_test(senders_give_up),
        cmocka_unit_test(sizes_must_agree),
        cmocka_unit_test(ranks_leave),
        cmocka_unit_test(shared_memory_may_be_gone),
        cmocka_unit_test(memory_runs_out_under_way),
        cmocka_unit_test(memory_runs_out_before),
    };
    return cmocka_run_group_tests_name("plan.transport", tests, NULL, NULL);
}
