/* Synchronous data parallelism by all-reduce: each rank computes the gradients of a contiguous range of
 * microbatches, the ranks add them along the fixed tree (reduce-scatter), each updates its share of the
 * parameters and what the optimizer keeps of them, and the new parameters go to all (all-gather). Ranks of
 * one host share one copy of the parameters and read each other's gradients where they were written.
 *
 * Invariant: between steps all ranks see the same parameters; moments and averages are up to date in a rank's
 * own share only.
 */
#include "strategy/strategy.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <math.h>
#include <string.h>

#define GRAIN 16 /* floats: shares begin on cache lines */

struct tr_strategy {
    tr_device *device;
    const struct tr_job *job;
    tr_comm *comm; /* NULL: alone */
    tr_variables *variables;
    tr_gradient *gradient;
    struct tr_gradient_part part;
    /* With a communicator: */
    tr_window *parameters, *nodes; /* NULL: ranks do not share memory */
    tr_reduction *reduction;
    int64_t *microbatch, *share, *share_bytes; /* [size + 1] bounds */
    float *whole;                              /* the whole gradient, where its norm is wanted; else NULL */
};

/* What ranks tell each other at the end of a step. */
struct notice {
    int32_t poisoned, wish;
};

static int size_of(const tr_strategy *strategy)
{
    return strategy->comm ? tr_comm_size(strategy->comm) : 1;
}

static int rank_of(const tr_strategy *strategy)
{
    return strategy->comm ? tr_comm_rank(strategy->comm) : 0;
}

static bool measures(const struct tr_job *job)
{
    return job->optimizer.clip_norm > 0 || job->train.on_nonfinite == TR_NONFINITE_SKIP;
}

/* ---- making ---- */

static tr_status make_bounds(tr_strategy *strategy)
{
    const struct tr_job *job = strategy->job;
    int size = size_of(strategy);
    int64_t floats = job->model->arena_floats;
    strategy->microbatch = tr_alloc((size_t)size + 1, sizeof *strategy->microbatch);
    strategy->share = tr_alloc((size_t)size + 1, sizeof *strategy->share);
    strategy->share_bytes = tr_alloc((size_t)size + 1, sizeof *strategy->share_bytes);
    if (!strategy->microbatch || !strategy->share || !strategy->share_bytes) return TR_ENOMEM;
    for (int r = 0; r <= size; r++) {
        strategy->microbatch[r] = tr_cut(job->train.microbatches, size, r);
        strategy->share[r] = tr_cut(floats / GRAIN, size, r) * GRAIN;
        strategy->share_bytes[r] = strategy->share[r] * (int64_t)sizeof(float);
    }
    return TR_OK;
}

/* A window, or none where the device or the ranks cannot share memory. */
static tr_status make_window(tr_strategy *strategy, size_t bytes, tr_window **out)
{
    *out = NULL;
    if (!tr_device_host_view(strategy->device, strategy)) return TR_OK;
    tr_status status = tr_window_create(strategy->comm, bytes, out);
    return status == TR_EUNSUPPORTED ? TR_OK : status;
}

static tr_status make_shared(tr_strategy *strategy)
{
    const struct tr_job *job = strategy->job;
    bool holds = tr_comm_local_rank(strategy->comm) == 0;
    size_t bytes = (size_t)job->model->arena_floats * sizeof(float);
    TR_TRY(make_window(strategy, holds ? bytes : 0, &strategy->parameters));
    TR_TRY(make_window(strategy, tr_gradient_slot_bytes(job, &strategy->part), &strategy->nodes));
    TR_TRY(tr_reduction_create(strategy->comm, job->train.microbatches, strategy->microbatch, strategy->nodes,
                               &strategy->reduction));
    if (!measures(job)) return TR_OK;
    strategy->whole = tr_alloc_aligned((size_t)job->model->arena_floats + GRAIN, sizeof(float));
    return strategy->whole ? TR_OK : TR_ENOMEM;
}

