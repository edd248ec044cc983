/* The transport between threads: a message is copied once, from the sender's memory to the receiver's, by
 * the second of the two to arrive.
 *
 * States of a transfer: WAITING in the list of the receiving rank -> COPYING (in no list; both sides must
 * stay) -> COMPLETE, or MISMATCH if the sizes differ. States change under the lock of the group; `done` is
 * set only by the transfer's own rank.
 */
#include "support/comm_thread/group.h"
#include "support/comm_thread/thread.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/threads/thread.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static struct group *group_of(tr_comm *comm)
{
    return ((struct thread_comm *)comm)->group;
}

void group_wake(struct group *group, int rank)
{
    group->member[rank].moment++;
    pthread_cond_broadcast(&group->member[rank].changed);
}

/* ---- messages ---- */

/* The sender's rank is stored with a send, since `peer` is its destination. */
static int sender_of(const struct tr_transfer *send)
{
    return ((const tr_comm *)send->request)->rank;
}

static void append(struct tr_transfer **list, struct tr_transfer *transfer)
{
    while (*list) list = &(*list)->next;
    transfer->next = NULL;
    *list = transfer;
}

static bool take_out(struct tr_transfer **list, struct tr_transfer *transfer)
{
    while (*list && *list != transfer) list = &(*list)->next;
    if (!*list) return false;
    *list = transfer->next;
    return true;
}

/* Whether a fault is holding a message back. */
static bool is_held(const struct group *group, const struct tr_transfer *send)
{
    const struct group_fault *fault = &group->member[sender_of(send)].fault;
    return fault->held == send && tr_clock_seconds() < fault->due;
}

static void release_held(struct group *group, const struct tr_transfer *send)
{
    struct group_fault *fault = &group->member[sender_of(send)].fault;
    if (fault->held == send) fault->held = NULL;
}

/* A message about to be sent: if it is the one of the fault, holds it back. False if it is lost. */
static bool pass_fault(struct group *group, const struct tr_transfer *send)
{
    struct group_fault *fault = &group->member[sender_of(send)].fault;
    if (fault->to != send->peer || fault->left-- > 0) return true;
    fault->to = -1;
    if (fault->seconds < 0) return false;
    fault->held = send;
    fault->due = tr_clock_seconds() + fault->seconds;
    return true;
}

/* The oldest message of that sender and tag, since messages do not overtake. */
static struct tr_transfer *find_send(const struct group *group, int to, int from, int tag)
{
    for (struct tr_transfer *send = group->member[to].sends; send; send = send->next)
        if (sender_of(send) == from && send->tag == tag) return is_held(group, send) ? NULL : send;
    return NULL;
}

static struct tr_transfer *find_receive(const struct group *group, int to, int from, int tag)
{
    for (struct tr_transfer *receive = group->member[to].receives; receive; receive = receive->next)
        if (receive->peer == from && receive->tag == tag) return receive;
    return NULL;
}

/* Both were taken out of their lists. Copies without the lock, so that pairs of ranks do not wait for each
 * other. */
static void deliver(struct group *group, struct tr_transfer *send, struct tr_transfer *receive)
{
    int from = receive->peer, to = send->peer;
    bool fits = send->bytes == receive->bytes;
    if (fits && send->bytes > 0) {
        send->state = receive->state = GROUP_COPYING;
        pthread_mutex_unlock(&group->lock);
        memcpy(receive->data, send->data, send->bytes);
        pthread_mutex_lock(&group->lock);
    }
    if (!fits) receive->came = send->bytes;
    send->state = GROUP_COMPLETE;
    receive->state = fits ? GROUP_COMPLETE : GROUP_MISMATCH;
    group_wake(group, from);
    group_wake(group, to);
}

/* Looks for the other side of a waiting receive. */
static void try_receive(struct group *group, int rank, struct tr_transfer *receive)
{
    struct tr_transfer *send = find_send(group, rank, receive->peer, receive->tag);
    /* An older receive comes first. */
    if (!send || find_receive(group, rank, receive->peer, receive->tag) != receive) return;
    take_out(&group->member[rank].sends, send);
    release_held(group, send);
    take_out(&group->member[rank].receives, receive);
    deliver(group, send, receive);
}

