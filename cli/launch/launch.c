/* trireme launch: starts a training as several processes, and again when it is lost. */
#include "cli/program/arguments.h"
#include "cli/program/command_help.h"
#include "cli/program/commands.h"
#include "cli/launch/job.h"
#include "cli/terminal/output.h"
#include "cli/train/run_directory.h"
#include "cli/train/train.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/scratch_dir.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "train/setup/resume.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Pause between two attempts without progress: doubled each time. */
#define PAUSE_SECONDS      0.5
#define PAUSE_SECONDS_MOST 60.0

enum { TRANSPORT_AUTO, TRANSPORT_LOCAL, TRANSPORT_MPI };

static const struct tr_choice transports[] = {
    {"auto", TRANSPORT_AUTO, "local; mpi with --hosts or --hostfile"},
    {"local", TRANSPORT_LOCAL, "processes of this host, which share memory; needs no other software"},
    {"mpi", TRANSPORT_MPI, "by Open MPI's mpirun"},
    {NULL, 0, NULL},
};

enum { LOSS_STOP, LOSS_SHRINK };

static const struct tr_choice losses[] = {
    {"stop", LOSS_STOP, "the job ends; --restarts starts it again"},
    {"shrink", LOSS_SHRINK,
     "the others go on from the last step, to the same weights; with --restarts all are started again once a "
     "checkpoint is written; for the strategy allreduce, with several hosts and train --replicas-of-state 1"},
    {NULL, 0, NULL},
};

