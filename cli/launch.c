/* trireme launch: starts a training as several processes by mpirun, and again when it is lost. */
#include "commands.h"
#include "launch_job.h"
#include "launch_place.h"
#include "output.h"
#include "train.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Between two attempts that come no further: twice as long each time. */
#define PAUSE_SECONDS      0.5
#define PAUSE_SECONDS_MOST 60.0

struct options {
    struct cli_common common;
    int32_t processes, threads, restarts;
    char *hosts, *hostfile;
    struct tr_string_list command;
};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    {.key = "command",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(command),
     .fallback = NULL,
     .help = "train with its model file and options",
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
     .help = "threads of each; 0: the processors of each host, shared out evenly",
     .letter = 't'},
    {.key = "restarts",
     .type = TR_OPTION_INT32,
     .offset = AT(restarts),
     .fallback = "0",
     .least = 0,
     .most = 1000000,
     .help = "how often a job that was lost (a process died or hangs, a disk was full) is started again from "
             "its newest checkpoint"},
    {.key = "hosts",
     .type = TR_OPTION_STRING,
     .offset = AT(hosts),
     .fallback = "",
     .help =
         "hosts to run on in place of this one, with the number of processes of each; this program must lie "
         "at the same path on all of them",
     .value_name = "HOST:N,..."},
    {.key = "hostfile",
     .type = TR_OPTION_STRING,
     .offset = AT(hostfile),
     .fallback = "",
     .help = "file that names the hosts, `HOST slots=N` a line, as mpirun reads it",
     .value_name = "FILE"},
    CLI_OPTION_HELP(struct options),
};

/* A launch under way. */
struct launch {
    const struct options *options;
    bool tolerant;  /* see struct cli_job */
    char token[24]; /* of notes */
    struct cli_place place;
    char **arguments; /* of mpirun; ends with NULL */
    char self[4096];  /* path of this program */
    char processes[16];
};

/* ---- what mpirun is told ---- */

/* Settings of Open MPI that make sense for training: root may start jobs in a container, there may be more
   processes than processors, and it is left to the processes to choose their processors (--bind). What the
   user has set stays. */
static tr_status set_environment(struct launch *launch)
{
    const struct options *options = launch->options;
    const char *const settings[][2] = {
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
        {"OMPI_MCA_hwloc_base_binding_policy", "none"},
        {"OMPI_MCA_orte_keep_fqdn_hostnames", "1"}, /* else a.example.org becomes a */
        {"OMPI_MCA_orte_enable_recovery", launch->tolerant ? "1" : "0"},
    };
    char threads[16];
    bool failed = setenv("TRIREME_TRANSPORT", "mpi", 1) != 0;
    failed |= setenv("TRIREME_BIND", "true", 0) != 0;
    failed |= setenv("TRIREME_LAUNCHED", launch->token, 1) != 0;
    snprintf(threads, sizeof threads, "%d", options->threads);
    if (options->threads > 0) failed |= setenv("TRIREME_THREADS", threads, 1) != 0;
    /* mpirun gives its processes a terminal even where it has none itself. */
    if (!isatty(STDOUT_FILENO)) failed |= setenv("TERM", "dumb", 1) != 0;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        failed |= setenv(settings[i][0], settings[i][1], 0) != 0;
    /* Other hosts know no directory of ours. */
    if (!options->hosts && !options->hostfile) cli_place_make(&launch->place);
    return failed ? tr_fail(TR_ENOMEM, "out of memory") : TR_OK;
}

/* The variables that other hosts do not get by themselves. */
#define OURS "TRIREME_"

