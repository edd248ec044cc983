/* Layers: the parts of a network.
 *
 * A layer class says how a kind of layer is configured, checked, and expressed in device operations. It
 * owns no memory while training: each call gives it everything that it reads and writes. To add a kind,
 * add a file in nn/layers and a line in nn/layers/table.h; the tests enumerate the table.
 *
 * Shapes are per example, or per token for sequences; the number of examples or tokens is first in memory and
 * never part of a shape.
 */
#ifndef TR_NN_LAYER_H
#define TR_NN_LAYER_H

#include "base/options/registry.h"
#include "device/device.h"
#include "optim/initializer.h"
#include "optim/optimizer.h"
#include "tensor/shape.h"

#define TR_LAYER_INPUTS     TR_JOIN_PARTS
#define TR_LAYER_PARAMETERS 14
#define TR_LAYER_BUFFERS    14
#define TR_LAYER_ADAPTERS   5
#define TR_NAME_SIZE        64
/* A number of tokens: as many as the second text of the example has (struct tr_model). */
#define TR_TOKENS_OF_SECOND (-1)
/* The name of the network's input in `from`, where no layer has that name. */
#define TR_LAYER_NETWORK_INPUT "input"
#define TR_WHERE_SIZE          (TR_CONFIG_PATH_SIZE + 128)

struct tr_parameter {
    char name[2 * TR_NAME_SIZE]; /* "conv1.weights" */
    enum tr_parameter_kind kind;
    struct tr_shape shape;
    struct tr_initializer initializer;
    struct tr_pace pace; /* that of the layer; a statistic is never frozen */
    bool base;           /* of the base beside which adapters stand: frozen, and not in the arena */
    int64_t fan_in, fan_out;
    int64_t count;
    int64_t offset; /* in floats, in every arena with the layout of the parameters */
};

/* Weights that two layers share, see tr_builder_tie(). */
struct tr_layer_tie {
    int lender; /* for the borrower: the layer whose first parameter it uses as well; or -1 */
    int buffer; /* for the lender: the first of its two buffers for the borrower's gradient; 0: none
                   borrows */
};

/* A relu whose gradient is applied by the only layer that takes its output, a max pool. */
struct tr_layer_relu {
    bool output;           /* the layer's output is that of a relu */
    bool left_to_consumer; /* whose gradient the layer does not apply, since its consumer does */
    bool of_input;         /* this layer is such a consumer */
};

/* Memory of a layer beside its output and the output's gradient. */
enum tr_buffer_unit { TR_PER_EXAMPLE, TR_PER_ROW, TR_PER_MICROBATCH, TR_PER_MEMORY_ROW };
struct tr_buffer {
    enum tr_buffer_unit unit;
    int64_t bytes; /* per unit */
    int64_t fixed; /* additional bytes, whatever the number of units */
    bool
        backward_only; /* lives within the layer's own backward; otherwise from its forward to its backward */
    int from;          /* backward_only, if > 0: lives from the backward of this later layer on */
    bool fused_only;   /* exists only where the layer is the last one of a fusion */
    bool forward_only; /* lives within the layer's own forward */
};

/* A product of a layer's input (or of a value derived from it) with weights, beside which an adapter can
   stand: columns [column, column + out) of y [rows][full] = x [rows][in] times parameter number `weights`. */
struct tr_projection {
    const char *part; /* its name after that of the layer; NULL where there is one alone */
    bool asked;       /* it takes its place where a layer is named without a part */
    int weights;
    int64_t in, full, column, out;
};

/* An adapter of low rank (Hu et al. 2021): y += ((dropout(x) a) scale) b, nn/layers/adapter.h. */
struct tr_adapter {
    struct tr_projection beside;
    int down;       /* parameter number of a [in][rank] of the layer; b [rank][out] is the next one */
    int64_t before; /* sum of the ranks of the layer's earlier adapters */
};

