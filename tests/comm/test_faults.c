/* What goes wrong between ranks: who is missing is found in time and named; who is slow is not thrown out;
 * failures do not spread further than they must; no allocation that fails does harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/threads/clock.h"
#include "base/text/log.h"
#include "comm/check.h"
#include "support/comm_thread/thread.h"
#include "comm/ranks.h"
#include "refuse.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* Deadlines that leave a busy machine some room. */
static const struct tr_comm_settings patient = {.timeout = 30, .patience = 30};
static const struct tr_comm_settings brisk = {.timeout = 0.3, .patience = 1.0};

static void nap(double seconds)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)seconds,
                                 .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)},
              NULL);
}

static const char *barrier(tr_comm *comm)
{
    tr_ticket *ticket;
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    return NULL;
}

/* The wait fails within some time, names all of `a`, `b` and `c`, and the communicator stays dead with the
 * same words. */
static const char *expect_loss(tr_comm *comm, tr_ticket **ticket, double seconds, const char *a,
                               const char *b, const char *c)
{
    double began = tr_clock_seconds();
    char message[1100];
    CHECK(tr_comm_wait(comm, ticket) == TR_EPEER);
    CHECK(tr_clock_seconds() - began < seconds + 5); /* 5: for a machine that is busy */
    snprintf(message, sizeof message, "%s", tr_error_message());
    if (!strstr(message, a) || !strstr(message, b) || !strstr(message, c)) {
        snprintf(check_text(), 1600, "\"%s\" lacks one of \"%s\", \"%s\", \"%s\"", message, a, b, c);
        return check_text();
    }
    tr_ticket *other;
    CHECK(tr_comm_barrier(comm, &other) == TR_EPEER && !other);
    CHECK(strcmp(tr_error_message(), message) == 0);
    CHECK(tr_comm_progress(comm) == TR_EPEER);
    CHECK(tr_comm_agree(comm, "a", "b", "c") == TR_EPEER);
    return NULL;
}

/* ---- missing ranks ---- */

/* Rank 2 lives but does not come: patience ends, and everybody names it. */
static const char *absent(tr_comm *comm)
{
    tr_ticket *ticket;
    double began = tr_clock_seconds();
    if (tr_comm_rank(comm) == 2) {
        char why[600] = "";
        /* Until it learns that the others gave up. */
        while (tr_comm_life(comm, 0, why, sizeof why) != TR_COMM_GAVE_UP) nap(0.01);
        CHECK(strstr(why, "gave up: ") && strstr(why, "rank 2 on host thread-host-0"));
        return NULL;
    }
    CHECK_OK(tr_comm_barrier(comm, &ticket));
    if (tr_comm_rank(comm) == 1) {
        /* It waits for rank 0 or 2; the first to give up tells. */
        CHECK(tr_comm_wait(comm, &ticket) == TR_EPEER);
        CHECK(strstr(tr_error_message(), "barrier on rank 1"));
        return NULL;
    }
    CHECK_RUN(expect_loss(comm, &ticket, brisk.patience, "barrier on rank 0", "rank 2 on host thread-host-0",
                          "patience"));
    CHECK(tr_clock_seconds() - began >= brisk.patience);
    return NULL;
}

static void test_absent(void **state)
{
    (void)state;
    ranks_run(3, NULL, &brisk, absent);
}

/* Rank 1 of 3 is killed while a reduction is under way. */
static const char *dies(tr_comm *comm)
{
    static const int64_t bound[] = {0, 1, 2, 3}, shard[] = {0, 40, 80, 120};
    float node[120] = {0}, out[40];
    tr_reduction *reduction;
    tr_ticket *ticket;
    CHECK_RUN(barrier(comm));
    if (tr_comm_rank(comm) == 1) {
        tr_comm_thread_kill(comm);
        CHECK(tr_comm_progress(comm) == TR_EPEER);
        return NULL;
    }
    CHECK_OK(tr_reduction_create(comm, 3, bound, NULL, &reduction));
    CHECK_OK(tr_comm_reduce_scatter(comm, reduction, node, 120, shard, out, "gradients 2/7", &ticket));
    CHECK_RUN(expect_loss(comm, &ticket, 1, "reduce-scatter \"gradients 2/7\" on rank",
                          "rank 1 on host thread-host-0 died", "restart the job from its last checkpoint"));
    tr_reduction_destroy(&reduction);
    return NULL;
}

