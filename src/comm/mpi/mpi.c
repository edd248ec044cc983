/* The transport between processes.
 *
 * A thread of the communicator, the keeper, initializes and finalizes MPI, so that neither can block the
 * caller forever, and sends signs of life while the caller computes. The caller of the communicator makes
 * all other MPI calls.
 *
 * The keeper's life: OPENING (MPI_Init) -> OPEN (beats) -> CLOSING (asked to leave) -> GONE. The caller
 * waits for OPEN and GONE with deadlines, and abandons everything when they pass.
 */
#include "comm/mpi/mpi.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/text/log.h"
#include "base/files/module.h"
#include "base/threads/team.h"
#include "base/threads/thread.h"
#include "comm/class.h"
#include "comm/mpi/heartbeat.h"
#include "comm/mpi/memory.h"
#include "comm/mpi/module.h"
#include "comm/location.h"
#include "comm/transport.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static_assert(TR_COMM_TAG_SUBGROUPS + TR_COMM_SUBGROUPS * TR_COMM_TAG_TRANSPORT <= TR_MPI_TAGS,
              "MPI has a tag for every message of every subgroup");

#define MESSAGE_SIZE 512
/* Pieces of large messages: below INT_MAX, and round. */
#define CHUNK ((size_t)1 << 30)
/* MPI starts and ends its own processes and connections, which takes longer than the interval between
   signs of life: a short time-out does not apply to it. */
#define LEAST_SECONDS 10.0
/* Between two checks of a stop while MPI starts, which reports nothing. */
#define STOP_LOOK 0.05
/* Messages that a process sent just before it died may take so long. */
#define GRACE_SECONDS 0.2
/* A wait first only yields, since answers usually come at once; then it sleeps, longer and longer. Every
   nap is about 50 us too long, which the many waits of a step would add up. So where each rank of the host
   may have a processor, it yields for longer, TR_MPI_YIELD_SECONDS. */
#define YIELD_SECONDS_CROWDED 100e-6
#define NAP_MIN               20e-6
#define NAP_MOST              1e-3

enum keeper_state { OPENING, OPEN, FAILED, CLOSING, GONE };

struct mpi_comm {
    tr_comm base; /* first, so that a tr_comm is one of these */
    const struct tr_mpi_module *module;
    size_t chunk;
    double yield_seconds;
    tr_heartbeat *heartbeat;
    pthread_t keeper;
    /* The keeper and the caller; never taken together with the lock of the communicator. */
    pthread_mutex_t gate;
    pthread_cond_t changed;
    enum keeper_state state;
    bool beats;     /* the heartbeat exists */
    bool finalizes; /* when closing: finalize MPI */
    int rank, size;
    char message[MESSAGE_SIZE];
};

static const struct tr_module mpi_module = {
    .file = "trireme-mpi.so",
    .symbol = TR_MPI_SYMBOL,
    .version = TR_MPI_VERSION,
    .purpose = "processes under MPI need",
    .advice = "install Open MPI (Debian: openmpi-bin and libopenmpi-dev)",
};

/* ---- the keeper ---- */

static void set_state(struct mpi_comm *comm, enum keeper_state state)
{
    pthread_mutex_lock(&comm->gate);
    comm->state = state;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->gate);
}

