#include "cli/program/command_help.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/terminal/output.h"
#include "cli/terminal/terminal.h"

#include <string.h>
#include <unistd.h>

#define NAME_COLUMN 16
#define WIDTH       100 /* columns of --help in a file, and at most */

void cli_help_add_list(struct tr_text *text, const struct cli_command *const *list)
{
    for (; *list; list++) {
        size_t length = strlen((*list)->name);
        tr_text_addf(text, "  %s", (*list)->name);
        tr_text_pad(text, ' ', length < NAME_COLUMN ? NAME_COLUMN - length : 1);
        tr_text_addf(text, "%s\n", (*list)->summary);
    }
}

static tr_status help_group(const struct cli_command *command, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_text_addf(&text, "Usage: trireme %s COMMAND [options]\n\n%s\n\nCommands:\n", command->name,
                 command->about);
    cli_help_add_list(&text, command->children);
    return tr_text_finish(&text, out);
}

static tr_status help_command(const struct cli_command *command, int width, char **out)
{
    if (command->children) return help_group(command, out);
    char *name = tr_format("trireme %s", command->name);
    if (!name) return TR_ENOMEM;
    tr_status status = tr_options_help_in(name, command->about, command->options, command->option_count,
                                          command->groups, width, out);
    tr_free(name);
    return status;
}

tr_status cli_help_print(const struct cli_command *command)
{
    char *text;
    int width = cli_terminal_fold(STDOUT_FILENO);
    TR_TRY(help_command(command, width <= 0 || width > WIDTH ? WIDTH : width, &text));
    cli_print_lines(text);
    return TR_OK;
}
