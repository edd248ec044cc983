/* The sections of a model file about the run: `train:` and `input:`, and its top level. */
#ifndef TR_JOB_OPTIONS_H
#define TR_JOB_OPTIONS_H

#include "base/options/option.h"

enum tr_keep_best {
    TR_KEEP_BEST_AUTO, /* on if early stopping is */
    TR_KEEP_BEST_ALWAYS,
    TR_KEEP_BEST_NEVER
};

enum tr_sampling {
    TR_SAMPLING_ONCE,     /* every example once in each epoch */
    TR_SAMPLING_BALANCED, /* drawn so that all classes are equally frequent */
    TR_SAMPLING_SHARES    /* drawn so that classes come in given proportions */
};

enum tr_split_kind {
    TR_SPLIT_RANDOM,
    TR_SPLIT_STRATIFIED /* each part has the same proportions of classes */
};

enum tr_nonfinite_policy {
    TR_NONFINITE_STOP, /* ends the run; the last good checkpoint stays */
    TR_NONFINITE_SKIP  /* skips the step, with a warning */
};

struct tr_train_options {
    int64_t batch;                   /* examples of a global batch */
    int64_t microbatches;            /* number of parts; 0: by tr_microbatch_rule() */
    struct tr_string_list recompute; /* layers computed again in backward: "true", or names */
    int64_t pass;                    /* microbatches computed at a time, a power of two; 0: all */
    int64_t steps, epochs;           /* exactly one of the two is given */
    int64_t log_every, evaluate_every, checkpoint_every; /* steps; 0: never */
    double checkpoint_seconds;                           /* 0: never */
    int64_t evaluate_batch;
    int32_t keep;          /* number of checkpoints */
    bool receipt;          /* keep a receipt of the run, receipt/receipt.h */
    int64_t receipt_every; /* steps between its boundaries; 0: only at checkpoints */
    int32_t keep_best;     /* enum tr_keep_best */
    bool shuffle;
    int32_t last_batch;                   /* enum tr_last_batch */
    int32_t prefetch;                     /* batches; -1: where reading is slow */
    int32_t on_nonfinite;                 /* enum tr_nonfinite_policy */
    double until_accuracy;                /* stop when an evaluation reaches it; 0: never */
    int64_t patience;                     /* stop after so many evaluations without improvement; 0: never */
    char *monitor;                        /* the figure that judges the run, job/file/monitor.h; NULL: the
                                             loss */
    int32_t top_k;                        /* number of classes in the metric top_<k> */
    int32_t sampling;                     /* enum tr_sampling */
    struct tr_float_list sampling_shares; /* of the classes, TR_SAMPLING_SHARES */
};

/* Random changes of images in training, beyond shifts and mirrors (job/feed/draw.h). */
struct tr_augment_options {
    double rotate;                           /* up to so many degrees */
    struct tr_float_list zoom;               /* least and most; empty: none */
    double brightness, contrast, saturation; /* factors are within 1 +- this */
    double erase;                            /* fraction of the images that lose a part */
    struct tr_float_list erase_area;         /* of the image, least and most; empty: 0.02 and 0.33 */
    double erase_value;                      /* a stored value */
    int32_t randaugment;                     /* operations drawn for an image */
    double magnitude;                        /* of these, up to 30 */
    double mixup, cutmix;                    /* both parameters of the Beta distribution; 0: none */
};

struct tr_input_options {
    struct tr_int_list shape; /* of an example; empty: from the data */
    int64_t steps;            /* its numbers are so many vectors, one after the other; 0: from the data */
    struct tr_int_list image; /* its numbers are an image: height, width, channels; empty: from the data */
    int64_t vocabulary;       /* of tokens; 0: from the data */
    char *state;              /* the file of a checkpoint with the state that sources share; NULL: none */
    struct tr_string_list classes;     /* names; empty: from the data */
    struct tr_string_list sources;     /* "name 28x28x1" for each part of joined data; empty: from the data */
    struct tr_float_list scale, shift; /* per channel: value = stored * scale + shift; tr_job_scale() */
    struct tr_float_list range;        /* of images of numbers, least and most; empty: from the data */
    int32_t pad;                       /* zeros around the image before a random crop */
    int32_t crop[2];                   /* height, width; 0: as the image */
    bool flip;                         /* mirror half of the images */
    struct tr_augment_options augment;
};

struct tr_file_options {
    char *name;
    int64_t seed;
    char *directory;
    const tr_config *data, *input, *layers, *adapters, *loss, *distill, *optimizer, *train;
    const tr_config *strategy; /* read by strategy/strategy.h; NULL: the default */
};

struct tr_distill_options {
    char *teacher;      /* run or checkpoint; NULL: the section is empty */
    char *teacher_hash; /* hash of the teacher that a run began with; NULL: any */
    float temperature;
    float alpha; /* weight of the teacher in the loss */
};

struct tr_data_options {
    const tr_config *train, *validation, *test;
    double validation_split; /* fraction of the training data used for validation; 0: none */
    int32_t folds, fold;     /* number of folds of the training data, and the one, from 1, used for
                                validation; 0: none */
    int32_t split;           /* enum tr_split_kind */
    int64_t split_seed;      /* -1: that of the job */
};

extern const struct tr_option tr_train_option_table[], tr_input_option_table[], tr_file_option_table[],
    tr_data_option_table[], tr_distill_option_table[];
extern const int32_t tr_distill_option_count, tr_train_option_count, tr_input_option_count,
    tr_file_option_count, tr_data_option_count;

/* Whether the validation data are a part of the training data. */
static inline bool tr_data_is_split(const struct tr_data_options *data)
{
    return data->validation_split > 0 || data->folds > 0;
}

/* The number of microbatches where the file names none: the largest power of two, at most 16, such that
   each has at least 25 examples; 1 for batches below 50. Part of the arithmetic contract. */
int64_t tr_microbatch_rule(int64_t batch);

/* Whether a run keeps the weights of its best evaluation. */
static inline bool tr_train_keeps_best(const struct tr_train_options *train)
{
    if (train->keep_best != TR_KEEP_BEST_AUTO) return train->keep_best == TR_KEEP_BEST_ALWAYS;
    return train->patience > 0 || train->until_accuracy > 0 || train->monitor;
}

#endif