static tr_status make_arguments(struct launch *launch)
{
    const struct options *options = launch->options;
    size_t room = (size_t)options->command.count + 16;
    for (char **variable = environ; *variable; variable++) room += 2;
    char **next = launch->arguments = tr_alloc_zero(room, sizeof *next);
    if (!next) return TR_ENOMEM;
    snprintf(launch->processes, sizeof launch->processes, "%d", options->processes);
    *next++ = "mpirun";
    *next++ = "-q"; /* a process that fails says why itself */
    *next++ = "-n";
    *next++ = launch->processes;
    if (options->hosts) *next++ = "--host", *next++ = options->hosts;
    if (options->hostfile) *next++ = "--hostfile", *next++ = options->hostfile;
    for (char **variable = environ; *variable; variable++) {
        if (strncmp(*variable, OURS, strlen(OURS)) != 0) continue;
        char *name = tr_strdup(*variable);
        if (!name) return TR_ENOMEM;
        name[strcspn(name, "=")] = '\0';
        *next++ = "-x";
        *next++ = name;
    }
    *next++ = launch->self;
    for (int32_t i = 0; i < options->command.count; i++) *next++ = options->command.item[i];
    return TR_OK;
}

static void free_arguments(struct launch *launch)
{
    /* The names of variables are ours; what follows the program is the user's. */
    for (char **at = launch->arguments; at && *at && *at != launch->self; at++)
        if (strcmp(*at, "-x") == 0) tr_free(*++at);
    tr_free(launch->arguments);
    launch->arguments = NULL;
}

/* ---- an attempt, and what becomes of it ---- */

static tr_status attempt(struct launch *launch, struct cli_job_end *end)
{
    tr_status status = set_environment(launch);
    if (status == TR_OK) status = make_arguments(launch);
    struct cli_job job = {launch->arguments, launch->token, launch->tolerant};
    if (status == TR_OK) status = cli_job_run(&job, end);
    free_arguments(launch);
    cli_place_remove(&launch->place);
    return status;
}

/* "a process was killed by signal 9" */
static void describe(const struct cli_job_end *end, char *out, size_t size)
{
    if (end->signal > 0)
        snprintf(out, size, "%s was ended by signal %d", end->by_mpirun ? "mpirun" : "a process",
                 end->signal);
    else if (end->ended || end->code != CLI_EXIT_FAILED)
        snprintf(out, size, "it failed with exit code %d", end->code);
    else
        snprintf(out, size, "a process failed");
}

static void add_step(char *text, size_t size, int64_t step)
{
    if (step >= 0) snprintf(text, size, " at step %" PRId64 " or soon after", step);
}

/* What the user asked for ends with, before the job could say it itself. */
static int stopped_code(int number)
{
    return 128 + number;
}

/* Whether another attempt may succeed where this one did not. */
static bool may_try_again(const struct cli_job_end *end, bool begun)
{
    if (end->stop_signal) return false;
    return end->code == CLI_EXIT_FAILED || (end->code == CLI_EXIT_WRONG && !end->started && begun);
}

static void say_what_failed(const struct cli_job_end *end)
{
    char how[96], step[48] = "";
    if (end->code == CLI_EXIT_WRONG && !end->started) {
        cli_message("mpirun could not start the processes; what it says is above (are the names of the hosts "
                    "right, can they be reached by ssh without a password, is the program there?)");
    } else if (end->code == CLI_EXIT_FAILED) {
        describe(end, how, sizeof how);
        add_step(step, sizeof step, end->step);
        cli_message("the job was lost%s: %s", step, how);
    }
}

/* Says what comes next, and waits. False: the user ended it. */
static bool prepare_restart(const struct launch *launch, int restart, double pause, int64_t saved, bool begun,
                            int *code)
{
    char from[64] = "the beginning";
    if (saved >= 0) snprintf(from, sizeof from, "the checkpoint of step %" PRId64, saved);
    cli_message("restart %d of %d in %g s, from %s", restart, launch->options->restarts, pause, from);
    int number = cli_job_pause(pause);
    if (number) *code = saved >= 0 ? CLI_EXIT_INTERRUPTED : stopped_code(number);
    if (number && saved >= 0) cli_message("stopped; what was saved last is there to go on from");
    if (begun) setenv("TRIREME_CONTINUE", "true", 1);
    return number == 0;
}

