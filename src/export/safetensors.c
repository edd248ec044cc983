/* Export to a safetensors file: the tensors in either layout, and in its header how to build the network. */
#include "base/alloc.h"
#include "base/config.h"
#include "base/fail.h"
#include "base/text.h"
#include "export/formats.h"
#include "export/layout.h"

#include <inttypes.h>
#include <stdio.h>

static tr_status write_file(const struct tr_export *what, const char *path, const char *layers,
                            const struct tr_stored_tensor *tensors, int64_t count)
{
    char step[TR_TEXT_NUMBER_SIZE], shape[TR_SHAPE_TEXT];
    snprintf(step, sizeof step, "%" PRId64, what->facts->step);
    const bool torch = what->layout == TR_LAYOUT_TORCH;
    const struct tr_stored_note notes[] = {
        /* Libraries on top of PyTorch look for these two letters. */
        {"format", torch ? "pt" : "trireme"},
        {TR_LAYOUT_NOTE, tr_layout_name(what->layout)},
        {"name", what->name},
        {"program", what->facts->program},
        {"step", step},
        {"numbers", what->averages ? "moving averages" : "parameters"},
        {"input", tr_shape_text(&what->job->model->input, shape)},
        {"layers", layers},
    };
    return tr_safetensors_replace(NULL, path, tensors, count, notes, sizeof notes / sizeof notes[0]);
}

tr_status tr_export_safetensors(const struct tr_export *what, const char *path)
{
    struct tr_layout_list list;
    struct tr_stored_tensor *tensors = NULL;
    struct tr_text text = TR_TEXT_INIT;
    char *layers = NULL;
    void *memory = NULL;
    TR_TRY(tr_layout_list_make(what->job->model, what->layout, &list));
    tr_status status = TR_ENOMEM;
    tensors = tr_alloc((size_t)list.count, sizeof *tensors);
    if (!tensors) goto out;
    tr_config_json(what->job->file.layers, &text);
    TR_TRY_GOTO(tr_text_finish(&text, &layers), out);
    TR_TRY_GOTO(
        tr_layout_pack(&list, what->job->model, what->parameters, what->facts->step, tensors, &memory), out);
    status = write_file(what, path, layers, tensors, list.count);
out:
    tr_free(memory);
    tr_free(layers);
    tr_free(tensors);
    tr_layout_list_free(&list);
    return status;
}
