/* A pass: the memory and the order of calls for forward and backward over some rows of a global batch.
 *
 * Memory is planned once for the largest batch: outputs, their gradients and the layers' buffers share one
 * block by lifetime. A pass allocates nothing afterwards. One process may hold several passes (training and
 * evaluation; one per microbatch in flight in a pipeline).
 *
 * A pass may be over a range of the layers that cuts (nn/cut.h) allow. It then begins with the activations of
 * the layer before it, and hands over their gradient, at its entry; it ends with activations for the layer
 * after it, and takes their gradient, at its exit. Passes over all ranges in turn give the bits of one pass.
 */
#ifndef TR_NN_PASS_H
#define TR_NN_PASS_H

#include "device/staging.h"
#include "nn/model.h"

typedef struct tr_pass tr_pass;

struct tr_pass_limits {
    bool training;         /* false: forward only, memory reused at once */
    int64_t examples;      /* largest number of examples */
    int64_t tokens;        /* largest number of tokens in all, 0 without sequences */
    int64_t second_tokens; /* the same of the second text, 0 without one */
    int32_t microbatches;  /* largest number of microbatches */
    /* Only the layers [first_layer, end_layer); both 0: all layers. */
    int first_layer, end_layer;
};

/* Returned, destroy with tr_pass_destroy(). `device` and `model` are borrowed for the life of the pass.
   TR_EUNSUPPORTED, with its name, where the device lacks an operation that the layers need. */
tr_status tr_pass_create(tr_device *device, const struct tr_model *model, const struct tr_pass_limits *limits,
                         tr_pass **out);
void tr_pass_destroy(tr_pass **pass);

/* Bytes of device memory of a pass on a device; NULL: on one that has all operations. */
tr_status tr_pass_memory(const tr_device *device, const struct tr_model *model,
                         const struct tr_pass_limits *limits, size_t *bytes);

/* Which layers such a pass computes again in backward: again[layers]. TR_ENOMEM. */
tr_status tr_pass_recomputed(const tr_device *device, const struct tr_model *model,
                             const struct tr_pass_limits *limits, bool *again);

/* Where the input of the next run goes: floats [examples][input], or tokens [tokens] with offsets [examples +
   1]. Device memory, owned by the pass; NULL where the model has no such input. With a range that begins
   after layer 0 there are offsets only. */
float *tr_pass_input(tr_pass *pass);
int32_t *tr_pass_token(tr_pass *pass);
int32_t *tr_pass_offset(tr_pass *pass);
/* Where the numbers beside a text go, floats [examples][columns]; NULL where there are none, and with a range
   that begins behind them. */
float *tr_pass_columns(tr_pass *pass);
/* The same for the second text: its tokens and offsets. NULL where there is none; the tokens also with a
   range that begins behind them. */
int32_t *tr_pass_second_token(tr_pass *pass);
int32_t *tr_pass_second_offset(tr_pass *pass);
/* Where labels [examples], of tokens [tokens] where the output is a sequence, or targets [examples][output]
   go; NULL unless the range ends with the network. */
int32_t *tr_pass_label(tr_pass *pass);
float *tr_pass_target(tr_pass *pass);

/* The values that passes over ranges exchange: `values` and `gradient` are [rows][width], device memory
   owned by the pass. `gradient` is NULL where none flows (no layer before learns, or no training); all
   members are 0 at the ends of the network. */
struct tr_pass_port {
    float *values, *gradient;
    int64_t width;
    bool sequence; /* a row for each token, else for each example */
};
/* The caller writes the values before forward; the gradient is valid from backward to the next backward. */
struct tr_pass_port tr_pass_entry(const tr_pass *pass);
/* Values are valid from forward to backward; the caller writes the gradient in between. */
struct tr_pass_port tr_pass_exit(const tr_pass *pass);
/* Weights shared by layers on both sides of a range's end (weight tying): one side has the parameter; the
   other computes with a copy and gives back its contribution to the gradient, for each microbatch. */
struct tr_pass_tie {
    int lender, borrower; /* layers: the owner of the parameter, which is its first, and the other layer
                             that uses it */
    bool lends;           /* the range contains the lender; else the borrower */
    int64_t floats;       /* of the parameter */
    float *leaves;        /* [microbatches][floats], device memory of the pass. For the borrower, valid from
                             backward to the next one; for the lender, the caller writes them between forward
                             and backward. NULL without training */
};
/* The tie number `index` of a pass in *out; false beyond the last. */
bool tr_pass_tie(const tr_pass *pass, int index, struct tr_pass_tie *out);
/* Sets the borrower's copy: device memory, borrowed until it is set again. */
void tr_pass_lend(tr_pass *pass, int borrower, const float *parameter);

/* The floats [*begin, *end) of a whole arena that hold the parameters of a range of layers. */
void tr_pass_arena(const struct tr_model *model, int first_layer, int end_layer, int64_t *begin,
                   int64_t *end);