static tr_status killed(const tr_comm *comm)
{
    return tr_fail(TR_EPEER, "rank %d was killed on purpose", comm->rank);
}

static tr_status thread_start(tr_comm *comm, struct tr_transfer *transfer)
{
    struct group *group = group_of(comm);
    pthread_mutex_lock(&group->lock);
    bool alive = !group->member[comm->rank].killed;
    transfer->state = GROUP_WAITING;
    if (alive && transfer->sends) {
        transfer->request = comm;
        if (pass_fault(group, transfer))
            append(&group->member[transfer->peer].sends, transfer);
        else
            transfer->state = GROUP_COMPLETE; /* from the sender's view */
        struct tr_transfer *receive = find_receive(group, transfer->peer, comm->rank, transfer->tag);
        if (receive) try_receive(group, transfer->peer, receive);
        /* Otherwise the receiver finds it when it arrives, or when a delay is over. */
    } else if (alive) {
        append(&group->member[comm->rank].receives, transfer);
        try_receive(group, comm->rank, transfer);
    }
    transfer->done = transfer->state == GROUP_COMPLETE;
    pthread_mutex_unlock(&group->lock);
    return alive ? TR_OK : killed(comm);
}

static tr_status thread_test(tr_comm *comm, struct tr_transfer *transfer)
{
    struct group *group = group_of(comm);
    pthread_mutex_lock(&group->lock);
    /* A collective's transfer is done by the last rank to arrive. */
    if (transfer->state == GROUP_WAITING && !transfer->sends && !transfer->request)
        try_receive(group, comm->rank, transfer);
    int state = transfer->state;
    pthread_mutex_unlock(&group->lock);
    transfer->done = state == GROUP_COMPLETE || state == GROUP_MISMATCH;
    return state == GROUP_MISMATCH ? tr_comm_wrong_size(transfer) : TR_OK;
}

static bool thread_withdraw(tr_comm *comm, struct tr_transfer *transfer)
{
    struct group *group = group_of(comm);
    pthread_mutex_lock(&group->lock);
    struct group_member *to = &group->member[transfer->sends ? transfer->peer : comm->rank];
    take_out(transfer->sends ? &to->sends : &to->receives, transfer);
    if (!transfer->sends && transfer->request) group_leave_meeting(group, comm->rank, transfer);
    if (transfer->sends && transfer->request)
        release_held(group, transfer);       /* otherwise it was never
                                                started */
    while (transfer->state == GROUP_COPYING) /* ends by itself, soon */
        pthread_cond_wait(&group->member[comm->rank].changed, &group->lock);
    pthread_mutex_unlock(&group->lock);
    transfer->done = true;
    return true;
}

/* ---- waiting, and who is there ---- */

static tr_status thread_poll(tr_comm *comm, uint64_t *moment)
{
    struct group *group = group_of(comm);
    pthread_mutex_lock(&group->lock);
    *moment = group->member[comm->rank].moment;
    bool alive = !group->member[comm->rank].killed;
    pthread_mutex_unlock(&group->lock);
    return alive ? TR_OK : killed(comm);
}

/* When to check again, because a held message for this rank is due: at most `seconds` from now. */
static double until_due(const struct group *group, int rank, double seconds)
{
    double now = tr_clock_seconds();
    for (int from = 0; from < group->size; from++) {
        const struct group_fault *fault = &group->member[from].fault;
        if (fault->held && fault->held->peer == rank && fault->due > now && fault->due - now < seconds)
            seconds = fault->due - now;
    }
    return seconds;
}

