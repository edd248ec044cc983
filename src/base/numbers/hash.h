/* Checksums: CRC-32C against accidents, CRC-32 for other programs' formats, SHA-256 for identity. A hash for
 * tables of names. */
#ifndef TR_BASE_HASH_H
#define TR_BASE_HASH_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli) of `size` bytes which follow bytes whose CRC is `crc`; start with 0. Any thread. */
uint32_t tr_crc32c(uint32_t crc, const void *data, size_t size);

/* CRC-32 (IEEE 802.3, as in zip and PNG files), likewise. Any thread. */
uint32_t tr_crc32(uint32_t crc, const void *data, size_t size);

/* The form in which TFRecord files store a CRC-32C: a CRC over data that contain CRCs is weak, so they are
 * rotated and shifted. */
static inline uint32_t tr_crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* For tables of names in memory: FNV-1a of 64 bits (Fowler, Noll, Vo), folded to 32. Any thread. */
static inline uint32_t tr_hash_name(const char *name, size_t length)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++) h = (h ^ (uint8_t)name[i]) * 0x100000001b3u;
    return (uint32_t)(h ^ h >> 32);
}

/* Room for 64 hexadecimal digits and a NUL. */
#define TR_SHA256_TEXT 65

/* A SHA-256 itself. */
#define TR_SHA256_BYTES 32
struct tr_sha256_sum {
    uint8_t byte[TR_SHA256_BYTES];
};
/* As lower-case hexadecimal digits and a NUL. Returns `text`. */
const char *tr_sha256_text(const struct tr_sha256_sum *sum, char text[TR_SHA256_TEXT]);
/* False, and *out is undefined, for anything but 64 lower-case hexadecimal digits. */
bool tr_sha256_parse(const char *text, struct tr_sha256_sum *out);

/* A SHA-256 being computed. Used by one thread at a time. */
typedef struct tr_sha256 tr_sha256;

/* Returned, end with tr_sha256_end() or tr_sha256_destroy(). TR_ENOMEM, TR_EUNSUPPORTED (libcrypto refuses
 * SHA-256). */
tr_status tr_sha256_begin(tr_sha256 **out);
/* A failure is kept and reported by tr_sha256_end(). */
void tr_sha256_add(tr_sha256 *hash, const void *data, size_t size);
/* Adds a number in a form that does not depend on the machine: 8 bytes, the lowest first. */
void tr_sha256_add_number(tr_sha256 *hash, int64_t number);
/* The digest of the bytes added since the beginning, or since the last digest; begins anew. After a
   failure only tr_sha256_destroy() is allowed. */
tr_status tr_sha256_take(tr_sha256 *hash, struct tr_sha256_sum *out);
/* Writes the digest as lower-case hexadecimal digits and a NUL; destroys and nulls the handle, also on
 * failure. */
tr_status tr_sha256_end(tr_sha256 **hash, char text[TR_SHA256_TEXT]);
/* Accepts NULL, nulls the handle. */
void tr_sha256_destroy(tr_sha256 **hash);
/* The whole digest in one call. Any thread. */
tr_status tr_sha256_of(const void *data, size_t size, char text[TR_SHA256_TEXT]);

#endif
