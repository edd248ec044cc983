/* A checkpoint as one stream of bytes: a tar archive of the files of its directory, which `tar xf` can
 * unpack.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/hash.h"
#include "checkpoint/content.h"
#include "checkpoint/names.h"
#include "io/tar.h"

#include <inttypes.h>
#include <string.h>

struct pack {
    const struct tr_stored_sink *sink;
    char *directory;
};

static tr_status put(const struct pack *pack, const void *data, size_t size)
{
    return pack->sink->write(pack->sink->user, data, size);
}

static tr_status begin(const struct pack *pack, const char *name, uint64_t bytes)
{
    uint8_t header[TR_TAR_BLOCK];
    TR_TRY(tr_tar_header(pack->directory, name, bytes, header));
    return put(pack, header, sizeof header);
}

static tr_status end(const struct pack *pack, uint64_t bytes)
{
    static const uint8_t zeros[TR_TAR_BLOCK];
    const size_t padding = tr_tar_padding(bytes);
    return padding ? put(pack, zeros, padding) : TR_OK;
}

static tr_status put_file(const struct pack *pack, const char *name, const void *data, size_t size)
{
    TR_TRY(begin(pack, name, size));
    if (size > 0) TR_TRY(put(pack, data, size));
    return end(pack, size);
}

static tr_status put_group(const struct pack *pack, const struct tr_checkpoint_content *content, int group,
                           struct tr_manifest_sums *sums)
{
    const struct tr_stored_tensor *tensors = content->group[group].tensors;
    const int64_t count = content->group[group].count;
    struct tr_content_checker checker;
    const struct tr_stored_giver giver = tr_content_giver(content, group, &checker);
    uint64_t bytes;
    TR_TRY(tr_safetensors_size(tensors, count, &tr_content_note, 1, &bytes));
    TR_TRY(begin(pack, tr_checkpoint_group_file[group], bytes));
    TR_TRY(tr_safetensors_give(pack->sink, tensors, count, &giver, &tr_content_note, 1,
                               sums->tensor_crc[group], &sums->summary[group]));
    return end(pack, bytes);
}

static tr_status put_content(const struct pack *pack, const struct tr_checkpoint_content *content,
                             struct tr_manifest_sums *sums)
{
    static const uint8_t zeros[2 * TR_TAR_BLOCK];
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) TR_TRY(put_group(pack, content, g, sums));
    for (int64_t i = 0; i < content->file_count; i++) {
        const struct tr_checkpoint_file *file = &content->files[i];
        TR_TRY(put_file(pack, file->name, file->data, file->size));
        sums->file_crc[i] = tr_crc32c(0, file->data, file->size);
    }
    char *manifest;
    TR_TRY(tr_manifest_write(content, sums, &manifest));
    tr_status status = put_file(pack, TR_MANIFEST_NAME, manifest, strlen(manifest));
    tr_free(manifest);
    return status == TR_OK ? put(pack, zeros, sizeof zeros) : status;
}

tr_status tr_checkpoint_pack(const struct tr_stored_sink *sink, const struct tr_checkpoint_content *content)
{
    struct tr_manifest_sums sums;
    void *memory = NULL;
    struct pack pack = {.sink = sink};
    tr_status status = tr_content_check(content);
    if (status == TR_OK) status = tr_content_make_sums(content, &sums, &memory);
    if (status == TR_OK) {
        pack.directory = tr_checkpoint_make_path("", (struct tr_checkpoint_name){content->facts.step, 1}, "");
        status = pack.directory ? put_content(&pack, content, &sums) : TR_ENOMEM;
    }
    tr_free(pack.directory);
    tr_free(memory);
    if (status == TR_OK) return TR_OK;
    return tr_fail_in(status, "checkpoint of step %" PRId64 " not saved", content->facts.step);
}
