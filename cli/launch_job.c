/* mpirun is a child in a process group of its own, so that a Ctrl-C reaches the launcher alone. The first
 * signal goes on as SIGUSR1, which mpirun hands to its processes at once: they finish the step and save. A
 * second one ends mpirun, and with it the job. Should the launcher die, mpirun is told to end the job; should
 * mpirun die, its processes do (launched.c).
 *
 * One loop waits for everything: signals, the end of mpirun, what the processes write, and deadlines.
 */
#include "launch_job.h"

#include "exit_codes.h"
#include "launch_lines.h"
#include "output.h"

#include "base/clock.h"
#include "base/fail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* One intention may arrive twice: from a terminal and the shell in it. */
#define REPEAT_SECONDS 0.3
/* How long mpirun may take to end once the job is over, before it is told to; and once it is told to. */
#define LEAVE_SECONDS 10.0
#define END_SECONDS   5.0
/* How long processes may outlive mpirun. */
#define ORPHAN_SECONDS 3.0
/* Between two looks at what no descriptor tells. */
#define LOOK_SECONDS 0.2
#define NOT_STARTED  127

static int signals = -1;   /* signalfd */
static sigset_t unblocked; /* the mask that children get */

tr_status cli_job_prepare(void)
{
    static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++) sigaddset(&set, watched[i]);
    sigprocmask(SIG_BLOCK, &set, &unblocked);
    signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) return tr_fail(TR_EIO, "signals cannot be watched: %s", strerror(errno));
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return TR_OK;
}

/* ---- an attempt ---- */

struct attempt {
    const struct cli_job *job;
    struct cli_job_end *end;
    pid_t mpirun; /* 0: has ended */
    int status;   /* of it */
    int output;   /* what the processes write on stderr; -1: closed */
    struct cli_lines lines;
    double stop_came;  /* when the first signal came */
    double over;       /* when the job was known to be over; 0: it is not */
    double told, gone; /* when mpirun was told to end, and when it had; 0: not yet */
};

/* In the child; comes back only as an exit code that says why not. */
static void become_mpirun(char *const *arguments, pid_t parent, int output)
{
    int input = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(NOT_STARTED);
    sigprocmask(SIG_SETMASK, &unblocked, NULL);
    if (dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0) execvp(arguments[0], arguments);
    _exit(NOT_STARTED);
}

static tr_status start(struct attempt *attempt)
{
    int ends[2];
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0) return tr_fail(TR_EIO, "no pipe for mpirun: %s", strerror(errno));
    attempt->output = ends[0];
    attempt->mpirun = fork();
    if (attempt->mpirun == 0) become_mpirun(attempt->job->arguments, parent, ends[1]);
    close(ends[1]);
    if (attempt->mpirun < 0) {
        close(ends[0]);
        return tr_fail(TR_ENOMEM, "mpirun cannot be started: %s", strerror(errno));
    }
    setpgid(attempt->mpirun, attempt->mpirun);
    fcntl(attempt->output, F_SETFL, O_NONBLOCK);
    return TR_OK;
}

static void tell_mpirun(const struct attempt *attempt, int number)
{
    if (attempt->mpirun > 0) kill(attempt->mpirun, number);
}

/* ---- what happens ---- */

static void hear_note(void *user, const struct cli_note *note)
{
    struct attempt *attempt = user;
    struct cli_job_end *end = attempt->end;
    switch (note->kind) {
    case CLI_NOTE_STARTED:
        end->started = true;
        break;
    case CLI_NOTE_BEGUN:
        end->begun = true;
        /* A stop that came before mpirun had processes to hand it to went to nobody. */
        if (end->stop_signal != 0) tell_mpirun(attempt, SIGUSR1);
        end->step = note->number;
        if (note->number > 0) end->saved = note->number;
        break;
    case CLI_NOTE_STEP:
        end->step = note->number;
        break;
    case CLI_NOTE_SAVED:
        end->step = end->saved = note->number;
        break;
    case CLI_NOTE_ENDED:
        end->ended = true;
        end->code = (int)note->number;
        if (attempt->over == 0) attempt->over = tr_clock_seconds();
        break;
    case CLI_NOTE_LOST:
        if (attempt->over == 0) attempt->over = tr_clock_seconds();
        break;
    case CLI_NOTE_KINDS:
        break;
    }
}

static void hear_stop(struct attempt *attempt, int number)
{
    struct cli_job_end *end = attempt->end;
    double now = tr_clock_seconds();
    if (end->stop_signal == 0) {
        end->stop_signal = number;
        attempt->stop_came = now;
        cli_message("finishing the step, saving (once more: leave at once)");
        tell_mpirun(attempt, SIGUSR1);
    } else if (number != SIGHUP && now - attempt->stop_came > REPEAT_SECONDS) {
        if (end->stop_twice) tell_mpirun(attempt, SIGKILL);
        end->stop_twice = true;
        if (attempt->told == 0) attempt->told = now;
        tell_mpirun(attempt, SIGTERM);
    }
}

