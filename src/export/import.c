/* Import of parameters from a safetensors file: a trainer is made as for training, and given the numbers of
 * the file in place of the initial ones. So the checkpoint is one that training could have written.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/log.h"
#include "base/sized.h"
#include "export/layout.h"
#include "export/rename.h"
#include "train/setup/clear.h"
#include "train/observe/journal.h"
#include "train/loop/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A file that is being matched with a network. */
struct import {
    const struct tr_import_settings *settings;
    const struct tr_model *model;
    tr_safetensors *file;
    struct tr_layout_list list;
    const struct tr_safetensors_entry **entry; /* [list.count] of the file, NULL where one may be missing */
    bool *transposed;                          /* [list.count] rows and columns are exchanged there */
    struct tr_text others;                     /* partial: tensors that keep their initial values */
    int other_count;
};

/* ---- names ---- */

/* Tensors, and layers that may have none: "relu1.". */
static tr_status check_renames(const struct import *import)
{
    const struct tr_import_settings *settings = import->settings;
    const struct tr_model *model = import->model;
    const int tensors = import->list.count, count = tensors + model->layer_count;
    char(*layer)[TR_NAME_SIZE + 1] = tr_alloc((size_t)model->layer_count, sizeof *layer);
    const char **names = tr_alloc((size_t)count, sizeof *names);
    tr_status status = layer && names ? TR_OK : TR_ENOMEM;
    for (int i = 0; i < count && status == TR_OK; i++) {
        names[i] = i < tensors ? import->list.tensor[i].name : layer[i - tensors];
        if (i >= tensors) snprintf(layer[i - tensors], sizeof *layer, "%s.", model->layers[i - tensors].name);
    }
    if (status == TR_OK) status = tr_rename_check(settings->rename, settings->rename_count, names, count);
    tr_free(names);
    tr_free(layer);
    return status;
}

/* A tensor as the file has it where rows and columns are exchanged there; what is no matrix stays. */
static struct tr_stored_tensor exchanged(struct tr_stored_tensor tensor, bool transposed)
{
    if (!transposed || tensor.rank != 2) return tensor;
    const int64_t rows = tensor.shape[0];
    tensor.shape[0] = tensor.shape[1];
    tensor.shape[1] = rows;
    return tensor;
}

/* A tensor of the file, with or without the prefix; NULL where there is none. */
static tr_status find_entry(const struct import *import, const char *name,
                            const struct tr_safetensors_entry **out)
{
    const char *prefix = import->settings->prefix;
    *out = NULL;
    if (prefix) {
        char *full = tr_format("%s%s", prefix, name);
        if (!full) return TR_ENOMEM;
        *out = tr_safetensors_find(import->file, full);
        tr_free(full);
    }
    if (!*out) *out = tr_safetensors_find(import->file, name);
    return TR_OK;
}

/* The name of a tensor of the file as renames have it. */
static const char *without_prefix(const struct import *import, const char *name)
{
    const char *prefix = import->settings->prefix;
    const size_t length = prefix ? strlen(prefix) : 0;
    return length > 0 && strncmp(name, prefix, length) == 0 ? name + length : name;
}

/* ---- matching ---- */

/* "; it has "transformer.x": set `prefix` to transformer.", where something stands in front of the name. */
static bool hint_prefix(const struct import *import, const char *name, char *text, size_t size)
{
    const size_t length = strlen(name);
    for (int64_t i = 0; i < tr_safetensors_count(import->file); i++) {
        const char *theirs = tr_safetensors_at(import->file, i)->tensor.name;
        const size_t all = strlen(theirs);
        if (all <= length + 1 || all > 120 || theirs[all - length - 1] != '.' ||
            strcmp(theirs + all - length, name) != 0)
            continue;
        snprintf(text, size, "; it has \"%s\": give `prefix` %.*s", theirs, (int)(all - length), theirs);
        return true;
    }
    return false;
}

