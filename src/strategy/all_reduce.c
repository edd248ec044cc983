/* Synchronous data parallelism by all-reduce: each rank computes the gradients of a contiguous range of
 * microbatches, the ranks add them along the fixed tree (reduce-scatter), each updates its share of the
 * parameters and what the optimizer keeps of them, and the new parameters go to all (all-gather). Ranks of
 * one host share one copy of the parameters and read each other's gradients where they were written.
 *
 * With servers (struct tr_strategy), they alone update: all shares are theirs, all microbatches the others'.
 *
 * Invariant: between steps all ranks see the same parameters; moments and averages are up to date in a rank's
 * own share only.
 */
#include "strategy/class.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <math.h>
#include <string.h>

#define GRAIN 16 /* floats: shares begin on cache lines */

struct all_reduce {
    struct tr_strategy head;
    struct tr_gradient_part part;
    /* With a communicator: */
    tr_window *parameters, *nodes; /* NULL: ranks do not share memory */
    tr_reduction *reduction;
    int64_t *microbatch, *share, *share_bytes; /* [size + 1] bounds */
    float *whole;                              /* the whole gradient, where its norm is wanted; else NULL */
    float *sum;                                /* a server's share of the gradient; else NULL */
};

static struct all_reduce *self_of(tr_strategy *strategy)
{
    return (struct all_reduce *)strategy;
}

/* ---- making ---- */

static tr_status check(const struct tr_job *job, const void *options, int ranks)
{
    (void)options;
    if (ranks <= job->train.microbatches) return TR_OK;
    return tr_fail(TR_EINVAL,
                   "%d ranks share %lld microbatches; start fewer ranks or set train.microbatches higher",
                   ranks, (long long)job->train.microbatches);
}

static tr_status make_bounds(struct all_reduce *self)
{
    const struct tr_job *job = self->head.job;
    int size = self->head.size;
    int64_t floats = job->model->arena_floats;
    self->microbatch = tr_alloc((size_t)size + 1, sizeof *self->microbatch);
    self->share = tr_alloc((size_t)size + 1, sizeof *self->share);
    self->share_bytes = tr_alloc((size_t)size + 1, sizeof *self->share_bytes);
    if (!self->microbatch || !self->share || !self->share_bytes) return TR_ENOMEM;
    int servers = self->head.servers, workers = size - servers, holders = servers ? servers : size;
    for (int r = 0; r <= size; r++) {
        int holder = r - (size - holders); /* holders are the last ranks */
        self->microbatch[r] = tr_cut(job->train.microbatches, workers, r < workers ? r : workers);
        self->share[r] = tr_cut(floats / GRAIN, holders, holder > 0 ? holder : 0) * GRAIN;
        self->share_bytes[r] = self->share[r] * (int64_t)sizeof(float);
    }
    return TR_OK;
}

static tr_status make_shared(struct all_reduce *self)
{
    const struct tr_job *job = self->head.job;
    tr_comm *comm = self->head.comm;
    bool holds = tr_comm_local_rank(comm) == 0;
    size_t bytes = (size_t)job->model->arena_floats * sizeof(float);
    TR_TRY(tr_strategy_window(&self->head, holds ? bytes : 0, &self->parameters));
    TR_TRY(tr_strategy_window(&self->head, tr_gradient_slot_bytes(job, &self->part), &self->nodes));
    TR_TRY(
        tr_reduction_create(comm, job->train.microbatches, self->microbatch, self->nodes, &self->reduction));
    if (!tr_strategy_measures(job)) return TR_OK;
    self->whole = tr_alloc_aligned((size_t)job->model->arena_floats + GRAIN, sizeof(float));
    return self->whole ? TR_OK : TR_ENOMEM;
}

static tr_status create(tr_strategy *strategy)
{
    struct all_reduce *self = self_of(strategy);
    const struct tr_job *job = strategy->job;
    float *parameters = NULL;
    TR_TRY(make_bounds(self));
    self->part = (struct tr_gradient_part){
        .first = self->microbatch[strategy->rank],
        .end = self->microbatch[strategy->rank + 1],
        .end_step = job->train.steps,
    };
    if (strategy->comm) TR_TRY(make_shared(self));
    if (self->parameters)
        parameters = tr_window_part(self->parameters, tr_comm_local(strategy->comm, 0), NULL);
    return tr_variables_create(strategy->device, job->model, &job->optimizer, parameters,
                               &strategy->variables);
}

static tr_status begin(tr_strategy *strategy)
{
    struct all_reduce *self = self_of(strategy);
    if (self->part.first == self->part.end) {
        self->sum = tr_alloc_aligned((size_t)strategy->job->model->arena_floats + GRAIN, sizeof(float));
        return self->sum ? TR_OK : TR_ENOMEM;
    }
    float *slots = self->nodes ? tr_window_part(self->nodes, strategy->rank, NULL) : NULL;
    return tr_gradient_create(strategy->device, strategy->job, strategy->variables, &self->part, slots,
                              &strategy->gradient);
}

static void destroy(tr_strategy *strategy)
{
    struct all_reduce *self = self_of(strategy);
    tr_reduction_destroy(&self->reduction);
    tr_window_destroy(&self->nodes);
    tr_window_destroy(&self->parameters);
    tr_free(self->microbatch);
    tr_free(self->share);
    tr_free(self->share_bytes);
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
        .first_update = self->share[rank],
        .end_update = self->share[rank + 1],
        .updates = self->share[rank + 1] - self->share[rank],
    };
}

