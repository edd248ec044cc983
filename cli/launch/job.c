/* One loop waits for everything: signals, the ends of processes, their output, and deadlines. Only
 * processes that this launcher started are waited for and signalled: the program may have inherited other
 * children.
 */
#include "cli/launch/job.h"

#include "cli/program/exit_codes.h"
#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* One stop may arrive twice: from a terminal and the shell in it. */
#define REPEAT_SECONDS 0.3
/* How long processes, and mpirun, may run after the job is over or one has been lost: the others find the
   cause, and report it. */
#define LEAVE_SECONDS 10.0
/* How long a line may lack its end before its beginning is shown. */
#define LINE_SECONDS 0.2

static int signals = -1;   /* signalfd */
static sigset_t unblocked; /* the mask that children get */

tr_status cli_job_prepare(void)
{
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    sigset_t set, blocked;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    blocked = set;
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++) {
        struct sigaction now;
        sigaddset(&blocked, caught[i]);
        /* An ignored signal would arrive all the same, since it is blocked. */
        if (sigaction(caught[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&set, caught[i]);
    }
    signal(SIGCHLD, SIG_DFL); /* ignored, it would hide the ends of children from their parent */
    sigprocmask(SIG_BLOCK, &blocked, &unblocked);
    signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return signals >= 0 ? TR_OK : tr_fail(TR_EIO, "signals cannot be caught: %s", strerror(errno));
}

/* ---- what happens ---- */

/* A process that was taken for dead, and leaves when it comes to life, finds the job lost. The root's next
   news tell that the others continue. */
static void hear_root(struct cli_job *job)
{
    const double now = tr_clock_seconds();
    if (job->heard > 0 && now - job->heard > job->pause) job->pause = now - job->heard;
    job->heard = now;
    if (job->orders->tolerant && !job->end->ended) job->over = 0;
}

double cli_job_last_call(const struct cli_job *job)
{
    return job->over + LEAVE_SECONDS + (job->orders->tolerant ? 2 * job->pause : 0);
}

static void hear_note(void *user, const struct cli_note *note)
{
    struct cli_job *job = user;
    struct cli_job_end *end = job->end;
    switch (note->kind) {
    case CLI_NOTE_STARTED:
        end->started = true;
        break;
    case CLI_NOTE_BEGUN:
        end->begun = true;
        end->step = note->number;
        if (note->number > 0) end->saved = note->number;
        break;
    case CLI_NOTE_STEP:
        end->step = note->number;
        hear_root(job);
        break;
    case CLI_NOTE_SAVED:
        end->step = end->saved = note->number;
        hear_root(job);
        break;
    case CLI_NOTE_FEWER:
        if (job->orders->grows && !end->grows && end->stop_signal == 0) job->launcher->stop(job);
        end->grows = job->orders->grows;
        break;
    case CLI_NOTE_UNHEARD:
        end->unheard = true;
        break;
    case CLI_NOTE_ENDED:
        end->ended = true;
        end->code = (int)note->number;
        if (job->over == 0) job->over = tr_clock_seconds();
        break;
    case CLI_NOTE_LOST:
        if (job->over == 0) job->over = tr_clock_seconds();
        break;
    case CLI_NOTE_STOPPING:
    case CLI_NOTE_KINDS:
        break;
    }
    if (job->launcher->hear) job->launcher->hear(job, note);
}

static void hear_stop(struct cli_job *job, int number)
{
    struct cli_job_end *end = job->end;
    double now = tr_clock_seconds();
    if (end->stop_signal == 0) {
        end->stop_signal = number;
        job->stop_came = now;
        cli_message("finishing the step, saving (once more: leave at once)");
        job->launcher->stop(job);
    } else if (number != SIGHUP && now - job->stop_came > REPEAT_SECONDS) {
        job->launcher->quit(job);
        end->stop_twice = true;
    }
}

/* The next signal other than SIGCHLD, 0 for none. */
static int next_signal(void)
{
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD) return (int)info.ssi_signo;
    return 0;
}

static void hear_signals(struct cli_job *job)
{
    for (int number; (number = next_signal()) != 0;) hear_stop(job, number);
}

static void close_output(struct cli_lines *output)
{
    if (output->descriptor < 0) return;
    cli_lines_end(output);
    close(output->descriptor);
    output->descriptor = -1;
}

