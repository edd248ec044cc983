/* Checkpoints: the state of a run on disk, so that a crash, a full disk or a power failure never costs an
 * older state.
 *
 * A run directory holds one line of history, a directory for each checkpoint:
 *
 *     checkpoint-00000100/         its step, in at least 8 digits; "-2" is added to the
 *                                  second checkpoint of the same step
 *         parameters.safetensors
 *         optimizer.safetensors
 *         model.yaml, ...          small files that the run wants to keep
 *         manifest.json            facts, and a checksum of everything (checkpoint/manifest.h)
 *     checkpoint-best              a link to the one that the run marked as its best
 *     checkpoint-00000200.tmp/     being written or removed, or left by a crash; the
 *                                  next save removes it
 *     checkpoint-00000300.abandoned/
 *                                  of a later step than one saved afterwards; never read, and never
 *                                  removed
 *
 * Invariants:
 *   - A directory gets its final name when all of it is durable, by one rename.
 *   - Nothing under a final name is ever changed, and nothing is removed before its successor is
 *     durable.
 *   - The marked checkpoint is not removed; the mark goes from one to the next in one step.
 *   - A checkpoint that tr_checkpoint_open() returns was read completely and agrees with the manifest.
 *
 * So at any moment, also after a power failure, the previous or the new checkpoint can be loaded. Equal
 * content gives equal files. One process saves to a run directory at a time; any number may read.
 */
#ifndef TR_CHECKPOINT_CHECKPOINT_H
#define TR_CHECKPOINT_CHECKPOINT_H

#include "io/safetensors.h"
#include "trireme/state.h"

enum tr_checkpoint_group { TR_CHECKPOINT_PARAMETERS, TR_CHECKPOINT_OPTIMIZER, TR_CHECKPOINT_GROUPS };

/* A figure to keep, such as a loss. A value that is not finite is kept as NaN. */
struct tr_checkpoint_metric {
    const char *name;
    double value;
};

struct tr_checkpoint_facts {
    int64_t step; /* steps done */
    uint64_t seed;
    int64_t microbatches;
    const char *program; /* "trireme 0.1.0"; saving always writes this program's */
    /* Digests are 64 hexadecimal digits or "". */
    const char *model_digest;   /* of the settings that runs must agree on */
    const char *data_digest;    /* of the training data */
    const char *parameter_hash; /* of the parameters, as printed by the run */
    const struct tr_checkpoint_metric *metrics;
    int64_t metric_count;
};

/* A small file to keep, at most TR_CHECKPOINT_FILE_MAX bytes. The name is made of letters, digits, '.',
   '_' and '-', does not begin with '.', and is not one of the three above. */
struct tr_checkpoint_file {
    const char *name;
    const void *data;
    size_t size;
};
#define TR_CHECKPOINT_FILE_MAX ((size_t)64 << 20)

struct tr_checkpoint_content {
    struct tr_checkpoint_facts facts;
    struct {
        const struct tr_stored_tensor *tensors;
        int64_t count;
        const struct tr_stored_giver *giver; /* of data that are not in memory; or NULL */
    } group[TR_CHECKPOINT_GROUPS];
    const struct tr_checkpoint_file *files;
    int64_t file_count;
};

/* Saves a checkpoint in the run directory, which is made if missing; then removes the oldest ones, so that
   `keep` (2 or more) remain. Checkpoints of later steps belong to an abandoned continuation (or are
   damaged, when the run was resumed from an earlier one): they are renamed. A run that does not resume
   must therefore refuse a directory that tr_checkpoint_latest() finds used. Everything is borrowed for the
   call. `path` (may be NULL) gets the new directory, returned, free with tr_free(). On failure earlier
   checkpoints do not change, and written files are removed as far as possible: TR_EIO, TR_ENOMEM,
   TR_EINVAL, and TR_ENONFINITE for a float32 tensor that holds NaN or an infinity. Failures after the new
   checkpoint is durable (removing old ones) are logged as warnings. */
tr_status tr_checkpoint_save(const tr_file_system *files, const char *run, int64_t keep,
                             const struct tr_checkpoint_content *content, char **path);

/* Saves a checkpoint as the directory `path`, which must not exist, and which gets its name when all of it
   is durable. Errors as above. */
tr_status tr_checkpoint_save_at(const char *path, const struct tr_checkpoint_content *content);
/* Writes a checkpoint as one stream: the files of its directory in a tar archive. Equal content gives
   equal bytes. Errors as above, or the sink's failure. */
tr_status tr_checkpoint_pack(const struct tr_stored_sink *sink, const struct tr_checkpoint_content *content);

/* Marks a checkpoint of the run directory, by the name of its directory. The mark of another one is
   removed, and that one is then treated like any other. The mark stays with a checkpoint that is set
   aside. TR_EIO, TR_ENOMEM. */
