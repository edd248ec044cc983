/* Beats go out every fifth of the time-out, at most 2 s apart. A rank on this machine whose process is gone
 * is known to be dead at the next look, without waiting for the time-out.
 */
#include "comm/mpi/heart.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "comm/mpi/memory.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define TAG_BEAT     TR_COMM_TAG_TRANSPORT
#define INTERVAL     2.0
#define INTERVAL_MIN 0.02
/* Between two looks at the processes of this machine. */
#define LOOK_SECONDS 0.2
/* How long the last words of a rank are given to leave. */
#define LAST_WORDS_SECONDS 0.05
/* How long beats that are under way at the end may take; they need no more than a look of the receiver. */
#define LAST_BEATS_SECONDS 0.5

enum { BEATS = 0x62656174, GAVE_UP = 0x73746f70 };

struct beat {
    uint32_t state; /* BEATS or GAVE_UP */
    char why[508];
};

struct peer {
    struct beat in, out;
    tr_mpi_request *receive, *send; /* NULL: none is under way */
    double heard;
    bool deaf, dead, gave_up; /* deaf: MPI failed between us, so only silence will tell */
    char why[508];
};

struct tr_heart {
    tr_comm *comm;
    const struct tr_mpi_module *module;
    double interval, next, last; /* when to beat next, when the heart last beat */
    double looked;               /* when it last looked at the processes of this machine */
    bool stopped;
    struct peer peer[]; /* [size] */
};

static void listen_to(tr_heart *heart, int rank)
{
    struct peer *peer = &heart->peer[rank];
    char message[8];
    if (heart->module->start(0, rank, TAG_BEAT, &peer->in, sizeof peer->in, sizeof peer->in, &peer->receive,
                             message, sizeof message) != TR_MPI_OK)
        peer->deaf = true;
}

static void hear(tr_heart *heart, int rank, double now)
{
    struct peer *peer = &heart->peer[rank];
    char message[8];
    while (!peer->deaf) {
        if (heart->module->test(&peer->receive, message, sizeof message) != TR_MPI_OK) {
            peer->deaf = true;
            return;
        }
        if (peer->receive) return;
        peer->heard = now;
        if (peer->in.state == GAVE_UP) {
            peer->gave_up = true;
            peer->in.why[sizeof peer->in.why - 1] = 0;
            memcpy(peer->why, peer->in.why, sizeof peer->why);
        }
        listen_to(heart, rank);
    }
}

static void tell(tr_heart *heart, int rank)
{
    struct peer *peer = &heart->peer[rank];
    char message[8];
    if (peer->deaf || peer->dead) return;
    if (peer->send && heart->module->test(&peer->send, message, sizeof message) != TR_MPI_OK) {
        peer->deaf = true;
        return;
    }
    if (peer->send) return; /* the last one is still there: no use in another */
    if (heart->module->start(1, rank, TAG_BEAT, &peer->out, sizeof peer->out, sizeof peer->out, &peer->send,
                             message, sizeof message) != TR_MPI_OK)
        peer->deaf = true;
}

tr_status tr_heart_create(tr_comm *comm, const struct tr_mpi_module *module, tr_heart **out)
{
    tr_heart *heart = tr_alloc_zero(1, sizeof *heart + (size_t)comm->size * sizeof heart->peer[0]);
    *out = heart;
    if (!heart) return TR_ENOMEM;
    heart->comm = comm;
    heart->module = module;
    double interval = comm->settings.timeout / 5;
    heart->interval = interval > INTERVAL ? INTERVAL : interval < INTERVAL_MIN ? INTERVAL_MIN : interval;
    heart->last = heart->next = tr_clock_seconds();
    for (int rank = 0; rank < comm->size; rank++) {
        heart->peer[rank].heard = heart->last;
        heart->peer[rank].out.state = BEATS;
        if (rank != comm->rank) listen_to(heart, rank);
    }
    return TR_OK;
}

double tr_heart_interval(const tr_heart *heart)
{
    return heart->interval;
}

