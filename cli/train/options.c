/* The command line of `trireme train`. */
#include "cli/train/train.h"

#include "cli/program/commands.h"
#include "cli/train/report.h"

static const struct tr_choice logs[] = {
    {"text", CLI_LOG_TEXT, "lines for people"},
    {"json", CLI_LOG_JSON, "an object a line, the rest goes to stderr"},
    {"none", CLI_LOG_NONE, "only what comes before and after the steps"},
    {NULL, 0, NULL},
};

#define MOST_MS 1e12

#define AT(field) offsetof(struct cli_train_options, field)
static const struct tr_option table[] = {
    {.key = "model",
     .type = TR_OPTION_STRING,
     .offset = AT(model),
     .fallback = "",
     .help = CLI_MODEL_HELP "; may be left out with --resume, since checkpoints have it",
     .flags = TR_OPTION_POSITIONAL},
    CLI_OPTION_SET(struct cli_train_options),
    {.key = "out",
     .type = TR_OPTION_STRING,
     .offset = AT(out),
     .fallback = "",
     .help = "directory of checkpoints; default: runs/NAME after the job, or that of --resume; auto: a new "
             "one, runs/NAME-1, -2 and so on",
     .letter = 'o',
     .value_name = "DIR"},
    {.key = "resume",
     .type = TR_OPTION_STRING,
     .offset = AT(resume),
     .fallback = "",
     .help = "resume from this checkpoint, or from the newest good one in this directory; the hash is that "
             "of an undisturbed run",
     .letter = 'r',
     .value_name = "DIR"},
    {.key = "resume_changed",
     .type = TR_OPTION_BOOL,
     .offset = AT(resume_changed),
     .fallback = "false",
     .help = "resume although settings differ from the checkpoint's; the hash will differ, too"},
    {.key = "from",
     .type = TR_OPTION_STRING,
     .offset = AT(from),
     .fallback = "",
     .help = "start with the parameters of this checkpoint, or of the newest in this directory, where name "
             "and shape agree; the others start as the model file says",
     .value_name = "DIR"},
    {.key = "teacher",
     .type = TR_OPTION_STRING,
     .offset = AT(teacher),
     .fallback = "",
     .help =
         "learn the scores of this trained network beside the labels, as `distill` of the model file says",
     .value_name = "DIR"},
    {.key = "replay",
     .type = TR_OPTION_STRING,
     .offset = AT(replay),
     .fallback = "",
     .help =
         "repeat the asynchronous run of this directory by its log of updates, to the same weights, in one "
         "or several processes; MODEL defaults to the run's, --out to DIR-replay",
     .value_name = "DIR"},
    {.key = "schedule",
     .type = TR_OPTION_STRING,
     .offset = AT(schedule),
     .fallback = "",
     .help = "train with the updates listed in this file, in the format of `trireme log`: the worker, the "
             "batch and the version of the parameters of each gradient",
     .value_name = "FILE"},
    {.key = "simulate_delays",
     .type = TR_OPTION_INT64,
     .offset = AT(simulate_delays),
     .fallback = "0",
     .least = 0,
     .most = TR_OPTION_WHOLE,
     .help = "simulate the workers of an asynchronous run in this process, with random delays by this seed "
             "and --slow; the same run each time; 0: none",
     .value_name = "SEED"},
    {.key = "simulate_workers",
     .type = TR_OPTION_INT32,
     .offset = AT(simulate_workers),
     .fallback = "4",
     .least = 1,
     .most = 4095,
     .help = "number of simulated workers"},
    {.key = "transport",
     .type = TR_OPTION_STRING,
     .offset = AT(transport),
     .fallback = "none",
     .help = "none: this process alone; local: one of the processes that `trireme launch` started on this "
             "host; mpi: one of those that mpirun or SLURM started (`trireme launch` sets it); variable "
             "TRIREME_TRANSPORT",
     .flags = TR_OPTION_ENVIRONMENT,
     .value_name = "NAME"},
    {.key = "strategy",
     .type = TR_OPTION_STRING,
     .offset = AT(strategy),
     .fallback = "",
     .help = "how several processes share the job, instead of the model file's `strategy:`; with options as "
             "in parameter-server,mode=async",
     .value_name = "NAME"},
    {.key = "bind",
     .type = TR_OPTION_BOOL,
     .offset = AT(bind),
     .fallback = "false",
     .help = "bind each process of a host to its own processors, unless there are too few (`trireme launch` "
             "sets it); variable TRIREME_BIND",
     .flags = TR_OPTION_ENVIRONMENT},
    CLI_OPTION_MEMORY_CHECK(struct cli_train_options),
    {.key = "timeout",
     .type = TR_OPTION_INT64,
     .offset = AT(timeout),
     .fallback = "60000",
     .least = 1,
     .most = MOST_MS,
     .help = "milliseconds of silence after which another process counts as hung and the job ends; variable "
             "TRIREME_TIMEOUT",
     .flags = TR_OPTION_ENVIRONMENT,
     .value_name = "MS"},
    {.key = "patience",
     .type = TR_OPTION_INT64,
     .offset = AT(patience),
     .fallback = "0",
     .least = 0,
     .most = MOST_MS,
     .help = "milliseconds to wait for a process that lives but does not respond; 0: half an hour, or the "
             "time-out if longer; variable TRIREME_PATIENCE",
     .flags = TR_OPTION_ENVIRONMENT,
     .value_name = "MS"},
    {.key = "outlives",
     .type = TR_OPTION_BOOL,
     .offset = AT(outlives),
     .fallback = "false",
     .help = "continue when another process of the host dies (`trireme launch --on-loss shrink` sets it); "
             "variable TRIREME_OUTLIVES",
     .flags = TR_OPTION_ENVIRONMENT},
    {.key = "replicas_of_state",
     .type = TR_OPTION_INT32,
     .offset = AT(replicas_of_state),
     .fallback = "0",
     .least = 0,
     .most = 1,
     .help = "copies of each process's moments on another host, so that a job of several hosts can continue "
             "when a process dies; not needed on one host"},
    {.key = "slow",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(slow),
     .fallback = "",
     .help = "makes a process compute FACTOR times slower, to study stragglers; may be given several times",
     .value_name = "RANK:FACTOR"},
    {.key = "shares",
     .type = TR_OPTION_STRING,
     .offset = AT(shares),
     .fallback = "equal",
     .help = "how the microbatches of a step are divided among the computing processes: equal; auto: by "
             "measured speed; or a speed for each, as in 3,1,1. For allreduce and the synchronous "
             "parameter-server; does not change results",
     .value_name = "auto|equal|LIST"},
    {.key = "seed_delays",
     .type = TR_OPTION_INT64,
     .offset = AT(seed_delays),
     .fallback = "0",
     .least = 0,
     .most = TR_OPTION_WHOLE,
     .help = "seed of random delays of all processes, half a step on average; 0: none"},
    {.key = "parameters_on",
     .type = TR_OPTION_STRING,
     .offset = AT(parameters_on),
     .fallback = "",
     .help = "device that holds and updates the parameters, if not the computing one; the bits are the same",
     .value_name = "NAME"},
    {.key = "placement",
     .type = TR_OPTION_BOOL,
     .offset = AT(placement),
     .fallback = "false",
     .help = "print first the layers, microbatches and parameters of each process"},
    {.key = "continue",
     .type = TR_OPTION_BOOL,
     .offset = AT(continues),
     .fallback = "false",
     .help = "resume from the newest good checkpoint in the output directory and ignore --resume and "
             "--overwrite; without one, start as usual: for jobs that are started again; variable "
             "TRIREME_CONTINUE",
     .flags = TR_OPTION_ENVIRONMENT},
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
     .most = TR_OPTION_WHOLE,
     .help = "number of steps before the timeline begins"},
    {.key = "trace_steps",
     .type = TR_OPTION_INT64,
     .offset = AT(trace_steps),
     .fallback = "100",
     .least = 1,
     .most = TR_OPTION_WHOLE,
     .help = "steps in the timeline, which is written after the last of them"},
    {.key = "profile",
     .type = TR_OPTION_BOOL,
     .offset = AT(profile),
     .fallback = "false",
     .help = "print at the end where the time went, by layer and by cause"},
    {.key = "tensorboard",
     .type = TR_OPTION_STRING,
     .offset = AT(tensorboard),
     .fallback = "",
     .bare = CLI_TENSORBOARD_OUT,
     .help = "write event files for TensorBoard to this directory; default: that of the checkpoints",
     .value_name = "DIR"},
    {.key = "histograms",
     .type = TR_OPTION_INT64,
     .offset = AT(histograms),
     .fallback = "0",
     .least = 0,
     .most = TR_OPTION_WHOLE,
     .help =
         "write histograms of parameters, gradients and activations for TensorBoard every N steps; 0: never"},
    {.key = "record_digests",
     .type = TR_OPTION_INT64,
     .offset = AT(record_digests),
     .fallback = "0",
     .least = 0,
     .most = TR_OPTION_WHOLE,
     .help = "keep digests of every STEPS-th step for `trireme diff`; 0: none",
     .value_name = "STEPS"},
    {.key = "receipt",
     .type = TR_OPTION_BOOL,
     .offset = AT(receipt),
     .fallback = "false",
     .help =
         "write run.receipt, by which `trireme verify` can check the run (train.receipt of the model file)"},
    {.key = "overwrite",
     .type = TR_OPTION_BOOL,
     .offset = AT(overwrite),
     .fallback = "false",
     .help = "start again in a directory with checkpoints: they and the files for TensorBoard are removed "
             "once the new run is ready to start"},
    CLI_OPTION_SEED(struct cli_train_options),
    {.key = "steps",
     .type = TR_OPTION_INT64,
     .offset = AT(steps),
     .fallback = "0",
     .least = 0,
     .most = TR_OPTION_WHOLE,
     .help = "steps to train in all, instead of the model file's steps or epochs; 0: as the file says"},
    {.key = "epochs",
     .type = TR_OPTION_INT64,
     .offset = AT(epochs),
     .fallback = "0",
     .least = 0,
     .most = TR_OPTION_WHOLE,
     .help = "epochs to train in all, instead of the model file's steps or epochs; 0: as the file says"},
    CLI_OPTION_DEVICE(struct cli_train_options),
    CLI_OPTION_DATA_CACHE(struct cli_train_options),
    {.key = "log",
     .type = TR_OPTION_CHOICE,
     .offset = AT(log),
     .fallback = "text",
     .choices = logs,
     .help = "output during the run",
     .value_name = "KIND"},
    {.key = "quiet",
     .type = TR_OPTION_BOOL,
     .offset = AT(quiet),
     .fallback = "false",
     .help = "print only warnings, errors and the lines of --log json",
     .letter = 'q'},
    {.key = "launched",
     .type = TR_OPTION_STRING,
     .offset = AT(launched),
     .fallback = "",
     .help = "set by `trireme launch`: name under which the job reports to it on stderr; variable "
             "TRIREME_LAUNCHED",
     .flags = TR_OPTION_ENVIRONMENT,
     .value_name = "NAME"},
    CLI_OPTION_HELP(struct cli_train_options),
};
#undef AT

