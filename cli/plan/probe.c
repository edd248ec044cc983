/* Measures messages between two processes: on one host, forked here and joined like those of a job; and on
 * two hosts, started by `trireme launch` as `trireme plan --probe`.
 */
#include "cli/plan/plan.h"

#include "cli/program/child.h"
#include "cli/launch/launched.h"
#include "cli/terminal/output.h"
#include "cli/program/signals.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/numbers/sort.h"
#include "base/threads/thread.h"
#include "comm/transport.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PINGS                                                                                                \
    10                     /* of a round, of which the best one counts: other programs may need the          \
                              processor, too */
#define TRIES         200  /* rounds at most */
#define BURST         200  /* messages without an answer */
#define WAKES         32   /* words to a sleeping rank; the lower quartile counts, as some find it awake */
#define SLEEP         1e-3 /* seconds that it waits before each */
#define STREAM        ((size_t)32 << 20) /* bytes at most */
#define ROUNDS        5
#define STREAM_ROUNDS 200 /* at most */
#define PAIRS         5   /* of processes, one after the other */
#define SECONDS       0.1 /* the greatest time of a round of pings, and the least of a stream */

/* One message in one direction. */
static tr_status move(tr_comm *comm, bool sends, void *data, size_t bytes)
{
    tr_ticket *ticket = NULL;
    TR_TRY(sends ? tr_comm_send(comm, 1 - tr_comm_rank(comm), 0, data, bytes, "probe", &ticket)
                 : tr_comm_receive(comm, 1 - tr_comm_rank(comm), 0, data, bytes, "probe", &ticket));
    return tr_comm_wait(comm, &ticket);
}

/* Seconds of a round trip. */
static tr_status ping(tr_comm *comm, void *data, int rounds, double *seconds)
{
    bool first = tr_comm_rank(comm) == 0;
    *seconds = INFINITY;
    for (int round = 0; round < rounds; round++) {
        double began = tr_clock_seconds();
        for (int i = 0; i < PINGS; i++) {
            TR_TRY(move(comm, first, data, 8));
            TR_TRY(move(comm, !first, data, 8));
        }
        double taken = (tr_clock_seconds() - began) / PINGS;
        if (taken < *seconds) *seconds = taken;
    }
    return TR_OK;
}

/* Seconds of a message in a sequence of which the receiver answers only the last. */
static tr_status burst(tr_comm *comm, void *data, double *seconds)
{
    bool first = tr_comm_rank(comm) == 0;
    *seconds = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        double began = tr_clock_seconds();
        for (int i = 0; i < BURST; i++) TR_TRY(move(comm, first, data, 8));
        TR_TRY(move(comm, !first, data, 8));
        double taken = (tr_clock_seconds() - began) / BURST;
        if (taken < *seconds) *seconds = taken;
    }
    return TR_OK;
}

/* Processor seconds of this process. */
static double busy(void)
{
    struct timespec taken;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &taken);
    return (double)taken.tv_sec + 1e-9 * (double)taken.tv_nsec;
}

/* Messages of one size: the seconds of each, and the processor seconds of the busier rank. Rank 0 sends
   and decides. */
struct streamed {
    double taken[STREAM_ROUNDS], busy[STREAM_ROUNDS], spent; /* spent: seconds of all */
    int rounds;
};

static tr_status stream_round(tr_comm *comm, char *data, size_t bytes, double word, struct streamed *to)
{
    bool first = tr_comm_rank(comm) == 0;
    double began = tr_clock_seconds(), before = busy(), theirs;
    TR_TRY(move(comm, first, data, bytes));
    double mine = theirs = busy() - before;
    TR_TRY(move(comm, !first, &theirs, sizeof theirs));
    double taken = tr_clock_seconds() - began;
    to->spent += taken;
    /* On a busy machine a word may take longer. */
    to->taken[to->rounds] = fmax(taken - word / 2, taken / 2);
    to->busy[to->rounds++] = fmax(mine, theirs);
    return TR_OK;
}

