/* The help of a command, from its option table. */
#ifndef CLI_COMMAND_HELP_H
#define CLI_COMMAND_HELP_H

#include "base/text/text.h"
#include "cli/program/command.h"

/* Prints the text of `trireme help COMMAND`, for the terminal or file that it is written to. */
tr_status cli_help_print(const struct cli_command *command);
/* Adds a line for each command of `list`, which ends with NULL. */
void cli_help_add_list(struct tr_text *text, const struct cli_command *const *list);

#endif
