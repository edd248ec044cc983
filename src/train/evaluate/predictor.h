/* The structure of a predictor; its public functions are grouped by their inputs in predictor_*.c. */
#ifndef TR_TRAIN_PREDICTOR_H
#define TR_TRAIN_PREDICTOR_H

#include "data/text/vocabulary.h"
#include "job/feed/columns.h"
#include "train/evaluate/answer.h"
#include "train/evaluate/generator.h"
#include "train/evaluate/given.h"
#include "train/setup/stop.h"
#include "trireme/predict.h"

struct tr_predictor {
    pid_t process;                      /* process that made it */
    tr_store *store;                    /* that data come through */
    const struct tr_named_source *data; /* [data_count] of the settings, borrowed */
    int data_count;
    struct tr_job *job;
    tr_device *device;
    float *parameters;               /* device: an arena, averages where wanted and kept */
    bool writes;                     /* its vocabulary has a boundary, so that it writes whole texts */
    struct tr_generator *translator; /* made when first needed */
    char *path;
    char *skipped; /* checkpoints skipped to get to this one, or "" */
    char hash[TR_SHA256_TEXT];
    int64_t step;
    tr_given *given;               /* made when first needed */
    tr_vocabulary *vocabulary;     /* likewise */
    tr_vocabulary *second;         /* likewise, of the second text */
    struct tr_metrics *metrics;    /* of the last evaluation, or NULL */
    struct tr_scaling scaling;     /* of numbers */
    struct tr_job_columns columns; /* likewise */
};

/* The tr_predictor_create() for a checkpoint of `job` with these parameters, arena_floats floats on the
   host, after `step` steps. `settings` must be complete; all is borrowed for the call. Returned, destroy
   with tr_predictor_destroy(). */
tr_status tr_predictor_of(const struct tr_job *job, const float *arena, int64_t step, const char *hash,
                          const struct tr_predict_settings *settings, tr_predictor **out);
/* A caller's settings, completed with defaults. */
tr_status tr_predict_settings_take(const struct tr_predict_settings *given, struct tr_predict_settings *out);

/* The floats of a row of the output. */
static inline int64_t tr_predictor_outputs(const tr_predictor *predictor)
{
    return tr_job_width(predictor->job);
}

/* TR_EUNSUPPORTED in a process that was forked from the one that made the predictor. */
static inline tr_status tr_predictor_check_process(const tr_predictor *predictor)
{
    return tr_process_check(predictor->process, "predictor");
}
/* The same; also fails unless it is a language model, which can generate text. */
tr_status tr_predictor_check(const tr_predictor *predictor);
/* The same; also fails where the output is of tokens, so that an example has no single row. */
tr_status tr_predictor_check_rows(const tr_predictor *predictor);
/* TR_EINVAL where the network takes examples of another kind. */
tr_status tr_predictor_check_features(const tr_predictor *predictor, enum tr_feature_kind given);

/* Reads the vocabulary, and that of a second text, once. TR_EFORMAT where the checkpoint has none. */
tr_status tr_predictor_open_vocabulary(tr_predictor *predictor);

#endif
