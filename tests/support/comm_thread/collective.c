/* Collectives of the transport: all ranks announce their buffers, and the last to arrive does the whole
 * collective on the memory of all.
 */
#include "support/comm_thread/group.h"

#include "base/alloc.h"
#include "comm/sums/reduction.h"

#include <string.h>

static struct group *group_of(tr_comm *comm)
{
    return ((struct thread_comm *)comm)->group;
}

/* ---- what is done with everybody's memory; false where ranks disagree about sizes ---- */

static bool do_broadcast(const struct group *group, const struct group_meeting *meeting)
{
    const struct tr_transfer *from = meeting->share[meeting->root].transfer;
    for (int r = 0; r < group->size; r++) {
        const struct tr_transfer *to = meeting->share[r].transfer;
        if (to->bytes != from->bytes) return false;
        if (to != from && from->bytes > 0) memcpy(to->data, from->data, from->bytes);
    }
    return true;
}

static bool do_all_gather(const struct group *group, const struct group_meeting *meeting)
{
    const int64_t *bound = meeting->share[0].bound;
    for (int r = 1; r < group->size; r++)
        if (memcmp(bound, meeting->share[r].bound, ((size_t)group->size + 1) * sizeof *bound) != 0)
            return false;
    for (int from = 0; from < group->size; from++)
        for (int to = 0; to < group->size; to++) {
            char *data = meeting->share[to].transfer->data;
            const char *source = meeting->share[from].transfer->data;
            size_t bytes = (size_t)(bound[from + 1] - bound[from]);
            if (from != to && bytes > 0) memcpy(data + bound[from], source + bound[from], bytes);
        }
    return true;
}

enum { INPUTS_MOST = 1024 };

/* The part of a rank. Sums may be computed in the place of nodes, but only for the rank's own part, which
   no other rank reads. */
static bool do_sum(const struct group_meeting *meeting, int rank)
{
    const struct tr_sum *own = meeting->share[rank].sum;
    const struct tr_reduction *reduction = own->reduction;
    const struct tr_route *route = &reduction->direct;
    const float *input[INPUTS_MOST];
    if (route->root.inputs > INPUTS_MOST) return false;
    for (int i = 0; i < route->root.inputs; i++) {
        const struct tr_input *from = &route->root.input[i];
        int whose = from->rank, index = from->index;
        if (whose < 0) { /* data from another rank, in the order of its nodes */
            const struct tr_hop *hop = &route->hop[index];
            whose = hop->peer;
            for (index = 0; hop > route->hop && hop[-1].peer == whose; hop--) index++;
        }
        const struct tr_sum *sum = meeting->share[whose].sum;
        input[i] = sum->nodes + index * sum->stride + own->shard[rank];
    }
    float *out = own->out;
    int64_t length = own->shard[rank + 1] - own->shard[rank];
    if (length > 0) tr_program_run(route->root.program, input, length, &out);
    return true;
}

static bool do_reduce_scatter(const struct group *group, const struct group_meeting *meeting)
{
    bool done = true;
    for (int r = 0; r < group->size; r++) done = done && do_sum(meeting, r);
    return done;
}

static void hold(struct group *group, const struct group_meeting *meeting)
{
    bool well = meeting->kind == GROUP_BROADCAST    ? do_broadcast(group, meeting)
                : meeting->kind == GROUP_ALL_GATHER ? do_all_gather(group, meeting)
                                                    : do_reduce_scatter(group, meeting);
    for (int r = 0; r < group->size; r++) {
        meeting->share[r].transfer->state = well ? GROUP_COMPLETE : GROUP_MISMATCH;
        group_wake(group, r);
    }
}

/* ---- coming and leaving ---- */

static void remove_meeting(struct group *group, struct group_meeting *meeting)
{
    struct group_meeting **at = &group->meetings;
    while (*at != meeting) at = &(*at)->next;
    *at = meeting->next;
    tr_free(meeting);
}

static struct group_meeting *find(struct group *group, enum group_collective kind, int tag, int root)
{
    for (struct group_meeting *meeting = group->meetings; meeting; meeting = meeting->next)
        if (meeting->tag == tag) return meeting;
    size_t shares = (size_t)group->size * sizeof group->meetings->share[0];
    struct group_meeting *meeting = tr_alloc_zero(1, sizeof *meeting + shares);
    if (!meeting) return NULL;
    meeting->kind = kind;
    meeting->tag = tag;
    meeting->root = root;
    meeting->next = group->meetings;
    return group->meetings = meeting;
}

static tr_status come(tr_comm *comm, enum group_collective kind, int root, struct group_share share)
{
    struct group *group = group_of(comm);
    pthread_mutex_lock(&group->lock);
    struct group_meeting *meeting = find(group, kind, share.transfer->tag, root);
    if (meeting) {
        share.transfer->state = GROUP_WAITING;
        share.transfer->request = meeting;
        meeting->share[comm->rank] = share;
        if (++meeting->came == group->size) {
            hold(group, meeting);
            remove_meeting(group, meeting);
        }
    }
    pthread_mutex_unlock(&group->lock);
    return meeting ? TR_OK : TR_ENOMEM;
}

void group_leave_meeting(struct group *group, int rank, struct tr_transfer *transfer)
{
    for (struct group_meeting *meeting = group->meetings; meeting; meeting = meeting->next)
        if (meeting->share[rank].transfer == transfer) {
            meeting->share[rank].transfer = NULL;
            meeting->came = -group->size; /* it never takes place */
        }
}

void group_free_meetings(struct group *group)
{
    while (group->meetings) remove_meeting(group, group->meetings);
}

static tr_status broadcast(tr_comm *comm, struct tr_transfer *transfer, int root)
{
    return come(comm, GROUP_BROADCAST, root, (struct group_share){.transfer = transfer});
}

static tr_status all_gather(tr_comm *comm, struct tr_transfer *transfer, const int64_t *bound)
{
    return come(comm, GROUP_ALL_GATHER, 0, (struct group_share){.transfer = transfer, .bound = bound});
}

static tr_status reduce_scatter(tr_comm *comm, struct tr_transfer *transfer, const struct tr_sum *sum)
{
    return come(comm, GROUP_REDUCE_SCATTER, 0, (struct group_share){.transfer = transfer, .sum = sum});
}

const struct tr_comm_class group_collective_class = {
    .broadcast = broadcast, .all_gather = all_gather, .reduce_scatter = reduce_scatter};
