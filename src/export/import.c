/* Import of parameters from a safetensors file: a trainer is made as for training, and given the numbers of
 * the file in place of the initial ones. So the checkpoint is one that training could have written.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/file.h"
#include "export/layout.h"
#include "train/trainer_internal.h"

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
};

/* ---- names ---- */

/* The layer on the right of "features.0=conv1". NULL with a message for anything else. */
static const char *renamed_layer(const char *rename)
{
    const char *sign = strrchr(rename, '=');
    if (sign && sign > rename && sign[1]) return sign + 1;
    tr_fail(TR_EINVAL,
            "\"%s\" renames nothing; write the name in the file, =, and the layer: features.0=conv1", rename);
    return NULL;
}

static tr_status check_renames(const struct import *import)
{
    for (int i = 0; i < import->settings->rename_count; i++) {
        const char *name = renamed_layer(import->settings->rename[i]);
        if (!name) return TR_EINVAL;
        int k = 0;
        while (k < import->model->layer_count && strcmp(import->model->layers[k].name, name) != 0) k++;
        if (k == import->model->layer_count)
            return tr_fail(TR_EINVAL,
                           "there is no layer \"%s\" for \"%s\"; `trireme inspect` lists the layers", name,
                           import->settings->rename[i]);
    }
    return TR_OK;
}

/* What the file calls a tensor. NULL when memory fails. */
static char *name_in_file(const struct import *import, const struct tr_layout_tensor *tensor)
{
    const char *point = strchr(tensor->name, '.');
    size_t length = (size_t)(point - tensor->name);
    for (int i = 0; i < import->settings->rename_count; i++) {
        const char *rename = import->settings->rename[i], *layer = renamed_layer(rename);
        if (strlen(layer) == length && strncmp(layer, tensor->name, length) == 0)
            return tr_format("%.*s%s", (int)(layer - 1 - rename), rename, point);
    }
    return tr_strdup(tensor->name);
}

/* ---- matching ---- */

