/* Blocks of a log's file, shared by its reader and its writer. */
#ifndef TR_STRATEGY_UPDATES_INTERNAL_H
#define TR_STRATEGY_UPDATES_INTERNAL_H

#include "base/files/file.h"
#include "strategy/updates/file.h"

/* State of a reader. */
struct tr_update_blocks {
    const uint8_t *bytes;
    size_t size, at; /* total; end of the blocks so far */
    uint32_t count, crc;
};

struct tr_update_block_view {
    int32_t kind;
    int64_t step;
    const uint8_t *data; /* [bytes] */
    size_t bytes;
};

/* The next block with a correct checksum; false: there is none. */
bool tr_update_block_next(struct tr_update_blocks *blocks, struct tr_update_block_view *out);
/* The bytes of a file; free with tr_file_content_free(). */
tr_status tr_update_file_content(const char *path, struct tr_file_content *out);

#endif
