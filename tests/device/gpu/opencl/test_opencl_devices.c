/* The devices that OpenCL finds and what is made of what they say of themselves, on one without a driver
 * (fake/opencl.h).
 */
#include "device/gpu/fake/opencl.h"

#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static int begin(void **state)
{
    (void)state;
    fake_begin();
    return 0;
}

static struct gpu_info described(int number)
{
    struct gpu_info info;
    memset(&info, 0xee, sizeof info);
    if (gpu_api_opencl.describe(number, &info) != TR_OK) fail_msg("%d: %s", number, tr_error_message());
    return info;
}

static void expect_none(int number, const char *message)
{
    struct gpu_info info;
    assert_int_equal(gpu_api_opencl.describe(number, &info), TR_ENOTFOUND);
    assert_string_equal(tr_error_message(), message);
}

static const char no_device[] = "OpenCL knows no device here; install the driver of one, or pocl-opencl-icd "
                                "(Debian, Ubuntu), with which a processor is one";

/* Of all platforms, first those that are no processors. */
static void devices_are_counted_over_platforms(void **state)
{
    static const char *const names[] = {"one", "two", "three", "first", "second"};
    (void)state;
    fake.platforms = 3;
    fake.platform[0] = (struct cl_platform_s){"of a processor", 1, {fake_gpu("first")}};
    fake.platform[1] =
        (struct cl_platform_s){"of both", 3, {fake_gpu("one"), fake_gpu("second"), fake_gpu("two")}};
    fake.platform[2] = (struct cl_platform_s){"of a gpu", 1, {fake_gpu("three")}};
    fake.platform[0].device[0].type = fake.platform[1].device[1].type = CL_DEVICE_TYPE_CPU;
    for (int i = 0; i < 5; i++) {
        const struct gpu_info info = described(i);
        assert_string_equal(info.name, names[i]);
        assert_int_equal(info.processor, i >= 3);
        assert_string_equal(info.platform, i == 3 ? "of a processor" : i == 2 ? "of a gpu" : "of both");
    }
    expect_none(5, "there is no OpenCL device 5; there are fewer, counted from 0");
    expect_none(-1, "there is no OpenCL device -1; there are fewer, counted from 0");
    /* One that tells nothing of its devices has none. */
    fake.fails = "clGetDeviceIDs";
    fake.code = -1;
    fake.after = 1; /* of the second platform, for devices that are no processors */
    assert_string_equal(described(0).name, "three");
    fake.fails = NULL;
    fake.platforms = 1;
    expect_none(1, "there is no OpenCL device 1; there is 1, counted from 0");
    fake.platform[0].count = 0;
    expect_none(0, no_device);
    fake.platforms = 0;
    expect_none(0, no_device);
    fake.platforms = 3;
    fake.fails = "clGetPlatformIDs";
    fake.after = 0;
    fake.failed = NULL;
    expect_none(0, no_device);
}

/* However many there are. */
static void not_all_of_many_are_known(void **state)
{
    char name[FAKE_PLATFORMS][24];
    struct gpu_info info;
    (void)state;
    fake.platforms = FAKE_PLATFORMS;
    for (int i = 0; i < FAKE_PLATFORMS; i++) {
        snprintf(name[i], sizeof name[i], "device %d", i);
        fake.platform[i] = (struct cl_platform_s){"one of many", 1, {fake_gpu(name[i])}};
    }
    assert_string_equal(described(31).name, "device 31");
    assert_int_equal(gpu_api_opencl.describe(32, &info), TR_ENOTFOUND);
    for (int i = 0; i < FAKE_PLATFORMS; i++) {
        fake.platform[i].count = 3;
        fake.platform[i].device[1] = fake.platform[i].device[2] = fake.platform[i].device[0];
    }
    assert_string_equal(described(63).name, "device 21");
    assert_int_equal(gpu_api_opencl.describe(64, &info), TR_ENOTFOUND);
}

static void what_a_device_says_is_kept(void **state)
{
    static char letters[400];
    (void)state;
    struct cl_device_s *device = &fake.platform[0].device[0];
    struct gpu_info info = described(0);
    assert_string_equal(info.platform, "a platform");
    assert_string_equal(info.name, "a gpu");
    assert_string_equal(info.vendor, "a maker");
    assert_string_equal(info.driver, "7.1");
    assert_string_equal(info.place, "");
    assert_string_equal(info.refusal, "");
    assert_true(info.memory == (uint64_t)6 << 30 && info.allocation == (uint64_t)2 << 30);
    assert_true(info.shared == 48 << 10 && info.group == 1024 && info.units == 20);
    assert_false(info.processor || info.unified || info.keeps_programs || info.lists);
    assert_false(info.own_division || info.slow);
    device->unified = 1;
    device->name = "  a gpu with blanks before it";
    info = described(0);
    assert_true(info.unified && !info.processor);
    assert_string_equal(info.name, "a gpu with blanks before it");
    device->unified = 0;
    device->type = CL_DEVICE_TYPE_CPU;
    fake.platform[0].name = "Portable Computing Language";
    info = described(0);
    assert_true(info.unified && info.processor && info.keeps_programs);
    /* What is too long ends where its place does; what is not told is empty. */
    memset(letters, 'x', sizeof letters - 1);
    device->name = fake.platform[0].name = letters;
    info = described(0);
    assert_int_equal(strlen(info.name), sizeof info.name - 1);
    assert_int_equal(strlen(info.platform), sizeof info.platform - 1);
    fake.fails = "clGetPlatformInfo";
    info = described(0);
    assert_string_equal(info.platform, "");
    assert_non_null(fake.failed);
}

