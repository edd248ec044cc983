#include "base/numbers/hash.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <isa-l/crc.h>
#include <openssl/evp.h>
#include <stdbool.h>

/* ISA-L counts in int. */
#define CRC_CHUNK ((size_t)1 << 30)

uint32_t tr_crc32c(uint32_t crc, const void *data, size_t size)
{
    /* ISA-L's signature lacks the const; it only reads. */
    unsigned char *bytes = (unsigned char *)data;
    crc = ~crc;
    while (size > 0) {
        size_t chunk = size < CRC_CHUNK ? size : CRC_CHUNK;
        crc = crc32_iscsi(bytes, (int)chunk, crc);
        bytes += chunk;
        size -= chunk;
    }
    return ~crc;
}

uint32_t tr_crc32(uint32_t crc, const void *data, size_t size)
{
    return crc32_gzip_refl(crc, data, size);
}

struct tr_sha256 {
    EVP_MD_CTX *context;
    bool failed;
};

tr_status tr_sha256_begin(tr_sha256 **out)
{
    *out = NULL;
    tr_sha256 *hash = tr_alloc_zero(1, sizeof *hash);
    if (!hash) return TR_ENOMEM;
    tr_status status = TR_OK;
    hash->context = EVP_MD_CTX_new();
    if (!hash->context) {
        status = tr_fail(TR_ENOMEM, "out of memory: no room for a SHA-256");
        goto out;
    }
    if (EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL) != 1) {
        status = tr_fail(TR_EUNSUPPORTED, "libcrypto refuses SHA-256; check its configuration (openssl.cnf)");
        goto out;
    }
    *out = hash;
    hash = NULL;
out:
    tr_sha256_destroy(&hash);
    return status;
}

void tr_sha256_add(tr_sha256 *hash, const void *data, size_t size)
{
    if (size > 0 && EVP_DigestUpdate(hash->context, data, size) != 1) hash->failed = true;
}

void tr_sha256_add_number(tr_sha256 *hash, int64_t number)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)((uint64_t)number >> (8 * i));
    tr_sha256_add(hash, bytes, sizeof bytes);
}

tr_status tr_sha256_end(tr_sha256 **hash, char text[TR_SHA256_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    bool failed = (*hash)->failed || EVP_DigestFinal_ex((*hash)->context, digest, &size) != 1 ||
                  size != (TR_SHA256_TEXT - 1) / 2;
    tr_sha256_destroy(hash);
    text[0] = '\0';
    if (failed) return tr_fail(TR_EUNSUPPORTED, "libcrypto failed to compute a SHA-256");
    for (unsigned i = 0; i < size; i++) {
        text[2 * i] = digits[digest[i] >> 4];
        text[2 * i + 1] = digits[digest[i] & 15];
    }
    text[2 * size] = '\0';
    return TR_OK;
}

void tr_sha256_destroy(tr_sha256 **hash)
{
    if (!*hash) return;
    EVP_MD_CTX_free((*hash)->context);
    tr_free(*hash);
    *hash = NULL;
}

tr_status tr_sha256_of(const void *data, size_t size, char text[TR_SHA256_TEXT])
{
    tr_sha256 *hash;
    TR_TRY(tr_sha256_begin(&hash));
    tr_sha256_add(hash, data, size);
    return tr_sha256_end(&hash, text);
}
