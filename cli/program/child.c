#include "cli/program/child.h"

#include "cli/program/exit_codes.h"
#include "cli/terminal/output.h"
#include "cli/program/signals.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_SECONDS  0.1  /* between two looks at clock and signals */
#define GRACE_SECONDS 60.0 /* for finishing and saving a step */
#define LINE_MOST     (1 << 20)

/* ---- arguments ---- */

void cli_arguments_add(struct cli_arguments *arguments, const char *format, ...)
{
    char text[4096];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    char **more = tr_realloc(arguments->item, (size_t)arguments->count + 2, sizeof *more);
    if (more) arguments->item = more;
    char *copy = more && length >= 0 && (size_t)length < sizeof text ? tr_strdup(text) : NULL;
    arguments->failed |= copy == NULL;
    if (!copy) return;
    more[arguments->count++] = copy;
    more[arguments->count] = NULL;
}

void cli_arguments_release(struct cli_arguments *arguments)
{
    for (int i = 0; i < arguments->count; i++) tr_free(arguments->item[i]);
    tr_free(arguments->item);
}

void cli_arguments_add_self(struct cli_arguments *arguments)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    cli_arguments_add(arguments, "%s", self);
}

/* ---- a child ---- */

/* In the child; returns only as an exit code. */
static void become(char *const *arguments, pid_t parent, const int output[2], const int error[2])
{
    int input = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(CLI_EXIT_FAILED);
    unsetenv("TRIREME_TRANSPORT");
    unsetenv("TRIREME_LOCAL");
    unsetenv("TRIREME_LAUNCHED");
    unsetenv("TRIREME_THREADS");
    if (dup2(input, STDIN_FILENO) >= 0 && dup2(output[1], STDOUT_FILENO) >= 0 &&
        dup2(error[1], STDERR_FILENO) >= 0)
        execv(arguments[0], arguments);
    _exit(CLI_EXIT_FAILED);
}

static tr_status start(struct cli_child *child, char *const *arguments)
{
    int output[2], error[2];
    pid_t parent = getpid();
    if (pipe2(output, O_CLOEXEC) != 0) return tr_fail(TR_EIO, "no pipe for a run: %s", strerror(errno));
    if (pipe2(error, O_CLOEXEC) != 0) {
        close(output[0]);
        close(output[1]);
        return tr_fail(TR_EIO, "no pipe for a run: %s", strerror(errno));
    }
    cli_output_flush(); /* otherwise the child would write it, too */
    child->process = fork();
    if (child->process == 0) become(arguments, parent, output, error);
    close(output[1]);
    close(error[1]);
    child->output = output[0];
    child->error = error[0];
    if (child->process > 0) {
        setpgid(child->process, child->process);
        fcntl(child->output, F_SETFL, O_NONBLOCK);
        fcntl(child->error, F_SETFL, O_NONBLOCK);
        return TR_OK;
    }
    close(child->output);
    close(child->error);
    return tr_fail(TR_ENOMEM, "a run cannot be started: %s", strerror(errno));
}

static void hear_line(struct cli_child *child)
{
    tr_json *document;
    if (child->line.failed || child->line.length == 0 || child->line.bytes[0] != '{') return;
    tr_status status = tr_json_parse(child->line.bytes, child->line.length, "a run", &document);
    child->starved |= status == TR_ENOMEM;
    if (status != TR_OK) return;
    child->hear(child->user, tr_json_root(document));
    tr_json_destroy(&document);
}

static void hear_output(struct cli_child *child, const char *bytes, size_t count)
{
    while (count > 0) {
        const char *end = memchr(bytes, '\n', count);
        size_t length = end ? (size_t)(end - bytes) : count;
        const bool whole = !child->line.failed;
        if (child->line.length + length < LINE_MOST) {
            tr_text_add_bytes(&child->line, bytes, length);
            child->starved |= whole && child->line.failed;
        } else {
            child->line.failed = true; /* no later piece may end it as if it were whole */
        }
        if (!end) return;
        hear_line(child);
        tr_text_release(&child->line);
        bytes = end + 1;
        count -= length + 1;
    }
}

