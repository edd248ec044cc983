/* Windows of ranks of a group: extents of the file that they share, each after a page that counts its users.
 *
 * No rank needs another's descriptors, so this works wherever the ranks run. The last user of an extent
 * releases its memory; its place in the file is not reused.
 */
#ifndef TR_COMM_LOCAL_EXTENTS_H
#define TR_COMM_LOCAL_EXTENTS_H

#include "comm/local/area.h"

struct local_extents {
    const struct local_area *area;
    struct local_extent *first; /* mapped here */
};

/* Implement the slots `share_memory`, `map` and `unmap`. */
tr_status tr_local_extent_share(struct local_extents *extents, size_t bytes, size_t begin, size_t end,
                                void **memory, char key[TR_SHARE_KEY]);
tr_status tr_local_extent_map(struct local_extents *extents, size_t bytes, const char key[TR_SHARE_KEY],
                              void **memory);
void tr_local_extent_unmap(struct local_extents *extents, void *memory);
/* Forgets the remaining mappings, which stay until the process ends. */
void tr_local_extents_release(struct local_extents *extents);

#endif