static void thread_idle(tr_comm *comm, uint64_t moment, double waited, double seconds)
{
    (void)waited;
    struct group *group = group_of(comm);
    struct group_member *self = &group->member[comm->rank];
    pthread_mutex_lock(&group->lock);
    struct timespec end = tr_moment_in(until_due(group, comm->rank, seconds));
    while (self->moment == moment && !self->killed)
        if (pthread_cond_timedwait(&self->changed, &group->lock, &end) == ETIMEDOUT) break;
    pthread_mutex_unlock(&group->lock);
}

static enum tr_comm_life thread_life(tr_comm *comm, int rank, double *silence, char *why, size_t size)
{
    struct group *group = group_of(comm);
    const struct group_member *member = &group->member[rank];
    pthread_mutex_lock(&group->lock);
    enum tr_comm_life life = member->killed    ? TR_COMM_DEAD
                             : member->gave_up ? TR_COMM_GAVE_UP
                             : member->left    ? TR_COMM_LEFT
                                               : TR_COMM_ALIVE;
    *silence = member->frozen > 0 ? tr_clock_seconds() - member->frozen : 0;
    if (life == TR_COMM_GAVE_UP) snprintf(why, size, "%s", member->why);
    pthread_mutex_unlock(&group->lock);
    return life;
}

static void thread_give_up(tr_comm *comm, const char *why)
{
    struct group *group = group_of(comm);
    pthread_mutex_lock(&group->lock);
    group->member[comm->rank].gave_up = true;
    if (group->first_to_give_up < 0) group->first_to_give_up = comm->rank;
    snprintf(group->member[comm->rank].why, GROUP_WHY, "%s", why);
    for (int rank = 0; rank < group->size; rank++) group_wake(group, rank);
    pthread_mutex_unlock(&group->lock);
}

static int thread_first_to_give_up(tr_comm *comm)
{
    struct group *group = group_of(comm);
    pthread_mutex_lock(&group->lock);
    int first = group->first_to_give_up;
    pthread_mutex_unlock(&group->lock);
    return first;
}

/* ---- memory: counted, since ranks may leave in any order ---- */

struct block {
    _Alignas(TR_CACHE_LINE) atomic_int users;
    _Alignas(TR_CACHE_LINE) char memory[];
};

static struct block *block_of(void *memory)
{
    return (struct block *)(void *)((char *)memory - offsetof(struct block, memory));
}

static tr_status thread_share(tr_comm *comm, size_t bytes, size_t begin, size_t end, void **memory,
                              char key[TR_SHARE_KEY])
{
    (void)comm;
    if (bytes > SIZE_MAX - sizeof(struct block)) return tr_fail(TR_ENOMEM, "%zu bytes are too many", bytes);
    struct block *block = tr_alloc_aligned(sizeof *block + bytes, 1);
    if (!block) return TR_ENOMEM;
    memset(block->memory + begin, 0, end - begin);
    atomic_init(&block->users, 1);
    *memory = block->memory;
    memcpy(key, memory, sizeof *memory);
    return TR_OK;
}

static tr_status thread_map(tr_comm *comm, size_t bytes, const char key[TR_SHARE_KEY], void **memory)
{
    (void)comm, (void)bytes;
    memcpy(memory, key, sizeof *memory);
    atomic_fetch_add(&block_of(*memory)->users, 1);
    return TR_OK;
}

static void thread_unmap(tr_comm *comm, size_t bytes, void *memory)
{
    (void)comm, (void)bytes;
    struct block *block = block_of(memory);
    if (atomic_fetch_sub(&block->users, 1) == 1) tr_free(block);
}

/* ---- life and death of a group ---- */

static void destroy_group(struct group *group)
{
    for (int rank = 0; rank < group->size; rank++) pthread_cond_destroy(&group->member[rank].changed);
    pthread_mutex_destroy(&group->lock);
    group_free_meetings(group);
    tr_free(group);
}

static void thread_destroy(tr_comm *comm, bool clean)
{
    (void)clean;
    struct group *group = group_of(comm);
    pthread_mutex_lock(&group->lock);
    group->member[comm->rank].left = true;
    for (int rank = 0; rank < group->size; rank++) group_wake(group, rank);
    bool last = --group->handles == 0;
    pthread_mutex_unlock(&group->lock);
    if (last) destroy_group(group);
    tr_comm_release(comm);
    tr_free(comm);
}

