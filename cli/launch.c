/* trireme launch: starts a command as several processes of this host, by mpirun.
 *
 * mpirun is a child in a process group of its own, so that a Ctrl-C reaches the launcher alone. The first
 * signal goes on as SIGUSR1, which mpirun hands to its processes at once: they finish the step and save. A
 * second one ends mpirun, and with it the job. Should the launcher die, mpirun is told to end the job.
 */
#include "commands.h"
#include "output.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct options {
    struct cli_common common;
    int32_t processes, threads;
    struct tr_string_list command;
};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    {.key = "command",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(command),
     .fallback = NULL,
     .help = "the command to start, with its options: train MODEL ...",
     .flags = TR_OPTION_POSITIONAL},
    {.key = "processes",
     .type = TR_OPTION_INT32,
     .offset = AT(processes),
     .fallback = "2",
     .least = 1,
     .most = 1024,
     .help = "processes that share the job; at most as many as microbatches",
     .letter = 'n'},
    {.key = "threads",
     .type = TR_OPTION_INT32,
     .offset = AT(threads),
     .fallback = "0",
     .least = 0,
     .most = TR_TEAM_MAX,
     .help = "threads of each; 0: the cores, shared out evenly",
     .letter = 't'},
    CLI_OPTION_HELP(struct options),
};

/* Settings of Open MPI that make sense on one host: root may start jobs in a container, there may be more
   processes than cores, threads are not tied to the core of their process, and a job that is told to stop has
   time to save. What the user has set stays. */
static tr_status set_environment(const struct options *options)
{
    static const char *const settings[][2] = {
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
        {"OMPI_MCA_hwloc_base_binding_policy", "none"},
        {"TRIREME_TRANSPORT", "mpi"},
    };
    char threads[32];
    long cores = sysconf(_SC_NPROCESSORS_ONLN), each = options->threads;
    if (each == 0) each = cores > options->processes ? cores / options->processes : 1;
    snprintf(threads, sizeof threads, "%ld", each);
    bool failed = setenv("TRIREME_THREADS", threads, options->threads > 0) != 0;
    /* mpirun gives its processes a terminal even where it has none itself. */
    if (!isatty(STDOUT_FILENO)) failed |= setenv("TERM", "dumb", 1) != 0;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        failed |= setenv(settings[i][0], settings[i][1], 0) != 0;
    return failed ? tr_fail(TR_ENOMEM, "out of memory") : TR_OK;
}

static pid_t child;
static volatile sig_atomic_t signals_seen;

static void pass_on(int number)
{
    (void)number;
    int saved = errno;
    kill(child, signals_seen++ == 0 ? SIGUSR1 : SIGTERM);
    errno = saved;
}

static void watch_signals(void)
{
    static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++) {
        sigaction(watched[i], NULL, &before);
        if (before.sa_handler != SIG_IGN) sigaction(watched[i], &action, NULL);
    }
}

/* In the child; comes back only as an exit code that says why not. */
#define NOT_STARTED 127
static void become_mpirun(char **arguments)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execvp(arguments[0], arguments);
    _exit(NOT_STARTED);
}

/* Runs mpirun to its end and returns the exit code that the launcher leaves with. */
static tr_status run_mpirun(char **arguments, int *code)
{
    int status;
    child = fork();
    if (child < 0) return tr_fail(TR_ENOMEM, "mpirun cannot be started: %s", strerror(errno));
    if (child == 0) become_mpirun(arguments);
    setpgid(child, child);
    watch_signals();
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return tr_fail(TR_EIO, "waiting for mpirun: %s", strerror(errno));
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (*code == NOT_STARTED)
        return tr_fail(TR_EUNSUPPORTED, "mpirun cannot be started; install Open MPI (Debian: openmpi-bin)");
    return TR_OK;
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    char self[4096], processes[16];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return tr_fail(TR_EUNSUPPORTED, "the path of this program is not known: %s", strerror(errno));
    self[length] = '\0';
    snprintf(processes, sizeof processes, "%d", options->processes);
    char **arguments = tr_alloc_zero((size_t)options->command.count + 6, sizeof *arguments);
    if (!arguments) return TR_ENOMEM;
    int count = 0, code = 0;
    arguments[count++] = "mpirun";
    arguments[count++] = "-q"; /* a process that fails says why itself */
    arguments[count++] = "-n";
    arguments[count++] = processes;
    arguments[count++] = self;
    for (int32_t i = 0; i < options->command.count; i++) arguments[count++] = options->command.item[i];
    tr_status status = set_environment(options);
    if (status == TR_OK) status = run_mpirun(arguments, &code);
    tr_free(arguments);
    if (status == TR_OK) cli_output_leave_with(code); /* the processes have said what there is to say */
    return status;
}

const struct cli_command cli_launch = {
    .name = "launch",
    .summary = "start a training as several processes of this host",
    .about = "Starts `trireme COMMAND` as several processes which share every step of the job by synchronous "
             "all-reduce, and "
             "end with the hash of a single process. `trireme launch -n 4 train MODEL` is for one host; for "
             "several, start the same "
             "command by mpirun or srun with --transport mpi.",
    CLI_OPTIONS(table, struct options),
    .passes_arguments = true,
    .run = run,
};
