/* How much of each cache a member of the team may fill with a block of matrices. The bits of results do
 * not depend on it.
 *
 * Sizes of blocks were measured on processors with the caches below, and are scaled elsewhere.
 */
#ifndef TR_DEVICE_CPU_ROOM_H
#define TR_DEVICE_CPU_ROOM_H

#include "base/caches.h"

struct cpu_room {
    int64_t first, second, last; /* bytes of a cache; last: the third level or, without one, the second */
    int64_t shared;              /* bytes of memory for scratch that all members read */
};

#define CPU_ROOM_FIRST  ((int64_t)32 << 10)
#define CPU_ROOM_SECOND ((int64_t)1 << 20)
#define CPU_ROOM_LAST   ((int64_t)16 << 20)
#define CPU_ROOM_SHARED ((int64_t)20 << 20)

/* The room of each of `threads` members that run on `processors`. Where a cache is not known, it is the
   one above. */
struct cpu_room cpu_room_of(const struct tr_caches *caches, int threads, int processors);

/* Scales `measured`, found with the cache above, to this cache; at least `least`. */
static inline int64_t cpu_room_first(const struct cpu_room *room, int64_t measured, int64_t least)
{
    const int64_t count = measured * room->first / CPU_ROOM_FIRST;
    return count < least ? least : count;
}

static inline int64_t cpu_room_second(const struct cpu_room *room, int64_t measured, int64_t least)
{
    const int64_t count = measured * room->second / CPU_ROOM_SECOND;
    return count < least ? least : count;
}

static inline int64_t cpu_room_last(const struct cpu_room *room, int64_t measured, int64_t least)
{
    const int64_t count = measured * room->last / CPU_ROOM_LAST;
    return count < least ? least : count;
}

#endif
