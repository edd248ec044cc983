/* The training loop: steps, the work between them, and the ways in which a run ends. */
#include "train/loop/run.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/sized.h"

#include <stdio.h>
#include <string.h>

/* ---- a step ---- */

static tr_status nonfinite(tr_trainer *trainer, const struct tr_step_figures *figures, const char *what)
{
    char name[256];
    trainer->directory.saved_step = -1; /* an earlier checkpoint of this step has another state */
    TR_TRY(tr_strategy_locate_nonfinite(trainer->variables.strategy,
                                        trainer->variables.step + figures->steps - 1, name, sizeof name));
    return tr_fail(
        TR_ENONFINITE,
        "step %lld: the %s is not finite; the first bad tensor is the %s. Lower optimizer.rate, or set "
        "optimizer.clip_norm; checkpoints are from before this step",
        (long long)(trainer->variables.step + figures->steps), what, name);
}

/* Computes and applies one step. `goes_on`: nothing happens between it and the next one. */
static tr_status do_step(tr_trainer *trainer, int32_t request, bool goes_on, struct tr_step_figures *figures)
{
    TR_TRY(trainer_receipt_open(trainer));
    tr_timeline_step(trainer->variables.step);
    tr_strategy_allow_next(trainer->variables.strategy, goes_on);
    tr_span_begin(TR_ACTIVITY_STEP, "step");
    TR_TRY(tr_strategy_step(trainer->variables.strategy, trainer->variables.step, request, figures));
    tr_span_end();
    trainer_updates_note(trainer);
    if (figures->bad_loss && !figures->skipped) return nonfinite(trainer, figures, "loss");
    if (figures->poisoned) return nonfinite(trainer, figures, "updated network");
    trainer->variables.step += figures->steps;
    return trainer_receipt_note(trainer, figures);
}

tr_status tr_trainer_step(tr_trainer *trainer, struct tr_train_event *out)
{
    struct tr_step_figures figures;
    TR_TRY(trainer_check_process(trainer));
    if (out) TR_TRY(tr_sized_check(out, "TR_TRAIN_EVENT_INIT"));
    double start = tr_clock_seconds();
    if (trainer->variables.step >= trainer->job->train.steps)
        return tr_fail(TR_EINVAL, "all %lld steps are done; set train.steps higher to go on",
                       (long long)trainer->job->train.steps);
    TR_TRY(do_step(trainer, 0, false, &figures));
    if (trainer_receipt_is_due(trainer)) TR_TRY(trainer_receipt_take(trainer));
    if (!out) return TR_OK;
    struct tr_train_event event = trainer_step_event(trainer, &figures);
    event.seconds = tr_clock_seconds() - start;
    trainer_set_rate(trainer, figures.examples, event.seconds, &event);
    return tr_sized_give(&event, sizeof event, "TR_TRAIN_EVENT_INIT", out);
}

/* This rank's requests in a step: to stop and, by the root's clock, to save. */
static int32_t requests(const tr_trainer *trainer)
{
    double every = trainer->job->train.checkpoint_seconds;
    bool due = every > 0 && tr_clock_seconds() - trainer->directory.saved_at >= every;
    return (trainer->stop->asked ? REQUEST_STOP : 0) | (trainer->rate.wanted ? REQUEST_RATE : 0) |
           (due && trainer_is_root(trainer) ? REQUEST_SAVE : 0);
}

/* A trace that cannot be written now may be later; the run continues. */
static tr_status write_trace_if_done(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    tr_status status =
        tr_recording_step(&trainer->observation.recording, trainer->variables.step, trainer->crew.comm,
                          tr_strategy_is_asynchronous(trainer->variables.strategy));
    if (status == TR_OK || status == TR_EPEER) return status;
    trainer_warn(run, tr_error_message());
    return TR_OK;
}

/* ---- the loop ---- */

