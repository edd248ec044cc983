/* Synchronous data parallelism by all-reduce: each rank computes the gradients of a contiguous range of
 * microbatches, the ranks add them along the fixed tree (reduce-scatter), each updates its shard of the
 * parameters and of the optimizer's state, and the new parameters go to all (all-gather). Ranks of one
 * host share one copy of the parameters and read each other's gradients in place.
 *
 * With servers (struct tr_strategy), only these update: they have all shards, and the other ranks all
 * microbatches.
 *
 * Invariant: between steps all ranks see the same parameters; moments and averages are up to date only in
 * a rank's own shard.
 */
#include "strategy/all_reduce/all_reduce.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/numbers/tree.h"

static struct all_reduce *self_of(tr_strategy *strategy)
{
    return (struct all_reduce *)strategy;
}

/* ---- making ---- */

static tr_status check(const struct tr_job *job, const void *options, int ranks)
{
    (void)options;
    return tr_shares_suffice(job->train.microbatches, ranks, "ranks");
}

/* The part that this rank computes. */
static void take_part(struct all_reduce *self)
{
    tr_strategy *strategy = &self->head;
    self->microbatch = strategy->shares.bound;
    self->part = (struct tr_gradient_part){
        .first = self->microbatch[strategy->rank],
        .end = self->microbatch[strategy->rank + 1],
        .end_step = strategy->job->train.steps,
    };
}

/* What ranks share for sums. */
static tr_status make_sums(struct all_reduce *self)
{
    const struct tr_job *job = self->head.job;
    tr_comm *comm = self->head.comm;
    TR_TRY(tr_strategy_window(comm, tr_gradient_slot_bytes(job, &self->part), &self->nodes));
    TR_TRY(
        tr_reduction_create(comm, job->train.microbatches, self->microbatch, self->nodes, &self->reduction));
    return all_reduce_make_factors(self);
}

static tr_status make_shared(struct all_reduce *self)
{
    const struct tr_job *job = self->head.job;
    tr_comm *comm = self->head.comm;
    bool holds = tr_comm_local_rank(comm) == 0;
    size_t bytes = (size_t)job->model->arena_floats * sizeof(float);
    size_t kept = all_reduce_outlives(self) && tr_comm_hosts(comm) == 1
                      ? (size_t)tr_variables_arenas(&job->optimizer)
                      : 1;
    TR_TRY(tr_strategy_window(comm, holds ? kept * bytes : 0, &self->parameters));
    TR_TRY(make_sums(self));
    TR_TRY(tr_strategy_use_progress_thread(&self->head, self->nodes));
    if (!tr_strategy_measures(job)) return TR_OK;
    self->head.memory += bytes;
    self->whole = tr_alloc_aligned((size_t)job->model->arena_floats + 1, sizeof(float));
    return self->whole ? TR_OK : TR_ENOMEM;
}

tr_status all_reduce_create(tr_strategy *strategy)
{
    struct all_reduce *self = self_of(strategy);
    const struct tr_job *job = strategy->job;
    float *parameters = NULL;
    take_part(self);
    TR_TRY(all_reduce_choose_factors(self));
    TR_TRY(all_reduce_choose_pieces(self));
    if (strategy->comm) TR_TRY(make_shared(self));
    TR_TRY(all_reduce_make_buckets(self));
    strategy->updates = self->updates;
    strategy->update_count = self->buckets;
    if (self->parameters)
        parameters = tr_window_segment(self->parameters, tr_comm_local(strategy->comm, 0), NULL);
    bool outlives = all_reduce_outlives(self),
         shared = outlives && tr_comm_hosts(strategy->comm) == 1 && parameters && self->nodes;
    if (outlives && !shared) TR_TRY(all_reduce_make_copies(self));
    if (shared) {
        TR_TRY(all_reduce_make_previous(self));
        TR_TRY(tr_variables_create_shared(strategy->holder, job->model, &job->optimizer, parameters,
                                          &strategy->replicas->variables));
    } else {
        TR_TRY(tr_variables_create(strategy->holder, job->model, &job->optimizer, parameters,
                                   &strategy->replicas->variables));
    }
    if (!strategy->comm) return TR_OK;
    TR_TRY(tr_variables_open(strategy->replicas->variables, TR_ARENA_PARAMETERS, &self->values));
    if (parameters)
        tr_variables_let_fill(strategy->replicas->variables, tr_comm_local_rank(strategy->comm) == 0);
    return TR_OK;
}

