/* Loading: nothing is trusted until its checksum was computed; if a checkpoint is damaged, the previous
   one is used. */
#include "checkpoint/checkpoint.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/numbers/hash.h"
#include "base/text/text.h"
#include "checkpoint/names.h"
#include "checkpoint/manifest.h"
#include "io/tar.h"

#include <inttypes.h>
#include <string.h>

#define MANIFEST_MAX ((uint64_t)64 << 20)

struct tr_checkpoint {
    char *path;
    char *skipped; /* or NULL */
    struct tr_manifest manifest;
    tr_safetensors *group[TR_CHECKPOINT_GROUPS];
    struct tr_file_content *files; /* [manifest.file_count] */
    /* Of a checkpoint in memory; else NULL. */
    const uint8_t *packed;
    size_t packed_size;
    uint8_t *taken; /* the same, where this owns it */
};

/* ---- files, of a directory or in memory ---- */

static tr_status find_member(const tr_checkpoint *checkpoint, const char *name, struct tr_tar_file *out)
{
    size_t at = 0;
    bool there;
    do {
        TR_TRY(tr_tar_next_file(checkpoint->path, checkpoint->packed, checkpoint->packed_size, &at, out,
                                &there));
    } while (there && strcmp(out->name, name) != 0);
    if (there) return TR_OK;
    return tr_fail(TR_ENOTFOUND, "\"%s\" has no %s, as every checkpoint does", checkpoint->path, name);
}

/* Reads a file of the checkpoint, called `path`, of at most `limit` bytes. */
static tr_status read_whole(const tr_checkpoint *checkpoint, const char *path, uint64_t limit,
                            struct tr_file_content *out)
{
    struct tr_tar_file member;
    if (!checkpoint->packed) return tr_file_read(path, limit, out);
    TR_TRY(find_member(checkpoint, tr_path_name(path), &member));
    if (member.size > limit)
        return tr_fail(TR_EFORMAT, "\"%s\": has %zu bytes, at most %" PRIu64 " are expected", path,
                       member.size, limit);
    char *copy = tr_alloc(member.size + 1, 1);
    if (!copy) return TR_ENOMEM;
    memcpy(copy, member.data, member.size);
    copy[member.size] = '\0';
    *out = (struct tr_file_content){copy, member.size};
    return TR_OK;
}

static tr_status open_tensors(const tr_checkpoint *checkpoint, const char *path, tr_safetensors **out)
{
    struct tr_tar_file member;
    if (!checkpoint->packed) return tr_safetensors_open(path, out);
    TR_TRY(find_member(checkpoint, tr_path_name(path), &member));
    return tr_safetensors_open_memory(path, member.data, member.size, out);
}

/* ---- opening ---- */

static tr_status demand_directory(const char *path)
{
    if (tr_file_is_directory(path)) return TR_OK;
    return tr_fail(TR_EINVAL,
                   "\"%s\" is not a directory; a run and a checkpoint are directories; check the path", path);
}

tr_status tr_checkpoint_latest(const char *run, int64_t *step)
{
    *step = -1;
    if (!tr_file_exists(run)) return TR_OK;
    TR_TRY(demand_directory(run));
    struct tr_checkpoint_scan scan;
    TR_TRY(tr_checkpoint_scan(NULL, run, &scan));
    if (scan.count > 0) *step = scan.found[scan.count - 1].step;
    tr_checkpoint_scan_free(&scan);
    return TR_OK;
}

static tr_status read_manifest(tr_checkpoint *checkpoint)
{
    struct tr_file_content content = {0};
    char *path = tr_path_join(checkpoint->path, TR_MANIFEST_NAME);
    tr_status status = path ? read_whole(checkpoint, path, MANIFEST_MAX, &content) : TR_ENOMEM;
    if (status == TR_OK) status = tr_manifest_read(path, content.data, content.size, &checkpoint->manifest);
    tr_file_content_free(&content);
    tr_free(path);
    return status;
}

