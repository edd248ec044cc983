/* The launcher of processes on this host. It forks them itself and gives them their shared memory as a
 * descriptor, which vanishes with the last of them. No port is opened, and no named file can remain.
 *
 * The processes stay in the group of the launcher, so that Ctrl-Z and fg act on all of them. They ignore
 * SIGINT and SIGHUP, which a terminal sends to the group; instead the launcher sends SIGUSR1, at which
 * they finish the step and save. It is blocked from their start, so that an early stop waits until they
 * can handle it. They die with the launcher.
 */
#include "cli/launch/job.h"

#include "cli/program/exit_codes.h"
#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "comm/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct rank {
    pid_t id; /* 0: it has ended, or was not started */
    int status;
    bool stopped; /* by SIGSTOP or a similar signal */
};

struct local {
    tr_local_group *group;
    int ranks, alive;
    int first;  /* the first rank that ended with a code other than 0, or -1 */
    bool quits; /* the launcher ended them all */
    struct rank rank[];
};

/* Descriptors that a process opens beside one for each of the others, and the launcher beside a pipe to
   each. Shared data, the data's files, a checkpoint and the journal take 24; joined data and image readers
   take more. */
#define DESCRIPTORS 56

/* Descriptors that are open and stay open in the processes: they count against the limit, too. */
static int count_inherited(int below)
{
    int count = 0;
    for (int i = 0; i < below; i++) {
        int flags = fcntl(i, F_GETFD);
        count += flags >= 0 && !(flags & FD_CLOEXEC);
    }
    return count;
}

static tr_status allow_descriptors(int processes)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)(processes + DESCRIPTORS);
    wanted += (rlim_t)count_inherited((int)wanted);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return TR_OK;
    rlim_t now = limit.rlim_cur;
    limit.rlim_cur = wanted;
    if (wanted <= limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit) == 0) return TR_OK;
    return tr_fail(TR_EUNSUPPORTED,
                   "%d processes need %d open files each, of which %d are allowed here; raise the limit "
                   "(ulimit -n %d)",
                   processes, (int)wanted, (int)now, (int)wanted);
}

static tr_status local_check(const struct cli_job_orders *orders)
{
    tr_local_group *group;
    if (orders->hosts || orders->hostfile)
        return tr_fail(
            TR_EINVAL,
            "--transport local is for processes of this host; with --hosts and --hostfile it is mpi");
    TR_TRY(allow_descriptors(orders->processes));
    TR_TRY(tr_local_group_create(orders->processes, &group));
    tr_local_group_destroy(&group);
    return TR_OK;
}

/* ---- starting ---- */

/* In the child; returns only as an exit code. */
static void become_rank(const struct cli_job *job, pid_t parent, int writer)
{
    const struct local *local = job->state;
    char *const *words = job->orders->words;
    cli_job_become_child(parent, SIGKILL, writer, true);
    signal(SIGUSR1, SIG_DFL);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (fcntl(tr_local_group_descriptor(local->group), F_SETFD, 0) == 0) execv(words[0], words);
    cli_message("%s cannot be started: %s", words[0], strerror(errno));
    _exit(CLI_JOB_NOT_STARTED);
}

static tr_status start_rank(struct cli_job *job, int rank, pid_t parent)
{
    struct local *local = job->state;
    char ticket[TR_LOCAL_TICKET_SIZE];
    int writer;
    TR_TRY(tr_local_group_ticket(local->group, rank, ticket, sizeof ticket));
    if (setenv(TR_LOCAL_VARIABLE, ticket, 1) != 0) return tr_fail(TR_ENOMEM, "out of memory");
    TR_TRY(cli_job_output(job, &writer));
    pid_t id = fork();
    if (id == 0) become_rank(job, parent, writer);
    int error = errno;
    close(writer);
    if (id < 0)
        return tr_fail(TR_ENOMEM, "process %d of %d cannot be started: %s", rank + 1, local->ranks,
                       strerror(error));
    local->rank[rank].id = id;
    local->alive++;
    return TR_OK;
}

static void local_quit(struct cli_job *job)
{
    struct local *local = job->state;
    local->quits = true;
    for (int rank = 0; rank < local->ranks; rank++)
        if (local->rank[rank].id > 0) kill(local->rank[rank].id, SIGKILL);
}

static void free_local(struct cli_job *job)
{
    struct local *local = job->state;
    if (local) tr_local_group_destroy(&local->group);
    tr_free(local);
    job->state = NULL;
}

