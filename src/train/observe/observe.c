/* Decides when a trainer records its observations; see observation.h. */
#include "train/loop/internal.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

tr_status trainer_observe(tr_trainer *trainer, const struct tr_train_settings *settings)
{
    struct trainer_board *board = &trainer->observation.board;
    if (settings->histograms < 0)
        return tr_fail(TR_EINVAL, "histograms every %" PRId64 " steps; give 1 or more, or 0 for none",
                       settings->histograms);
    if (settings->histograms > 0 && !settings->tensorboard)
        return tr_fail(TR_EINVAL, "histograms are written for TensorBoard; say where to (`tensorboard`)");
    if (!settings->tensorboard) return TR_OK;
    board->histograms = settings->histograms;
    board->stride = 1;
    board->directory = tr_strdup(settings->tensorboard);
    return board->directory ? TR_OK : TR_ENOMEM;
}

/* Ends the writing silently. */
static void close_board(struct trainer_board *board, bool success)
{
    if (tr_tensorboard_close(&board->board, success) != TR_OK && !board->problem)
        board->problem = tr_strdup(tr_error_message());
}

void trainer_observation_begin(struct trainer_observation *observation)
{
    *observation = (struct trainer_observation){.journal.file.file.descriptor = -1};
}

void trainer_observation_close(struct trainer_observation *observation)
{
    struct trainer_board *board = &observation->board;
    tr_digests_destroy(&observation->digests);
    close_board(board, false);
    tr_probe_destroy(&board->probe);
    tr_free(board->directory);
    tr_free(board->problem);
    *board = (struct trainer_board){0};
}

void trainer_observation_release(struct trainer_observation *observation)
{
    tr_recording_release(&observation->recording);
    tr_journal_release(&observation->journal.file);
    tr_free(observation->journal.directory);
    tr_free(observation->journal.command);
    trainer_updates_release(&observation->updates);
}

bool trainer_observation_is_on(const struct trainer_observation *observation)
{
    return observation->board.probe || observation->digests || observation->recording.timeline;
}

char *trainer_observation_problem(struct trainer_observation *observation)
{
    char **problem =
             observation->board.problem ? &observation->board.problem : &observation->journal.file.problem,
         *text = *problem;
    *problem = NULL;
    return text;
}

tr_status trainer_observe_connect(tr_trainer *trainer)
{
    struct trainer_board *board = &trainer->observation.board;
    char request[64] = "nothing";
    if (board->directory)
        snprintf(request, sizeof request, "TensorBoard, histograms every %" PRId64, board->histograms);
    if (trainer->crew.comm)
        TR_TRY(
            tr_comm_agree(trainer->crew.comm, "observation", request, "start all ranks with equal options"));
    if (!board->directory) return TR_OK;
    return tr_probe_create(trainer->variables.device, trainer->job, trainer->crew.comm,
                           trainer->variables.strategy, board->histograms > 0, &board->probe);
}

/* A failure to write: writing ends, and the run continues. */
static void got_over(struct trainer_board *board, tr_status status)
{
    if (status == TR_OK) return;
    tr_free(board->problem);
    board->problem = tr_format("nothing more is written for TensorBoard: %s", tr_error_message());
    close_board(board, false);
}

static void add_samples(tr_trainer *trainer, const char *when)
{
    struct trainer_board *board = &trainer->observation.board;
    const float *parameters;
    tr_status status = trainer_evaluated(trainer, &parameters);
    if (status == TR_OK)
        status = tr_tensorboard_samples(board->board, trainer->variables.step, when, parameters);
    got_over(board, status);
}

static tr_status open_board(tr_trainer *trainer)
{
    struct trainer_board *board = &trainer->observation.board;
    if (!board->directory || !trainer_is_root(trainer)) return TR_OK;
    close_board(board, false); /* of an earlier run of this trainer */
    struct tr_tensorboard_settings settings = {
        .directory = board->directory,
        .job = trainer->job,
        .device = trainer->variables.device,
        .step = trainer->variables.step,
        .strategy = tr_strategy_name(trainer->variables.strategy),
        .ranks = trainer->crew.comm ? tr_comm_size(trainer->crew.comm) : 1,
    };
    TR_TRY(tr_tensorboard_create(&settings, &board->board));
    if (trainer->variables.step == 0) add_samples(trainer, "samples before training");
    return TR_OK;
}

