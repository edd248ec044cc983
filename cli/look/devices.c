/* trireme devices */
#include "cli/program/commands.h"
#include "cli/data/cache.h"
#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "trireme/trireme.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
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

/* ---- the test, in a process of its own: drivers have been seen to end the one that they are in ---- */

static bool send_all(int descriptor, const void *bytes, size_t size)
{
    for (const char *at = bytes; size > 0;) {
        ssize_t sent = write(descriptor, at, size);
        if (sent < 0 && errno != EINTR) return false;
        if (sent < 0) continue;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* Sends a status, and the list or the message. */
static bool test(int descriptor, const char *programs, bool json)
{
    char *text = NULL;
    tr_status status = tr_devices_tested(programs, json, &text);
    const char *said = status == TR_OK ? text : tr_error_message();
    bool sent = send_all(descriptor, &status, sizeof status) && send_all(descriptor, said, strlen(said));
    tr_free(text);
    return sent;
}

static bool receive_all(int descriptor, struct tr_text *out)
{
    for (;;) {
        char bytes[4096];
        ssize_t got = read(descriptor, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got == 0;
        tr_text_add_bytes(out, bytes, (size_t)got);
    }
}

/* What was received. */
static tr_status conclude(char *received, char **text)
{
    tr_status status;
    memcpy(&status, received, sizeof status);
    memmove(received, received + sizeof status, strlen(received + sizeof status) + 1);
    if (status == TR_OK) {
        *text = received;
        return TR_OK;
    }
    status = tr_fail(status, "%s", received);
    tr_free(received);
    return status;
}

static tr_status list(const char *programs, bool json, char **text)
{
    struct tr_text answer = TR_TEXT_INIT;
    char *received = NULL;
    int end[2], how = 0;
    if (pipe(end) != 0) return tr_fail(TR_EIO, "a pipe cannot be made: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) _exit(!test(end[1], programs, json));
    close(end[1]);
    bool well = child > 0 && receive_all(end[0], &answer);
    close(end[0]);
    while (child > 0 && waitpid(child, &how, 0) < 0 && errno == EINTR) continue;
    if (well && how == 0 && answer.length > sizeof(tr_status)) {
        tr_status status = tr_text_finish(&answer, &received);
        return status == TR_OK ? conclude(received, text) : status;
    }
    tr_text_release(&answer);
    if (child < 0) return tr_devices_tested(programs, json, text);
    cli_message(
        "warning: a driver ended the test of the devices (%s): they are listed untested; its own message, "
        "above, may name it",
        WIFSIGNALED(how) ? strsignal(WTERMSIG(how)) : "by an exit");
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
