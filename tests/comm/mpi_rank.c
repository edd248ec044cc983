/* One rank of the tests with processes; mpirun starts several. The argument says what to do. Prints a line
 * for each finding; rank 0 prints "all is well" at the end of a good run. Failures leave by _exit(), as
 * programs that use MPI must.
 */
#include "base/clock.h"
#include "base/tree.h"
#include "check.h"
#include "comm/mpi/mpi.h"
#include "scenarios.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT 1.0 /* of faults */

static void nap(double seconds)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)seconds,
                                 .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)},
              NULL);
}

/* mpirun passes on what comes in one piece. */
static void say(const tr_comm *comm, const char *text)
{
    char line[2000];
    int length = snprintf(line, sizeof line, "rank %d says: %s\n", comm ? tr_comm_rank(comm) : -1, text);
    if (write(STDOUT_FILENO, line, (size_t)length) < 0) abort();
}

static const char *run_scenarios(tr_comm *comm)
{
    for (const struct scenario *scenario = scenarios; scenario->name; scenario++) {
        const char *wrong = scenario->run(comm);
        if (wrong) return wrong;
    }
    return NULL;
}

/* Large messages go in pieces: of prime size, so that no boundary fits. */
static const char *run_pieces(tr_comm *comm)
{
    tr_comm_mpi_set_chunk(comm, 1009);
    for (const struct scenario *scenario = scenarios; scenario->name; scenario++) {
        /* A million elements would be thousands of pieces at once, which is no test of ours. */
        const char *wrong = strcmp(scenario->name, "large") == 0 ? NULL : scenario->run(comm);
        if (wrong) return wrong;
    }
    return NULL;
}

/* ---- faults: the last rank has one, the others meet at a barrier ---- */

static const char *share_pids(tr_comm *comm, pid_t *pid)
{
    int64_t bound[9];
    tr_ticket *ticket;
    for (int i = 0; i <= tr_comm_size(comm); i++) bound[i] = i * (int64_t)sizeof *pid;
    pid[tr_comm_rank(comm)] = getpid();
    CHECK_DONE(comm, &ticket, tr_comm_all_gather(comm, pid, bound, NULL, "pids", &ticket));
    return NULL;
}

static const char *fault(tr_comm *comm, const char *kind)
{
    pid_t pid[8];
    tr_ticket *ticket;
    int last = tr_comm_size(comm) - 1;
    CHECK_RUN(share_pids(comm, pid));
    if (tr_comm_rank(comm) == last) {
        if (strcmp(kind, "kill") == 0) raise(SIGKILL);
        if (strcmp(kind, "stop") == 0) raise(SIGSTOP);
        if (strcmp(kind, "exit") == 0) _exit(0);
        if (strcmp(kind, "abort") == 0) {
            tr_comm_abort(comm, "no more paper");
            nap(0.1);
            _exit(0);
        }
    }
    double began = tr_clock_seconds();
    char text[1200];
    CHECK_OK(tr_comm_barrier(comm, &ticket));
    CHECK(tr_comm_wait(comm, &ticket) == TR_EPEER);
    snprintf(text, sizeof text, "after %.2f s, %s", tr_clock_seconds() - began, tr_error_message());
    say(comm, text);
    CHECK(tr_clock_seconds() - began < TIMEOUT + 5);
    CHECK(tr_comm_barrier(comm, &ticket) == TR_EPEER);
    if (strcmp(kind, "stop") == 0) {
        nap(0.3); /* until all have found it */
        kill(pid[last], SIGKILL);
    }
    tr_comm_destroy(&comm);
    _exit(0);
}

/* ---- death in the middle of work ---- */

static void *die_soon(void *seed)
{
    nap(0.02 + 0.001 * (double)(*(const int *)seed % 200));
    raise(SIGKILL);
    return NULL;
}

