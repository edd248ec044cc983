/* .npy files, NumPy's format of one array, and .npz files, archives of them.
 *
 *     6 bytes    93 'N' 'U' 'M' 'P' 'Y'
 *     2 bytes    version: 1 0, or 2 0, or 3 0
 *     2 bytes    N, little-endian; 4 bytes from version 2 on
 *     N bytes    a Python dictionary, padded with spaces to align the data, ending with a line feed:
 *                {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 784), }
 *     the rest   the data: here in C order, the last dimension fastest
 *
 * An .npz file is a zip archive (io/zip.h) with a member NAME.npy for each array.
 */
#ifndef TR_IO_NPY_H
#define TR_IO_NPY_H

#include "io/safetensors.h"

/* The facts in the header, and where the data are. */
struct tr_npy {
    enum tr_dtype dtype; /* F64, F32, F16, BOOL and the integers */
    bool big_endian;     /* numbers of several bytes have the highest byte first */
    int rank;
    int64_t shape[TR_STORED_RANK];
    size_t offset; /* of the data in the file */
    size_t bytes;  /* of the data: all that follows the header */
};

/* Parses the header of a file in memory, `size` bytes of a file called `path` in messages, both borrowed
   for the call, and checks that the data fill the rest. TR_EFORMAT: not an .npy file, or damaged.
   TR_EUNSUPPORTED: an array that the program does not read (in Fortran order, of objects, records, texts,
   complex numbers), with what to do. */
tr_status tr_npy_parse(const char *path, const uint8_t *data, size_t size, struct tr_npy *out);

/* The bytes before the data of a tensor. Returned, free with tr_free(). TR_ENOMEM; TR_EINVAL for a bad shape
   and for types that NumPy does not have. */
tr_status tr_npy_header(const struct tr_stored_tensor *tensor, uint8_t **header, size_t *size);

/* Writes an .npz file that replaces `path` once it is complete. Everything is borrowed for the call.
   TR_EIO, TR_ENOMEM, TR_EINVAL for names and shapes that cannot be written. */
tr_status tr_npz_replace(const tr_file_system *files, const char *path,
                         const struct tr_stored_tensor *tensors, int64_t count);

#endif
