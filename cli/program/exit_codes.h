/* The meaning of the command's exit codes, in one table: the codes, `trireme help` and
 * docs/reference/command.md follow it. */
#ifndef CLI_EXIT_CODES_H
#define CLI_EXIT_CODES_H

#include "trireme/status.h"

/* name, code, meaning */
#define CLI_EXIT_CODES(X)                                                                                    \
    X(DONE, 0, "done")                                                                                       \
    X(FAILED, 1, "failed while running: disk, memory, network or output; may work when repeated")            \
    X(WRONG, 2, "wrong usage, model file or input: correct it first")                                        \
    X(INTERRUPTED, 3, "interrupted; the state was saved, train --resume continues from it")                  \
    X(NOT_FINITE, 4, "the loss or a gradient became NaN or infinite; the last good checkpoint stays")        \
    X(DAMAGED, 5, "a checkpoint or data file is damaged: its checksum does not match")                       \
    X(DIFFERS, 6, "a receipt does not match: the repeated run had other results; or two receipts differ")    \
    X(CANNOT, 7, "no verification or decision: data, files or versions are missing or differ")               \
    X(INTERRUPTED_AT_ONCE, 130,                                                                              \
      "interrupted twice, or before anything was done (143: terminated); the step under way is lost")

enum cli_exit {
#define CLI_EXIT_ENUM(name, code, meaning) CLI_EXIT_##name = (code),
    CLI_EXIT_CODES(CLI_EXIT_ENUM)
#undef CLI_EXIT_ENUM
};

/* The exit code for the status of a command. */
enum cli_exit cli_exit_of(tr_status status);

#endif