static void test_dies(void **state)
{
    (void)state;
    ranks_run(3, NULL, &patient, dies); /* at once, not after the time-out */
}

/* Rank 3 of 4 is killed while the odd ranks work by themselves: its part names it by the number that people
 * know, and the failure is that of the whole; the even ranks learn it there. */
static const char *dies_in_part(tr_comm *comm)
{
    tr_comm *part;
    tr_ticket *ticket;
    int me = tr_comm_rank(comm);
    CHECK_OK(tr_comm_split(comm, me % 2, 0, &part));
    CHECK_RUN(barrier(part));
    if (me == 3) {
        tr_comm_thread_kill(comm);
        CHECK(tr_comm_progress(part) == TR_EPEER);
        CHECK(tr_comm_barrier(comm, &ticket) == TR_EPEER);
    } else if (me == 1) {
        CHECK_OK(tr_comm_barrier(part, &ticket));
        CHECK(tr_comm_wait(part, &ticket) == TR_EPEER);
        CHECK(strstr(tr_error_message(), "barrier on rank 1: rank 3 on host thread-host-0 died"));
        CHECK(tr_comm_barrier(part, &ticket) == TR_EPEER && tr_comm_barrier(comm, &ticket) == TR_EPEER);
        CHECK(strstr(tr_error_message(), "rank 3 on host thread-host-0 died"));
    } else {
        CHECK_RUN(barrier(part)); /* nobody is missing there */
        CHECK_OK(tr_comm_barrier(comm, &ticket));
        CHECK(tr_comm_wait(comm, &ticket) == TR_EPEER);
        CHECK(strstr(tr_error_message(), "rank 3 on host thread-host-0 died"));
    }
    tr_comm_destroy(&part);
    return NULL;
}

static void test_dies_in_part(void **state)
{
    (void)state;
    ranks_run(4, NULL, &patient, dies_in_part);
}

/* Rank 1 hangs: no sign of life for the time-out, though patience would last longer. */
static const char *hangs(tr_comm *comm)
{
    tr_ticket *ticket;
    CHECK_RUN(barrier(comm));
    if (tr_comm_rank(comm) == 1) {
        tr_comm_thread_freeze(comm);
        while (tr_comm_life(comm, 0, NULL, 0) == TR_COMM_ALIVE) nap(0.01);
        return NULL;
    }
    CHECK_OK(tr_comm_barrier(comm, &ticket));
    CHECK_RUN(expect_loss(comm, &ticket, 0.3, "rank 1 on host thread-host-0", "not been heard of for",
                          "time-out 0.3 s"));
    char why[100];
    CHECK(tr_comm_life(comm, 1, why, sizeof why) == TR_COMM_SILENT ||
          tr_comm_life(comm, 1, NULL, 0) == TR_COMM_GAVE_UP ||
          tr_comm_life(comm, 1, NULL, 0) == TR_COMM_LEFT);
    return NULL;
}

static void test_hangs(void **state)
{
    (void)state;
    static const struct tr_comm_settings settings = {.timeout = 0.3, .patience = 30};
    ranks_run(2, NULL, &settings, hangs);
}

/* One that gives up is understood at once, with its reason. */
static const char *gives_up(tr_comm *comm)
{
    tr_ticket *ticket;
    CHECK_RUN(barrier(comm));
    if (tr_comm_rank(comm) == 3) {
        tr_comm_abort(comm, "disk full");
        CHECK(tr_comm_barrier(comm, &ticket) == TR_EPEER);
        CHECK(strcmp(tr_error_message(), "rank 3 gave up: disk full") == 0);
        return NULL;
    }
    CHECK_OK(tr_comm_barrier(comm, &ticket));
    CHECK(tr_comm_wait(comm, &ticket) == TR_EPEER);
    CHECK(strstr(tr_error_message(), "disk full"));
    return NULL;
}

static void test_gives_up(void **state)
{
    (void)state;
    ranks_run(4, NULL, &patient, gives_up);
}

