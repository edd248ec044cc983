/* A thread of its own moves a rank's operations while the rank does something else: others get what they wait
 * for without its calls, what is the program's is left to calls, and what goes wrong is told by the next one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/threads/clock.h"
#include "comm/check.h"
#include "support/comm_thread/thread.h"
#include "comm/ranks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* Floats: too many to be sent to everybody at once, and large messages even among four. */
#define COUNT 80000

static const struct tr_comm_settings settings = {.timeout = 30, .patience = 30};
static const int apart[RANKS_MOST] = {0, 1, 2, 3, 4, 5, 6, 7};

static void nap(double seconds)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
}

/* Every rank brings one node of ones, everybody gets the sum. */
struct sum {
    float node[COUNT], out[COUNT];
    tr_reduction *reduction;
    tr_ticket *ticket;
};

static struct sum sums[RANKS_MOST]; /* by rank: some are in use until the end of the communicator */

static const char *start_sum(tr_comm *comm, struct sum *sum)
{
    int64_t bound[RANKS_MOST + 1];
    for (int i = 0; i <= tr_comm_size(comm); i++) bound[i] = i;
    for (int i = 0; i < COUNT; i++) sum->node[i] = 1;
    CHECK_OK(tr_reduction_create(comm, tr_comm_size(comm), bound, NULL, &sum->reduction));
    CHECK_OK(
        tr_comm_all_reduce(comm, sum->reduction, sum->node, COUNT, COUNT, sum->out, "sum", &sum->ticket));
    return NULL;
}

static const char *end_sum(tr_comm *comm, struct sum *sum)
{
    CHECK_OK(tr_comm_wait(comm, &sum->ticket));
    for (int i = 0; i < COUNT; i++) CHECK(sum->out[i] == (float)tr_comm_size(comm));
    tr_reduction_destroy(&sum->reduction);
    return NULL;
}

/* ---- who computes keeps nobody waiting ---- */

static atomic_bool moves;          /* rank 0 has a progress thread */
static atomic_bool computing;      /* rank 0 has started its sum, the first, and makes no more calls */
static atomic_int waiting, served; /* ranks */

/* Rank 0 starts a sum, waits for a word, and makes no call until the others have theirs, which takes its sums
   and messages of two more phases; without a progress thread they get it only once it calls. */
static const char *compute(tr_comm *comm)
{
    struct sum *sum = &sums[tr_comm_rank(comm)];
    int others = tr_comm_size(comm) - 1;
    tr_ticket *ticket;
    char word = 0;
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    if (tr_comm_rank(comm) == 1) {
        nap(0.005); /* so that the progress thread has given way to who waits */
        CHECK_DONE(comm, &ticket, tr_comm_send(comm, 0, 1, &word, sizeof word, "word", &ticket));
    }
    if (tr_comm_rank(comm) == 0) {
        if (moves) CHECK_OK(tr_comm_use_progress_thread(comm, true));
        CHECK_RUN(start_sum(comm, sum));
        CHECK_DONE(comm, &ticket, tr_comm_receive(comm, 1, 1, &word, sizeof word, "word", &ticket));
        computing = true;
        double limit = tr_clock_seconds() + 20;
        while (waiting < others) nap(0.001);
        if (!moves) {
            nap(0.2);
            CHECK(served == 0); /* or the test shows nothing */
        }
        while (moves && served < others && tr_clock_seconds() < limit) nap(0.001);
        CHECK(served == (moves ? others : 0));
    } else {
        while (!computing) nap(0.0005);
        CHECK_RUN(start_sum(comm, sum));
        waiting++;
        CHECK_OK(tr_comm_wait(comm, &sum->ticket));
        served++;
    }
    CHECK_RUN(end_sum(comm, sum));
    return NULL;
}

static void test_nobody_waits_behind_computing(void **state)
{
    (void)state;
    for (int size = 2; size <= 4; size++)
        for (int with = 0; with <= 1; with++) {
            moves = with == 1;
            computing = false;
            waiting = served = 0;
            ranks_run(size, apart, &settings, compute);
        }
}

/* The same on a part. */
static const char *compute_on_part(tr_comm *comm)
{
    tr_comm *part;
    CHECK_OK(tr_comm_split(comm, 0, -tr_comm_rank(comm), &part));
    const char *wrong = compute(part);
    tr_comm_destroy(&part);
    return wrong;
}

static void test_parts_have_progress_threads(void **state)
{
    (void)state;
    for (int with = 0; with <= 1; with++) {
        moves = with == 1;
        computing = false;
        waiting = served = 0;
        ranks_run(3, apart, &settings, compute_on_part);
    }
}

/* ---- results ---- */

static scenario_function scenario_run;

static const char *run_moved(tr_comm *comm)
{
    CHECK_OK(tr_comm_use_progress_thread(comm, true));
    CHECK_OK(tr_comm_use_progress_thread(comm, true));
    const char *wrong = scenario_run(comm);
    if (wrong) return wrong;
    if (tr_comm_rank(comm) == 0)
        CHECK_OK(tr_comm_use_progress_thread(comm, false)); /* the others leave it to the end */
    return NULL;
}

/* Everything a communicator can do, to the same bits, while progress threads reach in. */
static void test_scenarios(void **state)
{
    (void)state;
    int64_t live = tr_alloc_live();
    for (int size = 1; size <= 5; size += 2)
        for (int alone = 0; alone <= 1; alone++)
            for (const struct scenario *scenario = scenarios; scenario->name; scenario++) {
                /* Scenarios about neighbours say how many there are. */
                if (alone && strstr(scenario->name, "window") && size > 1) continue;
                scenario_run = scenario->run;
                ranks_run(size, alone ? apart : NULL, &settings, run_moved);
                if (tr_alloc_live() != live)
                    fail_msg("%s on %d ranks leaves memory behind", scenario->name, size);
            }
}

