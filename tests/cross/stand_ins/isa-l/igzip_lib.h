/* Stands in for ISA-L's inflate, which refuses everything here: data for these tests are not packed. */
#ifndef STAND_IN_ISAL_IGZIP_H
#define STAND_IN_ISAL_IGZIP_H

#include <stdint.h>

enum { ISAL_GZIP = 1, ISAL_ZLIB = 3 };
enum { ISAL_INCORRECT_CHECKSUM = -5, ISAL_INVALID_BLOCK = -1, ISAL_DECOMP_OK = 0, ISAL_END_INPUT = 1 };
enum isal_block_state { ISAL_BLOCK_NEW_HDR, ISAL_BLOCK_FINISH };

struct inflate_state {
    uint8_t *next_out;
    uint32_t avail_out;
    uint8_t *next_in;
    uint32_t avail_in;
    enum isal_block_state block_state;
    uint32_t crc_flag;
};

static inline void isal_inflate_init(struct inflate_state *state)
{
    *state = (struct inflate_state){0};
}

static inline int isal_inflate(struct inflate_state *state)
{
    (void)state;
    return ISAL_INVALID_BLOCK;
}

#endif
