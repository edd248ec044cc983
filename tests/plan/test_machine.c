/* What is to be measured of a machine: each use of it once, with each of its parts once.
 */
#include "plan/machine.h"

#include "base/alloc.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void uses_differ_in_threads_and_copies(void **state)
{
    static const struct {
        int threads, copies;
        struct tr_measured_part part;
        int usage, parts; /* the use, and how many parts that has then */
    } cases[] = {
        {1, 1, {8, 2}, 0, 1}, {1, 2, {8, 2}, 1, 1}, {2, 1, {8, 2}, 2, 1},  {2, 2, {8, 2}, 3, 1},
        {1, 1, {8, 2}, 0, 1}, {1, 1, {8, 4}, 0, 2}, {1, 1, {16, 4}, 0, 3}, {1, 1, {16, 2}, 0, 4},
        {1, 1, {8, 4}, 0, 4}, {2, 2, {8, 4}, 3, 2}, {2, 1, {8, 2}, 2, 1},
    };
    struct tr_machine machine = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int usage = tr_machine_expect(&machine, cases[i].threads, cases[i].copies, cases[i].part);
        assert_int_equal(usage, cases[i].usage);
        assert_int_equal(machine.usage[usage].threads, cases[i].threads);
        assert_int_equal(machine.usage[usage].copies, cases[i].copies);
        assert_int_equal(machine.usage[usage].parts, cases[i].parts);
    }
    assert_int_equal(machine.usages, 4);
    tr_machine_release(&machine);
    assert_int_equal(machine.usages, 0);
    assert_null(machine.usage);
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct tr_machine machine = {0};
        int usage = 0;
        refuse_begin(at);
        for (int64_t i = 1; i < 20 && usage >= 0; i++)
            usage = tr_machine_expect(&machine, 1, 1 + (int)i / 10, (struct tr_measured_part){i, 1});
        done = refuse_end();
        assert_int_equal(usage, done ? 1 : -1);
        tr_machine_release(&machine);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uses_differ_in_threads_and_copies),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("plan.machine", tests, NULL, NULL);
}