/* Finds the ranks of this machine whose processes are gone. */
static void look_around(tr_heart *heart, double now)
{
    const tr_comm *comm = heart->comm;
    if (now - heart->looked < LOOK_SECONDS) return;
    heart->looked = now;
    for (int rank = 0; rank < comm->size; rank++)
        if (rank != comm->rank && comm->hosts.of[rank] == comm->hosts.of[comm->rank] &&
            !tr_memory_process_runs(&comm->place[rank]))
            heart->peer[rank].dead = true;
}

void tr_heart_beat(tr_heart *heart)
{
    tr_comm *comm = heart->comm;
    double now = tr_clock_seconds();
    if (heart->stopped) return;
    look_around(heart, now);
    if (now < heart->next) return;
    heart->next = now + heart->interval;
    /* If this process was stopped itself, or the whole machine slept, nobody else can be blamed for the
     * silence. */
    double lost = now - heart->last - 3 * heart->interval;
    heart->last = now;
    for (int rank = 0; rank < comm->size; rank++) {
        struct peer *peer = &heart->peer[rank];
        if (rank == comm->rank) continue;
        if (lost > 0) peer->heard += lost;
        hear(heart, rank, now);
        tell(heart, rank);
    }
}

enum tr_comm_life tr_heart_life(const tr_heart *heart, int rank, double *silence, char *why, size_t size)
{
    const struct peer *peer = &heart->peer[rank];
    *silence = heart->last - peer->heard; /* when we listened last, not now: unheard is what came since */
    if (peer->gave_up) {
        snprintf(why, size, "%s", peer->why);
        return TR_COMM_GAVE_UP;
    }
    return peer->dead ? TR_COMM_DEAD : TR_COMM_ALIVE;
}

/* Whether a message to a rank is still on its way. */
static bool is_telling(tr_heart *heart, int rank)
{
    struct peer *peer = &heart->peer[rank];
    char message[8];
    if (peer->deaf || peer->dead || !peer->send) return false;
    if (heart->module->test(&peer->send, message, sizeof message) != TR_MPI_OK) peer->deaf = true;
    return peer->send && !peer->deaf;
}

void tr_heart_give_up(tr_heart *heart, const char *why)
{
    tr_comm *comm = heart->comm;
    double end = tr_clock_seconds() + LAST_WORDS_SECONDS;
    bool told = heart->stopped;
    heart->stopped = true;
    /* A beat that is still under way keeps its contents; its successor is to carry the words. */
    for (bool written = false; !told && tr_clock_seconds() < end; written = true) {
        bool busy = false;
        for (int rank = 0; rank < comm->size; rank++) {
            struct peer *peer = &heart->peer[rank];
            if (rank == comm->rank) continue;
            busy = is_telling(heart, rank) || busy;
            if (peer->send || peer->out.state == GAVE_UP) continue;
            peer->out.state = GAVE_UP;
            snprintf(peer->out.why, sizeof peer->out.why, "%s", why);
            tell(heart, rank);
            busy = true;
        }
        if (written && !busy) break;
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
}

/* Lets beats that are under way arrive: all ranks are here to take them. */
static void finish_telling(tr_heart *heart)
{
    double end = tr_clock_seconds() + LAST_BEATS_SECONDS;
    for (bool busy = true; busy && tr_clock_seconds() < end;) {
        busy = false;
        for (int rank = 0; rank < heart->comm->size; rank++) busy = is_telling(heart, rank) || busy;
        if (busy) nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
}

void tr_heart_destroy(tr_heart **handle)
{
    tr_heart *heart = *handle;
    if (!heart) return;
    *handle = NULL;
    bool free_again = true;
    finish_telling(heart);
    for (int rank = 0; rank < heart->comm->size; rank++) {
        struct peer *peer = &heart->peer[rank];
        if (rank == heart->comm->rank) continue;
        if (peer->deaf || (peer->receive && !heart->module->withdraw(&peer->receive))) free_again = false;
        if (peer->send) free_again = false;
    }
    if (free_again) tr_free(heart);
}
