/* The vector layer of every instruction set that this machine has: each lane does what the scalar operation
 * does, to the bit. Sets that the machine lacks are named and skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device/device.h"
#include "device/vec_checks.h"

#include <stdbool.h>

#if TR_HAVE_ISA_AVX512
extern const struct vec_checks cpu_vec_checks_avx512;
#endif
#if TR_HAVE_ISA_AVX2
extern const struct vec_checks cpu_vec_checks_avx2;
#endif
#if TR_HAVE_ISA_NEON
extern const struct vec_checks cpu_vec_checks_neon;
#endif
extern const struct vec_checks cpu_vec_checks_plain;

static const struct vec_checks *const sets[] = {
#if TR_HAVE_ISA_AVX512
    &cpu_vec_checks_avx512,
#endif
#if TR_HAVE_ISA_AVX2
    &cpu_vec_checks_avx2,
#endif
#if TR_HAVE_ISA_NEON
    &cpu_vec_checks_neon,
#endif
    &cpu_vec_checks_plain,
};

static bool available(const char *isa)
{
    tr_device *device;
    if (tr_device_create("cpu", 1, isa, &device) != TR_OK) return false;
    tr_device_destroy(&device);
    return true;
}

static void every_instruction_set_equals_scalar_code(void **state)
{
    (void)state;
    int failures = 0;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        const struct vec_checks *set = sets[i];
        if (!available(set->isa)) {
            print_message("[  NOTE    ] skipped: %s\n", tr_error_message());
            continue;
        }
        for (int k = 0; k < set->count; k++) {
            const char *wrong = set->check[k].run();
            if (wrong) print_error("%s, %s: %s\n", set->isa, set->check[k].name, wrong);
            failures += wrong != NULL;
        }
    }
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_instruction_set_equals_scalar_code)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
