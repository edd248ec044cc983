/* A ring of bytes from one process to another: frames that are published whole.
 *
 * Each side keeps its own count of bytes and only publishes it; it rejects a count of the other side that
 * contradicts its own. A sender that is killed while it writes a frame has not published it, so the
 * receiver finds only whole frames.
 *
 * When the ring is empty, writing begins at its start again, so that messages that are read soon stay within
 * few pages and in the cache.
 */
#ifndef TR_COMM_LOCAL_RING_H
#define TR_COMM_LOCAL_RING_H

#include "comm/local/area.h"

enum { LOCAL_BEGIN = 1, LOCAL_ANNOUNCE, LOCAL_WANT, LOCAL_MORE, LOCAL_SKIP };

struct local_frame {
    uint32_t kind;
    int32_t tag;     /* BEGIN, ANNOUNCE */
    uint64_t bytes;  /* of the message: BEGIN, ANNOUNCE */
    uint64_t cookie; /* names the message among those of its sender: all but SKIP */
    uint64_t count;  /* bytes that follow in this frame: BEGIN, MORE, SKIP */
};

/* The sender's end. */
struct local_writer {
    struct local_ring *ring;
    size_t capacity;
    uint64_t head, tail; /* `tail` as last read */
};

/* The receiver's end. */
struct local_reader {
    struct local_ring *ring;
    size_t capacity;
    uint64_t head, tail; /* `head` as last read */
};

struct local_writer tr_local_writer(const struct local_area *area, int from, int to);
struct local_reader tr_local_reader(const struct local_area *area, int from, int to);

/* The most bytes that a frame may carry. Four such frames fill a ring. */
size_t tr_local_ring_piece(size_t capacity);

/* Writes a frame and the `count` bytes (at most a piece) that belong to it. *done = false: there is no
   room now, and the receiver will knock when there is. TR_EPEER if the receiver's count is invalid. */
tr_status tr_local_write(struct local_writer *writer, const struct local_frame *frame, const void *data,
                         bool *done);

/* Reads the next frame, without its data, skipping SKIP frames. *found = false: there is none. TR_EPEER if
   the frame is invalid. */
tr_status tr_local_read(struct local_reader *reader, struct local_frame *frame, bool *found);
/* Then reads its `count` bytes, or drops them (NULL). True: the sender waits for room, and must be
   notified that there is some. */
bool tr_local_take(struct local_reader *reader, const struct local_frame *frame, void *data);

#endif
