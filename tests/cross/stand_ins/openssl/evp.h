/* Stands in for libcrypto's digests, of which there is SHA-256. */
#ifndef STAND_IN_EVP_H
#define STAND_IN_EVP_H

#include <stddef.h>

#define EVP_MAX_MD_SIZE 64

typedef struct evp_md_ctx EVP_MD_CTX;
typedef struct evp_md EVP_MD;

EVP_MD_CTX *EVP_MD_CTX_new(void);
void EVP_MD_CTX_free(EVP_MD_CTX *context);
const EVP_MD *EVP_sha256(void);
/* They return 1. */
int EVP_DigestInit_ex(EVP_MD_CTX *context, const EVP_MD *kind, void *engine);
int EVP_DigestUpdate(EVP_MD_CTX *context, const void *data, size_t size);
int EVP_DigestFinal_ex(EVP_MD_CTX *context, unsigned char *digest, unsigned *size);

#endif