/* Ending while something is under way is giving up, too. */
static const char *leaves(tr_comm *comm)
{
    static char byte;
    tr_ticket *ticket;
    if (tr_comm_rank(comm) == 1) {
        CHECK_OK(tr_comm_receive(comm, 0, 4, &byte, 1, "never", &ticket));
        return NULL; /* and destroys the communicator */
    }
    CHECK_OK(tr_comm_barrier(comm, &ticket));
    CHECK_RUN(expect_loss(comm, &ticket, 1, "rank 1 on host thread-host-0", "",
                          "it ended while operations were under way"));
    return NULL;
}

static void test_leaves(void **state)
{
    (void)state;
    ranks_run(2, NULL, &patient, leaves);
}

/* A message gets lost: the receiver misses it, although the sender is well. */
static const char *loses(tr_comm *comm)
{
    static const int64_t bound[] = {0, 8, 16};
    char data[16] = {0};
    tr_ticket *ticket;
    CHECK_RUN(barrier(comm));
    if (tr_comm_rank(comm) == 1) tr_comm_thread_delay(comm, 0, 0, -1);
    CHECK_OK(tr_comm_all_gather(comm, data, bound, NULL, "weights", &ticket));
    if (tr_comm_rank(comm) == 0)
        return expect_loss(comm, &ticket, 1, "all-gather \"weights\" on rank 0", "although alive: rank 1",
                           "patience 1 s");
    CHECK_OK(tr_comm_wait(comm, &ticket));
    while (tr_comm_life(comm, 0, NULL, 0) == TR_COMM_ALIVE) nap(0.01);
    return NULL;
}

static void test_loses(void **state)
{
    (void)state;
    ranks_run(2, NULL, &brisk, loses);
}

/* ---- slow ranks ---- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char logged[1024];
static int warnings;

static void keep(void *user, enum tr_log_level level, const char *message)
{
    (void)user;
    pthread_mutex_lock(&log_lock);
    if (level == TR_LOG_WARNING) {
        snprintf(logged, sizeof logged, "%s", message);
        warnings++;
    }
    pthread_mutex_unlock(&log_lock);
}

/* Rank 1 takes several times the time-out, but lives. */
static const char *is_slow(tr_comm *comm)
{
    if (tr_comm_rank(comm) == 1) nap(1.0);
    return barrier(comm);
}

static void test_slow_is_waited_for(void **state)
{
    (void)state;
    static const struct tr_comm_settings settings = {.timeout = 0.2, .patience = 30};
    tr_log_set_sink(keep, NULL, TR_LOG_WARNING);
    warnings = 0;
    ranks_run(2, NULL, &settings, is_slow);
    tr_log_set_sink(NULL, NULL, TR_LOG_WARNING);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(logged, "slow, but alive: rank 1 on host thread-host-0"));
}

/* A late message holds back those behind it, and nothing is lost or swapped. */
static const char *is_late(tr_comm *comm)
{
    int32_t sent[4] = {10, 11, 12, 13}, got[4] = {0};
    tr_ticket *ticket[4];
    CHECK_RUN(barrier(comm));
    if (tr_comm_rank(comm) == 0) tr_comm_thread_delay(comm, 1, 1, 0.2);
    double began = tr_clock_seconds();
    for (int i = 0; i < 4; i++)
        CHECK_OK(tr_comm_rank(comm) == 0
                     ? tr_comm_send(comm, 1, 3, &sent[i], sizeof sent[0], "late", &ticket[i])
                     : tr_comm_receive(comm, 0, 3, &got[i], sizeof got[0], "late", &ticket[i]));
    for (int i = 0; i < 4; i++) CHECK_OK(tr_comm_wait(comm, &ticket[i]));
    if (tr_comm_rank(comm) == 0) return NULL;
    for (int i = 0; i < 4; i++) CHECK(got[i] == sent[i]);
    CHECK(tr_clock_seconds() - began >= 0.15);
    struct tr_comm_statistics figures;
    tr_comm_statistics(comm, &figures);
    CHECK(figures.wait_seconds >= 0.15);
    return NULL;
}

static void test_late(void **state)
{
    (void)state;
    ranks_run(2, NULL, &patient, is_late);
}

