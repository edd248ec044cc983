/* Whether a directory can hold a network, and which of its layers is which.
 *
 * The contents of config.json are read from its layers and give a model file (tr_hub_model()). The network
 * of that file is compared with this one layer by layer, so nothing that changes numbers is overlooked.
 * Names, initializers, rates, dropout do not count; biases that are missing in a GPT-2 are zeros there.
 */
#ifndef TR_EXPORT_HUB_MATCH_H
#define TR_EXPORT_HUB_MATCH_H

#include "export/hub/pieces.h"
#include "nn/model.h"

struct tr_hub_match {
    struct tr_hub_config config;
    const struct tr_model *model; /* ours, borrowed */
    struct tr_model *like;        /* of the model file for the configuration */
    int *layer;                   /* in `model`, for each layer of `like` */
};

/* `window`: tokens of a text if the layers do not limit it. TR_EUNSUPPORTED names the layer that differs.
   Returned, free with tr_hub_match_release(), also after a failure. */
tr_status tr_hub_match(const struct tr_model *model, int64_t window, struct tr_hub_match *out);
/* Accepts an empty one; empties it. */
void tr_hub_match_release(struct tr_hub_match *match);

/* The numbers of a piece in the order of PyTorch, [rows][columns], or [columns][rows] where `across`. `arena`
   is one of the model's parameters on the host. */
void tr_hub_gather(const struct tr_hub_match *match, const struct tr_hub_piece *piece, bool across,
                   const float *arena, float *values);

#endif
