/* Beats go out at the intervals of tr_comm_interval(), and at once when there is news. A rank that learns
 * something new passes it on in all its beats; known facts are not passed on. So each piece of news goes
 * through all ranks once.
 *
 * Silence is a measurement, which changes: only the neighbours of a rank make it. Others pass it on with
 * its age, and forget it when it is old, so that no rank is declared missing because of an old report.
 */
#include "comm/mpi/heartbeat.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "comm/mpi/processes.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define TAG_BEAT TR_COMM_TAG_TRANSPORT
/* Up to so many ranks, all are neighbours. */
#define ALL_NEIGHBOURS 8
#define PEERS_MOST     64
/* Between two times that it listens. */
#define LOOK_SECONDS 0.2
/* How long to wait for the reason of a rank to be sent; needed only where a receiver is not responding. */
#define LAST_WORDS_SECONDS 1.0
/* How long to wait at the end for beats under way; they only need the receiver to look once. */
#define LAST_BEATS_SECONDS 0.5
/* Missed beats of a rank after which its silence is reported. */
#define MISSED_BEATS 3

enum { BEATS = 0x62656174, GAVE_UP = 0x73746f70 };
enum { DEATHS = 8, RUMOURS = 8, WORDS = 8, WHY = 508 };

/* A report that a rank had been silent for `silence` seconds, made `age` seconds ago. */
struct silence_report {
    int32_t rank;
    float silence, age;
};

struct beat {
    uint32_t state; /* BEATS or GAVE_UP */
    int32_t first;  /* the rank that gave up first, as far as the sender knows; -1: none */
    int32_t dead[DEATHS];
    struct silence_report silent[RUMOURS]; /* with rank -1: none */
    char why[WHY], cause[WHY];             /* of the sender, and of `first` */
};

struct peer {
    int rank;
    struct beat in, out;
    tr_mpi_request *receive, *send; /* NULL: none is under way */
    double heard;
    bool deaf; /* MPI failed for this pair, so only silence can tell */
};

/* The known state of a rank. */
struct fate {
    short peer; /* its number among the neighbours, -1: not a neighbour */
    bool dead;
    bool gave_up;
    signed char words; /* its reason, -1: not kept */
};

struct rumour {
    int rank; /* -1: no rumour */
    double silence, said;
};

struct tr_heartbeat {
    tr_comm *comm;
    const struct tr_mpi_module *module;
    double interval, look, next, last; /* when to listen and to beat next, when it listened last */
    double lasts;                      /* how long a report of silence is valid */
    struct tr_processes *processes;    /* of this host */
    struct peer *peer;                 /* [peers] */
    int peers;
    struct rumour rumour[RUMOURS];
    char words[WORDS][WHY]; /* of the first ranks that gave up */
    int worded, first;
    int *dead, deaths, next_death; /* in the order in which they were found; the next one to report */
    uint64_t changes;
    bool news, stopped;
    struct fate fate[]; /* [size] */
};

/* ---- what becomes known ---- */

static bool is_rank(const tr_heartbeat *heartbeat, int32_t rank)
{
    return rank >= 0 && rank < heartbeat->comm->size && rank != heartbeat->comm->rank;
}

static void record_dead(tr_heartbeat *heartbeat, int32_t rank)
{
    if (!is_rank(heartbeat, rank) || heartbeat->fate[rank].dead) return;
    heartbeat->fate[rank].dead = true;
    heartbeat->dead[heartbeat->deaths++] = rank;
    heartbeat->news = true;
    heartbeat->changes++;
}

static void record_given_up(tr_heartbeat *heartbeat, int32_t rank, const char *why)
{
    if (!is_rank(heartbeat, rank) || heartbeat->fate[rank].gave_up) return;
    struct fate *fate = &heartbeat->fate[rank];
    fate->gave_up = true;
    fate->words = -1;
    if (heartbeat->worded < WORDS) {
        snprintf(heartbeat->words[heartbeat->worded], WHY, "%.*s", (int)strnlen(why, WHY - 1), why);
        fate->words = (signed char)heartbeat->worded++;
    }
    heartbeat->changes++;
    if (heartbeat->first >= 0) return;
    heartbeat->first = rank; /* the cause; others do not report the ranks that follow it */
    heartbeat->news = true;
}