/* Where the sums for this rank's updates are collected. */
static tr_status make_gradient(struct all_reduce *self)
{
    tr_strategy *strategy = &self->head;
    float *host = self->whole ? self->whole : self->sum ? self->sum : self->slots->host;
    TR_TRY(tr_staging_make(strategy->holder, strategy->job->model->arena_floats, host, &self->gradient));
    strategy->memory += tr_staging_memory(&self->gradient);
    return TR_OK;
}

static tr_status listen(void *user, int64_t from)
{
    return all_reduce_advance(user, from);
}

tr_status all_reduce_start(tr_strategy *strategy)
{
    struct all_reduce *self = self_of(strategy);
    if (self->sum) return make_gradient(self);
    if (self->part.first == self->part.end) {
        size_t floats = (size_t)strategy->job->model->arena_floats + TR_PASS_SUMS;
        self->sum = tr_alloc_aligned(floats, sizeof(float));
        strategy->memory += floats * sizeof(float);
        return self->sum ? make_gradient(self) : TR_ENOMEM;
    }
    float *slots = self->nodes ? tr_window_segment(self->nodes, strategy->rank, NULL) : NULL;
    TR_TRY(tr_gradient_create(strategy->device, strategy->job, strategy->replicas->variables, &self->part,
                              slots, &strategy->replicas->gradient));
    all_reduce_take_pieces(self);
    if (!strategy->comm) return TR_OK;
    tr_gradient_listen(strategy->replicas->gradient, listen, self);
    all_reduce_take_factors(self);
    TR_TRY(tr_gradient_open(strategy->replicas->gradient, &self->slots));
    if (self->previous) all_reduce_keep_previous(self);
    return make_gradient(self);
}

/* Everything that depends on which rank computes which microbatches, except the gradient. */
static void unmake_sums(struct all_reduce *self)
{
    self->head.memory -= tr_staging_memory(&self->gradient);
    tr_staging_release(&self->gradient);
    self->slots = NULL;
    all_reduce_unmake_factors(self);
    tr_reduction_destroy(&self->reduction);
    tr_window_destroy(&self->nodes);
}

/* Resources of a step are made anew, except variables and buckets, since updates stay where they are. No
   rank reads nodes any more, as the last step has ended on all ranks. */
tr_status all_reduce_rebalance(tr_strategy *strategy)
{
    struct all_reduce *self = self_of(strategy);
    tr_gradient_destroy(&strategy->replicas->gradient);
    unmake_sums(self);
    take_part(self);
    TR_TRY(make_sums(self));
    return all_reduce_start(strategy);
}

void all_reduce_destroy(tr_strategy *strategy)
{
    struct all_reduce *self = self_of(strategy);
    unmake_sums(self);
    all_reduce_release_copies(self);
    tr_window_destroy(&self->previous);
    tr_window_destroy(&self->parameters);
    all_reduce_release_buckets(self);
    all_reduce_release_factors(self);
    all_reduce_release_pieces(self);
    tr_free(self->whole);
    tr_free(self->sum);
}

static void placement(const tr_strategy *strategy, int rank, struct tr_placement *out)
{
    const struct all_reduce *self = (const struct all_reduce *)strategy;
    *out = (struct tr_placement){
        .role = rank < strategy->size - strategy->servers ? "worker" : "server",
        .first_microbatch = self->microbatch[rank],
        .end_microbatch = self->microbatch[rank + 1],
        .end_layer = strategy->job->model->layer_count,
        .first_update = -1,
        .end_update = -1,
    };
    for (int i = 0; i < self->buckets; i++)
        out->updates += self->bucket[i].shard[rank + 1] - self->bucket[i].shard[rank];
    if (self->buckets != 1) return;
    out->first_update = self->bucket->begin + self->bucket->shard[rank];
    out->end_update = out->first_update + out->updates;
}

