/* Local SGD (Stich 2019): a fixed number of replicas of the network, each with parameters and moments of its
 * own, trains on its part of every global batch (replicas.h); every so many steps the replicas are averaged,
 * parameters, moments and moving averages (average.c).
 *
 * That is all, unless there is an outer step. Then, with the parameters w of the last round,
 *
 *     d = w - mean;  u = momentum * u + d;  w = w - rate * (nesterov ? momentum * u + d : u)
 *
 * computed as struct tr_op_update says. Running statistics are only averaged.
 *
 * Ranks do not meet within a round. Invariant: between rounds all replicas are equal, so that any of them is
 * the state of the run, whatever strategy goes on with it.
 */
#include "base/fail.h"
#include "strategy/replicas/replicas.h"

struct local_sgd_options {
    int32_t replicas, every;
    float momentum, rate;
    bool nesterov;
};

struct local_sgd {
    struct tr_strategy head;
    struct tr_average average;
    /* The outer step, where it is more than the average: */
    float *previous;                 /* device [stride]: parameters of the last round, right in the share */
    struct tr_step_scalars *scalars; /* device */
};

static struct local_sgd *self_of(tr_strategy *strategy)
{
    return (struct local_sgd *)strategy;
}

static const struct local_sgd_options *options_of(const tr_strategy *strategy)
{
    return strategy->options;
}

/* ---- making ---- */

static void traits(const void *options_, struct tr_strategy_traits *out)
{
    const struct local_sgd_options *options = options_;
    out->every = options->every;
}

static tr_status check(const struct tr_job *job, const void *options_, int ranks)
{
    const struct local_sgd_options *options = options_;
    return tr_replicas_check(job, options->replicas, ranks);
}

static bool has_outer_step(const tr_strategy *strategy)
{
    return options_of(strategy)->momentum > 0 || options_of(strategy)->rate != 1;
}

static tr_status make_outer(struct local_sgd *self)
{
    tr_strategy *strategy = &self->head;
    const struct local_sgd_options *options = options_of(strategy);
    size_t bytes = (size_t)self->average.stride * sizeof(float);
    struct tr_step_scalars scalars = {.rate = options->rate, .clip_scale = 1};
    if (!has_outer_step(strategy)) return TR_OK;
    if (options->momentum > 0) TR_TRY(tr_variables_keep_outer(strategy->replicas->variables));
    TR_TRY(tr_device_alloc(strategy->holder, bytes + sizeof(float), (void **)&self->previous));
    strategy->memory += bytes;
    TR_TRY(tr_device_alloc(strategy->holder, sizeof scalars, (void **)&self->scalars));
    TR_TRY(tr_device_to_device(strategy->holder, self->scalars, &scalars, sizeof scalars));
    return tr_device_wait(strategy->holder);
}

static tr_status create(tr_strategy *strategy)
{
    struct local_sgd *self = self_of(strategy);
    TR_TRY(tr_replicas_create(strategy, options_of(strategy)->replicas));
    TR_TRY(tr_average_create(strategy, &self->average));
    return make_outer(self);
}

static void destroy(tr_strategy *strategy)
{
    struct local_sgd *self = self_of(strategy);
    tr_average_destroy(&self->average);
    tr_device_free(strategy->holder, self->previous);
    tr_device_free(strategy->holder, self->scalars);
}

static tr_status meet(tr_strategy *strategy, int64_t step)
{
    struct local_sgd *self = self_of(strategy);
    (void)step;
    if (!self->previous) return TR_OK;
    TR_TRY(tr_replicas_move(strategy, strategy->job->model->arena_floats,
                            tr_variables_arena(strategy->replicas->variables, TR_ARENA_PARAMETERS),
                            self->previous));
    return tr_device_wait(strategy->holder);
}

/* ---- the end of a round ---- */

/* The outer step of the floats [begin, end) of a parameter, whose sums are in slot 0. */
static tr_status step_outer(struct local_sgd *self, int64_t begin, int64_t end)
{
    const struct local_sgd_options *options = options_of(&self->head);
    struct tr_average *average = &self->average;
    tr_device *device = self->head.holder;
    float *momentum = tr_variables_arena(self->head.replicas->variables, TR_ARENA_OUTER);
    float *difference = average->nodes.data + begin, *previous = self->previous + begin;
    struct tr_op_scale negate = {end - begin, -1.0F / (float)options->replicas, difference, difference};
    TR_TRY(tr_device_scale(device, &negate));
    struct tr_op_add subtract = {end - begin, previous, difference, difference};
    TR_TRY(tr_device_add(device, &subtract));
    struct tr_op_update update = {
        .count = end - begin,
        .rule = momentum ? TR_RULE_MOMENTUM : TR_RULE_SGD,
        .nesterov = options->nesterov,
        .rate_factor = 1,
        .beta1 = options->momentum,
        .grad = difference,
        .w = previous,
        .m = momentum ? momentum + begin : NULL,
        .scalars = self->scalars,
    };
    TR_TRY(tr_device_update(device, &update));
    return tr_replicas_move(&self->head, end - begin, previous, average->mean.data + begin);
}

