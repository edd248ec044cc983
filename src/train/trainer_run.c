/* The training loop: steps, reports, evaluations, checkpoints and the ways a run ends. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "train/trainer_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PROGRESS_SECONDS 0.1

/* What a run keeps beside the trainer. */
struct run {
    tr_trainer *trainer;
    tr_train_listener listener;
    void *user;
    double training_seconds; /* without evaluation and saving, unless others go on meanwhile */
    double reported_seconds, progressed_seconds;      /* training seconds at the last report of each kind */
    int64_t reported_examples, progressed_examples;   /* since then */
    int64_t reported_step, evaluated_step, kept_step; /* when each of what is done every so many steps was */
    int32_t wish;                                     /* of the steps since the last settled state */
};

static void tell(const struct run *run, const struct tr_train_event *event)
{
    trainer_observe_event(run->trainer, event);
    if (run->listener && trainer_is_chief(run->trainer)) run->listener(run->user, event);
}

static struct tr_train_event event_of(const tr_trainer *trainer, enum tr_train_event_kind kind)
{
    return (struct tr_train_event){
        .kind = kind,
        .step = trainer->step,
        .steps = trainer->job->train.steps,
        .epoch = (double)trainer->step / (double)trainer->steps_per_epoch,
        .gradient_norm = NAN,
        .name = "",
        .hash = "",
    };
}

static void warn(const struct run *run, const char *text)
{
    struct tr_train_event event = event_of(run->trainer, TR_EVENT_WARNING);
    event.name = text;
    tell(run, &event);
}

static void warn_of_skipped(const struct run *run, int64_t steps)
{
    char text[128];
    long long last = run->trainer->step;
    if (steps == 1)
        snprintf(text, sizeof text, "step %lld was skipped: its loss or gradient is not finite", last);
    else
        snprintf(text, sizeof text,
                 "of steps %lld to %lld some were skipped: their loss or gradient is not finite",
                 last - steps + 1, last);
    warn(run, text);
}

/* Files for TensorBoard that cannot be written are told of once. */
static void warn_of_observation(const struct run *run)
{
    char *problem = run->trainer->observation.problem;
    if (!problem) return;
    warn(run, problem);
    tr_free(problem);
    run->trainer->observation.problem = NULL;
}

/* ---- a step ---- */

static tr_status nonfinite(tr_trainer *trainer, const struct tr_step_figures *figures, const char *what)
{
    char name[256];
    TR_TRY(tr_strategy_blame(trainer->strategy, trainer->step + figures->steps - 1, name, sizeof name));
    return tr_fail(
        TR_ENONFINITE,
        "step %lld: the %s is not finite; the first bad tensor is the %s. Lower optimizer.rate, or set "
        "optimizer.clip_norm; checkpoints are from before this step",
        (long long)(trainer->step + figures->steps), what, name);
}

/* What a rank may wish for; all do it together after the step. */
enum wish { WISH_STOP = 1, WISH_SAVE = 2 };

/* Computes and applies one step. */
static tr_status do_step(tr_trainer *trainer, int32_t wish, struct tr_step_figures *figures)
{
    tr_timeline_step(trainer->step);
    tr_span_begin(TR_ACTIVITY_STEP, "step");
    TR_TRY(tr_strategy_step(trainer->strategy, trainer->step, wish, figures));
    tr_span_end();
    if (figures->bad_loss && !figures->skipped) return nonfinite(trainer, figures, "loss");
    if (figures->poisoned) return nonfinite(trainer, figures, "updated network");
    trainer->step += figures->steps;
    return TR_OK;
}

/* Whether something that is due every so many steps is due after the last ones: several may have passed at
   once, and it may have had to wait for a settled state. */
static bool is_due(const tr_trainer *trainer, int64_t every, int64_t *last)
{
    if (every <= 0 || trainer->step / every == *last / every) return false;
    *last = trainer->step;
    return true;
}