/* What the launcher leaves with. */
static int code_of(const struct cli_job_end *end)
{
    bool early = end->stop_signal && !end->begun && end->code != CLI_EXIT_DONE;
    if (early && !end->stop_twice) cli_message("stopped before the training began");
    return early || end->stop_twice ? stopped_code(end->stop_signal) : end->code;
}

/* Attempts until one ends as it should, or no other may help. */
static tr_status run_attempts(struct launch *launch, int *code)
{
    double pause = PAUSE_SECONDS;
    int64_t saved = -1;
    bool begun = false;
    for (int restart = 1;; restart++) {
        struct cli_job_end end;
        TR_TRY(attempt(launch, &end));
        *code = code_of(&end);
        if (*code == end.code) say_what_failed(&end);
        begun |= end.begun;
        if (!may_try_again(&end, begun) || restart > launch->options->restarts) return TR_OK;
        bool further = end.saved > saved;
        if (end.saved >= 0) saved = end.saved;
        pause = further || restart == 1 ? PAUSE_SECONDS : pause * 2;
        if (pause > PAUSE_SECONDS_MOST) pause = PAUSE_SECONDS_MOST;
        if (!prepare_restart(launch, restart, pause, saved, begun, code)) return TR_OK;
    }
}

/* ---- before anything is started ---- */

/* A command line that is wrong is refused here, once; *done: it asked for help, which was given. */
static tr_status check_command(struct launch *launch, bool *done)
{
    const struct tr_string_list *command = &launch->options->command;
    void *read;
    *done = false;
    if (strcmp(command->item[0], cli_train.name) != 0)
        return tr_fail(TR_EINVAL, "only `train` shares its work among processes; `trireme %s` runs by itself",
                       command->item[0]);
    TR_TRY(cli_command_read(&cli_train, command->count - 1, (const char *const *)command->item + 1,
                            (const char *const *)environ, &read));
    const struct cli_train_options *train = read;
    struct tr_train_settings settings;
    struct tr_train_plan plan = {.asynchronous = false};
    char *text = NULL;
    cli_train_settings(train, &settings);
    *done = train->common.help;
    tr_status status = *done ? cli_help_command(&cli_train, &text) : tr_train_plan(&settings, &plan);
    if (text) cli_print(text);
    launch->tolerant = plan.asynchronous;
    cli_command_release(&cli_train, &read);
    return status;
}

static tr_status find_self(struct launch *launch)
{
    ssize_t length = readlink("/proc/self/exe", launch->self, sizeof launch->self - 1);
    if (length < 0)
        return tr_fail(TR_EUNSUPPORTED, "the path of this program is not known: %s", strerror(errno));
    launch->self[length] = '\0';
    return TR_OK;
}

static tr_status run(const void *options_)
{
    struct launch launch = {.options = options_, .place = {.lock = -1}};
    uint64_t random = 0;
    bool done;
    int code = 0;
    TR_TRY(check_command(&launch, &done));
    if (done) return TR_OK;
    TR_TRY(find_self(&launch));
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return tr_fail(TR_EIO, "no random numbers: %s", strerror(errno));
    snprintf(launch.token, sizeof launch.token, "%016" PRIx64, random);
    TR_TRY(cli_job_prepare());
    TR_TRY(run_attempts(&launch, &code));
    cli_output_leave_with(code); /* there is nothing more to say */
    return TR_OK;
}

const struct cli_command cli_launch = {
    .name = "launch",
    .summary = "start a training as several processes",
    .about =
        "Starts `trireme train` as several processes of this host or of others, which share the job by the "
        "strategy of the model file or --strategy. Synchronous strategies end with the hash of a single "
        "process. Ctrl-C lets them finish the step, save and leave (exit code 3); a second Ctrl-C ends them "
        "at once. With --restarts a job that was lost goes on from its newest checkpoint. The same program "
        "runs under plain mpirun and srun with --transport mpi, see docs/cluster.md.",
    CLI_OPTIONS(table, struct options),
    .passes_arguments = true,
    .run = run,
};
