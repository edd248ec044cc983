#include "train/setup/resume.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/ops.h"
#include "base/numbers/hash.h"
#include "base/scratch_dir.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define MANIFEST      "manifest.json"
#define MANIFEST_MOST ((uint64_t)256 << 20)
#define PIECE         ((size_t)8 << 20) /* bytes of a file in one message */
#define NAME_SIZE     256

/* The root's choice of a checkpoint. */
struct choice {
    int64_t files;               /* that the checkpoint has; 0: there is none */
    int64_t bytes;               /* of all of them */
    int32_t packed;              /* it is in the root's memory: `bytes` are sent to all, no files */
    char digest[TR_SHA256_TEXT]; /* of its manifest, which has checksums of everything else */
    char path[4096];
};

/* A file that is sent next. */
struct passage {
    int64_t size;
    char name[NAME_SIZE];
};

static tr_status spread(tr_comm *comm, void *data, size_t bytes)
{
    tr_ticket *ticket = NULL;
    TR_TRY(tr_comm_broadcast(comm, 0, data, bytes, "checkpoint", &ticket));
    return tr_comm_wait(comm, &ticket);
}

static tr_status digest_manifest(const char *path, char digest[TR_SHA256_TEXT])
{
    struct tr_file_content content;
    char *manifest = tr_path_join(path, MANIFEST);
    if (!manifest) return TR_ENOMEM;
    tr_status status = tr_file_read(manifest, MANIFEST_MOST, &content);
    if (status == TR_OK) {
        status = tr_sha256_of(content.data, content.size, digest);
        tr_file_content_free(&content);
    }
    tr_free(manifest);
    return status;
}

/* ---- the root ---- */

static tr_status open_chosen(const struct tr_train_settings *settings, tr_checkpoint **out)
{
    int64_t step = -1;
    if (settings->continues && settings->out) TR_TRY(tr_checkpoint_latest(settings->out, &step));
    if (step >= 0) return tr_checkpoint_open(settings->out, out);
    if (tr_checkpoint_state_is_given(&settings->state))
        return tr_checkpoint_open_state(&settings->state, out);
    return settings->resume ? tr_checkpoint_open(settings->resume, out) : TR_OK;
}

static tr_status add_size(const char *directory, const char *name, int64_t *bytes)
{
    char *path = tr_path_join(directory, name);
    int descriptor;
    uint64_t size;
    if (!path) return TR_ENOMEM;
    tr_status status = tr_file_open(path, &descriptor, &size);
    if (status == TR_OK) {
        *bytes += (int64_t)size;
        close(descriptor);
    }
    tr_free(path);
    return status;
}

/* Hidden files, which file systems and other programs leave behind, are no part of a checkpoint. */
static void drop_hidden(struct tr_file_names *names)
{
    int64_t count = 0;
    for (int64_t i = 0; i < names->count; i++) {
        if (names->name[i][0] == '.')
            tr_free(names->name[i]);
        else
            names->name[count++] = names->name[i];
    }
    names->count = count;
}

static tr_status describe(const tr_checkpoint *checkpoint, struct tr_file_names *names, struct choice *choice)
{
    const char *path = tr_checkpoint_path(checkpoint);
    if (strlen(path) >= sizeof choice->path)
        return tr_fail(TR_EINVAL, "the path \"%.80s...\" is too long to hand on to other processes", path);
    TR_TRY(tr_file_list(NULL, path, names));
    drop_hidden(names);
    TR_TRY(digest_manifest(path, choice->digest));
    for (int64_t i = 0; i < names->count; i++) TR_TRY(add_size(path, names->name[i], &choice->bytes));
    choice->files = names->count;
    memcpy(choice->path, path, strlen(path) + 1);
    return TR_OK;
}

/* The bytes of a checkpoint in memory, from the root to all. */
static tr_status spread_packed(tr_comm *comm, char *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += PIECE)
        TR_TRY(spread(comm, bytes + at, size - at < PIECE ? size - at : PIECE));
    return TR_OK;
}

static tr_status send_file(tr_comm *comm, const char *directory, const char *name, char *piece)
{
    struct passage passage = {0};
    char *path = tr_path_join(directory, name);
    int descriptor = -1;
    uint64_t size = 0;
    if (!path) return TR_ENOMEM;
    tr_status status = strlen(name) < NAME_SIZE
                           ? tr_file_open(path, &descriptor, &size)
                           : tr_fail(TR_EINVAL, "\"%s\" does not belong in a checkpoint", path);
    passage.size = (int64_t)size;
    if (status == TR_OK) {
        memcpy(passage.name, name, strlen(name) + 1);
        status = spread(comm, &passage, sizeof passage);
    }
    for (uint64_t at = 0; status == TR_OK && at < size; at += PIECE) {
        size_t bytes = size - at < PIECE ? (size_t)(size - at) : PIECE;
        status = tr_file_read_at(descriptor, path, at, piece, bytes);
        if (status == TR_OK) status = spread(comm, piece, bytes);
    }
    if (descriptor >= 0) close(descriptor);
    tr_free(path);
    return status;
}

/* ---- the others ---- */

