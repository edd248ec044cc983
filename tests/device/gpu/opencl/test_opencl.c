/* Every OpenCL device that this machine has gives the bytes of ref, for every operation, every case, every
 * kind of numbers; the processor also with the tiles that a GPU would take, and with divisions, roots and
 * fused multiply-adds of the kernels' own, as on a device that has none that are exact.
 *
 * test_device_opencl [tiles | poor] [OPERATION]
 */
#include "device/equal.h"
#include "device/gpu/internal.h"
#include "support/gpu/opencl.h"

#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define MOST_DEVICES 8

static tr_device *reference;
static tr_device *devices[MOST_DEVICES];
static int device_count;

/* ---- the first device, as if it were a GPU with one unit: the largest tiles fill it ---- */

static bool with_tiles;

static tr_status describe_gpu(int number, struct gpu_info *out)
{
    tr_status status = gpu_api_opencl.describe(number, out);
    out->processor = false;
    out->units = 1;
    return status;
}

/* What it is not told is not to unroll loops, which takes its compiler minutes. */
static tr_status build_rolled(void *session, const struct gpu_program_source *source, void **program)
{
    struct gpu_program_source rolled = *source;
    char options[512];
    snprintf(options, sizeof options, "%s -DD_KEEP_ROLLED", source->options);
    rolled.options = options;
    return gpu_api_opencl.build(session, &rolled, program);
}

static void make_gpu(void)
{
    static struct gpu_api api;
    const struct tr_device_choice choice = {.name = "opencl"};
    api = gpu_api_opencl;
    api.describe = describe_gpu;
    api.build = build_rolled;
    if (gpu_device_create(&api, &choice, &devices[0]) != TR_OK) fail_msg("%s", tr_error_message());
    device_count = 1;
}

/* ---- the first device, as if nothing of it were exact but sums and products ---- */

static bool poor;

static tr_status describe_poor(int number, struct gpu_info *out)
{
    tr_status status = gpu_api_opencl.describe(number, out);
    out->own_division = true;
    return status;
}

static void make_poor(void)
{
    static struct gpu_api api;
    const struct tr_device_choice choice = {.name = "opencl"};
    api = gpu_api_opencl;
    api.describe = describe_poor;
    if (gpu_device_create(&api, &choice, &devices[0]) != TR_OK) fail_msg("%s", tr_error_message());
    device_count = 1;
    gpu_programs_release(gpu_of(devices[0]));
    gpu_of(devices[0])->own_fma = true;
}

/* ---- */

static int make_devices(void **state)
{
    (void)state;
    assert_int_equal(tr_device_create("ref", 1, NULL, &reference), TR_OK);
    if (with_tiles) make_gpu();
    if (poor) make_poor();
    if (with_tiles || poor) return 0;
    while (device_count < MOST_DEVICES) {
        tr_device *device;
        tr_status status = opencl_open(device_count, &device);
        if (status == TR_ENOTFOUND) break;
        if (status != TR_OK) fail_msg("%s", tr_error_message());
        devices[device_count++] = device;
    }
    return 0;
}

static int destroy_devices(void **state)
{
    (void)state;
    while (device_count > 0) tr_device_destroy(&devices[--device_count]);
    tr_device_destroy(&reference);
    return 0;
}

/* One operation for each way to find the numbers of a product. */
static bool is_product(const char *operation)
{
    return strcmp(operation, "dense_forward") == 0 || strcmp(operation, "dense_backward_weights") == 0 ||
           strcmp(operation, "conv_forward") == 0 || strcmp(operation, "conv_backward_weights") == 0;
}

static void test_operation(void **state)
{
    const struct case_list *list = *state;
    case_needs_operation(list, devices[0]);
    equal_to_reference(list, reference, devices, device_count);
    if (!with_tiles || !is_product(list->operation)) return;
    gpu_of(devices[0])->far = true;
    equal_to_reference(list, reference, devices, device_count);
    gpu_of(devices[0])->far = false;
}

int main(int count, char **arguments)
{
    struct CMUnitTest tests[CASE_LISTS];
    if (!opencl_is_here()) return 0;
    for (int i = 0; i < CASE_LISTS; i++)
        tests[i] =
            (struct CMUnitTest){case_lists[i].operation, test_operation, NULL, NULL, (void *)&case_lists[i]};
    with_tiles = count > 1 && strcmp(arguments[1], "tiles") == 0;
    poor = count > 1 && strcmp(arguments[1], "poor") == 0;
    int operation = with_tiles || poor ? 2 : 1;
    if (count > operation) cmocka_set_test_filter(arguments[operation]);
    return cmocka_run_group_tests_name("opencl gives the bytes of ref", tests, make_devices, destroy_devices);
}
