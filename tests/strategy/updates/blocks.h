/* The file of a log of updates, block by block as its header describes it, without the writer. */
#ifndef TESTS_STRATEGY_UPDATES_BLOCKS_H
#define TESTS_STRATEGY_UPDATES_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t at[4096];
    size_t size;
    uint32_t blocks, crc;
};

/* Adds a number of so many bytes, the lowest first; a text; bytes that are equal. */
void bytes_number(struct bytes *bytes, uint64_t number, int size);
void bytes_text(struct bytes *bytes, const char *text);
void bytes_fill(struct bytes *bytes, uint8_t byte, size_t count);
/* Adds a block with the data of `data`, whose checksum goes on from the blocks before. */
void bytes_block(struct bytes *bytes, uint32_t kind, const struct bytes *data, int64_t step);
/* The data of a session without digests, from its numbers: the version of the format, that of the arithmetic,
   mode, workers, servers, parts; staleness, first, steps. */
struct bytes bytes_session(const uint32_t numbers[6], int64_t staleness, int64_t first, int64_t steps);
/* Adds a record to the data of a block. */
void bytes_record(struct bytes *data, int64_t number, uint32_t missed, uint16_t worker, uint8_t kind);

#endif
