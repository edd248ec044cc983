/* What is kept for other runs: binaries of programs, and that a device passed its test.
 *
 * One file for each, "<key>.kept" in the directory of struct tr_device_choice. A key is a SHA-256 over all
 * that the contents follow from. What is there is hostile until its digest fits and it is the user's own;
 * what does not fit counts as missing, and is replaced. Whatever goes wrong here costs time only, and is no
 * failure.
 */
#ifndef TR_DEVICE_GPU_CACHE_H
#define TR_DEVICE_GPU_CACHE_H

#include "base/files/file.h"
#include "base/numbers/hash.h"

#include <stdbool.h>

/* A key under way: a SHA-256 over texts, each with its length. */
struct gpu_key {
    tr_sha256 *hash; /* NULL: it failed */
};

void gpu_key_begin(struct gpu_key *key);
void gpu_key_add(struct gpu_key *key, const char *text);
/* False where the key cannot be had. */
bool gpu_key_end(struct gpu_key *key, char out[TR_SHA256_TEXT]);

/* What is kept under a key: true, and *content after the first `*skip` bytes of what *file holds; released
   with tr_file_content_free(). `directory` may be NULL. */
bool gpu_cache_read(const char *directory, const char *key, struct tr_file_content *file, size_t *skip);
/* Keeps it, where that can be done. */
void gpu_cache_write(const char *directory, const char *key, const void *data, size_t bytes);

#endif
