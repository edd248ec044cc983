/* Local SGD (Stich 2019): a fixed number of replicas of the network, each with parameters and moments of its
 * own, trains on its part of every global batch; every so many steps the replicas are averaged
 * (local_sgd_average.c).
 *
 * Replica r of R takes the microbatches tr_cut(microbatches, R, r) and following of each step as a batch of
 * its own: its gradient is the mean over its own examples. The ranks have contiguous shares of the replicas,
 * so that the arithmetic, and the hash, depend on the number of replicas and not on that of the ranks.
 *
 * A step of the strategy is a round: the steps up to the next multiple of `every`, or the last of the
 * training, on all replicas, and then the average. Ranks do not meet within a round. Invariant: between
 * rounds all replicas are equal, so that any of them is the state of the run, whatever strategy goes on with
 * it.
 */
#include "strategy/local_sgd.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/tree.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a replica did in a round, the same for all ranks to know. */
struct local_sgd_report {
    double loss, correct;        /* sums over the examples learned */
    double norms;                /* sum over the steps measured */
    int64_t examples;            /* learned */
    int64_t measured;            /* steps whose gradient's norm is known */
    int64_t left_out;            /* steps that were not applied since they were not finite */
    int64_t bad_step;            /* where the replica came to an end, -1: it did not */
    int32_t bad_loss;            /* the reason: a loss that is not finite, else a parameter */
    int32_t wish;                /* of the rank that has the replica */
    char name[TR_NAME_SIZE * 3]; /* of the first tensor that is not finite */
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

static tr_status check(const struct tr_job *job, const void *options_, int ranks)
{
    const struct local_sgd_options *options = options_;
    if (options->replicas > job->train.microbatches)
        return tr_fail(TR_EINVAL,
                       "%d replicas share %lld microbatches; choose fewer replicas or set train.microbatches "
                       "higher",
                       options->replicas, (long long)job->train.microbatches);
    if (ranks > options->replicas)
        return tr_fail(TR_EINVAL, "%d ranks share %d replicas; start fewer ranks or choose more replicas",
                       ranks, options->replicas);
    return TR_OK;
}

static tr_status create(tr_strategy *strategy)
{
    struct local_sgd *self = self_of(strategy);
    const struct tr_job *job = strategy->job;
    int64_t replicas = options_of(strategy)->replicas;
    self->replica = tr_alloc((size_t)strategy->size + 1, sizeof *self->replica);
    self->reports = tr_alloc_zero((size_t)replicas, sizeof *self->reports);
    if (!self->replica || !self->reports) return TR_ENOMEM;
    for (int r = 0; r <= strategy->size; r++) self->replica[r] = tr_cut(replicas, strategy->size, r);
    self->count = (int)(self->replica[strategy->rank + 1] - self->replica[strategy->rank]);
    self->replicas = tr_alloc_zero((size_t)self->count, sizeof *self->replicas);
    if (!self->replicas) return TR_ENOMEM;
    for (int i = 0; i < self->count; i++) {
        tr_variables **variables = &self->replicas[i].variables;
        TR_TRY(tr_variables_create(strategy->holder, job->model, &job->optimizer, NULL, variables));
        if (i == 0) strategy->variables = *variables;
    }
    return local_sgd_average_create(self);
}

static tr_status begin(tr_strategy *strategy)
{
    struct local_sgd *self = self_of(strategy);
    const struct tr_train_options *train = &strategy->job->train;
    int64_t replicas = options_of(strategy)->replicas, first = self->replica[strategy->rank];
    for (int i = 0; i < self->count; i++) {
        struct tr_gradient_part part = {
            .first = tr_cut(train->microbatches, replicas, first + i),
            .end = tr_cut(train->microbatches, replicas, first + i + 1),
            .end_step = train->steps,
            .alone = true,
        };
        TR_TRY(tr_gradient_create(strategy->device, strategy->job, self->replicas[i].variables, &part, NULL,
                                  &self->replicas[i].gradient));
    }
    return TR_OK;
}

static void destroy(tr_strategy *strategy)
{
    struct local_sgd *self = self_of(strategy);
    for (int i = 0; self->replicas && i < self->count; i++) {
        tr_gradient_destroy(&self->replicas[i].gradient);
        if (i > 0) tr_variables_destroy(&self->replicas[i].variables); /* the first is the strategy's */
    }
    local_sgd_average_destroy(self);
    tr_free(self->replicas);
    tr_free(self->reports);
    tr_free(self->replica);
}

static void leave(tr_strategy *strategy)
{
    struct local_sgd *self = self_of(strategy);
    for (int i = 0; self->replicas && i < self->count; i++) tr_gradient_leave(&self->replicas[i].gradient);
}

static void placement(const tr_strategy *strategy, int rank, struct tr_placement *out)
{
    const struct local_sgd *self = (const struct local_sgd *)strategy;
    const struct tr_job *job = strategy->job;
    int64_t replicas = options_of(strategy)->replicas;
    *out = (struct tr_placement){
        .role = "worker",
        .first_microbatch = tr_cut(job->train.microbatches, replicas, self->replica[rank]),
        .end_microbatch = tr_cut(job->train.microbatches, replicas, self->replica[rank + 1]),
        .end_layer = job->model->layer_count,
        .end_update = job->model->arena_floats,
        .updates = job->model->arena_floats * (self->replica[rank + 1] - self->replica[rank]),
    };
}

static size_t memory(const tr_strategy *strategy)
{
    const struct local_sgd *self = (const struct local_sgd *)strategy;
    size_t bytes = local_sgd_average_memory(self);
    for (int i = 0; i < self->count; i++) {
        bytes += tr_variables_memory(self->replicas[i].variables);
        if (self->replicas[i].gradient) bytes += tr_gradient_memory(self->replicas[i].gradient);
    }
    return bytes;
}

/* The first replica has been initialized or loaded; the others begin as its copies. */
static tr_status meet(tr_strategy *strategy, int64_t step)
{
    struct local_sgd *self = self_of(strategy);
    int64_t floats = strategy->job->model->arena_floats;
    (void)step;
    for (int i = 1; i < self->count; i++)
        for (int a = 0; a < TR_ARENAS; a++) {
            float *to = tr_variables_arena(self->replicas[i].variables, (enum tr_arena)a);
            if (!to) continue;
            struct tr_op_scale copy = {floats, 1, tr_variables_arena(strategy->variables, (enum tr_arena)a),
                                       to};
            TR_TRY(tr_device_scale(strategy->device, &copy));
        }
    TR_TRY(tr_device_wait(strategy->device));
    TR_TRY(local_sgd_average_begin(self));
    return tr_strategy_barrier(strategy);
}

/* ---- a round ---- */

/* The replica's part of the round ends at `step`, and why. */
static tr_status give_up(struct local_sgd_replica *replica, int64_t step, bool bad_loss,
                         struct local_sgd_report *report)
{
    report->bad_step = step;
    report->bad_loss = bad_loss;
    return tr_gradient_blame(replica->gradient, step, report->name, sizeof report->name);
}

/* Whether the step's loss and, where it is looked at, the gradient's norm are finite. */
static tr_status judge(tr_strategy *strategy, struct local_sgd_replica *replica, const float *gradient,
                       const float sums[TR_PASS_SUMS], struct local_sgd_report *report, bool *finite)
{
    *finite = isfinite(sums[0]);
    if (!tr_strategy_measures(strategy->job) || !*finite) return TR_OK;
    float norm;
    TR_TRY(tr_variables_measure(replica->variables, gradient));
    TR_TRY(tr_variables_norm(replica->variables, &norm));
    *finite = isfinite(norm);
    report->norms += norm;
    report->measured++;
    return TR_OK;
}

/* One step of one replica. */
static tr_status learn(tr_strategy *strategy, struct local_sgd_replica *replica, int64_t step,
                       struct local_sgd_report *report)
{
    const struct tr_model *model = strategy->job->model;
    float sums[TR_PASS_SUMS];
    int64_t examples;
    bool finite, poisoned, skips = strategy->job->train.on_nonfinite == TR_NONFINITE_SKIP;
    TR_TRY(tr_variables_begin_step(replica->variables, step));
    TR_TRY(tr_strategy_compute_with(strategy, replica->gradient, step, &examples));
    if (examples == 0) return TR_OK; /* a ragged batch of fewer rows than microbatches */
    const float *gradient = tr_gradient_slots(replica->gradient);
    TR_TRY(tr_device_to_host(strategy->device, sums, gradient + model->arena_floats, sizeof sums));
    TR_TRY(tr_device_wait(strategy->device));
    TR_TRY(judge(strategy, replica, gradient, sums, report, &finite));
    if (!finite && skips) {
        report->left_out++;
        return TR_OK;
    }
    if (!isfinite(sums[0])) return give_up(replica, step, true, report);
    TR_TRY(tr_variables_update(replica->variables, gradient, 0, model->arena_floats));
    TR_TRY(tr_variables_nonfinite(replica->variables, &poisoned));
    if (poisoned) return give_up(replica, step, false, report);
    report->loss += sums[0];
    report->correct += sums[1];
    report->examples += examples;
    return TR_OK;
}

/* The steps [step, end) of all replicas of this rank. */
static tr_status learn_all(struct local_sgd *self, int64_t step, int64_t end, int32_t wish)
{
    tr_strategy *strategy = &self->head;
    struct local_sgd_report *reports = self->reports + self->replica[strategy->rank];
    for (int i = 0; i < self->count; i++) {
        reports[i] = (struct local_sgd_report){.bad_step = -1, .wish = wish};
        for (int64_t s = step; s < end && reports[i].bad_step < 0; s++) {
            TR_TRY(learn(strategy, &self->replicas[i], s, &reports[i]));
            if (strategy->comm) TR_TRY(tr_comm_progress(strategy->comm));
        }
    }
    return TR_OK;
}

static tr_status exchange(struct local_sgd *self)
{
    tr_strategy *strategy = &self->head;
    int64_t bound[TR_STRATEGY_RANKS + 1];
    if (!strategy->comm) return TR_OK;
    for (int r = 0; r <= strategy->size; r++) bound[r] = self->replica[r] * (int64_t)sizeof *self->reports;
    tr_ticket *ticket = NULL;
    tr_status status =
        tr_comm_all_gather(strategy->comm, self->reports, bound, NULL, "end of round", &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

/* The replica that came to an end first, NULL if none did. */
static const struct local_sgd_report *first_bad(const struct local_sgd *self)
{
    const struct local_sgd_report *bad = NULL;
    for (int i = 0; i < options_of(&self->head)->replicas; i++) {
        const struct local_sgd_report *report = &self->reports[i];
        if (report->bad_step >= 0 && (!bad || report->bad_step < bad->bad_step)) bad = report;
    }
    return bad;
}

/* The figures of a round of `steps` steps that begins at `step`. */
static void sum_up(const struct local_sgd *self, int64_t step, int64_t steps, struct tr_step_figures *figures)
{
    const struct local_sgd_report *bad = first_bad(self);
    double loss = 0, correct = 0, norms = 0;
    int64_t measured = 0;
    figures->examples = 0;
    for (int i = 0; i < options_of(&self->head)->replicas; i++) {
        const struct local_sgd_report *report = &self->reports[i];
        loss += report->loss;
        correct += report->correct;
        norms += report->norms;
        measured += report->measured;
        figures->examples += report->examples;
        figures->skipped |= report->left_out > 0;
        figures->wish |= report->wish;
    }
    figures->steps = bad ? bad->bad_step - step + 1 : steps;
    figures->loss = (float)loss;
    figures->correct = (float)correct;
    if (measured > 0) figures->norm = (float)(norms / (double)measured);
    if (!bad) return;
    figures->skipped = false;
    figures->bad_loss = bad->bad_loss;
    figures->poisoned = !bad->bad_loss;
}

static tr_status step(tr_strategy *strategy, int64_t step, int32_t wish, struct tr_step_figures *figures)
{
    struct local_sgd *self = self_of(strategy);
    int64_t every = options_of(strategy)->every, end = (step / every + 1) * every;
    if (end > strategy->job->train.steps) end = strategy->job->train.steps;
    TR_TRY(learn_all(self, step, end, wish));
    TR_TRY(exchange(self));
    sum_up(self, step, end - step, figures);
    if (figures->bad_loss || figures->poisoned) return TR_OK;
    return local_sgd_average(self);
}

static tr_status blame(tr_strategy *strategy, int64_t step, char *name, size_t size)
{
    const struct local_sgd_report *bad = first_bad(self_of(strategy));
    (void)step;
    snprintf(name, size, "%s of replica %d", bad ? bad->name : "gradient",
             bad ? (int)(bad - self_of(strategy)->reports) : 0);
    return TR_OK;
}

static tr_status gather(tr_strategy *strategy)
{
    return local_sgd_average_gather(self_of(strategy));
}

#define AT(field) offsetof(struct local_sgd_options, field)
static const struct tr_option options[] = {
    {.key = "replicas",
     .type = TR_OPTION_INT32,
     .offset = AT(replicas),
     .fallback = "2",
     .least = 1,
     .most = TR_STRATEGY_RANKS,
     .help = "replicas of the network, at most as many as microbatches; ranks, at most as many, share them "
             "out; the hash depends on the replicas and not on the ranks"},
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

const struct tr_strategy_class tr_strategy_local_sgd = {
    .name = "local-sgd",
    .help = "replicas of the network train apart, each on its part of every batch, and are averaged every so "
            "many steps",
    .options = options,
    .option_count = TR_OPTION_COUNT(options),
    .options_size = sizeof(struct local_sgd_options),
    .size = sizeof(struct local_sgd),
    .check = check,
    .create = create,
    .destroy = destroy,
    .leave = leave,
    .begin = begin,
    .placement = placement,
    .meet = meet,
    .step = step,
    .gather = gather,
    .memory = memory,
    .blame = blame,
    .variants = variants,
    .own_hash = true,
};
