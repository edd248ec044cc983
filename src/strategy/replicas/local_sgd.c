/* Local SGD (Stich 2019): a fixed number of replicas of the network, each with its own parameters and
 * moments, train on their parts of every global batch (replicas.h); every so many steps the replicas are
 * averaged, parameters, moments and moving averages (average.c).
 *
 * Optionally there is an outer step. With the parameters w of the last round,
 *
 *     d = w - mean;  u = momentum * u + d;  w = w - rate * (nesterov ? momentum * u + d : u)
 *
 * computed as struct tr_op_update says. Running statistics are only averaged.
 *
 * Ranks do not meet within a round. Invariant: between rounds all replicas are equal, so that any of them
 * is the state of the run, for any strategy that continues it.
 */
#include "base/fail.h"
#include "strategy/replicas/replicas.h"

#define OUTER "outer" /* the arena of the outer momentum */

struct local_sgd_options {
    struct tr_replicas_options head;
    int32_t every;
    float momentum, rate;
    bool nesterov;
};

struct local_sgd {
    struct tr_replicas common;
    /* The outer step, where it is more than the average: */
    float *momentum;                 /* device: an arena, valid in the shard; NULL: none */
    float *previous;                 /* device [stride]: parameters of the last round, valid in the shard */
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

static bool has_outer_step(const tr_strategy *strategy)
{
    return options_of(strategy)->momentum > 0 || options_of(strategy)->rate != 1;
}

static tr_status make_outer(struct local_sgd *self)
{
    tr_strategy *strategy = &self->common.head;
    const struct local_sgd_options *options = options_of(strategy);
    size_t bytes = (size_t)self->common.average.stride * sizeof(float);
    struct tr_step_scalars scalars = {.rate = options->rate, .clip_scale = 1};
    if (!has_outer_step(strategy)) return TR_OK;
    if (options->momentum > 0)
        TR_TRY(tr_strategy_make_arena(strategy, OUTER, self->common.average.shard, &self->momentum));
    TR_TRY(tr_device_alloc(strategy->holder, bytes + sizeof(float), (void **)&self->previous));
    strategy->memory += bytes;
    TR_TRY(tr_device_alloc(strategy->holder, sizeof scalars, (void **)&self->scalars));
    TR_TRY(tr_device_to_device(strategy->holder, self->scalars, &scalars, sizeof scalars));
    return tr_device_wait(strategy->holder);
}

static tr_status create(tr_strategy *strategy)
{
    TR_TRY(tr_replicas_create(strategy));
    return make_outer(self_of(strategy));
}

static void destroy(tr_strategy *strategy)
{
    struct local_sgd *self = self_of(strategy);
    tr_replicas_destroy(strategy);
    tr_device_free(strategy->holder, self->previous);
    tr_device_free(strategy->holder, self->scalars);
}

static tr_status connect(tr_strategy *strategy, int64_t step)
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
    const struct local_sgd_options *options = options_of(&self->common.head);
    struct tr_average *average = &self->common.average;
    tr_device *device = self->common.head.holder;
    float *momentum = self->momentum, *difference = average->nodes.data + begin,
          *previous = self->previous + begin;
    struct tr_op_scale negate = {end - begin, -1.0F / (float)options->head.replicas, difference, difference};
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
    return tr_replicas_move(&self->common.head, end - begin, previous, average->mean.data + begin);
}

/* Of all parameters in this rank's shard. */
static tr_status step_shard(tr_strategy *strategy, enum tr_arena arena)
{
    struct local_sgd *self = self_of(strategy);
    const int64_t *shard = self->common.average.shard + strategy->rank;
    if (arena != TR_ARENA_PARAMETERS || !self->previous) return TR_OK;
    for (int i = 0; i < strategy->job->model->parameter_count; i++) {
        int64_t begin = shard[0], end = shard[1];
        if (tr_replicas_narrow(strategy, i, &begin, &end)) TR_TRY(step_outer(self, begin, end));
    }
    return TR_OK;
}

static tr_status average(tr_strategy *strategy, int64_t step, bool all)
{
    static const struct tr_averaging outer = {.change = step_shard};
    (void)step, (void)all;
    return tr_average_all(strategy, &self_of(strategy)->common.average, TR_AVERAGE_STATE, &outer);
}

#define AT(field) offsetof(struct local_sgd_options, field)
static const struct tr_option options[] = {
    TR_REPLICAS_OPTION,
    {.key = "every",
     .type = TR_OPTION_INT32,
     .offset = AT(every),
     .fallback = "8",
     .least = 1,
     .most = 1000000,
     .help = "steps between averages; a run can be reported, evaluated, saved and stopped only then"},
    {.key = "momentum",
     .type = TR_OPTION_FLOAT,
     .offset = AT(momentum),
     .fallback = "0",
     .least = 0,
     .most = 1,
     .flags = TR_OPTION_BELOW_MOST,
     .help = "momentum of the outer step, which moves the parameters by the change of the average"},
    {.key = "rate",
     .type = TR_OPTION_FLOAT,
     .offset = AT(rate),
     .fallback = "1",
     .least = 0,
     .most = 100,
     .flags = TR_OPTION_ABOVE_LEAST,
     .help = "rate of the outer step; 1 without momentum is the average"},
    {.key = "nesterov",
     .type = TR_OPTION_BOOL,
     .offset = AT(nesterov),
     .fallback = "false",
     .help = "Nesterov's form of the outer momentum"},
};
#undef AT

static const char *const variants[] = {"replicas={workers}", "replicas={workers},momentum=0.5", NULL};

static const char *const arenas[] = {OUTER, NULL};

const struct tr_strategy_class tr_strategy_local_sgd = {
    .version = TR_STRATEGY_CLASS_VERSION,
    .name = "local-sgd",
    .help = "replicas are trained apart, each on its part of every batch, and averaged every few steps",
    .options = options,
    .option_count = TR_OPTION_COUNT(options),
    .options_size = sizeof(struct local_sgd_options),
    .size = sizeof(struct local_sgd),
    .variants = variants,
    .own_hash = true,
    .arenas = arenas,
    .traits = traits,
    .check = tr_replicas_check,
    .create = create,
    .begin = tr_replicas_begin,
    .connect = connect,
    .destroy = destroy,
    .average = average,
};
