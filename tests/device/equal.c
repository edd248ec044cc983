#include "device/equal.h"

#include "sanitized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Differences that are printed for one operation. */
#define MOST_PRINTED 12

/* Runs a case on every device; returns how many of them differ from ref. */
static int differing(const struct case_list *list, const struct scene *expected, tr_device *const *devices,
                     int count, int printed)
{
    int failures = 0;
    for (int i = 0; i < count; i++) {
        struct scene scene;
        char difference[256];
        scene_begin_like(&scene, devices[i], expected);
        assert_true(list->run(&scene, (int)expected->number));
        if (scene_differs(expected, &scene, difference, sizeof difference)) {
            if (printed + failures < MOST_PRINTED)
                print_error("%s on %s, case %u, flavor %d (%s): %s\n", list->operation,
                            devices[i]->description, expected->number, expected->flavor, expected->name,
                            difference);
            failures++;
        }
        scene_release(&scene);
    }
    return failures;
}

void equal_to_reference(const struct case_list *list, tr_device *reference, tr_device *const *devices,
                        int count)
{
    int cases = 0, failures = 0;
    case_must_exist(list);
    for (int flavor = 0; flavor < SCENE_FLAVORS; flavor++) {
        /* Which memory an operation touches hardly depends on numbers. */
        const int stride = SANITIZED && flavor != SCENE_PLAIN ? 3 : 1;
        for (int index = 0;; index += stride, cases++) {
            struct scene expected;
            char difference[256];
            scene_begin(&expected, reference, (enum scene_flavor)flavor, (uint32_t)(list - case_lists),
                        (uint32_t)index);
            if (!list->run(&expected, index)) break;
            if (scene_differs(&expected, &expected, difference, sizeof difference))
                fail_msg("%s on ref, case %d: %s", list->operation, index, difference);
            failures += differing(list, &expected, devices, count, failures);
            scene_release(&expected);
        }
    }
    assert_true(cases >= (SANITIZED ? 1 : 3) * SCENE_FLAVORS);
    if (failures > 0) fail_msg("%d of %d runs differ from ref", failures, cases * count);
}