/* Messages long enough to measure the rate, and their processor time beyond that of waiting. Medians,
   since memory may be slow for tens of milliseconds. */
static tr_status stream(tr_comm *comm, char *data, double word, struct tr_path *out)
{
    struct streamed got = {.rounds = 0};
    size_t bytes = (size_t)256 << 10;
    for (size_t next = bytes; next > 0;) {
        if (next != bytes) got = (struct streamed){.rounds = 0};
        bytes = next;
        for (int round = 0; round < ROUNDS; round++) TR_TRY(stream_round(comm, data, bytes, word, &got));
        if (got.rounds == ROUNDS && got.spent < ROUNDS * SECONDS && bytes * 4 <= STREAM)
            next = bytes * 4;
        else if (got.spent >= SECONDS || got.rounds + ROUNDS > STREAM_ROUNDS)
            next = 0;
        TR_TRY(move(comm, tr_comm_rank(comm) == 0, &next, sizeof next));
    }
    tr_sort_doubles(got.taken, (size_t)got.rounds);
    tr_sort_doubles(got.busy, (size_t)got.rounds);
    out->rate = (double)bytes / got.taken[got.rounds / 2];
    out->copying = (double)bytes / got.busy[got.rounds / 2];
    return TR_OK;
}

/* Processor seconds of a second of waiting. */
static tr_status idle(tr_comm *comm, void *data, double *share)
{
    bool first = tr_comm_rank(comm) == 0;
    const struct timespec while_ = {.tv_nsec = (long)(SECONDS * 1e9)};
    TR_TRY(move(comm, first, data, 8));
    double before = busy();
    if (!first) nanosleep(&while_, NULL);
    TR_TRY(move(comm, !first, data, 8));
    *share = (busy() - before) / SECONDS;
    return TR_OK;
}

/* The additional seconds of a word to a sleeping rank, compared with one that has just begun to wait. */
static tr_status wake(tr_comm *comm, struct tr_path *out)
{
    bool first = tr_comm_rank(comm) == 0;
    double data = 0, taken[WAKES], word = 2 * (out->latency + 2 * out->overhead);
    for (int i = 0; i < WAKES; i++) {
        double sends = tr_clock_seconds() + SLEEP;
        /* Like a computing rank, which does not sleep. */
        while (first && tr_clock_seconds() < sends) continue;
        double began = tr_clock_seconds();
        TR_TRY(move(comm, first, &data, sizeof data));
        TR_TRY(move(comm, !first, &data, sizeof data));
        taken[i] = tr_clock_seconds() - began;
    }
    tr_sort_doubles(taken, WAKES);
    out->waking = fmax(taken[WAKES / 4] - word, 0);
    return TR_OK;
}

int cli_plan_rounds(double word)
{
    return word > 0 && SECONDS / word < PINGS * TRIES ? (int)(SECONDS / word) / PINGS + 1 : TRIES;
}

/* The first of the two ranks gets the figures. */
static tr_status talk(tr_comm *comm, struct tr_path *out)
{
    /* Memory like that of parameters, touched by this process. */
    char *data = tr_alloc_aligned(STREAM, 1);
    double word = 0, gap = 0, waiting = 0;
    if (!data) return TR_ENOMEM;
    memset(data, 1, STREAM);
    tr_status status = ping(comm, data, 2, &word);
    /* Both have the same number, since the first one chooses it. */
    int rounds = cli_plan_rounds(word);
    memcpy(data, &rounds, sizeof rounds);
    if (status == TR_OK) status = move(comm, tr_comm_rank(comm) == 0, data, sizeof rounds);
    memcpy(&rounds, data, sizeof rounds);
    if (status == TR_OK) status = ping(comm, data, rounds, &word);
    if (status == TR_OK) status = burst(comm, data, &gap);
    if (status == TR_OK) status = idle(comm, data, &waiting);
    if (status == TR_OK) status = stream(comm, data, word, out);
    tr_free(data);
    if (status != TR_OK) return status;
    /* At most half of a word's time is the processors'. */
    out->overhead = fmin(gap, word / 2 / 4);
    out->latency = word / 2 - 2 * out->overhead;
    double copied = 1 / out->copying - waiting / out->rate;
    out->copying = copied > 1e-12 ? 1 / copied : 1e12;
    return TR_OK;
}

