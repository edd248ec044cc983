/* IDX files (the format of MNIST): big-endian 32-bit numbers
 *
 *     magic      00 00 type dimensions     type 08: unsigned bytes, the only one read here
 *     sizes      one number per dimension, the number of examples first
 *     contents   bytes, last dimension fastest
 *
 * plain or gzip. The sizes must give exactly the length of the file.
 */
#ifndef TR_DATA_IDX_H
#define TR_DATA_IDX_H

#include "data/source.h"

struct tr_idx {
    int dimensions;  /* 1 to 4 */
    int64_t size[4]; /* each at least 1; 1 beyond `dimensions` */
    int64_t bytes;   /* their product */
    uint8_t *data;
};

/* Reads a whole file. Returned in *idx, free with tr_idx_free(). Any thread. */
tr_status tr_idx_read(const char *path, struct tr_idx *idx);
/* The same without the contents: `data` is NULL, and what is packed after the sizes is not looked at. */
tr_status tr_idx_read_sizes(const char *path, struct tr_idx *idx);
void tr_idx_free(struct tr_idx *idx);

/* {images: PATH, labels: PATH, classes: N}: images of [count][height][width] or
   [count][height][width][channels], labels of [count]. */
extern const struct tr_source_format tr_source_format_idx;

#endif
