#include "io/region.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CHUNK ((size_t)16 << 10)
#define GRAIN _Alignof(max_align_t)

struct tr_region_chunk {
    struct tr_region_chunk *older;
    size_t size, used;
    _Alignas(max_align_t) unsigned char bytes[];
};

void *tr_region_take(struct tr_region *region, size_t count, size_t size)
{
    size_t bytes, rounded = 0;
    bool overflow = __builtin_mul_overflow(count, size, &bytes) ||
                    __builtin_add_overflow(bytes, GRAIN - 1, &rounded) || rounded > SIZE_MAX / 2;
    rounded &= ~(GRAIN - 1);
    struct tr_region_chunk *chunk = region->newest;
    if (overflow || !chunk || chunk->size - chunk->used < rounded) {
        size_t room = !overflow && rounded > CHUNK ? rounded : CHUNK;
        chunk = overflow ? NULL : tr_alloc_zero(1, sizeof *chunk + room);
        if (!chunk) {
            region->failed = true;
            return NULL;
        }
        *chunk = (struct tr_region_chunk){.older = region->newest, .size = room};
        region->newest = chunk;
    }
    void *block = chunk->bytes + chunk->used;
    chunk->used += rounded;
    return block;
}

char *tr_region_format(struct tr_region *region, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : tr_region_take(region, (size_t)length + 1, 1);
    if (text) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    if (!text) region->failed = true;
    return text;
}

void tr_region_release(struct tr_region *region)
{
    while (region->newest) {
        struct tr_region_chunk *older = region->newest->older;
        tr_free(region->newest);
        region->newest = older;
    }
    region->failed = false;
}
