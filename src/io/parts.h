/* The parts of a message, or many small blocks of any kind, that are freed together.
 *
 * A failed allocation is remembered; whoever fills a structure checks once at its end (`parts.failed`), but
 * must not write to a block that is NULL.
 */
#ifndef TR_IO_PARTS_H
#define TR_IO_PARTS_H

#include <stdbool.h>
#include <stddef.h>

/* Plain memory; all zeros holds no block. Used by one thread at a time. */
struct tr_parts {
    struct tr_parts_chunk *newest;
    bool failed;
};

/* `count` times `size` bytes of zeros, aligned for anything; NULL on failure. Borrowed until the parts is
 * released. */
void *tr_parts_take(struct tr_parts *parts, size_t count, size_t size);
/* printf into a block; NULL on failure. */
char *tr_parts_format(struct tr_parts *parts, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Frees all blocks. */
void tr_parts_release(struct tr_parts *parts);

#endif
