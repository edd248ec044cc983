/* A command in this process, some of whose functions are replaced by ones that write down what they are asked
 * for.
 */
#ifndef TESTS_CLI_NOTING_H
#define TESTS_CLI_NOTING_H

#include "cli/program/commands.h"

extern char noted[4096];

/* Adds to `noted`; what does not fit is cut. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* `text`, or "-" for NULL. */
const char *noted_word(const char *text);

/* Runs a command with these words, which blanks part, after `noted` is emptied; its status. Fails the test if
   the words are refused, or memory is left. */
tr_status run_noted(const struct cli_command *command, const char *words);

#endif
