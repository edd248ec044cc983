/* The options of `trireme train`, which `trireme launch` also reads before it starts the processes. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "cli/program/command.h"
#include "cli/data/cache.h"

#include "trireme/train.h"

/* --tensorboard without a directory: that of the run. */
#define CLI_TENSORBOARD_OUT "-"

struct cli_train_options {
    struct cli_common common;
    char *model;
    struct tr_string_list set;
    struct cli_device device;
    struct cli_data_cache cache;
    char *out, *resume, *from, *teacher, *replay, *schedule;
    int64_t simulate_delays;
    int32_t simulate_workers;
    bool resume_changed, overwrite, quiet, continues, receipt, placement, profile, bind, memory_check,
        outlives;
    int64_t seed, steps, epochs;
    int32_t log; /* enum cli_log */
    int32_t replicas_of_state;
    char *transport, *strategy, *parameters_on, *shares, *launched;
    int64_t timeout, patience; /* ms */
    struct tr_string_list slow;
    int64_t seed_delays;
    char *trace;
    int64_t trace_first, trace_steps, record_digests;
    char *tensorboard; /* CLI_TENSORBOARD_OUT: the output directory */
    int64_t histograms;
};

/* The values of the options, borrowed from them, except `out`, `resume`, `slow`, the directory of the data
   cache and a `tensorboard` that lies in the output directory. */
void cli_train_settings(const struct cli_train_options *options, struct tr_train_settings *settings);

/* Whether the run asks for a new numbered directory; finding it makes it. */
bool cli_train_is_numbered(const struct cli_train_options *options);
/* The checked directory for the run's files. TR_EINVAL if it has checkpoints of another run or, for the
   process that `writes`, nothing can be written. Returned, free with tr_free(), also after a failure. */
tr_status cli_train_directory(const struct cli_train_options *options, bool writes, char **out);

/* Runs the command; `options` is a struct cli_train_options. */
tr_status cli_train_run(const void *options);

#endif