static void *keeper_main(void *argument)
{
    struct mpi_comm *comm = argument;
    bool open =
        comm->module->open(&comm->rank, &comm->size, comm->message, sizeof comm->message) == TR_MPI_OK;
    set_state(comm, open ? OPEN : FAILED);
    if (!open) return NULL;
    pthread_mutex_lock(&comm->gate);
    while (comm->state != CLOSING) {
        /* Half an interval, so that a beat is at most so late. */
        struct timespec end = tr_moment_in(comm->beats ? tr_heartbeat_interval(comm->heartbeat) / 2 : 1);
        pthread_cond_timedwait(&comm->changed, &comm->gate, &end);
        if (comm->state == CLOSING || !comm->beats) continue;
        pthread_mutex_unlock(&comm->gate);
        pthread_mutex_lock(&comm->base.lock);
        double now = tr_clock_seconds();
        if (comm->heartbeat && tr_heartbeat_is_due(comm->heartbeat, now))
            tr_heartbeat_beat(comm->heartbeat, now);
        pthread_mutex_unlock(&comm->base.lock);
        pthread_mutex_lock(&comm->gate);
    }
    bool finalizes = comm->finalizes;
    pthread_mutex_unlock(&comm->gate);
    if (finalizes) comm->module->close();
    set_state(comm, GONE);
    return NULL;
}

/* Waits until the keeper has left `state`; false when that takes too long, or `stop` (NULL: none) is set. */
static bool wait_for_keeper(struct mpi_comm *comm, enum keeper_state state, double seconds,
                            const atomic_int *stop)
{
    double end = tr_clock_seconds() + seconds;
    pthread_mutex_lock(&comm->gate);
    for (double left; comm->state == state && !(stop && *stop) && (left = end - tr_clock_seconds()) > 0;) {
        struct timespec look = tr_moment_in(stop && left > STOP_LOOK ? STOP_LOOK : left);
        pthread_cond_timedwait(&comm->changed, &comm->gate, &look);
    }
    bool left = comm->state != state;
    pthread_mutex_unlock(&comm->gate);
    return left;
}

/* ---- messages ---- */

static struct mpi_comm *mpi_of(tr_comm *comm)
{
    return (struct mpi_comm *)comm;
}

/* A connection breaks slightly before the end of its process is noticed. */
#define LOOKS      20
#define LOOK_PAUSE 1000000 /* nanoseconds */

/* MPI failed, most likely since a process has ended; then that is reported. */
static tr_status find_reason(tr_comm *comm, int rank)
{
    tr_status status = TR_OK;
    for (int i = 0; i < LOOKS && status == TR_OK && rank != comm->rank; i++) {
        if (i > 0) nanosleep(&(struct timespec){.tv_nsec = LOOK_PAUSE}, NULL);
        tr_heartbeat_look(mpi_of(comm)->heartbeat);
        status = tr_comm_check_rank(comm, rank);
    }
    return status;
}

static tr_status translate(tr_comm *comm, enum tr_mpi_result result, const struct tr_transfer *transfer,
                           const char *message)
{
    if (result == TR_MPI_OK) return TR_OK;
    if (result == TR_MPI_NO_MEMORY) return tr_fail(TR_ENOMEM, "out of memory for a message");
    if (result == TR_MPI_WRONG_SIZE)
        return tr_fail(TR_EMISMATCH,
                       "the message from rank %d has the wrong size: %s; all ranks must run the same program "
                       "on the same job",
                       transfer->peer, message);
    TR_TRY(find_reason(comm, transfer->peer));
    return tr_fail(TR_EPEER, "message %s rank %d: %s", transfer->sends ? "to" : "from", transfer->peer,
                   message);
}

static tr_status mpi_start(tr_comm *comm, struct tr_transfer *transfer)
{
    struct mpi_comm *mpi = mpi_of(comm);
    char message[MESSAGE_SIZE] = "";
    tr_mpi_request *request = NULL;
    enum tr_mpi_result result =
        mpi->module->start(transfer->sends, transfer->peer, transfer->tag, transfer->data, transfer->bytes,
                           mpi->chunk, &request, message, sizeof message);
    transfer->request = request;
    return translate(comm, result, transfer, message);
}

static tr_status mpi_test(tr_comm *comm, struct tr_transfer *transfer)
{
    char message[MESSAGE_SIZE] = "";
    tr_mpi_request *request = transfer->request;
    enum tr_mpi_result result = mpi_of(comm)->module->test(&request, message, sizeof message);
    transfer->request = request;
    transfer->done = !request;
    return translate(comm, result, transfer, message);
}

