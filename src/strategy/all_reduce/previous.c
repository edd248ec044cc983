/* State that outlives the ranks that update it, so that the survivors can continue after a rank died.
 *
 * Parameters, moments and averages of all ranks are in memory that the host's processes share, which stays
 * when one of them dies. But a rank may die in the middle of an update, when others have completed theirs.
 * So before a rank updates a range, it copies it to a second set of arenas, and then records the range for
 * the step. A rank that finds the undo record of a step can restore the state before its updates.
 *
 * Invariant: a rank changes only ranges in its undo record of the step, and these are copied completely.
 * No rank begins to update in a step before all ranks have ended the updates of the last one, since
 * updates wait for the loss of all; so at any time at most one step may have incomplete updates.
 */
#include "strategy/all_reduce/all_reduce.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <stdatomic.h>
#include <string.h>

struct range {
    atomic_llong begin, end; /* floats of the arenas */
};

/* The ranges that a rank has updated in a step, or is about to update. */
struct undo {
    _Alignas(TR_CACHE_LINE) atomic_llong step; /* counted from 1; 0: none yet */
    atomic_llong count;                        /* ranges */
    struct range range[];                      /* [buckets + 1]: an update may continue within a bucket */
};

static int64_t arenas_of(const struct all_reduce *self)
{
    return tr_variables_arenas(&self->head.job->optimizer);
}

static int64_t floats_of(const struct all_reduce *self)
{
    return self->head.job->model->arena_floats;
}

static size_t undo_bytes(const struct all_reduce *self)
{
    size_t bytes = sizeof(struct undo) + ((size_t)self->buckets + 1) * sizeof(struct range);
    return (bytes + TR_CACHE_LINE - 1) / TR_CACHE_LINE * TR_CACHE_LINE;
}

static size_t arena_bytes(const struct all_reduce *self)
{
    size_t bytes = (size_t)(arenas_of(self) * floats_of(self)) * sizeof(float);
    return (bytes + TR_CACHE_LINE - 1) / TR_CACHE_LINE * TR_CACHE_LINE;
}

static void *memory_of(const struct all_reduce *self, tr_window *window)
{
    return tr_window_segment(window, tr_comm_local(self->head.comm, 0), NULL);
}

static struct undo *undo_of(const struct all_reduce *self, int rank)
{
    char *notes = (char *)memory_of(self, self->previous) + arena_bytes(self);
    return (struct undo *)(void *)(notes + (size_t)rank * undo_bytes(self));
}

tr_status all_reduce_make_previous(struct all_reduce *self)
{
    tr_strategy *strategy = &self->head;
    size_t bytes = arena_bytes(self) + (size_t)strategy->size * undo_bytes(self);
    TR_TRY(tr_strategy_window(strategy->comm, tr_comm_local_rank(strategy->comm) == 0 ? bytes : 0,
                              &self->previous));
    if (!self->previous)
        return tr_fail(TR_EUNSUPPORTED, "the processes of this host cannot share %zu bytes more", bytes);
    strategy->memory += arena_bytes(self) / (size_t)strategy->size;
    return TR_OK;
}

/* Copies a range of all arenas. */
static void copy(const struct all_reduce *self, const float *from, float *to, int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < arenas_of(self); i++) {
        int64_t at = i * floats_of(self) + begin;
        memcpy(to + at, from + at, (size_t)(end - begin) * sizeof *to);
    }
}

/* Before an update of this rank's. */
static tr_status keep(void *user, const float *gradient, int64_t begin, int64_t end)
{
    struct all_reduce *self = user;
    struct undo *undo = undo_of(self, self->head.rank);
    long long step = self->step + 1, count = atomic_load(&undo->count);
    (void)gradient;
    if (begin == end) return TR_OK;
    if (atomic_load(&undo->step) != step) {
        count = 0;
        atomic_store(&undo->count, 0);
        atomic_store(&undo->step, step);
    }
    copy(self, memory_of(self, self->parameters), memory_of(self, self->previous), begin, end);
    struct range *last = count > 0 ? &undo->range[count - 1] : NULL;
    if (last && atomic_load(&last->end) == begin) {
        atomic_store(&last->end, end);
        return TR_OK;
    }
    if (count > self->buckets)
        return tr_fail(TR_EMISMATCH, "a step has more updates than buckets (%d)", self->buckets);
    atomic_store(&undo->range[count].begin, begin);
    atomic_store(&undo->range[count].end, end);
    atomic_store(&undo->count, count + 1);
    return TR_OK;
}

void all_reduce_keep_previous(struct all_reduce *self)
{
    tr_strategy_observe(&self->head, TR_OBSERVER_KEEPER,
                        (struct tr_strategy_observer){.update = keep, .user = self});
}

/* Restores all that a rank updated in a step. */
static tr_status put_back(struct all_reduce *self, int rank, int64_t step)
{
    struct undo *undo = undo_of(self, rank);
    long long count = atomic_load(&undo->count);
    if (atomic_load(&undo->step) != step + 1) return TR_OK;
    if (count < 0 || count > self->buckets + 1)
        return tr_fail(TR_EMISMATCH, "rank %d has recorded %lld updates of %d buckets", rank, count,
                       self->buckets);
    for (long long i = 0; i < count; i++) {
        int64_t begin = atomic_load(&undo->range[i].begin), end = atomic_load(&undo->range[i].end);
        if (begin < 0 || begin > end || end > floats_of(self))
            return tr_fail(TR_EMISMATCH, "rank %d has recorded an update of what is not there", rank);
        copy(self, memory_of(self, self->previous), memory_of(self, self->parameters), begin, end);
    }
    return TR_OK;
}

static tr_status rewind_to(struct all_reduce *self, int64_t step)
{
    for (int rank = 0; rank < self->head.size; rank++) TR_TRY(put_back(self, rank, step));
    return TR_OK;
}

tr_status all_reduce_inherit(tr_strategy *strategy, tr_strategy *from, int64_t step)
{
    struct all_reduce *self = (struct all_reduce *)strategy;
    struct all_reduce *other = (struct all_reduce *)from;
    if (floats_of(self) != floats_of(other) || (!other->previous && !other->copies))
        return tr_fail(TR_EMISMATCH, "a strategy whose state died with a rank has none to hand on");
    if (other->copies) return all_reduce_inherit_copies(self, other, step);
    /* One rank does it for all, in the shared memory. */
    if (strategy->rank != 0) return TR_OK;
    TR_TRY(rewind_to(other, step));
    copy(self, memory_of(other, other->parameters), memory_of(self, self->parameters), 0, floats_of(self));
    return TR_OK;
}
