#include "cli/train/report_json.h"

#include "base/alloc.h"
#include "cli/program/exit_codes.h"
#include "cli/terminal/output.h"
#include "train/observe/journal.h"

#include "trireme/trireme.h"

/* Prints the object as a line. One that does not fit into memory is left out. */
static void print(struct tr_json_writer *json)
{
    char *line;
    if (tr_json_finish(json, &line) != TR_OK) return;
    cli_printf("%s\n", line);
    tr_free(line);
}

void cli_json_start(struct cli_report *report, const char *command)
{
    struct tr_json_writer json;
    if (report->log != CLI_LOG_JSON) return;
    tr_json_begin(&json, false);
    tr_journal_add_start(&json, &report->info, report->out, command);
    print(&json);
}

void cli_json_event(struct cli_report *report, const struct tr_train_event *event)
{
    struct tr_json_writer json;
    if (report->log == CLI_LOG_JSON && tr_journal_add_event(&json, report->info.classification, event))
        print(&json);
}

void cli_json_end(struct cli_report *report, tr_status status, const struct tr_train_info *now,
                  const char *hash)
{
    struct tr_json_writer json;
    struct tr_train_statistics statistics = TR_TRAIN_STATISTICS_INIT;
    if (report->log != CLI_LOG_JSON) return;
    const struct tr_journal_end end = {
        .status = status,
        .exit = cli_exit_of(status),
        .message = tr_error_message(),
        .step = now->step,
        .seconds = report->last.seconds,
        .examples_per_second = cli_report_speed(report),
        .tokens_per_second = cli_report_speed(report) * now->tokens_per_example,
        .hash = hash,
        .checkpoint = report->checkpoint ? report->checkpoint : "",
        .best = now->best_step >= 0 ? now : NULL,
        .statistics =
            *hash && tr_trainer_statistics(report->trainer, &statistics) == TR_OK ? &statistics : NULL,
    };
    tr_json_begin(&json, false);
    tr_journal_add_end(&json, &end);
    print(&json);
}
