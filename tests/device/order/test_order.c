/* The order of arithmetic of `ref` against that of the files beside it, to the byte, in all cases of every
 * operation. And the judge itself: combining in a wrong order is noticed in the cases of every operation in
 * which it can matter.
 *
 * test_device_order [OPERATION]
 */
#include "device/cases/cases.h"
#include "device/operation.h"
#include "device/order/order.h"
#include "device/ref/ref.h"
#include "sanitized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static tr_device *reference;

/* The judge as a device. */
#define JUDGE(op)                                                                                            \
    static tr_status judge_##op(tr_device *device, const struct tr_op_##op *arguments)                       \
    {                                                                                                        \
        (void)device;                                                                                        \
        order_##op(arguments);                                                                               \
        return TR_OK;                                                                                        \
    }
TR_DEVICE_OPS(JUDGE)
#undef JUDGE

static struct tr_device_class judge_class;
static tr_device judge;

static int make_devices(void **state)
{
    (void)state;
    if (tr_device_create("ref", 1, NULL, &reference) != TR_OK) return -1;
    judge_class = *reference->class;
#define SLOT(op) judge_class.op = judge_##op;
    TR_DEVICE_OPS(SLOT)
#undef SLOT
    judge = *reference;
    judge.class = &judge_class;
    return 0;
}

static int destroy_devices(void **state)
{
    (void)state;
    tr_device_destroy(&reference);
    order_release();
    return 0;
}

/* Whether the judge, with its fault, and `ref` differ in a case; false, and *end set, where there is none. */
static bool differs(const struct case_list *list, enum scene_flavor flavor, int index, bool *end, char *text,
                    size_t size)
{
    struct scene scene, judged;
    scene_begin(&scene, reference, flavor, 0, (uint32_t)index);
    *end = !list->run(&scene, index);
    if (*end) return false;
    scene_begin_like(&judged, &judge, &scene);
    list->run(&judged, index);
    const bool found = scene_differs(&judged, &scene, text, size);
    if (found) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "; case %d, flavor %d (%s)", index, (int)flavor, scene.name);
    }
    scene_release(&judged);
    scene_release(&scene);
    return found;
}

/* Faults that change no bit of an operation, and why. */
static const struct {
    const char *operation;
    enum order_fault fault;
} harmless[] = {
    {NULL, ORDER_RIGHT},
};

static bool is_harmless(const char *operation, enum order_fault fault)
{
    for (int i = 0; i < LENGTH(harmless); i++)
        if (harmless[i].operation && strcmp(harmless[i].operation, operation) == 0 &&
            harmless[i].fault == fault)
            return true;
    return false;
}

static const char *const faults[ORDER_FAULTS] = {"nothing", "descending order", "swapped operands of an fma",
                                                 "a tree of another shape", "a chain that is cut in two"};

/* The first case that notices is enough. */
static void must_notice(const struct case_list *list, enum order_fault fault)
{
    bool end = false, found = false;
    char text[512];
    order_forget();
    order_fault = fault;
    for (int flavor = SCENE_PLAIN; !found && flavor < SCENE_HUGE; flavor++)
        for (int index = 0; !found; index++) {
            found = differs(list, (enum scene_flavor)flavor, index, &end, text, sizeof text);
            if (end) break;
        }
    order_fault = ORDER_RIGHT;
    if (!order_used[fault] || found || is_harmless(list->operation, fault)) return;
    fail_msg("the cases of \"%s\" do not notice %s", list->operation, faults[fault]);
}

static void test_operation(void **state)
{
    const struct case_list *list = *state;
    bool end = false, written = false;
    char text[512];
    case_must_exist(list);
#define ASK(op) written |= order_##op && strcmp(list->operation, #op) == 0;
    TR_DEVICE_OPS(ASK)
#undef ASK
    if (!written)
        fail_msg("nobody judges \"%s\"; write ORDER(%s) in the file of its family in tests/device/order",
                 list->operation, list->operation);
    /* What numbers are like decides little of the order: of the other kinds every fifth case. */
    for (int flavor = 0; flavor < SCENE_FLAVORS; flavor++)
        for (int index = 0; index == 0 || !end; index += flavor == SCENE_PLAIN && !SANITIZED ? 1 : 5)
            if (differs(list, (enum scene_flavor)flavor, index, &end, text, sizeof text))
                fail_msg("%s: %s", list->operation, text);
    for (int fault = ORDER_RIGHT + 1; fault < ORDER_FAULTS && !SANITIZED; fault++)
        must_notice(list, (enum order_fault)fault);
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[CASE_LISTS];
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    for (int i = 0; i < CASE_LISTS; i++)
        tests[i] =
            (struct CMUnitTest){case_lists[i].operation, test_operation, NULL, NULL, (void *)&case_lists[i]};
    return cmocka_run_group_tests_name("the order of ref", tests, make_devices, destroy_devices);
}