/* ---- going on without the dead ---- */

/* All that a rank needs of others, while all are there and after one gave up; who is to blame comes first. */
static const char *requires(tr_comm *comm)
{
    static const int others[] = {0, 1, 2};
    CHECK_RUN(barrier(comm));
    CHECK_OK(tr_comm_require(comm, others, 3));
    CHECK_RUN(barrier(comm));
    if (tr_comm_rank(comm) == 2) {
        tr_comm_thread_kill(comm);
        return NULL;
    }
    if (tr_comm_rank(comm) == 0) {
        while (tr_comm_require(comm, others, 3) == TR_OK) nap(0.01);
        tr_comm_abort(comm, "rank 2 is gone");
        return NULL;
    }
    while (tr_comm_life(comm, 0, NULL, 0) != TR_COMM_GAVE_UP) nap(0.01);
    CHECK(tr_comm_require(comm, others, 3) == TR_EPEER);
    CHECK(strstr(tr_error_message(), "rank 2 on host thread-host-0 died"));
    CHECK(tr_comm_require(comm, others, 1) == TR_EPEER);
    CHECK(strstr(tr_error_message(), "rank 0 on host thread-host-0 gave up: rank 2 is gone"));
    CHECK_OK(tr_comm_require(comm, others + 1, 1)); /* ourselves */
    CHECK_OK(tr_comm_progress(comm));
    tr_comm_dissolve(comm);
    return NULL;
}

static void test_requires(void **state)
{
    (void)state;
    ranks_run(3, NULL, &patient, requires);
}

/* What an asynchronous server does: it tests its receives, gives up those of a worker that died, and serves
 * the others. */
static const char *serve(tr_comm *comm)
{
    tr_comm_tolerate(comm);
    enum { WORKERS = 3, ROUNDS = 20 };
    int32_t got[WORKERS + 1] = {0}, left = 0, rounds[WORKERS + 1] = {0};
    tr_ticket *ticket[WORKERS + 1] = {NULL};
    if (tr_comm_rank(comm) > 0) {
        for (int32_t i = 0; i < ROUNDS; i++) {
            if (tr_comm_rank(comm) == 2 && i == 5) {
                tr_comm_thread_kill(comm);
                return NULL;
            }
            tr_ticket *send;
            CHECK_DONE(comm, &send, tr_comm_send(comm, 0, 1, &i, sizeof i, "push", &send));
        }
        tr_comm_dissolve(comm); /* leaving together is impossible now */
        return NULL;
    }
    for (int w = 1; w <= WORKERS; w++, left++)
        CHECK_OK(tr_comm_receive(comm, w, 1, &got[w], sizeof got[w], "push", &ticket[w]));
    while (left > 0) {
        for (int w = 1; w <= WORKERS; w++) {
            bool done;
            if (!ticket[w]) continue;
            CHECK_OK(tr_comm_test(comm, &ticket[w], &done));
            if (done) {
                CHECK(got[w] == rounds[w]);
                if (++rounds[w] == ROUNDS)
                    left--;
                else
                    CHECK_OK(tr_comm_receive(comm, w, 1, &got[w], sizeof got[w], "push", &ticket[w]));
            } else if (tr_comm_life(comm, w, NULL, 0) == TR_COMM_DEAD) {
                CHECK(w == 2 && rounds[w] == 5);
                CHECK(tr_comm_cancel(comm, &ticket[w]));
                left--;
            }
        }
        tr_comm_idle(comm, 0.05);
    }
    CHECK(rounds[1] == ROUNDS && rounds[3] == ROUNDS);
    static const int needed[] = {1, 3}, all[] = {3, 2, 1};
    CHECK(tr_comm_require(comm, all, 3) == TR_EPEER);
    /* Who left in good order may have been faster than we are; the dead one is named before. */
    CHECK(strstr(tr_error_message(), "rank 2 on host thread-host-0 died") ||
          strstr(tr_error_message(), "has left"));
    CHECK(tr_comm_life(comm, 1, NULL, 0) != TR_COMM_GAVE_UP &&
          tr_comm_life(comm, 3, NULL, 0) != TR_COMM_GAVE_UP);
    if (tr_comm_require(comm, needed, 2) != TR_OK) CHECK(strstr(tr_error_message(), "has left"));
    CHECK_OK(tr_comm_progress(comm)); /* it lives */
    tr_comm_dissolve(comm);
    return NULL;
}

