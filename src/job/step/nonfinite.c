/* Finds the first tensor of a step that is not finite. */
#include "job/step/gradient_internal.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <math.h>
#include <stdio.h>

static tr_status all_finite(tr_gradient *gradient, const float *values, int64_t count, bool *finite)
{
    float *copy = tr_alloc((size_t)count + 1, sizeof *copy);
    if (!copy) return TR_ENOMEM;
    tr_status status = tr_device_to_host(gradient->device, copy, values, (size_t)count * sizeof *copy);
    if (status == TR_OK) status = tr_device_wait(gradient->device);
    *finite = true;
    for (int64_t i = 0; status == TR_OK && i < count && *finite; i++) *finite = isfinite(copy[i]);
    tr_free(copy);
    return status;
}

struct blame {
    tr_gradient *gradient;
    char *name;
    size_t size;
    bool found;
};

/* Called after each layer of the forward pass. */
static tr_status check_layer(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    struct blame *blame = user;
    bool finite;
    if (blame->found) return TR_OK;
    TR_TRY(all_finite(blame->gradient, output, count, &finite));
    if (finite) return TR_OK;
    blame->found = true;
    snprintf(blame->name, blame->size, "output of layer \"%s\"", layer->name);
    return TR_OK;
}

tr_status tr_gradient_locate_nonfinite(tr_gradient *gradient, int64_t step, char *name, size_t size)
{
    const struct tr_model *model = gradient->job->model;
    const float *parameters = tr_mirror_parameters(gradient->mirror);
    (void)tr_gradient_begin_anew(gradient);
    TR_TRY(tr_mirror_renew(gradient->mirror, TR_ARENA_PARAMETERS));
    for (int i = 0; i < model->parameter_count; i++) {
        bool finite;
        TR_TRY(all_finite(gradient, parameters + model->parameters[i].offset, model->parameters[i].count,
                          &finite));
        if (finite) continue;
        snprintf(name, size, "parameter \"%s\"", model->parameters[i].name);
        return TR_OK;
    }
    const struct tr_batch *batch;
    TR_TRY(tr_loader_get(gradient->loader, step, &batch));
    struct blame blame = {gradient, name, size, false};
    const struct tr_gradient_plan *plan = &gradient->plan;
    int64_t last = plan->bound[plan->nodes];
    for (int64_t first = plan->bound[0]; first < last && !blame.found; first += plan->per_pass) {
        int64_t end = first + plan->per_pass < last ? first + plan->per_pass : last;
        struct tr_pass_batch part;
        TR_TRY(gradient_prepare_pass(gradient, batch, first, end, &part));
        tr_pass_observe(gradient->pass, check_layer, &blame);
        tr_status status =
            tr_pass_forward(gradient->pass, &part, parameters, gradient->slots.data, plan->stride);
        tr_pass_observe(gradient->pass, NULL, NULL);
        TR_TRY(status);
    }
    if (!blame.found) snprintf(name, size, "loss");
    return TR_OK;
}
