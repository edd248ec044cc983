/* Export of networks to other programs, and import from them.
 *
 *     struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
 *     settings.checkpoint = "runs/mnist-cnn";
 *     settings.layout = TR_LAYOUT_TORCH;
 *     tr_exporter *exporter = NULL;
 *     tr_status status = tr_exporter_create(&settings, &exporter);
 *     if (status == TR_OK) status = tr_exporter_write(exporter, "safetensors", "mnist-cnn.safetensors");
 *     tr_exporter_destroy(&exporter);
 *
 * An exporter is used by one thread at a time.
 */
#ifndef TRIREME_EXPORT_H
#define TRIREME_EXPORT_H

#include "trireme/data.h"
#include "trireme/sized.h"
#include "trireme/state.h"
#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names and shapes of tensors in files. */
enum tr_layout {
    TR_LAYOUT_TRIREME, /* as in a checkpoint: images are height, width, channels; dense weights [in, out] */
    TR_LAYOUT_TORCH,   /* as for PyTorch's load_state_dict(): channels first, dense weights [out, in] */
    TR_LAYOUT_AUTO     /* for reading a file: as its header states, TR_LAYOUT_TORCH if it states nothing */
};

typedef struct tr_exporter tr_exporter;

/* The network to export, and the format. Initialize with TR_EXPORT_SETTINGS_INIT; strings are borrowed for
   the call. */
struct tr_export_settings {
    size_t size;               /* sizeof(struct tr_export_settings) */
    const char *checkpoint;    /* a checkpoint, or a directory of checkpoints of which the newest good one is
                                  taken */
    bool use_average;          /* take the moving averages if the checkpoint has them, as prediction does */
    enum tr_layout layout;     /* for formats that hold only tensors */
    const char *name;          /* of the output, if the format has one; NULL: the job's */
    bool best;                 /* from the directory of a run, take the checkpoint of its best evaluation */
    struct tr_run_state state; /* a checkpoint in memory, instead of `checkpoint` */
    bool merge;                /* merge adapters into the weights beside them, so that the network has none */
    bool half; /* numbers of 16 bits in the formats "hub" and "gguf"; vectors of the latter keep 32 */
};
#ifdef __cplusplus
inline tr_export_settings tr_export_settings_init()
{
    tr_export_settings value = tr_sized<tr_export_settings>();
    value.use_average = true;
    value.layout = TR_LAYOUT_TRIREME;
    return value;
}
#define TR_EXPORT_SETTINGS_INIT tr_export_settings_init()
#else
#define TR_EXPORT_SETTINGS_INIT                                                                              \
    {                                                                                                        \
        .size = sizeof(struct tr_export_settings), .use_average = true, .layout = TR_LAYOUT_TRIREME          \
    }
#endif

/* Reads the checkpoint. Strings of the settings are borrowed for the call. Returned, destroy with
   tr_exporter_destroy(). */
TR_API tr_status tr_exporter_create(const struct tr_export_settings *settings, tr_exporter **out);
/* Accepts NULL, nulls the handle. */
TR_API void tr_exporter_destroy(tr_exporter **exporter);

/* Newer checkpoints that were skipped because they are damaged, one per line; "" for none. Borrowed until
   the exporter is destroyed. */
TR_API const char *tr_exporter_skipped(const tr_exporter *exporter);

/* Writes the file `path` in a format that tr_export_format_at() names; a failure leaves no file, or the
   old one. "hub" writes a directory, which must be empty, missing, or contain only an earlier export;
   after a failure it has no config.json. TR_ENOTFOUND for an unknown format, TR_EUNSUPPORTED for a network
   that the format cannot hold, with the reason in the message, TR_EIO. */
TR_API tr_status tr_exporter_write(tr_exporter *exporter, const char *format, const char *path);

/* Format number `index` of tr_exporter_write(), NULL after the last. Static storage. */
struct tr_export_format {
    const char *name; /* "safetensors" */
    const char *help; /* half a sentence */
};
TR_API const struct tr_export_format *tr_export_format_at(int index);

