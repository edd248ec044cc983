/* Using a trained network: a predictor is made from a checkpoint and answers for images, texts and numbers.
 *
 * A predictor is used by one thread at a time.
 */
#ifndef TRIREME_PREDICT_H
#define TRIREME_PREDICT_H

#include "trireme/data.h"
#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_predictor tr_predictor;

struct tr_predict_settings {
    size_t size;            /* sizeof(struct tr_predict_settings) */
    const char *checkpoint; /* a checkpoint, or a directory of checkpoints whose newest good one is taken */
    const char *device;     /* "cpu" or "ref" */
    int threads;            /* 0: one per core the process may use */
    const char *isa;        /* NULL: the best that the machine has */
    bool use_average;       /* take the moving averages where the checkpoint has them */
};
#define TR_PREDICT_SETTINGS_INIT                                                                             \
    {                                                                                                        \
        sizeof(struct tr_predict_settings), NULL, "cpu", 0, NULL, true                                       \
    }

/* Returned, destroy with tr_predictor_destroy(). */
TR_API tr_status tr_predictor_create(const struct tr_predict_settings *settings, tr_predictor **out);
/* Accepts NULL, nulls the handle. */
TR_API void tr_predictor_destroy(tr_predictor **predictor);

/* Strings are borrowed until the predictor is destroyed. */
struct tr_predict_info {
    const char *name;       /* of the job */
    const char *checkpoint; /* path that was loaded */
    const char *skipped;    /* newer checkpoints that are damaged and were passed over, a line each; "" */
    const char *hash;       /* of the parameters */
    int64_t step;
    enum tr_feature_kind features;
    int32_t height, width, channels, floats; /* of the input; 0 where they mean nothing */
    int32_t outputs;                         /* classes, or values */
    bool classification;
    const char *const *class_names; /* [outputs], or NULL */
};
TR_API tr_status tr_predictor_info(const tr_predictor *predictor, struct tr_predict_info *info);

/* Predicts one image, uint8 [height][width][channels]; floats [floats]; or a text, which is split into words
   as the training text was. `output` [outputs] receives probabilities (classification) or values. TR_EINVAL
   when the network takes something else. */
TR_API tr_status tr_predictor_image(tr_predictor *predictor, const uint8_t *image, float *output);
TR_API tr_status tr_predictor_floats(tr_predictor *predictor, const float *values, float *output);
TR_API tr_status tr_predictor_text(tr_predictor *predictor, const char *text, float *output);

/* Predicts `count` examples of a source from `first` on; `output` [count][outputs]. TR_EMISMATCH when the
 * source does not fit the network. */
TR_API tr_status tr_predictor_source(tr_predictor *predictor, const tr_source *source, int64_t first,
                                     int64_t count, float *output);

/* Mean loss and accuracy over a whole source; `confusion` (may be NULL) [outputs][outputs] counts true class
 * by predicted class. */
TR_API tr_status tr_predictor_evaluate(tr_predictor *predictor, const tr_source *source, double *loss,
                                       double *accuracy, int64_t *confusion);

/* The data set that the job itself names "test", "validation" or "train". Returned, close with
 * tr_source_close(). */
TR_API tr_status tr_predictor_open_data(tr_predictor *predictor, const char *set, tr_source **out);
/* A source from a description (see tr_source_open()) with the vocabulary and scaling of the training data. */
TR_API tr_status tr_predictor_open_source(tr_predictor *predictor, const char *description,
                                          const char *directory, tr_source **out);

#ifdef __cplusplus
}
#endif
#endif