static bool mpi_withdraw(tr_comm *comm, struct tr_transfer *transfer)
{
    tr_mpi_request *request = transfer->request;
    /* When all is lost, MPI is not called again. Even without a request, pieces may be under way. */
    if (comm->dead || !request || !mpi_of(comm)->module->withdraw(&request)) return false;
    transfer->request = NULL;
    transfer->done = true;
    return true;
}

static tr_status mpi_poll(tr_comm *comm, uint64_t *moment)
{
    *moment = 0;
    tr_heartbeat_beat(mpi_of(comm)->heartbeat, tr_clock_seconds());
    return TR_OK;
}

double tr_mpi_nap(double waited, double longest)
{
    double nap = waited / 8 < NAP_MIN ? NAP_MIN : waited / 8 > NAP_MOST ? NAP_MOST : waited / 8;
    return nap < longest ? nap : longest;
}

static void mpi_idle(tr_comm *comm, uint64_t moment, double waited, double seconds)
{
    (void)moment;
    if (waited < mpi_of(comm)->yield_seconds) {
        sched_yield();
        return;
    }
    nanosleep(&(struct timespec){.tv_nsec = (long)(tr_mpi_nap(waited, seconds) * 1e9)}, NULL);
}

static enum tr_comm_life mpi_life(tr_comm *comm, int rank, double *silence, char *why, size_t size)
{
    return tr_heartbeat_life(mpi_of(comm)->heartbeat, rank, silence, why, size);
}

static uint64_t mpi_changes(tr_comm *comm)
{
    return tr_heartbeat_changes(mpi_of(comm)->heartbeat);
}

static int mpi_first_to_give_up(tr_comm *comm)
{
    return tr_heartbeat_first_to_give_up(mpi_of(comm)->heartbeat);
}

static void mpi_give_up(tr_comm *comm, const char *why)
{
    tr_heartbeat_give_up(mpi_of(comm)->heartbeat, why);
}

/* ---- beginning and end ---- */

/* Seconds that MPI may take to start or end with all ranks. */
static double patience_with_mpi(const struct tr_comm_settings *settings)
{
    return settings->timeout > LEAST_SECONDS ? settings->timeout : LEAST_SECONDS;
}

static void free_mpi(struct mpi_comm *comm)
{
    pthread_cond_destroy(&comm->changed);
    pthread_mutex_destroy(&comm->gate);
    tr_free(comm);
}

/* Asks the keeper to leave and waits for it. */
static bool dismiss(struct mpi_comm *comm, bool finalizes, double seconds)
{
    pthread_mutex_lock(&comm->gate);
    comm->beats = false;
    comm->finalizes = finalizes;
    comm->state = CLOSING;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->gate);
    if (!wait_for_keeper(comm, CLOSING, seconds, NULL)) {
        pthread_detach(comm->keeper);
        return false;
    }
    pthread_join(comm->keeper, NULL);
    return true;
}

static void mpi_destroy(tr_comm *base, bool clean)
{
    struct mpi_comm *comm = mpi_of(base);
    const double limit = patience_with_mpi(&base->settings);
    pthread_mutex_lock(&comm->gate);
    comm->beats = false;
    pthread_mutex_unlock(&comm->gate);
    pthread_mutex_lock(&base->lock); /* the keeper may be in the middle of a beat */
    if (clean) tr_heartbeat_destroy(&comm->heartbeat);
    pthread_mutex_unlock(&base->lock);
    if (!dismiss(comm, clean, clean ? limit : 1)) {
        if (clean) tr_log_line(TR_LOG_WARNING, "MPI did not end within %g s; leaving without it", limit);
        return; /* the keeper uses all this */
    }
    tr_comm_release(base);
    free_mpi(comm);
}

