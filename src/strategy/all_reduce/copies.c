/* Copies of state on other ranks, so that the survivors can continue after a rank died, where ranks do not
 * share memory.
 *
 * Each rank has only its shard of moments and averages. After every step, before any rank learns that the
 * step is done, each rank sends this shard to its neighbour (a rank of another host if there is one), and
 * keeps a copy of the parameters, which all ranks have. When a rank has died, its neighbour's copy
 * replaces its shard.
 *
 * Invariant: ranks are at most a step apart, so there are two sets of copies, one for even numbers of
 * steps and one for odd ones. A rank learns that a step is done only from ranks whose copies of it are
 * whole; the other set is overwritten only after that.
 */
#include "strategy/all_reduce/all_reduce.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

#define TAG_COPY 1

/* The state after `step` steps; -1: incomplete. */
struct copy_set {
    int64_t step;
    float *parameters; /* [floats of an arena] */
    float *own;        /* of each state arena, this rank's shard, packed */
    float **kept;      /* [wards] likewise */
};

struct all_reduce_copies {
    int neighbour; /* that keeps this rank's shard; -1: there is no other rank */
    int wards, *ward;
    tr_ticket **coming; /* [wards] */
    tr_ticket *going;
    struct copy_set set[2];
};

static int64_t floats_of(const struct all_reduce *self)
{
    return self->head.job->model->arena_floats;
}

/* Arenas besides the parameters. */
static int64_t arenas_of(const struct all_reduce *self)
{
    return tr_variables_arenas(&self->head.job->optimizer) - 1;
}

/* Floats of a rank's shard, in all these arenas. */
static int64_t shard_of(const struct all_reduce *self, int rank)
{
    int64_t floats = 0;
    for (int i = 0; i < self->buckets; i++)
        floats += self->bucket[i].shard[rank + 1] - self->bucket[i].shard[rank];
    return floats * arenas_of(self);
}

/* The next rank of another host, or else the next one. */
static int neighbour_of(const tr_comm *comm, int rank)
{
    int size = tr_comm_size(comm);
    for (int d = 1; d < size; d++)
        if (tr_comm_host_of(comm, (rank + d) % size) != tr_comm_host_of(comm, rank)) return (rank + d) % size;
    return size > 1 ? (rank + 1) % size : -1;
}

/* ---- making ---- */

static tr_status make_set(struct all_reduce *self, struct copy_set *set)
{
    const struct all_reduce_copies *copies = self->copies;
    size_t bytes = (size_t)(floats_of(self) + shard_of(self, self->head.rank)) * sizeof(float);
    set->step = -1;
    set->parameters = tr_alloc_aligned((size_t)floats_of(self), sizeof(float));
    set->own = tr_alloc_aligned((size_t)shard_of(self, self->head.rank) + 1, sizeof(float));
    set->kept = tr_alloc_zero((size_t)copies->wards + 1, sizeof *set->kept);
    if (!set->parameters || !set->own || !set->kept) return TR_ENOMEM;
    for (int i = 0; i < copies->wards; i++) {
        int64_t floats = shard_of(self, copies->ward[i]);
        set->kept[i] = tr_alloc_aligned((size_t)floats + 1, sizeof(float));
        if (!set->kept[i]) return TR_ENOMEM;
        bytes += (size_t)floats * sizeof(float);
    }
    self->head.memory += bytes;
    return TR_OK;
}

tr_status all_reduce_make_copies(struct all_reduce *self)
{
    const tr_comm *comm = self->head.comm;
    if (self->head.settings.replicas_of_state < 1)
        return tr_fail(TR_EUNSUPPORTED,
                       "processes that share no memory go on without one that died only where another has a "
                       "copy of its moments; set replicas_of_state to 1, or let the job restart from its "
                       "checkpoints");
    struct all_reduce_copies *copies = self->copies = tr_alloc_zero(1, sizeof *copies);
    if (!copies) return TR_ENOMEM;
    copies->neighbour = neighbour_of(comm, self->head.rank);
    copies->ward = tr_alloc((size_t)self->head.size, sizeof *copies->ward);
    copies->coming = tr_alloc_zero((size_t)self->head.size, sizeof *copies->coming);
    if (!copies->ward || !copies->coming) return TR_ENOMEM;
    for (int r = 0; r < self->head.size; r++)
        if (neighbour_of(comm, r) == self->head.rank) copies->ward[copies->wards++] = r;
    TR_TRY(make_set(self, &copies->set[0]));
    return make_set(self, &copies->set[1]);
}

