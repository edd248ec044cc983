#include "base/numbers/hash.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <isa-l/crc.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <string.h>

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

/* ---- as text ---- */

static const char digits[] = "0123456789abcdef";

const char *tr_sha256_text(const struct tr_sha256_sum *sum, char text[TR_SHA256_TEXT])
{
    for (int i = 0; i < TR_SHA256_BYTES; i++) {
        text[2 * i] = digits[sum->byte[i] >> 4];
        text[2 * i + 1] = digits[sum->byte[i] & 15];
    }
    text[TR_SHA256_TEXT - 1] = '\0';
    return text;
}

bool tr_sha256_parse(const char *text, struct tr_sha256_sum *out)
{
    if (strlen(text) != TR_SHA256_TEXT - 1) return false;
    for (int i = 0; i < TR_SHA256_TEXT - 1; i++) {
        const char *digit = strchr(digits, text[i]);
        if (!digit) return false;
        unsigned value = (unsigned)(digit - digits);
        out->byte[i / 2] = (uint8_t)(i % 2 ? out->byte[i / 2] | value : value << 4);
    }
    return true;
}

/* ---- SHA-256 ---- */

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

static tr_status finish(tr_sha256 *hash, struct tr_sha256_sum *out)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (hash->failed || EVP_DigestFinal_ex(hash->context, digest, &size) != 1 || size != sizeof out->byte)
        return tr_fail(TR_EUNSUPPORTED, "libcrypto failed to compute a SHA-256");
    memcpy(out->byte, digest, sizeof out->byte);
    return TR_OK;
}

tr_status tr_sha256_take(tr_sha256 *hash, struct tr_sha256_sum *out)
{
    TR_TRY(finish(hash, out));
    /* Without an algorithm, OpenSSL uses the context's present one again. */
    if (EVP_DigestInit_ex(hash->context, NULL, NULL) == 1) return TR_OK;
    return tr_fail(TR_EUNSUPPORTED, "libcrypto refuses another SHA-256");
}

tr_status tr_sha256_end(tr_sha256 **hash, char text[TR_SHA256_TEXT])
{
    struct tr_sha256_sum sum;
    text[0] = '\0';
    tr_status status = finish(*hash, &sum);
    tr_sha256_destroy(hash);
    if (status == TR_OK) tr_sha256_text(&sum, text);
    return status;
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