struct options {
    struct cli_common common;
    int32_t processes, threads, restarts, transport, on_loss;
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
    CLI_OPTION_THREADS(struct options, "threads of each process; 0: the processors of each host, divided "
                                       "evenly"),
    {.key = "transport",
     .type = TR_OPTION_CHOICE,
     .offset = AT(transport),
     .fallback = "auto",
     .choices = transports,
     .help = "how the processes are started and joined",
     .value_name = "NAME"},
    {.key = "restarts",
     .type = TR_OPTION_INT32,
     .offset = AT(restarts),
     .fallback = "0",
     .least = 0,
     .most = 1000000,
     .help = "how often a lost job (a process died or hangs, a disk was full) is started again from its "
             "newest checkpoint"},
    {.key = "on_loss",
     .type = TR_OPTION_CHOICE,
     .offset = AT(on_loss),
     .fallback = "stop",
     .choices = losses,
     .help = "what a synchronous job does when a process dies: stop, or go on with the others (shrink)",
     .value_name = "WHAT"},
    {.key = "hosts",
     .type = TR_OPTION_STRING,
     .offset = AT(hosts),
     .fallback = "",
     .help = "hosts to run on instead of this one, with the number of processes on each; the program must "
             "have the same path on all",
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
    const struct cli_launcher *launcher;
    struct cli_job_orders orders;
    char token[24];  /* of notes */
    char self[4096]; /* path of this program */
    char **words;
    char *directory; /* made for --out auto, or NULL */
    char *out;       /* then "--out=<directory>", which all attempts share */
};

/* ---- an attempt, and what becomes of it ---- */

/* "rank 1 was ended by signal 9" */
static void describe(const struct cli_job_end *end, char *out, size_t size)
{
    if (end->signal > 0)
        snprintf(out, size, "%s was ended by signal %d", end->whose, end->signal);
    else
        snprintf(out, size, "it failed with exit code %d", end->code);
}

static void add_step(char *text, size_t size, int64_t step)
{
    if (step >= 0) snprintf(text, size, " at step %" PRId64 " or soon after", step);
}

/* The exit code of a job that the user stopped before it could report one. */
static int stopped_code(int number)
{
    return 128 + number;
}

/* Whether another attempt may succeed where this one failed. */
static bool may_try_again(const struct cli_job_end *end, bool begun)
{
    if (end->stop_signal || end->unheard) return false;
    return end->code == CLI_EXIT_FAILED || (end->code == CLI_EXIT_WRONG && !end->started && begun);
}

static void say_what_failed(const struct cli_job_orders *orders, const struct cli_job_end *end)
{
    char how[96], step[48] = "";
    if (end->code == CLI_EXIT_WRONG && !end->started) {
        cli_message(
            "mpirun could not start the processes; what it says is above%s",
            orders->hosts || orders->hostfile
                ? " (are the names of the hosts right, can they be reached by ssh without a password, "
                  "is the program there?)"
                : "");
    } else if (end->code == CLI_EXIT_FAILED) {
        describe(end, how, sizeof how);
        add_step(step, sizeof step, end->step);
        cli_message("the job was lost%s: %s", step, how);
    }
}

/* Reports the next attempt, and waits. False: the user ended it. */
static bool prepare_restart(const struct launch *launch, int restart, double pause, int64_t saved, bool begun,
                            int *code)
{
    char from[64] = "the beginning";
    if (saved >= 0) snprintf(from, sizeof from, "the checkpoint of step %" PRId64, saved);
    cli_message("restart %d of %d in %g s, from %s", restart, launch->options->restarts, pause, from);
    int number = cli_job_pause(pause);
    if (number) *code = saved >= 0 ? CLI_EXIT_INTERRUPTED : stopped_code(number);
    if (number && saved >= 0) cli_message("stopped; the last checkpoint can be resumed");
    if (begun) setenv("TRIREME_CONTINUE", "true", 1);
    return number == 0;
}

/* A job that continued with fewer processes was stopped after it saved, to resume with all. */
static bool is_to_grow(const struct cli_job_end *end)
{
    return end->grows && end->ended && end->code == CLI_EXIT_INTERRUPTED && end->stop_signal == 0;
}

static void say_growth(const struct launch *launch, int restart, int64_t saved)
{
    cli_message("restart %d of %d with all %d processes, from the checkpoint of step %" PRId64, restart,
                launch->options->restarts, launch->options->processes, saved);
    setenv("TRIREME_CONTINUE", "true", 1);
}

/* The exit code of the launcher. */
static int code_of(const struct cli_job_end *end)
{
    bool early = end->stop_signal && !end->begun && end->code != CLI_EXIT_DONE;
    if (early && !end->stop_twice) cli_message("stopped before the training began");
    return early || end->stop_twice ? stopped_code(end->stop_signal) : end->code;
}

/* Attempts until one ends well, or another could not help. */
static tr_status run_attempts(struct launch *launch, int *code)
{
    double pause = PAUSE_SECONDS;
    int64_t saved = -1;
    bool begun = false;
    for (int restart = 1;; restart++) {
        struct cli_job_end end;
        launch->orders.grows = launch->orders.outlives && restart <= launch->options->restarts;
        TR_TRY(cli_job_run(launch->launcher, &launch->orders, &end));
        *code = code_of(&end);
        if (*code == end.code) say_what_failed(&launch->orders, &end);
        begun |= end.begun;
        if (is_to_grow(&end)) {
            say_growth(launch, restart, saved = end.saved);
            continue;
        }
        if (end.unheard && launch->options->restarts > 0)
            cli_message("standard output takes nothing; the job is not started again");
        if (!may_try_again(&end, begun) || restart > launch->options->restarts) return TR_OK;
        bool further = end.saved > saved;
        if (end.saved >= 0) saved = end.saved;
        pause = further || restart == 1 ? PAUSE_SECONDS : pause * 2;
        if (pause > PAUSE_SECONDS_MOST) pause = PAUSE_SECONDS_MOST;
        if (!prepare_restart(launch, restart, pause, saved, begun, code)) return TR_OK;
    }
}

/* ---- before anything is started ---- */

static const struct cli_launcher *const launchers[] = {&cli_launcher_local, &cli_launcher_mpi};

static tr_status choose_launcher(struct launch *launch)
{
    const struct options *options = launch->options;
    bool here = !options->hosts && !options->hostfile;
    launch->launcher =
        launchers[options->transport == TRANSPORT_AUTO ? !here : options->transport - TRANSPORT_LOCAL];
    return launch->launcher->check(&launch->orders);
}

/* Only the launcher gives `train` its options about the transport. */
static tr_status check_transport(const struct launch *launch)
{
    const struct tr_string_list *command = &launch->options->command;
    for (int32_t i = 1; i < command->count; i++)
        if (strncmp(command->item[i], "--transport", strlen("--transport")) == 0)
            return tr_fail(TR_EINVAL,
                           "give --transport to launch, before `train`; launch passes it to the processes");
    return TR_OK;
}

/* The processes of all attempts share one directory: it is chosen before they start. */
static tr_status number_directory(struct launch *launch, const struct cli_train_options *train)
{
    TR_TRY(cli_run_directory_new(train->model, &train->set, train->resume, &launch->directory));
    launch->out = tr_format("--out=%s", launch->directory);
    return launch->out ? TR_OK : TR_ENOMEM;
}

/* The directory is that of the host of rank 0: this one, unless others were named. */
static tr_status check_directory(struct launch *launch, const struct cli_train_options *train)
{
    char *out;
    if (cli_train_is_numbered(train)) return number_directory(launch, train);
    if (launch->orders.hosts || launch->orders.hostfile) return TR_OK;
    tr_status status = cli_train_directory(train, true, &out);
    tr_free(out);
    return status;
}

/* A wrong command line is refused here, once; *done: it asked for help, which was given. */
static tr_status check_train(struct launch *launch, const struct cli_train_options *train, bool *done)
{
    struct tr_train_settings settings;
    struct tr_train_plan plan = TR_TRAIN_PLAN_INIT;
    *done = train->common.help;
    if (*done) return cli_help_print(&cli_train);
    TR_TRY(check_transport(launch));
    cli_train_settings(train, &settings);
    TR_TRY(tr_train_plan(&settings, &plan));
    launch->orders.outlives = launch->options->on_loss == LOSS_SHRINK && !plan.asynchronous;
    launch->orders.tolerant = plan.asynchronous || launch->orders.outlives;
    return check_directory(launch, train);
}

/* The words after the launcher's options, without `train`. */
static tr_status refuse_command(const struct launch *launch, const char *word)
{
    for (int i = 0; cli_commands[i]; i++)
        if (strcmp(cli_commands[i]->name, word) == 0)
            return tr_fail(TR_EINVAL,
                           "only `train` shares its work among processes; `trireme %s` runs by itself", word);
    return tr_fail(
        TR_EINVAL,
        "\"%s\" is not a command; name the work of the processes, as in `trireme launch -n %d train %s`",
        word, launch->options->processes, tr_file_exists(word) ? word : "MODEL");
}

/* Whether this is the command that `trireme plan --hosts` starts. */
static bool measures_network(const struct tr_string_list *command)
{
    return command->count > 1 && strcmp(command->item[0], cli_plan.name) == 0 &&
           strcmp(command->item[command->count - 1], "--probe") == 0;
}

static tr_status check_command(struct launch *launch, bool *done)
{
    const struct tr_string_list *command = &launch->options->command;
    void *read;
    *done = false;
    if (measures_network(command)) return TR_OK;
    if (strcmp(command->item[0], cli_train.name) != 0) return refuse_command(launch, command->item[0]);
    TR_TRY(cli_command_read(&cli_train, command->count - 1, (const char *const *)command->item + 1,
                            (const char *const *)environ, &read));
    tr_status status = check_train(launch, read, done);
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

/* `words` has room for the program, the command, its directory and NULL. */
static void give_words(struct launch *launch)
{
    const struct tr_string_list *command = &launch->options->command;
    char **next = launch->words, *out = launch->out;
    *next++ = launch->self;
    for (int32_t i = 0; i < command->count; i++) {
        if (out && strcmp(command->item[i], "--") == 0) *next++ = out, out = NULL;
        *next++ = command->item[i];
    }
    *next = out;
}

static tr_status give_orders(struct launch *launch)
{
    const struct options *options = launch->options;
    uint64_t random = 0;
    TR_TRY(find_self(launch));
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return tr_fail(TR_EIO, "no random numbers: %s", strerror(errno));
    snprintf(launch->token, sizeof launch->token, "%016" PRIx64, random);
    launch->orders.words = launch->words;
    launch->orders.token = launch->token;
    launch->orders.processes = options->processes;
    launch->orders.threads = options->threads;
    launch->orders.hosts = options->hosts;
    launch->orders.hostfile = options->hostfile;
    return TR_OK;
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    struct launch launch = {.options = options};
    bool done;
    int code = 0;
    tr_status status;
    launch.words = tr_alloc_zero((size_t)options->command.count + 3, sizeof *launch.words);
    if (!launch.words) return TR_ENOMEM;
    TR_TRY_GOTO(give_orders(&launch), out);
    TR_TRY_GOTO(check_command(&launch, &done), out);
    if (done) goto out;
    give_words(&launch);
    TR_TRY_GOTO(choose_launcher(&launch), out);
    TR_TRY_GOTO(cli_job_prepare(), out);
    tr_scratch_dir_sweep(TR_RESUME_SCRATCH);
    TR_TRY_GOTO(run_attempts(&launch, &code), out);
    cli_output_leave_with(code); /* no further message is needed */
out:
    if (launch.directory) cli_run_directory_drop(launch.directory);
    tr_free(launch.directory);
    tr_free(launch.out);
    tr_free(launch.words);
    return status;
}

const struct cli_command cli_launch = {
    .name = "launch",
    .summary = "start a training as several processes",
    .about =
        "Starts `trireme train` as several processes of this host or, with Open MPI, of several hosts. They "
        "share the job by the strategy of the model file or --strategy. Synchronous strategies end with the "
        "hash of a single process. Ctrl-C finishes the step, saves and ends the job (exit code 3); a second "
        "Ctrl-C ends it at once. --restarts restarts a job after a crash; the result is the same. The same "
        "program runs under plain mpirun and srun with --transport mpi, see docs/how-to/cluster.md.",
    CLI_OPTIONS(table, struct options),
    .passes_arguments = true,
    .run = run,
};
