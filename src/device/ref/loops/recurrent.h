/* The common part of recurrent layers: the gradient of their recurrent weights. */
#ifndef TR_DEVICE_REF_RECURRENT_H
#define TR_DEVICE_REF_RECURRENT_H

#include "device/ref/ref.h"

struct ref_recurrent_weights {
    const struct tr_cut *cut;
    const int32_t *offset;
    int64_t hidden, gates;
    const float *h, *dgates; /* [rows][hidden], [rows][gates * hidden] */
    float *dw;               /* [hidden][gates * hidden] of each node */
};

/* A microbatch's leaf is the chain over its rows, first rows of examples left out, of h[r-1][k] *
   dgates[r][j]. */
tr_status ref_recurrent_weights(const struct ref_recurrent_weights *weights);

#endif
