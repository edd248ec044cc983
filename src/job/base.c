#include "job/base.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "job/file/input.h"
#include "job/step/variables.h"
#include "job/tensors.h"
#include "nn/base_numbers.h"

#include <string.h>

/* Turns "adapters: lora" into a section, to which keys can be added. */
static tr_status expand(tr_config *root, const char *kind)
{
    char *assignment = tr_format("adapters.kind=%s", kind);
    if (!assignment) return TR_ENOMEM;
    tr_status status = tr_config_put_nothing(root, NULL, "adapters");
    if (status == TR_OK) status = tr_config_set(root, assignment);
    tr_free(assignment);
    return status;
}

tr_status tr_job_choose_base(struct tr_job *job, const struct tr_job_settings *settings)
{
    const tr_config *node = tr_config_get(job->root, "adapters");
    if (!settings->base || !node || tr_config_kind(node) == TR_CONFIG_NULL) return TR_OK;
    if (tr_config_kind(node) == TR_CONFIG_SCALAR) /* "adapters: lora" */
        TR_TRY(expand(job->root, tr_config_text(node)));
    char *absolute = tr_path_absolute(settings->base);
    if (!absolute) return TR_ENOMEM;
    tr_status status = tr_config_put_text(job->root, "adapters", "base", absolute);
    tr_free(absolute);
    return status;
}

/* ---- places of base parameters ---- */

/* The files of a base. */
struct opened {
    struct tr_file_map map[TR_CHECKPOINT_GROUPS];
};

static void close_files(void *user)
{
    struct opened *opened = user;
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) tr_file_unmap(&opened->map[g]);
    tr_free(opened);
}

/* The parameter's moving average, where one is kept, as for `--from`; else the parameter. */
static const struct tr_safetensors_entry *find_entry(const tr_checkpoint *checkpoint,
                                                     const struct tr_parameter *parameter,
                                                     enum tr_checkpoint_group *group)
{
    char name[TR_STATE_NAME];
    tr_state_name(parameter, tr_arena_names[TR_ARENA_EMA], name);
    *group = TR_CHECKPOINT_OPTIMIZER;
    const struct tr_safetensors_entry *entry =
        tr_safetensors_find(tr_checkpoint_tensors(checkpoint, *group), name);
    if (entry) return entry;
    *group = TR_CHECKPOINT_PARAMETERS;
    return tr_safetensors_find(tr_checkpoint_tensors(checkpoint, *group), parameter->name);
}

static tr_status find_parameter(const tr_checkpoint *checkpoint, const struct tr_parameter *parameter,
                                enum tr_checkpoint_group *group, const struct tr_safetensors_entry **out)
{
    const struct tr_stored_tensor wanted = tr_parameter_tensor(parameter, parameter->name, NULL);
    char here[TR_STORED_TEXT], there[TR_STORED_TEXT];
    const char *path = tr_checkpoint_path(checkpoint);
    *out = find_entry(checkpoint, parameter, group);
    if (!*out)
        return tr_fail(TR_EMISMATCH,
                       "the base \"%s\" of the adapters has no \"%s\" %s; if its layer is new, name it in "
                       "adapters.train; give equal layers the same `name`; or merge a base that has "
                       "adapters itself (`merge` of an export)",
                       path, parameter->name, tr_stored_describe(&wanted, here));
    if (tr_stored_alike(&(*out)->tensor, &wanted)) return TR_OK;
    return tr_fail(
        TR_EMISMATCH,
        "\"%s\" is %s in the network and %s in the base \"%s\"; name its layer in adapters.train where "
        "it is new",
        parameter->name, tr_stored_describe(&wanted, here), tr_stored_describe(&(*out)->tensor, there), path);
}

static tr_status open_run(const struct tr_job *job, tr_checkpoint **out)
{
    if (!job->adapters.base)
        return tr_fail(TR_EINVAL, "the network has adapters but no base; name the run with the trained "
                                  "network as adapters.base, or begin the training with it (`from`)");
    char *path = tr_source_path(job->file.directory, job->adapters.base);
    if (!path) return TR_ENOMEM;
    tr_status status = tr_checkpoint_open(path, out);
    tr_free(path);
    return status == TR_OK ? TR_OK : tr_fail_in(status, "adapters.base");
}

static tr_status check_hash(const struct tr_job *job, const tr_checkpoint *checkpoint, const char *hash)
{
    if (!job->adapters.base_hash || strcmp(job->adapters.base_hash, hash) == 0) return TR_OK;
    return tr_fail(
        TR_EMISMATCH,
        "the base of the run has hash %.16s, that of \"%s\" %.16s; give the one that it began with by "
        "adapters.base",
        job->adapters.base_hash, tr_checkpoint_path(checkpoint), hash);
}

