/* Subgroups of a communicator: communicators over the transport of another, their whole.
 *
 * A message of a subgroup is a message of the whole, with the ranks of the whole and a tag that no other
 * subgroup of the same ranks uses: each subgroup has a number, and a range of tags by it. The numbers that
 * the ranks have taken are compared when a subgroup is made, so that the lowest one that is free everywhere
 * serves again.
 *
 * The transport gets a separate transfer for each message, since the subgroup's transfer has the
 * subgroup's ranks.
 */
#include "comm/operation.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

struct subgroup {
    tr_comm base; /* first, so that a tr_comm is one of these */
    int number;
    struct tr_transfer *spare; /* linked by `next` */
};

static struct subgroup *group_of(tr_comm *comm)
{
    return (struct subgroup *)comm;
}

/* ---- messages ---- */

static struct tr_transfer *take_transfer(struct subgroup *group)
{
    struct tr_transfer *transfer = group->spare;
    if (!transfer) return tr_alloc(1, sizeof *transfer);
    group->spare = transfer->next;
    return transfer;
}

static void give_back(struct subgroup *group, struct tr_transfer *transfer)
{
    struct tr_transfer *carrier = transfer->request;
    carrier->next = group->spare;
    group->spare = carrier;
    transfer->request = NULL;
}

/* Starts the carrier. *unused: it did not start, and the transport has no part of it under way. */
static tr_status start_in_whole(tr_comm *whole, struct tr_transfer *carrier, bool *unused)
{
    pthread_mutex_lock(&whole->lock);
    tr_status status = tr_comm_check(whole);
    *unused = status != TR_OK;
    if (status == TR_OK) {
        status = whole->class->start(whole, carrier);
        carrier->broken = status == TR_EPEER;
        *unused = carrier->broken ? tr_transfer_withdraw(whole, carrier) : status != TR_OK;
    }
    pthread_mutex_unlock(&whole->lock);
    return status;
}

static tr_status group_start(tr_comm *comm, struct tr_transfer *transfer)
{
    struct subgroup *group = group_of(comm);
    struct tr_transfer *carrier = take_transfer(group);
    bool unused;
    if (!carrier) return TR_ENOMEM;
    *carrier = (struct tr_transfer){
        .data = transfer->data,
        .bytes = transfer->bytes,
        .peer = comm->member[transfer->peer],
        .tag = TR_COMM_TAG_SUBGROUPS + group->number * TR_COMM_TAG_TRANSPORT + transfer->tag,
        .sends = transfer->sends,
        .numbers = transfer->numbers,
    };
    transfer->request = carrier;
    tr_status status = start_in_whole(comm->whole, carrier, &unused);
    /* One that could not start is not done: its data are not there. */
    transfer->done = status == TR_OK && carrier->done;
    if (unused || transfer->done) give_back(group, transfer);
    return status;
}

static tr_status part_test(tr_comm *comm, struct tr_transfer *transfer)
{
    tr_comm *whole = comm->whole;
    struct tr_transfer *carrier = transfer->request;
    pthread_mutex_lock(&whole->lock);
    tr_status status = whole->class->test(whole, carrier);
    pthread_mutex_unlock(&whole->lock);
    transfer->done = carrier->done;
    if (carrier->done) give_back(group_of(comm), transfer);
    return status;
}

static bool part_withdraw(tr_comm *comm, struct tr_transfer *transfer)
{
    tr_comm *whole = comm->whole;
    bool free_again = true; /* without a carrier it never started */
    if (transfer->request) {
        pthread_mutex_lock(&whole->lock);
        free_again = whole->class->withdraw(whole, transfer->request);
        pthread_mutex_unlock(&whole->lock);
        if (free_again) give_back(group_of(comm), transfer);
    }
    transfer->done = free_again;
    return free_again;
}

