/* A region of memory: many small blocks, of a message for example, that are freed together.
 *
 * A failed allocation is remembered; code that fills a structure checks once at its end (`region.failed`),
 * but must not write to a block that is NULL.
 */
#ifndef TR_IO_REGION_H
#define TR_IO_REGION_H

#include <stdbool.h>
#include <stddef.h>

/* Plain memory; all zeros holds no block. Used by one thread at a time. */
struct tr_region {
    struct tr_region_chunk *newest;
    bool failed;
};

/* `count` times `size` bytes of zeros, aligned for anything; NULL on failure. Borrowed until the region is
 * released. */
void *tr_region_take(struct tr_region *region, size_t count, size_t size);
/* printf into a block; NULL on failure. */
char *tr_region_format(struct tr_region *region, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Frees all blocks. */
void tr_region_release(struct tr_region *region);

#endif
