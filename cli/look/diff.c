/* trireme diff: whether two runs are equal, and where they diverge. */
#include "cli/program/commands.h"
#include "cli/terminal/output.h"

#include "base/fail.h"

#include "trireme/trireme.h"

struct options {
    struct cli_common common;
    char *run_a, *run_b;
};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    {.key = "run_a",
     .type = TR_OPTION_STRING,
     .offset = AT(run_a),
     .fallback = NULL,
     .help = "directory of a run",
     .flags = TR_OPTION_POSITIONAL},
    {.key = "run_b",
     .type = TR_OPTION_STRING,
     .offset = AT(run_b),
     .fallback = NULL,
     .help = "directory of another run",
     .flags = TR_OPTION_POSITIONAL},
    CLI_OPTION_HELP(struct options),
};
#undef AT

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    bool equal;
    char *text;
    TR_TRY(tr_diff(options->run_a, options->run_b, &equal, &text));
    cli_printf("%s", text);
    tr_text_free(text);
    if (!equal) cli_output_leave_with(1);
    return TR_OK;
}

const struct cli_command cli_diff = {
    .name = "diff",
    .summary = "compare two runs and name the first difference",
    .about = "Compares settings, hashes and, if both runs kept them (train --record-digests), digests of "
             "steps: names the first step, microbatch and tensor that differ. The exit code is 0 if the runs "
             "are equal, 1 if not or if one has not ended.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
