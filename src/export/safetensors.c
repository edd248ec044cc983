/* Export to a safetensors file: the tensors in either layout, and in its header how to build the network. */
#include "base/alloc.h"
#include "base/options/config.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "export/formats.h"
#include "export/layout.h"

#include <inttypes.h>
#include <stdio.h>

static tr_status write_file(const struct tr_export *what, const char *path, const char *layers,
                            const struct tr_layout_packed *packed)
{
    char step[TR_TEXT_NUMBER_SIZE], shape[TR_SHAPE_TEXT];
    snprintf(step, sizeof step, "%" PRId64, what->facts->step);
    const struct tr_stored_metadata metadata[] = {
        /* Libraries on top of PyTorch look for these two letters. */
        {"format", what->layout == TR_LAYOUT_TORCH ? "pt" : "trireme"},
        {TR_LAYOUT_KEY, tr_layout_name(what->layout)},
        {"name", what->name},
        {"program", what->facts->program},
        {"step", step},
        {"numbers", what->averages ? "moving averages" : "parameters"},
        {"input", tr_shape_text(&what->job->model->input, shape)},
        {"layers", layers},
    };
    return tr_safetensors_replace(NULL, path, packed->tensor, packed->list.count, metadata,
                                  sizeof metadata / sizeof metadata[0]);
}

tr_status tr_export_safetensors(const struct tr_export *what, const char *path)
{
    struct tr_layout_packed packed;
    struct tr_text text = TR_TEXT_INIT;
    char *layers;
    tr_config_json(what->job->file.layers, &text);
    TR_TRY(tr_text_finish(&text, &layers));
    tr_status status =
        tr_layout_pack(what->job->model, what->layout, what->parameters, what->facts->step, &packed);
    if (status == TR_OK) status = write_file(what, path, layers, &packed);
    tr_layout_packed_free(&packed);
    tr_free(layers);
    return status;
}
