/* The memory that ranks of a host share: whom each notice reaches, once. */
#include "comm/local/area.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { RANKS = 70 }; /* more than a word has bits */

static struct local_area area;
static uint32_t bell[RANKS];
static uint64_t changes;

static int make(void **state)
{
    (void)state;
    return tr_local_area_create(RANKS, &area) == TR_OK ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    tr_local_area_close(&area);
    return 0;
}

static void note(void)
{
    changes = atomic_load(&area.header->changes);
    for (int r = 0; r < RANKS; r++) bell[r] = atomic_load(&area.record[r].bell);
}

/* Whether the bell of `only` (-1: of everybody) rang since note(), and nobody else's. */
static void expect_rung(int only, uint64_t more_changes)
{
    for (int r = 0; r < RANKS; r++)
        if ((atomic_load(&area.record[r].bell) != bell[r]) != (only < 0 || r == only))
            fail_msg("rank %d of those that %d means", r, only);
    assert_int_equal(atomic_load(&area.header->changes), changes + more_changes);
}

static void expect_silence(void)
{
    for (int r = 0; r < RANKS; r++) assert_int_equal(atomic_load(&area.record[r].bell), bell[r]);
    assert_int_equal(atomic_load(&area.header->changes), changes);
}

static void bells_are_of_those_who_are_meant(void **state)
{
    (void)state;
    note();
    tr_local_wake(&area, 0);
    expect_rung(0, 0);
    note();
    tr_local_wake(&area, RANKS - 1);
    expect_rung(RANKS - 1, 0);
    note();
    tr_local_wake_all(&area);
    expect_rung(-1, 0);
    note();
    tr_local_change(&area);
    expect_rung(-1, 1);
}

static void knocks_name_who_knocks(void **state)
{
    (void)state;
    static const int from[] = {0, 1, 63, 64, 69};
    uint64_t mail[LOCAL_WORDS] = {0}, letters = 0;
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        note();
        tr_local_knock(&area, from[i], 2);
        expect_rung(2, 0);
        mail[from[i] / 64] |= (uint64_t)1 << from[i] % 64;
        letters |= (uint64_t)1 << from[i] / 64;
        for (int w = 0; w < LOCAL_WORDS; w++) assert_true(atomic_load(&area.record[2].mail[w]) == mail[w]);
        assert_true(atomic_load(&area.record[2].letters) == letters);
        /* Nobody looked yet: the bell does not ring again, but what the first one may have left out is there.
         */
        note();
        atomic_store(&area.record[2].letters, 0);
        tr_local_knock(&area, from[i], 2);
        expect_silence();
        assert_true(atomic_load(&area.record[2].letters) == (uint64_t)1 << from[i] / 64);
        atomic_store(&area.record[2].letters, letters);
    }
    atomic_store(&area.record[2].mail[1], 0);
    note();
    tr_local_knock(&area, 64, 2);
    expect_rung(2, 0);
}

static void ends_are_told_once(void **state)
{
    (void)state;
    note();
    tr_local_bury(&area, 66);
    expect_rung(-1, 1);
    assert_int_equal(atomic_load(&area.record[66].ended), 1);
    for (int r = 0; r < RANKS; r++) {
        assert_true(atomic_load(&area.record[r].mail[1]) == (uint64_t)1 << 2);
        assert_int_equal(atomic_load(&area.record[r].ended), r == 66);
    }
    note();
    tr_local_bury(&area, 66);
    expect_silence();
}

static void the_first_to_give_up_is_known(void **state)
{
    (void)state;
    char why[16];
    assert_int_equal(tr_local_first_to_give_up(&area), -1);
    note();
    tr_local_give_up(&area, 0, "the first");
    expect_rung(-1, 1);
    assert_int_equal(atomic_load(&area.record[0].state), LOCAL_GAVE_UP);
    assert_int_equal(tr_local_first_to_give_up(&area), 0);
    note();
    tr_local_give_up(&area, 0, "again");
    expect_silence();
    tr_local_words(&area, 0, why, sizeof why);
    assert_string_equal(why, "the first");
    note();
    tr_local_give_up(&area, RANKS - 1, "one that is longer than there is room for");
    expect_rung(-1, 1);
    assert_int_equal(tr_local_first_to_give_up(&area), 0);
    tr_local_words(&area, RANKS - 1, why, sizeof why);
    assert_string_equal(why, "one that is lon");
    /* Others wrote it: no rank that there is not. */
    atomic_store(&area.header->first, RANKS);
    assert_int_equal(tr_local_first_to_give_up(&area), RANKS - 1);
    atomic_store(&area.header->first, RANKS + 1);
    assert_int_equal(tr_local_first_to_give_up(&area), -1);
    atomic_store(&area.header->first, -1);
    assert_int_equal(tr_local_first_to_give_up(&area), -1);
}

/* Who looks at a bell that has rung since does not sleep. */
static void a_bell_that_rang_lets_nobody_sleep(void **state)
{
    (void)state;
    uint32_t moment = atomic_load(&area.record[1].bell);
    tr_local_wake(&area, 1);
    tr_local_sleep(&area, 1, moment, 1e6);
    assert_int_equal(atomic_load(&area.record[1].sleepers), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bells_are_of_those_who_are_meant, make, drop),
        cmocka_unit_test_setup_teardown(knocks_name_who_knocks, make, drop),
        cmocka_unit_test_setup_teardown(ends_are_told_once, make, drop),
        cmocka_unit_test_setup_teardown(the_first_to_give_up_is_known, make, drop),
        cmocka_unit_test_setup_teardown(a_bell_that_rang_lets_nobody_sleep, make, drop),
    };
    return cmocka_run_group_tests_name("comm.local_area", tests, NULL, NULL);
}
