/* trireme train */
#include "commands.h"
#include "output.h"
#include "report.h"
#include "run_directory.h"
#include "signals.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

struct options {
    struct cli_common common;
    char *model;
    struct tr_string_list set;
    struct cli_device device;
    char *out, *resume;
    bool resume_changed, overwrite, quiet;
    int64_t seed, steps;
    int32_t log; /* enum cli_log */
    char *transport, *strategy;
    char *trace;
    int64_t trace_first, trace_steps;
    bool profile;
};

static const struct tr_choice logs[] = {
    {"text", CLI_LOG_TEXT, "lines for people"},
    {"json", CLI_LOG_JSON, "an object a line, the rest goes to stderr"},
    {"none", CLI_LOG_NONE, "only what comes before and after the steps"},
    {NULL, 0, NULL},
};

#define MOST 9007199254740992.0 /* 2^53: whole numbers that a double holds exactly */

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    {.key = "model",
     .type = TR_OPTION_STRING,
     .offset = AT(model),
     .fallback = "",
     .help = "model file; with --resume that of the checkpoint, if not given",
     .flags = TR_OPTION_POSITIONAL},
    CLI_OPTION_SET(struct options),
    {.key = "out",
     .type = TR_OPTION_STRING,
     .offset = AT(out),
     .fallback = "",
     .help = "directory of checkpoints, by default runs/NAME after the job, or where --resume goes on",
     .letter = 'o',
     .value_name = "DIR"},
    {.key = "resume",
     .type = TR_OPTION_STRING,
     .offset = AT(resume),
     .fallback = "",
     .help =
         "go on from this checkpoint, or from the newest good one in this directory, to the same hash as an "
         "undisturbed run",
     .letter = 'r',
     .value_name = "DIR"},
    {.key = "resume_changed",
     .type = TR_OPTION_BOOL,
     .offset = AT(resume_changed),
     .fallback = "false",
     .help = "go on although settings differ from those of the checkpoint; the hash will differ, too"},
    {.key = "transport",
     .type = TR_OPTION_STRING,
     .offset = AT(transport),
     .fallback = "none",
     .help = "none: this process alone; mpi: one of the processes that mpirun or SLURM started, which share "
             "the job and "
             "end with the hash of a single one (`trireme launch` sets it); variable TRIREME_TRANSPORT",
     .flags = TR_OPTION_ENVIRONMENT,
     .value_name = "NAME"},
    {.key = "strategy",
     .type = TR_OPTION_STRING,
     .offset = AT(strategy),
     .fallback = "",
     .help =
         "how several processes share the job, in place of the model file's `strategy:`; with options as in "
         "parameter-server,mode=async",
     .value_name = "NAME"},
    {.key = "trace",
     .type = TR_OPTION_STRING,
     .offset = AT(trace),
     .fallback = "",
     .help = "write a timeline of all processes for Perfetto or chrome://tracing to this file",
     .value_name = "FILE"},
    {.key = "trace_first",
     .type = TR_OPTION_INT64,
     .offset = AT(trace_first),
     .fallback = "0",
     .least = 0,
     .most = MOST,
     .help = "the timeline begins after this step"},
    {.key = "trace_steps",
     .type = TR_OPTION_INT64,
     .offset = AT(trace_steps),
     .fallback = "100",
     .least = 1,
     .most = MOST,
     .help = "steps in the timeline"},
    {.key = "profile",
     .type = TR_OPTION_BOOL,
     .offset = AT(profile),
     .fallback = "false",
     .help = "say at the end what the time went into, by layer and by cause"},
    {.key = "overwrite",
     .type = TR_OPTION_BOOL,
     .offset = AT(overwrite),
     .fallback = "false",
     .help =
         "begin anew in a directory with checkpoints: they are removed once the new run is ready to start"},
    {.key = "seed",
     .type = TR_OPTION_INT64,
     .offset = AT(seed),
     .fallback = "-1",
     .least = -1,
     .most = MOST,
     .help = "seed in place of the model file's; -1: as the file says"},
    {.key = "steps",
     .type = TR_OPTION_INT64,
     .offset = AT(steps),
     .fallback = "0",
     .least = 0,
     .most = MOST,
     .help = "steps to train in all, in place of the model file's; 0: as the file says"},
    CLI_OPTION_DEVICE(struct options),
    {.key = "log",
     .type = TR_OPTION_CHOICE,
     .offset = AT(log),
     .fallback = "text",
     .choices = logs,
     .help = "what is printed while it runs",
     .value_name = "KIND"},
    {.key = "quiet",
     .type = TR_OPTION_BOOL,
     .offset = AT(quiet),
     .fallback = "false",
     .help = "print warnings and errors only, beside what --log json writes",
     .letter = 'q'},
    CLI_OPTION_HELP(struct options),
};
#undef AT

