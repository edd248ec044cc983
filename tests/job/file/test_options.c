/* Values that options take by rule where a model file leaves them open. */
#include "job/file/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* docs/reference/model-file.md: a power of two up to 16, of at least 25 examples each. */
static void microbatches_have_at_least_25_examples(void **state)
{
    (void)state;
    static const struct {
        int64_t batch, microbatches;
    } cases[] = {{1, 1},   {49, 1},  {50, 2},   {99, 2},   {100, 4},  {175, 4},    {199, 4},
                 {200, 8}, {399, 8}, {400, 16}, {799, 16}, {800, 16}, {100000, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(tr_microbatch_rule(cases[i].batch), cases[i].microbatches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(microbatches_have_at_least_25_examples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
