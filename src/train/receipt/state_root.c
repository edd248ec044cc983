/* How ranks divide the hashing. Where every rank has all of the gathered state, each hashes equally many
 * leaves, and they exchange the digests, 1/2048 of the state. Where ranks keep parts, pieces of at most
 * TR_STRATEGY_PIECE floats come to the root, as for a checkpoint: no rank ever has the whole state.
 */
#include "train/receipt/state_root.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/threads/team.h"
#include "receipt/canonical.h"
#include "receipt/merkle.h"
#include "train/loop/tensors.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

/* Least bytes for another thread. */
#define THREAD_BYTES ((int64_t)1 << 20)

/* ---- by threads ---- */

/* A function for some items, on any thread. */
struct work {
    tr_status (*make)(const struct work *work, tr_sha256 *hash, int64_t item);
    const void *user;
    int64_t first, end;
    atomic_int status;
};

/* Another thread's message would be lost, so only the status is kept. */
static void do_share(void *work_, int member, int size)
{
    struct work *work = work_;
    int64_t begin, end;
    tr_sha256 *hash = NULL;
    tr_team_chunk(work->end - work->first, 1, member, size, &begin, &end);
    tr_status status = begin < end ? tr_sha256_begin(&hash) : TR_OK;
    for (int64_t i = begin; status == TR_OK && i < end; i++) status = work->make(work, hash, work->first + i);
    tr_sha256_destroy(&hash);
    if (status != TR_OK) work->status = (int)status;
}

/* `bytes`: the total to hash, to choose the number of threads. */
static tr_status do_all(const tr_trainer *trainer, struct work *work, int64_t bytes)
{
    int64_t size = trainer->variables.device->threads, most = bytes / THREAD_BYTES + 1;
    tr_team *team = NULL;
    if (size > most) size = most;
    if (size > work->end - work->first) size = work->end - work->first;
    if (size > 1) TR_TRY(tr_team_create((int)size, &team));
    work->status = TR_OK;
    if (team)
        tr_team_run(team, do_share, work);
    else
        do_share(work, 0, 1);
    tr_team_destroy(&team);
    tr_status status = (tr_status)work->status;
    return status == TR_OK ? TR_OK : tr_fail(status, "hashing for the receipt failed");
}

/* ---- leaves ---- */

struct leaves {
    const struct tr_canonical *canonical;
    const struct trainer_tensors *tensors;
    struct tr_sha256_sum *sum; /* [canonical->leaves] */
};

static tr_status hash_leaf(const struct work *work, tr_sha256 *hash, int64_t item)
{
    const struct leaves *leaves = work->user;
    const struct tr_canonical_leaf leaf = tr_canonical_leaf_at(leaves->canonical, item);
    const char *bytes = leaves->canonical->head;
    if (leaf.tensor) bytes = leaves->tensors->tensor[leaf.tensor->group][leaf.tensor->index].data;
    return tr_merkle_leaf(hash, bytes + leaf.at, leaf.bytes, &leaves->sum[item]);
}

/* All leaves, where every rank has the whole state. */
static tr_status share_leaves(tr_trainer *trainer, const struct leaves *leaves)
{
    tr_comm *comm = trainer->crew.comm;
    int rank = trainer_crew_rank(&trainer->crew), size = trainer_crew_size(&trainer->crew);
    int64_t count = leaves->canonical->leaves, *bound = tr_alloc((size_t)size + 1, sizeof *bound);
    if (!bound) return TR_ENOMEM;
    for (int r = 0; r < size; r++) tr_team_chunk(count, 1, r, size, &bound[r], &bound[r + 1]);
    struct work work = {.make = hash_leaf, .user = leaves, .first = bound[rank], .end = bound[rank + 1]};
    tr_status status = do_all(trainer, &work, (work.end - work.first) * TR_LEAF_BYTES);
    for (int r = 0; r <= size; r++) bound[r] *= (int64_t)sizeof *leaves->sum;
    if (status == TR_OK && comm)
        status = tr_comm_exchange_parts(comm, leaves->sum, bound, "leaves of the state");
    tr_free(bound);
    return status;
}

/* ---- where no rank has all: piece by piece ---- */

/* The leaves of a tensor, on the root. */
static tr_status bring_leaves(tr_trainer *trainer, const struct leaves *leaves,
                              const struct tr_canonical_tensor *tensor, tr_sha256 *hash)
{
    static_assert(TR_STRATEGY_PIECE * sizeof(float) % TR_LEAF_BYTES == 0, "a leaf lies in one piece");
    const struct trainer_origin *origin = &leaves->tensors->origin[tensor->group][tensor->index];
    int64_t item = tensor->first_leaf;
    for (int64_t at = origin->begin, next; at < origin->end; at = next) {
        const float *values;
        next = origin->end - at < TR_STRATEGY_PIECE ? origin->end : at + TR_STRATEGY_PIECE;
        TR_TRY(tr_strategy_collect(trainer->variables.strategy, origin->arena, at, next, &values));
        const char *bytes = (const char *)values, *end = (const char *)(values + (next - at));
        for (; trainer_is_root(trainer) && bytes < end; item++) {
            size_t size = end - bytes < TR_LEAF_BYTES ? (size_t)(end - bytes) : TR_LEAF_BYTES;
            TR_TRY(tr_merkle_leaf(hash, bytes, size, &leaves->sum[item]));
            bytes += size;
        }
    }
    return TR_OK;
}