static void test_server_survives(void **state)
{
    (void)state;
    ranks_run(4, NULL, &patient, serve);
}

/* ---- disagreement about messages ---- */

static const char *disagree(tr_comm *comm)
{
    static char data[10];
    tr_ticket *ticket;
    if (tr_comm_rank(comm) == 0) {
        CHECK_OK(tr_comm_send(comm, 1, 2, data, 10, NULL, &ticket));
        CHECK(tr_comm_wait(comm, &ticket) == TR_OK);
        while (tr_comm_life(comm, 1, NULL, 0) != TR_COMM_GAVE_UP) nap(0.01);
        return NULL;
    }
    tr_status status = tr_comm_receive(comm, 0, 2, data, 7, NULL, &ticket);
    if (status == TR_OK) status = tr_comm_wait(comm, &ticket);
    CHECK(status == TR_EMISMATCH);
    CHECK(strstr(tr_error_message(), "10 bytes") && strstr(tr_error_message(), "rank 0"));
    return NULL;
}

static void test_disagree(void **state)
{
    (void)state;
    ranks_run(2, NULL, &patient, disagree);
}

/* ---- memory ---- */

/* Every allocation of a group and of one of each operation fails in turn. One rank, so that nothing runs
 * beside. */
static tr_status use_all(tr_comm *comm)
{
    static const int64_t bound[] = {0, 5}, shard[] = {0, 3000};
    float nodes[2 * 3000] = {0}, out[3000];
    tr_ticket *ticket;
    tr_reduction *reduction = NULL;
    tr_window *window = NULL;
    tr_status status = tr_window_create(comm, 100, &window);
    if (status == TR_OK) status = tr_reduction_create(comm, 5, bound, NULL, &reduction);
    if (status == TR_OK)
        status = tr_comm_reduce_scatter(comm, reduction, nodes, 3000, shard, out, NULL, &ticket);
    if (status == TR_OK) status = tr_comm_wait(comm, &ticket);
    if (status == TR_OK) status = tr_comm_all_reduce(comm, reduction, nodes, 3000, 3000, out, NULL, &ticket);
    if (status == TR_OK) status = tr_comm_wait(comm, &ticket);
    if (status == TR_OK) status = tr_comm_agree(comm, "key", "value", "advice");
    if (status == TR_OK) status = tr_comm_send(comm, 0, 1, nodes, 4, NULL, &ticket);
    tr_ticket *receive = NULL;
    if (status == TR_OK) status = tr_comm_receive(comm, 0, 1, out, 4, NULL, &receive);
    if (status == TR_OK) status = tr_comm_wait(comm, &receive);
    if (status == TR_OK) status = tr_comm_wait(comm, &ticket);
    tr_reduction_destroy(&reduction);
    tr_window_destroy(&window);
    return status;
}

static void test_no_memory(void **state)
{
    (void)state;
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        tr_comm *comm = NULL;
        refuse_begin(at);
        tr_status status = tr_comm_thread_create(1, NULL, &patient, &comm);
        if (status == TR_OK) status = use_all(comm);
        tr_comm_destroy(&comm);
        done = refuse_end();
        /* Without memory for a window there is none, which is no more than a pity. */
        bool no_window = status == TR_EUNSUPPORTED && strstr(tr_error_message(), "out of memory");
        assert_true(done ? status == TR_OK : status == TR_ENOMEM || no_window);
        assert_int_equal(tr_alloc_live(), live);
        assert_true(at < 500);
    }
}

