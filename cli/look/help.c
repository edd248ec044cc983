/* trireme help: the overview, and the help of a command. */
#include "cli/program/commands.h"
#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"

#include <string.h>

struct options {
    struct cli_common common;
    struct tr_string_list command;
};

static const struct tr_option table[] = {
    {.key = "command",
     .type = TR_OPTION_STRING_LIST,
     .offset = offsetof(struct options, command),
     .fallback = "",
     .help = "command to explain, for instance train, or data list",
     .flags = TR_OPTION_POSITIONAL},
    CLI_OPTION_HELP(struct options),
};

#define NAME_COLUMN 16

static void add_list(struct tr_text *text, const struct cli_command *const *list)
{
    for (; *list; list++) {
        size_t length = strlen((*list)->name);
        tr_text_addf(text, "  %s", (*list)->name);
        tr_text_pad(text, ' ', length < NAME_COLUMN ? NAME_COLUMN - length : 1);
        tr_text_addf(text, "%s\n", (*list)->summary);
    }
}

tr_status cli_help_overview(char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "Usage: trireme COMMAND [options]\n\n"
                       "Trains neural networks with the same bits on any number of threads.\n\n"
                       "Commands:\n");
    add_list(&text, cli_commands);
    tr_text_add(&text,
                "\n`trireme help COMMAND` or `trireme COMMAND --help` lists the options of a command.\n\n"
                "To begin with:\n"
                "  trireme train mnist-quick\n"
                "  trireme predict runs/mnist-quick --set-name test --index 0 --show\n\n"
                "Exit codes:\n");
#define ADD_CODE(name, code, meaning) tr_text_addf(&text, "  %-4d%s\n", code, meaning);
    CLI_EXIT_CODES(ADD_CODE)
#undef ADD_CODE
    return tr_text_finish(&text, out);
}

static tr_status help_group(const struct cli_command *command, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_text_addf(&text, "Usage: trireme %s COMMAND [options]\n\n%s\n\nCommands:\n", command->name,
                 command->about);
    add_list(&text, command->children);
    return tr_text_finish(&text, out);
}

tr_status cli_help_command(const struct cli_command *command, char **out)
{
    if (command->children) return help_group(command, out);
    char *name = tr_format("trireme %s", command->name);
    if (!name) return TR_ENOMEM;
    tr_status status = tr_options_help(name, command->about, command->options, command->option_count, out);
    tr_free(name);
    return status;
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    char *text;
    int used, count = options->command.count;
    if (count == 0) {
        TR_TRY(cli_help_overview(&text));
    } else {
        const struct cli_command *command =
            cli_command_find((const char *const *)options->command.item, count, &used);
        if (!command) return TR_EINVAL;
        if (used < count)
            return tr_fail(TR_EINVAL, "`%s` has no command \"%s\"; see `trireme help %s`", command->name,
                           options->command.item[used], command->name);
        TR_TRY(cli_help_command(command, &text));
    }
    cli_print(text);
    return TR_OK;
}

const struct cli_command cli_help = {
    .name = "help",
    .summary = "explain a command",
    .about = "Prints the list of commands, or the options of one.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
