/* Files for tests of formats: a directory of their own, raw bytes, gzip and zlib packing. */
#ifndef TESTS_DATA_SUPPORT_H
#define TESTS_DATA_SUPPORT_H

#include "trireme/data.h"

#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t *data; /* free with free() */
    size_t size;
};

/* A fresh directory for this program, removed with all it holds at exit. Static storage. */
const char *test_directory(void);
/* "<directory>/<name>" in static storage; the last 8 results are valid. */
const char *test_path(const char *name);
/* Writes a file in the test directory; a text ends with its NUL, which is not written. */
void write_file(const char *name, const void *data, size_t size);
void write_text(const char *name, const char *text);
struct bytes read_file(const char *path);

/* `window_bits` as zlib's deflateInit2: 31 gzip, 15 zlib. */
struct bytes pack(const void *data, size_t size, int window_bits);

/* Opens `description` in the test directory and closes the source again if that worked. */
tr_status try_open(const char *description);
/* Opens, or fails the test with the message. */
tr_source *must_open(const char *description);
/* Fails the test unless opening gives `status` and a message with `part` in it. */
void expect_refusal(const char *description, tr_status status, const char *part);
/* Refuses each allocation of opening in turn: fails the test unless that gives TR_ENOMEM and leaves nothing
   behind. */
void expect_out_of_memory(const char *description);
/* Fails unless both sources hold the same: figures, names of classes, state, digest, every example, what is
   shown. Examples of at most 1024 numbers and labels. */
void expect_same_source(const tr_source *a, const tr_source *b);

#endif
