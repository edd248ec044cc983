/* A pass: the memory and the order of calls for forward and backward over some rows of a global batch.
 *
 * Memory is planned once for the largest batch: outputs, their gradients and the layers' buffers share one
 * block by lifetime. A pass allocates nothing afterwards. One process may hold several passes (training and
 * evaluation; one per microbatch in flight in a pipeline).
 *
 * A pass may be over a range of the layers that cuts (nn/cut.h) allow. It then begins with the activations of
 * the layer before it, and hands over their gradient, at its entry; it ends with activations for the layer
 * behind it, and takes their gradient, at its exit. Passes over all ranges in turn give the bits of one pass.
 */
#ifndef TR_NN_PASS_H
#define TR_NN_PASS_H

#include "nn/model.h"

typedef struct tr_pass tr_pass;

struct tr_pass_limits {
    bool training;        /* false: forward only, memory reused at once */
    int64_t examples;     /* largest number of examples */
    int64_t tokens;       /* largest number of tokens in all, 0 without sequences */
    int32_t microbatches; /* largest number of microbatches */
    /* The layers [first_layer, end_layer) only; both 0: all of them. */
    int first_layer, end_layer;
};

/* Returned, destroy with tr_pass_destroy(). `device` and `model` are borrowed for the life of the pass. */
tr_status tr_pass_create(tr_device *device, const struct tr_model *model, const struct tr_pass_limits *limits,
                         tr_pass **out);
void tr_pass_destroy(tr_pass **pass);

/* Bytes of device memory that a pass would take. */
tr_status tr_pass_memory(const struct tr_model *model, const struct tr_pass_limits *limits, size_t *bytes);

/* Where the input of the next run goes: floats [examples][input], or tokens [tokens] with offsets [examples +
   1]. Device memory, owned by the pass; NULL where the model has no such input. With a range that begins
   behind layer 0 there are offsets only. */
float *tr_pass_input(tr_pass *pass);
int32_t *tr_pass_token(tr_pass *pass);
int32_t *tr_pass_offset(tr_pass *pass);
/* Where labels [examples] or targets [examples][output] go; NULL unless the range ends with the network. */
int32_t *tr_pass_label(tr_pass *pass);
float *tr_pass_target(tr_pass *pass);

/* What passes over ranges exchange: `values` and `gradient` are [rows][width], device memory owned by the
   pass. `gradient` is NULL where none flows (nothing below learns, or no training), all is 0 at the ends of
   the network. */
struct tr_pass_port {
    float *values, *gradient;
    int64_t width;
    bool sequence; /* a row for each token, else for each example */
};
/* Values are written before forward, the gradient is there after backward and stays as it is until the next
   backward. */
struct tr_pass_port tr_pass_entry(const tr_pass *pass);
/* Values are there after forward and until backward; the gradient is written in between. */
struct tr_pass_port tr_pass_exit(const tr_pass *pass);
/* The floats [*begin, *end) of a whole arena that hold the parameters of a range of layers. */
void tr_pass_arena(const struct tr_model *model, int first_layer, int end_layer, int64_t *begin,
                   int64_t *end);

/* The rows of one run. */
struct tr_pass_batch {
    int64_t examples, tokens;
    int64_t global_examples;     /* size of the global batch: scales the loss */
    uint32_t first_example;      /* number of the first example in the global batch */
    int32_t microbatches, nodes; /* training only, else 0 */
    const int64_t *example_row;  /* [microbatches + 1]: first example of each, from 0 */
    const int64_t *token_row;    /* [microbatches + 1]: first token of each; NULL without sequences */
    const int32_t *node_bound;   /* [nodes + 1], see struct tr_cut */
    uint64_t seed;
    struct tr_step_scalars *scalars; /* device memory */
};

/* Bytes of the rows of a run at a port. */
size_t tr_pass_port_bytes(const struct tr_pass_port *port, const struct tr_pass_batch *batch);

/* Enqueues the forward pass. `parameters` is a whole arena. In training, dropout acts, batch norm uses the
   microbatch and writes the statistics of the batch to its places in `gradients` (as in tr_pass_backward());
   otherwise `gradients` is NULL. */
tr_status tr_pass_forward(tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
                          float *gradients, int64_t stride);
/* The network's output [examples][output] of the last forward, or the values at the exit; device memory,
   valid until the next forward or backward. */
const float *tr_pass_output(const tr_pass *pass);
/* Enqueues the loss of the last forward; per-example loss and correctness are then in tr_pass_loss_rows() /
 * tr_pass_correct_rows(). Only where the range ends with the network. */
tr_status tr_pass_loss(tr_pass *pass, const struct tr_pass_batch *batch);
const float *tr_pass_loss_rows(const tr_pass *pass);
const float *tr_pass_correct_rows(const tr_pass *pass);

/* Enqueues backward after forward and loss. Node j's gradients go to gradients + j * stride, an arena each
   (that of the range, see tr_pass_arena()), followed by TR_PASS_SUMS floats: the tree sums of loss and of
   correct, if the range ends with the network. Gaps are not written. */
#define TR_PASS_SUMS 2
tr_status tr_pass_backward(tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
                           float *gradients, int64_t stride);

/* Called after each layer of a backward pass, from the last one down. What it enqueued writes the last of the
   gradients of the parameters of `layer` and reads these parameters for the last time; those of the layers
   behind it came before. A failure ends the pass. */
typedef tr_status (*tr_pass_listener)(void *user, int layer);
/* Sets or, with NULL, removes the listener. */
void tr_pass_listen(tr_pass *pass, tr_pass_listener listener, void *user);

/* Called after backward of a layer whose first parameter's gradient is formed elsewhere, with what it is
   formed of: x [examples][in] and dy [examples][out], device memory, valid for the call. A failure ends the
   pass. */
typedef tr_status (*tr_pass_taker)(void *user, int layer, const float *x, const float *dy,
                                   const struct tr_pass_batch *batch);
/* Sets for which layers that is so, [layers], borrowed until it is set again; NULL: for none. Only layers
   whose class has `factors` and whose rows are examples. The places of these gradients are not written. */
void tr_pass_leave_apart(tr_pass *pass, const bool *apart, tr_pass_taker taker, void *user);

/* Called after each layer of a forward pass with its output, `count` floats of device memory, valid for the
   call; a failure ends the pass. */
typedef tr_status (*tr_pass_watcher)(void *user, const struct tr_layer *layer, const float *output,
                                     int64_t count);
/* Sets or, with NULL, removes the watcher. For finding a value that is not finite, for histograms. */
void tr_pass_watch(tr_pass *pass, tr_pass_watcher watcher, void *user);

#endif
