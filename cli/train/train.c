/* trireme train */
#include "cli/train/train.h"

#include "cli/launch/launched.h"
#include "cli/terminal/output.h"
#include "cli/train/placement.h"
#include "cli/train/report.h"
#include "cli/train/run_directory.h"
#include "cli/program/signals.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "comm/transport.h"
#include "train/setup/clear.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool cli_train_is_numbered(const struct cli_train_options *options)
{
    return options->out && strcmp(options->out, CLI_OUT_AUTO) == 0;
}

/* "runs/a-replay" of the replay of runs/a, or of its log. */
static tr_status directory_of_replay(const char *replay, char **out)
{
    char *run = tr_file_is_directory(replay) ? tr_strdup(replay) : tr_path_parent(replay);
    size_t length = run ? strlen(run) : 0;
    while (length > 1 && run[length - 1] == '/') run[--length] = '\0';
    *out = run ? tr_format("%s-replay", run) : NULL;
    tr_free(run);
    return *out ? TR_OK : TR_ENOMEM;
}

static tr_status find_directory(const struct cli_train_options *options, char **out)
{
    *out = NULL;
    if (!options->out && options->replay) return directory_of_replay(options->replay, out);
    if (cli_train_is_numbered(options)) {
        if (options->transport && strcmp(options->transport, "none") != 0)
            return tr_fail(TR_EINVAL, "--out " CLI_OUT_AUTO
                                      ": processes that mpirun or SLURM starts would each choose another "
                                      "directory; name one, or use `trireme launch`");
        return cli_run_directory_new(options->model, &options->set, options->resume, out);
    }
    if (!options->out) return cli_run_directory(options->model, &options->set, options->resume, out);
    *out = tr_strdup(options->out);
    return *out ? TR_OK : TR_ENOMEM;
}

tr_status cli_train_directory(const struct cli_train_options *options, bool writes, char **out)
{
    TR_TRY(find_directory(options, out));
    if (!options->resume && !options->overwrite && !options->continues) TR_TRY(cli_run_check_unused(*out));
    return writes ? cli_run_check_writable(*out) : TR_OK;
}

static const char *transport_of(const struct cli_train_options *options)
{
    return options->transport ? options->transport : "none";
}

/* The rank of this process in the job, as set by its launcher; 0 for a single one. */
static int rank_to_be(const struct cli_train_options *options)
{
    const char *const *environment = (const char *const *)environ, *transport = transport_of(options);
    int rank = 0, size;
    bool known = false;
    if (strcmp(transport, "local") == 0) known = tr_comm_local_world(environment, &rank, &size);
    if (strcmp(transport, "mpi") == 0) known = tr_comm_mpi_world(environment, &rank, &size);
    return known ? rank : 0;
}

/* Errors of the model file are reported before obstacles to the run. The model file of a checkpoint was
   valid once, and the checkpoint is chosen later. */
static tr_status check_model(const struct cli_train_options *options)
{
    struct tr_train_settings settings;
    struct tr_train_plan plan = TR_TRAIN_PLAN_INIT;
    if (!options->model) return TR_OK;
    cli_train_settings(options, &settings);
    return tr_train_plan(&settings, &plan);
}

/* The items of --slow as one text; returned, free with tr_free(). */
static tr_status join_items(const struct tr_string_list *list, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    for (int32_t i = 0; i < list->count; i++) tr_text_addf(&text, "%s%s", i ? "," : "", list->item[i]);
    *out = NULL;
    return list->count > 0 ? tr_text_finish(&text, out) : TR_OK;
}

/* "local" gets the ticket that the launcher put into the environment. */
static tr_status find_transport(const struct cli_train_options *options, char *out, size_t size)
{
    const char *name = transport_of(options), *ticket = "";
    bool local = strcmp(name, "local") == 0;
    if (local && !(ticket = tr_comm_local_ticket((const char *const *)environ)))
        return tr_fail(TR_EINVAL,
                       "--transport local is for processes that `trireme launch` starts; type `trireme "
                       "launch -n 2 train ...`");
    int length = snprintf(out, size, "%s%s%s", name, local ? ":" : "", ticket);
    return length >= 0 && (size_t)length < size
               ? TR_OK
               : tr_fail(TR_EINVAL, "--transport: \"%.40s...\" is too long", out);
}

