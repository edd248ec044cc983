#include "device/gpu/cache.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file: this line, the digest of key and contents, a line feed, the contents. */
#define FIRST_LINE "trireme kept for a device 1\n"
#define DIGITS     (TR_SHA256_TEXT - 1)
#define HEAD       (sizeof FIRST_LINE - 1 + DIGITS + 1)
#define MOST_BYTES (UINT64_C(256) << 20)

/* ---- keys ---- */

void gpu_key_begin(struct gpu_key *key)
{
    if (tr_sha256_begin(&key->hash) != TR_OK) key->hash = NULL;
}

void gpu_key_add(struct gpu_key *key, const char *text)
{
    uint64_t length = strlen(text);
    if (!key->hash) return;
    tr_sha256_add(key->hash, &length, sizeof length);
    tr_sha256_add(key->hash, text, length);
}

bool gpu_key_end(struct gpu_key *key, char out[TR_SHA256_TEXT])
{
    return key->hash && tr_sha256_end(&key->hash, out) == TR_OK;
}

static bool digest_of(const char *name, const void *data, size_t bytes, char out[TR_SHA256_TEXT])
{
    tr_sha256 *hash;
    if (tr_sha256_begin(&hash) != TR_OK) return false;
    tr_sha256_add(hash, name, strlen(name));
    tr_sha256_add(hash, data, bytes);
    return tr_sha256_end(&hash, out) == TR_OK;
}

/* ---- files ---- */

static char *path_of(const char *directory, const char *key)
{
    char name[TR_SHA256_TEXT + sizeof ".kept"];
    snprintf(name, sizeof name, "%s.kept", key);
    return tr_path_join(directory, name);
}

/* Binaries are code: files and directory must belong to the user, and nobody else may write them. */
static bool is_own(const char *path, bool directory)
{
    struct stat facts;
    if (lstat(path, &facts) != 0) return false;
    return (directory ? S_ISDIR(facts.st_mode) : S_ISREG(facts.st_mode)) && facts.st_uid == geteuid() &&
           (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool gpu_cache_read(const char *directory, const char *key, struct tr_file_content *file, size_t *skip)
{
    char digest[TR_SHA256_TEXT];
    *file = (struct tr_file_content){0};
    *skip = HEAD;
    char *path = directory && is_own(directory, true) ? path_of(directory, key) : NULL;
    bool good = path && is_own(path, false) && tr_file_read(path, MOST_BYTES, file) == TR_OK;
    tr_free(path);
    good = good && file->size >= HEAD && memcmp(file->data, FIRST_LINE, sizeof FIRST_LINE - 1) == 0 &&
           digest_of(key, file->data + HEAD, file->size - HEAD, digest) &&
           memcmp(file->data + sizeof FIRST_LINE - 1, digest, DIGITS) == 0;
    if (!good) tr_file_content_free(file);
    return good;
}

static void write_file(const char *directory, const char *path, const char *text, size_t bytes)
{
    struct stat facts;
    if (stat(directory, &facts) != 0) {
        char *parent = tr_path_parent(directory);
        if (parent) (void)tr_file_make_directories(NULL, parent);
        tr_free(parent);
        (void)mkdir(directory, 0700);
    }
    if (!is_own(directory, true) || tr_file_write_atomic(NULL, path, text, bytes) != TR_OK) return;
    (void)chmod(path, 0600);
}

void gpu_cache_write(const char *directory, const char *key, const void *data, size_t bytes)
{
    char digest[TR_SHA256_TEXT];
    if (!directory || bytes > MOST_BYTES - HEAD || !digest_of(key, data, bytes, digest)) return;
    char *path = path_of(directory, key), *text = tr_alloc(HEAD + bytes, 1);
    if (path && text) {
        memcpy(text, FIRST_LINE, sizeof FIRST_LINE - 1);
        memcpy(text + sizeof FIRST_LINE - 1, digest, DIGITS);
        text[HEAD - 1] = '\n';
        memcpy(text + HEAD, data, bytes);
        write_file(directory, path, text, HEAD + bytes);
    }
    tr_free(text);
    tr_free(path);
}
