#include "device/cpu/room.h"

/* Limits of the sizes that blocks follow. A larger first-level cache than the measured one gains nothing:
   a tile of 256 steps reaches 98 % of the peak; it is not divided, since data only pass through it. A
   virtual machine often shares the third-level cache that it reports with others. Where that leaves little
   for each, packing and transforming again costs more than reading from memory. */
#define FIRST_LEAST  (CPU_ROOM_FIRST / 4)
#define FIRST_MOST   CPU_ROOM_FIRST
#define SECOND_LEAST (CPU_ROOM_SECOND / 8)
#define SECOND_MOST  (CPU_ROOM_SECOND * 4)
#define LAST_LEAST   (CPU_ROOM_LAST / 4)
#define LAST_MOST    CPU_ROOM_LAST

static int64_t within(int64_t bytes, int64_t least, int64_t most)
{
    return bytes < least ? least : bytes > most ? most : bytes;
}

/* A member's part of a cache, if members are spread evenly over the processors. */
static int64_t part_of(const struct tr_cache_level *cache, int threads, int processors)
{
    const int64_t sharing = ((int64_t)cache->processors * threads + processors - 1) / processors;
    return cache->bytes / within(sharing, 1, cache->processors);
}

struct cpu_room cpu_room_of(const struct tr_caches *caches, int threads, int processors)
{
    const struct tr_cache_level *first = &caches->level[0], *second = &caches->level[1],
                                *last = &caches->level[2];
    struct cpu_room room = {
        .first = CPU_ROOM_FIRST, .second = CPU_ROOM_SECOND, .last = CPU_ROOM_LAST, .shared = CPU_ROOM_SHARED};
    if (first->bytes > 0) room.first = within(first->bytes, FIRST_LEAST, FIRST_MOST);
    if (second->bytes > 0)
        room.second = within(part_of(second, threads, processors), SECOND_LEAST, SECOND_MOST);
    if (last->bytes == 0) last = second;
    if (last->bytes > 0) room.last = within(part_of(last, threads, processors), LAST_LEAST, LAST_MOST);
    return room;
}