static struct tr_train_event step_event(const tr_trainer *trainer, const struct tr_step_figures *figures)
{
    struct tr_train_event event = event_of(trainer, TR_EVENT_STEP);
    event.loss = (double)figures->loss / (double)figures->examples;
    event.accuracy = (double)figures->correct / (double)figures->examples;
    event.rate = trainer->job->optimizer.rate *
                 tr_schedule_factor(&trainer->job->optimizer.schedule, trainer->step - 1);
    event.gradient_norm = (double)figures->norm;
    event.examples = figures->examples;
    return event;
}

tr_status tr_trainer_step(tr_trainer *trainer, struct tr_train_event *event)
{
    struct tr_step_figures figures;
    double start = tr_clock_seconds();
    if (trainer->step >= trainer->job->train.steps)
        return tr_fail(TR_EINVAL, "all %lld steps are done; set train.steps higher to go on",
                       (long long)trainer->job->train.steps);
    TR_TRY(do_step(trainer, 0, &figures));
    if (!event) return TR_OK;
    *event = step_event(trainer, &figures);
    event->seconds = tr_clock_seconds() - start;
    event->examples_per_second = event->seconds > 0 ? (double)figures.examples / event->seconds : 0;
    return TR_OK;
}

/* ---- between steps ---- */

static double rate_since(int64_t examples, double seconds)
{
    return seconds > 0 ? (double)examples / seconds : 0;
}

static void report(struct run *run, struct tr_train_event *event)
{
    const tr_trainer *trainer = run->trainer;
    int64_t every = trainer->job->train.log_every;
    run->reported_examples += event->examples;
    run->progressed_examples += event->examples;
    event->seconds = run->training_seconds;
    bool due = is_due(trainer, every, &run->reported_step);
    if (due || (every > 0 && (trainer->step == 1 || trainer->step == event->steps))) {
        event->examples_per_second =
            rate_since(run->reported_examples, event->seconds - run->reported_seconds);
        tell(run, event);
        run->reported_examples = 0;
        run->reported_seconds = event->seconds;
    }
    if (event->seconds - run->progressed_seconds >= PROGRESS_SECONDS) {
        struct tr_train_event progress = *event;
        progress.kind = TR_EVENT_PROGRESS;
        progress.examples_per_second =
            rate_since(run->progressed_examples, event->seconds - run->progressed_seconds);
        tell(run, &progress);
        run->progressed_examples = 0;
        run->progressed_seconds = event->seconds;
    }
}

static tr_status save(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    char *path = NULL, hex[TR_SHA256_TEXT];
    tr_span_begin(TR_ACTIVITY_CHECKPOINT, "checkpoint");
    TR_TRY(trainer_save(trainer, &path));
    tr_span_end();
    if (!trainer_is_chief(trainer)) return TR_OK;
    tr_status status = tr_trainer_hash(trainer, hex);
    struct tr_train_event event = event_of(trainer, TR_EVENT_CHECKPOINT);
    event.name = path;
    event.hash = hex;
    if (status == TR_OK) tell(run, &event);
    tr_free(path);
    return status;
}

/* What this rank asks for in a step: to stop, and, by the chief's clock, to save. */
static int32_t wishes(const tr_trainer *trainer)
{
    double every = trainer->job->train.checkpoint_seconds;
    bool due = every > 0 && tr_clock_seconds() - trainer->saved_at >= every;
    return (trainer->stop ? WISH_STOP : 0) | (due && trainer_is_chief(trainer) ? WISH_SAVE : 0);
}

/* A checkpoint in between: a failure is told and got over. */
static void save_if_due(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    const struct tr_train_options *train = &trainer->job->train;
    if (!trainer->out || trainer->step == train->steps) return;
    if (!is_due(trainer, train->checkpoint_every, &run->kept_step) && !(run->wish & WISH_SAVE)) return;
    if (save(run) == TR_OK) return;
    trainer->saved_at = tr_clock_seconds(); /* the next attempt comes after the usual time */
    warn(run, tr_error_message());
}

