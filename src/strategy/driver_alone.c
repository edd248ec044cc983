/* Steps of a process alone, or of replicas apart between their exchanges, on a device with separate memory:
 * the device judges a step as tr_judge() does, and the host judges afterwards by the same numbers.
 *
 * The host waits for a step once. Where nothing happens between two steps, it first enqueues the next one,
 * so that the device never waits for the host.
 *
 * Invariants: at most two steps are under way. Updates of a step after one that ends the run change
 * nothing, so the variables stay those of the bad step; a step after a skipped one is applied as usual.
 * After a failure or a bad step no step is under way.
 */
#include "strategy/driver.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/threads/timeline.h"

#include <assert.h>

/* The device's report on a step. */
struct readout {
    float sums[TR_PASS_SUMS];
    struct tr_variables_answer answer;
};

/* A step under way. */
struct pending_step {
    bool begun; /* it may have changed variables, and has not been judged */
    int64_t step, examples;
    struct readout *readout; /* valid once `done` is reached; pinned, or copying it would block */
    tr_event done;
};

struct tr_pending_steps {
    struct pending_step of[2]; /* step n is in of[n % 2] */
};

static struct pending_step *pending_at(const tr_strategy *strategy, int64_t step)
{
    return &strategy->pending->of[step & 1];
}

/* Whether this process alone decides about a step, which its device computes and applies. */
static bool is_alone(const tr_strategy *strategy)
{
    bool shared = strategy->comm && (tr_driver_is_together(strategy) || strategy->traits.asynchronous);
    return !shared && strategy->device == strategy->holder && !strategy->device->class->host_memory;
}

tr_status tr_driver_make_pending(tr_strategy *strategy)
{
    if (!is_alone(strategy)) return TR_OK;
    strategy->pending = tr_alloc_zero(1, sizeof *strategy->pending);
    if (!strategy->pending) return TR_ENOMEM;
    for (int i = 0; i < 2; i++) {
        struct pending_step *pending = &strategy->pending->of[i];
        TR_TRY(
            tr_device_alloc_pinned(strategy->device, sizeof *pending->readout, (void **)&pending->readout));
    }
    return TR_OK;
}

void tr_driver_release_pending(tr_strategy *strategy)
{
    if (!strategy->pending) return;
    for (int i = 0; i < 2; i++) tr_device_free_pinned(strategy->device, strategy->pending->of[i].readout);
    tr_free(strategy->pending);
    strategy->pending = NULL;
}

bool tr_driver_goes_alone(const tr_strategy *strategy, const struct tr_replica *replica)
{
    const struct tr_strategy_observer *observer = &strategy->all_observers;
    return strategy->pending && replica->gradient && !observer->layer && !observer->update &&
           strategy->job->optimizer.sam == 0;
}

bool tr_strategy_has_begun(const tr_strategy *strategy)
{
    return strategy->pending && (strategy->pending->of[0].begun || strategy->pending->of[1].begun);
}

/* Whether the step after `step` may begin before that is judged. */
static bool may_begin_next(const tr_strategy *strategy, const struct tr_replica *replica, int64_t step,
                           int64_t end)
{
    if (step + 1 >= strategy->job->train.steps || !tr_gradient_borrows_nothing(replica->gradient))
        return false;
    if (step + 1 < end) return !tr_timeline_current(); /* a timeline has a span for each */
    return strategy->allows_next && !strategy->comm && !strategy->class->average;
}

/* All of a step, up to the request for its result. `after`: the last step is under way. */
static tr_status enqueue(tr_strategy *strategy, const struct tr_replica *replica, int64_t step, bool behind)
{
    tr_variables *variables = replica->variables;
    const struct tr_job *job = strategy->job;
    struct pending_step *pending = pending_at(strategy, step);
    pending->step = step;
    bool skips = tr_strategy_skips(job);
    TR_TRY(behind ? tr_variables_begin_behind(variables, step, skips)
                  : tr_variables_begin_step(variables, step));
    TR_TRY(tr_gradient_enqueue(replica->gradient, step, pending->readout->sums, &pending->examples));
    pending->begun = true;
    if (pending->examples == 0) return tr_device_record(strategy->device, &pending->done);
    const float *gradient = tr_gradient_slots(replica->gradient), *loss = tr_gradient_loss(replica->gradient);
    if (tr_strategy_measures(job)) TR_TRY(tr_variables_measure(variables, gradient));
    TR_TRY(tr_variables_hold(variables, loss, skips));
    TR_TRY(tr_driver_apply(strategy, variables, gradient));
    TR_TRY(tr_variables_ask(variables, &pending->readout->answer));
    return tr_device_record(strategy->device, &pending->done);
}

/* By the same numbers as the device. */
static void judge(tr_strategy *strategy, const struct pending_step *pending, struct tr_report *report)
{
    const struct readout *readout = pending->readout;
    bool measures = tr_strategy_measures(strategy->job);
    tr_driver_open(strategy, readout->sums);
    double norm = measures && !strategy->spoilt ? (double)readout->answer.norm : 0;
    report->norms += norm;
    report->measured += measures && !strategy->spoilt;
    const struct tr_verdict verdict = tr_judge(strategy->job, !strategy->spoilt, norm);
    bool poisoned = readout->answer.scalars.nonfinite != 0;
    tr_driver_tell(strategy, &verdict, poisoned, pending->step, pending->examples, report);
}

static tr_status learn(tr_strategy *strategy, const struct tr_replica *replica, int64_t step, int64_t end,
                       struct tr_report *report)
{
    struct pending_step *pending = pending_at(strategy, step), *next = pending_at(strategy, step + 1);
    double start = tr_clock_seconds();
    assert(!next->begun && (!pending->begun || pending->step == step));
    if (!pending->begun) TR_TRY(enqueue(strategy, replica, step, false));
    if (may_begin_next(strategy, replica, step, end)) {
        tr_status status = enqueue(strategy, replica, step + 1, true);
        /* A step that fails before it changes anything reports the failure in its turn. */
        if (status != TR_OK && next->begun) return status;
    }
    TR_TRY(next->begun ? tr_device_wait_for(strategy->device, pending->done)
                       : tr_device_wait(strategy->device));
    pending->begun = false;
    if (pending->examples == 0) return TR_OK;
    tr_driver_count(strategy, step, start);
    judge(strategy, pending, report);
    return TR_OK;
}

/* Waits for steps under way, and discards them. */
static void finish_pending(tr_strategy *strategy)
{
    if (!tr_strategy_has_begun(strategy)) return;
    tr_device_finish(strategy->device);
    for (int i = 0; i < 2; i++) strategy->pending->of[i].begun = false;
}

tr_status tr_driver_learn_alone(tr_strategy *strategy, const struct tr_replica *replica, int64_t step,
                                int64_t end, struct tr_report *report)
{
    tr_status status = learn(strategy, replica, step, end, report);
    if (status == TR_OK && report->bad_step < 0) return TR_OK;
    finish_pending(strategy);
    /* The search for the cause repeats the bad step. */
    return status == TR_OK ? tr_variables_begin_step(replica->variables, step) : status;
}
