#include "export/adapters/merge.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <math.h>
#include <string.h>

/* Adds the product of an adapter to the weights [in][full] beside it. */
static void add_product(const struct tr_layer *layer, const struct tr_adapter *adapter, const float *a,
                        const float *b, float *weights)
{
    const struct tr_projection *beside = &adapter->beside;
    const int64_t rank = layer->adapters.rank;
    for (int64_t i = 0; i < beside->in; i++) {
        float *row = weights + i * beside->full + beside->column;
        for (int64_t o = 0; o < beside->out; o++) {
            float sum = 0;
            for (int64_t r = 0; r < rank; r++)
                sum = fmaf(a[i * rank + r] * layer->adapters.scale, b[r * beside->out + o], sum);
            row[o] += sum;
        }
    }
}

static const struct tr_parameter *find(const struct tr_model *model, const char *name)
{
    for (int i = 0; i < model->parameter_count; i++)
        if (strcmp(model->parameters[i].name, name) == 0) return &model->parameters[i];
    return NULL;
}

/* Parameters that a layer has in both networks are copied; then the products of its adapters are added. */
static tr_status fill_layer(const struct tr_model *from, const float *arena, int number,
                            const struct tr_model *to, float *merged)
{
    const struct tr_layer *layer = &from->layers[number], *plain = &to->layers[number];
    for (int k = 0; k < plain->slot_count; k++) {
        const struct tr_parameter *own = tr_model_slot(to, plain->slot[k]), *source = find(from, own->name);
        if (!source || source->count != own->count)
            return tr_fail(TR_EMISMATCH, "\"%s\" has no counterpart among the parameters with adapters",
                           own->name);
        memcpy(merged + own->offset, arena + source->offset, (size_t)own->count * sizeof *merged);
    }
    for (int k = 0; k < layer->adapters.count; k++) {
        const struct tr_adapter *adapter = &layer->adapters.item[k];
        const float *a = arena + tr_model_slot(from, layer->slot[adapter->down])->offset,
                    *b = arena + tr_model_slot(from, layer->slot[adapter->down + 1])->offset;
        add_product(layer, adapter, a, b,
                    merged + tr_model_slot(to, plain->slot[adapter->beside.weights])->offset);
    }
    return TR_OK;
}

tr_status tr_adapters_merge(const struct tr_job *job, const float *arena, struct tr_job **merged,
                            float **parameters)
{
    static const char *const without[] = {"adapters=null"};
    const struct tr_job_settings settings = {.set = without, .set_count = 1};
    *merged = NULL;
    *parameters = NULL;
    if (job->adapters.rank == 0)
        return tr_fail(TR_EINVAL,
                       "the network has no adapters, so there is nothing to merge; leave out `merge`");
    TR_TRY(tr_job_again(job, &settings, merged));
    const struct tr_model *from = job->model, *to = (*merged)->model;
    *parameters = tr_alloc_zero((size_t)to->arena_floats + 1, sizeof **parameters);
    tr_status status = *parameters ? TR_OK : TR_ENOMEM;
    for (int i = 0; i < to->layer_count && status == TR_OK; i++)
        status = fill_layer(from, arena, i, to, *parameters);
    if (status == TR_OK) return TR_OK;
    tr_free(*parameters);
    *parameters = NULL;
    tr_job_destroy(merged);
    return status;
}