static void record_silent(tr_heartbeat *heartbeat, const struct silence_report *report, double now)
{
    struct rumour *oldest = heartbeat->rumour;
    double said = now - (double)report->age;
    /* This rank knows more about its own neighbours. */
    if (!is_rank(heartbeat, report->rank) || heartbeat->fate[report->rank].peer >= 0) return;
    if (!(report->silence >= 0) || !(report->age >= 0)) return;
    for (int i = 0; i < RUMOURS; i++) {
        struct rumour *rumour = &heartbeat->rumour[i];
        if (rumour->rank == report->rank) {
            oldest = rumour;
            break;
        }
        if (rumour->said < oldest->said) oldest = rumour;
    }
    if (said <= oldest->said) return;
    *oldest = (struct rumour){report->rank, (double)report->silence, said};
}

/* ---- messages ---- */

static void listen_to(tr_heartbeat *heartbeat, struct peer *peer)
{
    char message[8];
    if (heartbeat->module->start(0, peer->rank, TAG_BEAT, &peer->in, sizeof peer->in, sizeof peer->in,
                                 &peer->receive, message, sizeof message) != TR_MPI_OK)
        peer->deaf = true;
}

static void take_in(tr_heartbeat *heartbeat, const struct peer *peer, double now)
{
    const struct beat *in = &peer->in;
    record_given_up(heartbeat, in->first, in->cause);
    if (in->state == GAVE_UP) record_given_up(heartbeat, peer->rank, in->why);
    for (int i = 0; i < DEATHS; i++) record_dead(heartbeat, in->dead[i]);
    for (int i = 0; i < RUMOURS; i++) record_silent(heartbeat, &in->silent[i], now);
}

static void hear(tr_heartbeat *heartbeat, struct peer *peer, double now)
{
    char message[8];
    while (!peer->deaf) {
        if (heartbeat->module->test(&peer->receive, message, sizeof message) != TR_MPI_OK) {
            peer->deaf = true;
            return;
        }
        if (peer->receive) return;
        peer->heard = now;
        take_in(heartbeat, peer, now);
        listen_to(heartbeat, peer);
    }
}

/* News for the neighbours, besides their own. */
static void write_beat(tr_heartbeat *heartbeat, struct beat *out, double now)
{
    int silent = 0, first = heartbeat->first;
    out->state = heartbeat->stopped ? GAVE_UP : BEATS;
    out->first = first;
    if (first >= 0) snprintf(out->cause, WHY, "%s", heartbeat->words[heartbeat->fate[first].words]);
    for (int i = 0; i < DEATHS; i++)
        out->dead[i] =
            i < heartbeat->deaths ? heartbeat->dead[(heartbeat->next_death + i) % heartbeat->deaths] : -1;
    for (int i = 0; i < heartbeat->peers && silent < RUMOURS; i++) {
        double silence = now - heartbeat->peer[i].heard;
        if (silence > MISSED_BEATS * heartbeat->interval)
            out->silent[silent++] =
                (struct silence_report){.rank = heartbeat->peer[i].rank, .silence = (float)silence};
    }
    for (int i = 0; i < RUMOURS && silent < RUMOURS; i++) {
        const struct rumour *rumour = &heartbeat->rumour[i];
        if (rumour->rank >= 0 && now - rumour->said < heartbeat->lasts)
            out->silent[silent++] =
                (struct silence_report){rumour->rank, (float)rumour->silence, (float)(now - rumour->said)};
    }
    for (; silent < RUMOURS; silent++) out->silent[silent].rank = -1;
}

/* Whether a message to a neighbour is still on its way. */
static bool is_telling(tr_heartbeat *heartbeat, struct peer *peer)
{
    char message[8];
    if (peer->deaf || heartbeat->fate[peer->rank].dead || !peer->send) return false;
    if (heartbeat->module->test(&peer->send, message, sizeof message) != TR_MPI_OK) peer->deaf = true;
    return peer->send && !peer->deaf;
}

