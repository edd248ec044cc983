/* Files of numbers that another program gave the tokens of a text: a NumPy array [count] of integers, or
 * unsigned integers of 16 bits one after the other, the low byte first.
 */
#ifndef TR_DATA_TOKEN_IDS_H
#define TR_DATA_TOKEN_IDS_H

#include "trireme/status.h"

#include <stddef.h>
#include <stdint.h>

/* Reads a file's bytes; `path` is for messages. All numbers are below `ids`. *tokens is returned, free with
   tr_free(). TR_EFORMAT names the first number that is none of them; TR_EUNSUPPORTED, TR_ENOMEM. */
tr_status tr_token_ids_read(const char *path, const uint8_t *data, size_t size, int32_t ids, int32_t **tokens,
                            int64_t *count);

#endif
