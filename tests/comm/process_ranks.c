/* What ranks that are processes do in tests, whatever started them. */
#include "comm/process_ranks.h"

#include "base/threads/clock.h"
#include "base/numbers/tree.h"
#include "comm/check.h"
#include "comm/class.h"
#include "comm/scenarios/scenarios.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

void process_nap(double seconds)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)seconds,
                                 .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)},
              NULL);
}

void process_say(const tr_comm *comm, const char *text)
{
    char line[2000];
    int length = snprintf(line, sizeof line, "rank %d says: %s\n", comm ? tr_comm_rank(comm) : -1, text);
    if (write(STDOUT_FILENO, line, (size_t)length) < 0) abort();
}

const char *process_scenarios(tr_comm *comm)
{
    for (const struct scenario *scenario = scenarios; scenario->name; scenario++) {
        const char *wrong = scenario->run(comm);
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
            process_nap(0.1);
            _exit(0);
        }
    }
    CHECK_OK(tr_comm_barrier(comm, &ticket));
    CHECK(tr_comm_wait(comm, &ticket) == TR_EPEER);
    process_say(comm, tr_error_message());
    CHECK(tr_comm_barrier(comm, &ticket) == TR_EPEER);
    if (strcmp(kind, "stop") == 0) {
        process_nap(0.3); /* until all have found it */
        kill(pid[last], SIGKILL);
    }
    tr_comm_destroy(&comm);
    _exit(0);
}

/* The last rank says why it gives up, and is gone at once. */
static const char *last_words(tr_comm *comm, bool killed)
{
    tr_ticket *ticket;
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    if (tr_comm_rank(comm) == tr_comm_size(comm) - 1) {
        tr_comm_abort(comm, "no more paper");
        if (killed) raise(SIGKILL);
        _exit(0);
    }
    CHECK_OK(tr_comm_barrier(comm, &ticket));
    CHECK(tr_comm_wait(comm, &ticket) == TR_EPEER);
    process_say(comm, tr_error_message());
    tr_comm_destroy(&comm);
    _exit(0);
}

/* ---- death in the middle of work ---- */

static void *die_soon(void *seed)
{
    process_nap(0.02 + 0.001 * (double)(*(const int *)seed % 200));
    raise(SIGKILL);
    return NULL;
}

/* All ranks reduce and gather without end; one is killed at some moment. */
static const char *work(tr_comm *comm, int victim)
{
    enum { COUNT = 300000 };
    int size = tr_comm_size(comm), me = tr_comm_rank(comm), seed = (int)getpid();
    int64_t bound[9], shard[9], bytes[9];
    float *node = tr_alloc_zero(COUNT, sizeof *node), *out = tr_alloc_zero(COUNT, sizeof *out);
    tr_reduction *reduction;
    tr_ticket *ticket;
    pthread_t killer;
    CHECK(node && out);
    for (int i = 0; i <= size; i++) {
        bound[i] = i;
        shard[i] = tr_cut(COUNT, size, i);
        bytes[i] = shard[i] * (int64_t)sizeof(float);
    }
    CHECK_OK(tr_reduction_create(comm, size, bound, NULL, &reduction));
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    if (me == victim) CHECK(pthread_create(&killer, NULL, die_soon, &seed) == 0);
    tr_status status = TR_OK;
    while (status == TR_OK) {
        status =
            tr_comm_reduce_scatter(comm, reduction, node, COUNT, shard, out + shard[me], "work", &ticket);
        if (status == TR_OK) status = tr_comm_wait(comm, &ticket);
        if (status == TR_OK) status = tr_comm_all_gather(comm, out, bytes, NULL, "work", &ticket);
        if (status == TR_OK) status = tr_comm_wait(comm, &ticket);
    }
    CHECK(status == TR_EPEER);
    process_say(comm, tr_error_message());
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
    process_say(comm, "survived");
    process_nap(0.2);
    _exit(0);
}

/* Rank 1 computes for several time-outs without a call; its keeper shows that it lives. */
static const char *slow(tr_comm *comm)
{
    tr_ticket *ticket;
    if (tr_comm_rank(comm) == 1) process_nap(4 * comm->settings.timeout);
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
            process_nap(0.5 * comm->settings.timeout);
            kill(pid[1], SIGCONT);
        }
        CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    }
    return NULL;
}

/* Rank 0 sends a large message and makes no call until rank 1 has it, which only the thread of
   tr_comm_use_progress_thread() can bring about. */
static const char *compute(tr_comm *comm)
{
    enum { BYTES = 32 << 20 };
    unsigned char *data = tr_alloc_zero(BYTES, 1);
    tr_window *window;
    tr_ticket *ticket;
    CHECK(data);
    CHECK_OK(tr_window_create(comm, sizeof(atomic_int), &window));
    atomic_int *came = tr_window_segment(window, 1, NULL);
    CHECK(came);
    CHECK_OK(tr_comm_use_progress_thread(comm, tr_comm_rank(comm) == 0));
    if (tr_comm_rank(comm) == 0) {
        memset(data, 7, BYTES);
        CHECK_OK(tr_comm_send(comm, 1, 1, data, BYTES, "large", &ticket));
        for (int i = 0; atomic_load(came) == 0 && i < 60000; i++) process_nap(0.001);
        CHECK(atomic_load(came) == 1);
        CHECK_OK(tr_comm_wait(comm, &ticket));
    } else {
        CHECK_DONE(comm, &ticket, tr_comm_receive(comm, 0, 1, data, BYTES, "large", &ticket));
        for (int i = 0; i < BYTES; i++) CHECK(data[i] == 7);
        atomic_store(came, 1);
    }
    tr_window_destroy(&window);
    tr_free(data);
    return NULL;
}

const char *process_run(tr_comm *comm, const char *what)
{
    if (strncmp(what, "work-", 5) == 0) return work(comm, atoi(what + 5));
    if (strcmp(what, "scenarios") == 0) return process_scenarios(comm);
    if (strncmp(what, "words", 5) == 0) return last_words(comm, strcmp(what, "words-killed") == 0);
    if (strcmp(what, "survive") == 0) return survive(comm);
    if (strcmp(what, "compute") == 0) return compute(comm);
    if (strcmp(what, "slow") == 0) return slow(comm);
    if (strcmp(what, "hiccups") == 0) return hiccups(comm);
    return fault(comm, what);
}
