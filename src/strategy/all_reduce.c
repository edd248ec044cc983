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
#include "strategy/all_reduce.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/tree.h"

#include <math.h>
#include <string.h>

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

static tr_status cut_microbatches(struct all_reduce *self)
{
    int size = self->head.size, workers = size - self->head.servers;
    self->microbatch = tr_alloc((size_t)size + 1, sizeof *self->microbatch);
    if (!self->microbatch) return TR_ENOMEM;
    for (int r = 0; r <= size; r++)
        self->microbatch[r] = tr_cut(self->head.job->train.microbatches, workers, r < workers ? r : workers);
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
    TR_TRY(all_reduce_make_factors(self));
    TR_TRY(tr_strategy_keep_moving(&self->head, self->nodes));
    if (!tr_strategy_measures(job)) return TR_OK;
    self->whole = tr_alloc_aligned((size_t)job->model->arena_floats + 1, sizeof(float));
    return self->whole ? TR_OK : TR_ENOMEM;
}

static tr_status create(tr_strategy *strategy)
{
    struct all_reduce *self = self_of(strategy);
    const struct tr_job *job = strategy->job;
    float *parameters = NULL;
    TR_TRY(cut_microbatches(self));
    TR_TRY(all_reduce_choose_factors(self));
    self->part = (struct tr_gradient_part){
        .first = self->microbatch[strategy->rank],
        .end = self->microbatch[strategy->rank + 1],
        .end_step = job->train.steps,
    };
    if (strategy->comm) TR_TRY(make_shared(self));
    TR_TRY(all_reduce_make_buckets(self));
    if (self->parameters)
        parameters = tr_window_part(self->parameters, tr_comm_local(strategy->comm, 0), NULL);
    return tr_variables_create(strategy->holder, job->model, &job->optimizer, parameters,
                               &strategy->variables);
}

static tr_status listen(void *user, int64_t from)
{
    return all_reduce_advance(user, from);
}

static tr_status begin(tr_strategy *strategy)
{
    struct all_reduce *self = self_of(strategy);
    if (self->part.first == self->part.end) {
        self->sum =
            tr_alloc_aligned((size_t)strategy->job->model->arena_floats + TR_PASS_SUMS, sizeof(float));
        return self->sum ? TR_OK : TR_ENOMEM;
    }
    float *slots = self->nodes ? tr_window_part(self->nodes, strategy->rank, NULL) : NULL;
    TR_TRY(tr_gradient_create(strategy->device, strategy->job, strategy->variables, &self->part, slots,
                              &strategy->gradient));
    if (strategy->comm) tr_gradient_listen(strategy->gradient, listen, self);
    all_reduce_take_factors(self);
    return TR_OK;
}

static void destroy(tr_strategy *strategy)
{
    struct all_reduce *self = self_of(strategy);
    tr_reduction_destroy(&self->reduction);
    tr_window_destroy(&self->nodes);
    tr_window_destroy(&self->parameters);
    tr_free(self->microbatch);
    all_reduce_release_buckets(self);
    all_reduce_release_factors(self);
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
        out->updates += self->bucket[i].share[rank + 1] - self->bucket[i].share[rank];
    if (self->buckets != 1) return;
    out->first_update = self->bucket->begin + self->bucket->share[rank];
    out->end_update = out->first_update + out->updates;
}

static size_t memory(const tr_strategy *strategy)
{
    const struct all_reduce *self = (const struct all_reduce *)strategy;
    return tr_strategy_usual_memory(strategy) + all_reduce_factors_memory(self);
}

/* ---- a step ---- */

static tr_status step_alone(struct all_reduce *self, struct tr_step_figures *figures)
{
    tr_strategy *strategy = &self->head;
    int64_t floats = strategy->job->model->arena_floats;
    const float *gradient = tr_gradient_slots(strategy->gradient);
    TR_TRY(tr_device_to_host(strategy->device, self->sums, gradient + floats,
                             TR_PASS_SUMS * sizeof *self->sums));
    TR_TRY(tr_device_wait(strategy->device));
    figures->bad_loss = !isfinite(self->sums[0]);
    TR_TRY(tr_gradient_deliver(strategy->gradient, floats, &gradient));
    TR_TRY(tr_strategy_measure(strategy, gradient, figures));
    if (figures->bad_loss || figures->skipped) return TR_OK;
    return tr_variables_update(strategy->variables, gradient, 0, floats);
}

static tr_status step_together(struct all_reduce *self, struct tr_step_figures *figures)
{
    tr_strategy *strategy = &self->head;
    strategy->done.compute_seconds -= self->seconds;
    TR_TRY(all_reduce_finish(self));
    figures->bad_loss = self->spoilt;
    if (!tr_strategy_measures(strategy->job)) return TR_OK;
    TR_TRY(tr_strategy_measure(strategy, self->gradient, figures));
    return figures->bad_loss || figures->skipped ? TR_OK : all_reduce_apply(self);
}

static tr_status step(tr_strategy *strategy, int64_t step, int32_t wish, struct tr_step_figures *figures)
{
    struct all_reduce *self = self_of(strategy);
    bool poisoned;
    TR_TRY(tr_variables_begin_step(strategy->variables, step));
    if (strategy->comm) all_reduce_begin(self);
    TR_TRY(tr_strategy_compute(strategy, step, &figures->examples));
    TR_TRY(strategy->comm ? step_together(self, figures) : step_alone(self, figures));
    figures->loss = self->sums[0];
    figures->correct = self->sums[1];
    TR_TRY(tr_variables_nonfinite(strategy->variables, &poisoned));
    return tr_strategy_exchange(strategy, poisoned, wish, figures);
}

static tr_status gather_arena(tr_strategy *strategy, enum tr_arena which)
{
    float *arena = tr_variables_arena(strategy->variables, which);
    if (!strategy->comm || !arena) return TR_OK;
    return all_reduce_gather(self_of(strategy), arena, NULL, tr_arena_names[which]);
}

static tr_status gather(tr_strategy *strategy)
{
    for (int i = TR_ARENA_M; i < TR_ARENAS; i++) TR_TRY(gather_arena(strategy, (enum tr_arena)i));
    return TR_OK;
}

static tr_status gather_averages(tr_strategy *strategy)
{
    return gather_arena(strategy, TR_ARENA_EMA);
}

static const struct tr_choice factors[] = {
    {"auto", FACTORS_AUTO, "of layers where that moves fewer numbers"},
    {"never", FACTORS_NEVER, NULL},
    {"always", FACTORS_ALWAYS, "of all dense layers whose rows are examples"},
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
     .help = "MiB of gradients that are added at a time, while backward goes on; 0: all in the end. Does not "
             "change results"},
    {.key = "factors",
     .type = TR_OPTION_CHOICE,
     .offset = AT(factors),
     .fallback = "auto",
     .choices = factors,
     .help = "whether processes of one host show each other the rows that gradients of dense weights are "
             "made of, "
             "and form their shares of them from the rows of all, rather than add gradients. Does not change "
             "results"},
};

const struct tr_strategy_class tr_strategy_all_reduce = {
    .name = "allreduce",
    .help = "synchronous data parallelism: every rank computes some microbatches of each step, the gradients "
            "are added along the fixed tree, and each rank updates its share of the parameters",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .options_size = sizeof(struct all_reduce_options),
    .size = sizeof(struct all_reduce),
    .check = check,
    .create = create,
    .destroy = destroy,
    .begin = begin,
    .placement = placement,
    .step = step,
    .gather = gather,
    .gather_averages = gather_averages,
    .memory = memory,
};
