#include "train/observe/journal.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"

#include "train/evaluate/metrics.h"
#include "trireme/trireme.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* ---- the file ---- */

void tr_journal_give_up(struct tr_journal *journal)
{
    if (!journal->problem)
        journal->problem = tr_format("the journal of the run is not written: %s", tr_error_message());
    tr_file_abandon(&journal->file);
}

void tr_journal_open(struct tr_journal *journal, const char *directory, bool goes_on)
{
    tr_journal_release(journal);
    journal->path = tr_path_join(directory, TR_JOURNAL_FILE);
    tr_status status = journal->path ? tr_file_make_directories(NULL, directory) : TR_ENOMEM;
    if (status == TR_OK) status = tr_file_lines_begin(journal->path, goes_on, &journal->file);
    if (status != TR_OK) tr_journal_give_up(journal);
}

void tr_journal_write(struct tr_journal *journal, struct tr_json_writer *json)
{
    char *line = NULL;
    tr_status status = tr_json_finish(json, &line);
    if (status == TR_OK && journal->file.descriptor >= 0) status = tr_file_lines_add(&journal->file, line);
    if (status != TR_OK) tr_journal_give_up(journal);
    tr_free(line);
}

void tr_journal_close(struct tr_journal *journal)
{
    if (journal->file.descriptor >= 0 && tr_file_finish(&journal->file, false) != TR_OK)
        tr_journal_give_up(journal);
}

void tr_journal_release(struct tr_journal *journal)
{
    if (journal->path) tr_file_abandon(&journal->file);
    tr_free(journal->path);
    tr_free(journal->problem);
    *journal = (struct tr_journal){.file.descriptor = -1};
}

/* ---- objects ---- */

void tr_journal_add_start(struct tr_json_writer *json, const struct tr_train_info *info, const char *out,
                          const char *command)
{
    char time[TR_CLOCK_TEXT], host[256] = "";
    gethostname(host, sizeof host - 1);
    tr_json_text(json, "event", "start");
    tr_json_text(json, "version", tr_version());
    tr_json_text(json, "name", info->name);
    tr_json_text(json, "model", info->model);
    tr_json_text(json, "device", info->device);
    tr_json_text(json, "out", out ? out : "");
    tr_json_text(json, "resumed", info->resumed);
    tr_json_integer(json, "seed", (int64_t)info->seed);
    tr_json_integer(json, "parameters", info->parameters);
    tr_json_integer(json, "kept", info->kept);
    tr_json_integer(json, "memory", info->memory);
    tr_json_integer(json, "host_memory", info->host_memory);
    tr_json_integer(json, "data_memory", info->data_memory);
    tr_json_integer(json, "train_examples", info->train_examples);
    tr_json_integer(json, "test_examples", info->test_examples);
    tr_json_integer(json, "batch", info->batch);
    tr_json_integer(json, "microbatches", info->microbatches);
    if (info->label_smoothing > 0) tr_json_double(json, "label_smoothing", info->label_smoothing);
    tr_json_integer(json, "steps", info->steps);
    tr_json_integer(json, "steps_per_epoch", info->steps_per_epoch);
    tr_json_integer(json, "step", info->step);
    tr_json_text(json, "settings", info->digest);
    tr_json_text(json, "settings_text", info->settings);
    tr_json_text(json, "strategy", info->strategy);
    tr_json_text(json, "strategy_options", info->strategy_options);
    tr_json_integer(json, "ranks", info->ranks);
    tr_json_text(json, "time", tr_clock_text(tr_clock_wall(), time));
    tr_json_text(json, "host", host);
    tr_json_text(json, "command", command ? command : "");
}

static void add_figures(struct tr_json_writer *json, bool classification, const struct tr_train_event *event)
{
    tr_json_integer(json, "step", event->step);
    tr_json_integer(json, "steps", event->steps);
    tr_json_double(json, "epoch", event->epoch);
    tr_json_double(json, "loss", event->loss);
    if (classification) tr_json_double(json, "accuracy", event->accuracy);
    if (!isnan(event->perplexity)) tr_json_double(json, "perplexity", event->perplexity);
    tr_json_integer(json, "examples", event->examples);
}

static void add_tokens(struct tr_json_writer *json, double per_second)
{
    if (!isnan(per_second)) tr_json_double(json, "tokens_per_second", per_second);
}