/* A training step allocates nothing once the first one is through. */
static const char *step(tr_comm *comm)
{
    static int64_t before;
    static const int64_t bound[] = {0, 3, 5, 8}, shard[] = {0, 100, 500, 3000},
                         bytes[] = {0, 400, 2000, 12000};
    float nodes[3 * 3000] = {0}, out[3000];
    tr_reduction *reduction;
    tr_ticket *ticket[2];
    int me = tr_comm_rank(comm);
    CHECK_OK(tr_reduction_create(comm, 8, bound, NULL, &reduction));
    for (int i = 0; i < 6; i++) {
        if (i == 2 && me == 0) before = tr_alloc_total();
        CHECK_RUN(barrier(comm));
        for (int b = 0; b < 2; b++)
            CHECK_OK(tr_comm_reduce_scatter(comm, reduction, nodes, 3000, shard, out + shard[me], "step",
                                            &ticket[b]));
        for (int b = 0; b < 2; b++) CHECK_OK(tr_comm_wait(comm, &ticket[b]));
        CHECK_DONE(comm, &ticket[0], tr_comm_all_gather(comm, out, bytes, NULL, "step", &ticket[0]));
        CHECK_RUN(barrier(comm));
    }
    if (me == 0) CHECK(tr_alloc_total() == before);
    CHECK_RUN(barrier(comm));
    tr_reduction_destroy(&reduction);
    return NULL;
}

static void test_steps_allocate_nothing(void **state)
{
    (void)state;
    ranks_run(3, NULL, &patient, step);
}

/* Rank 0 fails in the middle of its work, and takes back the memory of what it has under way: nothing of it
   goes to others any more, and nothing comes in. */
static atomic_bool taken_back;

static const char *takes_back(tr_comm *comm)
{
    static float data[2][100];
    static const int64_t bound[] = {0, 1, 2};
    tr_ticket *ticket = NULL, *sum = NULL;
    tr_reduction *reduction;
    float *mine = data[tr_comm_rank(comm)];
    CHECK_RUN(barrier(comm));
    CHECK_OK(tr_reduction_create(comm, 2, bound, NULL, &reduction));
    if (tr_comm_rank(comm) == 0) {
        CHECK(tr_comm_end_operations(comm, "nothing is wrong")); /* since nothing is under way */
        CHECK_OK(tr_comm_progress(comm));
        CHECK_OK(tr_comm_use_progress_thread(comm, true));
        CHECK_OK(tr_comm_send(comm, 1, 1, mine, sizeof data[0], "numbers", &ticket));
        CHECK_OK(tr_comm_receive(comm, 1, 2, mine, sizeof data[0], "numbers", &ticket));
        CHECK_OK(tr_comm_all_reduce(comm, reduction, mine, 100, 100, mine, "sum", &sum));
        CHECK(tr_comm_end_operations(comm, "the device is on fire"));
        for (int i = 0; i < 100; i++) mine[i] = 7;
        taken_back = true;
        CHECK(tr_comm_progress(comm) == TR_EPEER);
        while (tr_comm_life(comm, 1, NULL, 0) == TR_COMM_ALIVE) nap(0.001);
        for (int i = 0; i < 100; i++) CHECK(mine[i] == 7);
    } else {
        while (!taken_back) nap(0.001);
        CHECK_OK(tr_comm_receive(comm, 0, 1, mine, sizeof data[0], "numbers", &ticket));
        CHECK(tr_comm_wait(comm, &ticket) == TR_EPEER);
        CHECK(strstr(tr_error_message(), "rank 0 on host thread-host-0 gave up: the device is on fire"));
        for (int i = 0; i < 100; i++) CHECK(mine[i] == 0);
    }
    tr_reduction_destroy(&reduction);
    return NULL;
}

static void test_memory_is_taken_back(void **state)
{
    (void)state;
    int64_t live = tr_alloc_live();
    ranks_run(2, NULL, &patient, takes_back);
    assert_int_equal(tr_alloc_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_dies_in_part),
        cmocka_unit_test(test_dies),
        cmocka_unit_test(test_hangs),
        cmocka_unit_test(test_gives_up),
        cmocka_unit_test(test_leaves),
        cmocka_unit_test(test_loses),
        cmocka_unit_test(test_slow_is_waited_for),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_requires),
        cmocka_unit_test(test_server_survives),
        cmocka_unit_test(test_disagree),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_steps_allocate_nothing),
        cmocka_unit_test(test_memory_is_taken_back),
    };
    return cmocka_run_group_tests_name("comm.faults", tests, NULL, NULL);
}