struct tr_layer {
    const struct tr_layer_class *class;
    char name[TR_NAME_SIZE];
    char where[TR_WHERE_SIZE]; /* "models/x.yaml:12:5: layers[2]", for messages */
    void *options;             /* of class->options_size, filled through class->options */
    struct tr_pace pace;       /* learning rate and decay of its parameters */
    bool paced;                /* the file gives it */
    void *state;               /* made by class->build, freed with tr_free(); e.g. window geometry */
    int input_count;
    int input[TR_LAYER_INPUTS]; /* layers whose outputs it takes; -1 is the network's input */
    struct tr_shape in[TR_LAYER_INPUTS];
    struct tr_shape out;
    /* Tokens of each example in its inputs and in its output, where all examples have equally many. 0
       where the data determine it, and where there is no sequence; or TR_TOKENS_OF_SECOND. `tokens_memory`
       are those of the second input of a class with `two_lengths`, which may differ; else 0. */
    int64_t tokens_in, tokens_out, tokens_memory;
    int parameter_count;
    int parameter[TR_LAYER_PARAMETERS]; /* their numbers in the model */
    /* All parameters that it declares, in the order of the arguments of its calls: those above as their
       number in the model, those of the frozen base (struct tr_model) as -1 - number there. Its class
       declared the first own_slots of them; the others belong to adapters. */
    int slot_count, own_slots;
    int slot[TR_LAYER_PARAMETERS];
    struct {
        int count;
        struct tr_adapter item[TR_LAYER_ADAPTERS];
        int64_t rank;
        float scale, dropout;
        int hidden, forward, backward; /* buffers */
    } adapters;
    struct tr_layer_tie tie;
    /* Shared parameters (`share`): 1 + the layer whose slots are also this one's, which then has no own
       parameters; 0: none. And whether later layers share those of this one. */
    int sharer_of;
    bool shared;
    bool hides; /* a later layer with a matrix of weights takes its output, perhaps through others */
    int buffer_count;
    struct tr_buffer buffer[TR_LAYER_BUFFERS];
    bool keeps_input, keeps_output; /* whether its backward reads them */
    bool recompute;                 /* it is computed again in backward, train.recompute */
    bool fed;   /* it computes nothing: its output comes from outside, as the network's input does */
    bool alias; /* its output is its input in another shape; it is never called */
    struct tr_layer_relu relu;
    float statistic_momentum; /* fraction of a new batch in this layer's statistics */
    int64_t flops;            /* of the forward pass, per example or token; a multiply-add counts 2 */
    /* For people: the definition that the class has chosen, NULL where there is only one, and the reason. */
    const char *algorithm;
    char reason[64];
};

/* The rows before those of a call that continues a sequence. */
struct tr_layer_past {
    int64_t rows, longest; /* number of earlier rows; most rows in all */
    const int32_t *whole;  /* device memory [2]: 0, and the number of rows including those of the call */
    void *const *memory;   /* [layers] */
};

/* A layer's role in a fusion with the layer before it (nn/fusion.h). */
enum tr_tail_kind {
    TR_TAIL_NONE,
    TR_TAIL_SUM = 1,
    TR_TAIL_ACTIVATION = 2,
    TR_TAIL_POOL = 4,
    TR_TAIL_GELU = 8
};

/* The operations of a call after the layer's own, in training: call->y and call->dy are those of the
   fusion's last layer. */
struct tr_layer_tail {
    const float *addend;           /* forward: the addend, or NULL */
    const float *more;             /* backward: a gradient to add to dy, or NULL */
    float *daddend;                /* backward: destination of the addend's gradient, or NULL */
    enum tr_activation activation; /* NONE, RELU, LEAKY_RELU (backward: the gradient to apply); or a gelu */
    float slope;
    float *derivative; /* forward: destination of a gelu's derivative, which its consumer applies; or NULL */
    const struct tr_sliding_window *pool; /* of a max pool, or NULL: its stride is its kernel, without
                                             padding or dilation */
    uint8_t *taken;                       /* of the pool */
    bool relu;                            /* backward: the pool applies the gradient of a relu before it */
};

/* For a layer that borrows another one's weights. */
struct tr_layer_borrowed {
    const float *parameter; /* the lender's first parameter */
    float *leaves; /* [microbatches][its size]: backward leaves its contribution to that gradient here */
};

