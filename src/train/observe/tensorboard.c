/* The files of a run, its figures and histograms. */
#include "train/observe/tensorboard_internal.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "io/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- beginning and end ---- */

/* Begins a file in `directory`, which is made if need be. */
static tr_status begin_file(const tr_tensorboard *board, const char *directory, tr_events **out)
{
    TR_TRY(tr_file_make_directories(NULL, directory));
    TR_TRY(tr_events_create(NULL, directory, tr_clock_wall(), out));
    tr_events_stamp(*out, board->first_step, tr_clock_wall());
    return tr_events_restart(*out);
}

static tr_status add_graph(tr_tensorboard *board)
{
    uint8_t *bytes;
    size_t size;
    TR_TRY(tr_graph_pack(board->job->model, &bytes, &size));
    tr_status status = tr_events_graph(board->run, bytes, size);
    tr_free(bytes);
    return status;
}

/* The job as a block of code, below facts that its curves do not show. */
static tr_status add_job(tr_tensorboard *board)
{
    struct tr_text text = TR_TEXT_INIT;
    char *job, *markdown;
    double smoothing = (double)board->job->model->loss.label_smoothing;
    TR_TRY(tr_job_text(board->job, &job));
    if (smoothing > 0)
        tr_text_addf(&text, "Losses of steps are with label smoothing %g, those of evaluations without.\n\n",
                     smoothing);
    for (const char *line = job; *line;) {
        size_t length = strcspn(line, "\n");
        tr_text_add(&text, "    ");
        tr_text_add_bytes(&text, line, length);
        tr_text_add(&text, "\n");
        line += length + (line[length] == '\n');
    }
    tr_free(job);
    TR_TRY(tr_text_finish(&text, &markdown));
    tr_status status = tr_events_text(board->run, "job", markdown);
    tr_free(markdown);
    return status;
}

static tr_status begin_run(tr_tensorboard *board, const struct tr_tensorboard_settings *settings)
{
    TR_TRY(begin_file(board, board->directory, &board->run));
    TR_TRY(tensorboard_begin_session(board, settings));
    TR_TRY(add_graph(board));
    TR_TRY(add_job(board));
    return tr_events_flush(board->run);
}

tr_status tr_tensorboard_create(const struct tr_tensorboard_settings *settings, tr_tensorboard **out)
{
    tr_tensorboard *board = tr_alloc_zero(1, sizeof *board);
    if (!board) return TR_ENOMEM;
    board->job = settings->job;
    board->device = settings->device;
    /* Values of steps after the last one that is done are discarded. */
    board->first_step = settings->step ? settings->step + 1 : 0;
    board->directory = tr_strdup(settings->directory);
    tr_status status = board->directory ? begin_run(board, settings) : TR_ENOMEM;
    if (status == TR_OK) {
        *out = board;
        return TR_OK;
    }
    tr_events_close(&board->run);
    tr_free(board->directory);
    tr_free(board);
    return status;
}

tr_status tr_tensorboard_close(tr_tensorboard **handle, bool success)
{
    tr_tensorboard *board = *handle;
    if (!board) return TR_OK;
    tr_status status = TR_OK;
    if (!board->failed) {
        tr_events_stamp(board->run, board->last_step, tr_clock_wall());
        status = tr_events_session_end(board->run, success);
    }
    tr_status closed = tr_events_close(&board->run);
    if (status == TR_OK) status = closed;
    for (int i = 0; i < TR_SETS; i++) {
        closed = tr_events_close(&board->set[i]);
        if (status == TR_OK) status = closed;
    }
    tr_free(board->directory);
    tr_free(board);
    *handle = NULL;
    return status;
}

/* Notes a failure, after which nothing more is written. */
static tr_status keep(tr_tensorboard *board, int64_t step, tr_status status)
{
    board->last_step = step;
    board->failed |= status != TR_OK;
    return status;
}

/* ---- figures ---- */

static tr_status add_quality(const tr_tensorboard *board, tr_events *events,
                             const struct tr_train_event *event)
{
    tr_events_stamp(events, event->step, tr_clock_wall());
    TR_TRY(tr_events_scalar(events, "loss", event->loss));
    if (!isnan(event->perplexity)) TR_TRY(tr_events_scalar(events, "perplexity", event->perplexity));
    if (!tr_job_has_accuracy(board->job)) return TR_OK;
    return tr_events_scalar(events, "accuracy", event->accuracy);
}

