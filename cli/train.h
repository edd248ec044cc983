/* The options of `trireme train`, which `trireme launch` reads, too, before it starts the processes. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "command.h"

#include "trireme/train.h"

/* What --tensorboard without a directory means: that of the run. */
#define CLI_TENSORBOARD_OUT "-"

struct cli_train_options {
    struct cli_common common;
    char *model;
    struct tr_string_list set;
    struct cli_device device;
    char *out, *resume;
    bool resume_changed, overwrite, quiet, continues, placement, profile, bind;
    int64_t seed, steps;
    int32_t log; /* enum cli_log */
    char *transport, *strategy, *parameters_on, *launched;
    int64_t timeout, patience; /* ms */
    struct tr_string_list slow;
    int64_t seed_delays;
    char *trace;
    int64_t trace_first, trace_steps, record_digests;
    char *tensorboard; /* CLI_TENSORBOARD_OUT: the output directory */
    int64_t histograms;
};

/* What the options say, borrowed from them, but for `out`, `resume`, `slow` and a
   `tensorboard` that lies in the output directory. */
void cli_train_settings(const struct cli_train_options *options, struct tr_train_settings *settings);

/* What the command does; `options` is a struct cli_train_options. */
tr_status cli_train_run(const void *options);

#endif
