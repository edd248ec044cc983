/* Layers as PyTorch source, which torch.c puts together. */
#ifndef TR_EXPORT_TORCH_LAYERS_H
#define TR_EXPORT_TORCH_LAYERS_H

#include "base/text/text.h"
#include "job/feed/intake.h"
#include "nn/layer.h"

/* How a class is written: an expression that makes the module in __init__() (NULL where there is none), and
   one that calls it on `x` in forward(), where `lengths` has those of sequences. A class with several inputs
   is written by `join` instead: what stands before, between and after their expressions, after what `call`
   writes if there is one. `needs` (or NULL)
   is the source of a class that PyTorch does not have and the layer takes (static storage, or NULL for none);
   layers that need the same one return the same pointer. */
struct tr_torch_layer {
    const char *class;
    void (*make)(const struct tr_layer *layer, struct tr_text *text);
    void (*call)(const struct tr_layer *layer, struct tr_text *text);
    const char *(*join)(const struct tr_layer *layer, int place);
    const char *(*needs)(const struct tr_layer *layer);
};

/* NULL for a class that has no counterpart. Static storage. */
const struct tr_torch_layer *tr_torch_layer_of(const struct tr_layer *layer);

/* Whether `name` can stand after "self." */
bool tr_torch_is_identifier(const char *name);
/* "self.conv1", or a form that takes any name. */
void tr_torch_add_member(struct tr_text *text, const char *name);
/* The shortest decimals that are this number in float32. */
void tr_torch_add_float(struct tr_text *text, float value);

/* Opens the call of the layer's fused activation: "F.relu(". Returns what closes it. */
const char *tr_torch_open_activation(const struct tr_layer *layer, struct tr_text *text);
void tr_torch_close_activation(const struct tr_layer *layer, const char *end, struct tr_text *text);

/* ---- intake.c ---- */

/* Adds the method prepare(), from examples of data sets to the arguments of forward(), if the two differ. */
void tr_torch_add_prepare(const struct tr_intake *intake, const struct tr_input_options *input,
                          struct tr_text *text);

/* ---- attention.c ---- */

void tr_torch_make_attention(const struct tr_layer *layer, struct tr_text *text);
void tr_torch_call_attention(const struct tr_layer *layer, struct tr_text *text);
const char *tr_torch_attention_class(const struct tr_layer *layer);
void tr_torch_make_cross_attention(const struct tr_layer *layer, struct tr_text *text);
void tr_torch_call_cross_attention(const struct tr_layer *layer, struct tr_text *text);
const char *tr_torch_join_cross_attention(const struct tr_layer *layer, int place);
const char *tr_torch_cross_attention_class(const struct tr_layer *layer);

/* ---- windows.c ---- */

/* ", groups=4" where a convolution has more than one. */
void tr_torch_add_groups(const struct tr_layer *layer, struct tr_text *text);

/* Rows and columns around the image, so that windows of this geometry see only them. */
struct tr_torch_margin {
    int64_t top, bottom, left, right;
    bool inside; /* torch's own `padding=` of top and left gives the same windows */
};
/* "(left, right, top, bottom)", as F.pad() wants it. */
void tr_torch_add_margin(struct tr_text *text, const struct tr_torch_margin *margin);

void tr_torch_make_conv(const struct tr_layer *layer, struct tr_text *text);
void tr_torch_make_conv_transpose(const struct tr_layer *layer, struct tr_text *text);
void tr_torch_make_pool(const struct tr_layer *layer, struct tr_text *text);
void tr_torch_make_upsample(const struct tr_layer *layer, struct tr_text *text);
void tr_torch_call_conv(const struct tr_layer *layer, struct tr_text *text);
void tr_torch_call_conv_transpose(const struct tr_layer *layer, struct tr_text *text);
void tr_torch_call_pool(const struct tr_layer *layer, struct tr_text *text);

#endif