/* ---- a step ---- */

/* Adds the nodes of all ranks: *gradient receives an arena that is right in this rank's share, or all of it
   where the norm is wanted; the last rank's share ends with the sums of loss and correctness, which go to
   all. */
static tr_status reduce(struct all_reduce *self, const float **gradient, struct tr_step_figures *figures)
{
    tr_strategy *strategy = &self->head;
    const struct tr_model *model = strategy->job->model;
    float *nodes = self->sum ? self->sum : tr_gradient_slots(strategy->gradient), sums[TR_PASS_SUMS];
    int64_t stride = self->sum ? 0 : tr_gradient_stride(strategy->gradient), floats = model->arena_floats;
    int size = strategy->size, rank = strategy->rank;
    *gradient = nodes;
    if (!strategy->comm) {
        TR_TRY(tr_device_to_host(strategy->device, sums, nodes + floats, sizeof sums));
        TR_TRY(tr_device_wait(strategy->device));
    } else if (self->whole) {
        tr_ticket *ticket = NULL;
        tr_status status = tr_comm_all_reduce(strategy->comm, self->reduction, nodes, stride,
                                              floats + TR_PASS_SUMS, self->whole, "gradient", &ticket);
        TR_TRY(tr_strategy_wait(strategy, status, ticket));
        *gradient = self->whole;
        memcpy(sums, self->whole + floats, sizeof sums);
    } else {
        tr_ticket *ticket = NULL;
        self->share[size] = floats + TR_PASS_SUMS;
        tr_status status = tr_comm_reduce_scatter(strategy->comm, self->reduction, nodes, stride, self->share,
                                                  nodes + self->share[rank], "gradient", &ticket);
        self->share[size] = floats;
        TR_TRY(tr_strategy_wait(strategy, status, ticket));
        if (rank == size - 1) memcpy(sums, nodes + floats, sizeof sums);
        ticket = NULL;
        status = tr_comm_broadcast(strategy->comm, size - 1, sums, sizeof sums, "loss", &ticket);
        TR_TRY(tr_strategy_wait(strategy, status, ticket));
    }
    figures->loss = sums[0];
    figures->correct = sums[1];
    return TR_OK;
}

/* Updates this rank's share and brings the shares together; *poisoned: one of this rank's became NaN or
 * infinite. */
static tr_status update(struct all_reduce *self, const float *gradient, bool *poisoned)
{
    tr_strategy *strategy = &self->head;
    int rank = strategy->rank;
    TR_TRY(tr_variables_update(strategy->variables, gradient, self->share[rank], self->share[rank + 1]));
    TR_TRY(tr_variables_nonfinite(strategy->variables, poisoned));
    if (!strategy->comm) return TR_OK;
    tr_ticket *ticket = NULL;
    tr_status status =
        tr_comm_all_gather(strategy->comm, tr_variables_arena(strategy->variables, TR_ARENA_PARAMETERS),
                           self->share_bytes, self->parameters, "parameters", &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

static tr_status step(tr_strategy *strategy, int64_t step, int32_t wish, struct tr_step_figures *figures)
{
    struct all_reduce *self = self_of(strategy);
    const float *gradient;
    bool poisoned = false, skips = strategy->job->train.on_nonfinite == TR_NONFINITE_SKIP;
    TR_TRY(tr_variables_begin_step(strategy->variables, step));
    TR_TRY(tr_strategy_compute(strategy, step, &figures->examples));
    TR_TRY(reduce(self, &gradient, figures));
    figures->bad_loss = !isfinite(figures->loss);
    if (tr_strategy_measures(strategy->job) && !figures->bad_loss) {
        TR_TRY(tr_variables_measure(strategy->variables, gradient));
        TR_TRY(tr_variables_norm(strategy->variables, &figures->norm));
    }
    figures->skipped = skips && (figures->bad_loss || !isfinite(figures->norm));
    if (!figures->bad_loss && !figures->skipped) TR_TRY(update(self, gradient, &poisoned));
    return tr_strategy_exchange(strategy, poisoned, wish, figures);
}

static tr_status gather(tr_strategy *strategy)
{
    const struct all_reduce *self = self_of(strategy);
    if (!strategy->comm) return TR_OK;
    for (int i = TR_ARENA_M; i < TR_ARENAS; i++) {
        float *arena = tr_variables_arena(strategy->variables, (enum tr_arena)i);
        if (!arena) continue;
        tr_ticket *ticket = NULL;
        tr_status status =
            tr_comm_all_gather(strategy->comm, arena, self->share_bytes, NULL, tr_arena_names[i], &ticket);
        TR_TRY(tr_strategy_wait(strategy, status, ticket));
    }
    return TR_OK;
}

static const struct tr_option options[] = {{0}};

const struct tr_strategy_class tr_strategy_all_reduce = {
    .name = "allreduce",
    .help = "synchronous data parallelism: every rank computes some microbatches of each step, the gradients "
            "are added along the fixed tree, and each rank updates its share of the parameters",
    .options = options,
    .option_count = 0,
    .size = sizeof(struct all_reduce),
    .check = check,
    .create = create,
    .destroy = destroy,
    .begin = begin,
    .placement = placement,
    .step = step,
    .gather = gather,
};
