/* The structure of a pass, shared by its layout (pass.c), its running (pass_run.c) and what others see of it
 * (pass_ports.c).
 */
#ifndef TR_NN_PASS_INTERNAL_H
#define TR_NN_PASS_INTERNAL_H

#include "nn/fusion.h"
#include "nn/pass/pass.h"

struct tr_pass {
    tr_device *device;
    const struct tr_model *model;
    struct tr_pass_limits limits;   /* end_layer resolved */
    int64_t arena_begin, arena_end; /* of the range's parameters */
    /* The layers that hold what crosses the range's ends: entry is -1 with layer 0, else its output and
       gradient stand for what the pass receives and hands over. */
    int entry, exit;
    void *memory;
    void *spare;        /* outputs within fusions, for a watcher; NULL before there was one */
    void *image_offset; /* device int32_t [examples + 1], where images become sequences */
    tr_pass_watcher watcher;
    void *watcher_user;
    tr_pass_listener listener;
    void *listener_user;
    tr_pass_companion companion;
    void *companion_user;
    const bool *apart; /* [layers], or NULL */
    tr_pass_taker taker;
    void *taker_user;
    /* Device memory inside `memory`; void *, since the planner sets them. */
    void *input, *token, *offset, *label, *target, *scratch, *loss_rows, *correct_rows;
    void *weight;                      /* of the classes, device memory of its own, or NULL */
    void **output, **gradient;         /* [layers]; gradient NULL where none flows */
    void *(*buffer)[TR_LAYER_BUFFERS]; /* [layers] */
    void *(
        *addend)[TR_LAYER_INPUTS]; /* [layers]: second contributions, NULL where there is only one consumer */
    struct tr_fusion *fusion;      /* [layers], of those of the range */
    const float **more; /* [layers]: in backward, what a fusion's end has still to add to its gradient */
    void **leaves;      /* [layers] of borrowers whose lender is not in the range, see tr_pass_tie() */
    const float **lent; /* [layers] their copies */
    int64_t *token_row; /* [microbatches + 1] of a run, where images become sequences */
    bool *wants;        /* [layers]: a gradient flows through it */
    bool *written;      /* [layers]: its output's gradient has a first contribution in this backward */
};

/* The tokens of a run. */
static inline int64_t pass_tokens(const struct tr_pass *pass, const struct tr_pass_batch *batch)
{
    int64_t each = pass->model->image_tokens;
    return each > 0 ? batch->examples * each : batch->tokens;
}

/* Whether a layer is one of the range's. */
static inline bool pass_has(const struct tr_pass *pass, int layer)
{
    return layer >= pass->limits.first_layer && layer < pass->limits.end_layer;
}

/* Whether the pass computes the network's last layer, and so the loss. */
static inline bool pass_is_last(const struct tr_pass *pass)
{
    return pass->limits.end_layer == pass->model->layer_count;
}

/* The output of layer `i` is written only for a watcher: it is within a fusion. */
static inline bool pass_is_within(const struct tr_pass *pass, int i)
{
    return i < pass->fusion[i].end;
}

/* Makes room for the outputs within fusions, once. */
tr_status pass_prepare_watching(struct tr_pass *pass);

/* TR_EUNSUPPORTED, with the layer and the operation, where the device lacks one that a run of the pass calls.
 */
tr_status pass_rehearse(struct tr_pass *pass);

#endif
