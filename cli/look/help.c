/* trireme help: the overview, and the help of a command. */
#include "cli/manual/manual.h"
#include "cli/program/command_help.h"
#include "cli/program/commands.h"
#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct options {
    struct cli_common common;
    struct tr_string_list command;
    char *man;
};

static const struct tr_option table[] = {
    {.key = "command",
     .type = TR_OPTION_STRING_LIST,
     .offset = offsetof(struct options, command),
     .fallback = "",
     .help =
         "command to explain, for instance train, or data list; cheatsheet: common tasks with their commands",
     .flags = TR_OPTION_POSITIONAL},
    {.key = "man",
     .type = TR_OPTION_STRING,
     .offset = offsetof(struct options, man),
     .fallback = "",
     .help = "write the pages of the manual to this directory, for man(1)",
     .value_name = "DIR"},
    CLI_OPTION_HELP(struct options),
};

static tr_status help_overview(char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "Usage: trireme COMMAND [options]\n\n"
                       "Trains neural networks; equal jobs end with equal weights, bit for bit.\n\n"
                       "Commands:\n");
    cli_help_add_list(&text, cli_commands);
    tr_text_add(&text,
                "\n`trireme help COMMAND` or `trireme COMMAND --help` lists the options of a command,\n"
                "`trireme help cheatsheet` lists commands by task.\n\n"
                "To begin with:\n"
                "  trireme train mnist-quick\n"
                "  trireme predict runs/mnist-quick --set-name test --index 0 --show\n\n"
                "Exit codes:\n");
#define ADD_CODE(name, code, meaning) tr_text_addf(&text, "  %-5d%s\n", code, meaning);
    CLI_EXIT_CODES(ADD_CODE)
#undef ADD_CODE
    return tr_text_finish(&text, out);
}

/* Pages have the day of SOURCE_DATE_EPOCH if it is set, for repeatable builds, otherwise today. What is no
   time would make them differ from day to day. */
static tr_status write_manual(const char *directory)
{
    const char *given = getenv("SOURCE_DATE_EPOCH");
    int64_t seconds = time(NULL);
    const bool known = !given || !*given || !tr_text_int64(given, &seconds);
    const time_t at = (time_t)seconds;
    char date[16];
    struct tm parts;
    if (!known || !gmtime_r(&at, &parts) || strftime(date, sizeof date, "%Y-%m-%d", &parts) == 0)
        return tr_fail(TR_EINVAL, "SOURCE_DATE_EPOCH is \"%s\", which is no time", given ? given : "");
    return cli_manual_write(directory, date);
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    char *text;
    int used, count = options->command.count;
    if (options->man) return write_manual(options->man);
    if (count == 1 && strcmp(options->command.item[0], "cheatsheet") == 0) {
        TR_TRY(cli_cheatsheet(&text));
        cli_print_lines(text);
        return TR_OK;
    }
    if (count == 0) {
        TR_TRY(help_overview(&text));
        cli_print_lines(text);
        return TR_OK;
    }
    const struct cli_command *command =
        cli_command_find((const char *const *)options->command.item, count, &used);
    if (!command) return TR_EINVAL;
    if (used < count)
        return tr_fail(TR_EINVAL, "`%s` has no command \"%s\"; see `trireme help %s`", command->name,
                       options->command.item[used], command->name);
    return cli_help_print(command);
}

const struct cli_command cli_help = {
    .name = "help",
    .summary = "explain a command",
    .about = "Prints the list of commands, or the options of one. `trireme help cheatsheet` prints common "
             "tasks with their commands.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