/* All ranks reduce and gather without end; one is killed at some moment. */
static const char *work(tr_comm *comm, int victim)
{
    enum { COUNT = 300000 };
    int size = tr_comm_size(comm), me = tr_comm_rank(comm), seed = (int)getpid();
    int64_t bound[9], share[9], bytes[9];
    float *node = tr_alloc_zero(COUNT, sizeof *node), *out = tr_alloc_zero(COUNT, sizeof *out);
    tr_reduction *reduction;
    tr_ticket *ticket;
    pthread_t killer;
    CHECK(node && out);
    for (int i = 0; i <= size; i++) {
        bound[i] = i;
        share[i] = tr_cut(COUNT, size, i);
        bytes[i] = share[i] * (int64_t)sizeof(float);
    }
    CHECK_OK(tr_reduction_create(comm, size, bound, NULL, &reduction));
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    if (me == victim) CHECK(pthread_create(&killer, NULL, die_soon, &seed) == 0);
    tr_status status = TR_OK;
    while (status == TR_OK) {
        status =
            tr_comm_reduce_scatter(comm, reduction, node, COUNT, share, out + share[me], "work", &ticket);
        if (status == TR_OK) status = tr_comm_wait(comm, &ticket);
        if (status == TR_OK) status = tr_comm_all_gather(comm, out, bytes, NULL, "work", &ticket);
        if (status == TR_OK) status = tr_comm_wait(comm, &ticket);
    }
    CHECK(status == TR_EPEER);
    say(comm, tr_error_message());
    tr_comm_destroy(&comm);
    _exit(0);
}

/* Ranks that survive go on with each other: what an asynchronous server needs. */
static const char *survive(tr_comm *comm)
{
    int size = tr_comm_size(comm), me = tr_comm_rank(comm), last = size - 1;
    tr_ticket *ticket;
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    if (me == last) raise(SIGKILL);
    int32_t value = me, got = -1;
    tr_ticket *of_dead = NULL;
    CHECK_OK(tr_comm_receive(comm, last, 1, &got, sizeof got, "from the dead", &of_dead));
    while (tr_comm_life(comm, last, NULL, 0) != TR_COMM_DEAD) {
        bool done;
        CHECK_OK(tr_comm_test(comm, &of_dead, &done));
        CHECK(!done);
        tr_comm_idle(comm, 0.01);
    }
    CHECK(tr_comm_cancel(comm, &of_dead));
    for (int i = 0; i < 100; i++) {
        tr_ticket *send, *receive;
        value = me * 1000 + i;
        CHECK_OK(tr_comm_send(comm, (me + 1) % last, 2, &value, sizeof value, "among survivors", &send));
        CHECK_OK(
            tr_comm_receive(comm, (me + last - 1) % last, 2, &got, sizeof got, "among survivors", &receive));
        CHECK_OK(tr_comm_wait(comm, &receive));
        CHECK_OK(tr_comm_wait(comm, &send));
        CHECK(got == (me + last - 1) % last * 1000 + i);
    }
    say(comm, "survived");
    nap(0.2);
    _exit(0);
}

/* Rank 1 computes for several time-outs without a call; its keeper shows that it lives. */
static const char *slow(tr_comm *comm)
{
    tr_ticket *ticket;
    if (tr_comm_rank(comm) == 1) nap(4 * TIMEOUT);
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    return NULL;
}

/* Rank 1 is stopped for less than the time-out again and again, and the others are not angry. */
static const char *hiccups(tr_comm *comm)
{
    pid_t pid[8];
    tr_ticket *ticket;
    CHECK_RUN(share_pids(comm, pid));
    for (int i = 0; i < 3; i++) {
        if (tr_comm_rank(comm) == 0) {
            kill(pid[1], SIGSTOP);
            nap(0.5 * TIMEOUT);
            kill(pid[1], SIGCONT);
        }
        CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    }
    return NULL;
}

/* Rank 0 sends a large message and computes, without a call. Without a mover the message leaves with the next
   call only (or when rank 0 shows that it lives); with one it is there long before, unless the machine was
   busy in each round. Times are those of one clock, since the ranks are on one host. */
