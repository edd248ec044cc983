/* Export of adapters to PEFT. */
#include "export/adapters/peft.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/text/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct tensor {
    char name[PEFT_NAME + 64];
    float *values;
    int64_t shape[2];
};

struct writing {
    const struct tr_export *what;
    bool gpt2;
    struct tensor *tensor;
    int64_t count;
    struct peft_module *module;
    int64_t modules;
};

/* Columns [column, column + width) of values [rows][full], as [width][rows]. */
static tr_status add_tensor(struct writing *writing, const char *module, char letter, const float *values,
                            int64_t rows, int64_t full, int64_t column, int64_t width)
{
    if (!tr_grow(&writing->tensor, writing->count, sizeof *writing->tensor)) return TR_ENOMEM;
    struct tensor *tensor = &writing->tensor[writing->count];
    *tensor = (struct tensor){.shape = {width, rows}};
    tensor->values = tr_alloc((size_t)(rows * width), sizeof *tensor->values);
    if (!tensor->values) return TR_ENOMEM;
    writing->count++;
    snprintf(tensor->name, sizeof tensor->name, "base_model.model.%s.lora_%c.weight", module, letter);
    for (int64_t i = 0; i < width; i++)
        for (int64_t k = 0; k < rows; k++) tensor->values[i * rows + k] = values[k * full + column + i];
    return TR_OK;
}

static tr_status add_adapter(struct writing *writing, const struct tr_layer *layer,
                             const struct tr_adapter *adapter)
{
    const struct tr_model *model = writing->what->job->model;
    const struct tr_projection *beside = &adapter->beside;
    const int64_t rank = layer->adapters.rank;
    struct peft_module module[3];
    int64_t column[3], width[3];
    const float *a = writing->what->parameters + tr_model_slot(model, layer->slot[adapter->down])->offset,
                *b = writing->what->parameters + tr_model_slot(model, layer->slot[adapter->down + 1])->offset;
    const int count = peft_modules_of(writing->gpt2, layer, adapter, module, column, width);
    if (count == 0)
        return tr_fail(
            TR_EUNSUPPORTED,
            "layer \"%s\": %s%sadapters there have no module in transformers' network; export with "
            "`merge`",
            layer->name, beside->part ? beside->part : "", beside->part ? ": " : "");
    for (int n = 0; n < count; n++) {
        if (!tr_grow(&writing->module, writing->modules, sizeof *writing->module)) return TR_ENOMEM;
        for (int64_t m = 0; m < writing->modules; m++)
            if (strcmp(writing->module[m].name, module[n].name) == 0)
                return tr_fail(
                    TR_EUNSUPPORTED,
                    "layer \"%s\" has two adapters that are one module, %s, in transformers' network; "
                    "export with `merge`",
                    layer->name, module[n].name);
        writing->module[writing->modules++] = module[n];
        TR_TRY(add_tensor(writing, module[n].name, 'A', a, beside->in, rank, 0, rank));
        TR_TRY(add_tensor(writing, module[n].name, 'B', b, rank, beside->out, column[n], width[n]));
    }
    return TR_OK;
}

static tr_status collect(struct writing *writing)
{
    const struct tr_job *job = writing->what->job;
    if (job->adapters.rank == 0)
        return tr_fail(TR_EUNSUPPORTED,
                       "the network has no adapters, which is all that a directory of PEFT holds");
    if (!peft_is_known(job->model, &writing->gpt2))
        return tr_fail(TR_EUNSUPPORTED,
                       "its layers are not named as those of an imported GPT-2, Llama, Mistral or Qwen2 "
                       "(attention0, up0, ...), so PEFT's modules are not known; export with `merge`");
    if (job->adapters.train.count > 0)
        return tr_fail(TR_EUNSUPPORTED,
                       "layer \"%s\" is trained as a whole (adapters.train), which a directory of adapters "
                       "does not hold; "
                       "export with `merge`",
                       job->adapters.train.item[0]);
    for (int i = 0; i < job->model->layer_count; i++)
        for (int k = 0; k < job->model->layers[i].adapters.count; k++)
            TR_TRY(add_adapter(writing, &job->model->layers[i], &job->model->layers[i].adapters.item[k]));
    return TR_OK;
}

static tr_status write_weights(const struct writing *writing, const char *directory)
{
    static const struct tr_stored_metadata metadata[] = {{"format", "pt"}};
    struct tr_stored_tensor *tensors = tr_alloc((size_t)writing->count + 1, sizeof *tensors);
    char *path = tr_path_join(directory, PEFT_WEIGHTS);
    tr_status status = tensors && path ? TR_OK : TR_ENOMEM;
    for (int64_t i = 0; status == TR_OK && i < writing->count; i++) {
        const struct tensor *from = &writing->tensor[i];
        tensors[i] = (struct tr_stored_tensor){
            from->name, TR_DTYPE_F32, 2, {from->shape[0], from->shape[1]}, from->values};
    }
    if (status == TR_OK) status = tr_safetensors_replace(NULL, path, tensors, writing->count, metadata, 1);
    tr_free(path);
    tr_free(tensors);
    return status;
}

static tr_status write_config(const struct writing *writing, const char *directory)
{
    const struct tr_adapters *adapters = &writing->what->job->adapters;
    struct tr_json_writer json;
    char *text, *path = tr_path_join(directory, PEFT_CONFIG);
    if (!path) return TR_ENOMEM;
    tr_json_begin(&json, true);
    tr_json_text(&json, "base_model_name_or_path", adapters->base ? adapters->base : "");
    tr_json_text(&json, "bias", "none");
    tr_json_bool(&json, "fan_in_fan_out", writing->gpt2);
    tr_json_bool(&json, "inference_mode", true);
    tr_json_float(&json, "lora_alpha", adapters->alpha);
    tr_json_float(&json, "lora_dropout", adapters->dropout);
    tr_json_text(&json, "peft_type", "LORA");
    tr_json_integer(&json, "r", adapters->rank);
    tr_json_open_array(&json, "target_modules");
    for (int64_t i = 0; i < writing->modules; i++) tr_json_text(&json, NULL, writing->module[i].name);
    tr_json_close_array(&json);
    tr_json_text(&json, "task_type", "CAUSAL_LM");
    tr_status status = tr_json_finish(&json, &text);
    if (status == TR_OK) {
        status = tr_file_write_atomic(NULL, path, text, strlen(text));
        tr_free(text);
    }
    tr_free(path);
    return status;
}

/* The configuration is written last: without it the directory is not one of PEFT. */
tr_status tr_export_peft(const struct tr_export *what, const char *path)
{
    struct writing writing = {.what = what};
    tr_status status = collect(&writing);
    if (status == TR_OK && !tr_file_is_directory(path)) status = tr_file_make_directory(NULL, path);
    if (status == TR_OK) status = write_weights(&writing, path);
    if (status == TR_OK) status = write_config(&writing, path);
    for (int64_t i = 0; i < writing.count; i++) tr_free(writing.tensor[i].values);
    tr_free(writing.tensor);
    tr_free(writing.module);
    return status;
}
