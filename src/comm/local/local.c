/* The transport between processes of one host that a launcher started together.
 *
 * A rank joins by filling its record, and waits until all have joined. After that it needs only the shared
 * memory: no launcher, no files, no ports.
 */
#include "comm/local/area.h"
#include "comm/local/extents.h"
#include "comm/local/mail.h"
#include "comm/local/ticket.h"
#include "comm/local/watch.h"
#include "comm/location.h"

#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/threads/team.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* Starting takes longer than the interval between signs of life, so a short time-out does not apply to it. */
#define JOIN_SECONDS 10.0
/* Time between two checks for missing ranks, in case a bell was missed, or the job may be stopped, which
   rings no bell. */
#define JOIN_LOOK      1.0
#define JOIN_LOOK_STOP 0.05
#define YIELDS         16 /* between two checks of a wait that yields */

struct local_comm {
    tr_comm base; /* first, so that a tr_comm is one of these */
    struct local_area area;
    struct local_mail *mail;
    struct local_extents extents;
    struct local_watch *watch;
    double yield_seconds;
    uint64_t postponed; /* changes about lost ranks that must be reported again */
};

static struct local_comm *local_of(tr_comm *comm)
{
    return (struct local_comm *)comm;
}

static struct local_record *record_of(const struct local_comm *comm, int rank)
{
    return &comm->area.record[rank];
}

/* ---- messages ---- */

static enum tr_comm_life local_life(tr_comm *base, int rank, double *silence, char *why, size_t size);

static tr_status local_start(tr_comm *comm, struct tr_transfer *transfer)
{
    return tr_local_mail_start(local_of(comm)->mail, transfer);
}

static tr_status local_poll(tr_comm *comm, uint64_t *moment)
{
    struct local_comm *local = local_of(comm);
    /* The bell first: any ring after this wakes a sleep that begins at this moment. */
    *moment = atomic_load(&record_of(local, comm->rank)->bell);
    return tr_local_mail_poll(local->mail);
}

static tr_status local_test(tr_comm *comm, struct tr_transfer *transfer)
{
    (void)comm;
    return tr_local_mail_test(transfer);
}

static bool local_withdraw(tr_comm *comm, struct tr_transfer *transfer)
{
    double silence;
    bool lost = comm->dead || comm->dissolved ||
                (transfer->peer != comm->rank &&
                 local_life(comm, transfer->peer, &silence, NULL, 0) != TR_COMM_ALIVE);
    return tr_local_mail_withdraw(local_of(comm)->mail, transfer, lost);
}

static void local_idle(tr_comm *comm, uint64_t moment, double waited, double seconds)
{
    struct local_comm *local = local_of(comm);
    const struct local_record *own = record_of(local, comm->rank);
    if (waited >= local->yield_seconds) {
        tr_local_sleep(&local->area, comm->rank, (uint32_t)moment, seconds);
        return;
    }
    for (int i = 0; i < YIELDS && atomic_load(&own->bell) == (uint32_t)moment; i++) sched_yield();
}

/* ---- who is there ---- */

static enum tr_comm_life local_life(tr_comm *base, int rank, double *silence, char *why, size_t size)
{
    struct local_comm *comm = local_of(base);
    const struct local_record *record = record_of(comm, rank);
    /* In this order: a rank that has ended writes nothing more, so its last reason is found. */
    bool gone = atomic_load(&record->ended) != 0;
    unsigned state = atomic_load(&record->state);
    *silence = tr_local_watch_silence(comm->watch, rank);
    if (state == LOCAL_GAVE_UP) tr_local_words(&comm->area, rank, why, size);
    bool lost = gone || state == LOCAL_GAVE_UP || state == LOCAL_LEFT;
    /* Its messages first: a receiver must get them before it learns of the loss. */
    if (lost && !base->dead && tr_local_mail_is_unread(comm->mail, rank)) {
        tr_local_mail_poll(comm->mail);
        comm->postponed++;
        return TR_COMM_ALIVE;
    }
    return state == LOCAL_GAVE_UP ? TR_COMM_GAVE_UP
           : state == LOCAL_LEFT  ? TR_COMM_LEFT
           : gone                 ? TR_COMM_DEAD
                                  : TR_COMM_ALIVE;
}