/* ---- what is the program's ---- */

/* A progress thread makes an operation ready without any call, and goes no further before the caller hands it
 * on. */
static const char *make_ready(tr_comm *comm)
{
    int size = tr_comm_size(comm), me = tr_comm_rank(comm);
    int64_t bound[RANKS_MOST + 1], shard[RANKS_MOST + 1];
    struct sum *sum = &sums[me];
    for (int i = 0; i <= size; i++) {
        bound[i] = i;
        shard[i] = i * (COUNT / size / 16 * 16);
    }
    for (int i = 0; i < COUNT; i++) sum->node[i] = 1;
    CHECK_OK(tr_comm_use_progress_thread(comm, true));
    CHECK_OK(tr_reduction_create(comm, size, bound, NULL, &sum->reduction));
    for (int round = 0; round < 20; round++) {
        memset(sum->out, 0, sizeof sum->out);
        CHECK_OK(tr_comm_reduce_start(comm, sum->reduction, sum->node, COUNT, shard, sum->out, NULL, "apply",
                                      &sum->ticket));
        double limit = tr_clock_seconds() + 60;
        while (!tr_comm_is_ready(comm, sum->ticket) && tr_clock_seconds() < limit) nap(0.001);
        CHECK(tr_comm_is_ready(comm, sum->ticket));
        nap(0.002);
        CHECK(!tr_comm_is_done(comm, &sum->ticket));
        tr_comm_reduce_piece(sum->ticket, shard[me], shard[me + 1], sum->out + shard[me]);
        CHECK_OK(tr_comm_reduce_gather(comm, sum->ticket));
        while (!tr_comm_is_done(comm, &sum->ticket) && tr_clock_seconds() < limit) nap(0.001);
        CHECK(!sum->ticket);
        for (int64_t e = 0; e < shard[size]; e++) CHECK(sum->out[e] == (float)size);
    }
    tr_reduction_destroy(&sum->reduction);
    return NULL;
}

static void test_callers_hand_on(void **state)
{
    (void)state;
    for (int size = 2; size <= 4; size++) ranks_run(size, apart, &settings, make_ready);
}

/* ---- failures ---- */

/* Rank 0's progress thread finds that a message has the wrong size; the next call says so, with its status,
   and the communicator stays dead. */
static const char *mismatch(tr_comm *comm)
{
    static atomic_bool expected; /* rank 0 waits for the message: else the call that receives it would fail */
    int32_t wide[2] = {0}, narrow = 0;
    tr_ticket *ticket = NULL, *barrier;
    CHECK_DONE(comm, &barrier, tr_comm_barrier(comm, &barrier));
    if (tr_comm_rank(comm) == 1) {
        while (!expected) nap(0.001);
        CHECK_OK(tr_comm_send(comm, 0, 1, &narrow, sizeof narrow, "number", &ticket));
        while (tr_comm_life(comm, 0, NULL, 0) == TR_COMM_ALIVE) nap(0.001);
        CHECK(tr_comm_life(comm, 0, NULL, 0) == TR_COMM_GAVE_UP);
        return NULL;
    }
    CHECK_OK(tr_comm_use_progress_thread(comm, true));
    CHECK_OK(tr_comm_receive(comm, 1, 1, wide, sizeof wide, "number", &ticket));
    expected = true;
    double limit = tr_clock_seconds() + 20;
    while (tr_comm_life(comm, 0, NULL, 0) == TR_COMM_ALIVE && tr_clock_seconds() < limit) nap(0.001);
    CHECK(!tr_comm_is_done(comm, &ticket));
    CHECK(tr_comm_wait(comm, &ticket) == TR_EMISMATCH);
    CHECK(strstr(tr_error_message(), "receive \"number\" on rank 0: the message from rank 1 has 4 bytes"));
    CHECK(tr_comm_progress(comm) == TR_EPEER);
    CHECK(strstr(tr_error_message(), "receive \"number\" on rank 0"));
    CHECK_OK(tr_comm_use_progress_thread(comm, false));
    return NULL;
}

static void test_failures_are_told(void **state)
{
    (void)state;
    ranks_run(2, apart, &settings, mismatch);
}

/* A rank that is killed: its progress thread ends, others' decide nothing, and whoever waits is told. */
static const char *dies(tr_comm *comm)
{
    struct sum *sum = &sums[tr_comm_rank(comm)];
    tr_ticket *ticket;
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    CHECK_OK(tr_comm_use_progress_thread(comm, true));
    if (tr_comm_rank(comm) == 1) {
        tr_comm_thread_kill(comm);
        return NULL;
    }
    CHECK_RUN(start_sum(comm, sum));
    nap(0.05);
    CHECK_OK(tr_comm_progress(comm));
    CHECK(tr_comm_wait(comm, &sum->ticket) == TR_EPEER);
    CHECK(strstr(tr_error_message(), "rank 1 on host thread-host-1 died"));
    tr_comm_use_progress_thread(comm, false);
    tr_reduction_destroy(&sum->reduction);
    return NULL;
}

static void test_deaths_are_for_waits(void **state)
{
    (void)state;
    ranks_run(3, apart, &settings, dies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_waits_behind_computing),
        cmocka_unit_test(test_parts_have_progress_threads),
        cmocka_unit_test(test_scenarios),
        cmocka_unit_test(test_callers_hand_on),
        cmocka_unit_test(test_failures_are_told),
        cmocka_unit_test(test_deaths_are_for_waits),
    };
    return cmocka_run_group_tests_name("comm.progress", tests, NULL, NULL);
}
