/* Import of parameters from a safetensors file: a trainer is made as for training, and given the numbers
 * of the file in place of the initial ones. So the checkpoint could have come from training.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/sized.h"
#include "export/adapters/peft.h"
#include "export/hub/hub.h"
#include "export/matching.h"
#include "train/setup/clear.h"
#include "train/observe/journal.h"
#include "train/loop/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- reading ---- */

/* A checkpoint refuses numbers that are not finite; so does this function, which knows their name in the
   file. */
static tr_status check_finite(const struct tr_matching *import, const struct tr_safetensors_entry *entry,
                              const float *values)
{
    int64_t count = (int64_t)(entry->bytes / sizeof *values);
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return tr_fail(TR_ENONFINITE, "\"%s\": tensor \"%.200s\" holds %g at element %" PRId64,
                           import->name, entry->tensor.name, (double)values[i], i);
    return TR_OK;
}

/* Exchanges rows and columns of a matrix [rows][columns], from `values` to `other`. */
static void exchange(int64_t rows, int64_t columns, const float *values, float *other)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++) other[k * rows + i] = values[i * columns + k];
}

/* The numbers of a tensor in the order of the layout: in `values`, or in `other`. NULL after a failure. */
static const float *read_tensor(struct tr_matching *import, int i, float *values, float *other,
                                tr_status *status)
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
static tr_status read_values(struct tr_matching *import, float *arena)
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