/* The arguments of one call of forward or backward. Device memory, borrowed for the call. */
struct tr_layer_call {
    tr_device *device;
    const struct tr_layer *layer;
    bool training;
    bool apart;                       /* backward does not compute the first parameter's gradient, which is
                                         computed elsewhere */
    int64_t examples;                 /* of this call */
    int64_t rows;                     /* tokens if the layer's input is a sequence, else examples */
    const struct tr_cut *cut;         /* over `rows`; training only */
    const struct tr_cut *example_cut; /* over `examples`; training only */
    int64_t global_rows;              /* of the global batch: examples */
    const int32_t *offset;            /* [examples + 1] token offsets, or NULL */
    /* Rows, offsets and cut of the second input, for a class with `two_lengths`. */
    int64_t memory_rows;
    const int32_t *memory_offset;
    const struct tr_cut *memory_cut;
    const int32_t *token; /* [rows], or NULL */
    uint32_t layer_number;
    uint32_t first_example; /* number of the call's first example in the global batch */
    uint32_t dropout_key[2];
    struct tr_step_scalars *scalars;
    const float *x[TR_LAYER_INPUTS];
    float *y;
    const float *dy;
    float *dx[TR_LAYER_INPUTS];       /* NULL where not wanted; that of a layer that has one input and learns
                                         nothing is always wanted */
    const struct tr_layer_past *past; /* extend */
    void *memory;                     /* extend: the layer's own part of past->memory */
    const struct tr_layer_tail *tail; /* NULL, or for a class that fuses */
    const float *derivative;          /* backward: derivative of the gelu that x[0] comes from; dx[0] is
                                         multiplied by it. For a class with fusing.applies_gelu_gradient, or
                                         NULL */
    void *buffer[TR_LAYER_BUFFERS];
    struct tr_layer_borrowed borrowed;
    const float *parameter[TR_LAYER_PARAMETERS];
    /* For the first node; later ones at cut->stride. NULL for the frozen base, where the class skips
       these. */
    float *gradient[TR_LAYER_PARAMETERS];
};

struct tr_builder;

/* How a class can be fused with its neighbours. */
struct tr_layer_fusing {
    /* The tails that it can compute in training: a sum of enum tr_tail_kind. If not 0, `fuses` says
       whether a layer can, with its options and on this device; NULL: on one that has all operations. */
    unsigned tails;
    bool (*fuses)(const struct tr_layer *layer, const struct tr_device_class *device);
    /* In a fusion its backward may write dx in place of dy. */
    bool replaces_dy;
    /* Its kind as a tail; the function fills in what its options determine. NULL: NONE. A fusion leaves
       data for backward in buffer 0 of a pool (`taken`) or gelu (`derivative`). */
    enum tr_tail_kind (*tail)(const struct tr_layer *layer, struct tr_layer_tail *tail);
    /* Its backward can apply the gradient of a relu that produced its input; likewise that of a fused
       gelu, see struct tr_layer_call: derivative. */
    bool applies_relu_gradient, applies_gelu_gradient;
};

struct tr_layer_class {
    TR_ENTRY; /* every layer has tr_layer_common_options in addition to those of its class */
    /* 1; or the least number of inputs, for a class that takes up to TR_LAYER_INPUTS and whose first
       option is TR_LAYER_WITH_OPTION() of layers/table.h. */
    int inputs;
    bool slides; /* a window over an image (for conv_transpose over its output): its state begins with a
                    struct tr_sliding_window */
    /* Its second input may be a sequence of other tokens than its first. */
    bool two_lengths;
    /* The gradient of its first parameter, [in][out], is that of tr_op_dense_backward_weights for its
       input and the dy that backward leaves (the factors); with call->apart backward does not compute it. */
    bool factors;
    /* A later layer may share its first parameter. If layer->tie.buffer, backward adds that layer's
       contribution (buffer[tie.buffer], a leaf for each microbatch) to its own leaves. */
    bool lends;
    /* Its weights are a table indexed by tokens or places, not a map between vectors. */
    bool looks_up;
    /* Its input may be tokens, numbers of words; other classes take vectors or images. */
    bool takes_tokens;
    /* Backward skips gradients that are NULL; for other classes they are computed and discarded. */
    bool skips_gradients;
    struct tr_layer_fusing fusing;
    /* The places for adapters, at most TR_LAYER_ADAPTERS, after `build`; returns their number. NULL: none.
       The class then calls tr_adapters_forward() and tr_adapters_backward(). */
    int (*projections)(const struct tr_layer *layer, struct tr_projection out[TR_LAYER_ADAPTERS]);
    /* Checks options and input shapes (layer->in), sets layer->out, declares parameters and buffers. The
       caller adds the layer's name to messages. */
    tr_status (*build)(struct tr_layer *layer, struct tr_builder *builder);
    tr_status (*forward)(const struct tr_layer_call *call);
    /* What a row of its output follows from when a network is used: where neither is set, from any rows of
       the example, and text is generated by computing all of it for each token. Without training only. */
    bool by_row; /* the same row of its inputs; or, for a row of an example, the last of its rows */
    /* The rows up to it. Then forward can go on where it stopped: `call` has the rows after the first
       call->past->rows ones of its only example, and call->memory is what earlier calls have left there, of
       memory(layer, tokens) bytes for examples of up to `tokens` tokens; undefined where there are none. */
    tr_status (*extend)(const struct tr_layer_call *call);
    bool (*extends)(const struct tr_layer *layer); /* whether it can with its options; NULL: it can */
    int64_t (*memory)(const struct tr_layer *layer, int64_t tokens);
    /* The longest example whose tokens it can distinguish or is meant for; 0: any. NULL: any. */
    int64_t (*longest)(const struct tr_layer *layer);
    /* Writes call->dx (where wanted) and the gradients. May overwrite dy. NULL for layers without
       gradient. */
    tr_status (*backward)(const struct tr_layer_call *call);
};

