#include "export/layout_list.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <stdio.h>
#include <string.h>

const char *tr_layout_name(enum tr_layout layout)
{
    return layout == TR_LAYOUT_TORCH ? "torch" : "trireme";
}

struct tr_layout_tensor *layout_add(struct layout_lister *lister, int parameter, const char *name)
{
    const struct tr_parameter *values = &lister->model->parameters[lister->layer->parameter[parameter]];
    struct tr_layout_tensor *tensor = &lister->list->tensor[lister->list->count++];
    *tensor = (struct tr_layout_tensor){
        .parameter = lister->layer->parameter[parameter],
        .dtype = TR_DTYPE_F32,
        .rank = values->shape.rank,
        .axes = 1,
        .size = {values->count},
        .stride = {1},
    };
    for (int i = 0; i < tensor->rank; i++) tensor->shape[i] = values->shape.size[i];
    snprintf(tensor->name, sizeof tensor->name, "%s.%s", lister->layer->name, name);
    return tensor;
}

static void list_own(struct layout_lister *lister)
{
    for (int i = 0; i < lister->model->layer_count; i++) {
        lister->layer = &lister->model->layers[i];
        for (int k = 0; k < lister->layer->parameter_count; k++) {
            const char *name = lister->model->parameters[lister->layer->parameter[k]].name;
            layout_add(lister, k, name + strlen(lister->layer->name) + 1);
        }
    }
}

tr_status tr_layout_list_make(const struct tr_model *model, enum tr_layout layout, struct tr_layout_list *out)
{
    struct layout_lister lister = {.model = model, .list = out};
    *out = (struct tr_layout_list){0};
    out->tensor = tr_alloc((size_t)model->layer_count * LAYOUT_TENSORS_MOST, sizeof *out->tensor);
    if (!out->tensor) return TR_ENOMEM;
    tr_status status = TR_OK;
    if (layout == TR_LAYOUT_TORCH)
        status = layout_list_torch(&lister);
    else
        list_own(&lister);
    if (status != TR_OK) tr_layout_list_free(out);
    return status;
}

void tr_layout_list_free(struct tr_layout_list *list)
{
    tr_free(list->tensor);
    *list = (struct tr_layout_list){0};
}

struct tr_stored_tensor tr_layout_stored(const struct tr_layout_tensor *tensor, void *data)
{
    struct tr_stored_tensor stored = {tensor->name, tensor->dtype, tensor->rank, {0}, data};
    memcpy(stored.shape, tensor->shape, sizeof stored.shape);
    return stored;
}

/* ---- numbers ---- */

/* Walks, in the order of the file, over the places of its elements in the parameter. */
struct walk {
    int64_t index[TR_LAYOUT_AXES], at;
};

/* Advances by one element. */
static inline void step(const struct tr_layout_tensor *tensor, struct walk *walk)
{
    for (int i = tensor->axes - 1; i >= 0; i--) {
        walk->at += tensor->stride[i];
        if (++walk->index[i] < tensor->size[i]) return;
        walk->at -= tensor->size[i] * tensor->stride[i];
        walk->index[i] = 0;
    }
}

/* Whether the numbers lie in the file in the same order as in the parameter. */
static bool is_plain(const struct tr_layout_tensor *tensor)
{
    return tensor->role == TR_LAYOUT_VALUES && tensor->axes == 1 && tensor->stride[0] == 1;
}

/* Fills the tensors of the list. */
static tr_status fill(const struct tr_model *model, const float *arena, int64_t steps,
                      struct tr_layout_packed *out)
{
    const struct tr_layout_list *list = &out->list;
    /* The numbers of steps come first, so that they are aligned. */
    int64_t floats = 2 * (int64_t)list->count;
    for (int i = 0; i < list->count; i++)
        if (!is_plain(&list->tensor[i])) floats += model->parameters[list->tensor[i].parameter].count;
    float *next = out->memory = tr_alloc((size_t)floats, sizeof *next);
    if (!next) return TR_ENOMEM;
    int64_t *count = (int64_t *)next;
    next += 2 * (int64_t)list->count;
    for (int i = 0; i < list->count; i++) {
        const struct tr_layout_tensor *tensor = &list->tensor[i];
        const struct tr_parameter *parameter = &model->parameters[tensor->parameter];
        const float *values = arena + parameter->offset;
        struct walk walk = {0};
        if (tensor->role == TR_LAYOUT_STEPS) {
            count[i] = steps;
            out->tensor[i] = tr_layout_stored(tensor, &count[i]);
        } else if (is_plain(tensor)) { /* writers only read it */
            out->tensor[i] = tr_layout_stored(tensor, (float *)values);
        } else {
            out->tensor[i] = tr_layout_stored(tensor, next);
            for (int64_t k = 0; k < parameter->count; k++, step(tensor, &walk))
                *next++ = tensor->role == TR_LAYOUT_VALUES ? values[walk.at] : 0;
        }
    }
    return TR_OK;
}

tr_status tr_layout_pack(const struct tr_model *model, enum tr_layout layout, const float *arena,
                         int64_t steps, struct tr_layout_packed *out)
{
    *out = (struct tr_layout_packed){0};
    TR_TRY(tr_layout_list_make(model, layout, &out->list));
    out->tensor = tr_alloc((size_t)out->list.count, sizeof *out->tensor);
    tr_status status = out->tensor ? fill(model, arena, steps, out) : TR_ENOMEM;
    if (status != TR_OK) tr_layout_packed_free(out);
    return status;
}

void tr_layout_packed_free(struct tr_layout_packed *packed)
{
    tr_free(packed->memory);
    tr_free(packed->tensor);
    tr_layout_list_free(&packed->list);
    *packed = (struct tr_layout_packed){0};
}

void tr_layout_unpack(const struct tr_layout_tensor *tensor, const struct tr_model *model,
                      const float *values, float *arena)
{
    const struct tr_parameter *parameter = &model->parameters[tensor->parameter];
    float *to = arena + parameter->offset;
    struct walk walk = {0};
    if (tensor->role == TR_LAYOUT_STEPS) return;
    for (int64_t k = 0; k < parameter->count; k++, step(tensor, &walk)) {
        if (tensor->role == TR_LAYOUT_VALUES)
            to[walk.at] = values[k];
        else
            to[walk.at] += values[k];
    }
}