void all_reduce_release_copies(struct all_reduce *self)
{
    struct all_reduce_copies *copies = self->copies;
    if (!copies) return;
    for (int i = 0; i < 2; i++) {
        struct copy_set *set = &copies->set[i];
        for (int k = 0; set->kept && k < copies->wards; k++) tr_free(set->kept[k]);
        tr_free(set->kept);
        tr_free(set->own);
        tr_free(set->parameters);
    }
    tr_free(copies->coming);
    tr_free(copies->ward);
    tr_free(copies);
    self->copies = NULL;
}

/* ---- taking ---- */

/* Copies a rank's shard of an arena to or from a packed one, and returns where that ends. */
static float *move_shard(const struct all_reduce *self, int rank, float *arena, float *packed, bool packs)
{
    for (int i = 0; i < self->buckets; i++) {
        const int64_t *shard = self->bucket[i].shard + rank;
        size_t bytes = (size_t)(shard[1] - shard[0]) * sizeof *packed;
        float *at = arena + self->bucket[i].begin + shard[0];
        if (bytes > 0) memcpy(packs ? packed : at, packs ? at : packed, bytes);
        packed += shard[1] - shard[0];
    }
    return packed;
}

static tr_status pack_own(struct all_reduce *self, float *to)
{
    tr_strategy *strategy = &self->head;
    for (int i = 0; i < TR_ARENAS; i++) {
        const struct tr_staging *arena;
        if (i == TR_ARENA_PARAMETERS) continue;
        TR_TRY(tr_variables_open(strategy->replicas->variables, (enum tr_arena)i, &arena));
        if (!arena) continue;
        for (int k = 0; k < strategy->update_count; k++)
            TR_TRY(tr_staging_to_host(arena, strategy->updates[k].begin, strategy->updates[k].end));
        TR_TRY(tr_device_wait(strategy->holder));
        to = move_shard(self, strategy->rank, arena->host, to, true);
    }
    return TR_OK;
}

static tr_status exchange(struct all_reduce *self, struct copy_set *set)
{
    struct all_reduce_copies *copies = self->copies;
    tr_comm *comm = self->head.comm;
    for (int i = 0; i < copies->wards; i++) {
        size_t bytes = (size_t)shard_of(self, copies->ward[i]) * sizeof(float);
        TR_TRY(tr_comm_receive(comm, copies->ward[i], TAG_COPY, set->kept[i], bytes, "copy of state",
                               &copies->coming[i]));
    }
    size_t bytes = (size_t)shard_of(self, self->head.rank) * sizeof(float);
    TR_TRY(tr_comm_send_numbers(comm, copies->neighbour, TAG_COPY, set->own, bytes, "copy of state",
                                &copies->going));
    for (int i = 0; i < copies->wards; i++) TR_TRY(tr_comm_wait(comm, &copies->coming[i]));
    return tr_comm_wait(comm, &copies->going);
}

tr_status all_reduce_take_copies(tr_strategy *strategy, int64_t step)
{
    struct all_reduce *self = (struct all_reduce *)strategy;
    if (!self->copies || self->copies->neighbour < 0) return TR_OK;
    struct copy_set *set = &self->copies->set[step & 1];
    set->step = -1;
    TR_TRY(tr_staging_to_host(self->values, 0, floats_of(self)));
    TR_TRY(tr_device_wait(strategy->holder));
    memcpy(set->parameters, self->values->host, (size_t)floats_of(self) * sizeof(float));
    TR_TRY(pack_own(self, set->own));
    TR_TRY(exchange(self, set));
    set->step = step;
    return TR_OK;
}

/* ---- handing on ---- */

/* The rank of `comm` with this number in the job; -1: it died. */
static int find(const tr_comm *comm, int number)
{
    for (int r = 0; r < tr_comm_size(comm); r++)
        if (tr_comm_number(comm, r) == number) return r;
    return -1;
}

/* What a rank of the old communicator has of the shard of `rank`. */
static float *share_in(const struct all_reduce *other, const struct copy_set *set, int rank)
{
    const struct all_reduce_copies *copies = other->copies;
    if (rank == other->head.rank) return set->own;
    for (int i = 0; i < copies->wards; i++)
        if (copies->ward[i] == rank) return set->kept[i];
    return NULL;
}

