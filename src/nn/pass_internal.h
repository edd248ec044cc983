/* The structure of a pass, shared by its layout (pass.c) and its running (pass_run.c). */
#ifndef TR_NN_PASS_INTERNAL_H
#define TR_NN_PASS_INTERNAL_H

#include "nn/pass.h"

struct tr_pass {
    tr_device *device;
    const struct tr_model *model;
    struct tr_pass_limits limits;   /* end_layer resolved */
    int64_t arena_begin, arena_end; /* of the range's parameters */
    /* The layers that hold what crosses the range's ends: entry is -1 with layer 0, else its output and
       gradient stand for what the pass receives and hands over. */
    int entry, exit;
    void *memory;
    tr_pass_watcher watcher;
    void *watcher_user;
    tr_pass_listener listener;
    void *listener_user;
    const bool *apart; /* [layers], or NULL */
    tr_pass_taker taker;
    void *taker_user;
    /* Device memory inside `memory`; void *, since the planner sets them. */
    void *input, *token, *offset, *label, *target, *loss_rows, *correct_rows;
    void **output, **gradient;         /* [layers]; gradient NULL where none flows */
    void *(*buffer)[TR_LAYER_BUFFERS]; /* [layers] */
    void *(
        *addend)[TR_LAYER_INPUTS]; /* [layers]: second contributions, NULL where there is only one consumer */
    bool *wants;                   /* [layers]: a gradient flows through it */
    bool *written; /* [layers]: its output's gradient has a first contribution in this backward */
};

/* Whether the pass computes the network's last layer, and so the loss. */
static inline bool pass_is_last(const struct tr_pass *pass)
{
    return pass->limits.end_layer == pass->model->layer_count;
}

#endif
