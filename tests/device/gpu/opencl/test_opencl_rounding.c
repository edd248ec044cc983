/* Quotients, square roots and fused multiply-adds on the first OpenCL device, as kernels compute them where a
 * device has none that are exact (kernels/division.h, kernels/fma.h): this one is said to have none. Against
 * this processor's own: corner cases, significands and random numbers; called with "all", every significand
 * 10^9 pairs and 2 * 10^8 triples.
 */
#include "device/gpu/rounding.h"
#include "device/gpu/internal.h"
#include "support/gpu/opencl.h"

#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static bool all;
static tr_device *device;
static float *in_there, *out_there;
static int64_t judged, judged_fma;

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

static tr_status describe_poor(int number, struct gpu_info *out)
{
    tr_status status = gpu_api_opencl.describe(number, out);
    out->own_division = true;
    return status;
}

static int open_device(void **state)
{
    static struct gpu_api api;
    const struct tr_device_choice choice = {.name = "opencl", .cache = TEST_PROGRAMS};
    void *in, *out;
    (void)state;
    api = gpu_api_opencl;
    api.describe = describe_poor;
    must(gpu_device_create(&api, &choice, &device));
    must(tr_device_alloc(device, (size_t)ROUNDING_CHUNK * 3 * sizeof(float), &in));
    must(tr_device_alloc(device, (size_t)ROUNDING_CHUNK * 7 * sizeof(float), &out));
    in_there = in;
    out_there = out;
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    if (!device) return 0;
    printf("[  NOTE    ] %lld pairs, %lld multiply-adds on %s\n", (long long)judged, (long long)judged_fma,
           device->description);
    tr_device_free(device, in_there);
    tr_device_free(device, out_there);
    tr_device_destroy(&device);
    return 0;
}

static void compute(const float *in, float *out, int64_t count)
{
    size_t bytes = (size_t)count * 2 * sizeof *in;
    struct gpu_call call;
    if (count == 0) return;
    must(tr_device_to_device(device, in_there, in, bytes));
    gpu_begin(&call, device, "exact", "", "exact_division");
    gpu_long(&call, count);
    gpu_array(&call, in_there);
    gpu_array(&call, out_there);
    must(gpu_run_each(&call, count));
    must(tr_device_to_host(device, out, out_there, bytes));
    must(tr_device_wait(device));
    judged += count;
}

static void test_corners(void **state)
{
    (void)state;
    division_corners(compute);
}

static void test_significands(void **state)
{
    (void)state;
    division_significands(compute, all ? 1 : 16);
}

static void test_quotients_that_are_nearly_half_way(void **state)
{
    (void)state;
    division_nearly_half(compute, all ? 1 : 16);
}

static void test_random_pairs(void **state)
{
    (void)state;
    division_random(compute, all ? 1000000000 : 4000000);
}

/* ---- with multiply-adds of the kernels' own ---- */

static void their_own_multiply_adds(void)
{
    struct gpu *gpu = gpu_of(device);
    if (gpu->own_fma) return;
    must(tr_device_wait(device));
    gpu_programs_release(gpu);
    gpu->own_fma = true;
}

/* The first of seven results. */
static void compute_fma(const float *in, float *out, int64_t count)
{
    static float results[ROUNDING_CHUNK * 7];
    struct gpu_call call;
    if (count == 0) return;
    must(tr_device_to_device(device, in_there, in, (size_t)count * 3 * sizeof *in));
    gpu_begin(&call, device, "exact", "", "exact_arithmetic");
    gpu_long(&call, count);
    gpu_array(&call, in_there);
    gpu_array(&call, out_there);
    must(gpu_run_each(&call, count));
    must(tr_device_to_host(device, results, out_there, (size_t)count * 7 * sizeof *out));
    must(tr_device_wait(device));
    for (int64_t i = 0; i < count; i++) out[i] = results[7 * i];
    judged_fma += count;
}

static void test_fma_corners(void **state)
{
    (void)state;
    their_own_multiply_adds();
    fma_corners(compute_fma);
}

static void test_random_fma(void **state)
{
    (void)state;
    their_own_multiply_adds();
    fma_random(compute_fma, all ? 200000000 : 2000000);
}

static void test_division_by_them(void **state)
{
    (void)state;
    their_own_multiply_adds();
    division_nearly_half(compute, 256);
}

int main(int count, char **arguments)
{
    if (!opencl_is_here()) return 0;
    all = count > 1 && strcmp(arguments[1], "all") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corners),
        cmocka_unit_test(test_significands),
        cmocka_unit_test(test_quotients_that_are_nearly_half_way),
        cmocka_unit_test(test_random_pairs),
        cmocka_unit_test(test_fma_corners),
        cmocka_unit_test(test_random_fma),
        cmocka_unit_test(test_division_by_them),
    };
    return cmocka_run_group_tests_name("rounding on opencl", tests, open_device, close_device);
}