static tr_status add_step(tr_tensorboard *board, const struct tr_train_event *event)
{
    TR_TRY(add_quality(board, board->run, event));
    TR_TRY(tr_events_scalar(board->run, "optimizer/learning_rate", event->rate));
    if (!isnan(event->gradient_norm))
        TR_TRY(tr_events_scalar(board->run, "optimizer/gradient_norm", event->gradient_norm));
    TR_TRY(tr_events_scalar(board->run, "speed/examples_per_second", event->examples_per_second));
    if (!isnan(event->tokens_per_second))
        TR_TRY(tr_events_scalar(board->run, "speed/tokens_per_second", event->tokens_per_second));
    return tr_events_flush(board->run);
}

static tr_status add_metrics(tr_events *events, const struct tr_metrics *metrics)
{
    for (int i = 0; metrics && i < metrics->count; i++) {
        char tag[64];
        if (isnan(metrics->metric[i].value)) continue;
        snprintf(tag, sizeof tag, "metrics/%s", metrics->metric[i].name);
        TR_TRY(tr_events_scalar(events, tag, metrics->metric[i].value));
    }
    return TR_OK;
}

static tr_status add_evaluation(tr_tensorboard *board, const struct tr_train_event *event)
{
    enum tr_data_set set = TR_SET_TEST;
    TR_TRY(tr_data_set_find(event->name, &set));
    tr_events **events = &board->set[set];
    if (!*events) {
        char *directory = tr_path_join(board->directory, tr_data_set_names[set]);
        if (!directory) return TR_ENOMEM;
        tr_status status = begin_file(board, directory, events);
        tr_free(directory);
        if (status != TR_OK) return status;
    }
    TR_TRY(add_quality(board, *events, event));
    TR_TRY(add_metrics(*events, event->metrics));
    return tr_events_flush(*events);
}

tr_status tr_tensorboard_event(tr_tensorboard *board, const struct tr_train_event *event)
{
    if (event->kind == TR_EVENT_STEP) return keep(board, event->step, add_step(board, event));
    if (event->kind == TR_EVENT_EVALUATION) return keep(board, event->step, add_evaluation(board, event));
    return TR_OK;
}

/* ---- histograms ---- */

/* `group`/name, where the part of a parameter's name after the layer is a separate level. */
static tr_status add_histogram(tr_tensorboard *board, const char *group, const char *name,
                               const struct tr_histogram *histogram)
{
    if (!histogram) return TR_OK;
    char *tag = tr_format("%s/%s", group, name);
    if (!tag) return TR_ENOMEM;
    tr_status status = tr_events_histogram(board->run, tag, histogram);
    tr_free(tag);
    return status;
}

static tr_status add_histograms(tr_tensorboard *board, int64_t step, const tr_probe *probe)
{
    const struct tr_model *model = board->job->model;
    tr_events_stamp(board->run, step, tr_clock_wall());
    for (int i = 0; i < model->parameter_count; i++) {
        const char *name = model->parameters[i].name;
        TR_TRY(add_histogram(board, "parameters", name, tr_probe_parameter(probe, i)));
        TR_TRY(add_histogram(board, "gradients", name, tr_probe_gradient(probe, i)));
    }
    for (int i = 0; i < model->layer_count; i++)
        TR_TRY(add_histogram(board, "activations", model->layers[i].name, tr_probe_activation(probe, i)));
    return tr_events_flush(board->run);
}

tr_status tr_tensorboard_histograms(tr_tensorboard *board, int64_t step, const tr_probe *probe)
{
    return keep(board, step, add_histograms(board, step, probe));
}

tr_status tr_tensorboard_samples(tr_tensorboard *board, int64_t step, const char *when,
                                 const float *parameters)
{
    tr_events_stamp(board->run, step, tr_clock_wall());
    tr_status status = tensorboard_add_samples(board, when, parameters);
    if (status == TR_OK) status = tr_events_flush(board->run);
    return keep(board, step, status);
}