/* Takes what has ended; whose parent has died is a child of this process. */
static bool reap(struct attempt *attempt)
{
    for (;;) {
        int status;
        pid_t child = waitpid(-1, &status, WNOHANG);
        if (child < 0 && errno == ECHILD) return false;
        if (child <= 0) return true;
        if (child != attempt->mpirun) continue;
        attempt->mpirun = 0;
        attempt->status = status;
        attempt->gone = tr_clock_seconds();
    }
}

static void hear_signals(struct attempt *attempt)
{
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD) hear_stop(attempt, (int)info.ssi_signo);
}

static void hear_output(struct attempt *attempt)
{
    char bytes[4096];
    ssize_t count = read(attempt->output, bytes, sizeof bytes);
    if (count > 0) cli_lines_add(&attempt->lines, bytes, (size_t)count);
    if (count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN))) return;
    close(attempt->output);
    attempt->output = -1;
}

/* Kills the children of this process. */
static void kill_children(void)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    while (processes && (entry = readdir(processes))) {
        char path[300], text[512], state;
        int parent, process = atoi(entry->d_name);
        if (process <= 0) continue;
        snprintf(path, sizeof path, "/proc/%d/stat", process);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        size_t length = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[length] = '\0';
        const char *name_end = strrchr(text, ')');
        if (name_end && sscanf(name_end + 1, " %c %d", &state, &parent) == 2 && parent == getpid())
            kill(process, SIGKILL);
    }
    if (processes) closedir(processes);
}

/* What is due by the clock. An mpirun that ends the job already, and cannot, is not asked again. */
static void press_on(struct attempt *attempt)
{
    double now = tr_clock_seconds();
    bool late = attempt->over > 0 && now - attempt->over > LEAVE_SECONDS;
    if (attempt->mpirun > 0 && late && attempt->told == 0 && attempt->job->tolerant) {
        attempt->told = now;
        tell_mpirun(attempt, SIGTERM);
    }
    late &= !attempt->job->tolerant;
    late |= attempt->told > 0 && now - attempt->told > END_SECONDS;
    if (attempt->mpirun > 0 && late) tell_mpirun(attempt, SIGKILL);
    if (attempt->gone > 0 && now - attempt->gone > ORPHAN_SECONDS) kill_children();
}

/* Until mpirun and all that it left here are gone. */
static void watch(struct attempt *attempt)
{
    bool children = true;
    while (children || attempt->output >= 0) {
        struct pollfd polled[2] = {{.fd = signals, .events = POLLIN},
                                   {.fd = attempt->output, .events = POLLIN}};
        if (poll(polled, 2, (int)(LOOK_SECONDS * 1e3)) == 0) cli_lines_flush(&attempt->lines);
        if (polled[0].revents) hear_signals(attempt);
        if (polled[1].revents) hear_output(attempt);
        children = reap(attempt);
        press_on(attempt);
        /* Somebody who is not of this job may hold the other end of the pipe. What the last one wrote came
           before its end, but maybe after the look above. */
        if (!children && attempt->output >= 0 && poll(&polled[1], 1, 0) == 0) {
            close(attempt->output);
            attempt->output = -1;
        }
    }
}

/* ---- the end ---- */

/* What mpirun's end says, where the chief did not say more. */
static void judge(struct attempt *attempt)
{
    struct cli_job_end *end = attempt->end;
    int status = attempt->status, code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    end->by_mpirun = WIFSIGNALED(status);
    if (end->by_mpirun) end->signal = WTERMSIG(status);
    if (code > 128 && code < 128 + NSIG) end->signal = code - 128;
    if (end->ended) return;
    if (code == 0 && !end->by_mpirun)
        end->code = attempt->job->tolerant ? CLI_EXIT_FAILED : CLI_EXIT_DONE;
    else if (!end->started && end->signal == 0) /* who was killed cannot say that it had started */
        end->code = CLI_EXIT_WRONG;
    else
        end->code = code >= CLI_EXIT_WRONG && code <= CLI_EXIT_DAMAGED ? code : CLI_EXIT_FAILED;
}

tr_status cli_job_run(const struct cli_job *job, struct cli_job_end *end)
{
    struct attempt attempt = {.job = job, .end = end, .output = -1};
    *end = (struct cli_job_end){.step = -1, .saved = -1};
    TR_TRY(start(&attempt));
    cli_lines_begin(&attempt.lines, job->token, hear_note, &attempt);
    watch(&attempt);
    cli_lines_end(&attempt.lines);
    if (!end->started && WIFEXITED(attempt.status) && WEXITSTATUS(attempt.status) == NOT_STARTED)
        return tr_fail(TR_EUNSUPPORTED, "mpirun cannot be started; install Open MPI (Debian: openmpi-bin)");
    judge(&attempt);
    return TR_OK;
}

int cli_job_pause(double seconds)
{
    double end = tr_clock_seconds() + seconds;
    for (;;) {
        struct signalfd_siginfo info;
        while (read(signals, &info, sizeof info) == sizeof info)
            if (info.ssi_signo != SIGCHLD) return (int)info.ssi_signo;
        double left = end - tr_clock_seconds();
        if (left <= 0) return 0;
        struct pollfd polled = {.fd = signals, .events = POLLIN};
        poll(&polled, 1, (int)(left * 1e3) + 1);
    }
}