/* "; it has "x", F32[3,4]", the nearest name that the file has, or nothing. */
static void hint(const struct import *import, const char *name, char *text, size_t size)
{
    int64_t count = tr_safetensors_count(import->file);
    const char **names = tr_alloc((size_t)count, sizeof *names);
    text[0] = '\0';
    if (hint_prefix(import, name, text, size) || !names || count > INT32_MAX) {
        tr_free(names);
        return;
    }
    for (int64_t i = 0; i < count; i++) names[i] = tr_safetensors_at(import->file, i)->tensor.name;
    const char *nearest = tr_text_nearest(name, names, (int32_t)count);
    if (nearest) {
        char shape[TR_STORED_TEXT];
        snprintf(text, size, "; it has \"%.120s\", %s", nearest,
                 tr_stored_describe(&tr_safetensors_find(import->file, nearest)->tensor, shape));
    }
    tr_free(names);
}

static tr_status find_tensor(struct import *import, const struct tr_layout_tensor *tensor,
                             const struct tr_safetensors_entry **entry, bool *transposed)
{
    const struct tr_import_settings *settings = import->settings;
    const char *path = settings->file;
    char want[TR_STORED_TEXT], have[TR_STORED_TEXT], nearest[512];
    char *name = tr_rename_find(settings->rename, settings->rename_count, tensor->name, transposed);
    const struct tr_stored_tensor wanted = exchanged(tr_layout_stored(tensor, NULL), *transposed);
    tr_status status = TR_OK;
    if (!name) return TR_ENOMEM;
    status = find_entry(import, name, entry);
    if (status != TR_OK) {
        tr_free(name);
        return status;
    }
    if (import->settings->partial && tensor->role != TR_LAYOUT_STEPS &&
        !(*entry && tr_stored_alike(&(*entry)->tensor, &wanted))) {
        tr_text_addf(&import->others, "%s%s %s", import->other_count++ ? ", " : "", name,
                     tr_stored_describe(&wanted, want));
        if (*entry) tr_text_addf(&import->others, " (there %s)", tr_stored_describe(&(*entry)->tensor, have));
        *entry = NULL;
    } else if (*entry && !tr_stored_alike(&(*entry)->tensor, &wanted)) {
        status = tr_fail(TR_EMISMATCH, "\"%s\": tensor \"%s\" is %s, the network wants %s", path, name,
                         tr_stored_describe(&(*entry)->tensor, have), tr_stored_describe(&wanted, want));
    } else if (!*entry && tensor->role != TR_LAYOUT_STEPS) {
        hint(import, name, nearest, sizeof nearest);
        status = tr_fail(
            TR_EMISMATCH,
            "\"%s\" has no tensor \"%s\", of which the network wants %s%s; name layers as the file does, "
            "or tell its names by `rename`",
            path, name, tr_stored_describe(&wanted, want), nearest);
    }
    tr_free(name);
    return status;
}

static tr_status refuse_surplus(const struct import *import)
{
    for (int64_t e = 0; e < tr_safetensors_count(import->file); e++) {
        const struct tr_safetensors_entry *entry = tr_safetensors_at(import->file, e);
        int i = 0;
        while (i < import->list.count && import->entry[i] != entry) i++;
        if (i < import->list.count) continue;
        if (tr_rename_passes(import->settings->rename, import->settings->rename_count,
                             without_prefix(import, entry->tensor.name)))
            continue;
        char have[TR_STORED_TEXT];
        return tr_fail(
            TR_EMISMATCH,
            "\"%s\" has a tensor \"%.200s\", %s, for which the network has no place; it is of another "
            "network or layout",
            import->settings->file, entry->tensor.name, tr_stored_describe(&entry->tensor, have));
    }
    return TR_OK;
}

