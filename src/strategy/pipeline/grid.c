/* Which rank has which layers, microbatches and parameters. */
#include "strategy/pipeline/pipeline.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "nn/cut.h"
#include "strategy/pipeline/measure.h"

#include <math.h>

/* Microbatches of a replica, at the most. */
static int64_t most_microbatches(const struct pipeline *self)
{
    return (self->head.job->train.microbatches + self->replicas - 1) / self->replicas;
}

/* Comparing divisions of the work. */
struct comparison {
    struct pipeline *self;
    bool named;                 /* the layers are given */
    int ranges;                 /* between places where the network may be cut, or stages if named */
    int *bound;                 /* [ranges + 1] layers */
    int *first;                 /* [stages + 1] ranges: the division for the present size of units */
    struct pipeline_cost *cost; /* [ranges] */
    double *whole;              /* [ranges] seconds in a step */
    double best;                /* seconds of a step of the best division so far */
};

/* The slowest stage sets the pace; the first unit must pass the other stages before it, and the last unit
   those after it. */
static double step_seconds(const struct comparison *c)
{
    double most = 0, flow_of_most = 0, flows = 0;
    for (int s = 0; s < c->self->stages; s++) {
        double whole = 0, flow = 0;
        for (int k = c->first[s]; k < c->first[s + 1]; k++) {
            whole += c->whole[k];
            flow += c->cost[k].flow;
        }
        flows += flow;
        if (whole <= most) continue;
        most = whole;
        flow_of_most = flow;
    }
    return most + flows - flow_of_most;
}

/* Divides for units of a size, and keeps the division if it is the best so far. */
static tr_status try_units(struct comparison *c, int64_t per_unit)
{
    struct pipeline *self = c->self;
    double units = (double)((most_microbatches(self) + per_unit - 1) / per_unit);
    TR_TRY(pipeline_measure(&self->head, per_unit, c->bound, c->ranges, c->cost));
    for (int k = 0; k < c->ranges; k++)
        c->whole[k] =
            units * c->cost[k].flow + (units - 1) * c->cost[k].add + c->cost[k].update / self->replicas;
    for (int s = 0; s <= self->stages; s++) c->first[s] = s;
    if (!c->named) TR_TRY(pipeline_balance(c->whole, c->ranges, self->stages, c->first));
    double seconds = step_seconds(c);
    if (seconds >= c->best) return TR_OK;
    c->best = seconds;
    self->per_unit = per_unit;
    for (int s = 0; s <= self->stages; s++) self->layer[s] = c->bound[c->first[s]];
    return TR_OK;
}

/* Small units give a smaller bubble; large ones compute faster and have fewer gradients to add. A size in
   the options is used as it is. */
static tr_status try_sizes(struct comparison *c)
{
    const struct pipeline *self = c->self;
    int64_t most = most_microbatches(self), pass = self->head.job->train.pass;
    if (pass > 0) return try_units(c, pass < most ? pass : most);
    for (int64_t size = 1; size == 1 || (most + size - 1) / size >= self->stages; size *= 2)
        TR_TRY(try_units(c, size));
    return TR_OK;
}

/* The division with the shortest step, by the root's measurements. */
static tr_status compare(struct pipeline *self, bool named)
{
    const struct tr_model *model = self->head.job->model;
    size_t most = (size_t)model->layer_count + 1;
    struct comparison c = {
        .self = self,
        .named = named,
        .bound = tr_alloc(most, sizeof *c.bound),
        .first = tr_alloc(most, sizeof *c.first),
        .cost = tr_alloc(most, sizeof *c.cost),
        .whole = tr_alloc(most, sizeof *c.whole),
        .best = INFINITY,
    };
    tr_status status = c.bound && c.first && c.cost && c.whole ? TR_OK : TR_ENOMEM;
    if (status != TR_OK) goto out;
    c.bound[0] = 0;
    c.ranges = named ? self->stages : tr_model_cuts(model, c.bound + 1) + 1;
    for (int s = 1; named && s < self->stages; s++) c.bound[s] = self->layer[s];
    c.bound[c.ranges] = model->layer_count;
    status = try_sizes(&c);
out:
    tr_free(c.bound);
    tr_free(c.first);
    tr_free(c.cost);
    tr_free(c.whole);
    return status;
}

/* Decides on layers and units; the root measures where the options leave something open. */
static tr_status choose_layers(struct pipeline *self)
{
    tr_strategy *strategy = &self->head;
    const struct pipeline_options *options = strategy->options;
    const struct tr_model *model = strategy->job->model;
    int64_t pass = strategy->job->train.pass, most = most_microbatches(self);
    bool named = options->cut.count > 0;
    self->layer[0] = 0;
    self->layer[self->stages] = model->layer_count;
    self->per_unit = pass > 0 && pass < most ? pass : most;
    if (self->stages == 1) return TR_OK; /* no rank waits for the end of a unit */
    if (named) pipeline_named_cuts(model, options, self->layer);
    if (named && (pass > 0 || most == 1)) return TR_OK;
    if (tr_strategy_is_root(strategy->comm)) TR_TRY(compare(self, named));
    TR_TRY(tr_strategy_broadcast(strategy, &self->per_unit, sizeof self->per_unit));
    return tr_strategy_broadcast(strategy, self->layer, ((size_t)self->stages + 1) * sizeof *self->layer);
}

static void choose_shards(struct pipeline *self)
{
    const struct tr_model *model = self->head.job->model;
    for (int rank = 0; rank <= self->head.size; rank++) {
        int64_t begin = model->arena_floats, end = begin;
        int stage = pipeline_stage_of(self, rank), replica = pipeline_replica_of(self, rank);
        if (rank < self->head.size)
            tr_pass_arena(model, self->layer[stage], self->layer[stage + 1], &begin, &end);
        self->shard[rank] = tr_variables_cut(
            model, &self->head.job->optimizer,
            begin + tr_cut((end - begin) / PIPELINE_GRAIN, self->replicas, replica) * PIPELINE_GRAIN);
        self->shard_bytes[rank] = self->shard[rank] * (int64_t)sizeof(float);
    }
    int first = self->cell.stage * self->replicas; /* rank of the stage's first replica */
    for (int r = 0; r <= self->replicas; r++) {
        self->part[r] = self->shard[first + r] - self->shard[first];
        self->part_bytes[r] = self->part[r] * (int64_t)sizeof(float);
    }
}

static void choose_cell(struct pipeline *self)
{
    int rank = self->head.rank, stage = pipeline_stage_of(self, rank),
        replica = pipeline_replica_of(self, rank);
    self->cell = (struct stage_cell){
        .stage = stage,
        .stages = self->stages,
        .first_layer = self->layer[stage],
        .end_layer = self->layer[stage + 1],
        .first = self->microbatch[replica],
        .end = self->microbatch[replica + 1],
        .per_unit = self->per_unit,
        .previous = rank - self->replicas,
        .next = rank + self->replicas,
        .layer = self->layer,
        .rank = rank,
        .replicas = self->replicas,
    };
}

tr_status pipeline_divide(struct pipeline *self)
{
    TR_TRY(choose_layers(self));
    choose_cell(self);
    choose_shards(self);
    return TR_OK;
}
