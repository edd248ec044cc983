#include "export/hub/files.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/json.h"

#include <string.h>

#define INDEX_MAX ((uint64_t)1 << 26)

struct tr_hub_files {
    char *path;     /* of the file, or of the index */
    tr_json *index; /* NULL where there is one file */
    const struct tr_json_value *map;
    struct shard {
        const char *name;
        tr_safetensors *file;
    } * shard;
    int64_t count;
};

/* The shard of this name; the count of shards if there is none. */
static int64_t shard_of(const struct tr_hub_files *files, const char *name)
{
    int64_t i = 0;
    while (i < files->count && strcmp(files->shard[i].name, name) != 0) i++;
    return i;
}

static tr_status add_shard(struct tr_hub_files *files, const char *directory, const char *name)
{
    if (!*name || strchr(name, '/') || strcmp(name, "..") == 0)
        return tr_fail(TR_EFORMAT, "%s: weight_map names \"%.200s\", which is no file of the directory",
                       files->path, name);
    if (!tr_grow(&files->shard, files->count, sizeof *files->shard)) return TR_ENOMEM;
    struct shard *shard = &files->shard[files->count];
    *shard = (struct shard){.name = name};
    char *path = tr_path_join(directory, name);
    const tr_status status = path ? tr_safetensors_open(path, &shard->file) : TR_ENOMEM;
    tr_free(path);
    if (status == TR_OK) files->count++;
    return status;
}

static tr_status open_index(struct tr_hub_files *files, const char *directory)
{
    struct tr_file_content content = {0};
    tr_status status = tr_file_read(files->path, INDEX_MAX, &content);
    if (status == TR_OK) status = tr_json_parse(content.data, content.size, files->path, &files->index);
    tr_file_content_free(&content);
    if (status != TR_OK) return status;
    TR_TRY(tr_json_get_object(tr_json_root(files->index), files->path, "weight_map", &files->map));
    for (const struct tr_json_value *value = files->map->first; value; value = value->next) {
        if (value->kind != TR_JSON_TEXT)
            return tr_fail(TR_EFORMAT, "%s: weight_map has %s for \"%.200s\"; it takes the name of a file",
                           files->path, tr_json_kind_name(value->kind), value->key);
        if (shard_of(files, value->text) == files->count) TR_TRY(add_shard(files, directory, value->text));
    }
    return TR_OK;
}

tr_status tr_hub_files_open(const char *directory, struct tr_hub_files **out)
{
    static const char whole[] = "model.safetensors";
    *out = NULL;
    struct tr_hub_files *files = tr_alloc_zero(1, sizeof *files);
    char *index = tr_path_join(directory, "model.safetensors.index.json");
    if (files) files->path = tr_path_join(directory, whole);
    tr_status status = files && files->path && index ? TR_OK : TR_ENOMEM;
    if (status == TR_OK && !tr_file_exists(files->path) && tr_file_exists(index)) {
        tr_free(files->path);
        files->path = index;
        index = NULL;
        status = open_index(files, directory);
    } else if (status == TR_OK) {
        status = add_shard(files, directory, whole);
    }
    tr_free(index);
    if (status != TR_OK)
        tr_hub_files_close(&files);
    else
        *out = files;
    return status;
}

void tr_hub_files_close(struct tr_hub_files **handle)
{
    struct tr_hub_files *files = *handle;
    if (!files) return;
    for (int64_t i = 0; i < files->count; i++) tr_safetensors_close(&files->shard[i].file);
    tr_free(files->shard);
    tr_json_destroy(&files->index);
    tr_free(files->path);
    tr_free(files);
    *handle = NULL;
}

const struct tr_safetensors_entry *tr_hub_files_find(const struct tr_hub_files *files, const char *name,
                                                     tr_safetensors **file)
{
    int64_t i = 0;
    if (files->index) {
        const struct tr_json_value *value = tr_json_find(files->map, name);
        i = value ? shard_of(files, value->text) : files->count;
    }
    if (i == files->count) return NULL;
    *file = files->shard[i].file;
    return tr_safetensors_find(*file, name);
}

const char *tr_hub_files_name(const struct tr_hub_files *files)
{
    return files->path;
}