static tr_status evaluate(struct run *run, enum tr_data_set set, struct tr_train_event *event)
{
    tr_trainer *trainer = run->trainer;
    if (tr_strategy_is_asynchronous(trainer->strategy)) TR_TRY(trainer_gather_parameters(trainer));
    TR_TRY(trainer_evaluate(trainer, set, event));
    tell(run, event);
    return TR_OK;
}

static tr_status evaluate_if_due(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    const struct tr_train_options *train = &trainer->job->train;
    if (!is_due(trainer, train->evaluate_every, &run->evaluated_step)) return TR_OK;
    enum tr_data_set set = tr_job_has_set(trainer->job, TR_SET_VALIDATION) ? TR_SET_VALIDATION : TR_SET_TEST;
    if (!tr_job_has_set(trainer->job, set)) return TR_OK;
    struct tr_train_event event;
    TR_TRY(evaluate(run, set, &event));
    if (event.loss < trainer->best_loss) {
        trainer->best_loss = event.loss;
        trainer->worse_evaluations = 0;
    } else {
        trainer->worse_evaluations++;
    }
    trainer->last_accuracy = event.accuracy;
    return TR_OK;
}

/* Whether the run ends before its last step. All it looks at is kept in checkpoints, so that a run that is
   taken up where it ended early ends again. */
static bool ends_early(const tr_trainer *trainer)
{
    const struct tr_train_options *train = &trainer->job->train;
    bool reached = train->until_accuracy > 0 && trainer->last_accuracy >= train->until_accuracy;
    return reached || (train->patience > 0 && trainer->worse_evaluations >= train->patience);
}

/* The end of a run in good order: the last checkpoint, the test, the hash. */
static tr_status finish(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    TR_TRY(trainer_settle(trainer));
    if (trainer->out && trainer->saved_step != trainer->step) TR_TRY(save(run));
    if (tr_job_has_set(trainer->job, TR_SET_TEST)) {
        struct tr_train_event test;
        TR_TRY(evaluate(run, TR_SET_TEST, &test));
    }
    TR_TRY(trainer_observe_finish(trainer));
    warn_of_observation(run);
    char hex[TR_SHA256_TEXT];
    TR_TRY(tr_strategy_gather(trainer->strategy));
    TR_TRY(trainer_note_hash(trainer));
    TR_TRY(tr_trainer_hash(trainer, hex));
    struct tr_train_event event = event_of(trainer, TR_EVENT_END);
    event.seconds = run->training_seconds;
    event.hash = hex;
    tell(run, &event);
    return TR_OK;
}

static tr_status stopped(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    TR_TRY(trainer_settle(trainer));
    if (trainer->out && trainer->saved_step != trainer->step) TR_TRY(save(run));
    TR_TRY(trainer_note_hash(trainer));
    return tr_fail(TR_EINTERRUPTED, "stopped after step %lld of %lld%s%s", (long long)trainer->step,
                   (long long)trainer->job->train.steps,
                   trainer->out ? "; resume from " : "; nothing was saved", trainer->out ? trainer->out : "");
}

/* A trace that cannot be written now may be later; the run goes on. */
static tr_status write_trace_if_done(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    tr_status status = tr_recording_step(&trainer->recording, trainer->step, trainer->comm,
                                         tr_strategy_is_asynchronous(trainer->strategy));
    if (status == TR_OK || status == TR_EPEER) return status;
    warn(run, tr_error_message());
    return TR_OK;
}

static tr_status start_digests(tr_trainer *trainer)
{
    if (trainer->digests_every == 0) return TR_OK;
    tr_digests_destroy(&trainer->digests); /* of an earlier run of this trainer */
    TR_TRY(tr_digests_create(trainer->job, trainer->device, trainer->comm, trainer->strategy, trainer->out,
                             trainer->digests_every, &trainer->digests));
    TR_TRY(trainer_gather_parameters(trainer));
    tr_status status = tr_digests_start(trainer->digests, trainer->step);
    trainer_release(trainer);
    return status;
}