/* Runs a trainer that is ready, with reports and signals. */
static tr_status carry_out(tr_trainer *trainer, const struct options *options, const char *out)
{
    struct cli_report report = {.trainer = trainer,
                                .out = out,
                                .log = (enum cli_log)options->log,
                                .quiet = options->quiet,
                                .profiles = options->profile};
    TR_TRY(cli_report_begin(&report));
    cli_signals_watch(trainer, "finishing the step, saving");
    tr_status status = tr_trainer_run(trainer, cli_report_event, &report);
    status = cli_report_end(&report, status);
    cli_signals_release();
    return status;
}

/* What a process other than the chief does: the work, without a word. */
static tr_status take_part(tr_trainer *trainer)
{
    cli_signals_watch(trainer, NULL);
    tr_status status = tr_trainer_run(trainer, NULL, NULL);
    cli_signals_release();
    return status;
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    if (!options->model && !options->resume)
        return tr_fail(TR_EINVAL,
                       "name a model file, for instance models/mnist-quick.yaml, or a directory to "
                       "--resume (see `trireme train --help`)");
    if (options->resume && options->overwrite)
        return tr_fail(TR_EINVAL,
                       "--resume keeps the checkpoints that --overwrite removes; give one of them");
    char *out = NULL;
    tr_trainer *trainer = NULL;
    tr_status status;
    if (options->out) {
        out = tr_strdup(options->out);
        status = out ? TR_OK : TR_ENOMEM;
    } else {
        status = cli_run_directory(options->model, &options->set, options->resume, &out);
    }
    if (status != TR_OK) goto done;
    if (!options->resume && !options->overwrite) TR_TRY_GOTO(cli_run_check_unused(out), done);
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    settings.model = options->model;
    settings.set = (const char *const *)options->set.item;
    settings.set_count = options->set.count;
    settings.device = options->device.device;
    settings.threads = options->device.threads;
    settings.isa = options->device.isa;
    settings.out = out;
    settings.resume = options->resume;
    settings.resume_changed = options->resume_changed;
    settings.has_seed = options->seed >= 0;
    settings.seed = options->seed >= 0 ? (uint64_t)options->seed : 0;
    settings.steps = options->steps;
    settings.transport = options->transport;
    settings.strategy = options->strategy;
    settings.trace = options->trace;
    settings.trace_first = options->trace_first;
    settings.trace_steps = options->trace_steps;
    settings.profile = options->profile;
    TR_TRY_GOTO(tr_trainer_create(&settings, &trainer), done);
    struct tr_train_info info;
    TR_TRY_GOTO(tr_trainer_info(trainer, &info), done);
    if (options->overwrite && info.rank == 0) TR_TRY_GOTO(cli_run_remove_checkpoints(out), done);
    status = info.rank == 0 ? carry_out(trainer, options, out) : take_part(trainer);
done:
    if (options->transport && strcmp(options->transport, "none") != 0) cli_output_leave_at_once();
    tr_trainer_destroy(&trainer);
    tr_free(out);
    return status;
}

const struct cli_command cli_train = {
    .name = "train",
    .summary = "train the network of a model file",
    .about =
        "Trains the network that a model file describes, writes checkpoints, and prints the test accuracy "
        "and the "
        "SHA-256 of the parameters at the end. The same model file, data and seed give the same hash on any "
        "number of threads and any device. Ctrl-C finishes the step, saves and leaves (exit code 3); a "
        "second "
        "Ctrl-C leaves at once.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
