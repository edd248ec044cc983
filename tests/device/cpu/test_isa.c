/* Which kernels an instruction set has: its own, but where the chains of `ref` take instructions for FMA and
   its own were compiled without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "device/cpu/isa.h"
#include "device/isas.h"
#include "device/ref/loops/chain.h"
#include "device/ref/ref.h"
#include "trireme/status.h"

#include <stdbool.h>
#include <string.h>

static const char *const names[] = {TR_ISAS(TR_ISA_NAME)};
#define NAMES ((int)(sizeof names / sizeof names[0]))

/* Of the operations made of chains, those that a device takes from `ref`; *all counts them. */
static int chains_of_ref(const char *isa, int *all)
{
    tr_device *device;
    int of_ref = 0;
    assert_int_equal(tr_device_create("cpu", 2, isa, &device), TR_OK);
    *all = 0;
#define COUNT(op)                                                                                            \
    of_ref += device->class->op == tr_device_ref.op;                                                         \
    ++*all;
    TR_DEVICE_CHAIN_OPS(COUNT)
    TR_DEVICE_CHAIN_FUSIONS(COUNT)
#undef COUNT
    tr_device_destroy(&device);
    return of_ref;
}

static void test_chains(void **state)
{
    (void)state;
    int found = 0;
    for (int i = 0; i < NAMES; i++) {
        const struct cpu_isa *isa = cpu_isa_find(names[i]);
        if (!isa) continue;
        found++;
        int all, of_ref = chains_of_ref(names[i], &all);
        bool slower = !strcmp(names[i], "plain") && !isa->kernels->fuses && ref_chains_fuse();
        assert_int_equal(of_ref, slower ? all : 0);
    }
    assert_true(found > 0);
}

static void test_others_stay(void **state)
{
    tr_device *device;
    (void)state;
    assert_int_equal(tr_device_create("cpu", 1, "plain", &device), TR_OK);
    assert_true(device->class->softmax_forward != tr_device_ref.softmax_forward);
    assert_true(device->class->update != tr_device_ref.update);
    tr_device_destroy(&device);
}

/* The first of the list that the machine has is the default. */
static void test_default(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++)
        if (cpu_isa_find(names[i])) {
            assert_string_equal(cpu_isa_find(NULL)->name, names[i]);
            assert_ptr_equal(cpu_isa_find(""), cpu_isa_find(names[i]));
            return;
        }
    fail();
}

static void test_unknown(void **state)
{
    (void)state;
    assert_null(cpu_isa_find("mmx"));
    assert_non_null(strstr(tr_error_message(), "\"mmx\""));
    assert_non_null(strstr(tr_error_message(), "plain"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_others_stay),
        cmocka_unit_test(test_default),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
