/* The progress thread: makes a rank's operations progress while the other threads compute.
 *
 * A transport only acts when it is called: a message over TCP proceeds only then. The progress thread
 * calls it, a moment after any other thread's last call; while others call often enough it only watches,
 * and while nothing is under way it sleeps until something is started. Like tr_comm_test(), it never
 * decides that a rank is missing.
 *
 * Its naps are short while messages move, and grow when none do. If the transport reports news, and large
 * messages move, so that another rank may wait for this one's progress, it waits for such news instead of
 * napping; a thread that waits by itself is then not disturbed. It never spins, since ranks may outnumber
 * the processors.
 */
#include "comm/operation.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/threads/thread.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Between two polls, while messages move and while none does. */
#define NAP_LEAST 100000 /* nanoseconds */
#define NAP_MOST  1000000
/* Seconds until it polls without news. */
#define LISTENS 0.01
/* Consecutive polls while pieces of large messages may arrive: a poll takes only as much as the system has
 * buffered.
 */
#define ROUNDS      8
#define LARGE_BYTES (64 << 10)

struct tr_progress_thread {
    tr_comm *comm;
    pthread_t thread;
    /* Guarded by the lock of the communicator: */
    pthread_cond_t changed;
    bool idle, ends;
    bool stands_by; /* until no thread waits */
};

/* Whether a transfer of the ticket that the progress thread may wait for is under way. */
static bool is_moving(const tr_ticket *ticket)
{
    if (ticket->done) return false;
    for (int i = 0; i < ticket->transfers; i++) {
        const struct tr_transfer *transfer = &ticket->transfer[i];
        if (!transfer->done && !transfer->broken && tr_ticket_needs(ticket, transfer)) return true;
    }
    return ticket->phase != ticket->last && (ticket->released || ticket->phase + 1 != ticket->held);
}

static bool has_work(const tr_comm *comm)
{
    for (const tr_ticket *ticket = comm->active; ticket; ticket = ticket->next)
        if (is_moving(ticket)) return true;
    return false;
}

static bool has_large(const tr_comm *comm)
{
    for (const tr_ticket *ticket = comm->active; ticket; ticket = ticket->next)
        for (int i = 0; !ticket->done && i < ticket->transfers; i++)
            if (!ticket->transfer[i].done && ticket->transfer[i].bytes >= LARGE_BYTES) return true;
    return false;
}

static void nap(struct tr_progress_thread *progress, long nanoseconds)
{
    struct timespec end = tr_moment_in(1e-9 * (double)nanoseconds);
    while (!progress->ends &&
           pthread_cond_timedwait(&progress->changed, &progress->comm->lock, &end) != ETIMEDOUT)
        continue;
}

/* Whether the transport reports news. */
static bool has_bell(const tr_comm *comm)
{
    return (comm->whole ? comm->whole : comm)->class->rings;
}

/* Waits until there is news that no poll has seen. */
static void listen(struct tr_progress_thread *progress)
{
    tr_comm *comm = progress->comm;
    progress->stands_by = comm->waits > 0;
    if (progress->stands_by) {
        while (progress->stands_by && !progress->ends) pthread_cond_wait(&progress->changed, &comm->lock);
        return;
    }
    uint64_t polled = comm->polled;
    pthread_mutex_unlock(&comm->lock);
    comm->class->idle(comm, polled, INFINITY, LISTENS);
    pthread_mutex_lock(&comm->lock);
}

/* Polls everything under way, several times where much may arrive; true if something was completed. */
static bool look(struct tr_progress_thread *progress)
{
    tr_comm *comm = progress->comm;
    uint64_t before = comm->completed;
    for (int i = 0; i < ROUNDS; i++) {
        if (progress->ends || comm->dead || tr_comm_move(comm) != TR_OK || !has_large(comm)) break;
        /* The caller need not wait for all rounds. */
        pthread_mutex_unlock(&comm->lock);
        pthread_mutex_lock(&comm->lock);
    }
    return comm->completed != before;
}

static void *progress_main(void *argument)
{
    struct tr_progress_thread *progress = argument;
    tr_comm *comm = progress->comm;
    long pause = NAP_LEAST;
    pthread_mutex_lock(&comm->lock);
    while (!progress->ends && !comm->dead) {
        if (!has_work(comm)) {
            progress->idle = true;
            pthread_cond_wait(&progress->changed, &comm->lock);
            progress->idle = false;
            pause = NAP_LEAST;
            continue;
        }
        uint64_t turns = comm->turns;
        if (has_bell(comm) && has_large(comm))
            listen(progress);
        else
            nap(progress, pause);
        bool moved = false;
        if (comm->turns == turns) moved = look(progress);
        pause = moved || has_large(comm) ? NAP_LEAST : pause < NAP_MOST / 2 ? 2 * pause : NAP_MOST;
    }
    pthread_mutex_unlock(&comm->lock);
    return NULL;
}

void tr_progress_thread_notice(tr_comm *comm)
{
    struct tr_progress_thread *progress = comm->progress;
    if (!progress) return;
    bool relieves = progress->stands_by && comm->waits == 0;
    if (!relieves && (!progress->idle || (!comm->dead && !has_work(comm)))) return;
    progress->idle = progress->stands_by = false; /* reported once */
    pthread_cond_signal(&progress->changed);
}

static void release(struct tr_progress_thread *progress)
{
    pthread_cond_destroy(&progress->changed);
    tr_free(progress);
}

static tr_status begin(tr_comm *comm)
{
    struct tr_progress_thread *progress = tr_alloc_zero(1, sizeof *progress);
    if (!progress) return TR_ENOMEM;
    progress->comm = comm;
    tr_condition_init(&progress->changed);
    pthread_mutex_lock(&comm->lock);
    comm->progress = progress;
    int error = tr_thread_start(&progress->thread, progress_main, progress);
    if (error) comm->progress = NULL;
    pthread_mutex_unlock(&comm->lock);
    if (!error) return TR_OK;
    release(progress);
    return tr_fail(TR_ENOMEM, "the thread that moves messages could not start: %s", strerror(error));
}

static void end(tr_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    struct tr_progress_thread *progress = comm->progress;
    comm->progress = NULL;
    progress->ends = true;
    pthread_cond_signal(&progress->changed);
    pthread_mutex_unlock(&comm->lock);
    pthread_join(progress->thread, NULL);
    release(progress);
}

tr_status tr_comm_use_progress_thread(tr_comm *comm, bool on)
{
    if (on == (comm->progress != NULL)) return TR_OK;
    if (on) return comm->size > 1 && !comm->settings.moves ? begin(comm) : TR_OK;
    end(comm);
    return TR_OK;
}