/* ---- a step ---- */

tr_status all_reduce_gradient(tr_strategy *strategy, int64_t step, struct tr_combined *out)
{
    struct all_reduce *self = self_of(strategy);
    if (self->pieces.apart) return all_reduce_compute_in_pieces(self, step, out);
    if (!strategy->comm) return tr_driver_compute_alone(strategy, step, out);
    double start = tr_clock_seconds();
    all_reduce_begin(self);
    self->step = step;
    TR_TRY(tr_driver_enqueue(strategy, step, &out->examples));
    TR_TRY(all_reduce_follow(self));
    if (strategy->replicas->gradient) {
        tr_driver_count(strategy, step, start);
        strategy->done.compute_seconds -= self->seconds;
    }
    TR_TRY(all_reduce_finish(self));
    out->gradient = self->gradient.data;
    out->applied = !self->whole;
    return TR_OK;
}

static tr_status gather(tr_strategy *strategy, unsigned arenas)
{
    struct all_reduce *self = self_of(strategy);
    for (int i = 0; i < TR_ARENAS; i++) {
        const struct tr_staging *arena;
        if (!(arenas & 1U << i)) continue;
        TR_TRY(tr_variables_open(strategy->replicas->variables, (enum tr_arena)i, &arena));
        bool shared = i == TR_ARENA_PARAMETERS || self->previous;
        TR_TRY(all_reduce_join(self, arena, shared ? self->parameters : NULL, tr_arena_names[i]));
    }
    return TR_OK;
}

static tr_status create(tr_strategy *strategy)
{
    const struct all_reduce_options *options = strategy->options;
    self_of(strategy)->options = *options;
    return all_reduce_create(strategy);
}

static const struct tr_choice factors[] = {
    {"auto", FACTORS_AUTO, "for layers where that moves fewer numbers"},
    {"never", FACTORS_NEVER, NULL},
    {"always", FACTORS_ALWAYS, "for all dense layers whose rows are examples"},
    {0},
};

#define AT(field) offsetof(struct all_reduce_options, field)
static const struct tr_option options[] = {
    {.key = "bucket",
     .type = TR_OPTION_DOUBLE,
     .offset = AT(bucket),
     .fallback = "1",
     .least = 0,
     .most = 65536,
     .help = "MiB of gradients that are added at a time, while backward goes on; 0: all at the end. Does not "
             "change results"},
    {.key = "factors",
     .type = TR_OPTION_CHOICE,
     .offset = AT(factors),
     .fallback = "auto",
     .choices = factors,
     .help = "whether processes exchange the factors of the gradients of dense weights (inputs and output "
             "gradients) instead of these gradients. Does not change results"},
};

const struct tr_strategy_division all_reduce_division = {.placement = placement, .gather = gather};
static const struct tr_strategy_succession succession = {.complete = all_reduce_take_copies,
                                                         .inherit = all_reduce_inherit};

const struct tr_strategy_class tr_strategy_all_reduce = {
    .version = TR_STRATEGY_CLASS_VERSION,
    .name = "allreduce",
    .help = "synchronous data parallelism: every rank computes some microbatches of each step, gradients are "
            "added along the fixed tree, and each rank updates its shard of the parameters",
    .options = options,
    .option_count = TR_OPTION_COUNT(options),
    .options_size = sizeof(struct all_reduce_options),
    .size = sizeof(struct all_reduce),
    .check = check,
    .create = create,
    .begin = all_reduce_start,
    .destroy = all_reduce_destroy,
    .gradient = all_reduce_gradient,
    .rebalance = all_reduce_rebalance,
    .connect = all_reduce_take_copies,
    .division = &all_reduce_division,
    .succession = &succession,
    .spares = all_reduce_spares,
};