static tr_status layout_of_file(const struct import *import, enum tr_layout *layout)
{
    const char *named = tr_safetensors_metadata(import->file, TR_LAYOUT_KEY);
    *layout = import->settings->layout;
    if (*layout != TR_LAYOUT_AUTO) return TR_OK;
    *layout = TR_LAYOUT_TORCH;
    if (!named || strcmp(named, tr_layout_name(TR_LAYOUT_TORCH)) == 0) return TR_OK;
    *layout = TR_LAYOUT_TRIREME;
    if (strcmp(named, tr_layout_name(TR_LAYOUT_TRIREME)) == 0) return TR_OK;
    return tr_fail(TR_EUNSUPPORTED, "\"%s\": its header says layout \"%.60s\"; known are torch and trireme",
                   import->settings->file, named);
}

/* Of a partial import: how much of the network the file has. */
static tr_status tell_others(const struct import *import)
{
    const char *path = import->settings->file, *others = import->others.bytes;
    int taken = 0;
    if (import->others.failed) return TR_ENOMEM;
    for (int i = 0; i < import->list.count; i++) taken += import->entry[i] != NULL;
    if (taken == 0)
        return tr_fail(
            TR_EMISMATCH,
            "\"%s\" has nothing that the network could take, which has %s; tell the names of layers by "
            "`rename`",
            path, others ? others : "no parameters");
    if (others) tr_log_line(TR_LOG_WARNING, "not in \"%s\", so as the model file says: %s", path, others);
    return TR_OK;
}

/* Finds everything before anything is read. */
static tr_status match(struct import *import)
{
    enum tr_layout layout;
    TR_TRY(layout_of_file(import, &layout));
    TR_TRY(tr_layout_list_make(import->model, layout, &import->list));
    TR_TRY(check_renames(import));
    import->entry = tr_alloc_zero((size_t)import->list.count, sizeof *import->entry);
    import->transposed = tr_alloc_zero((size_t)import->list.count, sizeof *import->transposed);
    if (!import->entry || !import->transposed) return TR_ENOMEM;
    for (int i = 0; i < import->list.count; i++)
        TR_TRY(find_tensor(import, &import->list.tensor[i], &import->entry[i], &import->transposed[i]));
    return import->settings->partial ? tell_others(import) : refuse_surplus(import);
}

/* ---- reading ---- */

/* A checkpoint refuses what is not finite; so does this, which knows what the file calls it. */
static tr_status check_finite(const struct import *import, const struct tr_safetensors_entry *entry,
                              const float *values)
{
    int64_t count = (int64_t)(entry->bytes / sizeof *values);
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return tr_fail(TR_ENONFINITE, "\"%s\": tensor \"%.200s\" holds %g at element %" PRId64,
                           import->settings->file, entry->tensor.name, (double)values[i], i);
    return TR_OK;
}

/* Rows and columns of a matrix [rows][columns] exchanged, from `values` to `other`. */
static void exchange(int64_t rows, int64_t columns, const float *values, float *other)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++) other[k * rows + i] = values[i * columns + k];
}

/* The numbers of a tensor in the order of the layout: in `values`, or in `other`. NULL after a failure. */
static const float *read_tensor(struct import *import, int i, float *values, float *other, tr_status *status)
{
    const struct tr_safetensors_entry *entry = import->entry[i];
    const bool matrix = entry->tensor.rank == 2;
    *status = tr_safetensors_read(import->file, entry, values, NULL);
    if (*status == TR_OK) *status = check_finite(import, entry, values);
    if (*status != TR_OK) return NULL;
    if (!import->transposed[i] || !matrix) return values;
    exchange(entry->tensor.shape[0], entry->tensor.shape[1], values, other);
    return other;
}

