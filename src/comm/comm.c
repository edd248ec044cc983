/* The communicator itself: its structure, its living members, and its end. */
#include "comm/operation.h"
#include "comm/sums/route.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static tr_status make_islands(struct tr_islands *islands, int size)
{
    islands->of = tr_alloc_zero((size_t)size, sizeof *islands->of);
    islands->start = tr_alloc_zero((size_t)size + 1, sizeof *islands->start);
    islands->member = tr_alloc_zero((size_t)size, sizeof *islands->member);
    islands->index = tr_alloc_zero((size_t)size, sizeof *islands->index);
    if (!islands->of || !islands->start || !islands->member || !islands->index) return TR_ENOMEM;
    islands->count = size;
    for (int i = 0; i < size; i++) islands->of[i] = i;
    return TR_OK;
}

/* Derives the lists of members from `of` and `count`. */
static void fill_islands(struct tr_islands *islands, int size)
{
    memset(islands->start, 0, ((size_t)size + 1) * sizeof *islands->start);
    for (int rank = 0; rank < size; rank++) islands->index[rank] = islands->start[islands->of[rank] + 1]++;
    for (int island = 0; island < islands->count; island++)
        islands->start[island + 1] += islands->start[island];
    for (int rank = 0; rank < size; rank++)
        islands->member[islands->start[islands->of[rank]] + islands->index[rank]] = rank;
}

static void free_islands(struct tr_islands *islands)
{
    tr_free(islands->of);
    tr_free(islands->index);
    tr_free(islands->start);
    tr_free(islands->member);
}

tr_status tr_comm_check_settings(const struct tr_comm_settings *settings)
{
    if (!(settings->timeout > 0) || !(settings->patience >= settings->timeout) || isinf(settings->patience))
        return tr_fail(
            TR_EINVAL,
            "time limits of the communicator: a time-out of %g s and a patience of %g s; choose a time-out "
            "above 0 and at most the patience",
            settings->timeout, settings->patience);
    return TR_OK;
}

tr_status tr_comm_check_stop(const struct tr_comm_settings *settings)
{
    if (!settings->stop || !*settings->stop) return TR_OK;
    return tr_fail(TR_EINTERRUPTED, "the wait for the other processes was ended by a stop");
}

void tr_comm_ignore_stop(tr_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->settings.stop = NULL;
    pthread_mutex_unlock(&comm->lock);
}

tr_status tr_comm_prepare(tr_comm *comm, const struct tr_comm_class *class, int rank, int size,
                          const struct tr_comm_settings *settings)
{
    assert(class->version == TR_COMM_VERSION && rank >= 0 && rank < size);
    *comm = (tr_comm){.class = class, .rank = rank, .size = size, .settings = *settings};
    pthread_mutex_init(&comm->lock, NULL);
    TR_TRY(tr_comm_check_settings(settings));
    comm->location = tr_alloc_zero((size_t)size, sizeof *comm->location);
    comm->pending = tr_alloc_zero((size_t)size, sizeof *comm->pending);
    if (!comm->location || !comm->pending) return TR_ENOMEM;
    TR_TRY(make_islands(&comm->alone, size));
    TR_TRY(make_islands(&comm->hosts, size));
    fill_islands(&comm->alone, size);
    for (int i = 0; i < size; i++) {
        snprintf(comm->location[i].host, TR_LOCATION_NAME, "unknown");
        snprintf(comm->location[i].machine, TR_LOCATION_MACHINE, "unknown %d", i);
    }
    tr_comm_find_hosts(comm);
    return TR_OK;
}

static void release_spread(struct tr_route **route)
{
    if (*route) tr_route_release(*route);
    tr_free(*route);
    *route = NULL;
}

void tr_comm_release(tr_comm *comm)
{
    while (comm->pool) {
        tr_ticket *ticket = comm->pool;
        comm->pool = ticket->next;
        tr_ticket_free(ticket);
    }
    tr_free(comm->location);
    tr_free(comm->pending);
    release_spread(&comm->spread_alone);
    release_spread(&comm->spread_hosts);
    free_islands(&comm->alone);
    free_islands(&comm->hosts);
    tr_free(comm->reason);
    tr_free(comm->member);
    pthread_mutex_destroy(&comm->lock);
}

void tr_comm_find_hosts(tr_comm *comm)
{
    struct tr_islands *hosts = &comm->hosts;
    release_spread(&comm->spread_hosts); /* it was that of other hosts */
    hosts->count = 0;
    for (int i = 0; i < comm->size; i++) {
        int first = 0; /* the lowest rank of the same machine */
        while (strcmp(comm->location[first].machine, comm->location[i].machine) != 0) first++;
        hosts->of[i] = first < i ? hosts->of[first] : hosts->count++;
    }
    fill_islands(hosts, comm->size);
}

tr_status tr_comm_exchange_locations(tr_comm *comm)
{
    TR_TRY(tr_comm_exchange(comm, comm->location, sizeof *comm->location, "locations"));
    pthread_mutex_lock(&comm->lock);
    for (int i = 0; i < comm->size; i++) {
        comm->location[i].host[TR_LOCATION_NAME - 1] = 0;
        comm->location[i].machine[TR_LOCATION_MACHINE - 1] = 0;
    }
    tr_comm_find_hosts(comm);
    pthread_mutex_unlock(&comm->lock);
    return TR_OK;
}

int tr_comm_rank(const tr_comm *comm)
{
    return comm->rank;
}