static uint64_t local_changes(tr_comm *comm)
{
    return atomic_load(&local_of(comm)->area.header->changes) + local_of(comm)->postponed;
}

static int local_first_to_give_up(tr_comm *comm)
{
    return tr_local_first_to_give_up(&local_of(comm)->area);
}

static void local_give_up(tr_comm *comm, const char *why)
{
    tr_local_give_up(&local_of(comm)->area, comm->rank, why);
}

/* ---- memory ---- */

static tr_status local_share(tr_comm *comm, size_t bytes, size_t begin, size_t end, void **memory,
                             char key[TR_SHARE_KEY])
{
    return tr_local_extent_share(&local_of(comm)->extents, bytes, begin, end, memory, key);
}

static tr_status local_map(tr_comm *comm, size_t bytes, const char key[TR_SHARE_KEY], void **memory)
{
    return tr_local_extent_map(&local_of(comm)->extents, bytes, key, memory);
}

static void local_unmap(tr_comm *comm, size_t bytes, void *memory)
{
    (void)bytes;
    tr_local_extent_unmap(&local_of(comm)->extents, memory);
}

/* ---- joining ---- */

/* Names the cause: first ranks that ended without a reason, then the rank that gave up before all others. */
static tr_status find_absent(const struct local_comm *comm)
{
    const struct local_area *area = &comm->area;
    int first = tr_local_first_to_give_up(area);
    for (int rank = 0; rank < area->size; rank++) {
        bool ended = atomic_load(&area->record[rank].ended) != 0;
        unsigned state = atomic_load(&area->record[rank].state);
        if (ended && state < LOCAL_JOINED)
            return tr_fail(TR_EPEER,
                           "rank %d ended before it took part; see what it said, and start the job again",
                           rank);
    }
    if (first < 0 || atomic_load(&area->record[first].state) != LOCAL_GAVE_UP) return TR_OK;
    char why[LOCAL_WHY];
    tr_local_words(area, first, why, sizeof why);
    return tr_fail(TR_EPEER, "rank %d gave up: %s", first, why);
}

/* How many have not joined, and the first of them. */
static int count_missing(const struct local_area *area, int *first)
{
    int missing = 0;
    for (int rank = area->size - 1; rank >= 0; rank--) {
        if (atomic_load(&area->record[rank].state) >= LOCAL_JOINED) continue;
        missing++;
        *first = rank;
    }
    return missing;
}

static tr_status wait_for_all(struct local_comm *comm, double limit)
{
    const struct local_record *own = record_of(comm, comm->base.rank);
    double end = tr_clock_seconds() + limit;
    double look = comm->base.settings.stop ? JOIN_LOOK_STOP : JOIN_LOOK;
    for (;;) {
        uint32_t moment = atomic_load(&own->bell);
        int first = 0;
        TR_TRY(find_absent(comm));
        int missing = count_missing(&comm->area, &first);
        if (missing == 0) return TR_OK;
        TR_TRY(tr_comm_check_stop(&comm->base.settings));
        double left = end - tr_clock_seconds();
        if (left <= 0)
            return tr_fail(TR_EPEER,
                           "rank %d did not join within %g s (%d of %d missing); check that all were started",
                           first, limit, missing, comm->area.size);
        tr_local_sleep(&comm->area, comm->base.rank, moment, left < look ? left : look);
    }
}

/* Ranks that share memory form a host, wherever the processes run. */
static void find_locations(struct local_comm *comm)
{
    tr_comm *base = &comm->base;
    for (int rank = 0; rank < base->size; rank++) {
        base->location[rank] = record_of(comm, rank)->location;
        base->location[rank].host[TR_LOCATION_NAME - 1] = 0;
        memcpy(base->location[rank].machine, base->location[0].machine, TR_LOCATION_MACHINE);
        base->location[rank].machine[TR_LOCATION_MACHINE - 1] = 0;
    }
    tr_comm_find_hosts(base);
}

