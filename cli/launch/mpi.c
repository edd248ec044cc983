/* The launcher of processes on one or several hosts: mpirun. It is a child in a separate process group, so
 * that a Ctrl-C reaches the launcher alone. The first signal goes on as SIGUSR1, which mpirun hands to its
 * processes: they finish the step and save. Processes of this host that do not say within a second that they
 * heard it are signalled directly: some plugins that mpirun loads take its handlers away. A second signal
 * ends mpirun, and with it the job. Should the launcher die, mpirun is told to end the job; should mpirun
 * die, its processes do (launched.c).
 */
#include "cli/program/exit_codes.h"
#include "cli/launch/job.h"
#include "cli/launch/others.h"
#include "cli/launch/mpi_dir.h"
#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "comm/transport.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long mpirun may run after it was asked to end. */
#define END_SECONDS 5.0
/* How long processes may outlive mpirun. */
#define ORPHAN_SECONDS 3.0
/* How long processes may take to confirm a stop. */
#define HEED_SECONDS 1.0
/* How long mpirun may have no process, where all run on this host: before the first has reported its
   start, and after the last has ended. Then, the time between two checks for that. */
#define BEGIN_SECONDS  60.0
#define ALONE_SECONDS  10.0
#define CENSUS_SECONDS 2.0
/* Time between two checks while a deadline is pending. */
#define LOOK_SECONDS 0.2

struct mpi {
    struct cli_mpi_dir dir;
    char **arguments; /* of mpirun; ends with NULL */
    char processes[16];
    pid_t mpirun; /* 0: has ended */
    int status;   /* of it */
    struct cli_others others;
    double asked_to_end, gone; /* when mpirun was asked to end, and when it had ended; 0: not yet */
    double alone;              /* the time since which it is known to have no process */
    int started;               /* processes that have reported their start */
    bool stopped_directly;
};

/* ---- settings for mpirun ---- */

/* Settings for training, for Open MPI 4 and for the PRRTE and PMIx of 5. Root may start jobs in a
   container, there may be more processes than processors, processes choose their processors themselves
   (--bind), and a failing process reports the cause itself. OpenCL's part of hwloc loads compilers that
   replace mpirun's signal handlers, and finds no device that is used here. */
