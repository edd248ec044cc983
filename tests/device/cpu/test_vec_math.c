/* The vector layer of every instruction set that this machine has: each lane does what the scalar operation
 * does, to the bit. Sets that the machine lacks are named and skipped.
 *
 * test_device_vec_math all [SET]: exp, log, tanh, sigmoid and erf of each of the 2^32 floats instead.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device/device.h"
#include "device/functions.h"
#include "device/cpu/vec_checks.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

static const char *only; /* this set, or NULL: all */

static void every_float_gives_the_scalar_bits(void **state)
{
    enum { COUNT = 8 * FUNCTIONS_BLOCK };
    static float in[COUNT], expected[COUNT * FUNCTIONS], got[COUNT * FUNCTIONS];
    const struct vec_checks *here[sizeof sets / sizeof sets[0]];
    int count = 0;
    (void)state;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        if ((!only || strcmp(only, sets[i]->isa) == 0) && available(sets[i]->isa)) here[count++] = sets[i];
    assert_true(count > 0);
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += COUNT) {
        functions_inputs(bits, 1, COUNT, in);
        functions_of(in, COUNT, expected);
        for (int i = 0; i < count; i++) {
            here[i]->functions(in, COUNT, got);
            functions_compare(here[i]->isa, in, COUNT, expected, got);
        }
        if ((bits + COUNT) % ((uint64_t)1 << 28) == 0) {
            printf("[  NOTE    ] %d of 16 parts on %d instruction sets\n", (int)((bits + COUNT) >> 28),
                   count);
            fflush(stdout);
        }
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest samples[] = {cmocka_unit_test(every_instruction_set_equals_scalar_code)};
    const struct CMUnitTest all[] = {cmocka_unit_test(every_float_gives_the_scalar_bits)};
    only = count > 2 ? arguments[2] : NULL;
    if (count > 1 && strcmp(arguments[1], "all") == 0) return cmocka_run_group_tests(all, NULL, NULL);
    return cmocka_run_group_tests(samples, NULL, NULL);
}
