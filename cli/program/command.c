/* The list of commands, and what all have in common. */
#include "cli/program/command.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "cli/program/commands.h"
#include "cli/terminal/output.h"
#include "cli/program/missing_model.h"
#include "cli/program/shipped.h"

#include <stdio.h>
#include <string.h>

const struct cli_command *const cli_commands[] = {
    &cli_train,    &cli_launch,  &cli_compare,    &cli_plan,    &cli_sweep,       &cli_eval, &cli_predict,
    &cli_generate, &cli_inspect, &cli_export,     &cli_import,  &cli_report_runs, &cli_diff, &cli_data,
    &cli_models,   &cli_devices, &cli_completion, &cli_version, &cli_help,        NULL,
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

/* ---- running ---- */

static bool wants_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* Copies the arguments; where they end with another command, "--" goes before its name, and *passed is that
   command, else NULL. Returns their number; `out` has room for one more than `argc`. */
static int end_options(const struct cli_command *command, int argc, const char *const *argv, const char **out,
                       const struct cli_command **passed)
{
    int count = 0;
    bool ended = !command->passes_arguments;
    *passed = NULL;
    for (int i = 0; i < argc; i++) {
        for (int k = 0; !ended && cli_commands[k]; k++)
            if (strcmp(argv[i], cli_commands[k]->name) == 0) {
                *passed = cli_commands[k];
                out[count++] = "--";
                ended = true;
            }
        ended |= strcmp(argv[i], "--") == 0;
        out[count++] = argv[i];
    }
    return count;
}

/* The first word that is no option of the command may be one of the command behind it. Returns `status`, with
   a message that says so where it is. */
static tr_status find_misplaced(const struct cli_command *command, const struct cli_command *passed, int argc,
                                const char *const *argv, tr_status status)
{
    int at = tr_options_unknown(command->options, command->option_count, argc, argv);
    if (at < 0 || tr_options_unknown(passed->options, passed->option_count, 1, argv + at) == 0) return status;
    const char *word = argv[at];
    int length = (int)strcspn(word, "=");
    return tr_fail(status,
                   "%.*s is an option of `%s` and goes behind that word: `trireme %s %s ... %.*s` (see "
                   "`trireme %s --help`)",
                   length, word, passed->name, command->name, passed->name, length, word, passed->name);
}

/* What other programs take for "more words" and for their version. */
static bool is_verbose(const char *word)
{
    return strcmp(word, "-v") == 0 || strcmp(word, "--verbose") == 0;
}

static tr_status explain_verbose(const struct cli_command *command, int argc, const char *const *argv,
                                 tr_status status)
{
    int at = tr_options_unknown(command->options, command->option_count, argc, argv);
    if (at < 0 ||
        (!is_verbose(argv[at]) && strcmp(argv[at], "--version") != 0 && strcmp(argv[at], "-V") != 0))
        return status;
    return tr_fail(
        status,
        "unknown option %s; `trireme --version` says the version, and what a command can say it says: "
        "`trireme %s --help` lists its options",
        argv[at], command->name);
}

/* The path of the model file that was named. To look at, a run is as good. */
static tr_status find_model(const struct cli_command *command, char **model)
{
    tr_status status = cli_shipped_find_model(model);
    if (status == TR_ENOTFOUND && cli_model_lacks_suffix(*model)) return cli_model_check(*model);
    if (status != TR_OK) return status;
    return !*model || (command == &cli_inspect && tr_file_is_directory(*model)) ? TR_OK
                                                                                : cli_model_check(*model);
}

tr_status cli_command_read(const struct cli_command *command, int argc, const char *const *argv,
                           const char *const *environment, void **out)
{
    void *options = *out = tr_alloc_zero(1, command->options_size);
    const char **own = tr_alloc((size_t)argc + 1, sizeof *own);
    const struct cli_command *passed;
    tr_status status = options && own ? TR_OK : TR_ENOMEM;
    if (status != TR_OK) goto out;
    argc = end_options(command, argc, argv, own, &passed);
    TR_TRY_GOTO(tr_options_defaults(command->options, command->option_count, options), out);
    TR_TRY_GOTO(
        tr_options_environment(command->options, command->option_count, "TRIREME_", environment, options),
        out);
    status = tr_options_arguments(command->options, command->option_count, argc, own, options);
    if (passed && status == TR_EINVAL) status = find_misplaced(command, passed, argc, own, status);
    if (status == TR_EINVAL) status = explain_verbose(command, argc, own, status);
    if (status == TR_EINVAL && !strstr(tr_error_message(), "--help"))
        status = tr_fail(status, "%s (see `trireme %s --help`)", tr_error_message(), command->name);
    if (status == TR_OK && command->model && !((const struct cli_common *)options)->help)
        status = find_model(command, (char **)((char *)options + command->model));
out:
    if (status != TR_OK) cli_command_release(command, out);
    tr_free(own);
    return status;
}

void cli_command_release(const struct cli_command *command, void **options)
{
    if (*options) tr_options_release(command->options, command->option_count, *options);
    tr_free(*options);
    *options = NULL;
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
    } else if (is_verbose(argv[1])) {
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
    /* What went wrong with the output matters only where nothing else did. */
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