/* "; it has "x", F32[3,4]", the nearest name that the file has, or nothing. */
static void hint(const struct import *import, const char *name, char *text, size_t size)
{
    int64_t count = tr_safetensors_count(import->file);
    const char **names = tr_alloc((size_t)count, sizeof *names);
    text[0] = '\0';
    if (!names || count > INT32_MAX) {
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

static tr_status find_tensor(const struct import *import, const struct tr_layout_tensor *tensor,
                             const struct tr_safetensors_entry **entry)
{
    const char *path = import->settings->file;
    const struct tr_stored_tensor wanted = tr_layout_stored(tensor, NULL);
    char want[TR_STORED_TEXT], have[TR_STORED_TEXT], nearest[512];
    char *name = name_in_file(import, tensor);
    tr_status status = TR_OK;
    if (!name) return TR_ENOMEM;
    *entry = tr_safetensors_find(import->file, name);
    if (*entry && !tr_stored_alike(&(*entry)->tensor, &wanted)) {
        status = tr_fail(TR_EMISMATCH, "\"%s\": tensor \"%s\" is %s, the network wants %s", path, name,
                         tr_stored_describe(&(*entry)->tensor, have), tr_stored_describe(&wanted, want));
    } else if (!*entry && tensor->role != TR_LAYOUT_STEPS) {
        hint(import, name, nearest, sizeof nearest);
        status = tr_fail(
            TR_EMISMATCH,
            "\"%s\" has no tensor \"%s\", of which the network wants %s%s; name layers as the file does, "
            "or tell its names with --rename",
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
    const char *note = tr_safetensors_note(import->file, TR_LAYOUT_NOTE);
    *layout = import->settings->layout;
    if (*layout != TR_LAYOUT_AUTO) return TR_OK;
    *layout = TR_LAYOUT_TORCH;
    if (!note || strcmp(note, tr_layout_name(TR_LAYOUT_TORCH)) == 0) return TR_OK;
    *layout = TR_LAYOUT_TRIREME;
    if (strcmp(note, tr_layout_name(TR_LAYOUT_TRIREME)) == 0) return TR_OK;
    return tr_fail(TR_EUNSUPPORTED, "\"%s\": its header says layout \"%.60s\"; known are torch and trireme",
                   import->settings->file, note);
}

/* Finds everything before anything is read. */
static tr_status match(struct import *import)
{
    enum tr_layout layout;
    TR_TRY(check_renames(import));
    TR_TRY(layout_of_file(import, &layout));
    TR_TRY(tr_layout_list_make(import->model, layout, &import->list));
    import->entry = tr_alloc_zero((size_t)import->list.count, sizeof *import->entry);
    if (!import->entry) return TR_ENOMEM;
    for (int i = 0; i < import->list.count; i++)
        TR_TRY(find_tensor(import, &import->list.tensor[i], &import->entry[i]));
    return refuse_surplus(import);
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

/* Fills an arena with the numbers of the file. */
static tr_status read_values(struct import *import, float *arena)
{
    int64_t most = 0;
    for (int i = 0; i < import->model->parameter_count; i++)
        if (import->model->parameters[i].count > most) most = import->model->parameters[i].count;
    float *values = tr_alloc((size_t)most, sizeof *values);
    if (!values) return TR_ENOMEM;
    tr_status status = TR_OK;
    for (int i = 0; i < import->list.count && status == TR_OK; i++) {
        const struct tr_layout_tensor *tensor = &import->list.tensor[i];
        if (tensor->role == TR_LAYOUT_STEPS) continue;
        status = tr_safetensors_read(import->file, import->entry[i], values, NULL);
        if (status == TR_OK) status = check_finite(import, import->entry[i], values);
        if (status == TR_OK) tr_layout_unpack(tensor, import->model, values, arena);
    }
    tr_free(values);
    return status;
}

/* Moving averages begin as copies of the parameters. */
static tr_status give(tr_trainer *trainer, const float *arena)
{
    TR_TRY(tr_variables_load(trainer->variables, TR_ARENA_PARAMETERS, arena));
    if (!tr_variables_arena(trainer->variables, TR_ARENA_EMA)) return TR_OK;
    return tr_variables_load(trainer->variables, TR_ARENA_EMA, arena);
}

static tr_status load(struct import *import, tr_trainer *trainer)
{
    TR_TRY(match(import));
    float *arena = tr_alloc_zero((size_t)import->model->arena_floats + 1, sizeof *arena);
    if (!arena) return TR_ENOMEM;
    tr_status status = read_values(import, arena);
    if (status == TR_OK) status = give(trainer, arena);
    tr_free(arena);
    return status;
}

static tr_status check_settings(const struct tr_import_settings *settings)
{
    int64_t step;
    if (settings->size != sizeof *settings)
        return tr_fail(
            TR_EINVAL,
            "settings have %zu bytes, this library expects %zu; begin with TR_IMPORT_SETTINGS_INIT",
            settings->size, sizeof *settings);
    if (!settings->file || !settings->model || !settings->out)
        return tr_fail(TR_EINVAL, "an import needs a file, a model file and a directory for the checkpoint");
    TR_TRY(tr_checkpoint_latest(settings->out, &step));
    if (step < 0) return TR_OK;
    return tr_fail(TR_EINVAL, "%s has checkpoints already, up to step %" PRId64 "; choose another directory",
                   settings->out, step);
}

/* The directory is made last, so that a refusal leaves nothing behind. */
static tr_status save(const struct tr_import_settings *settings, tr_trainer *trainer, char **path)
{
    trainer->out = tr_strdup(settings->out);
    if (!trainer->out) return TR_ENOMEM;
    TR_TRY(tr_file_make_directories(NULL, trainer->out));
    TR_TRY(tr_file_lock(trainer->out, &trainer->lock));
    return trainer_save(trainer, path);
}

tr_status tr_import(const struct tr_import_settings *settings, char **path)
{
    struct import import = {.settings = settings};
    struct tr_train_settings train = TR_TRAIN_SETTINGS_INIT;
    tr_trainer *trainer = NULL;
    tr_status status;
    if (path) *path = NULL;
    TR_TRY(check_settings(settings));
    train.model = settings->model;
    train.set = settings->set;
    train.set_count = settings->set_count;
    TR_TRY(tr_safetensors_open(settings->file, &import.file));
    TR_TRY_GOTO(tr_trainer_create(&train, &trainer), out);
    import.model = trainer->job->model;
    TR_TRY_GOTO(load(&import, trainer), out);
    status = save(settings, trainer, path);
out:
    tr_trainer_destroy(&trainer);
    tr_free(import.entry);
    tr_layout_list_free(&import.list);
    tr_safetensors_close(&import.file);
    return status;
}