static void take_marks(struct run *run)
{
    const tr_trainer *trainer = run->trainer;
    run->marks = (struct marks){
        .reported_step = run->reported_step,
        .evaluated_step = run->evaluated_step,
        .kept_step = run->kept_step,
        .tested_step = run->tested_step,
        .checked_step = run->checked_step,
        .saved_step = trainer->directory.saved_step,
        .best = trainer->best,
        .plateau = trainer->job->optimizer.schedule.plateau,
        .rate_is_given = trainer->job->optimizer.schedule.is_given,
        .given_rate = trainer->job->optimizer.schedule.given,
        .reported_seconds = run->reported_seconds,
        .progressed_seconds = run->progressed_seconds,
        .reported_examples = run->reported_examples,
        .progressed_examples = run->progressed_examples,
    };
}

static void go_back_to_marks(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    const struct marks *marks = &run->marks;
    run->reported_step = marks->reported_step;
    run->evaluated_step = marks->evaluated_step;
    run->kept_step = marks->kept_step;
    run->tested_step = marks->tested_step;
    run->checked_step = marks->checked_step;
    trainer->directory.saved_step = marks->saved_step;
    trainer->best = marks->best;
    trainer->job->optimizer.schedule.plateau = marks->plateau;
    trainer->job->optimizer.schedule.is_given = marks->rate_is_given;
    trainer->job->optimizer.schedule.given = marks->given_rate;
    run->reported_seconds = marks->reported_seconds;
    run->progressed_seconds = marks->progressed_seconds;
    run->reported_examples = marks->reported_examples;
    run->progressed_examples = marks->progressed_examples;
}

/* A step, up to its figures. */
static tr_status step_on(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    TR_TRY(write_trace_if_done(run));
    trainer_observe_next(trainer);
    if (trainer->observation.digests) tr_digests_begin(trainer->observation.digests, trainer->variables.step);
    double start = tr_clock_seconds();
    struct tr_step_figures figures; /* figures of the step before may be reported once more */
    int32_t request = requests(trainer);
    TR_TRY(do_step(trainer, request, request == 0 && trainer_goes_on(run), &figures));
    run->figures = figures;
    if (tr_strategy_is_asynchronous(trainer->variables.strategy))
        trainer->account.seconds = tr_clock_seconds() - run->began;
    else
        trainer->account.seconds += tr_clock_seconds() - start;
    take_marks(run);
    run->resting = true;
    TR_TRY(trainer_observe_step(trainer, &run->figures));
    return trainer->observation.digests ? tr_digests_end(trainer->observation.digests, &run->figures) : TR_OK;
}

static tr_status go_on(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    for (;;) {
        if (run->resting) TR_TRY(trainer_rest(run));
        if (trainer->variables.step >= trainer->job->train.steps ||
            tr_strategy_is_over(trainer->variables.strategy) ||
            trainer_best_ends_early(&trainer->best, &trainer->job->train))
            return trainer_finish(run);
        if (trainer->stop->asked && !trainer->crew.comm &&
            !tr_strategy_has_begun(trainer->variables.strategy))
            return trainer_stopped(run);
        TR_TRY(step_on(run));
    }
}

/* Ends the strategy's work; `status` is the run's outcome, whose message is kept. */
static tr_status end_run(tr_trainer *trainer, tr_status status)
{
    struct tr_failure how;
    tr_failure_keep(&how, status);
    TR_TRY(trainer_account_collect(&trainer->account, trainer->variables.strategy, trainer->variables.step));
    TR_TRY(tr_strategy_end(trainer->variables.strategy));
    return tr_failure_restore(&how);
}

static tr_status go_on_to_the_end(struct run *run)
{
    tr_status status = go_on(run);
    return status == TR_OK || status == TR_EINTERRUPTED ? end_run(run->trainer, status) : status;
}

/* Continues without dead ranks, from where all living ones agree that they are. */
static tr_status shrink(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    struct trainer_progress progress = {.step = trainer->variables.step,
                                        .resting = run->resting,
                                        .tested = run->tested_step,
                                        .figures = run->figures};
    int64_t step = trainer->variables.step;
    char lost[TR_MESSAGE_SIZE], text[TR_MESSAGE_SIZE + 64];
    TR_TRY(trainer_shrink(trainer, &progress, lost, sizeof lost));
    run->figures = progress.figures;
    run->resting = progress.resting;
    if (progress.step > step) TR_TRY(trainer_receipt_note(trainer, &run->figures));
    trainer_receipt_repeat(trainer);
    if (progress.step > step)
        take_marks(run);
    else if (run->resting)
        go_back_to_marks(run);
    /* At the end of a run some ranks may have saved and tested, and others not; the root's record counts. */
    if (progress.saved == trainer->variables.step)
        trainer->directory.saved_step = trainer->variables.step;
    else if (trainer->directory.saved_step == trainer->variables.step)
        trainer->directory.saved_step = -1;
    if (!run->resting) run->tested_step = progress.tested;
    TR_TRY(trainer_take_over(trainer));
    snprintf(text, sizeof text, "after step %lld: %s", (long long)trainer->variables.step, lost);
    trainer_warn(run, text);
    trainer_tell_of_shares(run);
    return TR_OK;
}