/* Processes that mpirun or srun started without an option to share the job each train it. */
static void warn_of_strangers(const struct cli_train_options *options)
{
    int rank, size;
    if (strcmp(transport_of(options), "none") != 0) return;
    if (!tr_comm_mpi_world((const char *const *)environ, &rank, &size) || size == 1 || rank != 0) return;
    cli_message(
        "warning: this is one of %d processes that mpirun or srun started, each of which trains alone; "
        "with --transport mpi they share the job",
        size);
}

static tr_status create(const struct cli_train_options *options, const char *out, tr_trainer **trainer)
{
    struct tr_train_settings settings;
    char transport[TR_LOCAL_TICKET_SIZE + 32], *slow = NULL, *cache, *programs = NULL;
    cli_train_settings(options, &settings);
    TR_TRY(find_transport(options, transport, sizeof transport));
    warn_of_strangers(options);
    TR_TRY(cli_data_cache_directory(&options->cache, &cache));
    tr_status status = cli_program_cache_directory(cache, &programs);
    if (status == TR_OK) status = join_items(&options->slow, &slow);
    if (status != TR_OK) goto out;
    settings.transport = transport;
    settings.data_cache = cache;
    settings.program_cache = programs;
    settings.slow = slow;
    settings.out = out;
    if (settings.tensorboard && strcmp(settings.tensorboard, CLI_TENSORBOARD_OUT) == 0)
        settings.tensorboard = out;
    status = tr_trainer_create(&settings, trainer);
out:
    tr_free(programs);
    tr_free(cache);
    tr_free(slow);
    return status;
}

/* The launcher may want to resume from there, with all processes if some have died. */
static void tell_of_checkpoint(const struct cli_report *report, int64_t step)
{
    struct tr_train_info now = TR_TRAIN_INFO_INIT;
    cli_launched_note(CLI_NOTE_SAVED, step);
    if (step < report->facts.info.steps && tr_trainer_info(report->trainer, &now) == TR_OK &&
        now.ranks < report->facts.info.ranks)
        cli_launched_note(CLI_NOTE_FEWER, now.ranks);
}

static int listen(void *report, const struct tr_train_event *event)
{
    cli_report_event(report, event);
    if (event->kind == TR_EVENT_STEP || event->kind == TR_EVENT_PROGRESS) cli_launched_step(event->step);
    if (event->kind == TR_EVENT_CHECKPOINT) tell_of_checkpoint(report, event->step);
    return 0;
}

static struct cli_report report_of(tr_trainer *trainer, const struct cli_train_options *options,
                                   const char *out)
{
    return (struct cli_report){.trainer = trainer,
                               .out = out,
                               .log = (enum cli_log)options->log,
                               .quiet = options->quiet,
                               .profiles = options->profile};
}

/* A stop after the end of the run must not end the process before its last lines. */
static void stop_listening(void)
{
    cli_signals_hold();
    cli_signals_release();
}

/* After a run: its results. */
static tr_status end_report(tr_trainer *trainer, struct cli_report *report, tr_status status)
{
    struct tr_train_info now = TR_TRAIN_INFO_INIT;
    if (tr_trainer_info(trainer, &now) == TR_OK) cli_launched_note(CLI_NOTE_STEP, now.step);
    return cli_report_end(report, status);
}

/* Runs a trainer that is ready, with reports and signals. */
static tr_status carry_out(tr_trainer *trainer, const struct cli_train_options *options, const char *out)
{
    struct cli_report report = report_of(trainer, options, out);
    TR_TRY(cli_report_begin(&report));
    if (options->placement) TR_TRY(cli_placement_print(trainer, report.log == CLI_LOG_JSON));
    cli_launched_note(CLI_NOTE_BEGUN, report.facts.info.step);
    /* A launcher has notified the user already. */
    cli_signals_catch(trainer, options->launched ? NULL : "finishing the step, saving");
    tr_status status = tr_trainer_run(trainer, listen, &report);
    status = end_report(trainer, &report, status);
    stop_listening();
    return status;
}

/* The first process to leave makes mpirun end the others. The reporter gets time to find the cause by
   itself, before all processes die for another reason. */
