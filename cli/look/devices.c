/* trireme devices */
#include "cli/program/commands.h"
#include "cli/data/cache.h"
#include "cli/program/exit_codes.h"
#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "trireme/trireme.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct options {
    struct cli_common common;
    struct cli_data_cache cache;
    bool json;
};

static const struct tr_option table[] = {
    CLI_OPTION_CACHE_DIRECTORY(struct options),
    CLI_OPTION_JSON(struct options),
    CLI_OPTION_HELP(struct options),
};

/* A driver may end the process that it is in. So a child goes on in place of this process, which ends as the
 * child does. Returns in the child, with 0; in this process only if a signal ended the child, with its
 * number. */
static int go_on_apart(void)
{
    const pid_t parent = getpid();
    int how;
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) return 0;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(CLI_EXIT_FAILED);
        return 0;
    }
    while (waitpid(child, &how, 0) < 0) continue;
    if (WIFEXITED(how)) _exit(WEXITSTATUS(how));
    return WTERMSIG(how);
}

static tr_status list(const char *programs, bool json, char **text)
{
    const int ended_by = go_on_apart();
    if (ended_by == 0) return tr_devices_tested(programs, json, text);
    cli_message(
        "warning: a driver ended the test of the devices (%s): they are listed untested; its own message, "
        "above, may name it",
        strsignal(ended_by));
    return json ? tr_devices_json(text) : tr_devices(text);
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    const struct cli_data_cache cache = {.use = true, .directory = options->cache.directory};
    char *text, *directory, *programs;
    TR_TRY(cli_data_cache_directory(&cache, &directory));
    tr_status status = cli_program_cache_directory(directory, &programs);
    if (status == TR_OK) status = list(programs, options->json, &text);
    tr_free(programs);
    tr_free(directory);
    if (status == TR_OK) (options->json ? cli_print : cli_print_lines)(text);
    return status;
}

const struct cli_command cli_devices = {
    .name = "devices",
    .summary = "list the processors and GPUs that can compute here",
    .about =
        "Lists the devices of this machine, the instruction sets of the cpu device, and the caches of "
        "the processors with the number of processors that share them. All devices and instruction sets "
        "compute the same bits; they differ in speed. A device with a driver (CUDA, OpenCL) is tested for "
        "that, and refused if it does not.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
