/* trireme completion: scripts for shells, and the answers that these ask for. */
#include "cli/program/commands.h"
#include "cli/program/texts.h"
#include "cli/complete/complete.h"
#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

enum shell { BASH, ZSH, FISH };

struct options {
    struct cli_common common;
    enum shell shell;
    struct tr_string_list words;
};

static const struct tr_choice shells[] = {
    {"bash", BASH, NULL}, {"zsh", ZSH, NULL}, {"fish", FISH, NULL}, {0}};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    {.key = "shell",
     .type = TR_OPTION_CHOICE,
     .offset = AT(shell),
     .choices = shells,
     .help = "shell that the script is for",
     .flags = TR_OPTION_POSITIONAL},
    {.key = "words",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(words),
     .fallback = "",
     .help = "after --, the words of a command line up to the cursor, for the script",
     .flags = TR_OPTION_POSITIONAL,
     .value_name = "WORD"},
    CLI_OPTION_HELP(struct options),
};
#undef AT

/* A line with the kind of paths that the shell adds, and then the candidates; bash shows no descriptions. */
static tr_status answer(const struct options *options)
{
    static const char *const paths[] = {[CLI_COMPLETE_NONE] = "words",
                                        [CLI_COMPLETE_FILES] = "files",
                                        [CLI_COMPLETE_DIRECTORIES] = "directories"};
    struct cli_candidates found;
    tr_status status = cli_complete((const char *const *)options->words.item, options->words.count, &found);
    if (status == TR_OK) cli_printf("%s\n", paths[found.paths]);
    for (const char *line = found.lines.bytes; status == TR_OK && line && *line;) {
        size_t length = strcspn(line, "\n"), name = strcspn(line, "\t");
        bool alone = options->shell == BASH || line[name + 1] == '\n';
        cli_printf("%.*s\n", (int)(alone ? name : length), line);
        line += length + 1;
    }
    tr_text_release(&found.lines);
    return status;
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    /* The scripts of cli/complete. */
    static const char *const scripts[] = {[BASH] = "bash", [ZSH] = "zsh", [FISH] = "fish"};
    char *script;
    if (options->words.count > 0) return answer(options);
    TR_TRY(cli_text(scripts[options->shell], &script));
    cli_print(script);
    return TR_OK;
}

const struct cli_command cli_completion = {
    .name = "completion",
    .summary = "print a script that completes words in a shell",
    .about = "Prints a script for bash, zsh or fish. With it, Tab completes commands, options and their "
             "values: shipped models and those here, runs, keys of --set with their values, strategies with "
             "their options. In bash: `source <(trireme completion bash)`, in zsh the same with zsh, in "
             "fish: `trireme completion fish | source`. Packages install the scripts.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