/* Reads the available output. */
static void hear_output(struct cli_lines *output)
{
    char bytes[4096];
    while (output->descriptor >= 0) {
        ssize_t count = read(output->descriptor, bytes, sizeof bytes);
        if (count > 0) cli_lines_add(output, bytes, (size_t)count);
        if (count > 0 || (count < 0 && errno == EINTR)) continue;
        if (count < 0 && errno == EAGAIN) return;
        close_output(output);
    }
}

/* Sleeps until an event, or until the launcher's next look; returns whether there was an event. */
static bool wait_for_more(struct cli_job *job, struct pollfd *polled)
{
    double limit = job->look_at - tr_clock_seconds();
    int open = 0;
    polled[open++] = (struct pollfd){.fd = signals, .events = POLLIN};
    for (int i = 0; i < job->outputs; i++) {
        if (job->output[i].descriptor < 0) continue;
        polled[open++] = (struct pollfd){.fd = job->output[i].descriptor, .events = POLLIN};
        if (job->output[i].length > 0 && limit > LINE_SECONDS) limit = LINE_SECONDS;
    }
    return poll(polled, (nfds_t)open, isinf(limit) ? -1 : limit > 0 ? (int)(limit * 1e3) + 1 : 0) > 0;
}

/* Until the job has ended completely. */
static void watch(struct cli_job *job, struct pollfd *polled)
{
    bool more = true;
    while (more) {
        job->look_at = INFINITY;
        more = job->launcher->look(job);
        if (!more) break;
        bool came = wait_for_more(job, polled);
        hear_signals(job);
        for (int i = 0; i < job->outputs; i++) {
            hear_output(&job->output[i]);
            if (!came) cli_lines_flush(&job->output[i]);
        }
    }
    /* A process outside of this job may hold the other end of a pipe. */
    for (int i = 0; i < job->outputs; i++) {
        hear_output(&job->output[i]);
        close_output(&job->output[i]);
    }
}

/* ---- an attempt ---- */

tr_status cli_job_output(struct cli_job *job, int *writer)
{
    int ends[2];
    struct cli_lines *more = tr_realloc(job->output, (size_t)job->outputs + 1, sizeof *more);
    if (!more) return TR_ENOMEM;
    job->output = more;
    if (pipe2(ends, O_CLOEXEC) != 0) return tr_fail(TR_EIO, "no pipe for a process: %s", strerror(errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    cli_lines_begin(&more[job->outputs++], &job->said, ends[0]);
    *writer = ends[1];
    return TR_OK;
}

void cli_job_become_child(pid_t parent, int death, int writer, bool holds)
{
    int input = open("/dev/null", O_RDONLY);
    sigset_t mask = unblocked;
    prctl(PR_SET_PDEATHSIG, death);
    if (getppid() != parent || input < 0) _exit(CLI_JOB_NOT_STARTED);
    if (holds) sigaddset(&mask, SIGUSR1);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (dup2(input, STDIN_FILENO) < 0 || dup2(writer, STDERR_FILENO) < 0) _exit(CLI_JOB_NOT_STARTED);
}

tr_status cli_job_run(const struct cli_launcher *launcher, const struct cli_job_orders *orders,
                      struct cli_job_end *end)
{
    struct cli_job job = {.launcher = launcher, .orders = orders, .end = end};
    struct pollfd *polled = NULL;
    *end = (struct cli_job_end){.step = -1, .saved = -1, .code = CLI_EXIT_FAILED};
    cli_said_begin(&job.said, orders->token, hear_note, &job);
    cli_output_flush(); /* otherwise children would write it, too */
    tr_status status = launcher->start(&job);
    if (status == TR_OK) {
        polled = tr_alloc((size_t)job.outputs + 1, sizeof *polled);
        if (!polled) {
            launcher->quit(&job);
            while (launcher->look(&job)) cli_job_pause(LINE_SECONDS);
            status = TR_ENOMEM;
        } else {
            watch(&job, polled);
        }
        launcher->finish(&job);
    }
    for (int i = 0; i < job.outputs; i++) close_output(&job.output[i]);
    cli_said_end(&job.said);
    tr_free(polled);
    tr_free(job.output);
    return status;
}

int cli_job_pause(double seconds)
{
    double end = tr_clock_seconds() + seconds;
    for (;;) {
        int number = next_signal();
        double left = end - tr_clock_seconds();
        if (number != 0 || left <= 0) return number;
        struct pollfd polled = {.fd = signals, .events = POLLIN};
        poll(&polled, 1, (int)(left * 1e3) + 1);
    }
}