/* ---- of this host ---- */

/* A new process for a rank, which writes its figures to `descriptor`. */
static pid_t start(const char *ticket, int rank, int descriptor)
{
    pid_t child = fork();
    if (child != 0) return child;
    const struct tr_comm_settings settings = TR_COMM_SETTINGS_INIT;
    struct tr_path found = {0};
    tr_comm *comm = NULL;
    bool well = tr_comm_local_create(ticket, &settings, &comm) == TR_OK;
    /* Like ranks of a job, which do so after they have met: they wait differently if each has a processor.
       Two on one processor would copy out of its cache. */
    cpu_set_t all;
    tr_thread_processors(&all);
    tr_thread_take_share(&all, rank, 2, 1);
    if (well) well = talk(comm, &found) == TR_OK;
    if (well) well = wake(comm, &found) == TR_OK;
    if (well && tr_comm_rank(comm) == 0) well = write(descriptor, &found, sizeof found) == sizeof found;
    tr_comm_destroy(&comm);
    _exit(!well);
}

static tr_status run_with(const tr_local_group *group, int descriptor[2], struct tr_path *out)
{
    char ticket[2][TR_LOCAL_TICKET_SIZE];
    pid_t child[2] = {-1, -1};
    struct tr_path found;
    for (int rank = 0; rank < 2; rank++)
        TR_TRY(tr_local_group_ticket(group, rank, ticket[rank], sizeof ticket[rank]));
    fflush(NULL);
    for (int rank = 0; rank < 2; rank++) child[rank] = start(ticket[rank], rank, descriptor[1]);
    close(descriptor[1]);
    descriptor[1] = -1;
    bool well = child[0] > 0 && child[1] > 0 && read(descriptor[0], &found, sizeof found) == sizeof found;
    for (int rank = 0; rank < 2; rank++) {
        if (child[rank] <= 0) continue;
        if (!well) kill(child[rank], SIGKILL);
        while (waitpid(child[rank], NULL, 0) < 0) continue;
    }
    if (!well)
        return tr_fail(TR_EUNSUPPORTED, "two processes of this host could not be joined to measure it");
    *out = found;
    return TR_OK;
}

static tr_status probe_once(struct tr_path *out)
{
    tr_local_group *group;
    int descriptor[2];
    TR_TRY(tr_local_group_create(2, &group));
    tr_status status = pipe(descriptor) == 0 ? TR_OK : tr_fail(TR_EUNSUPPORTED, "the system has no pipe");
    if (status == TR_OK) {
        status = run_with(group, descriptor, out);
        if (descriptor[1] >= 0) close(descriptor[1]);
        close(descriptor[0]);
    }
    tr_local_group_destroy(&group);
    return status;
}

/* Over several pairs of processes: the median for words, and the mean for bytes. Some machines move bytes
   several times slower for seconds, which a job will meet as often. */
tr_status cli_plan_probe(struct tr_path *out)
{
    double latency[PAIRS], overhead[PAIRS], waking[PAIRS];
    double seconds = 0, busy_seconds = 0; /* of a byte, sums */
    for (int pair = 0; pair < PAIRS; pair++) {
        struct tr_path found = {0};
        TR_TRY(probe_once(&found));
        latency[pair] = found.latency;
        overhead[pair] = found.overhead;
        waking[pair] = found.waking;
        seconds += 1 / found.rate;
        busy_seconds += 1 / found.copying;
    }
    tr_sort_doubles(latency, PAIRS);
    tr_sort_doubles(overhead, PAIRS);
    tr_sort_doubles(waking, PAIRS);
    out->latency = latency[PAIRS / 2];
    out->overhead = overhead[PAIRS / 2];
    out->waking = waking[PAIRS / 2];
    out->rate = PAIRS / seconds;
    out->copying = PAIRS / busy_seconds;
    return TR_OK;
}

