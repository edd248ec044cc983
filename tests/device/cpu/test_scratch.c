/* The scratch of the cpu device: each operation reserves what it uses, even where it is the first one, and
 * says so where there is no memory for it. All operations, of each instruction set, alone and in a team.
 */
#include "device/cases/cases.h"
#include "device/cpu/cpu.h"
#include "device/isas.h"

#include "base/alloc.h"
#include "refuse.h"
#include "sanitized.h"
#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { GUARD = 4096 };

static const char *const isas[] = {TR_ISAS(TR_ISA_NAME)};

static tr_device *reference;
static const struct tr_device_class *own; /* of the device that computes */
static bool fails;                        /* each allocation of an operation, one after the other */
static bool inside;                       /* an operation, which may call others */
static struct scene *scene;               /* of the operation */
static char wrong[256];                   /* what is, "": nothing */

static void drop(struct cpu_scratch *scratch)
{
    tr_free(scratch->memory);
    *scratch = (struct cpu_scratch){0};
}

static void note(const char *operation, int64_t at, tr_status status)
{
    if (!wrong[0])
        snprintf(wrong, sizeof wrong, "%s: allocation %lld fails, and it says %s", operation, (long long)at,
                 tr_status_name(status));
}

/* Begins anew: with the numbers of the scene, and without scratch. */
static void begin_anew(tr_device *device)
{
    for (int i = 0; i < scene->buffers; i++)
        memcpy(scene->buffer[i].memory, scene->buffer[i].before, scene->buffer[i].all);
    if (device == reference) return;
    struct cpu_device *cpu = cpu_device_of(device);
    for (int i = 0; i < device->threads; i++) drop(&cpu->member[i]);
    drop(&cpu->shared);
}

#define TRY(op)                                                                                              \
    static tr_status try_##op(tr_device *device, const struct tr_op_##op *arguments)                         \
    {                                                                                                        \
        tr_status status = TR_OK;                                                                            \
        if (inside || !fails) return own->op(device, arguments);                                             \
        inside = true;                                                                                       \
        for (int64_t at = 0, done = 0; !done; at++) {                                                        \
            begin_anew(device);                                                                              \
            refuse_begin(at);                                                                                \
            status = own->op(device, arguments);                                                             \
            done = refuse_end();                                                                             \
            if (status != (done ? TR_OK : TR_ENOMEM)) note(#op, at, status);                                 \
            if (status == TR_OK) break;                                                                      \
        }                                                                                                    \
        inside = false;                                                                                      \
        return status;                                                                                       \
    }
TR_DEVICE_OPS(TRY)
#undef TRY

/* As much as was reserved, between what must stay; what it holds is NaN. */
static void guard(struct cpu_scratch *scratch)
{
    if (!scratch->memory) return;
    unsigned char *memory = tr_alloc_aligned(scratch->bytes + GUARD, 1);
    assert_non_null(memory);
    memset(memory, 0xff, scratch->bytes);
    memset(memory + scratch->bytes, 0xa5, GUARD);
    tr_free(scratch->memory);
    scratch->memory = memory;
}

static bool is_whole(const struct cpu_scratch *scratch)
{
    const unsigned char *memory = scratch->memory;
    for (size_t i = 0; memory && i < GUARD; i++)
        if (memory[scratch->bytes + i] != 0xa5) return false;
    return true;
}

static void run_like(const struct case_list *list, const struct scene *expected, tr_device *device)
{
    struct scene again;
    char difference[256];
    scene = &again;
    scene_begin_like(&again, device, expected);
    assert_true(list->run(&again, (int)expected->number));
    if (!wrong[0] && scene_differs(expected, &again, difference, sizeof difference))
        snprintf(wrong, sizeof wrong, "%.200s", difference);
    scene_release(&again);
    if (wrong[0])
        fail_msg("%s on %s, case %u (%s): %s", list->operation, device->description, expected->number,
                 expected->name, wrong);
}

static void try_case(const struct case_list *list, const struct scene *expected, tr_device *device)
{
    fails = true;
    run_like(list, expected, device);
    fails = false;
    if (device == reference) return;
    struct cpu_device *cpu = cpu_device_of(device);
    for (int i = 0; i < device->threads; i++) guard(&cpu->member[i]);
    guard(&cpu->shared);
    run_like(list, expected, device);
    bool whole = is_whole(&cpu->shared);
    for (int i = 0; i < device->threads; i++) whole = whole && is_whole(&cpu->member[i]);
    if (!whole)
        fail_msg("%s on %s, case %u (%s) writes beyond its scratch", list->operation, device->description,
                 expected->number, expected->name);
}

/* All cases on a device whose operations are tried. */
static void try_device(tr_device *device)
{
    struct tr_device_class trying = *device->class;
    own = device->class;
#define SLOT(op) trying.op = own->op ? try_##op : NULL;
    TR_DEVICE_OPS(SLOT)
#undef SLOT
    for (int i = 0; i < CASE_LISTS; i++) {
        const struct case_list *list = &case_lists[i];
        case_must_exist(list);
        for (int index = 0;; index++) {
            struct scene expected;
            scene_begin(&expected, reference, SCENE_PLAIN, (uint32_t)i, (uint32_t)index);
            if (!list->run(&expected, index)) break;
            device->class = &trying;
            if (!SANITIZED || index % 4 == 0) try_case(list, &expected, device);
            device->class = own;
            scene_release(&expected);
        }
    }
}

static void operations_of_ref(void **state)
{
    (void)state;
    assert_int_equal(tr_device_create("ref", 1, NULL, &reference), TR_OK);
    try_device(reference);
    tr_device_destroy(&reference);
}

/* Small rooms have more blocks. */
static void operations_of_each_set(void **state)
{
    (void)state;
    assert_int_equal(tr_device_create("ref", 1, NULL, &reference), TR_OK);
    for (int i = 0; i < LENGTH(isas); i++)
        for (int threads = 3; threads >= (i == 0 ? 1 : 3); threads -= 2) {
            tr_device *device;
            if (strcmp(isas[i], "sse2") == 0) break; /* the kernels of the plain set */
            const tr_status status = tr_device_create("cpu", threads, isas[i], &device);
            if (status == TR_EUNSUPPORTED) {
                printf("[  NOTE    ] skipped: %s\n", tr_error_message());
                break;
            }
            assert_int_equal(status, TR_OK);
            struct cpu_device *cpu = cpu_device_of(device);
            cpu->alone = 0; /* every member takes part, however small the case */
            if (threads > 1) {
                cpu_balance_fix(cpu->balance, (double[]){0.5, 0.1, 0.4});
                cpu->room.first /= 64;
                cpu->room.second /= 64;
                cpu->room.last /= 64;
                cpu->room.shared /= 64;
            }
            try_device(device);
            tr_device_destroy(&device);
        }
    tr_device_destroy(&reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_of_ref),
        cmocka_unit_test(operations_of_each_set),
    };
    return cmocka_run_group_tests_name("scratch of the cpu device", tests, NULL, NULL);
}
