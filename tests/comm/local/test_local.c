/* Ranks as processes of one host: every scenario on 1 to 8 of them, and what happens when a process dies,
 * hangs, leaves, is slow or never comes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/threads/clock.h"
#include "comm/check.h"
#include "comm/local/launch.h"
#include "comm/process_ranks.h"

#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PATIENT 60.0 /* nobody is given up for being slow */
#define BRISK   2.0

static struct launch launch;

static void begin(double timeout)
{
    memset(&launch, 0, sizeof launch);
    launch.timeout = timeout;
}

static void test_scenarios(void **state)
{
    (void)state;
    begin(PATIENT);
    for (int ranks = 1; ranks <= 8; ranks++) launch_expect_well(&launch, ranks, process_run, "scenarios");
}

static void expect_loss(int victim, int ranks, const char *what, const char *how)
{
    launch_run(&launch, ranks, process_run, what);
    launch_expect_loss(launch.output, victim, ranks, what, how);
}

/* Known from the system, without the launcher's word, and by that word. */
static void test_killed(void **state)
{
    (void)state;
    for (int silent = 0; silent < 2; silent++) {
        begin(PATIENT);
        launch.silent = silent;
        expect_loss(2, 3, "kill", "died");
        expect_loss(1, 2, "exit", "died");
        expect_loss(0, 3, "work-0", "died");
        expect_loss(2, 4, "work-2", "died");
    }
}

static void test_stopped(void **state)
{
    (void)state;
    begin(BRISK);
    expect_loss(2, 3, "stop", "has not been heard of for");
}

static void test_slow(void **state)
{
    (void)state;
    begin(BRISK);
    launch_expect_well(&launch, 3, process_run, "slow");
    launch_expect_well(&launch, 2, process_run, "hiccups");
}

/* Whoever says why and is gone at once is known by the reason, not by its death; and all name it, not who
   heard of it first. */
static void test_gives_up(void **state)
{
    (void)state;
    begin(PATIENT);
    expect_loss(2, 3, "abort", "gave up: no more paper");
    for (int round = 0; round < 5; round++) {
        expect_loss(5, 6, round % 2 ? "words-killed" : "words", "gave up: no more paper");
        assert_null(strstr(launch.output, "gave up: barrier"));
    }
}

/* Many more ranks than processors: they meet, tell each other and send on. */
static const char *crowd(tr_comm *comm, const char *what)
{
    (void)what;
    int size = tr_comm_size(comm), me = tr_comm_rank(comm);
    int32_t blocks[LAUNCH_MOST][25], token = -1, next = me + 1;
    tr_ticket *ticket, *send;
    char host[64] = "";
    CHECK(gethostname(host, sizeof host - 1) == 0 && tr_comm_hosts(comm) == 1);
    for (int r = 0; r < size; r++) CHECK(strcmp(tr_comm_host(comm, r), host) == 0);
    for (int i = 0; i < 25; i++) blocks[me][i] = me * 100 + i;
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    CHECK_OK(tr_comm_exchange(comm, blocks, sizeof blocks[0], "blocks"));
    for (int rank = 0; rank < size; rank++)
        for (int i = 0; i < 25; i++) CHECK(blocks[rank][i] == rank * 100 + i);
    if (me > 0)
        CHECK_DONE(comm, &ticket, tr_comm_receive(comm, me - 1, 1, &token, sizeof token, "token", &ticket));
    CHECK(me == 0 || token == me);
    if (next < size) CHECK_DONE(comm, &send, tr_comm_send(comm, next, 1, &next, sizeof next, "token", &send));
    CHECK_OK(tr_comm_agree(comm, "size", "64", "start again"));
    return NULL;
}

static void test_crowd(void **state)
{
    (void)state;
    begin(PATIENT);
    launch_expect_well(&launch, LAUNCH_MOST, crowd, "crowd");
}

/* Who waits sleeps: rank 0 waits for as long as rank 1 naps, and takes next to no processor time. */
static const char *waits(tr_comm *comm, const char *what)
{
    (void)what;
    tr_ticket *ticket;
    struct rusage before, after;
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    getrusage(RUSAGE_SELF, &before);
    double began = tr_clock_seconds();
    if (tr_comm_rank(comm) == 1) process_nap(1);
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    double waited = tr_clock_seconds() - began;
    getrusage(RUSAGE_SELF, &after);
    double used = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec -
                           before.ru_stime.tv_sec) +
                  1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
                                  before.ru_stime.tv_usec);
    CHECK(used < waited / 4);
    return NULL;
}

static void test_waits_asleep(void **state)
{
    (void)state;
    begin(PATIENT);
    launch_expect_well(&launch, 2, waits, "waits");
}

static void test_survivors(void **state)
{
    (void)state;
    begin(PATIENT);
    launch_run(&launch, 4, process_run, "survive");
    for (int rank = 0; rank < 3; rank++) assert_int_equal(launch.code[rank], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scenarios), cmocka_unit_test(test_killed),
        cmocka_unit_test(test_stopped),   cmocka_unit_test(test_slow),
        cmocka_unit_test(test_gives_up),  cmocka_unit_test(test_survivors),
        cmocka_unit_test(test_crowd),     cmocka_unit_test(test_waits_asleep),
    };
    return cmocka_run_group_tests_name("comm.local", tests, NULL, NULL);
}
