/* Packed streams, written byte by byte as RFC 1950 to 1952 say. */
#ifndef TESTS_DATA_FILES_PACKED_H
#define TESTS_DATA_FILES_PACKED_H

#include "data/files/inflate.h"

enum { GZIP_HEAD = 10, ZLIB_HEAD = 2, STORED_HEAD = 5, GZIP_TAIL = 8, ZLIB_TAIL = 4 };

/* A member of gzip or zlib, at most 65,535 bytes stored as they are; its size. */
size_t put_member(enum tr_packing packing, const void *data, size_t size, uint8_t *to);
/* A member of 1 + 258 * copies zeros in about 13 bits each copy: a literal, and copies of it. `to` is zeros,
   `zeros` the unpacked bytes. */
size_t put_zeros(enum tr_packing packing, const uint8_t *zeros, size_t copies, uint8_t *to);

#endif
