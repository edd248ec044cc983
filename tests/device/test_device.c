/* What a device need not have, and what is asked of one that has it. */
#include "device/noting.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* What a class leaves out is as for a device of the host that is always done. */
static void what_a_device_lacks_has_a_meaning(void **state)
{
    (void)state;
    tr_device *device = &bare_device;
    tr_event event = {9};
    bool reached = false;
    void *memory = &event;
    char from[4] = "abc", to[4] = "";
    const int64_t live = tr_alloc_live();
    assert_true(tr_device_peak(device, 1) == 0);
    assert_false(tr_device_set_idle(device, NULL, &event));
    assert_true(tr_device_room(device) == INT64_MAX);
    assert_int_equal(tr_device_memory(device), 0);
    assert_int_equal(tr_device_record(device, &event), TR_OK);
    assert_int_equal(event.number, 0);
    assert_int_equal(tr_device_reached(device, event, &reached), TR_OK);
    assert_true(reached);
    expect_called("");
    assert_int_equal(tr_device_wait_for(device, event), TR_EIO);
    expect_called("wait");
    assert_int_equal(tr_device_to_host_beside(device, to, from, 4), TR_OK);
    expect_called("copy");
    assert_string_equal(to, "abc");
    assert_int_equal(tr_device_alloc_pinned(device, 100, &memory), TR_OK);
    assert_int_equal((uintptr_t)memory % 64, 0);
    memset(memory, 1, 100);
    assert_int_equal(tr_alloc_live(), live + 1);
    tr_device_free_pinned(device, memory);
    tr_device_free_pinned(device, NULL);
    assert_int_equal(tr_alloc_live(), live);
    refuse_begin(0);
    assert_int_equal(tr_device_alloc_pinned(device, 100, &memory), TR_ENOMEM);
    refuse_end();
    assert_null(memory);
    assert_null(tr_device_host_view(device, from));
    assert_null(tr_device_adopt(device, from));
    tr_device_discard(device, memory, 100); /* it is not the host's */
    expect_called("");
    const struct tr_op_scale scale = {0};
    assert_int_equal(tr_device_scale(device, &scale), TR_EUNSUPPORTED);
    assert_string_equal(tr_error_message(),
                        "device a bare one has no operation \"scale\"; use another device");
}

static void what_a_device_has_is_asked(void **state)
{
    (void)state;
    tr_device *device = &full_device;
    tr_event event = {9};
    bool reached = true;
    void *memory = &event;
    char from[4] = "abc", to[4] = "";
    assert_true(tr_device_peak(device, 1.5) == 3);
    assert_true(tr_device_set_idle(device, NULL, &event));
    assert_false(tr_device_set_idle(device, NULL, NULL));
    assert_int_equal(tr_device_room(device), 123);
    assert_int_equal(tr_device_memory(device), 456);
    assert_int_equal(tr_device_record(device, &event), TR_OK);
    assert_int_equal(event.number, 5);
    assert_int_equal(tr_device_reached(device, event, &reached), TR_OK);
    assert_false(reached);
    assert_int_equal(tr_device_wait_for(device, event), TR_OK);
    expect_called("record reached wait_for");
    assert_int_equal(tr_device_to_host_beside(device, to, from, 4), TR_OK);
    assert_int_equal(tr_device_to_device(device, to, from, 4), TR_OK);
    assert_int_equal(tr_device_to_host(device, to, from, 0), TR_OK);
    expect_called("beside copy copy");
    assert_int_equal(tr_device_alloc(device, 1001, &memory), TR_ENOMEM);
    assert_null(memory);
    assert_int_equal(tr_device_alloc(device, 1000, &memory), TR_OK);
    assert_ptr_equal(memory, noted_calls);
    noted_calls[0] = '\0';
    tr_device_free(device, memory);
    tr_device_free(device, NULL);
    expect_called("free");
    assert_int_equal(tr_device_alloc_pinned(device, 8, &memory), TR_OK);
    tr_device_free_pinned(device, memory);
    tr_device_free_pinned(device, NULL);
    expect_called("alloc free_pinned");
    assert_ptr_equal(tr_device_host_view(device, from), from);
    assert_ptr_equal(tr_device_adopt(device, from), from);
    assert_int_equal(tr_device_wait(device), TR_EIO);
    tr_fail(TR_EINVAL, "kept");
    tr_device_finish(device);
    expect_called("wait wait");
    assert_string_equal(tr_error_message(), "kept");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_device_lacks_has_a_meaning),
        cmocka_unit_test(what_a_device_has_is_asked),
    };
    return cmocka_run_group_tests_name("device.device", tests, NULL, NULL);
}
