/* The section `adapters:` of a model file: a frozen base, and small trainable products beside some of its
 * weights.
 *
 * With LoRA (Hu et al. 2021) a product y = x w + b becomes y = (x w + b) + ((d(x) a) scale) b', where a is
 * [in][rank], b' [rank][out], scale = alpha / rank, and d drops a part of the input in training. Each of
 * these is an operation of device/ops/: two of dense_forward, dropout, scale, add; so every device gives
 * the same bits. Where an adapter serves only some columns of y, its product is extended with +0 for the
 * others before it is added. a begins uniform within +- 1 / sqrt(in), b' as zeros: the first step starts
 * from the base itself.
 *
 * All parameters of the model belong to the base, except those of adapters and of layers that `train`
 * names.
 */
#ifndef TR_NN_ADAPTERS_H
#define TR_NN_ADAPTERS_H

#include "nn/model.h"

struct tr_adapters {
    int32_t kind; /* 0: lora */
    int64_t rank;
    float alpha, dropout;
    struct tr_string_list on, train;
    char *base; /* NULL: not given */
    char *base_hash;
};

extern const struct tr_option tr_adapters_options[];
extern const int32_t tr_adapters_option_count;

/* Reads the section of a model file; *has becomes whether there is one; if so, release *out with
   tr_adapters_release(). TR_EINVAL with the place. */
tr_status tr_adapters_read(const tr_config *root, struct tr_adapters *out, bool *has);
void tr_adapters_release(struct tr_adapters *adapters);

/* Checks the names in `on` and `train` against the layers that were read (their classes and names): TR_EINVAL
   for a name that matches none. */
tr_status tr_adapters_check(const struct tr_adapters *adapters, const struct tr_model *model);
/* Whether a layer's own parameters learn. */
bool tr_adapters_train(const struct tr_adapters *adapters, const struct tr_layer *layer);
/* Adds the adapters that `on` requests to a layer that was built. TR_EINVAL; the caller adds the layer's
 * name.
 */
tr_status tr_adapters_add(const struct tr_adapters *adapters, struct tr_layer *layer,
                          struct tr_builder *builder);

#endif
