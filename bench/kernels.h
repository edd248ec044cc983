/* Shared by the parts of the kernel benchmark. */
#ifndef TR_BENCH_KERNELS_H
#define TR_BENCH_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

/* The three passes of a layer. */
enum pass { PASS_FORWARD, PASS_DATA, PASS_WEIGHTS, PASSES };

/* A layer to be measured. Dense: rows x in x out. Convolution: square images and kernels. */
struct dense_shape {
    int rows, in, out, microbatches;
};

struct conv_shape {
    int rows, in_c, out_c, in, out, kernel, pad, microbatches, stride;
};

/* Monotonic time in seconds. */
double seconds(void);

/* Calls `function` until half a second is over, at least three times, and returns the fastest in seconds. */
double fastest(void (*function)(void *arguments), void *arguments);

/* Other libraries, by pass. Return false if the build did not find the library, or the library lacks the
   operation; else *time is the fastest of several. */
extern const bool have_openblas, have_onednn;
/* The processor for which OpenBLAS chose its kernels; it may be older than the machine's. */
const char *openblas_core(void);
bool openblas_dense(const struct dense_shape *shape, enum pass pass, int threads, double *time);
bool onednn_conv(const struct conv_shape *shape, enum pass pass, int threads, double *time);

#endif