/* Of all parameters in this rank's share. */
static tr_status step_share(struct local_sgd *self)
{
    const struct tr_model *model = self->head.job->model;
    int64_t begin = self->average.share[self->head.rank], end = self->average.share[self->head.rank + 1];
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        int64_t from = parameter->offset, to = from + parameter->count;
        if (from < begin) from = begin;
        if (to > end) to = end;
        if (from >= to || parameter->kind == TR_PARAMETER_STATISTIC) continue;
        TR_TRY(step_outer(self, from, to));
    }
    return TR_OK;
}

static tr_status average(tr_strategy *strategy, int64_t step, bool all)
{
    struct local_sgd *self = self_of(strategy);
    enum tr_arena arena = TR_ARENAS;
    (void)step, (void)all;
    while (tr_average_next(strategy, arena, &arena)) {
        TR_TRY(tr_average_sum(strategy, &self->average, arena));
        TR_TRY(tr_average_mean(strategy, &self->average));
        if (arena == TR_ARENA_PARAMETERS && self->previous) TR_TRY(step_share(self));
        TR_TRY(tr_average_give(strategy, &self->average, arena));
    }
    return TR_OK;
}

/* All replicas are equal, but a rank has the outer momentum of its share alone. */
static tr_status gather(tr_strategy *strategy, unsigned arenas)
{
    const struct tr_staging *momentum;
    if (!(arenas & 1U << TR_ARENA_OUTER)) return TR_OK;
    TR_TRY(tr_variables_open(strategy->replicas->variables, TR_ARENA_OUTER, &momentum));
    return tr_strategy_join(strategy->comm, momentum, 0, self_of(strategy)->average.share_bytes, NULL,
                            tr_arena_names[TR_ARENA_OUTER]);
}

#define AT(field) offsetof(struct local_sgd_options, field)
static const struct tr_option options[] = {
    TR_REPLICAS_OPTION(struct local_sgd_options),
    {.key = "every",
     .type = TR_OPTION_INT32,
     .offset = AT(every),
     .fallback = "8",
     .least = 1,
     .most = 1000000,
     .help = "steps after which the replicas are averaged; a run can be reported, evaluated, saved and "
             "stopped only there"},
    {.key = "momentum",
     .type = TR_OPTION_FLOAT,
     .offset = AT(momentum),
     .fallback = "0",
     .least = 0,
     .most = 1,
     .flags = TR_OPTION_BELOW_MOST,
     .help = "of the outer step, which follows the change that an average would make"},
    {.key = "rate",
     .type = TR_OPTION_FLOAT,
     .offset = AT(rate),
     .fallback = "1",
     .least = 0,
     .most = 100,
     .flags = TR_OPTION_ABOVE_LEAST,
     .help = "of the outer step; with 1 and no momentum it is the average itself"},
    {.key = "nesterov",
     .type = TR_OPTION_BOOL,
     .offset = AT(nesterov),
     .fallback = "false",
     .help = "Nesterov's form of the outer momentum"},
};
#undef AT

static const char *const variants[] = {"replicas={workers}", "replicas={workers},momentum=0.5", NULL};

static const struct tr_strategy_division division = {.gather = gather};

const struct tr_strategy_class tr_strategy_local_sgd = {
    .version = TR_STRATEGY_CLASS_VERSION,
    .name = "local-sgd",
    .help = "replicas of the network train apart, each on its part of every batch, and are averaged every so "
            "many steps",
    .options = options,
    .option_count = TR_OPTION_COUNT(options),
    .options_size = sizeof(struct local_sgd_options),
    .size = sizeof(struct local_sgd),
    .variants = variants,
    .own_hash = true,
    .traits = traits,
    .check = check,
    .create = create,
    .begin = tr_replicas_begin,
    .meet = meet,
    .destroy = destroy,
    .average = average,
    .division = &division,
};
