/* Rounds of steps: each replica of this rank runs the steps of the round, then the ranks exchange reports,
 * and meet.
 *
 *     for each replica, for each step of the round:
 *         the scalars of the step -> gradient (the class; alone: this rank's microbatches)
 *         -> judge loss and norm -> update, unless bad or skipped -> are the parameters finite
 *         -> shards to all (the class)
 *     exchange of reports -> figures -> average (the class), unless something is bad
 *
 * A device with separate memory that nobody else has a say in goes through its part of this without the
 * host (driver_alone.c). Replicas apart may also meet within a round, neighbours
 * only.
 *
 * Invariant: decisions depend on numbers that are the same on all ranks of a replica, so all of them
 * update, or none.
 */
#include "strategy/driver.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/threads/timeline.h"

#include <assert.h>
#include <math.h>
#include <string.h>

tr_status tr_driver_create(tr_strategy *strategy)
{
    strategy->report_count = strategy->replica_bound           ? strategy->replica_bound[strategy->size]
                             : tr_driver_is_together(strategy) ? 1
                                                               : (int64_t)strategy->size;
    strategy->reports = tr_alloc_zero((size_t)strategy->report_count, sizeof *strategy->reports);
    strategy->digest = tr_alloc_zero(1, sizeof *strategy->digest);
    if (!strategy->reports || !strategy->digest) return TR_ENOMEM;
    TR_TRY(tr_device_alloc_pinned(strategy->holder, sizeof *strategy->answer, (void **)&strategy->answer));
    return tr_driver_make_pending(strategy);
}

void tr_driver_destroy(tr_strategy *strategy)
{
    tr_driver_release_pending(strategy);
    tr_device_free_pinned(strategy->holder, strategy->answer);
    tr_free(strategy->reports);
    tr_free(strategy->digest);
}

/* ---- judging ---- */

bool tr_strategy_skips(const struct tr_job *job)
{
    return job->train.on_nonfinite == TR_NONFINITE_SKIP;
}

bool tr_strategy_measures(const struct tr_job *job)
{
    return job->optimizer.clip_norm > 0 || job->optimizer.sam > 0 || tr_strategy_skips(job);
}

struct tr_verdict tr_judge(const struct tr_job *job, bool finite, double norm)
{
    bool skips = tr_strategy_skips(job);
    double most = (double)job->optimizer.clip_norm;
    return (struct tr_verdict){
        .bad_loss = !finite && !skips,
        .skipped = skips && (!finite || !isfinite(norm)),
        .clip = most > 0 && norm > most ? (float)(most / norm) : 1,
    };
}

void tr_driver_open(tr_strategy *strategy, const float sums[TR_PASS_SUMS])
{
    memcpy(strategy->sums, sums, sizeof strategy->sums);
    strategy->spoilt = !isfinite(sums[0]);
    strategy->open = true;
}

/* Number of parameters, without statistics, of the layers before `end`: as many sums of squares. */
static int64_t squares_before(const struct tr_model *model, int end)
{
    int64_t squares = 0;
    for (int i = 0; i < end; i++)
        for (int k = 0; k < model->layers[i].parameter_count; k++)
            squares += model->parameters[model->layers[i].parameter[k]].kind != TR_PARAMETER_STATISTIC;
    return squares;
}

/* Where no rank has the whole gradient: the first rank that has a parameter's layer contributes its sum of
   squares. */
static tr_status join_squares(tr_strategy *strategy)
{
    tr_variables *variables = strategy->replicas->variables;
    const struct tr_staging *squares;
    int64_t bound[TR_STRATEGY_RANKS + 1] = {0};
    tr_ticket *ticket = NULL;
    for (int r = 0; r < strategy->size; r++) {
        struct tr_placement place;
        tr_strategy_placement(strategy, r, &place);
        bound[r + 1] = squares_before(strategy->job->model, place.end_layer) * (int64_t)sizeof(float);
    }
    TR_TRY(tr_variables_open_squares(variables, &squares));
    TR_TRY(tr_staging_to_host(squares, 0, squares->floats));
    TR_TRY(tr_device_wait(strategy->holder));
    tr_status status =
        tr_comm_all_gather(strategy->comm, squares->host, bound, NULL, "squares of the gradient", &ticket);
    TR_TRY(tr_strategy_wait(strategy, status, ticket));
    TR_TRY(tr_staging_to_device(squares, 0, squares->floats));
    return tr_variables_join_squares(variables);
}

static tr_status measure(tr_strategy *strategy, tr_variables *variables, const float *gradient)
{
    if (!tr_strategy_is_spread(strategy)) return tr_variables_measure(variables, gradient);
    TR_TRY(tr_variables_measure_squares(variables, gradient));
    return join_squares(strategy);
}

