/* The two loops that every matrix-like operation of `ref` is made of, and the transposition in front of some.
 *
 * A chain is acc = fma(a[k], b[k], acc) with k ascending. Both loops advance many chains side by side: which
 * of them moves first is free, the order inside each one is not.
 */
#ifndef TR_DEVICE_REF_CHAIN_H
#define TR_DEVICE_REF_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

/* acc[j] goes on with a[k] * b[k][j] for k ascending. a [depth], b [depth][width], acc [width], which
   overlaps neither. Any thread. */
void ref_chain_rows(int64_t depth, int64_t width, const float *a, const float *b, float *acc);

/* acc[i][j] goes on with a[i] * b[j]. a [height], b [width], acc [height][width], which overlaps neither.
   Any thread. */
void ref_chain_outer(int64_t height, int64_t width, const float *a, const float *b, float *acc);

/* Whether both take instructions for FMA on this machine, and not the C library's function. */
bool ref_chains_fuse(void);

/* A copy of `from` [blocks][rows][columns] as [blocks][columns][rows]; NULL when memory is lacking. Returned,
   free with tr_free(). Any thread. */
float *ref_transposed(int64_t blocks, int64_t rows, int64_t columns, const float *from);

#endif