/* Receives the data of a tensor, and computes their checksum. */
struct passing {
    uint32_t sum;
    tr_safetensors_taker take;
    void *user;
};

static tr_status pass_on(void *user, const void *piece, size_t bytes)
{
    struct passing *passing = user;
    passing->sum = tr_crc32c(passing->sum, piece, bytes);
    return passing->take(passing->user, piece, bytes);
}

/* The only way to the data of a tensor: into `to`, or to `take`, or only checked where both are NULL.
   `fault` is the status for bytes that differ from the manifest. */
static tr_status read_tensor(tr_checkpoint *checkpoint, enum tr_checkpoint_group group,
                             const struct tr_safetensors_entry *entry, void *to, struct passing *take,
                             const char *fault)
{
    tr_safetensors *file = checkpoint->group[group];
    const char *path = tr_safetensors_path(file), *name = entry->tensor.name;
    uint32_t expected, found = 0;
    TR_TRY(tr_manifest_tensor_crc(&checkpoint->manifest, path, group, name, &expected));
    if (take) {
        TR_TRY(tr_safetensors_stream(file, entry, pass_on, take));
        found = take->sum;
    } else {
        TR_TRY(tr_safetensors_read(file, entry, to, &found));
    }
    if (found == expected) return TR_OK;
    return tr_fail(TR_ECORRUPT,
                   "\"%s\": tensor \"%.200s\" %s: its bytes have the CRC-32C %08" PRIx32
                   ", the manifest says %08" PRIx32,
                   path, name, fault, found, expected);
}

static const char changed[] = "has changed since the checkpoint was opened";

tr_status tr_checkpoint_read(tr_checkpoint *checkpoint, enum tr_checkpoint_group group,
                             const struct tr_safetensors_entry *entry, void *to)
{
    return read_tensor(checkpoint, group, entry, to, NULL, changed);
}

tr_status tr_checkpoint_stream(tr_checkpoint *checkpoint, enum tr_checkpoint_group group,
                               const struct tr_safetensors_entry *entry, tr_safetensors_taker take,
                               void *user)
{
    struct passing passing = {.take = take, .user = user};
    return read_tensor(checkpoint, group, entry, NULL, &passing, changed);
}

/* Reads all data of a group and compares them with the manifest. */
static tr_status verify_data(tr_checkpoint *checkpoint, enum tr_checkpoint_group group)
{
    tr_safetensors *file = checkpoint->group[group];
    for (int64_t i = 0; i < tr_safetensors_count(file); i++)
        TR_TRY(read_tensor(checkpoint, group, tr_safetensors_at(file, i), NULL, NULL, "is damaged"));
    return TR_OK;
}

/* Opens and verifies a group's file, called `path`. */
static tr_status open_file(tr_checkpoint *checkpoint, enum tr_checkpoint_group group, const char *path)
{
    tr_status status = open_tensors(checkpoint, path, &checkpoint->group[group]);
    /* A manifest that this program reads has only types that it knows. */
    if (status == TR_EUNSUPPORTED) return TR_ECORRUPT;
    if (status != TR_OK) return status;
    const struct tr_safetensors_summary expected = checkpoint->manifest.summary[group];
    const struct tr_safetensors_summary found = tr_safetensors_summarize(checkpoint->group[group]);
    if (found.bytes != expected.bytes)
        return tr_fail(TR_ECORRUPT, "\"%s\": has %" PRIu64 " bytes, the manifest says %" PRIu64, path,
                       found.bytes, expected.bytes);
    if (found.header_crc != expected.header_crc)
        return tr_fail(TR_ECORRUPT,
                       "\"%s\": the header is damaged: its bytes have the CRC-32C %08" PRIx32
                       ", the manifest says %08" PRIx32,
                       path, found.header_crc, expected.header_crc);
    int64_t tensors = checkpoint->manifest.tensors[group]->count;
    if (tr_safetensors_count(checkpoint->group[group]) != tensors)
        return tr_fail(TR_EFORMAT, "\"%s\": has %" PRId64 " tensors, the manifest %" PRId64, path,
                       tr_safetensors_count(checkpoint->group[group]), tensors);
    return verify_data(checkpoint, group);
}

