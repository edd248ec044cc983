/* The work between the steps of a run, and at its end: reports, evaluations, checkpoints, warnings. */
#include "train/loop/run.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/text/log.h"
#include "job/file/monitor.h"

#include <math.h>
#include <stdio.h>

#define PROGRESS_SECONDS 0.1

void trainer_tell(const struct run *run, const struct tr_train_event *event)
{
    tr_trainer *trainer = run->trainer;
    if (!trainer_is_root(trainer)) return;
    if (trainer->crew.whole && !trainer_reported_is_news(&trainer->reported, event)) return;
    trainer_observe_event(trainer, event);
    trainer_journal_event(trainer, event);
    if (run->listener && run->listener(run->user, event)) tr_trainer_stop(trainer);
}

static struct tr_train_event event_of(const tr_trainer *trainer, enum tr_train_event_kind kind)
{
    return (struct tr_train_event){
        .size = sizeof(struct tr_train_event),
        .kind = kind,
        .step = trainer->variables.step,
        .steps = trainer->job->train.steps,
        .epoch = (double)trainer->variables.step / (double)trainer->steps_per_epoch,
        .gradient_norm = NAN,
        .perplexity = NAN,
        .tokens_per_second = NAN,
        .name = "",
        .hash = "",
    };
}

void trainer_warn(const struct run *run, const char *text)
{
    struct tr_train_event event = event_of(run->trainer, TR_EVENT_WARNING);
    event.name = text;
    trainer_tell(run, &event);
}

static void warn_of_skipped(const struct run *run, int64_t steps)
{
    char text[128];
    long long last = run->trainer->variables.step;
    if (steps == 1)
        snprintf(text, sizeof text, "step %lld was skipped: its loss or gradient is not finite", last);
    else
        snprintf(text, sizeof text,
                 "of steps %lld to %lld some were skipped: their loss or gradient is not finite",
                 last - steps + 1, last);
    trainer_warn(run, text);
}

void trainer_warn_of_files(const struct run *run)
{
    for (char *text; (text = trainer_observation_problem(&run->trainer->observation)); tr_free(text))
        trainer_warn(run, text);
}

/* Names a changed data file, once; the run continues with the data it has. */
static void warn_of_changes(struct run *run)
{
    const tr_trainer *trainer = run->trainer;
    char text[TR_MESSAGE_SIZE];
    if (run->changed || !trainer_data_changed(trainer->job, trainer->crew.comm, text, sizeof text)) return;
    run->changed = true;
    if (trainer_is_root(trainer))
        trainer_warn(run, text);
    else /* the first rank of another host */
        tr_log_line(TR_LOG_WARNING, "on host %s: %s",
                    tr_comm_host(trainer->crew.comm, tr_comm_rank(trainer->crew.comm)), text);
}

void trainer_tell_of_shares(const struct run *run)
{
    struct tr_train_event event = event_of(run->trainer, TR_EVENT_SHARES);
    event.name = tr_strategy_shares(run->trainer->variables.strategy);
    if (event.name) trainer_tell(run, &event);
}

/* Whether something that is due every so many steps is due after the last ones: several may have passed at
   once. */
static bool is_due(const tr_trainer *trainer, int64_t every, int64_t *last)
{
    if (every <= 0 || trainer->variables.step / every == *last / every) return false;
    *last = trainer->variables.step;
    return true;
}

struct tr_train_event trainer_step_event(const tr_trainer *trainer, const struct tr_step_figures *figures)
{
    const struct tr_optimizer *optimizer = &trainer->job->optimizer;
    struct tr_train_event event = event_of(trainer, TR_EVENT_STEP);
    event.loss = (double)figures->loss / (double)figures->examples;
    event.accuracy = (double)figures->correct / (double)figures->examples;
    event.perplexity = tr_job_perplexity(trainer->job, event.loss);
    event.rate = tr_schedule_rate(&optimizer->schedule, optimizer->rate, trainer->variables.step - 1);
    event.gradient_norm = (double)figures->norm;
    event.examples = figures->examples;
    return event;
}

void trainer_set_rate(const tr_trainer *trainer, int64_t examples, double seconds,
                      struct tr_train_event *event)
{
    event->examples_per_second = seconds > 0 ? (double)examples / seconds : 0;
    event->tokens_per_second = event->examples_per_second * trainer->tokens_per_example;
}

/* ---- between steps ---- */

/* Whether it is time to report progress. */
static bool has_progressed(const struct run *run)
{
    return run->trainer->account.seconds - run->progressed_seconds >= PROGRESS_SECONDS;
}

