/* Export to a safetensors file. */
#include "base/alloc.h"
#include "export/formats.h"
#include "job/tensors.h"

tr_status tr_export_safetensors(const struct tr_export *what, const char *path)
{
    const struct tr_model *model = what->job->model;
    const struct tr_stored_note notes[] = {
        {"format", "trireme"},
        {"name", what->name},
        {"parameters", what->averages ? "moving averages" : "as trained"},
        {"hash", what->facts->parameter_hash},
    };
    struct tr_stored_tensor *tensors = tr_alloc((size_t)model->parameter_count, sizeof *tensors);
    if (!tensors) return TR_ENOMEM;
    for (int i = 0; i < model->parameter_count; i++)
        tensors[i] =
            tr_parameter_tensor(&model->parameters[i], model->parameters[i].name, (float *)what->parameters);
    tr_status status = tr_safetensors_replace(NULL, path, tensors, model->parameter_count, notes,
                                              sizeof notes / sizeof notes[0]);
    tr_free(tensors);
    return status;
}
