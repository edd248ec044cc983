/* The two loops of all matrix-like operations of `ref`, and the transposition that some need.
 *
 * A chain is acc = fma(a[k], b[k], acc) with k ascending. Both loops advance many chains at once: the
 * order between chains is free, the order within each is not.
 */
#ifndef TR_DEVICE_REF_CHAIN_H
#define TR_DEVICE_REF_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

/* Continues acc[j] with a[k] * b[k][j], k ascending. a [depth], b [depth][width], acc [width], which
   overlaps neither. Any thread. */
void ref_chain_rows(int64_t depth, int64_t width, const float *a, const float *b, float *acc);

/* Continues acc[i][j] with a[i] * b[j]. a [height], b [width], acc [height][width], which overlaps
   neither. Any thread. */
void ref_chain_outer(int64_t height, int64_t width, const float *a, const float *b, float *acc);

/* Whether both use FMA instructions on this machine, and not the C library's function. */
bool ref_chains_fuse(void);

/* A copy of `from` [blocks][rows][columns] as [blocks][columns][rows]; NULL when memory is lacking. Returned,
   free with tr_free(). Any thread. */
float *ref_transposed(int64_t blocks, int64_t rows, int64_t columns, const float *from);

#endif
