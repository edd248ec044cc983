/* trireme version */
#include "cli/program/commands.h"
#include "cli/terminal/output.h"

#include "trireme/trireme.h"

struct options {
    struct cli_common common;
};

static const struct tr_option table[] = {CLI_OPTION_HELP(struct options)};

static tr_status run(const void *options)
{
    (void)options;
    cli_printf("trireme %s\n", tr_version());
    return TR_OK;
}

const struct cli_command cli_version = {
    .name = "version",
    .summary = "print the version",
    .about = "Prints the version of the program.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
