#include "cli/program/dispatch.h"

#include "base/fail.h"
#include "base/text/text.h"
#include "cli/program/arguments.h"
#include "cli/program/command_help.h"
#include "cli/program/commands.h"
#include "cli/terminal/output.h"

#include <string.h>

static bool wants_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* The option that begins `text` as "key`", or as "no_key`" for a flag that is on, NULL if none does. */
static const struct tr_option *option_named(const struct cli_command *command, const char *text)
{
    size_t length = strcspn(text, "`");
    for (int32_t i = 0; text[length] && i < command->option_count; i++) {
        const struct tr_option *option = &command->options[i];
        bool flag = !(option->flags & TR_OPTION_POSITIONAL);
        bool on = option->type == TR_OPTION_BOOL && strcmp(option->fallback, "true") == 0;
        size_t skipped = on && strncmp(text, "no_", 3) == 0 ? 3 : 0, own = length - skipped;
        if (flag && strlen(option->key) == own && memcmp(option->key, text + skipped, own) == 0)
            return option;
    }
    return NULL;
}

/* The library calls settings by their names, in backquotes; here they are flags: `resume_changed` becomes
   `--resume-changed`. Returns `status` with the message changed so. */
static tr_status name_flags(const struct cli_command *command, tr_status status)
{
    struct tr_text text = TR_TEXT_INIT;
    for (const char *at = tr_error_message(); *at; at++) {
        tr_text_add_bytes(&text, at, 1);
        if (*at != '`' || !option_named(command, at + 1)) continue;
        tr_text_add(&text, "--");
        for (at++; *at != '`'; at++) tr_text_add(&text, *at == '_' ? "-" : (char[2]){*at, '\0'});
        tr_text_add(&text, "`");
    }
    if (text.bytes && !text.failed) tr_fail(status, "%s", text.bytes);
    tr_text_release(&text);
    return status;
}

static tr_status run_command(const struct cli_command *command, int argc, const char *const *argv,
                             const char *const *environment)
{
    if (command->children) {
        if (argc > 0 && !wants_help(argv[0]))
            return tr_fail(TR_EINVAL,
                           "unknown option \"%s\"; give a command first: `trireme help %s` lists them",
                           argv[0], command->name);
        return cli_help_print(command);
    }
    void *options;
    TR_TRY(cli_command_read(command, argc, argv, environment, &options));
    tr_status status =
        ((const struct cli_common *)options)->help ? cli_help_print(command) : command->run(options);
    cli_command_release(command, &options);
    return status == TR_OK ? TR_OK : name_flags(command, status);
}

/* The command that the first words name; --help and --version stand for the commands of these names. */
static tr_status dispatch(int argc, const char *const *argv, const char *const *environment)
{
    const struct cli_command *command = NULL;
    int used = 1;
    if (argc < 2 || wants_help(argv[1])) {
        command = &cli_help;
    } else if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        command = &cli_version;
    } else if (cli_is_verbose(argv[1])) {
        return tr_fail(TR_EINVAL, "unknown option \"%s\"; `trireme --version`, or -V, says the version",
                       argv[1]);
    } else if (argv[1][0] == '-') {
        return tr_fail(TR_EINVAL, "unknown option \"%s\"; options follow the command, see `trireme help`",
                       argv[1]);
    } else {
        command = cli_command_find(argv + 1, argc - 1, &used);
        if (!command) return TR_EINVAL;
    }
    cli_output_name(command->name);
    int skip = argc < 2 ? argc : 1 + used;
    return run_command(command, argc - skip, argv + skip, environment);
}

enum cli_exit cli_dispatch(int argc, const char *const *argv, const char *const *environment)
{
    tr_status status = dispatch(argc, argv, environment);
    /* A failure of the output counts only if nothing else failed. */
    if (status != TR_OK) {
        const char *message = tr_error_message();
        cli_message("%s", *message ? message : tr_status_name(status));
        cli_output_end();
        return cli_exit_of(status);
    }
    status = cli_output_end();
    if (status != TR_OK) cli_message("%s", tr_error_message());
    return cli_exit_of(status);
}