static void a_place_is_told_in_either_way(void **state)
{
    (void)state;
    struct cl_device_s *device = &fake.platform[0].device[0];
    device->bus = 0xa3;
    device->slot = 5 << 3 | 6;
    device->domain = 0x12;
    device->has_bus = device->has_slot = device->has_domain = true;
    assert_string_equal(described(0).place, "0012:a3:05.6");
    device->has_domain = false;
    assert_string_equal(described(0).place, "0000:a3:05.6");
    device->has_bus = false;
    assert_string_equal(described(0).place, "");
    device->has_bus = true;
    device->has_slot = false;
    assert_string_equal(described(0).place, "");
    device->place[0] = 1;
    device->place[1] = 0x3b;
    device->place[2] = 0x1f;
    device->place[3] = 7;
    device->place_bytes = sizeof device->place;
    assert_string_equal(described(0).place, "0001:3b:1f.7");
    device->has_slot = true;
    assert_string_equal(described(0).place, "0001:3b:1f.7");
    device->place_bytes = 8; /* that is no place */
    assert_string_equal(described(0).place, "0000:a3:05.6");
}

static void what_kernels_need_is_missed(void **state)
{
    (void)state;
    struct cl_device_s *device = &fake.platform[0].device[0];
    const struct cl_device_s good = *device;
    device->promises &= ~CL_FP_INF_NAN;
    assert_string_equal(described(0).refusal, "it lacks infinities and NaN");
    device->promises &= ~CL_FP_ROUND_TO_NEAREST;
    assert_string_equal(described(0).refusal, "it lacks infinities and NaN, rounding to nearest");
    *device = good;
    device->promises &= ~CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    struct gpu_info info = described(0);
    assert_true(info.own_division && !info.slow && !info.refusal[0]);
    *device = good;
    device->promises &= ~CL_FP_FMA;
    info = described(0);
    assert_true(info.slow && !info.own_division && !info.refusal[0]);
    *device = good;
    device->group = 64;
    assert_string_equal(described(0).refusal, "");
    device->group = 63;
    assert_string_equal(described(0).refusal, "its groups have 63 threads, kernels need 64");
    device->compiler = 0;
    assert_string_equal(described(0).refusal, "its driver has no compiler");
    device->little = 0;
    assert_string_equal(described(0).refusal, "it is big-endian");
    device->available = 0;
    assert_string_equal(described(0).refusal, "its driver says that it is not available");
    *device = good;
    fake.fails = "clGetDeviceInfo"; /* the first question is whether it is a processor */
    assert_string_equal(described(0).refusal, "");
}

/* Lists are had from an extension that is named as it is, and may be launched again while they run. */
static void lists_must_be_announced(void **state)
{
    static const struct {
        const char *extensions;
        bool has;
    } cases[] = {{"cl_khr_command_buffer", true},
                 {"cl_khr_icd cl_khr_command_buffer cl_khr_fp64", true},
                 {"cl_khr_command_buffer_multi_device", false},
                 {"cl_khr_command_buffer_multi_device cl_khr_command_buffer", true},
                 {"cl_khr_icd", false},
                 {"", false}};
    (void)state;
    struct cl_device_s *device = &fake.platform[0].device[0];
    device->has_lists = true;
    device->lists = CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR | 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        device->extensions = cases[i].extensions;
        if (described(0).lists != cases[i].has) fail_msg("\"%s\"", cases[i].extensions);
    }
    device->extensions = cases[0].extensions;
    device->lists = 1;
    assert_false(described(0).lists);
    device->lists = CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR;
    assert_true(described(0).lists);
    device->lists_need = CL_QUEUE_PROFILING_ENABLE;
    assert_false(described(0).lists);
    device->lists_need = 0;
    device->has_lists = false;
    assert_false(described(0).lists);
    device->has_lists = true;
    device->type = CL_DEVICE_TYPE_CPU;
    assert_false(described(0).lists);
    device->type = 4;
    /* Whatever is not answered: it has lists or none, and nothing worse. */
    for (int at = 0;; at++) {
        fake.fails = "clGetDeviceInfo";
        fake.failed = NULL;
        fake.after = at;
        struct gpu_info info;
        const tr_status status = gpu_api_opencl.describe(0, &info);
        if (!fake.failed) break;
        assert_int_equal(status, TR_OK);
    }
    fake.fails = NULL;
}

#define TEST(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(devices_are_counted_over_platforms), TEST(not_all_of_many_are_known),
        TEST(what_a_device_says_is_kept),         TEST(a_place_is_told_in_either_way),
        TEST(what_kernels_need_is_missed),        TEST(lists_must_be_announced),
    };
    return cmocka_run_group_tests_name("devices of opencl", tests, NULL, NULL);
}