/* Sends a shard of the old state to all, into `shard`. *arriving: it failed on the way, and more may
   arrive there. */
static tr_status bring(struct all_reduce *self, const struct all_reduce *other, const struct copy_set *set,
                       int rank, float *shard, bool *arriving)
{
    const tr_comm *before = other->head.comm;
    int neighbour = neighbour_of(before, rank), from = find(self->head.comm, tr_comm_number(before, rank));
    size_t bytes = (size_t)shard_of(other, rank) * sizeof *shard;
    tr_ticket *ticket = NULL;
    if (from < 0) from = find(self->head.comm, tr_comm_number(before, neighbour));
    if (from < 0)
        return tr_fail(TR_EPEER,
                       "rank %d and rank %d, which had the copy of its moments, both died; restart the job "
                       "from its last checkpoint",
                       tr_comm_number(before, rank), tr_comm_number(before, neighbour));
    if (from == self->head.rank) memcpy(shard, share_in(other, set, rank), bytes);
    tr_status status = tr_comm_broadcast(self->head.comm, from, shard, bytes, "copy of state", &ticket);
    status = tr_strategy_wait(&self->head, status, ticket);
    *arriving = status != TR_OK;
    return status;
}

/* All ranks must take the copies of the same ranks: another may have died while some had finished. */
static tr_status check_same(const struct all_reduce *self, const struct all_reduce *other,
                            const struct copy_set *set, int64_t step)
{
    tr_comm *comm = self->head.comm;
    int64_t sizes[TR_STRATEGY_RANKS];
    sizes[self->head.rank] = set->step == step ? other->head.size : -1;
    TR_TRY(tr_comm_exchange(comm, sizes, sizeof *sizes, "copies of state"));
    for (int r = 0; r < self->head.size; r++)
        if (sizes[r] < 0 || sizes[r] != sizes[0])
            return tr_fail(TR_EPEER,
                           "rank %d has no copy of the state after step %lld that fits those of the others; "
                           "restart the job from its last checkpoint",
                           tr_comm_number(comm, r), (long long)step);
    return TR_OK;
}

/* `arenas`: the state arenas whole, one after the other. */
static tr_status bring_all(struct all_reduce *self, const struct all_reduce *other,
                           const struct copy_set *set, float *arenas, float *shard, bool *arriving)
{
    for (int r = 0; r < other->head.size; r++) {
        float *packed = shard;
        TR_TRY(bring(self, other, set, r, shard, arriving));
        for (int64_t i = 0; i < arenas_of(other); i++)
            packed = move_shard(other, r, arenas + i * floats_of(other), packed, false);
    }
    return TR_OK;
}

static tr_status load(struct all_reduce *self, const struct copy_set *set, const float *arenas)
{
    tr_variables *variables = self->head.replicas->variables;
    if (tr_variables_fills(variables))
        TR_TRY(tr_variables_load(variables, TR_ARENA_PARAMETERS, set->parameters));
    for (int i = 0; i < TR_ARENAS; i++) {
        if (i == TR_ARENA_PARAMETERS || !tr_variables_arena(variables, (enum tr_arena)i)) continue;
        TR_TRY(tr_variables_load(variables, (enum tr_arena)i, arenas));
        arenas += floats_of(self);
    }
    return TR_OK;
}

tr_status all_reduce_inherit_copies(struct all_reduce *self, const struct all_reduce *other, int64_t step)
{
    const struct copy_set *set = &other->copies->set[step & 1];
    int64_t most = 0;
    bool arriving = false;
    TR_TRY(check_same(self, other, set, step));
    for (int r = 0; r < other->head.size; r++)
        if (shard_of(other, r) > most) most = shard_of(other, r);
    float *arenas = tr_alloc_zero((size_t)(arenas_of(other) * floats_of(other)) + 1, sizeof *arenas),
          *shard = tr_alloc_aligned((size_t)most + 1, sizeof *shard);
    tr_status status = arenas && shard ? bring_all(self, other, set, arenas, shard, &arriving) : TR_ENOMEM;
    if (status == TR_OK) status = load(self, set, arenas);
    tr_free(arenas);
    if (!arriving) tr_free(shard);
    return status;
}
