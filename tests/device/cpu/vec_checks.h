/* Checks of the vector layer of one instruction set against scalar code; compiled once per instruction set.
 */
#ifndef TR_TESTS_VEC_CHECKS_H
#define TR_TESTS_VEC_CHECKS_H

struct vec_check {
    const char *name;
    /* NULL, or what is wrong, in static storage. */
    const char *(*run)(void);
};

struct vec_checks {
    const char *isa;
    int count;
    const struct vec_check *check;
    /* As functions_of() of device/functions.h. */
    void (*functions)(const float *in, int count, float *out);
};

#endif