/* ---- between hosts ---- */

tr_status cli_plan_answer(const char *launched)
{
    const struct tr_comm_settings settings = TR_COMM_SETTINGS_INIT;
    tr_comm *comm = NULL;
    struct tr_path found = {0};
    cli_launched_begin(launched);
    TR_TRY(tr_comm_mpi_create(&settings, &comm));
    tr_status status = tr_comm_size(comm) == 2 ? talk(comm, &found)
                                               : tr_fail(TR_EINVAL, "--probe is for two processes that "
                                                                    "`trireme plan --hosts` starts");
    if (status == TR_OK && tr_comm_rank(comm) == 0) {
        struct tr_json_writer json;
        tr_json_begin(&json, false);
        tr_json_double(&json, "latency", found.latency);
        tr_json_double(&json, "rate", found.rate);
        tr_json_double(&json, "overhead", found.overhead);
        tr_json_double(&json, "copying", found.copying);
        status = cli_print_json(&json);
    }
    tr_comm_destroy(&comm);
    return status;
}

static void hear(void *user, const struct tr_json_value *object)
{
    struct tr_path *path = user;
    double rate = tr_json_number_or_nan(object, "rate");
    if (!(rate > 0)) return;
    path->rate = rate;
    path->latency = tr_json_number_or_nan(object, "latency");
    path->overhead = tr_json_number_or_nan(object, "overhead");
    path->copying = tr_json_number_or_nan(object, "copying");
}

/* The first two hosts of "a:2,b:2", with a process each; *count of hosts, and processes of the first. */
static tr_status read_hosts(const char *hosts, char **two, int *count, int *each)
{
    struct tr_text text = TR_TEXT_INIT;
    *count = 0;
    *each = 1;
    for (const char *at = hosts; *at; at += strcspn(at, ","), at += *at == ',') {
        int name = (int)strcspn(at, ",:");
        if (name == 0) break;
        if (*count == 0 && at[name] == ':') *each = atoi(at + name + 1);
        if ((*count)++ < 2) tr_text_addf(&text, "%s%.*s:1", *count > 1 ? "," : "", name, at);
    }
    TR_TRY(tr_text_finish(&text, two));
    if (*count >= 2 && *each >= 1) return TR_OK;
    tr_free(*two);
    return tr_fail(TR_EINVAL, "--hosts %s: name at least two hosts, as in \"a:1,b:1\"", hosts);
}

tr_status cli_plan_probe_hosts(const char *model, const char *hosts, int *count, int *each,
                               struct tr_path *out)
{
    char *two, why[512];
    struct cli_arguments arguments = {0};
    struct tr_path found = *out;
    struct cli_child child = {.hear = hear, .user = &found};
    found.rate = 0;
    TR_TRY(read_hosts(hosts, &two, count, each));
    cli_arguments_add_self(&arguments);
    cli_arguments_add(&arguments, "launch");
    cli_arguments_add(&arguments, "--hosts=%s", two);
    cli_arguments_add(&arguments, "--processes=2");
    cli_arguments_add(&arguments, "plan");
    cli_arguments_add(&arguments, "%s", model);
    cli_arguments_add(&arguments, "--probe");
    tr_free(two);
    cli_signals_catch(NULL, "ending the measurement");
    tr_status status = cli_child_run(&child, &arguments);
    cli_signals_release();
    cli_arguments_release(&arguments);
    if (status != TR_OK) return status;
    if (found.rate > 0) {
        *out = found;
        return TR_OK;
    }
    cli_child_explain(&child, why, sizeof why);
    return tr_fail(TR_EIO, "--hosts %s: the network could not be measured: %s", hosts, why);
}
