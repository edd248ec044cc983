/* Files of NumPy's arrays, version 1.0, written by the format's description. */
#ifndef TESTS_SUPPORT_FILES_NPY_H
#define TESTS_SUPPORT_FILES_NPY_H

#include "base/alloc.h"
#include "base/files/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* type: "<f4"; shape: "8, 6, 5", with a comma behind a single number. */
static inline void npy_write(const char *path, const char *type, const char *shape, const void *data,
                             size_t size)
{
    enum { HEAD = 128 };
    char *bytes = tr_alloc(HEAD + size, 1);
    if (!bytes) abort();
    memset(bytes, ' ', HEAD);
    memcpy(bytes, "\x93NUMPY\1\0\x76\0", 10);
    const int length =
        snprintf(bytes + 10, 118, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    bytes[10 + length] = ' ';
    bytes[HEAD - 1] = '\n';
    memcpy(bytes + HEAD, data, size);
    if (tr_file_write_atomic(NULL, path, bytes, HEAD + size) != TR_OK) abort();
    tr_free(bytes);
}

#endif