static tr_status set_environment(const struct cli_job_orders *orders)
{
    char threads[16];
    bool failed = setenv("TRIREME_TRANSPORT", "local", 1) != 0 || setenv("TRIREME_BIND", "true", 0) != 0 ||
                  setenv("TRIREME_LAUNCHED", orders->token, 1) != 0;
    snprintf(threads, sizeof threads, "%d", orders->threads);
    if (orders->outlives) failed |= setenv("TRIREME_OUTLIVES", "true", 1) != 0;
    if (orders->threads > 0) failed |= setenv("TRIREME_THREADS", threads, 1) != 0;
    return failed ? tr_fail(TR_ENOMEM, "out of memory") : TR_OK;
}

static tr_status local_start(struct cli_job *job)
{
    int ranks = job->orders->processes;
    struct local *local = tr_alloc_zero(1, sizeof *local + (size_t)ranks * sizeof local->rank[0]);
    job->state = local;
    if (!local) return TR_ENOMEM;
    local->ranks = ranks;
    local->first = -1;
    tr_status status = set_environment(job->orders);
    if (status == TR_OK) status = tr_local_group_create(ranks, &local->group);
    pid_t parent = getpid();
    for (int rank = 0; rank < ranks && status == TR_OK; rank++) status = start_rank(job, rank, parent);
    if (status == TR_OK) return TR_OK;
    local_quit(job);
    for (int rank = 0; rank < ranks; rank++)
        if (local->rank[rank].id > 0) waitpid(local->rank[rank].id, NULL, 0);
    free_local(job);
    return status;
}

/* ---- while they run ---- */

static void local_stop(struct cli_job *job)
{
    const struct local *local = job->state;
    for (int rank = 0; rank < local->ranks; rank++)
        if (local->rank[rank].id > 0) kill(local->rank[rank].id, SIGUSR1);
}

static void record_end(struct cli_job *job, int rank, int status)
{
    struct local *local = job->state;
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == CLI_EXIT_DONE;
    local->rank[rank] = (struct rank){.status = status};
    local->alive--;
    tr_local_group_ended(local->group, rank);
    if (!well && local->first < 0 && !local->quits) local->first = rank;
    /* Asynchronous jobs continue without a worker; the other ranks know whether it was one. Where ranks
       outlive each other, another one becomes the root, and reports the end of the run. */
    bool counts = rank == 0 ? well || !job->orders->outlives : !well && !job->orders->tolerant;
    if (job->over == 0 && counts) job->over = tr_clock_seconds();
}

/* Takes notice of ended processes; returns whether one still runs. */
static bool reap(struct cli_job *job)
{
    struct local *local = job->state;
    bool running = false;
    for (int rank = 0; rank < local->ranks; rank++) {
        struct rank *one = &local->rank[rank];
        int status;
        while (one->id > 0 && waitpid(one->id, &status, WNOHANG | WUNTRACED | WCONTINUED) == one->id) {
            one->stopped = WIFSTOPPED(status);
            if (WIFEXITED(status) || WIFSIGNALED(status)) record_end(job, rank, status);
        }
        running |= one->id > 0 && !one->stopped;
    }
    return running;
}

static bool local_look(struct cli_job *job)
{
    struct local *local = job->state;
    bool running = reap(job);
    if (job->over > 0 && !local->quits && local->alive > 0) {
        job->look_at = cli_job_last_call(job);
        /* Stopped processes do not leave by themselves. */
        if (!running || tr_clock_seconds() >= job->look_at) local_quit(job);
    }
    return local->alive > 0;
}

/* ---- the end ---- */

/* The result by the exit codes of the processes, if rank 0 did not report it. */
static void local_finish(struct cli_job *job)
{
    const struct local *local = job->state;
    struct cli_job_end *end = job->end;
    int status = local->first >= 0 ? local->rank[local->first].status : 0;
    if (local->first >= 0) snprintf(end->whose, sizeof end->whose, "rank %d", local->first);
    if (WIFSIGNALED(status)) end->signal = WTERMSIG(status);
    if (!end->ended) {
        end->code = local->first < 0 && !local->quits ? CLI_EXIT_DONE : CLI_EXIT_FAILED;
        for (int rank = 0; rank < local->ranks && end->code == CLI_EXIT_FAILED; rank++) {
            int code = WIFEXITED(local->rank[rank].status) ? WEXITSTATUS(local->rank[rank].status) : 0;
            if (code >= CLI_EXIT_WRONG && code <= CLI_EXIT_DAMAGED) end->code = code;
        }
    }
    free_local(job);
}

const struct cli_launcher cli_launcher_local = {
    .name = "local",
    .check = local_check,
    .start = local_start,
    .stop = local_stop,
    .quit = local_quit,
    .look = local_look,
    .finish = local_finish,
};