/* Fills an arena with the numbers of the file. */
static tr_status read_values(struct import *import, float *arena)
{
    int64_t most = 0;
    for (int i = 0; i < import->model->parameter_count; i++)
        if (import->model->parameters[i].count > most) most = import->model->parameters[i].count;
    float *values = tr_alloc(2 * (size_t)most, sizeof *values);
    if (!values) return TR_ENOMEM;
    tr_status status = TR_OK;
    for (int i = 0; i < import->list.count && status == TR_OK; i++) {
        const struct tr_layout_tensor *tensor = &import->list.tensor[i];
        if (tensor->role == TR_LAYOUT_STEPS || !import->entry[i]) continue;
        const float *ordered = read_tensor(import, i, values, values + most, &status);
        if (ordered) tr_layout_unpack(tensor, import->model, ordered, arena);
    }
    tr_free(values);
    return status;
}

static tr_status load(struct import *import, tr_trainer *trainer)
{
    TR_TRY(match(import));
    float *arena = tr_alloc_zero((size_t)import->model->arena_floats + 1, sizeof *arena);
    if (!arena) return TR_ENOMEM;
    tr_status status = TR_OK;
    if (import->settings->partial)
        status = tr_variables_store(trainer_variables(trainer), TR_ARENA_PARAMETERS, arena);
    if (status == TR_OK) status = read_values(import, arena);
    if (status == TR_OK) status = trainer_load_parameters(trainer, arena);
    tr_free(arena);
    return status;
}

/* Whether the directory may have what an earlier run left there. */
static tr_status check_settings(const struct tr_import_settings *settings)
{
    int64_t step;
    if (!settings->file || !settings->model || !settings->out)
        return tr_fail(TR_EINVAL, "an import needs a file, a model file and a directory for the checkpoint");
    TR_TRY(tr_checkpoint_latest(settings->out, &step));
    if (step < 0) return TR_OK;
    if (settings->overwrite) return TR_OK;
    return tr_fail(TR_EINVAL,
                   "%s has checkpoints already, up to step %" PRId64
                   "; choose another directory by `out`, or let `overwrite` remove them",
                   settings->out, step);
}

/* What an earlier run left, its journal included, of which this is no part. */
static tr_status clear(const char *directory)
{
    char *journal = tr_path_join(directory, TR_JOURNAL_FILE);
    tr_status status = journal ? tr_run_clear(directory) : TR_ENOMEM;
    if (status == TR_OK) status = tr_file_remove(NULL, journal);
    tr_free(journal);
    return status;
}

/* The directory is made last, so that a refusal leaves nothing behind. */
static tr_status save(const struct tr_import_settings *settings, tr_trainer *trainer, char **path)
{
    TR_TRY(trainer_set_directory(trainer, settings->out));
    if (settings->overwrite) TR_TRY(clear(settings->out));
    return tr_trainer_save(trainer, path);
}

tr_status tr_import(const struct tr_import_settings *given, char **path)
{
    static const struct tr_import_settings defaults = TR_IMPORT_SETTINGS_INIT;
    struct tr_import_settings full, *settings = &full;
    struct import import = {.settings = settings};
    struct tr_train_settings train = TR_TRAIN_SETTINGS_INIT;
    tr_trainer *trainer = NULL;
    tr_status status;
    if (path) *path = NULL;
    TR_TRY(tr_sized_take(given, &defaults, sizeof defaults, "TR_IMPORT_SETTINGS_INIT", settings));
    TR_TRY(check_settings(settings));
    train.model = settings->model;
    train.set = settings->set;
    train.set_count = settings->set_count;
    TR_TRY(tr_safetensors_open(settings->file, &import.file));
    TR_TRY_GOTO(tr_trainer_create(&train, &trainer), out);
    import.model = trainer_job(trainer)->model;
    TR_TRY_GOTO(load(&import, trainer), out);
    status = save(settings, trainer, path);
out:
    tr_trainer_destroy(&trainer);
    tr_free(import.entry);
    tr_free(import.transposed);
    tr_text_release(&import.others);
    tr_layout_list_free(&import.list);
    tr_safetensors_close(&import.file);
    return status;
}