static void hear_error(struct cli_child *child, const char *bytes, size_t count)
{
    size_t room = sizeof child->last_words - 1;
    if (count > room) {
        bytes += count - room;
        count = room;
    }
    if (child->words + count > room) {
        size_t gone = child->words + count - room;
        memmove(child->last_words, child->last_words + gone, child->words - gone);
        child->words -= gone;
    }
    memcpy(child->last_words + child->words, bytes, count);
    child->words += count;
    child->last_words[child->words] = '\0';
}

/* Reads the available output; closes the descriptor at its end. */
static void drain(struct cli_child *child, int *descriptor,
                  void (*take)(struct cli_child *child, const char *bytes, size_t count))
{
    char bytes[8192];
    while (*descriptor >= 0) {
        ssize_t count = read(*descriptor, bytes, sizeof bytes);
        if (count > 0) {
            take(child, bytes, (size_t)count);
            continue;
        }
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && errno == EAGAIN) return;
        close(*descriptor);
        *descriptor = -1;
    }
}

/* Asks the child to end when its time is over or the user wants to, and kills it if it does not. */
static void press_on(struct cli_child *child)
{
    double now = tr_clock_seconds();
    bool late = child->stop_at > 0 && now >= child->stop_at;
    if (child->kill_at > 0) {
        child->stopped |= cli_signals_received() != 0;
        if (now < child->kill_at) return;
        kill(-child->process, SIGKILL);
        child->kill_at = now + GRACE_SECONDS;
    } else if (cli_signals_received() != 0 || late) {
        child->stopped = cli_signals_received() != 0;
        child->out_of_time = !child->stopped;
        child->kill_at = now + GRACE_SECONDS;
        kill(child->process, SIGTERM);
    }
}

void cli_child_wait(struct cli_child *const *children, int count)
{
    struct pollfd polled[2 * CLI_CHILDREN_MOST];
    for (int i = 0; i < count; i++) {
        polled[2 * i] = (struct pollfd){children[i]->output, POLLIN, 0};
        polled[2 * i + 1] = (struct pollfd){children[i]->error, POLLIN, 0};
    }
    poll(polled, (nfds_t)(2 * count), (int)(LOOK_SECONDS * 1000));
}

bool cli_child_attend(struct cli_child *child)
{
    int status = 0;
    drain(child, &child->output, hear_output);
    drain(child, &child->error, hear_error);
    bool ended = waitpid(child->process, &status, WNOHANG) == child->process;
    press_on(child);
    if (!ended) return false;
    child->code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    drain(child, &child->output, hear_output);
    drain(child, &child->error, hear_error);
    if (child->output >= 0) close(child->output);
    if (child->error >= 0) close(child->error);
    tr_text_release(&child->line);
    return true;
}

tr_status cli_child_start(struct cli_child *child, const struct cli_arguments *arguments)
{
    if (arguments->failed)
        return tr_fail(TR_ENOMEM, "a command could not be put together: memory is short, or a word too long");
    return start(child, arguments->item);
}

tr_status cli_child_run(struct cli_child *child, const struct cli_arguments *arguments)
{
    TR_TRY(cli_child_start(child, arguments));
    do cli_child_wait(&child, 1);
    while (!cli_child_attend(child));
    return child->starved ? tr_fail(TR_ENOMEM, "too little memory to read the output of a run") : TR_OK;
}

void cli_child_explain(const struct cli_child *child, char *text, size_t size)
{
    const char *words = child->last_words;
    size_t length = strlen(words);
    while (length > 0 && words[length - 1] == '\n') length--;
    size_t begin = length;
    while (begin > 0 && words[begin - 1] != '\n') begin--;
    if (length > begin)
        snprintf(text, size, "%.*s", (int)(length - begin), words + begin);
    else if (child->code < 0)
        snprintf(text, size, "ended by signal %d", -child->code);
    else if (child->code == 0 && child->starved)
        snprintf(text, size, "too little memory to read its output");
    else
        snprintf(text, size, "exit code %d", child->code);
}