static tr_status part_poll(tr_comm *comm, uint64_t *moment)
{
    tr_comm *whole = comm->whole;
    tr_status status = comm->moves ? TR_OK : tr_comm_progress(whole);
    pthread_mutex_lock(&whole->lock);
    /* Failures of the whole that the subgroup's progress thread finds are kept for callers, too. */
    if (comm->moves) status = whole->dead ? tr_comm_check(whole) : tr_comm_move(whole);
    *moment = comm->moves ? whole->polled : whole->moment;
    pthread_mutex_unlock(&whole->lock);
    return status;
}

static void part_idle(tr_comm *comm, uint64_t moment, double waited, double seconds)
{
    comm->whole->class->idle(comm->whole, moment, waited, seconds);
}

/* ---- life ---- */

static enum tr_comm_life part_life(tr_comm *comm, int rank, double *silence, char *why, size_t size)
{
    tr_comm *whole = comm->whole;
    pthread_mutex_lock(&whole->lock);
    enum tr_comm_life life = whole->class->life(whole, comm->member[rank], silence, why, size);
    pthread_mutex_unlock(&whole->lock);
    return life;
}

static int part_first_to_give_up(tr_comm *comm)
{
    tr_comm *whole = comm->whole;
    if (!whole->class->first_to_give_up) return -1;
    pthread_mutex_lock(&whole->lock);
    int first = whole->class->first_to_give_up(whole);
    pthread_mutex_unlock(&whole->lock);
    for (int rank = 0; rank < comm->size; rank++)
        if (comm->member[rank] == first) return rank;
    return -1;
}

static void part_give_up(tr_comm *comm, const char *why)
{
    tr_comm *whole = comm->whole;
    pthread_mutex_lock(&whole->lock);
    if (!whole->dead) tr_comm_end(whole, why, why);
    pthread_mutex_unlock(&whole->lock);
}

/* ---- memory ---- */

static tr_status part_share(tr_comm *comm, size_t bytes, size_t begin, size_t end, void **memory,
                            char key[TR_SHARE_KEY])
{
    tr_comm *whole = comm->whole;
    if (!whole->class->share_memory)
        return tr_fail(TR_EUNSUPPORTED, "ranks of \"%s\" cannot share memory; work without",
                       whole->class->name);
    pthread_mutex_lock(&whole->lock);
    tr_status status = whole->class->share_memory(whole, bytes, begin, end, memory, key);
    pthread_mutex_unlock(&whole->lock);
    return status;
}

static tr_status part_map(tr_comm *comm, size_t bytes, const char key[TR_SHARE_KEY], void **memory)
{
    tr_comm *whole = comm->whole;
    pthread_mutex_lock(&whole->lock);
    tr_status status = whole->class->map(whole, bytes, key, memory);
    pthread_mutex_unlock(&whole->lock);
    return status;
}

static void part_mapped(tr_comm *comm, char key[TR_SHARE_KEY])
{
    tr_comm *whole = comm->whole;
    if (!whole->class->mapped) return;
    pthread_mutex_lock(&whole->lock);
    whole->class->mapped(whole, key);
    pthread_mutex_unlock(&whole->lock);
}

static void part_unmap(tr_comm *comm, size_t bytes, void *memory)
{
    tr_comm *whole = comm->whole;
    pthread_mutex_lock(&whole->lock);
    whole->class->unmap(whole, bytes, memory);
    pthread_mutex_unlock(&whole->lock);
}

/* ---- beginning and end ---- */

static void group_destroy(tr_comm *comm, bool clean)
{
    (void)clean;
    struct subgroup *group = group_of(comm);
    pthread_mutex_lock(&comm->whole->lock);
    comm->whole->subgroup_bits &= ~(1u << group->number);
    pthread_mutex_unlock(&comm->whole->lock);
    while (group->spare) {
        struct tr_transfer *next = group->spare->next;
        tr_free(group->spare);
        group->spare = next;
    }
    tr_comm_release(comm);
    tr_free(group);
}

static const struct tr_comm_class part_class = {
    .name = "subgroup",
    .version = TR_COMM_VERSION,
    .start = group_start,
    .poll = part_poll,
    .test = part_test,
    .withdraw = part_withdraw,
    .idle = part_idle,
    .life = part_life,
    .first_to_give_up = part_first_to_give_up,
    .give_up = part_give_up,
    .share_memory = part_share,
    .map = part_map,
    .mapped = part_mapped,
    .unmap = part_unmap,
    .destroy = group_destroy,
};