/* The chief's loop, and everybody's where all step together. */
static tr_status lead(struct run *run)
{
    tr_trainer *trainer = run->trainer;
    TR_TRY(trainer_observe_start(trainer));
    TR_TRY(start_digests(trainer));
    double began = tr_clock_seconds();
    while (trainer->step < trainer->job->train.steps && !ends_early(trainer)) {
        if (trainer->stop && !trainer->comm) return stopped(run);
        TR_TRY(write_trace_if_done(run));
        struct tr_step_figures figures;
        trainer_observe_next(trainer);
        if (trainer->digests) tr_digests_begin(trainer->digests, trainer->step);
        double start = tr_clock_seconds();
        TR_TRY(do_step(trainer, wishes(trainer), &figures));
        if (tr_strategy_is_asynchronous(trainer->strategy))
            run->training_seconds = tr_clock_seconds() - began;
        else
            run->training_seconds += tr_clock_seconds() - start;
        TR_TRY(trainer_observe_step(trainer, &figures));
        if (trainer->digests) TR_TRY(tr_digests_end(trainer->digests, &figures));
        run->wish |= figures.wish;
        if (figures.skipped) {
            warn_of_skipped(run, figures.steps);
        } else {
            struct tr_train_event event = step_event(trainer, &figures);
            report(run, &event);
        }
        warn_of_observation(run);
        if (!figures.settled) continue;
        TR_TRY(evaluate_if_due(run));
        save_if_due(run);
        if (trainer->comm && run->wish & WISH_STOP) return stopped(run);
        run->wish = 0;
    }
    return finish(run);
}

/* Ends the strategy's work; `status` is how the run went, and its message stays. */
static tr_status end_run(tr_trainer *trainer, tr_status status)
{
    struct tr_failure how;
    tr_failure_keep(&how, status);
    TR_TRY(trainer_collect_statistics(trainer));
    TR_TRY(tr_strategy_end(trainer->strategy));
    return tr_failure_restore(&how);
}

/* After a run that ended well or was stopped all ranks are there, unless some were lost on the way; otherwise
   nobody can be counted on. */
static tr_status end_recording(tr_trainer *trainer, tr_status status)
{
    bool failed = status != TR_OK && status != TR_EINTERRUPTED;
    bool alone = failed || (trainer->comm && tr_comm_is_disbanded(trainer->comm));
    struct tr_failure how;
    tr_failure_keep(&how, status);
    tr_status ended =
        tr_recording_end(&trainer->recording, trainer->job->model, trainer->device, trainer->comm, alone);
    return ended != TR_OK && !failed ? ended : tr_failure_restore(&how);
}

tr_status tr_trainer_run(tr_trainer *trainer, tr_train_listener listener, void *user)
{
    struct run run = {
        .trainer = trainer,
        .listener = listener,
        .user = user,
        .reported_step = trainer->step,
        .evaluated_step = trainer->step,
        .kept_step = trainer->step,
    };
    trainer->saved_at = tr_clock_seconds();
    trainer->run_began = trainer->step;
    if (trainer->comm) tr_comm_statistics_reset(trainer->comm);
    bool follows =
        trainer->comm && tr_strategy_is_asynchronous(trainer->strategy) && !trainer_is_chief(trainer);
    tr_recording_enter(&trainer->recording);
    tr_status status =
        follows ? tr_strategy_follow(trainer->strategy, &trainer->stop, WISH_STOP) : lead(&run);
    if (status == TR_EPEER && !follows)
        tr_fail_in(status, "after step %lld of %lld", (long long)trainer->step,
                   (long long)trainer->job->train.steps);
    /* The others must not wait for a rank that cannot go on. */
    if (trainer->comm && status != TR_OK && status != TR_EINTERRUPTED)
        tr_comm_abort(trainer->comm, tr_error_message());
    trainer_observe_end(trainer, status);
    warn_of_observation(&run);
    if (!follows && (status == TR_OK || status == TR_EINTERRUPTED)) status = end_run(trainer, status);
    tr_recording_leave(&trainer->recording);
    return trainer->recording.timeline ? end_recording(trainer, status) : status;
}