/* ---- computing and updating ---- */

void tr_driver_count(tr_strategy *strategy, int64_t step, double start)
{
    tr_strategy_delay(strategy, step, tr_clock_seconds() - start);
    strategy->done.compute_seconds += tr_clock_seconds() - start;
    strategy->done.contributions++;
}

static tr_status run_step(tr_strategy *strategy, tr_gradient *gradient, int64_t step, bool waits,
                          int64_t *examples)
{
    const struct tr_strategy_observer *observer = &strategy->all_observers;
    tr_timeline_step(step); /* for ranks that do not step with the others */
    if (observer->layer) tr_gradient_observe(gradient, observer->layer, observer->user);
    tr_status status = waits ? tr_gradient_step(gradient, step, examples)
                             : tr_gradient_enqueue(gradient, step, NULL, examples);
    if (observer->layer) tr_gradient_observe(gradient, NULL, NULL);
    return status;
}

static tr_status compute(tr_strategy *strategy, tr_gradient *gradient, int64_t step, int64_t *examples)
{
    double start = tr_clock_seconds();
    TR_TRY(run_step(strategy, gradient, step, true, examples));
    tr_driver_count(strategy, step, start);
    return TR_OK;
}

tr_status tr_driver_compute(tr_strategy *strategy, int64_t step, int64_t *examples)
{
    return compute(strategy, strategy->replicas->gradient, step, examples);
}

tr_status tr_driver_enqueue(tr_strategy *strategy, int64_t step, int64_t *examples)
{
    struct tr_order order;
    tr_gradient *gradient = strategy->replicas->gradient;
    if (gradient) return run_step(strategy, gradient, step, false, examples);
    TR_TRY(tr_job_order(strategy->job, &order));
    *examples = tr_order_at(&order, step).rows;
    return TR_OK;
}

static tr_status compute_alone(tr_strategy *strategy, const struct tr_replica *replica, int64_t step,
                               struct tr_combined *out)
{
    int64_t floats = strategy->job->model->arena_floats;
    TR_TRY(compute(strategy, replica->gradient, step, &out->examples));
    if (out->examples == 0) return TR_OK; /* a ragged batch of fewer rows than microbatches */
    tr_driver_open(strategy, tr_gradient_sums(replica->gradient));
    return tr_gradient_deliver(replica->gradient, floats, &out->gradient);
}

tr_status tr_driver_compute_alone(tr_strategy *strategy, int64_t step, struct tr_combined *out)
{
    return compute_alone(strategy, strategy->replicas, step, out);
}

tr_status tr_driver_update(tr_strategy *strategy, const float *gradient, int64_t begin, int64_t end)
{
    assert(strategy->open && !tr_strategy_measures(strategy->job));
    if (strategy->spoilt) return TR_OK;
    return tr_variables_update(strategy->replicas->variables, gradient, begin, end);
}

bool tr_driver_update_of(const tr_strategy *strategy, int64_t begin, int64_t end, struct tr_op_update *out)
{
    assert(strategy->open && !strategy->spoilt && !tr_strategy_measures(strategy->job));
    return tr_variables_update_of(strategy->replicas->variables, begin, end, out);
}

tr_status tr_driver_apply(const tr_strategy *strategy, tr_variables *variables, const float *gradient)
{
    const struct tr_range whole = {0, strategy->job->model->arena_floats};
    const struct tr_range *ranges = strategy->updates ? strategy->updates : &whole;
    int count = strategy->updates ? strategy->update_count : 1;
    for (int i = 0; i < count; i++)
        TR_TRY(tr_variables_update(variables, gradient + ranges[i].begin, ranges[i].begin, ranges[i].end));
    return TR_OK;
}

static tr_status ask(tr_strategy *strategy, tr_variables *variables)
{
    strategy->asked = true;
    TR_TRY(tr_variables_ask(variables, strategy->answer));
    return tr_device_record(strategy->holder, &strategy->answered);
}

tr_status tr_driver_ask(tr_strategy *strategy)
{
    return ask(strategy, strategy->replicas->variables);
}

/* Makes the holder change nothing if the norm is not finite, as in tr_judge(). *held: it is known that
   nothing changes; this is determined where updates are observed, since observers do not see held ones. */
static tr_status hold_by_norm(tr_strategy *strategy, tr_variables *variables, bool *held)
{
    float norm = 0;
    TR_TRY(tr_variables_hold(variables, NULL, true));
    if (strategy->all_observers.update) TR_TRY(tr_variables_norm(variables, &norm));
    *held = !isfinite(norm);
    return TR_OK;
}

