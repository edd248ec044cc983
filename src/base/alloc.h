/* Allocation, in one place, so that tests can count it, fail it and find leaks.
 *
 * Invariant: the library allocates through these functions only. Blocks of tr_alloc_aligned() must be freed
 * with tr_free() like all others.
 */
#ifndef TR_BASE_ALLOC_H
#define TR_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TR_CACHE_LINE 64

/* All return NULL on failure and record a TR_ENOMEM message with the size; `count * size` is checked for
   overflow. A size of 0 gives a valid block. Freed with tr_free(). Any thread. */
void *tr_alloc(size_t count, size_t size);
void *tr_alloc_zero(size_t count, size_t size);
/* Grows or shrinks; on failure the old block stays valid. */
void *tr_realloc(void *block, size_t count, size_t size);
/* Makes room for one more element after `count` in an array that grows at powers of two; `array` is the
   address of its pointer, at first NULL. False on failure, when the old block stays valid. */
bool tr_grow(void *array, int64_t count, size_t size);
/* For arrays that vectors or devices read: aligned to a cache line, to 2 MiB with a huge-page hint when
 * large. */
void *tr_alloc_aligned(size_t count, size_t size);
char *tr_strdup(const char *text);
/* printf into a fresh string, NULL on failure. */
char *tr_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tr_free(void *block);
/* tr_alloc() and tr_free() as the functions of a z_stream (zlib.h); `opaque` is not used. */
void *tr_zlib_alloc(void *opaque, unsigned count, unsigned size);
void tr_zlib_free(void *opaque, void *block);
/* Declares that the contents of a part of a block are no longer used; they are then undefined. Whole pages
   return to the system until they are written again. A hint. */
void tr_discard(void *memory, size_t bytes);

/* For tests. The hook is called before each allocation with the size; if it returns non-zero, the
   allocation fails. Not safe while other threads allocate. NULL removes it. */
typedef int (*tr_alloc_hook)(size_t size, void *user);
void tr_alloc_set_hook(tr_alloc_hook hook, void *user);
/* Blocks allocated and not yet freed. */
int64_t tr_alloc_live(void);
/* Allocations made so far. */
int64_t tr_alloc_total(void);

#endif
