/* exp, log, tanh, sigmoid and erf have the bits of base/numbers/mathf.h on the first OpenCL device: for a
 * million inputs spread over all of float32, or, when called with "all", for each of the 2^32.
 */
#include "device/functions.h"
#include "device/gpu/gpu.h"
#include "support/gpu/opencl.h"

#include "base/alloc.h"

#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define CHUNK (1 << 20)

static uint64_t stride = 4099; /* between the bits of inputs; odd, and prime */

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
        functions_inputs(bits, stride, CHUNK, in);
        bits += CHUNK * stride;
        must(tr_device_to_device(device, in_there, in, CHUNK * sizeof *in));
        struct gpu_call call;
        gpu_begin(&call, device, "exact", "", "exact_functions");
        gpu_long(&call, CHUNK);
        gpu_array(&call, in_there);
        gpu_array(&call, out_there);
        must(gpu_run_each(&call, CHUNK));
        must(tr_device_to_host(device, got, out_there, CHUNK * FUNCTIONS * sizeof *got));
        functions_of(in, CHUNK, expected); /* meanwhile */
        must(tr_device_wait(device));
        functions_compare("opencl", in, CHUNK, expected, got);
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