static tr_status create_parts(tr_strategy *strategy)
{
    const struct tr_job *job = strategy->job;
    int size = size_of(strategy);
    float *parameters = NULL;
    if (size > job->train.microbatches)
        return tr_fail(TR_EINVAL,
                       "%d ranks share %lld microbatches; start fewer ranks or set train.microbatches higher",
                       size, (long long)job->train.microbatches);
    if (size > TR_STRATEGY_RANKS)
        return tr_fail(TR_EINVAL, "%d ranks; at most %d can share a job", size, TR_STRATEGY_RANKS);
    TR_TRY(make_bounds(strategy));
    strategy->part = (struct tr_gradient_part){
        .first = strategy->microbatch[rank_of(strategy)],
        .end = strategy->microbatch[rank_of(strategy) + 1],
        .end_step = job->train.steps,
    };
    if (strategy->comm) TR_TRY(make_shared(strategy));
    if (strategy->parameters)
        parameters = tr_window_part(strategy->parameters, tr_comm_local(strategy->comm, 0), NULL);
    return tr_variables_create(strategy->device, job->model, &job->optimizer, parameters,
                               &strategy->variables);
}

tr_status tr_strategy_create(tr_device *device, const struct tr_job *job, tr_comm *comm, tr_strategy **out)
{
    tr_strategy *strategy = tr_alloc_zero(1, sizeof *strategy);
    if (!strategy) return TR_ENOMEM;
    *strategy = (tr_strategy){.device = device, .job = job, .comm = comm};
    tr_status status = create_parts(strategy);
    if (status != TR_OK) {
        tr_strategy_destroy(&strategy);
        return status;
    }
    *out = strategy;
    return TR_OK;
}

tr_status tr_strategy_begin(tr_strategy *strategy)
{
    float *slots = strategy->nodes ? tr_window_part(strategy->nodes, rank_of(strategy), NULL) : NULL;
    return tr_gradient_create(strategy->device, strategy->job, strategy->variables, &strategy->part, slots,
                              &strategy->gradient);
}

void tr_strategy_destroy(tr_strategy **handle)
{
    tr_strategy *strategy = *handle;
    if (!strategy) return;
    tr_gradient_destroy(&strategy->gradient);
    tr_variables_destroy(&strategy->variables);
    tr_reduction_destroy(&strategy->reduction);
    tr_window_destroy(&strategy->nodes);
    tr_window_destroy(&strategy->parameters);
    tr_free(strategy->microbatch);
    tr_free(strategy->share);
    tr_free(strategy->share_bytes);
    tr_free(strategy->whole);
    tr_free(strategy);
    *handle = NULL;
}

struct tr_gradient_part tr_strategy_part(const tr_strategy *strategy)
{
    return strategy->part;
}

tr_variables *tr_strategy_variables(const tr_strategy *strategy)
{
    return strategy->variables;
}

tr_gradient *tr_strategy_gradient(const tr_strategy *strategy)
{
    return strategy->gradient;
}

/* ---- a step ---- */

static tr_status wait_for(tr_strategy *strategy, tr_status status, tr_ticket *ticket)
{
    return status == TR_OK ? tr_comm_wait(strategy->comm, &ticket) : status;
}

/* Adds the nodes of all ranks: *gradient receives an arena that is right in this rank's share, or all of it
   where the norm is wanted; the last rank's share ends with the sums of loss and correctness, which go to
   all. */
static tr_status reduce(tr_strategy *strategy, const float **gradient, struct tr_step_figures *figures)
{
    const struct tr_model *model = strategy->job->model;
    float *nodes = tr_gradient_slots(strategy->gradient), sums[TR_PASS_SUMS];
    int64_t stride = tr_gradient_stride(strategy->gradient), floats = model->arena_floats;
    int size = size_of(strategy), rank = rank_of(strategy);
    *gradient = nodes;
    if (!strategy->comm) {
        TR_TRY(tr_device_to_host(strategy->device, sums, nodes + floats, sizeof sums));
        TR_TRY(tr_device_wait(strategy->device));
    } else if (strategy->whole) {
        tr_ticket *ticket = NULL;
        tr_status status = tr_comm_all_reduce(strategy->comm, strategy->reduction, nodes, stride,
                                              floats + TR_PASS_SUMS, strategy->whole, "gradient", &ticket);
        TR_TRY(wait_for(strategy, status, ticket));
        *gradient = strategy->whole;
        memcpy(sums, strategy->whole + floats, sizeof sums);
    } else {
        tr_ticket *ticket = NULL;
        strategy->share[size] = floats + TR_PASS_SUMS;
        tr_status status =
            tr_comm_reduce_scatter(strategy->comm, strategy->reduction, nodes, stride, strategy->share,
                                   nodes + strategy->share[rank], "gradient", &ticket);
        strategy->share[size] = floats;
        TR_TRY(wait_for(strategy, status, ticket));
        if (rank == size - 1) memcpy(sums, nodes + floats, sizeof sums);
        ticket = NULL;
        status = tr_comm_broadcast(strategy->comm, size - 1, sums, sizeof sums, "loss", &ticket);
        TR_TRY(wait_for(strategy, status, ticket));
    }
    figures->loss = sums[0];
    figures->correct = sums[1];
    return TR_OK;
}

