/* The structure of a pass, shared by its layout (pass.c) and its running (pass_run.c). */
#ifndef TR_NN_PASS_INTERNAL_H
#define TR_NN_PASS_INTERNAL_H

#include "nn/pass.h"

struct tr_pass {
    tr_device *device;
    const struct tr_model *model;
    struct tr_pass_limits limits;
    void *memory;
    tr_pass_watcher watcher;
    void *watcher_user;
    /* Device memory inside `memory`; void *, since the planner sets them. */
    void *input, *token, *offset, *label, *target, *loss_rows, *correct_rows;
    void **output, **gradient;         /* [layers]; gradient NULL where none flows */
    void *(*buffer)[TR_LAYER_BUFFERS]; /* [layers] */
    void *(
        *addend)[TR_LAYER_INPUTS]; /* [layers]: second contributions, NULL where there is only one consumer */
    bool *wants;                   /* [layers]: a gradient flows through it */
    bool *written; /* [layers]: its output's gradient has a first contribution in this backward */
};

#endif