bool tr_journal_add_event(struct tr_json_writer *json, bool classification,
                          const struct tr_train_event *event)
{
    if (event->kind == TR_EVENT_PROGRESS || event->kind == TR_EVENT_END) return false;
    tr_json_begin(json, false);
    switch (event->kind) {
    case TR_EVENT_STEP:
        tr_json_text(json, "event", "step");
        add_figures(json, classification, event);
        tr_json_double(json, "rate", event->rate);
        if (!isnan(event->gradient_norm)) tr_json_double(json, "gradient_norm", event->gradient_norm);
        tr_json_double(json, "seconds", event->seconds);
        tr_json_double(json, "examples_per_second", event->examples_per_second);
        add_tokens(json, event->tokens_per_second);
        break;
    case TR_EVENT_EVALUATION:
        tr_json_text(json, "event", "evaluation");
        tr_json_text(json, "set", event->name);
        add_figures(json, classification, event);
        if (event->best) tr_json_bool(json, "best", true);
        tr_metrics_add(json, event->metrics);
        break;
    case TR_EVENT_CHECKPOINT:
        tr_json_text(json, "event", "checkpoint");
        tr_json_integer(json, "step", event->step);
        tr_json_text(json, "path", event->name);
        tr_json_text(json, "hash", event->hash);
        break;
    case TR_EVENT_WARNING:
        tr_json_text(json, "event", "warning");
        tr_json_integer(json, "step", event->step);
        tr_json_text(json, "message", event->name);
        break;
    case TR_EVENT_SHARES:
        tr_json_text(json, "event", "shares");
        tr_json_integer(json, "step", event->step);
        tr_json_text(json, "message", event->name);
        break;
    case TR_EVENT_PROGRESS:
    case TR_EVENT_END:
        break;
    }
    return true;
}

static void add_best(struct tr_json_writer *json, const struct tr_train_info *info)
{
    tr_json_open_object(json, "best");
    tr_json_integer(json, "step", info->best_step);
    tr_json_text(json, "set", info->best_set);
    tr_json_double(json, "loss", info->best_loss);
    if (info->classification) tr_json_double(json, "accuracy", info->best_accuracy);
    bool other = strcmp(info->monitor, "loss") != 0 && strcmp(info->monitor, "accuracy") != 0;
    if (other) tr_json_double(json, info->monitor, info->best_monitor);
    tr_json_close_object(json);
}

void tr_journal_add_end(struct tr_json_writer *json, const struct tr_journal_end *end)
{
    tr_json_text(json, "event", "end");
    tr_json_text(json, "status", tr_status_name(end->status));
    if (end->exit >= 0) tr_json_integer(json, "exit", end->exit);
    if (end->status != TR_OK) tr_json_text(json, "message", end->message);
    tr_json_integer(json, "step", end->step);
    tr_json_double(json, "seconds", end->seconds);
    tr_json_double(json, "examples_per_second", end->examples_per_second);
    add_tokens(json, end->tokens_per_second);
    if (*end->hash) tr_json_text(json, "hash", end->hash);
    if (*end->checkpoint) tr_json_text(json, "checkpoint", end->checkpoint);
    if (end->best) add_best(json, end->best);
    if (end->statistics) tr_journal_add_statistics(json, end->statistics);
}

void tr_journal_add_statistics(struct tr_json_writer *json, const struct tr_train_statistics *statistics)
{
    tr_json_open_object(json, "statistics");
    tr_json_integer(json, "steps", statistics->steps);
    tr_json_open_array(json, "ranks");
    for (int r = 0; r < statistics->ranks; r++) {
        const struct tr_train_rank *rank = &statistics->rank[r];
        tr_json_open_object(json, NULL);
        tr_json_integer(json, "bytes_sent", rank->bytes_sent);
        tr_json_integer(json, "bytes_received", rank->bytes_received);
        tr_json_integer(json, "bytes_shared", rank->bytes_shared);
        tr_json_double(json, "wait_seconds", rank->wait_seconds);
        tr_json_double(json, "compute_seconds", rank->compute_seconds);
        tr_json_integer(json, "contributions", rank->contributions);
        tr_json_close_object(json);
    }
    tr_json_close_array(json);
    if (statistics->asynchronous) {
        int bins = statistics->staleness_bins;
        while (bins > 0 && statistics->staleness[bins - 1] == 0) bins--;
        tr_json_open_array(json, "staleness");
        for (int i = 0; i < bins; i++) tr_json_integer(json, NULL, statistics->staleness[i]);
        tr_json_close_array(json);
        tr_json_integer(json, "dropped", statistics->dropped);
    }
    tr_json_close_object(json);
}
