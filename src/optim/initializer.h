/* Initial values of parameters.
 *
 * An element depends only on the seed, the number of the parameter and the element's index, so that any
 * worker can fill any range. Arithmetic is double without contraction and libm, rounded to float once: the
 * same bits everywhere.
 */
#ifndef TR_OPTIM_INITIALIZER_H
#define TR_OPTIM_INITIALIZER_H

#include "base/options/config.h"
#include "base/options/registry.h"
#include "base/numbers/rng.h"

enum tr_initializer_kind {
    TR_INIT_CONSTANT,         /* value */
    TR_INIT_ZEROS,            /* 0 */
    TR_INIT_ONES,             /* 1 */
    TR_INIT_NORMAL,           /* mean, deviation */
    TR_INIT_TRUNCATED_NORMAL, /* the same, restricted to mean +- 2 deviations; `deviation` is that of the
                                 unrestricted distribution */
    TR_INIT_UNIFORM,          /* low .. high, both of which can occur through rounding to float */
    TR_INIT_GLOROT_UNIFORM,   /* +- scale * sqrt(6 / (fan_in + fan_out)) */
    TR_INIT_GLOROT_NORMAL,    /* deviation scale * sqrt(2 / (fan_in + fan_out)) */
    TR_INIT_HE_UNIFORM,       /* +- scale * sqrt(6 / fan_in) */
    TR_INIT_HE_NORMAL         /* deviation scale * sqrt(2 / fan_in) */
};

struct tr_initializer {
    enum tr_initializer_kind kind;
    double value;           /* CONSTANT */
    double mean, deviation; /* NORMAL, TRUNCATED_NORMAL */
    double low, high;       /* UNIFORM */
    double scale;           /* GLOROT, HE */
};

/* All kinds, in the order of the enum. */
extern const struct tr_registry tr_initializers;

/* Reads an initializer: a number (constant), a name ("he_normal"), or one name with its options
   ({truncated_normal: 0.1}, {normal: {mean: 1, deviation: 0.1}}, {uniform: [-0.1, 0.3]}). With node == NULL,
   `fallback` is read in the same way instead (a bad one is our bug: assert). TR_EINVAL with the location;
   TR_ENOMEM. */
tr_status tr_initializer_read(const tr_config *node, const char *fallback, struct tr_initializer *out);

/* The form that tr_initializer_read() reads, in flow style. Returned, free with tr_free(). */
tr_status tr_initializer_dump(const struct tr_initializer *initializer, char **out);

/* Writes elements [begin, end) of a parameter to out[0 .. end - begin). `key` is tr_rng_key_make(seed,
   TR_RNG_INIT), `parameter` the parameter's number in the model. fan_in and fan_out (>= 1) are the products
   read and written per unit: in and out of a dense layer, kernel_h * kernel_w * channels of a convolution.
   Any thread, any split into ranges. */
void tr_initializer_fill(const struct tr_initializer *initializer, int64_t fan_in, int64_t fan_out,
                         tr_rng_key key, uint32_t parameter, int64_t begin, int64_t end, float *out);

/* The section of the manual on initializers. Returned, free with tr_free(). TR_ENOMEM. */
tr_status tr_initializer_markdown(char **out);

#endif