tr_status trainer_observe_start(tr_trainer *trainer)
{
    if (!trainer->observation.board.probe || !tr_strategy_is_spread(trainer->variables.strategy))
        return open_board(trainer);
    TR_TRY(trainer_variables_gather_parameters(&trainer->variables)); /* for samples */
    tr_status status = open_board(trainer);
    trainer_variables_drop(&trainer->variables);
    return status;
}

void trainer_observe_take_over(tr_trainer *trainer)
{
    got_over(&trainer->observation.board, open_board(trainer));
}

/* ---- steps ---- */

/* Whether a periodic task is due in the next step, judging by the length of the last one. */
static bool comes(const tr_trainer *trainer, int64_t every)
{
    int64_t next = trainer->variables.step + trainer->observation.board.stride;
    return every > 0 && (trainer->variables.step == 0 || trainer->variables.step / every != next / every);
}

void trainer_observe_next(tr_trainer *trainer)
{
    struct trainer_board *board = &trainer->observation.board;
    unsigned what = 0;
    if (!board->probe) return;
    int64_t log_every = trainer->job->train.log_every,
            left = trainer->job->train.steps - trainer->variables.step - board->stride;
    if (comes(trainer, log_every) || (log_every > 0 && left <= 0)) what |= TR_PROBE_NORM;
    if (comes(trainer, board->histograms)) what |= TR_PROBE_HISTOGRAMS;
    tr_probe_begin(board->probe, what);
    board->looked = what != 0;
    board->due = what & TR_PROBE_HISTOGRAMS;
}

tr_status trainer_observe_step(tr_trainer *trainer, const struct tr_step_figures *figures)
{
    struct trainer_board *board = &trainer->observation.board;
    if (!board->probe) return TR_OK;
    board->stride = figures->steps;
    TR_TRY(tr_probe_end(board->probe));
    if (board->due && board->board)
        got_over(board, tr_tensorboard_histograms(board->board, trainer->variables.step, board->probe));
    return TR_OK;
}

void trainer_observe_event(tr_trainer *trainer, const struct tr_train_event *event)
{
    struct trainer_board *board = &trainer->observation.board;
    struct tr_train_event shown = *event;
    if (!board->board) return;
    if (event->kind == TR_EVENT_STEP && isnan(event->gradient_norm) && board->looked)
        shown.gradient_norm = tr_probe_norm(board->probe);
    got_over(board, tr_tensorboard_event(board->board, &shown));
}

/* ---- the end ---- */

tr_status trainer_observe_finish(tr_trainer *trainer)
{
    if (!trainer->observation.board.probe) return TR_OK;
    TR_TRY(trainer_variables_gather_parameters(&trainer->variables));
    if (trainer->observation.board.board) add_samples(trainer, "samples after training");
    trainer_variables_drop(&trainer->variables);
    return TR_OK;
}

void trainer_observe_end(tr_trainer *trainer, tr_status status)
{
    struct tr_failure how;
    tr_failure_keep(&how, status);
    close_board(&trainer->observation.board, status == TR_OK);
    tr_failure_restore(&how);
}

/* ---- digests ---- */

tr_status trainer_digests_start(tr_trainer *trainer)
{
    struct trainer_observation *observation = &trainer->observation;
    struct trainer_variables *variables = &trainer->variables;
    if (observation->digests_every == 0) return TR_OK;
    tr_digests_destroy(&observation->digests); /* of an earlier run of this trainer */
    TR_TRY(tr_digests_create(trainer->job, variables->device, trainer->crew.comm, variables->strategy,
                             trainer->directory.path, observation->digests_every, &observation->digests));
    TR_TRY(trainer_variables_gather_parameters(variables));
    tr_status status = tr_digests_start(observation->digests, variables->step);
    trainer_variables_drop(variables);
    return status;
}