static tr_status join(struct local_comm *comm)
{
    tr_comm *base = &comm->base;
    struct local_record *own = record_of(comm, base->rank);
    double limit = base->settings.timeout > JOIN_SECONDS ? base->settings.timeout : JOIN_SECONDS;
    TR_TRY(tr_local_mail_create(&comm->area, base->rank, &comm->mail));
    comm->extents.area = &comm->area;
    tr_location_here(&own->location);
    atomic_store(&own->state, LOCAL_JOINED);
    if (atomic_fetch_add(&comm->area.header->joined, 1) + 1 == (unsigned)base->size)
        tr_local_wake_all(&comm->area);
    TR_TRY(wait_for_all(comm, limit));
    find_locations(comm);
    comm->yield_seconds = base->size <= tr_team_processors() ? TR_LOCAL_YIELD_SECONDS : 0;
    return tr_local_watch_start(&comm->area, base->rank, tr_comm_interval(&base->settings), &comm->watch);
}

/* ---- beginning and end ---- */

static void release(struct local_comm *comm)
{
    tr_local_watch_stop(&comm->watch);
    tr_local_extents_release(&comm->extents);
    tr_local_mail_destroy(&comm->mail);
    tr_comm_release(&comm->base);
    tr_local_area_close(&comm->area);
    tr_free(comm);
}

static void local_destroy(tr_comm *base, bool clean)
{
    (void)clean;
    struct local_comm *comm = local_of(base);
    unsigned joined = LOCAL_JOINED;
    atomic_compare_exchange_strong(&record_of(comm, base->rank)->state, &joined, LOCAL_LEFT);
    tr_local_change(&comm->area);
    release(comm);
}

static const struct tr_comm_class local_class = {
    .name = "local",
    .version = TR_COMM_VERSION,
    .start = local_start,
    .poll = local_poll,
    .test = local_test,
    .withdraw = local_withdraw,
    .idle = local_idle,
    .rings = true,
    .life = local_life,
    .changes = local_changes,
    .first_to_give_up = local_first_to_give_up,
    .give_up = local_give_up,
    .share_memory = local_share,
    .map = local_map,
    .unmap = local_unmap,
    .destroy = local_destroy,
};

/* Takes the area. If this rank fails, the others get the reason. */
static tr_status make(struct local_area *area, int rank, const struct tr_comm_settings *settings,
                      tr_comm **out)
{
    struct local_comm *comm = tr_alloc_zero(1, sizeof *comm);
    tr_status status = TR_ENOMEM;
    if (comm) {
        comm->area = *area;
        status = tr_comm_prepare(&comm->base, &local_class, rank, area->size, settings);
    }
    if (status == TR_OK) status = join(comm);
    if (status == TR_OK) {
        *out = &comm->base;
        return TR_OK;
    }
    tr_local_give_up(area, rank, tr_error_message());
    if (comm)
        release(comm);
    else
        tr_local_area_close(area);
    return status;
}

tr_status tr_comm_local_create(const char *text, const struct tr_comm_settings *settings, tr_comm **out)
{
    struct local_ticket ticket;
    struct local_area area;
    unsigned empty = LOCAL_EMPTY;
    *out = NULL;
    if (!tr_local_ticket_read(text, &ticket))
        return tr_fail(TR_EINVAL,
                       "\"%s\" is no ticket for one of several processes; leave " TR_LOCAL_VARIABLE
                       " to the launcher",
                       text);
    TR_TRY(tr_local_area_open(ticket.descriptor, ticket.size, &area));
    if (atomic_compare_exchange_strong(&area.record[ticket.rank].state, &empty, LOCAL_JOINING))
        return make(&area, ticket.rank, settings, out);
    tr_local_area_close(&area);
    return tr_fail(TR_EINVAL, "rank %d of %d has joined already; a ticket serves once", ticket.rank,
                   ticket.size);
}