/* Receives a file; without a directory discards it. */
static tr_status receive_file(tr_comm *comm, const char *directory, char *piece)
{
    struct passage passage;
    struct tr_file_writer writer = {.descriptor = -1};
    char *path = NULL;
    TR_TRY(spread(comm, &passage, sizeof passage));
    passage.name[NAME_SIZE - 1] = '\0';
    if (passage.size < 0 || !passage.name[0] || passage.name[0] == '.' || strchr(passage.name, '/'))
        return tr_fail(TR_EMISMATCH, "rank 0 sent a file that belongs in no checkpoint");
    if (directory && !(path = tr_path_join(directory, passage.name))) return TR_ENOMEM;
    tr_status status = TR_OK;
    if (path) status = tr_file_begin(NULL, path, TR_FILE_NEW, (uint64_t)passage.size, &writer);
    for (int64_t at = 0; status == TR_OK && at < passage.size; at += (int64_t)PIECE) {
        size_t bytes = passage.size - at < (int64_t)PIECE ? (size_t)(passage.size - at) : PIECE;
        status = spread(comm, piece, bytes);
        if (status == TR_OK && path) status = tr_file_write(&writer, piece, bytes);
    }
    if (status == TR_OK && path) status = tr_file_finish(&writer, false);
    if (status != TR_OK) tr_file_abandon(&writer);
    tr_free(path);
    return status;
}

/* ---- together ---- */

/* Whether some rank needs a copy. */
static tr_status ask_for_copies(tr_comm *comm, bool needs, bool *wanted)
{
    size_t size = (size_t)tr_comm_size(comm);
    int32_t *all = tr_alloc_zero(size, sizeof *all);
    tr_status status = all ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) {
        all[tr_comm_rank(comm)] = needs;
        status = tr_comm_exchange(comm, all, sizeof *all, "checkpoint");
    }
    *wanted = false;
    for (size_t r = 0; status == TR_OK && r < size; r++) *wanted |= all[r] != 0;
    tr_free(all);
    return status;
}

/* The root sends all files to all ranks; those with a directory keep them there. */
static tr_status copy_files(tr_comm *comm, const struct choice *choice, const struct tr_file_names *names,
                            const char *directory)
{
    char *piece = tr_alloc(PIECE, 1);
    tr_status status = piece ? TR_OK : TR_ENOMEM;
    for (int64_t i = 0; status == TR_OK && i < choice->files; i++)
        status = tr_comm_rank(comm) == 0 ? send_file(comm, choice->path, names->name[i], piece)
                                         : receive_file(comm, directory, piece);
    tr_free(piece);
    return status;
}

static tr_status receive_packed(tr_comm *comm, int64_t bytes, tr_checkpoint **out)
{
    if (bytes < 0 || (uint64_t)bytes > SIZE_MAX)
        return tr_fail(TR_EMISMATCH, "rank 0 sends a checkpoint of %" PRId64 " bytes", bytes);
    char *packed = tr_alloc((size_t)bytes, 1);
    if (!packed) return TR_ENOMEM;
    tr_status status = spread_packed(comm, packed, (size_t)bytes);
    if (status == TR_OK) return tr_checkpoint_open_packed(packed, (size_t)bytes, true, out);
    tr_free(packed);
    return status;
}

static tr_status follow_root(tr_comm *comm, tr_checkpoint **out)
{
    struct choice choice;
    struct tr_scratch_dir dir = TR_SCRATCH_DIR_NONE; /* of a copy */
    char digest[TR_SHA256_TEXT];
    bool wanted;
    TR_TRY(spread(comm, &choice, sizeof choice));
    choice.path[sizeof choice.path - 1] = '\0';
    if (choice.packed) return receive_packed(comm, choice.bytes, out);
    if (choice.files == 0) return TR_OK;
    bool here =
        digest_manifest(choice.path, digest) == TR_OK && memcmp(digest, choice.digest, sizeof digest) == 0;
    TR_TRY(ask_for_copies(comm, !here, &wanted));
    if (!here) TR_TRY(tr_scratch_dir_make(TR_RESUME_SCRATCH, choice.bytes, &dir));
    tr_status status = wanted ? copy_files(comm, &choice, NULL, here ? NULL : dir.path) : TR_OK;
    if (status == TR_OK) status = tr_checkpoint_open(here ? choice.path : dir.path, out);
    tr_scratch_dir_remove(&dir); /* what is open stays readable */
    return status;
}

static tr_status lead(tr_comm *comm, tr_checkpoint *checkpoint)
{
    struct choice choice = {0};
    struct tr_file_names names = {0};
    bool wanted = false;
    size_t size = 0;
    void *packed = checkpoint ? (void *)(uintptr_t)tr_checkpoint_packed(checkpoint, &size) : NULL;
    if (packed) {
        choice.packed = 1;
        choice.bytes = (int64_t)size;
        TR_TRY(spread(comm, &choice, sizeof choice));
        return spread_packed(comm, packed, size);
    }
    tr_status status = checkpoint ? describe(checkpoint, &names, &choice) : TR_OK;
    if (status == TR_OK) status = spread(comm, &choice, sizeof choice);
    if (status == TR_OK && checkpoint) status = ask_for_copies(comm, false, &wanted);
    if (status == TR_OK && wanted) status = copy_files(comm, &choice, &names, NULL);
    tr_file_names_free(&names);
    return status;
}

tr_status tr_train_resume(tr_comm *comm, const struct tr_train_settings *settings, tr_checkpoint **out)
{
    *out = NULL;
    if (comm && tr_comm_rank(comm) > 0) return follow_root(comm, out);
    TR_TRY(open_chosen(settings, out));
    tr_status status = comm ? lead(comm, *out) : TR_OK;
    if (status != TR_OK) tr_checkpoint_close(out);
    return status;
}
