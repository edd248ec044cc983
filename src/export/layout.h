/* The tensors of a network in a file, for each layout: their names, types and shapes, and where each number
 * belongs.
 *
 * TR_LAYOUT_TRIREME is what checkpoints have. TR_LAYOUT_TORCH is what load_state_dict() of torch.nn's Conv2d,
 * Linear, Embedding, LSTM, BatchNorm and LayerNorm wants, under the names of our layers:
 *
 *     conv        weight [out, in, height, width], bias
 *     dense       weight [out, in], bias
 *     embedding   weight [vocabulary, width]
 *     lstm        weight_ih_l0 [4 hidden, in], weight_hh_l0 [4 hidden, hidden], bias_ih_l0, bias_hh_l0
 *                 (zeros); gates in our order, which is theirs: i, f, g, o
 *     batch_norm  weight, bias, running_mean, running_var, num_batches_tracked
 *     layer_norm  weight, bias
 *     group_norm  weight, bias
 *     rms_norm    weight
 *
 * PyTorch has images channels first, Trireme channels last. So where an image becomes a vector, its
 * numbers have another order in PyTorch, and every parameter that meets them is permuted accordingly.
 */
#ifndef TR_EXPORT_LAYOUT_H
#define TR_EXPORT_LAYOUT_H

#include "io/safetensors.h"
#include "nn/model.h"
#include "trireme/export.h"

enum tr_layout_role {
    TR_LAYOUT_VALUES, /* the numbers of a parameter, each once */
    TR_LAYOUT_ADDEND, /* zeros when written; when read, added to a parameter listed earlier */
    TR_LAYOUT_STEPS   /* a single int64, the number of steps; may be missing when read, and is not used */
};

#define TR_LAYOUT_AXES 4

struct tr_layout_tensor {
    enum tr_layout_role role;
    int parameter; /* the parameter's index in the model */
    char name[2 * TR_NAME_SIZE + 24];
    enum tr_dtype dtype;
    int rank; /* in the file */
    int64_t shape[TR_STORED_RANK];
    /* The element at indices i[] of axes of these sizes, the last one fastest, is the parameter's element
       number sum(i[] * stride[]). */
    int axes;
    int64_t size[TR_LAYOUT_AXES], stride[TR_LAYOUT_AXES];
};

struct tr_layout_list {
    struct tr_layout_tensor *tensor;
    int count;
};

/* "trireme" or "torch": the value of TR_LAYOUT_KEY in a file's header. Static storage. */
const char *tr_layout_name(enum tr_layout layout);
#define TR_LAYOUT_KEY "layout"

/* Lists the tensors of a model. TR_EUNSUPPORTED, naming the layer, for a network that the layout cannot hold.
   Returned, free with tr_layout_list_free(). */
tr_status tr_layout_list_make(const struct tr_model *model, enum tr_layout layout,
                              struct tr_layout_list *out);
/* Accepts an empty list; empties it. */
void tr_layout_list_free(struct tr_layout_list *list);

/* The tensor with `data` as a writer or reader of files knows it; the name is borrowed. */
struct tr_stored_tensor tr_layout_stored(const struct tr_layout_tensor *tensor, void *data);

/* All tensors of a network with their numbers. */
struct tr_layout_packed {
    struct tr_layout_list list;
    struct tr_stored_tensor *tensor; /* [list.count]; some point into the arena */
    void *memory;
};
/* Lists and fills them from `arena`, an arena of the model on the host, borrowed for as long as they are
   used; `steps` is the value of TR_LAYOUT_STEPS. TR_EUNSUPPORTED as tr_layout_list_make(). Returned, free
   with tr_layout_packed_free(). */
tr_status tr_layout_pack(const struct tr_model *model, enum tr_layout layout, const float *arena,
                         int64_t steps, struct tr_layout_packed *out);
/* Accepts an empty one; empties it. */
void tr_layout_packed_free(struct tr_layout_packed *packed);

/* Puts the numbers of a tensor, as they stand in a file, into its parameter in the arena. */
void tr_layout_unpack(const struct tr_layout_tensor *tensor, const struct tr_model *model,
                      const float *values, float *arena);

/* order[i]: the height, width and channels that the output of layer i has, as an image or as a vector made
   of one; rank 0 where the order of its numbers does not come from an image, or is the same channels
   first. [layer_count] TR_EUNSUPPORTED where a layer adds outputs of different orders. */
tr_status tr_layout_orders(const struct tr_model *model, struct tr_shape *order);

#endif