static void report(struct run *run, struct tr_train_event *event)
{
    const tr_trainer *trainer = run->trainer;
    int64_t every = trainer->job->train.log_every;
    run->reported_examples += event->examples;
    run->progressed_examples += event->examples;
    event->seconds = trainer->account.seconds;
    bool due = is_due(trainer, every, &run->reported_step);
    if (due || (every > 0 && (trainer->variables.step == 1 || trainer->variables.step == event->steps))) {
        trainer_set_rate(trainer, run->reported_examples, event->seconds - run->reported_seconds, event);
        trainer_tell(run, event);
        run->reported_examples = 0;
        run->reported_seconds = event->seconds;
    }
    if (has_progressed(run) && !tr_strategy_has_begun(trainer->variables.strategy)) {
        struct tr_train_event progress = *event;
        progress.kind = TR_EVENT_PROGRESS;
        trainer_set_rate(trainer, run->progressed_examples, event->seconds - run->progressed_seconds,
                         &progress);
        trainer_tell(run, &progress);
        run->progressed_examples = 0;
        run->progressed_seconds = event->seconds;
    }
}

static tr_status save(struct run *run, bool gathered)
{
    tr_trainer *trainer = run->trainer;
    char *path = NULL, hex[TR_SHA256_TEXT];
    tr_span_begin(TR_ACTIVITY_CHECKPOINT, "checkpoint");
    TR_TRY(trainer_save(trainer, gathered, &path));
    tr_span_end();
    if (!trainer_is_root(trainer)) return TR_OK;
    tr_status status = tr_trainer_hash(trainer, hex);
    struct tr_train_event event = event_of(trainer, TR_EVENT_CHECKPOINT);
    event.name = path;
    event.hash = hex;
    if (status == TR_OK) trainer_tell(run, &event);
    tr_free(trainer->directory.checkpoint);
    trainer->directory.checkpoint = path;
    return status;
}

/* A checkpoint during the run: a failure is reported and ignored, unless the run has lost its directory. */
static tr_status save_if_due(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    const struct tr_train_options *train = &trainer->job->train;
    if (!trainer->directory.path || trainer->variables.step == train->steps) return TR_OK;
    if (!is_due(trainer, train->checkpoint_every, &run->kept_step) && !(run->request & REQUEST_SAVE))
        return TR_OK;
    if (trainer->directory.saved_step == trainer->variables.step) return TR_OK; /* as the best */
    tr_status status = save(run, false);
    if (status == TR_OK || trainer->directory.displaced) return status;
    trainer->directory.saved_at = tr_clock_seconds(); /* the next attempt comes after the usual time */
    trainer_warn(run, tr_error_message());
    return TR_OK;
}

/* `judges`: the evaluation decides which weights are kept. An asynchronous run continues meanwhile, so the
   state to save is gathered together with the evaluated one. */
static tr_status evaluate(struct run *run, enum tr_data_set set, bool judges, struct tr_train_event *event)
{
    tr_trainer *trainer = run->trainer;
    if (tr_strategy_is_asynchronous(trainer->variables.strategy))
        TR_TRY(judges ? trainer_variables_gather(&trainer->variables)
                      : trainer_variables_gather_parameters(&trainer->variables));
    trainer->evaluation.shares = tr_strategy_is_asynchronous(trainer->variables.strategy);
    tr_status status = trainer_evaluate(trainer, set, event);
    trainer->evaluation.shares = false;
    if (status != TR_OK) return status;
    if (set == TR_SET_TEST) run->tested_step = event->step;
    event->best = judges && trainer_best_is_better(&trainer->best, &trainer->job->train, event);
    trainer_tell(run, event);
    return TR_OK;
}

/* Saves the evaluated state as the best so far. A failure is reported, and the run continues: the best is
   then the earlier one. */
static tr_status keep_best(struct run *run, const struct tr_train_event *event)
{
    tr_trainer *trainer = run->trainer;
    const struct trainer_best before = trainer->best;
    trainer_best_keep(&trainer->best, event);
    /* It may have been saved before the death of ranks caused this repetition. */
    bool lacks = trainer_directory_lacks(&trainer->directory, trainer->variables.step);
    tr_status status = lacks ? save(run, true) : TR_OK;
    if (status == TR_OK || trainer->directory.displaced) return status;
    trainer->best = before;
    trainer_warn(run, tr_error_message());
    return TR_OK;
}

static void tell_of_plateau(const struct run *run)
{
    const struct tr_optimizer *optimizer = &run->trainer->job->optimizer;
    char text[160];
    snprintf(text, sizeof text, "step %lld: no better %s, so the learning rate falls to %g",
             (long long)run->trainer->variables.step, tr_monitor_figure(run->trainer->best.monitor),
             optimizer->rate * optimizer->schedule.plateau.factor);
    trainer_warn(run, text);
}