#define THREAD_SLOTS                                                                                         \
    .version = TR_COMM_VERSION, .start = thread_start, .poll = thread_poll, .test = thread_test,             \
    .withdraw = thread_withdraw, .idle = thread_idle, .life = thread_life,                                   \
    .first_to_give_up = thread_first_to_give_up, .give_up = thread_give_up, .share_memory = thread_share,    \
    .map = thread_map, .unmap = thread_unmap, .destroy = thread_destroy

static const struct tr_comm_class thread_class = {.name = "thread", .rings = true, THREAD_SLOTS};

static tr_status make_group(int size, struct group **out)
{
    struct group *group = tr_alloc_zero(1, sizeof *group + (size_t)size * sizeof group->member[0]);
    *out = group;
    if (!group) return TR_ENOMEM;
    group->size = size;
    group->first_to_give_up = -1;
    pthread_mutex_init(&group->lock, NULL);
    for (int rank = 0; rank < size; rank++) {
        tr_condition_init(&group->member[rank].changed);
        group->member[rank].fault.to = -1;
    }
    return TR_OK;
}

static tr_status make_member(struct group *group, const struct tr_comm_class *class, int rank,
                             const int *host, const struct tr_comm_settings *settings, tr_comm **out)
{
    struct thread_comm *comm = tr_alloc_zero(1, sizeof *comm);
    if (!comm) return TR_ENOMEM;
    comm->group = group;
    *out = &comm->base;
    TR_TRY(tr_comm_prepare(&comm->base, class, rank, group->size, settings));
    for (int i = 0; i < group->size; i++) {
        struct tr_location *location = &comm->base.location[i];
        snprintf(location->host, sizeof location->host, "thread-host-%d", host ? host[i] : 0);
        snprintf(location->machine, sizeof location->machine, "%d", host ? host[i] : 0);
        location->process = i;
    }
    tr_comm_find_hosts(&comm->base);
    return TR_OK;
}

static tr_status create(const struct tr_comm_class *class, int size, const int *host,
                        const struct tr_comm_settings *settings, tr_comm **out)
{
    struct group *group;
    for (int rank = 0; rank < size; rank++) out[rank] = NULL;
    TR_TRY(make_group(size, &group));
    tr_status status = TR_OK;
    for (int rank = 0; rank < size && status == TR_OK; rank++)
        status = make_member(group, class, rank, host, settings, &out[rank]);
    group->handles = size;
    if (status == TR_OK) return TR_OK;
    for (int rank = 0; rank < size && out[rank]; rank++) {
        tr_comm_release(out[rank]);
        tr_free(out[rank]);
        out[rank] = NULL;
    }
    destroy_group(group);
    return status;
}

static tr_status check_and_create(const struct tr_comm_class *class, int size, const int *host,
                                  const struct tr_comm_settings *settings, tr_comm **out)
{
    if (size < 1 || size > TR_COMM_THREADS_MOST)
        return tr_fail(TR_EINVAL, "ranks as threads: %d is out of range; choose 1 to %d", size,
                       TR_COMM_THREADS_MOST);
    return create(class, size, host, settings, out);
}

tr_status tr_comm_thread_create(int size, const int *host, const struct tr_comm_settings *settings,
                                tr_comm **out)
{
    return check_and_create(&thread_class, size, host, settings, out);
}

tr_status tr_comm_thread_create_collective(int size, const int *host, const struct tr_comm_settings *settings,
                                           tr_comm **out)
{
    static struct tr_comm_class class;
    class = thread_class;
    class.broadcast = group_collective_class.broadcast;
    class.all_gather = group_collective_class.all_gather;
    class.reduce_scatter = group_collective_class.reduce_scatter;
    return check_and_create(&class, size, host, settings, out);
}