/* ---- in ---- */

/* The weights to import, and the network for them. Initialize with TR_IMPORT_SETTINGS_INIT; strings are
 * borrowed for the call.
 */
struct tr_import_settings {
    size_t size;            /* sizeof(struct tr_import_settings) */
    const char *file;       /* a safetensors file; or a directory of Hugging Face with config.json,
                               model.safetensors and a tokenizer of GPT-2, Llama, Mistral or Qwen2, or an
                               encoder like BERT (docs/how-to/interop.md). The directory also makes the model
                               file: `model` is NULL then, and `model.yaml` is written to `out` */
    const char *model;      /* the model file of the network; its training data are opened, too */
    const char *const *set; /* [set_count] overrides, "optimizer.rate=1e-3" */
    int set_count;          /* of `set` */
    const char *out;        /* directory of checkpoints; without `overwrite` it must not have any */
    enum tr_layout layout;  /* of the file */
    const char *const
        *rename;        /* [rename_count] "features.0=conv1": the file's name of a layer, = the layer; or of a
                           tensor, "h.0.attn.c_attn.weight^T=attention1.in_proj_weight", where ^T marks rows
                           and columns exchanged in the file. A * on both sides stands for a number; with
                           nothing on the right, the tensor of the file is skipped */
    int rename_count;   /* of `rename` */
    bool partial;       /* tensors that the file lacks, or has in another shape, are initialized by the model
                           file, and additional tensors in the file are skipped; the log names both. At
                           least one must match */
    const char *prefix; /* an optional beginning of names in the file, left out before they are compared:
                           "transformer."; NULL: none */
    bool overwrite;    /* checkpoints in `out`, and files for TensorBoard there, are removed once the file has
                          been read and fits */
    const void *bytes; /* [bytes_size] of a safetensors file in memory, instead of `file` */
    size_t bytes_size; /* of `bytes` */
    const char *model_text; /* the model file itself, instead of `model`; this and the next five as in
                               struct tr_train_settings */
    size_t model_length;    /* its bytes; 0: up to its NUL */
    const char *model_name; /* its name in messages; NULL: "model" */
    const char *directory;  /* start of relative paths in it; NULL: the current directory */
    const struct tr_named_source *data; /* [data_count] from memory */
    int data_count;                     /* of `data` */
    const char *text;                   /* with a directory, the file of text to train on; NULL: none */
    const char *base; /* with a directory of PEFT (adapter_config.json), the run or checkpoint with the
                         network of its adapters; else NULL */
};
#ifdef __cplusplus
inline tr_import_settings tr_import_settings_init()
{
    tr_import_settings value = tr_sized<tr_import_settings>();
    value.layout = TR_LAYOUT_AUTO;
    return value;
}
#define TR_IMPORT_SETTINGS_INIT tr_import_settings_init()
#else
#define TR_IMPORT_SETTINGS_INIT                                                                              \
    {                                                                                                        \
        .size = sizeof(struct tr_import_settings), .layout = TR_LAYOUT_AUTO                                  \
    }
#endif

/* Makes a checkpoint of step 0 with the parameters of the file, from which training begins. Strings of the
   settings are borrowed for the call. *path (may be NULL) becomes its path, freed with tr_text_free() of
   trireme/data.h. TR_EMISMATCH names a tensor that is missing, too many, or of another shape, with both
   shapes; TR_EFORMAT: not a safetensors file; otherwise as tr_trainer_create() and tr_trainer_save(). */
TR_API tr_status tr_import(const struct tr_import_settings *settings, char **path);
/* The same checkpoint into memory: *bytes [*size] is returned, free with tr_state_free(). `out` and
   `overwrite` of the settings are ignored. */
TR_API tr_status tr_import_state(const struct tr_import_settings *settings, void **bytes, size_t *size);

#ifdef __cplusplus
}
#endif
#endif