static void last_words(const struct cli_train_options *options, int rank)
{
    cli_launched_note(CLI_NOTE_LOST, rank);
    if (strcmp(transport_of(options), "mpi") != 0) return;
    nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL);
}

/* The part of a process other than the root: it works, and leaves the printing to the root. If all were
   asked to stop, only the root's exit code reports it: mpirun ends all processes at the first code that is
   not 0, and this process may leave before the root's last lines. If the root died, this process may have
   become the root, *root. */
static tr_status take_part(tr_trainer *trainer, const struct cli_train_options *options, const char *out,
                           int rank, bool *root)
{
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    struct cli_report report = report_of(trainer, options, out);
    report.later = true;
    TR_TRY(cli_report_begin(&report));
    cli_signals_catch(trainer, NULL);
    tr_status status = tr_trainer_run(trainer, listen, &report);
    *root = tr_trainer_info(trainer, &info) == TR_OK && info.rank == 0;
    if (*root) status = end_report(trainer, &report, status);
    cli_report_drop(&report);
    if (!*root && status == TR_EINTERRUPTED) {
        cli_signals_ignore(); /* the root leaves after all have arrived here */
        return TR_OK;
    }
    stop_listening();
    if (*root) return status;
    if (status == TR_EPEER && !tr_trainer_is_reporter(trainer)) {
        cli_output_leave_with(cli_exit_of(status));
        last_words(options, rank);
        return TR_OK;
    }
    return status == TR_OK || status == TR_EPEER ? status : tr_fail_in(status, "rank %d", rank);
}

/* A run whose last lines cannot be written has failed, too: see cli_dispatch(). */
static void tell_end(tr_status status)
{
    bool heard = cli_output_flush();
    if (!heard) cli_launched_note(CLI_NOTE_UNHEARD, 0);
    cli_launched_note(CLI_NOTE_ENDED, cli_exit_of(status == TR_OK && !heard ? TR_EIO : status));
}

static tr_status train(const struct cli_train_options *options)
{
    char *out = NULL;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    tr_trainer *trainer = NULL;
    bool ready = false, root = false;
    tr_status status;
    TR_TRY_GOTO(check_model(options), done);
    TR_TRY_GOTO(cli_train_directory(options, rank_to_be(options) == 0, &out), done); /* rank 0 writes */
    TR_TRY_GOTO(create(options, out, &trainer), done);
    TR_TRY_GOTO(tr_trainer_info(trainer, &info), done);
    /* Checkpoints found by --continue are not removed. */
    if (options->overwrite && info.rank == 0 && !*info.resumed) TR_TRY_GOTO(tr_run_clear(out), done);
    ready = true;
    root = info.rank == 0;
    status = root ? carry_out(trainer, options, out) : take_part(trainer, options, out, info.rank, &root);
    if (root) tell_end(status);
done:
    if (status == TR_EPEER) cli_launched_note(CLI_NOTE_LOST, trainer ? info.rank : -1);
    if (strcmp(transport_of(options), "none") != 0) cli_output_leave_at_once();
    struct tr_failure how; /* leaving a broken job fails, too, with a less useful message */
    tr_failure_keep(&how, status);
    tr_trainer_destroy(&trainer);
    if (!ready && out && cli_train_is_numbered(options)) cli_run_directory_drop(out);
    tr_free(out);
    return tr_failure_restore(&how);
}

tr_status cli_train_run(const void *options_)
{
    const struct cli_train_options *options = options_;
    cli_launched_begin(options->launched);
    cli_signals_hold();
    if (!options->model && !options->resume && !options->replay)
        return tr_fail(TR_EINVAL,
                       "name a model file, for instance models/mnist-quick.yaml, or a directory to "
                       "--resume (see `trireme train --help`)");
    if (options->resume && tr_file_exists(options->resume) && !tr_file_is_directory(options->resume))
        return tr_fail(
            TR_EINVAL,
            "--resume: \"%s\" is a file; give the directory of a run or of a checkpoint, and the model file, "
            "if any, without an option",
            options->resume);
    if (options->resume && options->overwrite)
        return tr_fail(TR_EINVAL,
                       "--resume keeps the checkpoints that --overwrite removes; give one of them");
    return train(options);
}
