/* Which rank has which layers, microbatches and parameters. */
#include "strategy/pipeline/pipeline.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "nn/cut.h"
#include "strategy/pipeline/measure.h"

/* Cuts where the stages become equally slow, in the chief's opinion. */
static tr_status measured_cuts(struct pipeline *self)
{
    const struct tr_model *model = self->head.job->model;
    size_t most = (size_t)model->layer_count + 1;
    int *bound = tr_alloc(most, sizeof *bound), *first = tr_alloc(most, sizeof *first);
    double *cost = tr_alloc(most, sizeof *cost);
    tr_status status = bound && first && cost ? TR_OK : TR_ENOMEM;
    if (status != TR_OK) goto out;
    bound[0] = 0;
    int ranges = tr_model_cuts(model, bound + 1) + 1;
    bound[ranges] = model->layer_count;
    TR_TRY_GOTO(pipeline_measure(&self->head, self->replicas, bound, ranges, cost), out);
    TR_TRY_GOTO(pipeline_balance(cost, ranges, self->stages, first), out);
    for (int s = 0; s <= self->stages; s++) self->layer[s] = bound[first[s]];
out:
    tr_free(bound);
    tr_free(first);
    tr_free(cost);
    return status;
}

static tr_status choose_layers(struct pipeline *self)
{
    tr_strategy *strategy = &self->head;
    const struct pipeline_options *options = strategy->options;
    const struct tr_model *model = strategy->job->model;
    self->layer[0] = 0;
    self->layer[self->stages] = model->layer_count;
    if (self->stages == 1) return TR_OK;
    if (options->cut.count > 0) {
        pipeline_named_cuts(model, options, self->layer);
        return TR_OK;
    }
    if (tr_strategy_is_chief(strategy->comm)) TR_TRY(measured_cuts(self));
    return tr_strategy_share(strategy, self->layer, ((size_t)self->stages + 1) * sizeof *self->layer);
}

static void choose_shares(struct pipeline *self)
{
    const struct tr_model *model = self->head.job->model;
    for (int rank = 0; rank <= self->head.size; rank++) {
        int64_t begin = model->arena_floats, end = begin;
        int stage = pipeline_stage_of(self, rank), replica = pipeline_replica_of(self, rank);
        if (rank < self->head.size)
            tr_pass_arena(model, self->layer[stage], self->layer[stage + 1], &begin, &end);
        self->share[rank] =
            begin + tr_cut((end - begin) / PIPELINE_GRAIN, self->replicas, replica) * PIPELINE_GRAIN;
        self->share_bytes[rank] = self->share[rank] * (int64_t)sizeof(float);
    }
    int first = self->place.stage * self->replicas; /* rank of the stage's first replica */
    for (int r = 0; r <= self->replicas; r++) {
        self->part[r] = self->share[first + r] - self->share[first];
        self->part_bytes[r] = self->part[r] * (int64_t)sizeof(float);
    }
}

static void choose_place(struct pipeline *self)
{
    int rank = self->head.rank, stage = pipeline_stage_of(self, rank),
        replica = pipeline_replica_of(self, rank);
    self->place = (struct stage_place){
        .stage = stage,
        .stages = self->stages,
        .first_layer = self->layer[stage],
        .end_layer = self->layer[stage + 1],
        .first = self->microbatch[replica],
        .end = self->microbatch[replica + 1],
        .previous = rank - self->replicas,
        .next = rank + self->replicas,
    };
}

tr_status pipeline_divide(struct pipeline *self)
{
    TR_TRY(choose_layers(self));
    choose_place(self);
    choose_shares(self);
    return TR_OK;
}