/* Sends the parameters that this rank updates to all ranks. */
static tr_status share_parameters(tr_strategy *strategy)
{
    const struct tr_strategy_division *division = strategy->class->division;
    if (!strategy->comm || !tr_driver_is_together(strategy) || !division) return TR_OK;
    return division->gather(strategy, 1U << TR_ARENA_PARAMETERS);
}

/* Enqueues the update by the gradient of all, whose loss is finite, the question how it went, and the way of
   updated shards to all. */
static tr_status update(tr_strategy *strategy, tr_variables *variables, const float *gradient)
{
    bool held = false;
    if (tr_strategy_measures(strategy->job)) TR_TRY(measure(strategy, variables, gradient));
    if (tr_strategy_skips(strategy->job)) TR_TRY(hold_by_norm(strategy, variables, &held));
    if (!held) TR_TRY(tr_driver_apply(strategy, variables, gradient));
    TR_TRY(ask(strategy, variables));
    return share_parameters(strategy);
}

/* Whether forward of the step after `step` may be enqueued before this one is judged: on a device with memory
   of its own, where no observer or timeline needs the steps apart. Replicas apart go alone there, and never
   come here. */
static bool may_begin_next(const tr_strategy *strategy, const struct tr_replica *replica, int64_t step)
{
    const struct tr_strategy_observer *observer = &strategy->all_observers;
    return strategy->allows_next && strategy->comm && replica->gradient &&
           step + 1 < strategy->job->train.steps && strategy->device == strategy->holder &&
           !strategy->device->class->host_memory && tr_gradient_may_begin(replica->gradient) &&
           !observer->layer && !observer->update && strategy->job->optimizer.sam == 0 &&
           !tr_timeline_current();
}

/* Enqueues the next step up to its loss, behind the copies of this step's parameters, so that the device has
   work while the host waits for this step's answer and for the other ranks. Changes no variables. A failure
   is reported when the next step itself begins. */
static void begin_next(const tr_strategy *strategy, const struct tr_replica *replica, int64_t step)
{
    if (!may_begin_next(strategy, replica, step)) return;
    assert(tr_driver_is_together(strategy));
    if (tr_variables_begin_step(replica->variables, step + 1) == TR_OK)
        (void)tr_gradient_begin(replica->gradient, step + 1);
}

/* The outcome of a step whose loss is finite: the holder judges it, and afterwards the host, by the same
   numbers. */
static tr_status settle(tr_strategy *strategy, const struct tr_replica *replica, int64_t step,
                        const struct tr_combined *combined, struct tr_report *report,
                        struct tr_verdict *verdict, bool *poisoned)
{
    tr_variables *variables = replica->variables;
    if (!combined->applied)
        TR_TRY(update(strategy, variables, combined->gradient));
    else if (!strategy->asked)
        TR_TRY(ask(strategy, variables));
    begin_next(strategy, replica, step);
    TR_TRY(tr_device_wait_for(strategy->holder, strategy->answered));
    double norm = 0;
    if (tr_strategy_measures(strategy->job)) {
        norm = (double)strategy->answer->norm;
        report->norms += norm;
        report->measured++;
    }
    *verdict = tr_judge(strategy->job, true, norm);
    *poisoned = strategy->answer->scalars.nonfinite != 0;
    return TR_OK;
}

/* ---- the gradient beside the parameters ---- */

/* Moves the parameters that this rank updates, or moves them back. */
static tr_status move(const tr_strategy *strategy, tr_variables *variables, const float *gradient)
{
    const struct tr_range whole = {0, strategy->job->model->arena_floats};
    const struct tr_range *ranges = strategy->updates ? strategy->updates : &whole;
    int count = strategy->updates ? strategy->update_count : 1;
    for (int i = 0; i < count; i++)
        TR_TRY(gradient ? tr_variables_perturb(variables, gradient, ranges[i].begin, ranges[i].end)
                        : tr_variables_restore(variables, ranges[i].begin, ranges[i].end));
    return TR_OK;
}

static tr_status compute_one(tr_strategy *strategy, const struct tr_replica *replica, int64_t step,
                             struct tr_combined *out)
{
    *out = (struct tr_combined){0};
    return tr_driver_is_together(strategy) ? strategy->class->gradient(strategy, step, out)
                                           : compute_alone(strategy, replica, step, out);
}

/* With SAM: instead of the gradient, which is there, comes that beside the parameters. The figures of
   the step stay those at the parameters. */
