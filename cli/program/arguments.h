/* The words after a command's name, parsed by its option table. */
#ifndef CLI_ARGUMENTS_H
#define CLI_ARGUMENTS_H

#include "cli/program/command.h"

/* Reads a command's options from defaults, `environment` ("NAME=value", ends with NULL) and the arguments
   after its name. *out is returned, free with cli_command_release(). TR_EINVAL. */
tr_status cli_command_read(const struct cli_command *command, int argc, const char *const *argv,
                           const char *const *environment, void **out);
/* Accepts NULL, nulls the pointer. */
void cli_command_release(const struct cli_command *command, void **options);

/* Options for more output or the version in other programs: -v, --verbose. */
bool cli_is_verbose(const char *word);

/* A time as "90", "90s", "5m" or "1.5h", in seconds. Returns what is wrong with the text, as in "is
   negative", or NULL. */
const char *cli_argument_seconds(const char *text, double *out);

#endif
