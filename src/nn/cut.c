#include "nn/cut.h"

#include "base/fail.h"

enum verdict {
    ALLOWED,
    NOTHING_BEFORE,
    NOTHING_BEHIND,
    CROSSED,
    SHARED_RELU,
    SHARED_PARAMETERS,
    IMAGE_TOKENS,
    SECOND_TEXT
};

/* `taker` is the layer after the cut that prevents it, `taken` its input from before the cut. */
static enum verdict judge(const struct tr_model *model, int cut, int *taker, int *taken)
{
    int crossing = tr_model_source(model, cut - 1);
    if (crossing < 0) return NOTHING_BEFORE;
    if (tr_model_source(model, model->layer_count - 1) == crossing) return NOTHING_BEHIND;
    *taken = crossing;
    if (model->layers[crossing].tokens_out > 0) return IMAGE_TOKENS;
    if (model->layers[crossing].tokens_out < 0) return SECOND_TEXT;
    for (int i = cut; i < model->layer_count; i++) {
        const struct tr_layer *layer = &model->layers[i];
        *taker = i;
        if (layer->sharer_of > 0 && layer->sharer_of - 1 < cut) {
            *taken = layer->sharer_of - 1;
            return SHARED_PARAMETERS;
        }
        for (int k = 0; k < layer->input_count; k++) {
            *taken = tr_model_source(model, layer->input[k]);
            if (*taken < cut && *taken != crossing) return CROSSED;
            if (*taken == crossing && layer->relu.of_input) return SHARED_RELU;
        }
    }
    return ALLOWED;
}

tr_status tr_model_check_cut(const struct tr_model *model, int cut)
{
    int taker = 0, taken = 0;
    const char *name = model->layers[cut].name;
    enum verdict verdict = judge(model, cut, &taker, &taken);
    const char *by = model->layers[taker].name;
    const char *of = taken < 0 ? "" : model->layers[taken].name;
    switch (verdict) {
    case NOTHING_BEFORE:
        return tr_fail(TR_EINVAL, "nothing is computed before layer \"%s\"", name);
    case NOTHING_BEHIND:
        return tr_fail(TR_EINVAL, "nothing is computed from layer \"%s\" onwards", name);
    case CROSSED:
        if (taken < 0)
            return tr_fail(TR_EINVAL, "layer \"%s\" after \"%s\" takes the network's input", by, name);
        return tr_fail(TR_EINVAL, "layer \"%s\" also takes the output of \"%s\" before layer \"%s\"", by, of,
                       name);
    case SHARED_RELU:
        return tr_fail(TR_EINVAL, "layer \"%s\" applies the gradient of the relu of \"%s\" and stays with it",
                       by, of);
    case SHARED_PARAMETERS:
        return tr_fail(TR_EINVAL, "layer \"%s\" shares the parameters of \"%s\", which stay on one process",
                       by, of);
    case IMAGE_TOKENS:
        return tr_fail(TR_EINVAL,
                       "tokens of an image, of layer \"%s\", do not go from one process to another", of);
    case SECOND_TEXT:
        return tr_fail(TR_EINVAL,
                       "the tokens of \"%s\", of layer \"%s\", do not go from one process to another",
                       model->second_text, of);
    case ALLOWED:
        break;
    }
    return TR_OK;
}

int tr_model_cuts(const struct tr_model *model, int *cut)
{
    int count = 0, taker, taken;
    for (int i = 1; i < model->layer_count; i++)
        if (!model->layers[i].alias && judge(model, i, &taker, &taken) == ALLOWED) cut[count++] = i;
    return count;
}