tr_status tr_checkpoint_mark_best(const tr_file_system *files, const char *run, const char *name);
/* Marks the newest checkpoint of this step, if there is one and it is not marked already; *there becomes
   whether there is. With step -1 the mark is removed. Errors as above. */
tr_status tr_checkpoint_settle_best(const tr_file_system *files, const char *run, int64_t step, bool *there);
/* The mark's name in a run directory. */
#define TR_CHECKPOINT_BEST "checkpoint-best"

/* The step of the newest checkpoint in a run directory, by its name only, or -1 if there is none or no such
 * directory. TR_EIO. */
tr_status tr_checkpoint_latest(const char *run, int64_t *step);

/* A checkpoint open for reading: checked, and readable to the end even if it is removed meanwhile. Used by
 * one thread at a time. */
typedef struct tr_checkpoint tr_checkpoint;

/* Opens a checkpoint directory, or the newest good one of a run directory, and reads through all of it.
   Damaged ones of a run directory are skipped, see tr_checkpoint_skipped(). Returned, close with
   tr_checkpoint_close(). TR_ENOTFOUND: there is none. TR_ECORRUPT, TR_EFORMAT, TR_EIO: all are damaged;
   the message names the newest one's first damage, down to the tensor. TR_EUNSUPPORTED: whole, but of a
   newer format (no older checkpoint is used instead). TR_ENOMEM. */
tr_status tr_checkpoint_open(const char *path, tr_checkpoint **out);
/* Opens the marked checkpoint of a run directory, and never another. Errors likewise. */
tr_status tr_checkpoint_open_best(const char *run, tr_checkpoint **out);
/* The name of a checkpoint in memory, in place of a path. */
#define TR_CHECKPOINT_MEMORY "(memory)"
/* Opens a checkpoint written by tr_checkpoint_pack(), with the same checks. `data` [size] are borrowed
   until close or, with `taken`, were allocated by tr_alloc() and are freed then, also after a failure.
   Errors likewise. */
tr_status tr_checkpoint_open_packed(void *data, size_t size, bool taken, tr_checkpoint **out);
/* The stream of a checkpoint opened in this way, borrowed until close; NULL for others. */
const void *tr_checkpoint_packed(const tr_checkpoint *checkpoint, size_t *size);
/* Opens a state that a program gives; and whether there is one. Errors likewise, TR_EINVAL, and TR_EIO
   where its function ended the stream. */
bool tr_checkpoint_state_is_given(const struct tr_run_state *state);
tr_status tr_checkpoint_open_state(const struct tr_run_state *state, tr_checkpoint **out);
/* Accepts NULL, nulls the handle. */
void tr_checkpoint_close(tr_checkpoint **checkpoint);

/* All borrowed until close. */
const char *tr_checkpoint_path(const tr_checkpoint *checkpoint);
const struct tr_checkpoint_facts *tr_checkpoint_facts(const tr_checkpoint *checkpoint);
/* Which newer checkpoints were skipped and why, a line each; NULL if none was. */
const char *tr_checkpoint_skipped(const tr_checkpoint *checkpoint);
/* The content of a kept file, terminated by a NUL that is not counted; NULL if there is no file of that
 * name. `size` may be NULL.
 */
const char *tr_checkpoint_file(const tr_checkpoint *checkpoint, const char *name, size_t *size);
/* The tensors of a group, for their names, types and shapes. The handle is constant, so that their data
   can be read only by the functions below, which check them. */
const tr_safetensors *tr_checkpoint_tensors(const tr_checkpoint *checkpoint, enum tr_checkpoint_group group);

/* Reads the data of one of tr_checkpoint_tensors() into `to` (entry->bytes bytes) and compares them with
   the manifest, since files may change after they were opened. On TR_ECORRUPT (they did) and TR_EIO the
   contents are undefined. */
tr_status tr_checkpoint_read(tr_checkpoint *checkpoint, enum tr_checkpoint_group group,
                             const struct tr_safetensors_entry *entry, void *to);
/* The same in pieces, see tr_safetensors_stream(). Pieces are given before the last of them was checked:
   after a failure all pieces given to `take` are invalid. */
tr_status tr_checkpoint_stream(tr_checkpoint *checkpoint, enum tr_checkpoint_group group,
                               const struct tr_safetensors_entry *entry, tr_safetensors_taker take,
                               void *user);

/* Compares the group with `tensors`, which must be the same names with the same types and shapes in any
   order, and reads all data into those whose `data` is not NULL. TR_EMISMATCH names the first difference
   with both sides, and then nothing has been read. On TR_EIO and TR_ECORRUPT (the files changed since they
   were opened) the contents are undefined. The caller must check that the parameters have the hash in the
   facts. */
tr_status tr_checkpoint_load(tr_checkpoint *checkpoint, enum tr_checkpoint_group group,
                             const struct tr_stored_tensor *tensors, int64_t count);

#endif
