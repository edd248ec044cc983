/* Checkpoints in memory: a stream of bytes with the contents of a checkpoint on disk, and the same
 * checksums.
 *
 *     void *bytes;
 *     size_t size;
 *     tr_status status = tr_trainer_save_state(trainer, &bytes, &size);
 *     ...
 *     settings.state.bytes = bytes;
 *     settings.state.size = size;
 *     status = tr_trainer_create(&settings, &another);
 *
 * The stream is a tar archive: written to a file and unpacked it is a directory that every command accepts
 * as a checkpoint. Equal states give equal bytes.
 */
#ifndef TRIREME_STATE_H
#define TRIREME_STATE_H

#include "trireme/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes the next `size` bytes of a stream, borrowed for the call. Non-zero ends it with TR_EIO and that
   number in the message. Called on the thread that saves. */
typedef int (*tr_run_state_writer)(void *user, const void *bytes, size_t size);
/* Writes at most `room` of the next bytes of a stream to `bytes` and returns their number, 0 at the end; a
   negative number ends it with TR_EIO and that number in the message. Called on the thread that creates,
   until the end. */
typedef int64_t (*tr_run_state_reader)(void *user, void *bytes, size_t room);

/* A checkpoint to resume from, in memory or from a function; all members NULL or 0: none. Borrowed for the
   call that takes it. */
struct tr_run_state {
    const void *bytes; /* [size]; NULL: `read` gives them */
    size_t size;
    tr_run_state_reader read; /* NULL: `bytes` */
    void *user;               /* of `read` */
};

/* Frees the bytes of tr_trainer_save_state(). Accepts NULL. Any thread. */
TR_API void tr_state_free(void *bytes);

#ifdef __cplusplus
}
#endif
#endif