static const struct tr_option_group groups[] = {
    {"Basic options", "out steps epochs set overwrite resume threads help"},
    {"Start of the run", "seed from teacher continue resume_changed replay"},
    {"Stale gradients in one process", "schedule simulate_delays simulate_workers"},
    {"Several processes (see also `trireme launch`)",
     "strategy shares bind transport timeout patience outlives replicas_of_state placement"},
    {"Looking at the run",
     "log quiet profile tensorboard histograms trace trace_first trace_steps record_digests receipt"},
    {"For experts", NULL},
    {NULL, NULL},
};

void cli_train_settings(const struct cli_train_options *options, struct tr_train_settings *settings)
{
    *settings = (struct tr_train_settings)TR_TRAIN_SETTINGS_INIT;
    settings->model = options->model;
    settings->set = (const char *const *)options->set.item;
    settings->set_count = options->set.count;
    settings->device = options->device.device;
    settings->threads = options->device.threads;
    settings->isa = options->device.isa;
    settings->parameters_on = options->parameters_on;
    settings->shares = options->shares;
    settings->resume = options->resume;
    settings->from = options->from;
    settings->teacher = options->teacher;
    settings->replay = options->replay;
    settings->schedule = options->schedule;
    settings->simulate_delays = (uint64_t)options->simulate_delays;
    settings->simulate_workers = options->simulate_workers;
    settings->continues = options->continues;
    settings->resume_changed = options->resume_changed;
    settings->has_seed = options->seed >= 0;
    settings->seed = options->seed >= 0 ? (uint64_t)options->seed : 0;
    settings->steps = options->steps;
    settings->epochs = options->epochs;
    settings->transport = options->transport;
    settings->bind = options->bind;
    settings->outlives = options->outlives;
    settings->replicas_of_state = options->replicas_of_state;
    settings->strategy = options->strategy;
    settings->trace = options->trace;
    settings->trace_first = options->trace_first;
    settings->trace_steps = options->trace_steps;
    settings->profile = options->profile;
    settings->tensorboard = options->tensorboard;
    settings->histograms = options->histograms;
    settings->record_digests = options->record_digests;
    settings->receipt = options->receipt;
    settings->delay_seed = (uint64_t)options->seed_delays;
    settings->no_memory_check = !options->memory_check;
    settings->timeout = 1e-3 * (double)options->timeout;
    settings->data_cache_bytes = cli_data_cache_bytes(&options->cache);
    settings->patience = 1e-3 * (double)options->patience;
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
    CLI_OPTIONS(table, struct cli_train_options),
    .groups = groups,
    .model = offsetof(struct cli_train_options, model),
    .run = cli_train_run,
};