static tr_status open_group(tr_checkpoint *checkpoint, enum tr_checkpoint_group group)
{
    char *path = tr_path_join(checkpoint->path, tr_checkpoint_group_file[group]);
    if (!path) return TR_ENOMEM;
    tr_status status = open_file(checkpoint, group, path);
    tr_free(path);
    return status;
}

static tr_status read_file(const tr_checkpoint *checkpoint, const struct tr_manifest_file *expected,
                           struct tr_file_content *out)
{
    char *path = tr_path_join(checkpoint->path, expected->name);
    if (!path) return TR_ENOMEM;
    tr_status status = read_whole(checkpoint, path, TR_CHECKPOINT_FILE_MAX, out);
    if (status == TR_OK && out->size != expected->bytes)
        status = tr_fail(TR_ECORRUPT, "\"%s\": has %zu bytes, the manifest says %" PRIu64, path, out->size,
                         expected->bytes);
    uint32_t found = status == TR_OK ? tr_crc32c(0, out->data, out->size) : 0;
    if (status == TR_OK && found != expected->crc)
        status = tr_fail(TR_ECORRUPT,
                         "\"%s\": is damaged: its bytes have the CRC-32C %08" PRIx32
                         ", the manifest says %08" PRIx32,
                         path, found, expected->crc);
    tr_free(path);
    return status;
}

/* Reads and verifies a checkpoint, which is taken, also after a failure. */
static tr_status open_content(tr_checkpoint *checkpoint, const char *path, tr_checkpoint **out)
{
    tr_status status = TR_ENOMEM;
    checkpoint->path = tr_strdup(path);
    if (!checkpoint->path) goto out;
    TR_TRY_GOTO(read_manifest(checkpoint), out);
    status = TR_ENOMEM;
    checkpoint->files = tr_alloc_zero((size_t)checkpoint->manifest.file_count, sizeof *checkpoint->files);
    if (!checkpoint->files) goto out;
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++)
        TR_TRY_GOTO(open_group(checkpoint, (enum tr_checkpoint_group)g), out);
    for (int64_t i = 0; i < checkpoint->manifest.file_count; i++)
        TR_TRY_GOTO(read_file(checkpoint, &checkpoint->manifest.files[i], &checkpoint->files[i]), out);
    *out = checkpoint;
    return TR_OK;
out:
    tr_checkpoint_close(&checkpoint);
    return status;
}

/* Opens and verifies one checkpoint directory. */
static tr_status open_one(const char *path, tr_checkpoint **out)
{
    *out = NULL;
    tr_checkpoint *checkpoint = tr_alloc_zero(1, sizeof *checkpoint);
    return checkpoint ? open_content(checkpoint, path, out) : TR_ENOMEM;
}

tr_status tr_checkpoint_open_packed(void *data, size_t size, bool taken, tr_checkpoint **out)
{
    *out = NULL;
    tr_checkpoint *checkpoint = tr_alloc_zero(1, sizeof *checkpoint);
    if (!checkpoint) {
        if (taken) tr_free(data);
        return TR_ENOMEM;
    }
    checkpoint->packed = data;
    checkpoint->packed_size = size;
    checkpoint->taken = taken ? data : NULL;
    return open_content(checkpoint, TR_CHECKPOINT_MEMORY, out);
}

/* Whether an earlier checkpoint may replace one that failed in this way. */
static bool is_damage(tr_status status)
{
    return status == TR_ECORRUPT || status == TR_EFORMAT || status == TR_EIO || status == TR_ENOTFOUND;
}