static tr_status evaluate_if_due(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    const struct tr_train_options *train = &trainer->job->train;
    if (!is_due(trainer, train->evaluate_every, &run->evaluated_step)) return TR_OK;
    enum tr_data_set set = trainer_judging_set(trainer->job);
    if (set == TR_SETS) return TR_OK;
    struct tr_train_event event;
    TR_TRY(evaluate(run, set, tr_train_keeps_best(train), &event));
    trainer_best_evaluated(&trainer->best, &event);
    double figure = trainer_best_figure(train->monitor, &event);
    if (tr_schedule_evaluated(&trainer->job->optimizer.schedule, tr_monitor_cost(train->monitor, figure)))
        tell_of_plateau(run);
    return event.best ? keep_best(run, &event) : TR_OK;
}

/* Finishes work under way of an asynchronous run, which is trained, too. */
static tr_status settle(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    TR_TRY(trainer_variables_settle(&trainer->variables));
    if (tr_strategy_is_asynchronous(trainer->variables.strategy))
        trainer->account.seconds = tr_clock_seconds() - run->began;
    return TR_OK;
}

/* The test data, and the validation data if they were not evaluated before. */
static tr_status evaluate_at_the_end(struct run *run)
{
    const struct tr_job *job = run->trainer->job;
    struct tr_train_event event;
    if (job->train.evaluate_every == 0 && tr_job_has_set(job, TR_SET_VALIDATION))
        TR_TRY(evaluate(run, TR_SET_VALIDATION, false, &event));
    if (tr_job_has_set(job, TR_SET_TEST)) TR_TRY(evaluate(run, TR_SET_TEST, false, &event));
    run->tested_step = run->trainer->variables.step;
    return TR_OK;
}

tr_status trainer_finish(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    TR_TRY(settle(run));
    warn_of_changes(run);
    bool complete;
    TR_TRY(trainer_was_complete(trainer, &complete));
    TR_TRY(trainer_receipt_take(trainer));
    if (complete) trainer->directory.saved_step = trainer->variables.step; /* nothing would be added */
    if (trainer_directory_lacks(&trainer->directory, trainer->variables.step)) TR_TRY(save(run, false));
    if (run->tested_step != trainer->variables.step) TR_TRY(evaluate_at_the_end(run));
    TR_TRY(trainer_observe_finish(trainer));
    trainer_warn_of_files(run);
    char hex[TR_SHA256_TEXT];
    TR_TRY(tr_strategy_gather(trainer->variables.strategy));
    TR_TRY(trainer_variables_note_hash(&trainer->variables));
    TR_TRY(tr_trainer_hash(trainer, hex));
    struct tr_train_event event = event_of(trainer, TR_EVENT_END);
    event.seconds = trainer->account.seconds;
    event.hash = hex;
    trainer_tell(run, &event);
    return TR_OK;
}

tr_status trainer_stopped(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    TR_TRY(settle(run));
    TR_TRY(trainer_receipt_take(trainer));
    if (trainer_directory_lacks(&trainer->directory, trainer->variables.step)) TR_TRY(save(run, false));
    TR_TRY(trainer_variables_note_hash(&trainer->variables));
    return tr_fail(TR_EINTERRUPTED, "stopped after step %lld of %lld%s%s", (long long)trainer->variables.step,
                   (long long)trainer->job->train.steps,
                   trainer->directory.path ? "; resume from " : "; nothing was saved",
                   trainer->directory.path ? trainer->directory.path : "");
}

/* Whether what is due every so many steps is due after step number `step`. */
static bool comes(int64_t every, int64_t step)
{
    return every > 0 && step % every == 0;
}

bool trainer_goes_on(const struct run *run)
{
    const tr_trainer *trainer = run->trainer;
    const struct tr_train_options *train = &trainer->job->train;
    int64_t next = trainer->variables.step + 1;
    bool observed = trainer_observation_is_on(&trainer->observation);
    bool reports = comes(train->log_every, next) || (train->log_every > 0 && next == 1);
    return !observed && !reports && !has_progressed(run) && !comes(train->evaluate_every, next) &&
           !comes(train->checkpoint_every, next) && !comes(trainer->steps_per_epoch, next) &&
           !trainer_receipt_comes(trainer, next);
}

tr_status trainer_rest(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    const struct tr_step_figures *figures = &run->figures;
    run->request = figures->request;
    if (figures->skipped) {
        warn_of_skipped(run, figures->steps);
    } else {
        struct tr_train_event event = trainer_step_event(trainer, figures);
        report(run, &event);
    }
    if (figures->rebalanced) trainer_tell_of_shares(run);
    trainer_warn_of_files(run);
    if (is_due(trainer, trainer->steps_per_epoch, &run->checked_step)) warn_of_changes(run);
    TR_TRY(evaluate_if_due(run));
    TR_TRY(save_if_due(run));
    if (trainer_receipt_is_due(trainer)) TR_TRY(trainer_receipt_take(trainer));
    if (run->request & REQUEST_RATE) TR_TRY(trainer_take_rate(trainer));
    if (trainer->crew.comm && run->request & REQUEST_STOP) return trainer_stopped(run);
    run->request = 0;
    run->resting = false;
    return TR_OK;
}
