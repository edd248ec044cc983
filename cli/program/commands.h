/* The commands, one file each, and the lookup by words. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/program/command.h"

extern const struct cli_command cli_train, cli_launch, cli_compare, cli_plan, cli_sweep, cli_eval,
    cli_predict, cli_generate, cli_inspect, cli_log, cli_export, cli_import, cli_report_runs, cli_diff,
    cli_verify, cli_dispute, cli_receipt, cli_data, cli_models, cli_devices, cli_completion, cli_version,
    cli_help;

/* All commands, ends with NULL. */
extern const struct cli_command *const cli_commands[];

/* The command called by `words` [count] ("data", "list"); *used becomes the number of words in its name.
   NULL, with a message that has the nearest name, if there is none. Without any words NULL without a
   message. */
const struct cli_command *cli_command_find(const char *const *words, int count, int *used);

#endif