/* If the last message is not taken, sending another is useless, unless it has news. */
static bool tell(tr_heartbeat *heartbeat, struct peer *peer, double now)
{
    char message[8];
    if (peer->deaf || heartbeat->fate[peer->rank].dead) return true;
    if (is_telling(heartbeat, peer)) return false;
    write_beat(heartbeat, &peer->out, now);
    if (peer->deaf ||
        heartbeat->module->start(1, peer->rank, TAG_BEAT, &peer->out, sizeof peer->out, sizeof peer->out,
                                 &peer->send, message, sizeof message) != TR_MPI_OK)
        peer->deaf = true;
    return true;
}

/* ---- beating ---- */

static void look_at_processes(tr_heartbeat *heartbeat, double now)
{
    int gone;
    while ((gone = tr_processes_next_gone(heartbeat->processes, heartbeat->comm)) >= 0) {
        /* A rank that left a reason did not simply die. */
        short peer = heartbeat->fate[gone].peer;
        if (peer >= 0) hear(heartbeat, &heartbeat->peer[peer], now);
        record_dead(heartbeat, gone);
    }
}

void tr_heartbeat_look(tr_heartbeat *heartbeat)
{
    look_at_processes(heartbeat, tr_clock_seconds());
}

bool tr_heartbeat_is_due(const tr_heartbeat *heartbeat, double now)
{
    return heartbeat->news || now >= heartbeat->next;
}

void tr_heartbeat_beat(tr_heartbeat *heartbeat, double now)
{
    if (heartbeat->stopped || now < heartbeat->look) return;
    heartbeat->look = now + (heartbeat->interval < LOOK_SECONDS ? heartbeat->interval : LOOK_SECONDS);
    /* If this process was stopped, or the whole machine slept, no other rank is to blame for the silence. */
    double lost = now - heartbeat->last - 3 * heartbeat->interval;
    heartbeat->last = now;
    look_at_processes(heartbeat, now);
    for (int i = 0; i < heartbeat->peers; i++) {
        if (lost > 0) heartbeat->peer[i].heard += lost;
        hear(heartbeat, &heartbeat->peer[i], now);
    }
    if (now < heartbeat->next && !heartbeat->news) return;
    heartbeat->next = now + heartbeat->interval;
    bool all = true;
    for (int i = 0; i < heartbeat->peers; i++) all = tell(heartbeat, &heartbeat->peer[i], now) && all;
    heartbeat->news = heartbeat->news && !all; /* a rank that had not taken the last message gets another as
                                                  soon as it has */
    if (heartbeat->deaths > 0) heartbeat->next_death = (heartbeat->next_death + DEATHS) % heartbeat->deaths;
}

double tr_heartbeat_interval(const tr_heartbeat *heartbeat)
{
    return heartbeat->interval;
}

enum tr_comm_life tr_heartbeat_life(const tr_heartbeat *heartbeat, int rank, double *silence, char *why,
                                    size_t size)
{
    const struct fate *fate = &heartbeat->fate[rank];
    *silence = 0;
    /* When we listened last, not now: since then nothing could be heard. */
    if (fate->peer >= 0) *silence = heartbeat->last - heartbeat->peer[fate->peer].heard;
    for (int i = 0; i < RUMOURS && fate->peer < 0; i++) {
        const struct rumour *rumour = &heartbeat->rumour[i];
        if (rumour->rank == rank && heartbeat->last - rumour->said < heartbeat->lasts)
            *silence = rumour->silence;
    }
    if (fate->gave_up) {
        snprintf(why, size, "%s", fate->words >= 0 ? heartbeat->words[fate->words] : "others did before");
        return TR_COMM_GAVE_UP;
    }
    return fate->dead ? TR_COMM_DEAD : TR_COMM_ALIVE;
}

uint64_t tr_heartbeat_changes(const tr_heartbeat *heartbeat)
{
    return heartbeat->changes;
}

int tr_heartbeat_first_to_give_up(const tr_heartbeat *heartbeat)
{
    return heartbeat->first;
}

