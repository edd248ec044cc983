#include "device/gpu/on_host.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

tr_device *device;

int open_host(void **state)
{
    (void)state;
    host_begin();
    device = host_open(NULL, false);
    return 0;
}

int close_host(void **state)
{
    (void)state;
    host.fails = NULL;
    tr_device_destroy(&device);
    assert_int_equal(host.blocks + host.events + host.programs + host.kernels + host.lists + host.pinned, 0);
    assert_int_equal(tr_alloc_live(), 0);
    return 0;
}

void fail_at(const char *function, int after)
{
    host.fails = function;
    host.after = after;
}

void assert_message_has(const char *part)
{
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

void expect_table(const void *table, const void *contents, size_t bytes)
{
    char back[64];
    assert_int_equal(tr_device_to_host(device, back, table, bytes), TR_OK);
    assert_memory_equal(back, contents, bytes);
}
