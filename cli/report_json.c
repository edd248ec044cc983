#include "report_json.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "exit_codes.h"
#include "output.h"
#include "statistics.h"

#include <math.h>
#include <unistd.h>

#include "trireme/trireme.h"

/* Writes the object as a line, to the journal and where it was asked for. A line that does not fit into
   memory is left out. */
static void finish(struct cli_report *report, struct tr_json_writer *json)
{
    char *line;
    if (tr_json_finish(json, &line) != TR_OK) return;
    if (report->log == CLI_LOG_JSON) puts(line);
    cli_journal_line(&report->journal, line);
    tr_free(line);
}

/* When, where and how the run was started. */
static void add_origin(const struct cli_report *report, struct tr_json_writer *json)
{
    char time[TR_CLOCK_TEXT], host[256] = "";
    char *command = cli_journal_command(report->info.ranks);
    gethostname(host, sizeof host - 1);
    tr_json_text(json, "time", tr_clock_text(tr_clock_wall(), time));
    tr_json_text(json, "host", host);
    tr_json_text(json, "command", command ? command : "");
    tr_free(command);
}

void cli_json_start(struct cli_report *report)
{
    const struct tr_train_info *info = &report->info;
    struct tr_json_writer json;
    tr_json_begin(&json, false);
    tr_json_text(&json, "event", "start");
    tr_json_text(&json, "version", tr_version());
    tr_json_text(&json, "name", info->name);
    tr_json_text(&json, "model", info->model);
    tr_json_text(&json, "device", info->device);
    tr_json_text(&json, "out", report->out);
    tr_json_text(&json, "resumed", info->resumed);
    tr_json_integer(&json, "seed", (int64_t)info->seed);
    tr_json_integer(&json, "parameters", info->parameters);
    tr_json_integer(&json, "kept", info->kept);
    tr_json_integer(&json, "memory", info->memory);
    tr_json_integer(&json, "train_examples", info->train_examples);
    tr_json_integer(&json, "test_examples", info->test_examples);
    tr_json_integer(&json, "batch", info->batch);
    tr_json_integer(&json, "microbatches", info->microbatches);
    tr_json_integer(&json, "steps", info->steps);
    tr_json_integer(&json, "steps_per_epoch", info->steps_per_epoch);
    tr_json_integer(&json, "step", info->step);
    tr_json_text(&json, "settings", info->digest);
    tr_json_text(&json, "strategy", info->strategy);
    tr_json_integer(&json, "ranks", info->ranks);
    add_origin(report, &json);
    finish(report, &json);
}

static void add_figures(const struct cli_report *report, struct tr_json_writer *json,
                        const struct tr_train_event *event)
{
    tr_json_integer(json, "step", event->step);
    tr_json_integer(json, "steps", event->steps);
    tr_json_double(json, "epoch", event->epoch);
    tr_json_double(json, "loss", event->loss);
    if (report->info.classification) tr_json_double(json, "accuracy", event->accuracy);
    tr_json_integer(json, "examples", event->examples);
}

void cli_json_event(struct cli_report *report, const struct tr_train_event *event)
{
    struct tr_json_writer json;
    switch (event->kind) {
    case TR_EVENT_STEP:
        tr_json_begin(&json, false);
        tr_json_text(&json, "event", "step");
        add_figures(report, &json, event);
        tr_json_double(&json, "rate", event->rate);
        if (!isnan(event->gradient_norm)) tr_json_double(&json, "gradient_norm", event->gradient_norm);
        tr_json_double(&json, "seconds", event->seconds);
        tr_json_double(&json, "examples_per_second", event->examples_per_second);
        break;
    case TR_EVENT_EVALUATION:
        tr_json_begin(&json, false);
        tr_json_text(&json, "event", "evaluation");
        tr_json_text(&json, "set", event->name);
        add_figures(report, &json, event);
        break;
    case TR_EVENT_CHECKPOINT:
        tr_json_begin(&json, false);
        tr_json_text(&json, "event", "checkpoint");
        tr_json_integer(&json, "step", event->step);
        tr_json_text(&json, "path", event->name);
        tr_json_text(&json, "hash", event->hash);
        break;
    case TR_EVENT_WARNING:
        tr_json_begin(&json, false);
        tr_json_text(&json, "event", "warning");
        tr_json_integer(&json, "step", event->step);
        tr_json_text(&json, "message", event->name);
        break;
    default: /* progress is for people; the end has more to say, see cli_json_end() */
        return;
    }
    finish(report, &json);
}

void cli_json_end(struct cli_report *report, tr_status status, int64_t step, const char *hash)
{
    struct tr_json_writer json;
    tr_json_begin(&json, false);
    tr_json_text(&json, "event", "end");
    tr_json_text(&json, "status", tr_status_name(status));
    tr_json_integer(&json, "exit", cli_exit_of(status));
    if (status != TR_OK) tr_json_text(&json, "message", tr_error_message());
    tr_json_integer(&json, "step", step);
    tr_json_double(&json, "seconds", report->last.seconds);
    tr_json_double(&json, "examples_per_second", cli_report_speed(report));
    if (*hash) tr_json_text(&json, "hash", hash);
    if (report->checkpoint) tr_json_text(&json, "checkpoint", report->checkpoint);
    struct tr_train_statistics statistics;
    if (*hash && tr_trainer_statistics(report->trainer, &statistics) == TR_OK)
        cli_statistics_json(&statistics, &json);
    finish(report, &json);
}
