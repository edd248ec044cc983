/* From the program's arguments to its exit code. */
#ifndef CLI_DISPATCH_H
#define CLI_DISPATCH_H

#include "cli/program/exit_codes.h"

/* Runs the command in argv[1..] and returns the exit code; a failure is printed as "trireme NAME:
   message". `environment`: "NAME=value", ends with NULL. All output has been written on return. */
enum cli_exit cli_dispatch(int argc, const char *const *argv, const char *const *environment);

#endif
