/* Results that are kept for later runs: binaries of programs, and that a device passed its self-test.
 *
 * Each is one file, "<key>.kept" in the directory of struct tr_device_choice. A key is a SHA-256 over all
 * inputs of the result. Files are hostile until the digest fits and the owner is the user; files that do
 * not fit count as missing, and are replaced. A fault of the cache only costs time, and is not reported as
 * a failure.
 */
#ifndef TR_DEVICE_GPU_CACHE_H
#define TR_DEVICE_GPU_CACHE_H

#include "base/files/file.h"
#include "base/numbers/hash.h"

#include <stdbool.h>

/* A key being computed: a SHA-256 over texts, each with its length. */
struct gpu_key {
    tr_sha256 *hash; /* NULL: it failed */
};

void gpu_key_begin(struct gpu_key *key);
void gpu_key_add(struct gpu_key *key, const char *text);
/* False where the key cannot be computed. */
bool gpu_key_end(struct gpu_key *key, char out[TR_SHA256_TEXT]);

/* The contents kept under a key: true, and *content is *file's data after the first `*skip` bytes; release
   with tr_file_content_free(). `directory` may be NULL. */
bool gpu_cache_read(const char *directory, const char *key, struct tr_file_content *file, size_t *skip);
/* Keeps contents under a key, where possible. */
void gpu_cache_write(const char *directory, const char *key, const void *data, size_t bytes);

#endif