static const struct tr_comm_class mpi_class = {
    .name = "mpi",
    .version = TR_COMM_VERSION,
    .grace = GRACE_SECONDS,
    .start = mpi_start,
    .poll = mpi_poll,
    .test = mpi_test,
    .withdraw = mpi_withdraw,
    .idle = mpi_idle,
    .life = mpi_life,
    .changes = mpi_changes,
    .first_to_give_up = mpi_first_to_give_up,
    .give_up = mpi_give_up,
    .share_memory = tr_memory_share,
    .map = tr_memory_map,
    .mapped = tr_memory_mapped,
    .unmap = tr_memory_unmap,
    .destroy = mpi_destroy,
};

static tr_status make(const struct tr_mpi_module *module, struct mpi_comm **out)
{
    struct mpi_comm *comm = tr_alloc_zero(1, sizeof *comm);
    *out = comm;
    if (!comm) return TR_ENOMEM;
    comm->module = module;
    comm->chunk = CHUNK;
    comm->yield_seconds = YIELD_SECONDS_CROWDED;
    pthread_mutex_init(&comm->gate, NULL);
    tr_condition_init(&comm->changed);
    int error = tr_thread_start(&comm->keeper, keeper_main, comm);
    if (error == 0) return TR_OK;
    free_mpi(comm);
    *out = NULL;
    return tr_fail(TR_ENOMEM, "the thread that keeps MPI could not start: %s", strerror(error));
}

/* Once MPI is initialized: everything that needs rank and size. */
static tr_status settle(struct mpi_comm *comm, const struct tr_comm_settings *settings)
{
    tr_comm *base = &comm->base;
    TR_TRY(tr_comm_prepare(base, &mpi_class, comm->rank, comm->size, settings));
    tr_location_here(&base->location[base->rank]);
    TR_TRY(tr_heartbeat_create(base, comm->module, &comm->heartbeat));
    pthread_mutex_lock(&comm->gate);
    comm->beats = true;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->gate);
    return TR_OK;
}

tr_status tr_comm_mpi_check(void)
{
    const void *loaded;
    return tr_module_load(&mpi_module, &loaded);
}

tr_status tr_comm_mpi_create(const struct tr_comm_settings *settings, tr_comm **out)
{
    const void *loaded;
    struct mpi_comm *comm;
    *out = NULL;
    TR_TRY(tr_comm_check_settings(settings)); /* before others wait for us */
    TR_TRY(tr_module_load(&mpi_module, &loaded));
    TR_TRY(make(loaded, &comm));
    /* From here on, memory that MPI may use is abandoned rather than freed. */
    const double limit = patience_with_mpi(settings);
    if (!wait_for_keeper(comm, OPENING, limit, settings->stop)) {
        pthread_detach(comm->keeper);
        TR_TRY(tr_comm_check_stop(settings));
        return tr_fail(TR_EPEER, "MPI did not begin within %g s; check that all ranks were started", limit);
    }
    if (comm->state == FAILED) {
        pthread_join(comm->keeper, NULL);
        tr_status status = tr_fail(TR_EUNSUPPORTED, "%s", comm->message);
        free_mpi(comm);
        return status;
    }
    tr_status status = settle(comm, settings);
    if (status != TR_OK) {
        dismiss(comm, false, 1); /* the others will miss this rank */
        return status;
    }
    tr_comm *base = &comm->base;
    status = tr_comm_exchange_locations(base);
    if (status == TR_OK && tr_comm_local_size(base) <= tr_team_processors())
        comm->yield_seconds = TR_MPI_YIELD_SECONDS;
    if (status == TR_OK)
        *out = base;
    else
        tr_comm_destroy(&base);
    return status;
}

void tr_comm_mpi_set_chunk(tr_comm *comm, size_t bytes)
{
    assert(comm->class == &mpi_class && bytes >= 1 && bytes <= INT_MAX);
    mpi_of(comm)->chunk = bytes;
}