static const char *const settings[][2] = {
    {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
    {"PRTE_MCA_rmaps_default_mapping_policy", "slot:oversubscribe"}, /* of each host first */
    {"OMPI_MCA_hwloc_base_binding_policy", "none"},
    {"PRTE_MCA_hwloc_default_binding_policy", "none"},
    {"OMPI_MCA_orte_keep_fqdn_hostnames", "1"}, /* otherwise a.example.org becomes a */
    {"PRTE_MCA_prte_keep_fqdn_hostnames", "1"},
    {"OMPI_MCA_orte_execute_quiet", "1"},
    {"PRTE_MCA_prte_execute_quiet", "1"},
    {"OMPI_MCA_mpi_ft_enable", "1"}, /* otherwise the death of a peer ends a process of 5 before it can
                                        report it */
    {"HWLOC_COMPONENTS", "-opencl"},
};

/* Settings for jobs on this host only. Processes need no port, since they share memory; the ports of
   mpirun, and those of users who want TCP all the same, are bound to this host. Each has the settings that
   it cannot be combined with (Open MPI 5 takes that of oob for PMIx, too). No setting hides mpirun's own
   two ports (IPv4, IPv6) from other hosts. */
static const char *const here_alone[][4] = {
    {"OMPI_MCA_btl", "self,vader", "OMPI_MCA_btl"},
    {"OMPI_MCA_btl_tcp_if_include", "lo", "OMPI_MCA_btl_tcp_if_exclude"},
    {"OMPI_MCA_oob_tcp_if_include", "lo", "OMPI_MCA_oob_tcp_if_exclude"},
    {"PMIX_MCA_ptl_tcp_if_include", "lo", "PMIX_MCA_ptl_tcp_if_exclude", "OMPI_MCA_oob_tcp_if_exclude"},
};

/* Whether no other host takes part. */
static bool is_here(const struct cli_job_orders *orders)
{
    return !orders->hosts && !orders->hostfile;
}

/* Settings of the user are kept. */
static tr_status set_environment(const struct cli_job_orders *orders, struct cli_mpi_dir *dir)
{
    char threads[16];
    bool here = is_here(orders);
    bool failed = setenv("TRIREME_TRANSPORT", "mpi", 1) != 0;
    failed |= setenv("TRIREME_BIND", "true", 0) != 0;
    failed |= setenv("TRIREME_LAUNCHED", orders->token, 1) != 0;
    if (orders->outlives) failed |= setenv("TRIREME_OUTLIVES", "true", 1) != 0;
    failed |= setenv("OMPI_MCA_orte_enable_recovery", orders->tolerant ? "1" : "0", 0) != 0;
    failed |= setenv("PRTE_MCA_state_base_recoverable", orders->tolerant ? "1" : "0", 0) != 0;
    snprintf(threads, sizeof threads, "%d", orders->threads);
    if (orders->threads > 0) failed |= setenv("TRIREME_THREADS", threads, 1) != 0;
    /* mpirun gives its processes a terminal even where it has none. */
    if (!isatty(STDOUT_FILENO)) failed |= setenv("TERM", "dumb", 1) != 0;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        failed |= setenv(settings[i][0], settings[i][1], 0) != 0;
    for (size_t i = 0; here && i < sizeof here_alone / sizeof here_alone[0]; i++)
        if (!getenv(here_alone[i][2]) && !(here_alone[i][3] && getenv(here_alone[i][3])))
            failed |= setenv(here_alone[i][0], here_alone[i][1], 0) != 0;
    if (failed) return tr_fail(TR_ENOMEM, "out of memory");
    return here ? cli_mpi_dir_make(orders->processes, dir)
                : TR_OK; /* other hosts do not know a directory of this one */
}

/* The variables that other hosts do not get by themselves. */
#define OURS "TRIREME_"

static tr_status make_arguments(const struct cli_job_orders *orders, struct mpi *mpi)
{
    size_t room = 16;
    for (char *const *word = orders->words; *word; word++) room++;
    for (char **variable = environ; *variable; variable++) room += 2;
    char **next = mpi->arguments = tr_alloc_zero(room, sizeof *next);
    if (!next) return TR_ENOMEM;
    snprintf(mpi->processes, sizeof mpi->processes, "%d", orders->processes);
    *next++ = "mpirun";
    *next++ = "-n";
    *next++ = mpi->processes;
    if (orders->hosts) *next++ = "--host", *next++ = (char *)orders->hosts;
    if (orders->hostfile) *next++ = "--hostfile", *next++ = (char *)orders->hostfile;
    for (char **variable = environ; *variable; variable++) {
        if (strncmp(*variable, OURS, strlen(OURS)) != 0) continue;
        char *name = tr_strdup(*variable);
        if (!name) return TR_ENOMEM;
        name[strcspn(name, "=")] = '\0';
        *next++ = "-x";
        *next++ = name;
    }
    for (char *const *word = orders->words; *word; word++) *next++ = *word;
    return TR_OK;
}

static void free_mpi(struct cli_job *job)
{
    struct mpi *mpi = job->state;
    if (!mpi) return;
    /* The names of variables are ours; the rest is not. */
    for (char **at = mpi->arguments; at && *at && *at != job->orders->words[0]; at++)
        if (strcmp(*at, "-x") == 0) tr_free(*++at);
    tr_free(mpi->arguments);
    cli_others_release(&mpi->others);
    cli_mpi_dir_remove(&mpi->dir);
    tr_free(mpi);
    job->state = NULL;
}

/* ---- starting ---- */

#define INSTALL "install Open MPI (Debian: openmpi-bin and libopenmpi-dev)"

static bool is_installed(const char *program)
{
    char path[4096];
    const char *from = getenv("PATH");
    for (; from && *from; from += *from == ':') {
        size_t length = strcspn(from, ":");
        int written =
            snprintf(path, sizeof path, "%.*s/%s", length ? (int)length : 1, length ? from : ".", program);
        if (written > 0 && (size_t)written < sizeof path && access(path, X_OK) == 0) return true;
        from += length;
    }
    return false;
}

static tr_status mpi_check(const struct cli_job_orders *orders)
{
    TR_TRY(tr_comm_mpi_check());
    if (!is_installed("mpirun")) return tr_fail(TR_EUNSUPPORTED, "there is no mpirun; " INSTALL);
    /* Open MPI 5 prints the name raw. */
    if (orders->hostfile && access(orders->hostfile, R_OK) != 0)
        return tr_fail(TR_ENOTFOUND, "--hostfile %s cannot be read: %s", orders->hostfile, strerror(errno));
    return TR_OK;
}

/* In the child; returns only as an exit code, after a message. */
static void become_mpirun(char *const *arguments, pid_t parent, int output)
{
    setpgid(0, 0);
    cli_job_become_child(parent, SIGTERM, output, false);
    execvp(arguments[0], arguments);
    _exit(CLI_JOB_NOT_STARTED);
}

static tr_status start_mpirun(struct cli_job *job)
{
    struct mpi *mpi = job->state;
    pid_t parent = getpid();
    int writer;
    TR_TRY(set_environment(job->orders, &mpi->dir));
    TR_TRY(make_arguments(job->orders, mpi));
    TR_TRY(cli_job_output(job, &writer));
    mpi->mpirun = fork();
    if (mpi->mpirun == 0) become_mpirun(mpi->arguments, parent, writer);
    int error = errno;
    close(writer);
    if (mpi->mpirun < 0) return tr_fail(TR_ENOMEM, "mpirun cannot be started: %s", strerror(error));
    setpgid(mpi->mpirun, mpi->mpirun);
    return TR_OK;
}

static tr_status mpi_start(struct cli_job *job)
{
    struct mpi *mpi = tr_alloc_zero(1, sizeof *mpi);
    job->state = mpi;
    if (!mpi) return TR_ENOMEM;
    mpi->dir.dir = (struct tr_scratch_dir)TR_SCRATCH_DIR_NONE;
    tr_status status = start_mpirun(job);
    if (status != TR_OK) free_mpi(job);
    return status;
}

/* ---- while it runs ---- */

static void tell_mpirun(const struct mpi *mpi, int number)
{
    if (mpi->mpirun > 0) kill(mpi->mpirun, number);
}

static void mpi_stop(struct cli_job *job)
{
    tell_mpirun(job->state, SIGUSR1);
}

static void mpi_quit(struct cli_job *job)
{
    struct mpi *mpi = job->state;
    if (job->end->stop_twice) tell_mpirun(mpi, SIGKILL);
    if (mpi->asked_to_end == 0) mpi->asked_to_end = tr_clock_seconds();
    tell_mpirun(mpi, SIGTERM);
}

static void mpi_hear(struct cli_job *job, const struct cli_note *note)
{
    struct mpi *mpi = job->state;
    if (note->kind == CLI_NOTE_STARTED) {
        mpi->started++;
        cli_others_add(&mpi->others, note->number, job->orders->token);
        mpi->stopped_directly = false;
    } else if (note->kind == CLI_NOTE_STOPPING) {
        cli_others_heeds(&mpi->others, note->number);
    } else if (note->kind == CLI_NOTE_BEGUN && job->end->stop_signal != 0) {
        /* A stop reached no process if it came before mpirun had any. */
        tell_mpirun(mpi, SIGUSR1);
    }
}

/* Reaps mpirun when it has ended. Processes that a killed mpirun leaves in its group, such as the programs
   that reach other hosts, are ended before the number of the group can be used again. */
static void reap(struct mpi *mpi)
{
    siginfo_t how = {0};
    if (mpi->mpirun <= 0 || waitid(P_PID, (id_t)mpi->mpirun, &how, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        how.si_pid == 0)
        return;
    if (how.si_code != CLD_EXITED) kill(-mpi->mpirun, SIGKILL);
    waitpid(mpi->mpirun, &mpi->status, 0);
    mpi->mpirun = 0;
    mpi->gone = tr_clock_seconds();
}

/* An mpirun that does not end is ended. Such a case: its files found no room and it has no process, or it
   lost one before the job began, for which the others wait. Processes of other hosts cannot be checked. */
static void look_for_processes(struct cli_job *job)
{
    struct mpi *mpi = job->state;
    char where[256];
    double now = tr_clock_seconds();
    if (!is_here(job->orders) || mpi->mpirun <= 0 || mpi->asked_to_end > 0) return;
    if (job->look_at > now + CENSUS_SECONDS) job->look_at = now + CENSUS_SECONDS;
    int live = cli_others_live(&mpi->others);
    bool lost = live < mpi->others.count && !job->end->begun && !job->end->ended;
    if (mpi->started > mpi->others.count || (live > 0 && !lost)) /* one that cannot be watched may live */
        mpi->alone = 0;
    else if (mpi->alone == 0)
        mpi->alone = now;
    if (mpi->alone == 0 || now - mpi->alone < (job->end->started ? ALONE_SECONDS : BEGIN_SECONDS)) return;
    cli_mpi_dir_explain(job->orders->processes, where, sizeof where);
    cli_message("mpirun %s and does not end; it is ended (%s)",
                live > 0            ? "lost a process before the job began"
                : job->end->started ? "has no process any more"
                                    : "has no process yet",
                where);
    mpi->asked_to_end = now;
    tell_mpirun(mpi, SIGTERM);
}

/* Acts on deadlines. An mpirun that is already ending the job, and cannot, is not asked again. */
static void press_on(struct cli_job *job)
{
    struct mpi *mpi = job->state;
    double now = tr_clock_seconds();
    bool late = job->over > 0 && now > cli_job_last_call(job);
    if (mpi->mpirun > 0 && late && mpi->asked_to_end == 0 && job->orders->tolerant) {
        mpi->asked_to_end = now;
        tell_mpirun(mpi, SIGTERM);
    }
    late &= !job->orders->tolerant;
    late |= mpi->asked_to_end > 0 && now - mpi->asked_to_end > END_SECONDS;
    if (mpi->mpirun > 0 && late) tell_mpirun(mpi, SIGKILL);
    if (job->end->stop_signal != 0 && now - job->stop_came > HEED_SECONDS && !mpi->stopped_directly) {
        cli_others_signal(&mpi->others, SIGUSR1, true);
        mpi->stopped_directly = true;
    }
    if (mpi->gone > 0 && now - mpi->gone > ORPHAN_SECONDS) cli_others_signal(&mpi->others, SIGKILL, false);
}

/* Until mpirun and the processes of this host are gone. */
static bool mpi_look(struct cli_job *job)
{
    struct mpi *mpi = job->state;
    reap(mpi);
    press_on(job);
    bool due = mpi->gone > 0 || job->over > 0 || mpi->asked_to_end > 0;
    due |= job->end->stop_signal != 0 && !mpi->stopped_directly;
    if (due) job->look_at = tr_clock_seconds() + LOOK_SECONDS;
    look_for_processes(job);
    return mpi->mpirun > 0 || cli_others_live(&mpi->others) > 0;
}

/* ---- the end ---- */

static void judge(struct cli_job *job)
{
    const struct mpi *mpi = job->state;
    struct cli_job_end *end = job->end;
    int status = mpi->status, code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    bool killed = WIFSIGNALED(status);
    snprintf(end->whose, sizeof end->whose, killed ? "mpirun" : "a process");
    if (killed) end->signal = WTERMSIG(status);
    if (code > 128 && code <= 128 + SIGSYS) end->signal = code - 128; /* 5 has other codes above */
    if (end->ended) return;
    if (code == 0 && !killed)
        end->code = job->orders->tolerant ? CLI_EXIT_FAILED : CLI_EXIT_DONE;
    else if (!end->started && end->signal == 0) /* a killed process cannot have reported its start */
        end->code = CLI_EXIT_WRONG;
    else
        end->code = code >= CLI_EXIT_WRONG && code <= CLI_EXIT_DAMAGED ? code : CLI_EXIT_FAILED;
}

static void mpi_finish(struct cli_job *job)
{
    judge(job);
    free_mpi(job);
}

const struct cli_launcher cli_launcher_mpi = {
    .name = "mpi",
    .check = mpi_check,
    .start = mpi_start,
    .stop = mpi_stop,
    .quit = mpi_quit,
    .hear = mpi_hear,
    .look = mpi_look,
    .finish = mpi_finish,
};