static tr_status look_around(tr_strategy *strategy, const struct tr_replica *replica, int64_t step,
                             struct tr_combined *combined)
{
    float sums[TR_PASS_SUMS];
    if (strategy->spoilt || strategy->job->optimizer.sam == 0) return TR_OK;
    memcpy(sums, strategy->sums, sizeof sums);
    TR_TRY(measure(strategy, replica->variables, combined->gradient));
    TR_TRY(move(strategy, replica->variables, combined->gradient));
    TR_TRY(share_parameters(strategy));
    strategy->open = strategy->spoilt = false;
    TR_TRY(compute_one(strategy, replica, step, combined));
    TR_TRY(move(strategy, replica->variables, NULL));
    if (strategy->spoilt) return share_parameters(strategy); /* else the update does */
    memcpy(strategy->sums, sums, sizeof sums);
    return TR_OK;
}

/* ---- a round ---- */

/* One step of one replica, of those before `end`. */
static tr_status learn(tr_strategy *strategy, const struct tr_replica *replica, int64_t step, int64_t end,
                       struct tr_report *report)
{
    struct tr_combined combined = {0};
    bool poisoned = false;
    strategy->open = strategy->spoilt = strategy->asked = false;
    if (tr_driver_goes_alone(strategy, replica))
        return tr_driver_learn_alone(strategy, replica, step, end, report);
    TR_TRY(tr_variables_begin_step(replica->variables, step));
    TR_TRY(compute_one(strategy, replica, step, &combined));
    if (combined.examples == 0) return TR_OK;
    assert(strategy->open);
    TR_TRY(look_around(strategy, replica, step, &combined));
    struct tr_verdict verdict = tr_judge(strategy->job, !strategy->spoilt, 0);
    if (!strategy->spoilt) TR_TRY(settle(strategy, replica, step, &combined, report, &verdict, &poisoned));
    tr_driver_tell(strategy, &verdict, poisoned, step, combined.examples, report);
    return TR_OK;
}

/* The steps [step, end) of all replicas of this rank. */
static tr_status learn_all(tr_strategy *strategy, int64_t step, int64_t end)
{
    struct tr_report *reports = strategy->reports + tr_driver_first_report(strategy, strategy->rank);
    for (int i = 0; i < strategy->replica_count; i++)
        for (int64_t s = step; s < end && reports[i].bad_step < 0; s++) {
            TR_TRY(learn(strategy, &strategy->replicas[i], s, end, &reports[i]));
            if (strategy->comm && !tr_driver_is_together(strategy)) TR_TRY(tr_comm_progress(strategy->comm));
        }
    return TR_OK;
}

/* The first multiple of `every` after `step`, at most `end`. */
static int64_t next_multiple(int64_t step, int64_t every, int64_t end)
{
    int64_t next = (step / every + 1) * every;
    return next < end ? next : end;
}

/* Forgets a step that was begun, and gives the device the scalars of `step` again. */
static tr_status go_back_to(const tr_strategy *strategy, int64_t step)
{
    const struct tr_replica *replica = strategy->replicas;
    if (!replica->gradient || !tr_gradient_begin_anew(replica->gradient)) return TR_OK;
    return tr_variables_begin_step(replica->variables, step);
}

/* A whole round, with its exchanges. Who is bad averages with the others, who do not know yet. */
static tr_status learn_and_average(tr_strategy *strategy, int64_t step, int64_t end)
{
    int64_t every = strategy->traits.exchange_every > 0 ? strategy->traits.exchange_every : end;
    for (int64_t next; step < end; step = next) {
        next = next_multiple(step, every, end);
        TR_TRY(learn_all(strategy, step, next));
        if (next < end && strategy->class->average) TR_TRY(strategy->class->average(strategy, next, false));
    }
    return TR_OK;
}

tr_status tr_driver_round(tr_strategy *strategy, int64_t step, int32_t request,
                          struct tr_step_figures *figures)
{
    const struct tr_strategy_class *class = strategy->class;
    int64_t every = strategy->traits.every > 0 ? strategy->traits.every : 1;
    int64_t end = next_multiple(step, every, strategy->job->train.steps);
    tr_driver_begin_reports(strategy, request);
    TR_TRY(learn_and_average(strategy, step, end));
    if (class->succession) TR_TRY(class->succession->complete(strategy, end));
    TR_TRY(tr_driver_exchange(strategy));
    tr_driver_sum_up(strategy, step, end - step, figures);
    if (figures->request || figures->bad_loss || figures->poisoned)
        TR_TRY(go_back_to(strategy, step + figures->steps - 1));
    if (figures->bad_loss || figures->poisoned) return TR_OK;
    if (class->average) return class->average(strategy, end, true);
    return end < strategy->job->train.steps ? tr_shares_end_step(strategy, figures) : TR_OK;
}
