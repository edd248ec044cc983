#include "device/functions.h"

#include "base/multiversion.h"
#include "base/numbers/mathf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Compiled for machines with FMA instructions as well, as ref's chains are: fmaf() is a slow call without. By
   level of the architecture: a processor's name is true of that processor only. */
#if TR_HAVE_MULTIVERSION && __GNUC__ >= 12
#define FOR_FAST_MACHINES TR_MULTIVERSION("arch=x86-64-v4", "arch=x86-64-v3")
#else
#define FOR_FAST_MACHINES
#endif

void functions_inputs(uint64_t first, uint64_t stride, int count, float *in)
{
    for (int i = 0; i < count; i++) in[i] = tr_mathf_float((int32_t)(uint32_t)(first + (uint64_t)i * stride));
}

/* One function at a time, and results put in their order afterwards: compilers make vectors of such loops. */
FOR_FAST_MACHINES
void functions_of(const float *in, int count, float *out)
{
    float part[FUNCTIONS][FUNCTIONS_BLOCK];
    for (int first = 0; first < count; first += FUNCTIONS_BLOCK, in += FUNCTIONS_BLOCK) {
        for (int i = 0; i < FUNCTIONS_BLOCK; i++) part[0][i] = tr_expf(in[i]);
        for (int i = 0; i < FUNCTIONS_BLOCK; i++) part[1][i] = tr_logf(in[i]);
        for (int i = 0; i < FUNCTIONS_BLOCK; i++) part[2][i] = tr_tanhf(in[i]);
        for (int i = 0; i < FUNCTIONS_BLOCK; i++) part[3][i] = tr_sigmoidf(in[i]);
        for (int i = 0; i < FUNCTIONS_BLOCK; i++) part[4][i] = tr_erff(in[i]);
        for (int i = 0; i < FUNCTIONS_BLOCK; i++)
            for (int f = 0; f < FUNCTIONS; f++) *out++ = part[f][i];
    }
}

void functions_compare(const char *who, const float *in, int count, const float *expected, const float *got)
{
    static const char *const names[FUNCTIONS] = {"exp", "log", "tanh", "sigmoid", "erf"};
    if (memcmp(expected, got, (size_t)count * FUNCTIONS * sizeof *got) == 0) return;
    for (int i = 0; i < count * FUNCTIONS; i++) {
        if (memcmp(&expected[i], &got[i], sizeof *got) == 0 ||
            (expected[i] != expected[i] && got[i] != got[i]))
            continue;
        fail_msg("%s: %s(%a) is %a, should be %a", who, names[i % FUNCTIONS], (double)in[i / FUNCTIONS],
                 (double)got[i], (double)expected[i]);
    }
}