/* A rank's message about itself. */
struct notice {
    int32_t color, key;
    uint32_t subgroup_bits;
    int32_t rank; /* set by the receiver: where it came from */
};

static int by_key(const void *left, const void *right)
{
    const struct notice *a = left, *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->rank < b->rank ? -1 : 1;
}

/* Moves the members to the front, in order, and returns their number. */
static int choose_members(struct notice *notice, int ranks, int color)
{
    int size = 0;
    for (int rank = 0; rank < ranks; rank++) {
        if (notice[rank].color != color) continue;
        notice[size] = notice[rank];
        notice[size++].rank = rank;
    }
    qsort(notice, (size_t)size, sizeof *notice, by_key);
    return size;
}

tr_status tr_subgroup_make(tr_comm *comm, const int *member, int size, int number, tr_comm **out)
{
    struct subgroup *group = tr_alloc_zero(1, sizeof *group);
    if (!group) return TR_ENOMEM;
    tr_comm *base = &group->base, *whole = comm->whole ? comm->whole : comm;
    int rank = 0;
    while (member[rank] != comm->rank) rank++;
    tr_status status = tr_comm_prepare(base, &part_class, rank, size, &comm->settings);
    base->member = tr_alloc((size_t)size, sizeof *base->member);
    if (status == TR_OK && !base->member) status = TR_ENOMEM;
    if (status != TR_OK) {
        tr_comm_release(base);
        tr_free(group);
        return status;
    }
    base->whole = whole;
    base->routing = comm->routing;
    group->number = number;
    for (int i = 0; i < size; i++) {
        base->member[i] = tr_comm_number(comm, member[i]);
        base->location[i] = comm->location[member[i]];
    }
    tr_comm_find_hosts(base);
    pthread_mutex_lock(&whole->lock);
    whole->subgroup_bits |= 1u << number;
    pthread_mutex_unlock(&whole->lock);
    *out = base;
    return TR_OK;
}

/* Makes the subgroup of the members of a color. */
static tr_status make(tr_comm *comm, struct notice *notice, int color, int number, tr_comm **out)
{
    int size = choose_members(notice, comm->size, color);
    int *member = tr_alloc((size_t)size, sizeof *member);
    if (!member) return TR_ENOMEM;
    for (int i = 0; i < size; i++) member[i] = notice[i].rank;
    tr_status status = tr_subgroup_make(comm, member, size, number, out);
    tr_free(member);
    return status;
}

tr_status tr_comm_split(tr_comm *comm, int color, int key, tr_comm **out)
{
    tr_comm *whole = comm->whole ? comm->whole : comm;
    uint32_t taken = 0;
    int number = 0;
    *out = NULL;
    struct notice *notice = tr_alloc_zero((size_t)comm->size, sizeof *notice);
    if (!notice) {
        tr_comm_abort(comm, "out of memory");
        return TR_ENOMEM;
    }
    pthread_mutex_lock(&whole->lock);
    notice[comm->rank] = (struct notice){.color = color, .key = key, .subgroup_bits = whole->subgroup_bits};
    pthread_mutex_unlock(&whole->lock);
    tr_status status = tr_comm_exchange(comm, notice, sizeof *notice, "split");
    for (int rank = 0; rank < comm->size; rank++) taken |= notice[rank].subgroup_bits;
    while (number < TR_COMM_SUBGROUPS && taken >> number & 1) number++;
    if (status == TR_OK && number == TR_COMM_SUBGROUPS)
        status = tr_fail(TR_EINVAL, "the ranks belong to %d subgroups already; destroy one first",
                         TR_COMM_SUBGROUPS);
    else if (status == TR_OK && color >= 0) {
        status = make(comm, notice, color, number, out);
        if (status != TR_OK) tr_comm_abort(comm, tr_error_message()); /* the others rely on us */
    }
    tr_free(notice);
    return status;
}
