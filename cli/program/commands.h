/* The commands, one file each. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/program/command.h"

extern const struct cli_command cli_train, cli_launch, cli_compare, cli_plan, cli_sweep, cli_eval,
    cli_predict, cli_generate, cli_inspect, cli_export, cli_import, cli_report_runs, cli_diff, cli_data,
    cli_models, cli_devices, cli_completion, cli_version, cli_help;

#endif
