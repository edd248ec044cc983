/* Every operation, every case, every kind of numbers: each instruction set of the cpu device, with 1 to 4
 * threads, gives the bytes of ref and writes nothing else.
 */
#include "device/cases.h"
#include "device/cpu/cpu.h"

#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define MOST_THREADS 4

static const char *const isas[] = {"avx512", "avx2", "neon", "plain"};

static tr_device *reference;
static tr_device *devices[LENGTH(isas) * MOST_THREADS];
static int device_count;

static int make_devices(void **state)
{
    (void)state;
    assert_int_equal(tr_device_create("ref", 1, NULL, &reference), TR_OK);
    for (int i = 0; i < LENGTH(isas); i++) {
        for (int threads = 1; threads <= MOST_THREADS; threads++) {
            tr_device *device;
            tr_status status = tr_device_create("cpu", threads, isas[i], &device);
            if (status == TR_EUNSUPPORTED) {
                printf("[  NOTE    ] skipped: %s\n", tr_error_message());
                break;
            }
            if (status != TR_OK) fail_msg("%s", tr_error_message());
            cpu_device_of(device)->alone = 0; /* every member takes part, however small the case */
            devices[device_count++] = device;
        }
    }
    assert_true(device_count >= MOST_THREADS); /* plain runs everywhere */
    return 0;
}

static int destroy_devices(void **state)
{
    (void)state;
    while (device_count > 0) tr_device_destroy(&devices[--device_count]);
    tr_device_destroy(&reference);
    return 0;
}

/* Runs a case on every device; returns how many of them differ from ref. */
static int differing(const struct case_list *list, const struct scene *expected)
{
    int failures = 0;
    for (int i = 0; i < device_count; i++) {
        struct scene scene;
        char difference[256];
        scene_begin_like(&scene, devices[i], expected);
        assert_true(list->run(&scene, (int)expected->number));
        if (scene_differs(expected, &scene, difference, sizeof difference)) {
            print_error("%s on %s, case %u, flavor %d (%s): %s\n", list->operation, devices[i]->description,
                        expected->number, expected->flavor, expected->name, difference);
            failures++;
        }
        scene_release(&scene);
    }
    return failures;
}

static void test_operation(void **state)
{
    const struct case_list *list = *state;
    int cases = 0, failures = 0;
    for (int flavor = 0; flavor < SCENE_FLAVORS; flavor++) {
        for (int index = 0;; index++, cases++) {
            struct scene expected;
            char difference[256];
            scene_begin(&expected, reference, (enum scene_flavor)flavor, (uint32_t)(list - case_lists),
                        (uint32_t)index);
            if (!list->run(&expected, index)) break;
            if (scene_differs(&expected, &expected, difference, sizeof difference))
                fail_msg("%s on ref, case %d: %s", list->operation, index, difference);
            failures += differing(list, &expected);
            scene_release(&expected);
        }
    }
    assert_true(cases >= 3 * SCENE_FLAVORS);
    if (failures > 0) fail_msg("%d of %d runs differ from ref", failures, cases * device_count);
}

int main(void)
{
    struct CMUnitTest tests[CASE_LISTS];
    for (int i = 0; i < CASE_LISTS; i++)
        tests[i] =
            (struct CMUnitTest){case_lists[i].operation, test_operation, NULL, NULL, (void *)&case_lists[i]};
    return cmocka_run_group_tests_name("cpu gives the bytes of ref", tests, make_devices, destroy_devices);
}
