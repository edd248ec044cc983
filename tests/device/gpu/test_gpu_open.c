/* A gpu device is opened, and its programs are built, on an interface without a driver (host.h): each once,
 * and not again where a cache has it; and what stays when a call fails.
 */
#include "device/gpu/on_host.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

/* ---- programs ---- */

static void fill_some(tr_status expected)
{
    void *memory;
    host.how = TR_EPEER;
    assert_int_equal(tr_device_alloc(device, 64, &memory), TR_OK);
    const struct tr_op_fill fill = {16, 1, memory};
    assert_int_equal(tr_device_fill(device, &fill), expected);
    tr_device_free(device, memory);
}

static void programs_are_built_once(void **state)
{
    (void)state;
    void *one, *two, *other;
    assert_int_equal(gpu_program_kernel(gpu_of(device), "elementwise", "", "one", &one), TR_OK);
    assert_int_equal(gpu_program_kernel(gpu_of(device), "elementwise", "", "two", &two), TR_OK);
    assert_int_equal(host.builds, 1);
    assert_int_equal(host.kernels, 2);
    assert_string_equal(host.options, "-DD_THREADS=256 ");
    assert_int_equal(gpu_program_kernel(gpu_of(device), "elementwise", "", "one", &other), TR_OK);
    assert_ptr_equal(one, other);
    assert_int_equal(host.kernels, 2);
    gpu_of(device)->own_fma = gpu_of(device)->info.processor = gpu_of(device)->info.own_division = true;
    assert_int_equal(gpu_program_kernel(gpu_of(device), "elementwise", "-DX", "one", &other), TR_OK);
    assert_string_equal(host.options, "-DD_THREADS=256 -DD_KEEP_ROLLED -DD_OWN_DIVISION -DD_OWN_FMA -DX");
    assert_int_equal(gpu_program_kernel(gpu_of(device), "reduction", "", "one", &other), TR_OK);
    assert_int_equal(host.builds, 3);
    /* What failed is tried again. */
    static const char *const functions[] = {"build", "kernel"};
    for (int i = 0; i < 2; i++) {
        fail_at(functions[i], 0);
        assert_int_equal(gpu_program_kernel(gpu_of(device), "norm", "", "one", &other), TR_EPEER);
        host.fails = NULL;
    }
    assert_int_equal(host.programs, 4);
    assert_int_equal(gpu_program_kernel(gpu_of(device), "norm", "", "one", &other), TR_OK);
    assert_int_equal(host.programs, 4);
    for (int64_t at = 0, done = 0; !done; at++) {
        refuse_begin(at);
        const tr_status status = gpu_program_kernel(gpu_of(device), "softmax", "-DY", "one", &other);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
    }
    assert_int_equal(host.programs, 5);
    gpu_programs_release(gpu_of(device));
    assert_int_equal(host.programs + host.kernels, 0);
    fill_some(TR_OK); /* and they are built anew */
}

static int reopen(const char *cache)
{
    host.fails = NULL;
    tr_device_destroy(&device);
    host.builds = host.from_binary = 0;
    device = host_open(cache, false);
    fill_some(TR_OK);
    return 10 * host.builds + host.from_binary;
}

enum { BUILT = 10, KEPT = 1 };

/* A program is kept for a device of that platform, maker, name and driver, and its options. */
static void programs_are_kept(void **state)
{
    (void)state;
    char cache[SCRATCH_PATH], place[SCRATCH_PATH];
    scratch_make(place);
    scratch_join(cache, place, "deep/cache");
    assert_int_equal(reopen(cache), BUILT);
    assert_int_equal(reopen(cache), KEPT);
    char *const texts[] = {host.info.platform, host.info.vendor, host.info.name, host.info.driver};
    for (int i = 0; i < 4; i++) {
        texts[i][0] = 'A';
        assert_int_equal(reopen(cache), BUILT);
        assert_int_equal(reopen(cache), KEPT);
    }
    host.info.group = 100;
    assert_int_equal(reopen(cache), BUILT);
    assert_string_equal(host.options, "-DD_THREADS=64 ");
    host.info.keeps_programs = true;
    assert_int_equal(reopen(cache), BUILT);
    assert_int_equal(reopen(cache), BUILT);
    host.info.keeps_programs = false;
    assert_int_equal(reopen(cache), KEPT);
    assert_int_equal(reopen(NULL), BUILT);
    /* One whose binary is not to be had is not kept. */
    host.info.group = 200;
    assert_int_equal(reopen(cache), BUILT);
    assert_string_equal(host.options, "-DD_THREADS=128 ");
    scratch_remove(place);
    fail_at("binary", 0);
    tr_device_destroy(&device);
    device = host_open(cache, false);
    fill_some(TR_OK);
    assert_int_equal(reopen(cache), BUILT);
    scratch_remove(place);
}

/* ---- opening ---- */

static void opening_may_fail(void **state)
{
    (void)state;
    const struct tr_device_choice choice = {.name = "host", .cache = "/nowhere"};
    tr_device *other;
    host.info.lists = true;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        other = device;
        refuse_begin(at);
        const tr_status status = gpu_device_create(&gpu_api_host, &choice, &other);
        done = refuse_end();
        /* Without memory for lists there are none. */
        assert_true(status == TR_OK || (!done && status == TR_ENOMEM));
        assert_int_equal(other != NULL, status == TR_OK);
        if (status == TR_OK) assert_true(gpu_of(other)->session && gpu_of(other)->cache);
        tr_device_destroy(&other);
        assert_int_equal(tr_alloc_live(), live);
    }
    static const char *const functions[] = {"open", "self_test"};
    for (int i = 0; i < 2; i++) {
        fail_at(functions[i], 0);
        host.self_tests = 0;
        assert_int_equal(gpu_device_create(&gpu_api_host, &choice, &other), TR_EPEER);
        assert_int_equal(host.self_tests, i);
        assert_null(other);
    }
    const struct tr_device_choice second = {.name = "host", .number = 1};
    assert_int_equal(gpu_device_create(&gpu_api_host, &second, &other), TR_ENOTFOUND);
    assert_message_has("there is one host");
    snprintf(host.info.refusal, sizeof host.info.refusal, "it guesses");
    assert_int_equal(gpu_device_create(&gpu_api_host, &choice, &other), TR_EUNSUPPORTED);
    assert_string_equal(tr_error_message(), "host:0 (a host) cannot give the bits of other devices: it "
                                            "guesses; choose another device");
    assert_null(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_HOST(programs_are_built_once),
        ON_HOST(programs_are_kept),
        ON_HOST(opening_may_fail),
    };
    return cmocka_run_group_tests_name("opening a gpu", tests, NULL, NULL);
}