/* The loop of the root, and of all ranks that step together. */
static tr_status lead(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    TR_TRY(trainer_observe_start(trainer));
    TR_TRY(trainer_digests_start(trainer));
    trainer_advise(run);
    trainer_tell_of_shares(run);
    run->began = tr_clock_seconds();
    take_marks(run);
    tr_status status = go_on_to_the_end(run);
    while (trainer_crew_may_shrink(&trainer->crew, status)) {
        TR_TRY(shrink(run));
        status = go_on_to_the_end(run);
    }
    return status;
}

/* After a run that succeeded or was stopped all ranks are there, unless some were lost; otherwise no rank
   can be relied on. */
static tr_status end_recording(tr_trainer *trainer, tr_status status)
{
    bool failed = status != TR_OK && status != TR_EINTERRUPTED;
    bool alone = failed || (trainer->crew.comm && tr_comm_is_dissolved(trainer->crew.comm));
    struct tr_failure how;
    tr_failure_keep(&how, status);
    tr_status ended = tr_recording_end(&trainer->observation.recording, trainer->job->model,
                                       trainer->variables.device, trainer->crew.comm, alone);
    return ended != TR_OK && !failed ? ended : tr_failure_restore(&how);
}

/* The others must not wait for a rank that cannot continue. */
static void tell_others(tr_trainer *trainer, tr_status status)
{
    if (status != TR_OK && status != TR_EINTERRUPTED) trainer_crew_tell_others(&trainer->crew);
}

/* A failed run keeps its log, too. The message of `status` is kept. */
static void end_log(const struct run *run, tr_status status)
{
    struct tr_failure how;
    tr_failure_keep(&how, status);
    if (trainer_updates_seal(run->trainer, NULL) != TR_OK) trainer_warn(run, tr_error_message());
    tr_failure_restore(&how);
}

tr_status tr_trainer_run(tr_trainer *trainer, tr_train_listener listener, void *user)
{
    struct run run = {
        .trainer = trainer,
        .listener = listener,
        .user = user,
        .reported_step = trainer->variables.step,
        .evaluated_step = trainer->variables.step,
        .tested_step = -1,
        .kept_step = trainer->variables.step,
        .checked_step = trainer->variables.step,
    };
    TR_TRY(trainer_check_process(trainer));
    trainer->directory.saved_at = tr_clock_seconds();
    trainer_account_begin(&trainer->account, trainer->variables.step);
    tr_strategy_count_anew(trainer->variables.strategy);
    bool follows = trainer->crew.comm && tr_strategy_is_asynchronous(trainer->variables.strategy) &&
                   !trainer_is_root(trainer);
    trainer->crew.is_root = trainer_is_root(trainer);
    if (!follows) trainer_journal_start(trainer);
    tr_recording_enter(&trainer->observation.recording);
    trainer->rate.running = true;
    tr_status status =
        follows ? tr_strategy_run_worker(trainer->variables.strategy, &trainer->stop->asked, REQUEST_STOP)
                : lead(&run);
    trainer->rate.running = false;
    if (status == TR_EPEER && !follows)
        tr_fail_in(status, "after step %lld of %lld", (long long)trainer->variables.step,
                   (long long)trainer->job->train.steps);
    tell_others(trainer, status);
    end_log(&run, status);
    trainer_observe_end(trainer, status);
    trainer_warn_of_files(&run);
    tr_recording_leave(&trainer->observation.recording);
    if (trainer->observation.recording.timeline) status = end_recording(trainer, status);
    trainer_journal_end(trainer, status);
    trainer_warn_of_files(&run);
    return status;
}