/* ---- separate from the arena ---- */

static tr_status map_group(const tr_checkpoint *checkpoint, enum tr_checkpoint_group group,
                           struct opened *opened)
{
    if (opened->map[group].data) return TR_OK;
    return tr_file_map(tr_safetensors_path(tr_checkpoint_tensors(checkpoint, group)), &opened->map[group]);
}

static tr_status find_all(const struct tr_model *model, const tr_checkpoint *checkpoint,
                          struct opened *opened, const float **place)
{
    for (int i = 0; i < model->base_count; i++) {
        const struct tr_safetensors_entry *entry;
        enum tr_checkpoint_group group;
        TR_TRY(find_parameter(checkpoint, &model->base[i], &group, &entry));
        TR_TRY(map_group(checkpoint, group, opened));
        const struct tr_file_map *map = &opened->map[group];
        if (entry->offset > map->size || entry->bytes > map->size - entry->offset ||
            entry->offset % sizeof(float))
            return tr_fail(TR_ECORRUPT, "\"%s\" has changed since it was opened",
                           tr_safetensors_path(tr_checkpoint_tensors(checkpoint, group)));
        place[i] = (const float *)(const void *)(map->data + entry->offset);
    }
    return TR_OK;
}

static tr_status take(struct tr_job *job, const tr_checkpoint *checkpoint)
{
    struct opened *opened = tr_alloc_zero(1, sizeof *opened);
    const float **place = tr_alloc((size_t)job->model->base_count + 1, sizeof *place);
    tr_status status = opened && place ? find_all(job->model, checkpoint, opened, place) : TR_ENOMEM;
    if (status == TR_OK)
        status = tr_model_take_base(job->model, place, close_files, opened);
    else if (opened)
        close_files(opened);
    tr_free(place);
    return status;
}

/* The resolved text names the base by its hash and absolute path. */
static tr_status settle(struct tr_job *job, const tr_checkpoint *checkpoint)
{
    const char *hash = job->model->base_hash;
    TR_TRY(check_hash(job, checkpoint, hash));
    char *absolute = tr_path_absolute(tr_checkpoint_path(checkpoint));
    if (!absolute) return TR_ENOMEM;
    tr_status status = tr_job_resolve_text(job, &job->adapters.base, "adapters", "base", absolute);
    tr_free(absolute);
    if (status != TR_OK || job->adapters.base_hash) return status;
    return tr_job_resolve_text(job, &job->adapters.base_hash, "adapters", "base_hash", hash);
}

tr_status tr_job_open_base(struct tr_job *job)
{
    tr_checkpoint *checkpoint;
    if (job->adapters.rank == 0) return TR_OK;
    TR_TRY(open_run(job, &checkpoint));
    tr_status status = take(job, checkpoint);
    if (status == TR_OK) status = settle(job, checkpoint);
    tr_checkpoint_close(&checkpoint);
    return status;
}

/* ---- in the arena ---- */

static tr_status load_all(const struct tr_job *job, tr_checkpoint *checkpoint, float *arena, tr_sha256 *hash)
{
    const struct tr_model *model = job->model;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        const struct tr_safetensors_entry *entry;
        enum tr_checkpoint_group group;
        if (!parameter->base) continue;
        TR_TRY(find_parameter(checkpoint, parameter, &group, &entry));
        TR_TRY(tr_checkpoint_read(checkpoint, group, entry, arena + parameter->offset));
        TR_TRY(tr_base_hash_add(hash, parameter, arena + parameter->offset));
    }
    return TR_OK;
}

tr_status tr_job_load_base(const struct tr_job *job, float *arena)
{
    tr_checkpoint *checkpoint;
    tr_sha256 *hash;
    char hex[TR_SHA256_TEXT];
    if (!job->whole || job->adapters.rank == 0) return TR_OK;
    TR_TRY(open_run(job, &checkpoint));
    tr_status status = tr_sha256_begin(&hash);
    if (status == TR_OK) {
        status = load_all(job, checkpoint, arena, hash);
        if (status == TR_OK)
            status = tr_sha256_end(&hash, hex);
        else
            tr_sha256_destroy(&hash);
    }
    if (status == TR_OK) status = check_hash(job, checkpoint, hex);
    tr_checkpoint_close(&checkpoint);
    return status;
}
