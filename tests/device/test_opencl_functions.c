/* exp, log, tanh, sigmoid and erf have the bits of base/mathf.h on the first OpenCL device: for a million
 * inputs spread over all of float32, or, when called with "all", for each of the 2^32.
 */
#include "device/gpu/gpu.h"
#include "support/opencl.h"

#include "base/alloc.h"
#include "base/mathf.h"

#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define FUNCTIONS 5
#define CHUNK     (1 << 20)
#define BLOCK     1024 /* divides CHUNK */

static const char *const names[FUNCTIONS] = {"exp", "log", "tanh", "sigmoid", "erf"};
static uint64_t stride = 4099; /* between the bits of inputs; odd, and prime */

/* Compiled for machines with FMA instructions as well, as ref's chains are: fmaf() is a slow call without. By
   level of the architecture: a processor's name is true of that processor only. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) &&     \
    defined(__GNUC__) && __GNUC__ >= 12
#define FOR_FAST_MACHINES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_FAST_MACHINES
#endif

/* One function at a time, and results put in their order afterwards: compilers make vectors of such loops. */
FOR_FAST_MACHINES
static void compute(const float *in, float *out)
{
    float part[FUNCTIONS][BLOCK];
    for (int first = 0; first < CHUNK; first += BLOCK, in += BLOCK) {
        for (int i = 0; i < BLOCK; i++) part[0][i] = tr_expf(in[i]);
        for (int i = 0; i < BLOCK; i++) part[1][i] = tr_logf(in[i]);
        for (int i = 0; i < BLOCK; i++) part[2][i] = tr_tanhf(in[i]);
        for (int i = 0; i < BLOCK; i++) part[3][i] = tr_sigmoidf(in[i]);
        for (int i = 0; i < BLOCK; i++) part[4][i] = tr_erff(in[i]);
        for (int i = 0; i < BLOCK; i++)
            for (int f = 0; f < FUNCTIONS; f++) *out++ = part[f][i];
    }
}

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

static void *place(tr_device *device, size_t bytes)
{
    void *memory;
    must(tr_device_alloc(device, bytes, &memory));
    return memory;
}

/* Where the device's results differ from `expected`, NaN being equal to NaN. */
static void compare(const float *in, const float *expected, const float *got)
{
    if (memcmp(expected, got, (size_t)CHUNK * FUNCTIONS * sizeof *got) == 0) return;
    for (int i = 0; i < CHUNK * FUNCTIONS; i++) {
        if (memcmp(&expected[i], &got[i], sizeof *got) == 0 ||
            (expected[i] != expected[i] && got[i] != got[i]))
            continue;
        fail_msg("%s(%a) is %a, should be %a", names[i % FUNCTIONS], (double)in[i / FUNCTIONS],
                 (double)got[i], (double)expected[i]);
    }
}

static void test_functions(void **state)
{
    (void)state;
    tr_device *device;
    must(opencl_open(0, &device));
    float *in = tr_alloc(CHUNK, sizeof *in), *expected = tr_alloc(CHUNK * FUNCTIONS, sizeof *expected);
    float *got = tr_alloc(CHUNK * FUNCTIONS, sizeof *got);
    float *in_there = place(device, CHUNK * sizeof *in);
    float *out_there = place(device, CHUNK * FUNCTIONS * sizeof *got);
    assert_true(in && expected && got);
    uint64_t tried = 0;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; tried += CHUNK) {
        for (int i = 0; i < CHUNK; i++, bits += stride) in[i] = tr_mathf_float((int32_t)(uint32_t)bits);
        must(tr_device_to_device(device, in_there, in, CHUNK * sizeof *in));
        struct gpu_call call;
        gpu_begin(&call, device, "exact", "", "exact_functions");
        gpu_long(&call, CHUNK);
        gpu_array(&call, in_there);
        gpu_array(&call, out_there);
        must(gpu_run_each(&call, CHUNK));
        must(tr_device_to_host(device, got, out_there, CHUNK * FUNCTIONS * sizeof *got));
        compute(in, expected); /* meanwhile */
        must(tr_device_wait(device));
        compare(in, expected, got);
        if (stride == 1 && bits % ((uint64_t)1 << 28) == 0) {
            printf("[  NOTE    ] %d of 16 parts\n", (int)(bits >> 28));
            fflush(stdout);
        }
    }
    printf("[  NOTE    ] %llu inputs on %s\n", (unsigned long long)tried, device->description);
    assert_true(tried >= CHUNK);
    tr_device_free(device, in_there);
    tr_device_free(device, out_there);
    tr_device_destroy(&device);
    tr_free(in);
    tr_free(expected);
    tr_free(got);
}

int main(int count, char **arguments)
{
    if (!opencl_is_here()) return 0;
    if (count > 1 && strcmp(arguments[1], "all") == 0) stride = 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_functions)};
    return cmocka_run_group_tests_name("functions on opencl", tests, NULL, NULL);
}