int tr_comm_size(const tr_comm *comm)
{
    return comm->size;
}

int tr_comm_number(const tr_comm *comm, int rank)
{
    return comm->member ? comm->member[rank] : rank;
}

const char *tr_comm_name(const tr_comm *comm)
{
    return comm->whole ? comm->whole->class->name : comm->class->name;
}

const char *tr_comm_host(const tr_comm *comm, int rank)
{
    assert(rank >= 0 && rank < comm->size);
    return comm->location[rank].host;
}

int tr_comm_local_size(const tr_comm *comm)
{
    return tr_island_size(&comm->hosts, comm->hosts.of[comm->rank]);
}

int tr_comm_local(const tr_comm *comm, int index)
{
    assert(index >= 0 && index < tr_comm_local_size(comm));
    return comm->hosts.member[comm->hosts.start[comm->hosts.of[comm->rank]] + index];
}

int tr_comm_local_rank(const tr_comm *comm)
{
    return comm->hosts.index[comm->rank];
}

int tr_comm_hosts(const tr_comm *comm)
{
    return comm->hosts.count;
}

int tr_comm_host_of(const tr_comm *comm, int rank)
{
    assert(rank >= 0 && rank < comm->size);
    return comm->hosts.of[rank];
}

void tr_comm_statistics(tr_comm *comm, struct tr_comm_statistics *out)
{
    pthread_mutex_lock(&comm->lock);
    *out = comm->statistics;
    pthread_mutex_unlock(&comm->lock);
}

void tr_comm_statistics_reset(tr_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->statistics = (struct tr_comm_statistics){0};
    pthread_mutex_unlock(&comm->lock);
}

/* ---- failing ---- */

tr_status tr_comm_check(tr_comm *comm)
{
    if (!comm->dead) return TR_OK;
    tr_status status = comm->verdict == TR_OK ? TR_EPEER : comm->verdict;
    comm->verdict = TR_OK; /* the progress thread's failure is reported once; then the communicator is dead */
    return tr_fail(status, "%s",
                   comm->reason ? comm->reason
                                : "the communicator failed before; restart the job from its last checkpoint");
}

void tr_comm_end(tr_comm *comm, const char *reason, const char *why)
{
    comm->dead = true;
    comm->reason = tr_strdup(reason); /* without memory, tr_comm_check() has another message */
    comm->class->give_up(comm, why);
}

tr_status tr_comm_die(tr_comm *comm, tr_status status)
{
    if (comm->dead) return status;
    struct tr_failure failure;
    tr_failure_keep(&failure, status);
    if (comm->lost_member) { /* the others find out by themselves, and all continue */
        comm->dead = true;
        comm->reason = tr_strdup(failure.message);
        return status;
    }
    tr_comm_end(comm, failure.message, failure.message);
    return tr_failure_restore(&failure); /* notifying the others may have failed, too */
}

void tr_comm_abort(tr_comm *comm, const char *why)
{
    char message[TR_MESSAGE_SIZE];
    snprintf(message, sizeof message, "rank %d gave up: %s", tr_comm_number(comm, comm->rank), why);
    pthread_mutex_lock(&comm->lock);
    if (!comm->dead) tr_comm_end(comm, message, why);
    pthread_mutex_unlock(&comm->lock);
}

void tr_comm_tolerate(tr_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->tolerant = true;
    pthread_mutex_unlock(&comm->lock);
}

void tr_comm_dissolve(tr_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->dissolved = true;
    pthread_mutex_unlock(&comm->lock);
}

bool tr_comm_lost_member(tr_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    bool lost_member = comm->dead && comm->lost_member;
    pthread_mutex_unlock(&comm->lock);
    return lost_member;
}

bool tr_comm_is_dissolved(tr_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    bool dissolved = comm->dissolved;
    pthread_mutex_unlock(&comm->lock);
    return dissolved;
}

/* Withdraws operations under way. False: the transport uses some of their memory, which stays allocated. */
static bool withdraw_all(tr_comm *comm)
{
    bool all = true;
    pthread_mutex_lock(&comm->lock);
    for (tr_ticket *next, *lost = comm->active; lost; lost = next) {
        next = lost->next;
        all = tr_ticket_withdraw(comm, lost) && all;
    }
    comm->active = NULL;
    pthread_mutex_unlock(&comm->lock);
    return all;
}

bool tr_comm_end_operations(tr_comm *comm, const char *why)
{
    tr_comm_use_progress_thread(comm, false);
    if (!comm->active) return true;
    if (!comm->dissolved) tr_comm_abort(comm, why);
    return withdraw_all(comm);
}

void tr_comm_destroy(tr_comm **handle)
{
    tr_comm *comm = *handle;
    if (!comm) return;
    *handle = NULL;
    assert(comm->subgroup_bits == 0); /* subgroups end first */
    tr_comm_use_progress_thread(comm, false);
    tr_ticket *ticket = NULL;
    bool clean = !comm->dead && !comm->active && !comm->dissolved;
    /* The transport of a subgroup stays, so that sent messages arrive. */
    if (clean && comm->size > 1 && !comm->whole)
        clean = tr_comm_barrier(comm, &ticket) == TR_OK && tr_comm_wait(comm, &ticket) == TR_OK;
    if (!clean) {
        if (!comm->dissolved) tr_comm_abort(comm, "it ended while operations were under way");
        withdraw_all(comm);
    }
    comm->class->destroy(comm, clean);
}
