/* Deterministic damage to bytes, for tests that feed parsers. */
#ifndef TESTS_MUTATE_H
#define TESTS_MUTATE_H

#include "base/numbers/rng.h"

#include <stddef.h>
#include <string.h>

/* A stream of numbers for one test: number `index` of stream `stream`. */
static inline uint32_t mutate_number(uint32_t stream, uint32_t index)
{
    uint32_t block[4];
    tr_rng_philox((tr_rng_key){0x7472, 0x6d75}, stream, index, 0, 0, block);
    return block[0];
}

/* Copies `size` bytes from `from` to `to` (room for size + 64) with one to four changes: flipped bits, other
   bytes, bytes that parsers watch for, removed, doubled and inserted runs. Returns the new size. The same for
   the same `round`. */
static inline size_t mutate_bytes(uint32_t round, const char *from, size_t size, char *to)
{
    static const char special[] = "{}[]\":,\\0123456789-eE. \xff\x80\x01truefalsn";
    uint32_t next = 0;
    memcpy(to, from, size);
    int changes = 1 + (int)(mutate_number(round, next++) % 4);
    size_t room = 64;
    while (changes-- > 0 && size > 0) {
        uint32_t kind = mutate_number(round, next++) % 6, value = mutate_number(round, next++);
        size_t at = mutate_number(round, next++) % size, run = 1 + value % 16;
        if (run > size - at) run = size - at;
        switch (kind) {
        case 0:
            to[at] ^= (char)(1 << value % 8);
            break;
        case 1:
            to[at] = (char)value;
            break;
        case 2:
            to[at] = special[value % (sizeof special - 1)];
            break;
        case 3:
            memmove(to + at, to + at + run, size - at - run);
            size -= run;
            break;
        case 4:
            if (run > room) break;
            memmove(to + at + run, to + at, size - at); /* and so the run stands there twice */
            size += run;
            room -= run;
            break;
        default:
            if (room == 0) break;
            memmove(to + at + 1, to + at, size - at);
            to[at] = special[value % (sizeof special - 1)];
            size++;
            room--;
        }
    }
    return size;
}

#endif