/* The rows of one run. */
struct tr_pass_batch {
    int64_t examples, tokens;
    int64_t global_examples;     /* size of the global batch: scales the loss */
    int64_t global_labels;       /* of tokens in the global batch: scales a loss of tokens; else ignored */
    uint32_t first_example;      /* number of the first example in the global batch */
    int32_t microbatches, nodes; /* training only, else 0 */
    const int64_t *example_row;  /* [microbatches + 1]: first example of each, from 0 */
    const int64_t *token_row;    /* [microbatches + 1]: first token of each; NULL without sequences */
    int64_t second_tokens;       /* of the second text, 0 without one */
    const int64_t *second_row;   /* [microbatches + 1]: its first token of each, or NULL */
    const int32_t *node_bound;   /* [nodes + 1], see struct tr_cut */
    uint64_t seed;
    struct tr_step_scalars *scalars; /* device memory */
};

/* Makes a host side for the tensor at a port of passes within `limits`; does nothing at the ends of the
   network. Release with tr_staging_release(), before the pass. */
tr_status tr_pass_stage(tr_device *device, const struct tr_pass_port *port, float *memory,
                        const struct tr_pass_limits *limits, struct tr_staging *out);
/* Floats that a run's rows have at the pass's entry and exit; 0 at the ends of the network. */
int64_t tr_pass_entry_floats(const tr_pass *pass, const struct tr_pass_batch *batch);
int64_t tr_pass_exit_floats(const tr_pass *pass, const struct tr_pass_batch *batch);

/* Enqueues the forward pass. `parameters` is a whole arena. In training, dropout acts, batch norm uses the
   microbatch and writes the statistics of the batch to its places in `gradients` (as in tr_pass_backward());
   otherwise `gradients` is NULL. */
tr_status tr_pass_forward(tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
                          float *gradients, int64_t stride);
/* The network's output [examples or tokens][output] of the last forward, or the values at the exit; device
   memory, valid until the next forward or backward. */
const float *tr_pass_output(const tr_pass *pass);
/* For a pass that is not for training and over all layers: forward for the tokens after past->rows first
   ones of one example, which the batch has alone. past->memory [layers] holds what the classes' memory() asks
   for with past->longest tokens (device memory, NULL where 0), and what earlier calls left there. The output
   is that of these tokens, with the bits that tr_pass_forward() of the whole example would give. Only where
   tr_model_extends(). */
tr_status tr_pass_extend(tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
                         const struct tr_layer_past *past);
/* Whether all layers can continue a sequence, so that tr_pass_extend() may be used. */
bool tr_model_extends(const struct tr_model *model);
/* Enqueues the loss of the last forward; smoothing and weights apply only in training. Per-example loss
   and correctness are then in tr_pass_loss_rows() / tr_pass_correct_rows(), or those of each token where
   the output is a sequence. In training these are multiplied by global_examples / global_labels, so that
   their sums over the batch divided by its examples are means over its labels. Only where the range ends
   with the network. */
tr_status tr_pass_loss(tr_pass *pass, const struct tr_pass_batch *batch);
/* Sets the scores of a teacher [examples][output] for the loss of the next training runs: device memory,
   borrowed until it is set again. Required where the loss has a teacher. */
void tr_pass_teach(tr_pass *pass, const float *scores);
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
   after it came before. A failure ends the pass. */
typedef tr_status (*tr_pass_listener)(void *user, int layer);
/* Sets or, with NULL, removes the listener. */
void tr_pass_listen(tr_pass *pass, tr_pass_listener listener, void *user);

/* Called after each layer, or fusion of layers, of a forward and of a backward pass, so that other work
   can make progress. A failure ends the pass. */
typedef tr_status (*tr_pass_companion)(void *user);
/* Sets or, with NULL, removes the companion. */
void tr_pass_accompany(tr_pass *pass, tr_pass_companion companion, void *user);

/* Called after backward of a layer whose first parameter's gradient is computed elsewhere, with its
   factors: x [examples][in] and dy [examples][out], device memory, valid for the call. A failure ends the
   pass. */
typedef tr_status (*tr_pass_taker)(void *user, int layer, const float *x, const float *dy,
                                   const struct tr_pass_batch *batch);
/* Sets the layers for which this holds, [layers], borrowed until it is set again; NULL: none. Only for
   layers whose class has `factors` and whose rows are examples. The memory of these gradients is not
   written. */
void tr_pass_leave_apart(tr_pass *pass, const bool *apart, tr_pass_taker taker, void *user);

/* Called after each layer of a forward pass with its output, `count` floats of device memory, valid for the
   call; a failure ends the pass. Observed layers run one by one, and observing a pass that trains
   takes separate memory, from the first time on. */
typedef tr_status (*tr_pass_observer)(void *user, const struct tr_layer *layer, const float *output,
                                      int64_t count);
/* Sets or, with NULL, removes the observer; used to find values that are not finite, and for histograms. */
void tr_pass_observe(tr_pass *pass, tr_pass_observer observer, void *user);

#endif
