/* The inside of a predictor; its public functions lie by their inputs in predictor_*.c. */
#ifndef TR_TRAIN_PREDICTOR_H
#define TR_TRAIN_PREDICTOR_H

#include "data/text/vocabulary.h"
#include "job/feed/columns.h"
#include "train/evaluate/answer.h"
#include "train/evaluate/given.h"
#include "trireme/predict.h"

struct tr_predictor {
    tr_store *store; /* that data come through */
    struct tr_job *job;
    tr_device *device;
    float *parameters; /* device: an arena, averages where wanted and kept */
    char *path;
    char *skipped; /* what was passed over to get to this checkpoint, or "" */
    char hash[TR_SHA256_TEXT];
    int64_t step;
    tr_given *given;               /* made when first needed */
    tr_vocabulary *vocabulary;     /* likewise */
    struct tr_metrics *metrics;    /* of the last evaluation, or NULL */
    struct tr_scaling scaling;     /* of numbers */
    struct tr_job_columns columns; /* likewise */
};

/* The floats of a row of the output. */
static inline int64_t tr_predictor_outputs(const tr_predictor *predictor)
{
    return tr_shape_count(&predictor->job->model->output);
}

/* TR_EUNSUPPORTED for a language model, of which text is generated. */
tr_status tr_predictor_check(const tr_predictor *predictor);
/* The same, and where the output is of tokens, which leave no one row for an example. */
tr_status tr_predictor_check_rows(const tr_predictor *predictor);
/* TR_EINVAL where the network takes another kind of examples. */
tr_status tr_predictor_check_features(const tr_predictor *predictor, enum tr_feature_kind given);

/* Reads the vocabulary, once. TR_EFORMAT where the checkpoint keeps none. */
tr_status tr_predictor_open_vocabulary(tr_predictor *predictor);

#endif
