/* Layers: what a network is made of.
 *
 * A layer class says how a kind of layer is configured, checked, and expressed in device operations. It owns
 * no memory while training: everything it reads and writes comes with each call. To add a kind: one file in
 * nn/layers, one line in nn/layers/table.c; the tests enumerate the table.
 *
 * Shapes are per example, or per token for sequences; the number of examples or tokens is first in memory and
 * never part of a shape.
 */
#ifndef TR_NN_LAYER_H
#define TR_NN_LAYER_H

#include "base/option.h"
#include "device/device.h"
#include "optim/initializer.h"
#include "optim/optimizer.h"
#include "tensor/shape.h"

#define TR_LAYER_INPUTS     2
#define TR_LAYER_PARAMETERS 4
#define TR_LAYER_BUFFERS    4
#define TR_NAME_SIZE        64
#define TR_WHERE_SIZE       (TR_CONFIG_PATH_SIZE + 128)

struct tr_parameter {
    char name[2 * TR_NAME_SIZE]; /* "conv1.weights" */
    enum tr_parameter_kind kind;
    struct tr_shape shape;
    struct tr_initializer initializer;
    int64_t fan_in, fan_out;
    int64_t count;
    int64_t offset; /* in floats, in every arena that is laid out like the parameters */
};

/* Memory of a layer beside its output and the output's gradient. */
enum tr_buffer_unit { TR_PER_EXAMPLE, TR_PER_ROW, TR_PER_MICROBATCH };
struct tr_buffer {
    enum tr_buffer_unit unit;
    int64_t bytes; /* per unit */
    int64_t fixed; /* bytes in addition, whatever the number of units */
    bool
        backward_only; /* lives within the layer's own backward; otherwise from its forward to its backward */
};

struct tr_layer {
    const struct tr_layer_class *class;
    char name[TR_NAME_SIZE];
    char where[TR_WHERE_SIZE]; /* "models/x.yaml:12:5: layers[2]", for messages */
    void *options;             /* of class->options_size, filled through class->options */
    void *state;               /* made by class->build, freed with tr_free(); e.g. window geometry */
    int input_count;
    int input[TR_LAYER_INPUTS]; /* layers whose outputs it takes; -1 is the network's input */
    struct tr_shape in[TR_LAYER_INPUTS];
    struct tr_shape out;
    int parameter_count;
    int parameter[TR_LAYER_PARAMETERS]; /* numbers in the model */
    int buffer_count;
    struct tr_buffer buffer[TR_LAYER_BUFFERS];
    bool keeps_input, keeps_output; /* what its backward reads */
    bool alias;                     /* its output is its input under another shape; no calls are made */
    /* Its output went through a relu whose gradient the consumer (a max pool) applies. */
    bool relu_output, relu_left_to_consumer;
    bool relu_of_input;       /* this layer is that consumer */
    float statistic_momentum; /* share of a new batch in this layer's statistics */
    int64_t flops;            /* of the forward pass, per example or token: 2 for a multiply-add */
};

/* What one call of forward or backward works on. Device memory, borrowed for the call. */
struct tr_layer_call {
    tr_device *device;
    const struct tr_layer *layer;
    bool training;
    bool apart;                       /* backward leaves the first parameter's gradient to others */
    int64_t examples;                 /* of this call */
    int64_t rows;                     /* tokens if the layer's input is a sequence, else examples */
    const struct tr_cut *cut;         /* over `rows`; training only */
    const struct tr_cut *example_cut; /* over `examples`; training only */
    int64_t global_rows;              /* of the global batch: examples */
    const int32_t *offset;            /* [examples + 1] token offsets, or NULL */
    const int32_t *token;             /* [rows], or NULL */
    uint32_t layer_number;
    uint32_t first_example; /* number of the call's first example in the global batch */
    uint32_t dropout_key[2];
    struct tr_step_scalars *scalars;
    const float *x[TR_LAYER_INPUTS];
    float *y;
    const float *dy;
    float *dx[TR_LAYER_INPUTS]; /* NULL where not wanted */
    void *buffer[TR_LAYER_BUFFERS];
    const float *parameter[TR_LAYER_PARAMETERS];
    float *gradient[TR_LAYER_PARAMETERS]; /* of the first node; later ones at cut->stride */
};

struct tr_builder;

struct tr_layer_class {
    const char *name; /* the key in a model file */
    const char *help;
    const struct tr_option *options; /* every layer has the option `name` in addition */
    int32_t option_count;
    size_t options_size;
    int inputs;                 /* 1, or 2 for those that name a second layer */
    bool applies_relu_gradient; /* its backward can apply the gradient of a relu that produced its input */
    /* The gradient of its first parameter, [in][out], is that of tr_op_dense_backward_weights for its input
       and the dy that backward leaves, the factors; with call->apart backward does not form it. */
    bool factors;
    /* Checks options and input shapes (layer->in), sets layer->out, declares parameters and buffers. Messages
       name the layer, which the caller puts in front. */
    tr_status (*build)(struct tr_layer *layer, struct tr_builder *builder);
    tr_status (*forward)(const struct tr_layer_call *call);
    /* Writes call->dx (where wanted) and the gradients. May overwrite dy. NULL for layers without gradient.
     */
    tr_status (*backward)(const struct tr_layer_call *call);
};

/* For build functions: adds a parameter to the layer and the model. `initializer` is copied. */
tr_status tr_builder_parameter(struct tr_builder *builder, struct tr_layer *layer, const char *name,
                               enum tr_parameter_kind kind, struct tr_shape shape,
                               const struct tr_initializer *initializer, int64_t fan_in, int64_t fan_out);
/* The size of the vocabulary that the data brought, 0 if unknown. */
int64_t tr_builder_vocabulary(const struct tr_builder *builder);
/* For build functions: adds a buffer; its index is the order of calls. */
void tr_layer_buffer(struct tr_layer *layer, struct tr_buffer buffer);

/* All classes, and one by name (NULL if unknown). Static storage. */
const struct tr_layer_class *const *tr_layer_classes(int *count);
const struct tr_layer_class *tr_layer_class_find(const char *name);

/* For whoever writes a network down for other programs. */

/* Where a layer keeps the value of an option of its class, of the type that the table gives it; NULL if the
   class has no such option. Borrowed from the layer. */
const void *tr_layer_option(const struct tr_layer *layer, const char *key);
/* The geometry of a convolution or pool, NULL of other layers. Borrowed from the layer. */
const struct tr_window *tr_layer_window(const struct tr_layer *layer);

#endif
