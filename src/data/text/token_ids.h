/* Files of token ids from another program: a NumPy array [count] of integers, or unsigned 16-bit integers
 * one after the other, low byte first.
 */
#ifndef TR_DATA_TOKEN_IDS_H
#define TR_DATA_TOKEN_IDS_H

#include "trireme/status.h"

#include <stddef.h>
#include <stdint.h>

/* Reads a file's bytes; `path` is for messages. All numbers must be below `ids`. *tokens is returned, free
   with tr_free(). TR_EFORMAT names the first number that is not; TR_EUNSUPPORTED, TR_ENOMEM. */
tr_status tr_token_ids_read(const char *path, const uint8_t *data, size_t size, int32_t ids, int32_t **tokens,
                            int64_t *count);

#endif
