/* The section `adapters:` of a model file: a base that is frozen, and small products beside some of its
 * weights that learn in its place.
 *
 * With LoRA (Hu et al. 2021) a product y = x w + b becomes y = (x w + b) + ((d(x) a) scale) b', where a is
 * [in][rank], b' [rank][out], scale = alpha / rank, and d drops a part of the input in training. Each of
 * these is an operation of device/ops/: two of dense_forward, dropout, scale, add; so the bits are the same
 * on every device. Where an adapter stands beside some columns of y alone, its product is joined with +0 for
 * the others before it is added. a begins uniform within +- 1 / sqrt(in), b' with zeros: the first step
 * starts from the base itself.
 *
 * All parameters of the model are of the base, but those of adapters and of layers that `train` names.
 */
#ifndef TR_NN_ADAPTERS_H
#define TR_NN_ADAPTERS_H

#include "nn/model.h"

struct tr_adapters {
    int32_t kind; /* 0: lora */
    int64_t rank;
    float alpha, dropout;
    struct tr_string_list on, train;
    char *base; /* NULL: not said yet */
    char *base_hash;
};

extern const struct tr_option tr_adapters_options[];
extern const int32_t tr_adapters_option_count;

/* Reads the section of a model file; *has tells whether there is one, and if so *out is to be released with
   tr_adapters_release(). TR_EINVAL with the place. */
tr_status tr_adapters_read(const tr_config *root, struct tr_adapters *out, bool *has);
void tr_adapters_release(struct tr_adapters *adapters);

/* Checks the names of `on` and `train` against layers that were read (their classes and names): TR_EINVAL for
   one that fits nothing. */
tr_status tr_adapters_check(const struct tr_adapters *adapters, const struct tr_model *model);
/* Whether a layer's own parameters learn. */
bool tr_adapters_train(const struct tr_adapters *adapters, const struct tr_layer *layer);
/* Adds the adapters that `on` asks for to a layer that was built. TR_EINVAL, the layer's name is the
 * caller's. */
tr_status tr_adapters_add(const struct tr_adapters *adapters, struct tr_layer *layer,
                          struct tr_builder *builder);

#endif