void tr_heartbeat_give_up(tr_heartbeat *heartbeat, const char *why)
{
    double end = tr_clock_seconds() + LAST_WORDS_SECONDS;
    if (heartbeat->stopped) return;
    heartbeat->stopped = true;
    bool sent[PEERS_MOST] = {false};
    /* A beat under way keeps its contents; the next one must carry the reason. */
    for (bool busy = true; busy && tr_clock_seconds() < end;) {
        busy = false;
        for (int i = 0; i < heartbeat->peers; i++) {
            struct peer *peer = &heartbeat->peer[i];
            busy = is_telling(heartbeat, peer) || busy;
            if (sent[i] || peer->send) continue;
            snprintf(peer->out.why, WHY, "%s", why);
            sent[i] = tell(heartbeat, peer, tr_clock_seconds());
            busy = true;
        }
        if (busy) nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
}

/* ---- beginning and end ---- */

static void add_peer(tr_heartbeat *heartbeat, int rank)
{
    if (rank == heartbeat->comm->rank || heartbeat->fate[rank].peer >= 0) return;
    heartbeat->fate[rank].peer = (short)heartbeat->peers;
    heartbeat->peer[heartbeat->peers++] = (struct peer){.rank = rank, .heard = heartbeat->last};
}

static void choose_peers(tr_heartbeat *heartbeat)
{
    int size = heartbeat->comm->size, me = heartbeat->comm->rank;
    for (int rank = 0; rank < size; rank++) heartbeat->fate[rank].peer = -1;
    for (int i = 1; i < size; i = size <= ALL_NEIGHBOURS ? i + 1 : 2 * i) {
        add_peer(heartbeat, (me + i) % size);
        add_peer(heartbeat, (me + size - i) % size);
    }
}

tr_status tr_heartbeat_create(tr_comm *comm, const struct tr_mpi_module *module, tr_heartbeat **out)
{
    size_t size = (size_t)comm->size;
    tr_heartbeat *heartbeat = tr_alloc_zero(1, sizeof *heartbeat + size * sizeof heartbeat->fate[0]);
    *out = NULL;
    if (!heartbeat) return TR_ENOMEM;
    heartbeat->comm = comm;
    heartbeat->module = module;
    heartbeat->first = -1;
    heartbeat->interval = tr_comm_interval(&comm->settings);
    heartbeat->last = heartbeat->next = tr_clock_seconds();
    heartbeat->lasts = 4 * heartbeat->interval;
    for (int ranks = 1; ranks < comm->size; ranks *= 2) heartbeat->lasts += heartbeat->interval;
    for (int i = 0; i < RUMOURS; i++) heartbeat->rumour[i] = (struct rumour){.rank = -1, .said = -1e300};
    heartbeat->peer = tr_alloc_zero(PEERS_MOST, sizeof *heartbeat->peer);
    heartbeat->dead = tr_alloc_zero(size, sizeof *heartbeat->dead);
    heartbeat->processes = tr_processes_create();
    if (!heartbeat->peer || !heartbeat->dead || !heartbeat->processes) {
        tr_processes_destroy(&heartbeat->processes);
        tr_free(heartbeat->peer);
        tr_free(heartbeat->dead);
        tr_free(heartbeat);
        return TR_ENOMEM;
    }
    choose_peers(heartbeat);
    for (int i = 0; i < heartbeat->peers; i++) listen_to(heartbeat, &heartbeat->peer[i]);
    *out = heartbeat;
    return TR_OK;
}

/* Waits for beats under way to arrive: all ranks are there to receive them. */
static void finish_telling(tr_heartbeat *heartbeat)
{
    double end = tr_clock_seconds() + LAST_BEATS_SECONDS;
    for (bool busy = true; busy && tr_clock_seconds() < end;) {
        busy = false;
        for (int i = 0; i < heartbeat->peers; i++) busy = is_telling(heartbeat, &heartbeat->peer[i]) || busy;
        if (busy) nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
}

void tr_heartbeat_destroy(tr_heartbeat **handle)
{
    tr_heartbeat *heartbeat = *handle;
    if (!heartbeat) return;
    *handle = NULL;
    bool free_again = true;
    finish_telling(heartbeat);
    tr_processes_destroy(&heartbeat->processes);
    for (int i = 0; i < heartbeat->peers; i++) {
        struct peer *peer = &heartbeat->peer[i];
        if (peer->deaf || (peer->receive && !heartbeat->module->withdraw(&peer->receive))) free_again = false;
        if (peer->send) free_again = false;
    }
    if (!free_again) return;
    tr_free(heartbeat->peer);
    tr_free(heartbeat->dead);
    tr_free(heartbeat);
}
