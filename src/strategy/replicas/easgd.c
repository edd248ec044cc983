/* Elastic averaging SGD (Zhang, Choromanska, LeCun 2015), the synchronous form: a fixed number R of
 * separate replicas (replicas.h), each tied to a centre, which is the state of the run; every so many
 * steps they pull each other,
 *
 *     x[r] = fma(beta / R, c - x[r], x[r])      each replica r, with the old c
 *     c    = fma(beta, mean - c, c)             mean of the old x[r], see average.c
 *
 * in float32, beta / R rounded once: the paper's alpha. Running statistics of the centre are the mean of
 * the replicas'; replicas keep theirs. Frozen parameters do not change.
 *
 * Replicas never become one: they, their moments and their moving averages are arenas of the strategy. The
 * saved moments and moving averages of the state are means of these, for other strategies to continue
 * with, and for evaluation.
 *
 * Invariant: a resumed run has the centre and all replicas. At the end of a training that is not the end
 * of a period nothing happens, so a longer training continues as if it had been longer from the beginning.
 */
#include "base/fail.h"
#include "strategy/replicas/replicas.h"

struct easgd_options {
    struct tr_replicas_options head;
    int32_t every;
    float beta;
};

struct easgd {
    struct tr_replicas common;
    struct tr_step_scalars *scalars; /* device */
};

static struct easgd *self_of(tr_strategy *strategy)
{
    return (struct easgd *)strategy;
}

static const struct easgd_options *options_of(const tr_strategy *strategy)
{
    return strategy->options;
}

/* ---- making ---- */

static void traits(const void *options_, struct tr_strategy_traits *out)
{
    const struct easgd_options *options = options_;
    out->every = options->every;
}

static tr_status create(tr_strategy *strategy)
{
    struct easgd *self = self_of(strategy);
    struct tr_step_scalars scalars = {.clip_scale = 1};
    TR_TRY(tr_replicas_create(strategy));
    TR_TRY(tr_replicas_keep_apart(strategy));
    TR_TRY(tr_device_alloc(strategy->holder, sizeof scalars, (void **)&self->scalars));
    TR_TRY(tr_device_to_device(strategy->holder, self->scalars, &scalars, sizeof scalars));
    return tr_device_wait(strategy->holder);
}

static void destroy(tr_strategy *strategy)
{
    tr_replicas_destroy(strategy);
    tr_device_free(strategy->holder, self_of(strategy)->scalars);
}

/* ---- the end of a period ---- */

/* The floats [begin, end) of every learned parameter: w = fma(force, to - w, w). */
static tr_status pull(tr_strategy *strategy, int64_t begin, int64_t end, float force, const float *to,
                      float *w)
{
    const struct tr_model *model = strategy->job->model;
    for (int i = 0; i < model->parameter_count; i++) {
        int64_t from = begin, until = end;
        if (!tr_replicas_narrow(strategy, i, &from, &until) || model->parameters[i].pace.frozen) continue;
        struct tr_op_update update = {
            .count = until - from,
            .rule = TR_RULE_STATISTIC,
            .rate_factor = 1,
            .beta1 = force,
            .grad = to + from,
            .w = w + from,
            .scalars = self_of(strategy)->scalars,
        };
        TR_TRY(tr_device_update(strategy->holder, &update));
    }
    return TR_OK;
}

static float *centre_of(tr_strategy *strategy)
{
    return tr_variables_arena(strategy->state, TR_ARENA_PARAMETERS);
}

/* Updates the replicas of this rank, and its shard of the centre in place of the mean; the sums of the old
   replicas are computed, and no rank has a new centre yet. */
static tr_status pull_all(tr_strategy *strategy, enum tr_arena arena)
{
    const struct tr_average *average = &self_of(strategy)->common.average;
    const struct easgd_options *options = options_of(strategy);
    int64_t floats = strategy->job->model->arena_floats, begin = average->shard[strategy->rank],
            end = average->shard[strategy->rank + 1];
    float *centre = centre_of(strategy), *mean = average->mean.data;
    for (int i = 0; i < strategy->replica_count; i++)
        TR_TRY(pull(strategy, 0, floats, options->beta / (float)options->head.replicas, centre,
                    tr_variables_arena(strategy->replicas[i].variables, arena)));
    TR_TRY(pull(strategy, begin, end, options->beta, mean, centre));
    for (int i = 0; i < strategy->job->model->parameter_count; i++) {
        int64_t from = begin, until = end;
        if (tr_replicas_narrow(strategy, i, &from, &until))
            TR_TRY(tr_replicas_move(strategy, until - from, centre + from, mean + from));
    }
    return TR_OK;
}

static tr_status give_state(tr_strategy *strategy, enum tr_arena arena)
{
    return tr_average_give(strategy, &self_of(strategy)->common.average,
                           tr_variables_arena(strategy->state, arena));
}

static tr_status average(tr_strategy *strategy, int64_t step, bool all)
{
    static const struct tr_averaging elastic = {.change = pull_all, .take = give_state};
    (void)all;
    if (step % options_of(strategy)->every != 0) return TR_OK;
    return tr_average_all(strategy, &self_of(strategy)->common.average, 1U << TR_ARENA_PARAMETERS, &elastic);
}

/* The means over the replicas. */
static tr_status gather(tr_strategy *strategy, unsigned arenas)
{
    static const struct tr_averaging into_state = {.take = give_state};
    return tr_average_all(strategy, &self_of(strategy)->common.average, arenas & ~(1U << TR_ARENA_PARAMETERS),
                          &into_state);
}

#define AT(field) offsetof(struct easgd_options, field)
static const struct tr_option options[] = {
    TR_REPLICAS_OPTION,
    {.key = "every",
     .type = TR_OPTION_INT32,
     .offset = AT(every),
     .fallback = "8",
     .least = 1,
     .most = 1000000,
     .help = "steps between the pulls of replicas and centre; a run can be reported, evaluated, saved and "
             "stopped only then"},
    {.key = "beta",
     .type = TR_OPTION_FLOAT,
     .offset = AT(beta),
     .fallback = "0.9",
     .least = 0,
     .most = 1,
     .flags = TR_OPTION_ABOVE_LEAST,
     .help = "fraction of the distance to the replicas' mean that the centre moves; each replica moves "
             "beta / replicas of its distance to the centre"},
};
#undef AT

static const char *const variants[] = {"replicas={workers}", "replicas={workers},every=3,beta=0.5", NULL};
static const char *const arenas[] = {TR_REPLICAS_ARENAS, NULL};
static const struct tr_strategy_division division = {.gather = gather};

const struct tr_strategy_class tr_strategy_easgd = {
    .version = TR_STRATEGY_CLASS_VERSION,
    .name = "easgd",
    .help = "elastic averaging SGD: replicas are trained apart, each on its part of every batch; every few "
            "steps they and a centre, which is evaluated and saved, pull each other",
    .options = options,
    .option_count = TR_OPTION_COUNT(options),
    .options_size = sizeof(struct easgd_options),
    .size = sizeof(struct easgd),
    .variants = variants,
    .own_hash = true,
    .arenas = arenas,
    .traits = traits,
    .check = tr_replicas_check,
    .create = create,
    .begin = tr_replicas_begin,
    .destroy = destroy,
    .average = average,
    .division = &division,
};
