/* Saving: everything is written under another name and made durable, then renamed durably, and only then
 * are older checkpoints removed.
 *
 *     make <run>/checkpoint-N.tmp; write and sync its files, the manifest last; sync the directory
 *     rename it to <run>/checkpoint-N; sync <run>
 *     rename what is no longer needed to *.tmp, and remove it
 *
 * After the second line the new checkpoint is the newest, whatever happens.
 */
#include "checkpoint/checkpoint.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/numbers/hash.h"
#include "base/text/log.h"
#include "checkpoint/content.h"
#include "checkpoint/names.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Writes a file that does not exist yet, and makes it durable. */
static tr_status write_file(const tr_file_system *files, const char *directory, const char *name,
                            const void *data, size_t size)
{
    char *path = tr_path_join(directory, name);
    if (!path) return TR_ENOMEM;
    struct tr_file_writer writer;
    tr_status status = tr_file_begin(files, path, TR_FILE_NEW, size, &writer);
    if (status == TR_OK) status = tr_file_write(&writer, data, size);
    if (status == TR_OK) status = tr_file_finish(&writer, true);
    tr_file_abandon(&writer);
    tr_free(path);
    return status;
}

static tr_status write_group(const tr_file_system *files, const char *directory,
                             const struct tr_checkpoint_content *content, int group,
                             struct tr_manifest_sums *sums)
{
    const struct tr_stored_tensor *tensors = content->group[group].tensors;
    struct tr_content_checker checker;
    const struct tr_stored_giver giver = tr_content_giver(content, group, &checker);
    char *path = tr_path_join(directory, tr_checkpoint_group_file[group]);
    if (!path) return TR_ENOMEM;
    tr_status status =
        tr_safetensors_write(files, path, tensors, content->group[group].count, &giver, &tr_content_note, 1,
                             sums->tensor_crc[group], &sums->summary[group]);
    tr_free(path);
    return status;
}

/* Creates and fills `directory`, and makes all of it durable. */
static tr_status write_content(const tr_file_system *files, const char *directory,
                               const struct tr_checkpoint_content *content, struct tr_manifest_sums *sums)
{
    TR_TRY(tr_file_make_directory(files, directory));
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) TR_TRY(write_group(files, directory, content, g, sums));
    for (int64_t i = 0; i < content->file_count; i++) {
        const struct tr_checkpoint_file *file = &content->files[i];
        TR_TRY(write_file(files, directory, file->name, file->data, file->size));
        sums->file_crc[i] = tr_crc32c(0, file->data, file->size);
    }
    char *manifest;
    TR_TRY(tr_manifest_write(content, sums, &manifest));
    tr_status status = write_file(files, directory, TR_MANIFEST_NAME, manifest, strlen(manifest));
    tr_free(manifest);
    TR_TRY(status);
    return tr_file_sync_directory(files, directory);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static void warn(const char *what)
{
    tr_log_line(TR_LOG_WARNING, "%s: %s", what, tr_error_message());
}

/* Removes remains of crashed saves and unfinished removals. A failure here does not prevent saving. */
static void remove_leftovers(const tr_file_system *files, const char *run,
                             const struct tr_checkpoint_scan *scan)
{
    for (int64_t i = 0; i < scan->names.count; i++) {
        char stem[128];
        struct tr_checkpoint_name parsed;
        const char *name = scan->names.name[i];
        size_t length = strlen(name) - strlen(TR_CHECKPOINT_ASIDE);
        if (!ends_with(name, TR_CHECKPOINT_ASIDE) || length >= sizeof stem) continue;
        memcpy(stem, name, length);
        stem[length] = '\0';
        if (!tr_checkpoint_parse_name(stem, &parsed)) continue;
        char *path = tr_path_join(run, name);
        if (!path || tr_file_remove(files, path) != TR_OK)
            warn("an unfinished checkpoint could not be removed");
        tr_free(path);
    }
}

/* The name is removed first, in one step, so that a partial directory is not taken for a damaged
   checkpoint. */
static tr_status remove_checkpoint(const tr_file_system *files, const char *run,
                                   struct tr_checkpoint_name name)
{
    char *path = tr_checkpoint_make_path(run, name, "");
    char *aside = tr_checkpoint_make_path(run, name, TR_CHECKPOINT_ASIDE);
    tr_status status = path && aside ? tr_file_rename(files, path, aside) : TR_ENOMEM;
    if (status == TR_OK) status = tr_file_remove(files, aside);
    tr_free(aside);
    tr_free(path);
    return status;
}

static bool holds_name(const struct tr_checkpoint_scan *scan, const char *name)
{
    for (int64_t i = 0; i < scan->names.count; i++)
        if (strcmp(scan->names.name[i], name) == 0) return true;
    return false;
}

/* Removes a checkpoint from the sequence without deleting it. */
static tr_status set_aside(const tr_file_system *files, const char *run,
                           const struct tr_checkpoint_scan *scan, struct tr_checkpoint_name name)
{
    char *path = tr_checkpoint_make_path(run, name, "");
    char *aside = tr_checkpoint_make_path(run, name, TR_CHECKPOINT_ABANDONED);
    for (int copy = 2; path && aside && holds_name(scan, tr_path_name(aside)); copy++) {
        tr_free(aside);
        aside = tr_format("%s" TR_CHECKPOINT_ABANDONED "-%d", path, copy);
    }
    tr_status status = path && aside ? tr_file_rename(files, path, aside) : TR_ENOMEM;
    if (status == TR_OK)
        tr_log_line(TR_LOG_WARNING,
                    "\"%s\" is of a later step than the checkpoint just saved; it is now \"%s\"", path,
                    tr_path_name(aside));
    tr_free(aside);
    tr_free(path);
    return status;
}