/* Opens the newest valid one of those found. */
static tr_status open_newest(const char *run, const struct tr_checkpoint_scan *scan, tr_checkpoint **out)
{
    struct tr_text skipped = TR_TEXT_INIT;
    tr_status status = TR_OK;
    struct tr_failure newest = {.status = TR_OK};
    for (int64_t i = scan->count - 1; i >= 0; i--) {
        char *path = tr_checkpoint_make_path(run, scan->found[i], "");
        status = path ? open_one(path, out) : TR_ENOMEM;
        tr_free(path);
        if (!is_damage(status)) break;
        if (newest.status == TR_OK) tr_failure_keep(&newest, status);
        tr_text_addf(&skipped, "%s\n", tr_error_message());
    }
    if (status == TR_OK && newest.status != TR_OK) {
        status = tr_text_finish(&skipped, &(*out)->skipped);
        if (status != TR_OK) tr_checkpoint_close(out);
    } else if (is_damage(status)) {
        status =
            tr_fail(newest.status, "no checkpoint in \"%s\" can be read (tried %" PRId64 "); the newest: %s",
                    run, scan->count, newest.message);
    }
    tr_text_release(&skipped);
    return status;
}

tr_status tr_checkpoint_open(const char *path, tr_checkpoint **out)
{
    *out = NULL;
    if (!tr_file_exists(path))
        return tr_fail(TR_ENOTFOUND, "checkpoint \"%s\" does not exist; check the path", path);
    TR_TRY(demand_directory(path));
    char *manifest = tr_path_join(path, TR_MANIFEST_NAME);
    if (!manifest) return TR_ENOMEM;
    struct tr_checkpoint_name parsed;
    bool single = tr_file_exists(manifest) || tr_checkpoint_parse_name(tr_path_name(path), &parsed);
    tr_free(manifest);
    if (single) return open_one(path, out);

    struct tr_checkpoint_scan scan;
    TR_TRY(tr_checkpoint_scan(NULL, path, &scan));
    tr_status status = scan.count > 0
                           ? open_newest(path, &scan, out)
                           : tr_fail(TR_ENOTFOUND, "\"%s\" holds no checkpoint; check the path", path);
    tr_checkpoint_scan_free(&scan);
    return status;
}

void tr_checkpoint_close(tr_checkpoint **checkpoint)
{
    tr_checkpoint *closed = *checkpoint;
    if (!closed) return;
    for (int64_t i = 0; closed->files && i < closed->manifest.file_count; i++)
        tr_file_content_free(&closed->files[i]);
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) tr_safetensors_close(&closed->group[g]);
    tr_free(closed->files);
    tr_manifest_free(&closed->manifest);
    tr_free(closed->skipped);
    tr_free(closed->path);
    tr_free(closed->taken);
    tr_free(closed);
    *checkpoint = NULL;
}

const void *tr_checkpoint_packed(const tr_checkpoint *checkpoint, size_t *size)
{
    *size = checkpoint->packed_size;
    return checkpoint->packed;
}

const char *tr_checkpoint_path(const tr_checkpoint *checkpoint)
{
    return checkpoint->path;
}

const struct tr_checkpoint_facts *tr_checkpoint_facts(const tr_checkpoint *checkpoint)
{
    return &checkpoint->manifest.facts;
}

const char *tr_checkpoint_skipped(const tr_checkpoint *checkpoint)
{
    return checkpoint->skipped;
}

const char *tr_checkpoint_file(const tr_checkpoint *checkpoint, const char *name, size_t *size)
{
    for (int64_t i = 0; i < checkpoint->manifest.file_count; i++) {
        if (strcmp(checkpoint->manifest.files[i].name, name) != 0) continue;
        if (size) *size = checkpoint->files[i].size;
        return checkpoint->files[i].data;
    }
    return NULL;
}

const tr_safetensors *tr_checkpoint_tensors(const tr_checkpoint *checkpoint, enum tr_checkpoint_group group)
{
    return checkpoint->group[group];
}