static tr_status bring_all(tr_trainer *trainer, struct leaves *leaves, tr_sha256 *hash)
{
    struct work head = {.make = hash_leaf, .user = leaves, .end = leaves->canonical->head_leaves};
    if (trainer_is_root(trainer)) TR_TRY(do_all(trainer, &head, 0));
    for (int64_t i = 0; i < leaves->canonical->count; i++)
        TR_TRY(bring_leaves(trainer, leaves, &leaves->canonical->tensor[i], hash));
    return TR_OK;
}

/* ---- the root ---- */

static tr_status hash_state(tr_trainer *trainer, const struct trainer_tensors *tensors,
                            const struct tr_canonical *canonical, struct tr_sha256_sum *root)
{
    struct leaves leaves = {canonical, tensors, NULL};
    bool pieces = tr_strategy_saves_pieces(trainer->variables.strategy);
    tr_sha256 *hash = NULL;
    leaves.sum = tr_alloc((size_t)canonical->leaves, sizeof *leaves.sum);
    tr_status status = leaves.sum ? tr_sha256_begin(&hash) : TR_ENOMEM;
    if (status == TR_OK) status = pieces ? bring_all(trainer, &leaves, hash) : share_leaves(trainer, &leaves);
    if (status == TR_OK && (!pieces || trainer_is_root(trainer)))
        status = tr_merkle_root(leaves.sum, canonical->leaves, root);
    if (status == TR_OK && pieces)
        status = tr_strategy_broadcast(trainer->variables.strategy, root, sizeof *root);
    tr_sha256_destroy(&hash);
    tr_free(leaves.sum);
    return status;
}

/* The state and how it is cut. Release both also after a failure. */
static tr_status list_state(tr_trainer *trainer, struct trainer_tensors *tensors,
                            struct tr_canonical *canonical)
{
    struct trainer_facts facts;
    struct tr_checkpoint_content content;
    if (!tr_strategy_is_spread(trainer->variables.strategy))
        TR_TRY(trainer_variables_gather(&trainer->variables));
    TR_TRY(trainer_tensors_list(trainer, NULL, tensors));
    trainer_tensors_describe(trainer, tensors, &facts, &content);
    return tr_canonical_make(&content, trainer->job->input.state, canonical);
}

tr_status trainer_state_root(tr_trainer *trainer, struct tr_sha256_sum *root)
{
    struct trainer_tensors tensors = {0};
    struct tr_canonical canonical = {0};
    tr_status status = list_state(trainer, &tensors, &canonical);
    if (status == TR_OK) status = hash_state(trainer, &tensors, &canonical, root);
    tr_canonical_release(&canonical);
    trainer_tensors_release(&tensors);
    return status;
}

static tr_status tell_leaf(tr_trainer *trainer, const struct trainer_tensors *tensors,
                           const struct tr_canonical *canonical, int64_t number,
                           trainer_leaf_listener listener, void *user)
{
    const struct tr_canonical_leaf at = tr_canonical_leaf_at(canonical, number);
    struct trainer_leaf leaf = {.bytes = canonical->head + at.at, .size = at.bytes};
    if (at.tensor) {
        const struct trainer_origin *origin = &tensors->origin[at.tensor->group][at.tensor->index];
        const char *data = tensors->tensor[at.tensor->group][at.tensor->index].data;
        const float *arena = origin->arena < TR_ARENAS
                                 ? tr_variables_arena(trainer->variables.arenas, (enum tr_arena)origin->arena)
                                 : NULL;
        if (!data || !arena)
            return tr_fail(TR_EUNSUPPORTED, "the state of tensor \"%s\" is kept by the strategy alone",
                           at.tensor->name);
        leaf.name = at.tensor->name;
        leaf.bytes = data + at.at;
        leaf.device = arena + origin->begin + at.at / sizeof *arena;
    }
    return listener(user, &leaf);
}

tr_status trainer_state_tell(tr_trainer *trainer, trainer_leaf_listener listener, void *user)
{
    struct trainer_tensors tensors = {0};
    struct tr_canonical canonical = {0};
    tr_status status = list_state(trainer, &tensors, &canonical);
    for (int64_t i = 0; status == TR_OK && i < canonical.leaves; i++)
        status = tell_leaf(trainer, &tensors, &canonical, i, listener, user);
    tr_canonical_release(&canonical);
    trainer_tensors_release(&tensors);
    return status;
}
