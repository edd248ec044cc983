/* When a trainer shows what; see observation.h. */
#include "train/loop/internal.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

tr_status trainer_observe(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    struct tr_observation *observation = &trainer->observation;
    if (settings->histograms < 0)
        return tr_fail(TR_EINVAL, "histograms every %" PRId64 " steps; give 1 or more, or 0 for none",
                       settings->histograms);
    if (settings->histograms > 0 && !settings->tensorboard)
        return tr_fail(TR_EINVAL, "histograms are written for TensorBoard; say where to (`tensorboard`)");
    if (!settings->tensorboard) return TR_OK;
    observation->histograms = settings->histograms;
    observation->stride = 1;
    observation->directory = tr_strdup(settings->tensorboard);
    return observation->directory ? TR_OK : TR_ENOMEM;
}

/* Ends the writing, without a word. */
static void close_board(struct tr_observation *observation, bool success)
{
    if (tr_tensorboard_close(&observation->board, success) != TR_OK && !observation->problem)
        observation->problem = tr_strdup(tr_error_message());
}

void trainer_observe_release(tr_trainer *trainer)
{
    struct tr_observation *observation = &trainer->observation;
    close_board(observation, false);
    tr_probe_destroy(&observation->probe);
    tr_free(observation->directory);
    tr_free(observation->problem);
    *observation = (struct tr_observation){0};
}

tr_status trainer_observe_meet(tr_trainer *trainer)
{
    struct tr_observation *observation = &trainer->observation;
    char request[64] = "nothing";
    if (observation->directory)
        snprintf(request, sizeof request, "TensorBoard, histograms every %" PRId64, observation->histograms);
    if (trainer->comm)
        TR_TRY(tr_comm_agree(trainer->comm, "observation", request, "start all ranks with equal options"));
    if (!observation->directory) return TR_OK;
    return tr_probe_create(trainer->device, trainer->job, trainer->comm, trainer->strategy,
                           observation->histograms > 0, &observation->probe);
}

/* A failure of the writing: it ends, and the run goes on. */
static void got_over(struct tr_observation *observation, tr_status status)
{
    if (status == TR_OK) return;
    tr_free(observation->problem);
    observation->problem = tr_format("nothing more is written for TensorBoard: %s", tr_error_message());
    close_board(observation, false);
}

static void add_samples(tr_trainer *trainer, const char *when)
{
    struct tr_observation *observation = &trainer->observation;
    const float *parameters;
    tr_status status = trainer_evaluated(trainer, &parameters);
    if (status == TR_OK) status = tr_tensorboard_samples(observation->board, trainer->step, when, parameters);
    got_over(observation, status);
}

static tr_status open_board(tr_trainer *trainer)
{
    struct tr_observation *observation = &trainer->observation;
    if (!observation->directory || !trainer_is_root(trainer)) return TR_OK;
    close_board(observation, false); /* of an earlier run of this trainer */
    struct tr_tensorboard_settings settings = {
        .directory = observation->directory,
        .job = trainer->job,
        .device = trainer->device,
        .step = trainer->step,
        .strategy = tr_strategy_name(trainer->strategy),
        .ranks = trainer->comm ? tr_comm_size(trainer->comm) : 1,
    };
    TR_TRY(tr_tensorboard_create(&settings, &observation->board));
    if (trainer->step == 0) add_samples(trainer, "samples before training");
    return TR_OK;
}

tr_status trainer_observe_start(tr_trainer *trainer)
{
    if (!trainer->observation.probe || !tr_strategy_is_spread(trainer->strategy)) return open_board(trainer);
    TR_TRY(trainer_gather_parameters(trainer)); /* for samples */
    tr_status status = open_board(trainer);
    trainer_release(trainer);
    return status;
}

void trainer_observe_take_over(tr_trainer *trainer)
{
    got_over(&trainer->observation, open_board(trainer));
}

/* ---- steps ---- */

/* Whether something that comes every so many steps comes in the next one, to judge by the length of the last
 * one. */
static bool comes(const tr_trainer *trainer, int64_t every)
{
    int64_t next = trainer->step + trainer->observation.stride;
    return every > 0 && (trainer->step == 0 || trainer->step / every != next / every);
}

void trainer_observe_next(tr_trainer *trainer)
{
    struct tr_observation *observation = &trainer->observation;
    unsigned what = 0;
    if (!observation->probe) return;
    int64_t log_every = trainer->job->train.log_every,
            left = trainer->job->train.steps - trainer->step - observation->stride;
    if (comes(trainer, log_every) || (log_every > 0 && left <= 0)) what |= TR_PROBE_NORM;
    if (comes(trainer, observation->histograms)) what |= TR_PROBE_HISTOGRAMS;
    tr_probe_begin(observation->probe, what);
    observation->looked = what != 0;
    observation->due = what & TR_PROBE_HISTOGRAMS;
}

tr_status trainer_observe_step(tr_trainer *trainer, const struct tr_step_figures *figures)
{
    struct tr_observation *observation = &trainer->observation;
    if (!observation->probe) return TR_OK;
    observation->stride = figures->steps;
    TR_TRY(tr_probe_end(observation->probe));
    if (observation->due && observation->board)
        got_over(observation,
                 tr_tensorboard_histograms(observation->board, trainer->step, observation->probe));
    return TR_OK;
}

void trainer_observe_event(tr_trainer *trainer, const struct tr_train_event *event)
{
    struct tr_observation *observation = &trainer->observation;
    struct tr_train_event shown = *event;
    if (!observation->board) return;
    if (event->kind == TR_EVENT_STEP && isnan(event->gradient_norm) && observation->looked)
        shown.gradient_norm = tr_probe_norm(observation->probe);
    got_over(observation, tr_tensorboard_event(observation->board, &shown));
}

/* ---- the end ---- */

tr_status trainer_observe_finish(tr_trainer *trainer)
{
    if (!trainer->observation.probe) return TR_OK;
    TR_TRY(trainer_gather_parameters(trainer));
    if (trainer->observation.board) add_samples(trainer, "samples after training");
    trainer_release(trainer);
    return TR_OK;
}

void trainer_observe_end(tr_trainer *trainer, tr_status status)
{
    struct tr_failure how;
    tr_failure_keep(&how, status);
    close_board(&trainer->observation, status == TR_OK);
    tr_failure_restore(&how);
}
