#include "cli/program/arguments.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "cli/program/commands.h"
#include "cli/program/missing_model.h"
#include "cli/program/shipped.h"

#include <stdio.h>
#include <string.h>

/* Copies the arguments. If they end with another command, "--" is put before its name, and *passed is that
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

/* The first word that is not an option of the command may be one of the command after it. Returns
   `status`, with a message about it in that case. */
static tr_status find_misplaced(const struct cli_command *command, const struct cli_command *passed, int argc,
                                const char *const *argv, tr_status status)
{
    int at = tr_options_unknown(command->options, command->option_count, argc, argv);
    if (at < 0 || tr_options_unknown(passed->options, passed->option_count, 1, argv + at) == 0) return status;
    const char *word = argv[at];
    int length = (int)strcspn(word, "=");
    return tr_fail(status,
                   "%.*s is an option of `%s`; write it after that word: `trireme %s %s ... %.*s` (see "
                   "`trireme %s --help`)",
                   length, word, passed->name, command->name, passed->name, length, word, passed->name);
}

bool cli_is_verbose(const char *word)
{
    return strcmp(word, "-v") == 0 || strcmp(word, "--verbose") == 0;
}

static tr_status explain_verbose(const struct cli_command *command, int argc, const char *const *argv,
                                 tr_status status)
{
    int at = tr_options_unknown(command->options, command->option_count, argc, argv);
    if (at < 0 ||
        (!cli_is_verbose(argv[at]) && strcmp(argv[at], "--version") != 0 && strcmp(argv[at], "-V") != 0))
        return status;
    return tr_fail(status,
                   "unknown option %s; `trireme --version` prints the version; `trireme %s --help` lists the "
                   "options of this command",
                   argv[at], command->name);
}

/* The path of the named model file, or of a run where one is allowed. */
static tr_status find_model(const struct cli_command *command, char **model)
{
    tr_status status = cli_shipped_find_model(model);
    if (status == TR_ENOTFOUND && cli_model_lacks_suffix(*model)) return cli_model_check(*model);
    if (status != TR_OK) return status;
    return !*model || (command->takes_runs && tr_file_is_directory(*model)) ? TR_OK : cli_model_check(*model);
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

const char *cli_argument_seconds(const char *text, double *out)
{
    static const struct {
        char letter;
        double seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
    char number[32];
    double value, unit = 1;
    size_t length = strlen(text);
    for (size_t i = 0; i < sizeof units / sizeof units[0] && length > 0; i++)
        if (text[length - 1] == units[i].letter) {
            unit = units[i].seconds;
            length--;
            break;
        }
    if (length >= sizeof number) return "is too long";
    snprintf(number, sizeof number, "%.*s", (int)length, text);
    const char *wrong = tr_text_double(number, &value);
    if (wrong) return wrong;
    if (value < 0) return "is negative";
    *out = value * unit;
    return NULL;
}
