/* The log of an asynchronous run as a file, `updates.log` in its directory.
 *
 * A file is a sequence of blocks. Numbers are little-endian.
 *
 *     0   4  "TRUL"
 *     4   4  kind: 1 a session, 2 records, 3 a state
 *     8   4  bytes after this head
 *     12  4  number of the block, from 0
 *     16  8  updates done at its end
 *     24  4  CRC-32C of these 24 bytes and the data after the head, continued from the block before (0)
 *     28  4  0
 *
 *     session, 144 bytes: version of the format (1), version of the arithmetic, mode, workers, servers,
 *         parts, 4 each; staleness (2^63 - 1: any), first and steps, 8 each; SHA-256 of settings, data and
 *         first parameters, 32 each, zeros where unknown
 *
 *     records, 16 bytes each: number 8, missed 4, worker 2, kind 1, zero 1 (strategy/updates/log.h)
 *
 *     state, 32 bytes: SHA-256 of the parameters
 *
 * The first block is a session. The checksum continues from block to block, so that a missing, duplicate
 * or misplaced block is noticed.
 *
 * Blocks are only appended. A killed process may leave a partial block: it is *torn*, which is not an
 * error. Before a checkpoint is written, blocks of all updates before it are durable, and the last of them
 * ends there: so a resumed run continues after the blocks that its checkpoint covers, and removes the
 * others.
 */
#ifndef TR_STRATEGY_UPDATES_FILE_H
#define TR_STRATEGY_UPDATES_FILE_H

#include "base/files/ops.h"
#include "strategy/updates/log.h"

#define TR_UPDATE_FILE "updates.log"

enum {
    TR_UPDATE_HEAD_BYTES = 32,
    TR_UPDATE_SESSION_BYTES = 144,
    TR_UPDATE_RECORD_BYTES = 16,
    TR_UPDATE_STATE_BYTES = 32
};
enum tr_update_block { TR_UPDATE_BLOCK_SESSION = 1, TR_UPDATE_BLOCK_RECORDS, TR_UPDATE_BLOCK_STATE };
#define TR_UPDATE_FORMAT 1

/* ---- reading: read.c ---- */

/* Reads a log, and checks it. `log` is empty before; release it. `torn` (may be NULL): bytes after the
   last whole block. TR_ENOTFOUND, TR_EIO, TR_ENOMEM, TR_EFORMAT for another file, TR_ECORRUPT for a
   damaged one, TR_EUNSUPPORTED for one of a later format. */
tr_status tr_update_file_read(const char *path, struct tr_update_log *log, int64_t *torn);
/* The same from memory; `name` begins messages. */
tr_status tr_update_bytes_read(const char *name, const void *bytes, size_t size, struct tr_update_log *log,
                               int64_t *torn);

/* ---- writing: write.c ---- */

struct tr_update_writer {
    char *path;    /* NULL: nothing is written */
    uint64_t size; /* of the whole blocks */
    uint32_t blocks, crc;
    bool torn;                        /* a write has failed, and a partial block may follow them */
    int64_t count;                    /* updates done */
    int32_t taken;                    /* gradients of the next one */
    struct tr_update_session session; /* the current session */
};

/* Continues after the blocks of the file `history` (may be `path` itself; NULL or "": none) that a
   checkpoint after `step` updates covers, or begins a new log; *found: there were such. Later blocks are
   dropped. `files` is borrowed for the call. TR_EIO, TR_ENOMEM. Returned, release with
   tr_update_writer_release(). */
tr_status tr_update_writer_begin(const tr_file_system *files, const char *path, const char *history,
                                 int64_t step, struct tr_update_writer *writer, bool *found);
/* Adds sessions and records to the file, durably; after a failure the same ones may be added again.
 * TR_EIO, TR_ENOMEM.
 */
tr_status tr_update_writer_add(const tr_file_system *files, struct tr_update_writer *writer,
                               const struct tr_update_log *log);
/* Accepts zeros; zeroes it. */
void tr_update_writer_release(struct tr_update_writer *writer);

#endif
