#include "device/ref/loops/chain.h"

#include "base/alloc.h"
#include "base/multiversion.h"

#include <math.h>

/* Without FMA instructions fmaf() is a call into the C library, correctly rounded but 20 times slower. So
   the loops are compiled twice; since fmaf() is correctly rounded, both give the same bits. */
#if TR_HAVE_MULTIVERSION
#define FUSES __builtin_cpu_supports("fma")
#elif defined(__FP_FAST_FMAF)
#define FUSES true
#else
#define FUSES false
#endif

bool ref_chains_fuse(void)
{
    return FUSES;
}

TR_MULTIVERSION("fma")
static void chain_rows(int64_t depth, int64_t width, const float *restrict a, const float *restrict b,
                       float *restrict acc)
{
    for (int64_t k = 0; k < depth; k++)
        for (int64_t j = 0; j < width; j++) acc[j] = fmaf(a[k], b[k * width + j], acc[j]);
}

TR_MULTIVERSION("fma")
static void chain_outer(int64_t height, int64_t width, const float *restrict a, const float *restrict b,
                        float *restrict acc)
{
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < width; j++) acc[i * width + j] = fmaf(a[i], b[j], acc[i * width + j]);
}

void ref_chain_rows(int64_t depth, int64_t width, const float *a, const float *b, float *acc)
{
    chain_rows(depth, width, a, b, acc);
}

void ref_chain_outer(int64_t height, int64_t width, const float *a, const float *b, float *acc)
{
    chain_outer(height, width, a, b, acc);
}

float *ref_transposed(int64_t blocks, int64_t rows, int64_t columns, const float *from)
{
    float *to = tr_alloc((size_t)(blocks * rows * columns), sizeof *to);
    if (!to) return NULL;
    for (int64_t block = 0; block < blocks; block++) {
        int64_t at = block * rows * columns;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) to[at + j * rows + i] = from[at + i * columns + j];
    }
    return to;
}
