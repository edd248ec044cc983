/* Losses: what the network's output is compared with, per example. */
#ifndef TR_NN_LOSS_H
#define TR_NN_LOSS_H

#include "base/config.h"
#include "base/option.h"
#include "device/device.h"
#include "tensor/shape.h"

enum tr_loss_kind { TR_LOSS_SOFTMAX_CROSS_ENTROPY, TR_LOSS_MEAN_SQUARED_ERROR };

struct tr_loss {
    int32_t kind; /* enum tr_loss_kind */
    float label_smoothing;
};

extern const struct tr_option tr_loss_options[];
extern const int32_t tr_loss_option_count;

/* Reads the `loss:` entry of a model file (NULL: softmax cross-entropy) and checks it against the output's
 * shape. */
tr_status tr_loss_read(const tr_config *node, const struct tr_shape *output, struct tr_loss *loss);

struct tr_loss_call {
    tr_device *device;
    int64_t rows;
    float scale;           /* 1 / global batch */
    const float *output;   /* [rows][width] */
    const int32_t *label;  /* [rows]; classification */
    const float *target;   /* [rows][width]; regression */
    float *loss, *correct; /* [rows]; correct is +0 for regression */
    float *gradient;       /* [rows][width], or NULL */
};

/* Enqueues the loss. All pointers are device memory, borrowed until wait. */
tr_status tr_loss_run(const struct tr_loss *loss, int64_t width, const struct tr_loss_call *call);

#endif
