/* The layer for CUDA gives the bytes of ref, for every operation, every case, every kind of numbers, on the
 * stand-in for its driver: arguments are packed as kernels take them, and all comes in its order.
 *
 * test_device_cuda_equality [OPERATION,...]
 */
#include "device/equal.h"
#include "support/gpu/opencl.h"

#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static tr_device *reference, *device;

static int make_devices(void **state)
{
    (void)state;
    const struct tr_device_choice choice = {.name = "cuda", .cache = TEST_PROGRAMS};
    assert_int_equal(tr_device_create("ref", 1, NULL, &reference), TR_OK);
    if (tr_device_open(&choice, &device) != TR_OK) fail_msg("%s", tr_error_message());
    assert_string_equal(device->name, "cuda:0");
    return 0;
}

static int destroy_devices(void **state)
{
    (void)state;
    tr_device_destroy(&device);
    tr_device_destroy(&reference);
    return 0;
}

static void test_operation(void **state)
{
    const struct case_list *list = *state;
    case_needs_operation(list, device);
    equal_to_reference(list, reference, &device, 1);
}

/* Whether a name is among those between commas. */
static bool is_named(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = names; (at = strstr(at, name)); at += length)
        if ((at == names || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return true;
    return false;
}

int main(int count, char **arguments)
{
    struct CMUnitTest tests[CASE_LISTS];
    size_t chosen = 0;
    if (!opencl_is_here()) return 0;
    for (int i = 0; i < CASE_LISTS; i++)
        if (count < 2 || is_named(arguments[1], case_lists[i].operation))
            tests[chosen++] = (struct CMUnitTest){case_lists[i].operation, test_operation, NULL, NULL,
                                                  (void *)&case_lists[i]};
    if (chosen == 0) return printf("no operation is called \"%s\"\n", arguments[1]), 1;
    return _cmocka_run_group_tests("cuda gives the bytes of ref", tests, chosen, make_devices,
                                   destroy_devices);
}