static const char *compute(tr_comm *comm)
{
    enum { BYTES = 32 << 20, ROUNDS = 3 };
    const double computing = 1.0;
    char *data = tr_alloc_zero(BYTES, 1), text[200];
    bool first = tr_comm_rank(comm) == 0;
    double best = computing;
    CHECK(data);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        bool moves = round % 2 == 1;
        tr_ticket *ticket, *sent = NULL;
        memset(data, first ? round + 1 : 0, BYTES);
        CHECK_OK(tr_comm_keep_moving(comm, moves && first));
        CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
        double began = tr_clock_seconds();
        if (first) {
            CHECK_OK(tr_comm_send(comm, 1, 1, data, BYTES, "large", &sent));
            nap(computing);
            CHECK_OK(tr_comm_wait(comm, &sent));
            CHECK_DONE(comm, &ticket, tr_comm_send(comm, 1, 2, &began, sizeof began, "beginning", &ticket));
            continue;
        }
        CHECK_DONE(comm, &ticket, tr_comm_receive(comm, 0, 1, data, BYTES, "large", &ticket));
        double took = tr_clock_seconds();
        CHECK_DONE(comm, &ticket, tr_comm_receive(comm, 0, 2, &began, sizeof began, "beginning", &ticket));
        took -= began;
        for (int i = 0; i < BYTES; i++) CHECK(data[i] == round + 1);
        snprintf(text, sizeof text, "%s a mover: %.3f s", moves ? "with" : "without", took);
        say(comm, text);
        if (moves && took < best) best = took;
        CHECK(moves || took >= 0.7 * computing);
    }
    CHECK(first || best < 0.7 * computing);
    tr_free(data);
    return NULL;
}

static const char *run(tr_comm *comm, const char *what)
{
    if (strncmp(what, "work-", 5) == 0) return work(comm, atoi(what + 5));
    if (strcmp(what, "scenarios") == 0) return run_scenarios(comm);
    if (strcmp(what, "pieces") == 0) return run_pieces(comm);
    if (strcmp(what, "survive") == 0) return survive(comm);
    if (strcmp(what, "compute") == 0) return compute(comm);
    if (strcmp(what, "slow") == 0) return slow(comm);
    if (strcmp(what, "hiccups") == 0) return hiccups(comm);
    return fault(comm, what);
}

/* Rank 1 of a world that one never joins: the others must not wait for ever. */
static int stay_away(const struct tr_comm_settings *settings, int rank)
{
    tr_comm *comm;
    if (rank == 1) {
        nap(3 * TIMEOUT);
        _exit(0);
    }
    tr_status status = tr_comm_mpi_create(settings, &comm);
    say(NULL, status == TR_EPEER ? tr_error_message() : "unexpected success");
    _exit(status == TR_EPEER ? 0 : 1);
}

int main(int argc, char **argv)
{
    int rank, size;
    tr_comm *comm;
    const char *what = argc > 1 ? argv[1] : "scenarios";
    bool faulty = strcmp(what, "scenarios") != 0 && strcmp(what, "pieces") != 0;
    struct tr_comm_settings settings = {.timeout = faulty ? TIMEOUT : 30, .patience = 40};
    if (!tr_comm_mpi_world((const char *const *)environ, &rank, &size)) {
        say(NULL, "this process was not started by mpirun");
        return 2;
    }
    if (strcmp(what, "away") == 0) return stay_away(&settings, rank);
    tr_status status = tr_comm_mpi_create(&settings, &comm);
    if (status != TR_OK) {
        say(NULL, tr_error_message());
        _exit(3);
    }
    const char *wrong =
        rank == tr_comm_rank(comm) && size == tr_comm_size(comm) ? run(comm, what) : "another rank or size";
    if (wrong) {
        say(comm, wrong);
        tr_comm_abort(comm, wrong);
        _exit(1);
    }
    tr_comm_destroy(&comm);
    if (rank == 0) say(NULL, "all is well");
    if (tr_alloc_live() != 0) say(NULL, "memory was left behind");
    return 0;
}