/* Updates this rank's share and brings the shares together; *poisoned: one of this rank's became NaN or
 * infinite. */
static tr_status update(tr_strategy *strategy, const float *gradient, bool *poisoned)
{
    int rank = rank_of(strategy);
    TR_TRY(
        tr_variables_update(strategy->variables, gradient, strategy->share[rank], strategy->share[rank + 1]));
    TR_TRY(tr_variables_nonfinite(strategy->variables, poisoned));
    if (!strategy->comm) return TR_OK;
    tr_ticket *ticket = NULL;
    tr_status status =
        tr_comm_all_gather(strategy->comm, tr_variables_arena(strategy->variables, TR_ARENA_PARAMETERS),
                           strategy->share_bytes, strategy->parameters, "parameters", &ticket);
    return wait_for(strategy, status, ticket);
}

static tr_status exchange(tr_strategy *strategy, bool poisoned, int32_t wish, struct tr_step_figures *figures)
{
    struct notice notices[TR_STRATEGY_RANKS] = {{poisoned, wish}};
    int64_t bound[TR_STRATEGY_RANKS + 1];
    int size = size_of(strategy), rank = rank_of(strategy);
    if (strategy->comm) {
        tr_ticket *ticket = NULL;
        for (int r = 0; r <= size; r++) bound[r] = r * (int64_t)sizeof *notices;
        notices[rank] = (struct notice){poisoned, wish};
        tr_status status = tr_comm_all_gather(strategy->comm, notices, bound, NULL, "end of step", &ticket);
        TR_TRY(wait_for(strategy, status, ticket));
    }
    for (int r = 0; r < size; r++) {
        figures->poisoned |= notices[r].poisoned != 0;
        figures->wish |= notices[r].wish;
    }
    return TR_OK;
}

tr_status tr_strategy_step(tr_strategy *strategy, int64_t step, int32_t wish, struct tr_step_figures *figures)
{
    const float *gradient;
    bool poisoned = false;
    *figures = (struct tr_step_figures){.norm = NAN};
    TR_TRY(tr_variables_begin_step(strategy->variables, step));
    TR_TRY(tr_gradient_step(strategy->gradient, step, &figures->examples));
    TR_TRY(reduce(strategy, &gradient, figures));
    bool skips = strategy->job->train.on_nonfinite == TR_NONFINITE_SKIP;
    figures->bad_loss = !isfinite(figures->loss);
    if (measures(strategy->job) && !figures->bad_loss) {
        TR_TRY(tr_variables_measure(strategy->variables, gradient));
        TR_TRY(tr_variables_norm(strategy->variables, &figures->norm));
    }
    figures->skipped = skips && (figures->bad_loss || !isfinite(figures->norm));
    if (!figures->bad_loss && !figures->skipped) TR_TRY(update(strategy, gradient, &poisoned));
    return exchange(strategy, poisoned, wish, figures);
}

/* ---- together ---- */

tr_status tr_strategy_gather(tr_strategy *strategy)
{
    if (!strategy->comm) return TR_OK;
    for (int i = TR_ARENA_M; i < TR_ARENAS; i++) {
        float *arena = tr_variables_arena(strategy->variables, (enum tr_arena)i);
        if (!arena) continue;
        tr_ticket *ticket = NULL;
        tr_status status = tr_comm_all_gather(strategy->comm, arena, strategy->share_bytes, NULL,
                                              tr_arena_names[i], &ticket);
        TR_TRY(wait_for(strategy, status, ticket));
    }
    return TR_OK;
}

tr_status tr_strategy_meet(tr_strategy *strategy)
{
    if (!strategy->comm) return TR_OK;
    tr_ticket *ticket = NULL;
    tr_status status = tr_comm_barrier(strategy->comm, &ticket);
    return wait_for(strategy, status, ticket);
}

tr_status tr_strategy_share(tr_strategy *strategy, void *data, size_t bytes)
{
    if (!strategy->comm) return TR_OK;
    tr_ticket *ticket = NULL;
    tr_status status = tr_comm_broadcast(strategy->comm, 0, data, bytes, "decision", &ticket);
    return wait_for(strategy, status, ticket);
}