static tr_status load(struct tr_matching *import, tr_trainer *trainer)
{
    TR_TRY(tr_matching_find(import));
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

static bool is_of_hub(const struct tr_import_settings *settings)
{
    return settings->file && tr_hub_is_directory(settings->file);
}

static bool is_of_peft(const struct tr_import_settings *settings)
{
    return settings->file && tr_peft_is_directory(settings->file);
}

static tr_status check_settings(const struct tr_import_settings *settings)
{
    if (!settings->file == !settings->bytes)
        return tr_fail(TR_EINVAL, "%s; an import needs a safetensors file, by its path or in memory",
                       settings->file ? "`file` and `bytes` are given"
                                      : "neither `file` nor `bytes` is given");
    if (!is_of_peft(settings) != !settings->base)
        return tr_fail(TR_EINVAL,
                       settings->base
                           ? "`base` is of adapters of PEFT, and \"%s\" is no directory with an "
                             "adapter_config.json"
                           : "\"%s\" has adapters of PEFT; name the run with the network that they are "
                             "for as `base`, as an import of that network makes it",
                       settings->file ? settings->file : "(memory)");
    if (is_of_hub(settings) || is_of_peft(settings)) {
        if (!settings->model && !settings->model_text) return TR_OK;
        return tr_fail(TR_EINVAL, "\"%s\" makes the model file itself; leave out yours", settings->file);
    }
    if (!settings->model == !settings->model_text)
        return tr_fail(TR_EINVAL, "%s; an import needs a model file, by its path or as text",
                       settings->model ? "`model` and `model_text` are given"
                                       : "neither `model` nor `model_text` is given");
    return TR_OK;
}

/* Whether the directory may hold files of an earlier run. */
static tr_status check_directory(const struct tr_import_settings *settings)
{
    int64_t step;
    if (!settings->out) return tr_fail(TR_EINVAL, "an import needs a directory for the checkpoint");
    TR_TRY(tr_checkpoint_latest(settings->out, &step));
    if (step < 0) return TR_OK;
    if (settings->overwrite) return TR_OK;
    return tr_fail(TR_EINVAL,
                   "%s has checkpoints already, up to step %" PRId64
                   "; choose another directory by `out`, or let `overwrite` remove them",
                   settings->out, step);
}

/* Removes the files of an earlier run, its journal included, which does not belong to this one. */
static tr_status clear(const char *directory)
{
    char *journal = tr_path_join(directory, TR_JOURNAL_FILE);
    tr_status status = journal ? tr_run_clear(directory) : TR_ENOMEM;
    if (status == TR_OK) status = tr_file_remove(NULL, journal);
    tr_free(journal);
    return status;
}

/* The directory is made last, so that a refusal leaves nothing on disk. */
static tr_status save(const struct tr_import_settings *settings, tr_trainer *trainer, char **path)
{
    TR_TRY(trainer_set_directory(trainer, settings->out));
    if (settings->overwrite) TR_TRY(clear(settings->out));
    return tr_trainer_save(trainer, path);
}

/* A trainer of the network with the numbers of the file, which has not written anything; *out is NULL. */
static tr_status take(const struct tr_import_settings *settings, tr_trainer **out)
{
    struct tr_matching import = {.settings = settings, .name = settings->file ? settings->file : "(memory)"};
    struct tr_train_settings train = TR_TRAIN_SETTINGS_INIT;
    train.model = settings->model;
    train.set = settings->set;
    train.set_count = settings->set_count;
    train.model_text = settings->model_text;
    train.model_length = settings->model_length;
    train.model_name = settings->model_name;
    train.directory = settings->directory;
    train.data = settings->data;
    train.data_count = settings->data_count;
    TR_TRY(settings->file ? tr_safetensors_open(settings->file, &import.file)
                          : tr_safetensors_open_memory(import.name, settings->bytes, settings->bytes_size,
                                                       &import.file));
    tr_status status = tr_trainer_create(&train, out);
    if (status == TR_OK) import.model = trainer_job(*out)->model;
    if (status == TR_OK) status = load(&import, *out);
    tr_matching_release(&import);
    if (status != TR_OK) tr_trainer_destroy(out);
    return status;
}

static tr_status settings_take(const struct tr_import_settings *given, struct tr_import_settings *out)
{
    static const struct tr_import_settings defaults = TR_IMPORT_SETTINGS_INIT;
    TR_TRY(tr_sized_take(given, &defaults, sizeof defaults, "TR_IMPORT_SETTINGS_INIT", out));
    return check_settings(out);
}

/* The contents of a directory, as settings with a model file and tensors in memory. */
struct hub {
    char *model, *text;
    void *bytes;
};

static void hub_release(struct hub *hub)
{
    tr_free(hub->bytes);
    tr_free(hub->text);
    tr_free(hub->model);
}

/* Without a text to train on, config.json stands for one: it exists, and is a text. */
static tr_status hub_take(struct hub *hub, struct tr_import_settings *settings)
{
    const char *directory = settings->file;
    struct tr_hub_config config;
    TR_TRY(tr_hub_read_config(directory, &config));
    if (tr_hub_is_encoder(&config) && !settings->text)
        return tr_fail(
            TR_EINVAL,
            "\"%s\" is an encoder; give a file of texts, each a line with the numbers of its tokens, a tab "
            "and %s, as `text`; docs/how-to/interop.md shows how to write it",
            directory, config.tags ? "their labels" : "its label");
    char *from = tr_path_absolute(directory);
    if (settings->text)
        hub->text = settings->directory ? tr_strdup(settings->text) : tr_path_absolute(settings->text);
    else if (from)
        hub->text = tr_path_join(from, "config.json");
    if (!hub->text || !from) {
        tr_free(from);
        return TR_ENOMEM;
    }
    tr_status status =
        tr_hub_model(&config, tr_path_name(from), hub->text, from, settings->text ? 128 : 16, &hub->model);
    tr_free(from);
    if (status == TR_OK)
        status = tr_hub_weights(&config, directory, settings->partial, &hub->bytes, &settings->bytes_size);
    settings->bytes = hub->bytes;
    settings->model_text = hub->model;
    settings->model_name = "model.yaml";
    settings->layout = TR_LAYOUT_TORCH;
    settings->file = NULL;
    return status;
}

/* The same for a directory of PEFT. */
static tr_status peft_take(struct hub *hub, struct tr_import_settings *settings)
{
    TR_TRY(tr_peft_read(settings->file, settings->base, &hub->model, &hub->bytes, &settings->bytes_size));
    settings->bytes = hub->bytes;
    settings->model_text = hub->model;
    settings->model_name = "model.yaml";
    settings->layout = TR_LAYOUT_TRIREME;
    settings->file = NULL;
    return TR_OK;
}

static tr_status directory_take(struct hub *hub, struct tr_import_settings *settings)
{
    if (is_of_peft(settings)) return peft_take(hub, settings);
    return is_of_hub(settings) ? hub_take(hub, settings) : TR_OK;
}

/* The model file beside the checkpoint. */
static tr_status hub_save(const struct hub *hub, const char *out)
{
    char *path = hub->model ? tr_path_join(out, "model.yaml") : NULL;
    if (!hub->model) return TR_OK;
    tr_status status = path ? tr_file_write_atomic(NULL, path, hub->model, strlen(hub->model)) : TR_ENOMEM;
    tr_free(path);
    return status;
}

tr_status tr_import(const struct tr_import_settings *given, char **path)
{
    struct tr_import_settings settings;
    struct hub hub = {0};
    tr_trainer *trainer = NULL;
    if (path) *path = NULL;
    TR_TRY(settings_take(given, &settings));
    TR_TRY(check_directory(&settings));
    tr_status status = directory_take(&hub, &settings);
    if (status == TR_OK) status = take(&settings, &trainer);
    if (status == TR_OK) status = save(&settings, trainer, path);
    if (status == TR_OK) status = hub_save(&hub, settings.out);
    tr_trainer_destroy(&trainer);
    hub_release(&hub);
    return status;
}

tr_status tr_import_state(const struct tr_import_settings *given, void **bytes, size_t *size)
{
    struct tr_import_settings settings;
    struct hub hub = {0};
    tr_trainer *trainer = NULL;
    *bytes = NULL;
    *size = 0;
    TR_TRY(settings_take(given, &settings));
    tr_status status = directory_take(&hub, &settings);
    if (status == TR_OK) status = take(&settings, &trainer);
    if (status == TR_OK) status = tr_trainer_save_state(trainer, bytes, size);
    tr_trainer_destroy(&trainer);
    hub_release(&hub);
    return status;
}
