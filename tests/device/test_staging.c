/* Staging buffers: one memory where the device's is the host's, two sides and copies elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/shadow.h"

#include "base/alloc.h"
#include "device/staging.h"

#include <string.h>

enum { FLOATS = 100 };

static void write_numbers(float *at, int count, float first)
{
    for (int i = 0; i < count; i++) at[i] = first + (float)i;
}

static void host_devices_have_one_memory(void **state)
{
    (void)state;
    tr_device *device;
    struct tr_staging buffer;
    float *window = tr_alloc_aligned(FLOATS, sizeof *window);
    assert_non_null(window);
    assert_int_equal(tr_device_create("cpu", 1, NULL, &device), TR_OK);
    assert_int_equal(tr_staging_make(device, FLOATS, NULL, &buffer), TR_OK);
    assert_true(tr_staging_is_direct(&buffer) && buffer.memory == TR_MEMORY_HOST);
    assert_int_equal(tr_staging_memory(&buffer), FLOATS * sizeof(float));
    tr_staging_release(&buffer);
    assert_int_equal(tr_staging_make(device, FLOATS, window, &buffer), TR_OK);
    assert_true(buffer.data == window && buffer.host == window && buffer.memory == TR_MEMORY_WINDOW);
    assert_int_equal(tr_staging_memory(&buffer), 0);
    write_numbers(window, FLOATS, 1);
    assert_int_equal(tr_staging_to_host(&buffer, 0, FLOATS), TR_OK);
    assert_int_equal(tr_staging_to_device(&buffer, 0, FLOATS), TR_OK);
    assert_true(window[0] == 1 && window[FLOATS - 1] == FLOATS);
    tr_staging_release(&buffer);
    tr_device_destroy(&device);
    tr_free(window);
}

/* Numbers go to the device, are doubled there, and a part of them comes back. */
static void take_around(tr_device *device, struct tr_staging *buffer)
{
    assert_int_equal(tr_staging_open(buffer), TR_OK);
    assert_false(tr_staging_is_direct(buffer));
    write_numbers(buffer->host, FLOATS, 1);
    assert_int_equal(tr_staging_to_device(buffer, 0, FLOATS), TR_OK);
    struct tr_op_scale twice = {FLOATS, 2, buffer->data, buffer->data};
    assert_int_equal(tr_device_scale(device, &twice), TR_OK);
    assert_int_equal(tr_staging_to_host(buffer, 10, 20), TR_OK);
    tr_event event;
    bool reached = false;
    assert_int_equal(tr_device_record(device, &event), TR_OK);
    for (int i = 0; i < 100 && !reached; i++)
        assert_int_equal(tr_device_reached(device, event, &reached), TR_OK);
    assert_true(reached);
    for (int i = 0; i < FLOATS; i++)
        assert_true(buffer->host[i] == (float)(i + 1) * (i >= 10 && i < 20 ? 2.0f : 1.0f));
}

static void others_have_two_sides(void **state)
{
    (void)state;
    tr_device *device;
    struct tr_staging buffer;
    float window[FLOATS];
    int64_t live = tr_alloc_live();
    assert_int_equal(shadow_create(1, NULL, &device), TR_OK);
    assert_int_equal(tr_staging_make(device, FLOATS, NULL, &buffer), TR_OK);
    assert_true(!buffer.host && buffer.memory == TR_MEMORY_DEVICE);
    take_around(device, &buffer);
    assert_int_equal(buffer.memory, TR_MEMORY_PINNED);
    assert_int_equal(tr_staging_memory(&buffer), 2 * FLOATS * sizeof(float));
    tr_staging_release(&buffer);
    assert_int_equal(tr_staging_make(device, FLOATS, window, &buffer), TR_OK);
    assert_true(buffer.host == window && buffer.memory == TR_MEMORY_WINDOW);
    take_around(device, &buffer);
    tr_staging_release(&buffer);
    tr_device_destroy(&device);
    assert_int_equal(tr_alloc_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_devices_have_one_memory),
        cmocka_unit_test(others_have_two_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
