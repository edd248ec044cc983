#include "cli/train/report_json.h"

#include "cli/program/exit_codes.h"
#include "cli/terminal/output.h"
#include "train/observe/journal.h"

#include "trireme/trireme.h"

void cli_json_start(const struct cli_facts *facts, const char *command)
{
    struct tr_json_writer json;
    tr_json_begin(&json, false);
    tr_journal_add_start(&json, &facts->info, facts->out, command);
    cli_print_json(&json);
}

void cli_json_event(const struct cli_facts *facts, const struct tr_train_event *event)
{
    struct tr_json_writer json;
    if (tr_journal_add_event(&json, facts->info.classification, event)) cli_print_json(&json);
}

void cli_json_end(const struct cli_facts *facts, const tr_trainer *trainer, tr_status status,
                  const struct tr_train_info *now, const char *hash)
{
    struct tr_json_writer json;
    struct tr_train_statistics statistics = TR_TRAIN_STATISTICS_INIT;
    const struct tr_journal_end end = {
        .status = status,
        .exit = cli_exit_of(status),
        .message = tr_error_message(),
        .step = now->step,
        .seconds = facts->last.seconds,
        .examples_per_second = cli_facts_speed(facts),
        .tokens_per_second = cli_facts_speed(facts) * now->tokens_per_example,
        .hash = hash,
        .checkpoint = facts->checkpoint ? facts->checkpoint : "",
        .best = now->best_step >= 0 ? now : NULL,
        .statistics = *hash && tr_trainer_statistics(trainer, &statistics) == TR_OK ? &statistics : NULL,
    };
    tr_json_begin(&json, false);
    tr_journal_add_end(&json, &end);
    cli_print_json(&json);
}
