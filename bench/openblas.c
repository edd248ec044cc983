/* The dense passes by OpenBLAS. */
#include "kernels.h"

#if TR_HAVE_OPENBLAS
#include <cblas.h>
#include <stdlib.h>

const bool have_openblas = true;

const char *openblas_core(void)
{
    return openblas_get_corename();
}

struct product {
    const struct dense_shape *shape;
    enum pass pass;
    float *x, *w, *y;
};

static void multiply(void *arguments)
{
    const struct product *p = arguments;
    const int rows = p->shape->rows, in = p->shape->in, out = p->shape->out;
    if (p->pass == PASS_FORWARD)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, out, in, 1.0f, p->x, in, p->w, out, 0.0f,
                    p->y, out);
    else if (p->pass == PASS_DATA)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, in, out, 1.0f, p->y, out, p->w, out, 0.0f,
                    p->x, in);
    else
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, in, out, rows, 1.0f, p->x, in, p->y, out, 0.0f,
                    p->w, out);
}

bool openblas_dense(const struct dense_shape *shape, enum pass pass, int threads, double *time)
{
    struct product p = {shape, pass, calloc((size_t)shape->rows * (size_t)shape->in, sizeof(float)),
                        calloc((size_t)shape->in * (size_t)shape->out, sizeof(float)),
                        calloc((size_t)shape->rows * (size_t)shape->out, sizeof(float))};
    const bool done = p.x && p.w && p.y;
    openblas_set_num_threads(threads);
    if (done) *time = fastest(multiply, &p);
    free(p.x);
    free(p.w);
    free(p.y);
    return done;
}
#else
const bool have_openblas = false;

const char *openblas_core(void)
{
    return "";
}

bool openblas_dense(const struct dense_shape *shape, enum pass pass, int threads, double *time)
{
    (void)shape, (void)pass, (void)threads, (void)time;
    return false;
}
#endif