static bool is_same(struct tr_checkpoint_name a, struct tr_checkpoint_name b)
{
    return a.step == b.step && a.edition == b.edition;
}

/* The run directory before a save. */
struct before {
    struct tr_checkpoint_scan scan;
    struct tr_checkpoint_name best;
    bool marked; /* `best` is */
};

static tr_status look(const tr_file_system *files, const char *run, struct before *out)
{
    TR_TRY(tr_checkpoint_scan(files, run, &out->scan));
    tr_status status = tr_checkpoint_find_best(files, run, &out->best, &out->marked);
    if (status != TR_OK) tr_checkpoint_scan_free(&out->scan);
    return status;
}

/* After `saved` is durable: keeps `keep` checkpoints, including it, and the marked one. */
static void retire_others(const tr_file_system *files, const char *run, const struct before *before,
                          struct tr_checkpoint_name saved, int64_t keep)
{
    const struct tr_checkpoint_scan *scan = &before->scan;
    int64_t earlier = 0, later = scan->count;
    while (earlier < scan->count && scan->found[earlier].step < saved.step) earlier++;
    while (later > earlier && scan->found[later - 1].step > saved.step) later--;
    for (int64_t i = 0; i < scan->count; i++) {
        tr_status status = TR_OK;
        bool is_best = before->marked && is_same(scan->found[i], before->best), there;
        if (i >= later) {
            if (is_best) status = tr_checkpoint_settle_best(files, run, -1, &there);
            if (status == TR_OK) status = set_aside(files, run, scan, scan->found[i]);
        } else if (!is_best && (i >= earlier || i <= earlier - keep)) {
            status = remove_checkpoint(files, run, scan->found[i]);
        }
        if (status != TR_OK) warn("an old checkpoint could not be removed");
    }
    /* If a later checkpoint came back after a power failure it would be taken for the newest, so this must
     * be durable; removed old ones may come back.
     */
    if (later < scan->count && tr_file_sync_directory(files, run) != TR_OK)
        warn("a later checkpoint may come back");
}

/* tr_checkpoint_save(), without the name of the checkpoint in the message. */
static tr_status save(const tr_file_system *files, const char *run, int64_t keep,
                      const struct tr_checkpoint_content *content, char **path)
{
    if (keep < 2)
        return tr_fail(
            TR_EINVAL,
            "cannot keep %" PRId64 " checkpoints: at least 2 are needed, so that one is always whole", keep);
    TR_TRY(tr_content_check(content));
    TR_TRY(tr_file_make_directories(files, run));

    struct before before;
    TR_TRY(look(files, run, &before));
    const struct tr_checkpoint_scan *scan = &before.scan;
    struct tr_checkpoint_name name = {content->facts.step, 1};
    for (int64_t i = 0; i < scan->count; i++)
        if (scan->found[i].step == name.step) name.edition = scan->found[i].edition + 1;

    struct tr_manifest_sums sums;
    void *memory = NULL;
    char *aside = tr_checkpoint_make_path(run, name, TR_CHECKPOINT_ASIDE);
    char *final = tr_checkpoint_make_path(run, name, "");
    tr_status status = TR_ENOMEM;
    if (!aside || !final) goto out;
    TR_TRY_GOTO(tr_content_make_sums(content, &sums, &memory), out);
    remove_leftovers(files, run, scan);
    status = write_content(files, aside, content, &sums);
    if (status == TR_OK) status = tr_file_rename(files, aside, final);
    if (status != TR_OK) {
        tr_file_discard(files, aside);
        goto out;
    }
    /* If this fails, the new checkpoint may or may not be durable, so no older one is removed. */
    TR_TRY_GOTO(tr_file_sync_directory(files, run), out);
    retire_others(files, run, &before, name, keep);
    if (path) {
        *path = final;
        final = NULL;
    }
out:
    tr_free(final);
    tr_free(aside);
    tr_free(memory);
    tr_checkpoint_scan_free(&before.scan);
    return status;
}

tr_status tr_checkpoint_save(const tr_file_system *files, const char *run, int64_t keep,
                             const struct tr_checkpoint_content *content, char **path)
{
    if (path) *path = NULL;
    tr_status status = save(files, run, keep, content, path);
    if (status == TR_OK) return TR_OK;
    return tr_fail_in(status, "checkpoint of step %" PRId64 " not saved", content->facts.step);
}

/* Fills a directory beside `path`, then renames it. */
static tr_status write_at(const char *path, const struct tr_checkpoint_content *content)
{
    struct tr_manifest_sums sums;
    void *memory = NULL;
    char *parent = tr_path_parent(path),
         *aside = tr_format("%s.%ld" TR_CHECKPOINT_ASIDE, path, (long)getpid());
    tr_status status = TR_ENOMEM;
    if (!parent || !aside) goto out;
    TR_TRY_GOTO(tr_content_make_sums(content, &sums, &memory), out);
    TR_TRY_GOTO(tr_file_make_directories(NULL, parent), out);
    status = write_content(NULL, aside, content, &sums);
    if (status == TR_OK) status = tr_file_rename(NULL, aside, path);
    if (status != TR_OK)
        tr_file_discard(NULL, aside);
    else
        status = tr_file_sync_directory(NULL, parent);
out:
    tr_free(memory);
    tr_free(aside);
    tr_free(parent);
    return status;
}

tr_status tr_checkpoint_save_at(const char *path, const struct tr_checkpoint_content *content)
{
    tr_status status = tr_content_check(content);
    if (status == TR_OK && tr_file_exists(path))
        status = tr_fail(TR_EIO, "\"%s\" is there already; give another path", path);
    if (status == TR_OK) status = write_at(path, content);
    if (status == TR_OK) return TR_OK;
    return tr_fail_in(status, "checkpoint of step %" PRId64 " not saved", content->facts.step);
}
