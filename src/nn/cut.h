/* Where a network may be cut in two, so that different processes compute its parts: places where exactly
 * one tensor crosses from the layers before to those after.
 */
#ifndef TR_NN_CUT_H
#define TR_NN_CUT_H

#include "nn/model.h"

/* Whether the network may be cut before `layer`. TR_EINVAL with the reason, naming layers: a residual
   connection crosses, a max pool applies the gradient of the relu before it, or nothing would be computed
   on one side. Layers on both sides may share weights, see tr_pass_tie(). Any thread. */
tr_status tr_model_check_cut(const struct tr_model *model, int layer);
/* Writes the layers before which the network may be cut, ascending, to cut[layer_count], and returns their
   number. Of places where the same tensor crosses, only the last is written. Any thread. */
int tr_model_cuts(const struct tr_model *model, int *cut);

#endif