/* For build functions: adds a parameter to the layer and the model. `initializer` is copied. TR_EINVAL for
   an invalid shape, and for more than TR_LAYER_PARAMETERS. */
tr_status tr_builder_parameter(struct tr_builder *builder, struct tr_layer *layer, const char *name,
                               enum tr_parameter_kind kind, struct tr_shape shape,
                               const struct tr_initializer *initializer, int64_t fan_in, int64_t fan_out);
/* Parameter number `k` of a layer, as its class counts them. */
const struct tr_parameter *tr_builder_parameter_at(const struct tr_builder *builder,
                                                   const struct tr_layer *layer, int k);
/* The name of input `k` of a layer in messages: the name of a layer, or "input". Borrowed. */
const char *tr_builder_input(const struct tr_builder *builder, const struct tr_layer *layer, int k);
/* For build functions: the layer shares the first parameter of the layer called `name`, which must come
   before it, be of a class that lends it, and lend it to no other layer. Both gradients are added
   microbatch by microbatch, this layer's first, before the reduction tree. *lender is that layer.
   TR_EINVAL. */
tr_status tr_builder_tie(struct tr_builder *builder, struct tr_layer *layer, const char *name,
                         const struct tr_layer **lender);
/* For build functions: the layer's output is a sequence of `tokens` tokens, in every example. */
void tr_builder_tokens(struct tr_builder *builder, struct tr_layer *layer, int64_t tokens);
/* The size of the vocabulary of the text that a layer takes, 0 if unknown. */
int64_t tr_builder_vocabulary(const struct tr_builder *builder, const struct tr_layer *layer);
/* For build functions: adds a buffer; its index is the order of calls. More than
   TR_LAYER_BUFFERS make the model fail after `build`. */
void tr_layer_buffer(struct tr_layer *layer, struct tr_buffer buffer);

/* The options that every layer has, with a structure of their own; for the manual. */
extern const struct tr_option tr_layer_common_options[];
extern const int32_t tr_layer_common_option_count;

/* All classes; its entries are of struct tr_layer_class. */
extern const struct tr_registry tr_layer_classes;

static inline const struct tr_layer_class *tr_layer_class_of(const struct tr_entry *entry)
{
    return (const struct tr_layer_class *)entry;
}

/* Whether the layer's second input is of sequences of other lengths than the first. */
static inline bool tr_layer_is_apart(const struct tr_layer *layer)
{
    return layer->class->two_lengths && layer->tokens_memory != layer->tokens_in;
}

/* For exports of a network to other programs. */

/* Where a layer stores an option of its class, of the option's type; NULL if the class has no such option.
   Borrowed from the layer. */
const void *tr_layer_option(const struct tr_layer *layer, const char *key);
/* The geometry of a convolution or pool (for a transposed convolution that of the convolution it
   transposes), NULL for other layers. Borrowed from the layer. */
const struct tr_sliding_window *tr_layer_window(const struct tr_layer *layer);

#endif
