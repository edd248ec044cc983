/* Staging buffers: one memory where the device's is the host's, two sides and copies elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/operations/shadow.h"

#include "base/alloc.h"
#include "device/staging.h"
#include "refuse.h"

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

/* A part goes each way, beside later work too; the rest stays as it is. */
static void parts_are_copied(void **state)
{
    (void)state;
    tr_device *device;
    struct tr_staging buffer;
    assert_int_equal(shadow_create(1, NULL, &device), TR_OK);
    assert_int_equal(tr_staging_make(device, FLOATS, NULL, &buffer), TR_OK);
    assert_int_equal(tr_staging_open(&buffer), TR_OK);
    write_numbers(buffer.host, FLOATS, 1);
    assert_int_equal(tr_staging_to_device(&buffer, 0, FLOATS), TR_OK);
    assert_int_equal(tr_device_wait(device), TR_OK);
    write_numbers(buffer.host, FLOATS, 1000);
    assert_int_equal(tr_staging_to_device(&buffer, 30, 40), TR_OK);
    assert_int_equal(tr_staging_to_device(&buffer, FLOATS, FLOATS), TR_OK);
    assert_int_equal(tr_device_wait(device), TR_OK);
    write_numbers(buffer.host, FLOATS, 5000);
    assert_int_equal(tr_staging_to_host_beside(&buffer, 25, 50), TR_OK);
    assert_int_equal(tr_device_wait(device), TR_OK);
    for (int i = 0; i < FLOATS; i++)
        assert_true(buffer.host[i] == (float)(i < 25 || i >= 50   ? 5000 + i
                                              : i >= 30 && i < 40 ? 1000 + i
                                                                  : 1 + i));
    tr_staging_release(&buffer);
    tr_device_destroy(&device);
}

static void memory_is_owned_or_borrowed(void **state)
{
    (void)state;
    for (int host = 0; host < 2; host++) {
        tr_device *device;
        struct tr_staging buffer, over;
        const int64_t live = tr_alloc_live();
        assert_int_equal(host ? tr_device_create("cpu", 1, NULL, &device) : shadow_create(1, NULL, &device),
                         TR_OK);
        const int64_t with_device = tr_alloc_live();
        /* None at all. */
        assert_int_equal(tr_staging_make(device, 0, NULL, &buffer), TR_OK);
        assert_non_null(buffer.data);
        assert_int_equal(tr_staging_open(&buffer), TR_OK);
        assert_int_equal(tr_staging_memory(&buffer), 0);
        assert_int_equal(tr_staging_to_host(&buffer, 0, 0), TR_OK);
        tr_staging_release(&buffer);
        tr_staging_release(&buffer);
        assert_int_equal(tr_alloc_live(), with_device);
        /* What lies over the memory of another owns its own side at most. */
        assert_int_equal(tr_staging_make(device, FLOATS, NULL, &buffer), TR_OK);
        tr_staging_over(device, 10, buffer.data + 5, &over);
        assert_int_equal(tr_staging_memory(&over), 0);
        assert_int_equal(over.memory, host ? TR_MEMORY_HOST : TR_MEMORY_DEVICE);
        assert_ptr_equal(over.host, host ? buffer.data + 5 : NULL);
        assert_int_equal(tr_staging_open(&over), TR_OK);
        float *side = over.host;
        assert_int_equal(tr_staging_open(&over), TR_OK);
        assert_ptr_equal(over.host, side);
        assert_int_equal(tr_staging_is_direct(&over), host);
        assert_int_equal(tr_staging_host_memory(&over), host ? 0 : 10 * sizeof(float));
        assert_int_equal(tr_staging_memory(&over), host ? 0 : 10 * sizeof(float));
        assert_int_equal(tr_staging_host_memory(&buffer), 0);
        tr_staging_release(&over);
        assert_null(over.data);
        tr_staging_release(&buffer);
        assert_int_equal(tr_alloc_live(), with_device);
        for (int64_t at = 0, done = 0; !done; at++) {
            refuse_begin(at);
            tr_status status = tr_staging_make(device, FLOATS, NULL, &buffer);
            if (status == TR_OK) status = tr_staging_open(&buffer);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            tr_staging_release(&buffer);
            assert_int_equal(tr_alloc_live(), with_device);
        }
        tr_device_destroy(&device);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_devices_have_one_memory),
        cmocka_unit_test(others_have_two_sides),
        cmocka_unit_test(parts_are_copied),
        cmocka_unit_test(memory_is_owned_or_borrowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
