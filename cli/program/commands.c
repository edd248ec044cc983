#include "cli/program/commands.h"

#include "base/fail.h"
#include "base/text/text.h"

#include <string.h>

const struct cli_command *const cli_commands[] = {
    &cli_train,       &cli_launch,   &cli_compare,    &cli_plan,    &cli_sweep,   &cli_eval,
    &cli_predict,     &cli_generate, &cli_inspect,    &cli_log,     &cli_export,  &cli_import,
    &cli_report_runs, &cli_diff,     &cli_verify,     &cli_dispute, &cli_receipt, &cli_data,
    &cli_models,      &cli_devices,  &cli_completion, &cli_version, &cli_help,    NULL,
};

#define COMMANDS_MAX 32

/* The last word of a command's name. */
static const char *own_name(const struct cli_command *command)
{
    const char *blank = strrchr(command->name, ' ');
    return blank ? blank + 1 : command->name;
}

static const struct cli_command *find_among(const struct cli_command *const *list, const char *word,
                                            const char *parent)
{
    const char *names[COMMANDS_MAX];
    int32_t count = 0;
    for (; list[count]; count++) {
        names[count] = own_name(list[count]);
        if (strcmp(names[count], word) == 0) return list[count];
    }
    const char *nearest = tr_text_nearest(word, names, count);
    const char *blank = *parent ? " " : "";
    if (nearest)
        tr_fail(TR_EINVAL, "unknown command \"%s\"; did you mean `trireme %s%s%s`?", word, parent, blank,
                nearest);
    else
        tr_fail(TR_EINVAL, "unknown command \"%s\"; `trireme help%s%s` lists them", word, blank, parent);
    return NULL;
}

const struct cli_command *cli_command_find(const char *const *words, int count, int *used)
{
    *used = 0;
    if (count == 0) return NULL;
    const struct cli_command *command = find_among(cli_commands, words[0], "");
    if (!command) return NULL;
    *used = 1;
    if (!command->children || count == 1 || words[1][0] == '-') return command;
    *used = 2;
    return find_among(command->children, words[1], command->name);
}
