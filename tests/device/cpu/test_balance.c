/* The parts of a team's members: equal ones are those of tr_team_chunk(), unequal ones cover everything once,
 * and they follow the speeds of the members. Time is the test's own.
 */
#include "device/cpu/balance.h"
#include "device/cpu/grid.h"

#include "base/threads/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <cmocka.h>

#define MOST 4

static _Thread_local double now;

static double own_clock(void *user)
{
    (void)user;
    return now;
}

static void use_own_clock(void *arguments, int member, int size)
{
    (void)arguments, (void)member, (void)size;
    tr_clock_use(own_clock, NULL);
}

/* An operation whose members have these speeds, and take `seconds` if one has all at speed 1. */
struct operation {
    struct cpu_balance *balance;
    double speed[MOST], seconds;
    bool silent; /* does not take its parts from the balance */
};

static void operate(void *arguments, int member, int size)
{
    struct operation *o = arguments;
    int64_t begin, end;
    const int64_t count = 100000;
    if (o->silent)
        tr_team_chunk(count, 1, member, size, &begin, &end);
    else
        cpu_items(o->balance, count, 1, member, size, &begin, &end);
    now += (double)(end - begin) / (double)count * o->seconds / o->speed[member];
}

/* Makes a team whose clocks are the test's, runs the operation so often, and checks where parts begin. */
static void expect_shares(int size, struct operation o, int runs, const double *share, double tolerance)
{
    tr_team *team;
    assert_int_equal(tr_team_create(size, &team), TR_OK);
    o.balance = cpu_balance_create(size);
    assert_non_null(o.balance);
    tr_team_run_together(team, use_own_clock, NULL);
    for (int i = 0; i < runs; i++) cpu_balance_run(o.balance, team, operate, &o);
    const int64_t count = INT64_C(1) << 32;
    int64_t begin, end = 0;
    double expected = 0.0;
    for (int i = 0; i < size; expected += share[i++]) {
        cpu_items(o.balance, count, 1, i, size, &begin, &end);
        if (!(fabs((double)begin / (double)count - expected) <= tolerance))
            fail_msg("member %d of %d begins at %g, expected %g", i, size, (double)begin / (double)count,
                     expected);
    }
    assert_true(end == count);
    cpu_balance_destroy(o.balance);
    tr_team_destroy(&team);
    tr_clock_use(NULL, NULL);
}

static void shares_follow_the_speeds(void **state)
{
    (void)state;
    expect_shares(2, (struct operation){.speed = {3, 1}, .seconds = 0.004}, 200, (double[]){0.75, 0.25},
                  0.01);
    expect_shares(2, (struct operation){.speed = {2, 3}, .seconds = 0.0005}, 400, (double[]){0.4, 0.6}, 0.01);
    expect_shares(4, (struct operation){.speed = {4, 4, 2, 2}, .seconds = 0.01}, 300,
                  (double[]){0.333, 0.333, 0.167, 0.167}, 0.01);
}

/* One operation alone moves them only a part of the way. */
static void one_run_is_not_believed(void **state)
{
    (void)state;
    expect_shares(2, (struct operation){.speed = {3, 1}, .seconds = 10.0}, 1, (double[]){0.5625, 0.4375},
                  1e-9);
}

static void shares_stay_within_limits(void **state)
{
    (void)state;
    expect_shares(2, (struct operation){.speed = {40, 1}, .seconds = 0.01}, 2000, (double[]){0.8889, 0.1111},
                  0.01);
}

/* Without parts from the balance, without time, or nearly equal ones. */
static void shares_stay_equal(void **state)
{
    (void)state;
    const double equal[] = {0.5, 0.5};
    expect_shares(2, (struct operation){.speed = {3, 1}, .seconds = 0.01, .silent = true}, 50, equal, 0.0);
    expect_shares(2, (struct operation){.speed = {3, 1}, .seconds = 0.0}, 50, equal, 0.0);
    expect_shares(2, (struct operation){.speed = {1.02, 1}, .seconds = 0.01}, 200, equal, 0.0);
}

static void equal_parts_are_those_of_the_team(void **state)
{
    (void)state;
    for (int size = 1; size <= MOST; size++) {
        struct cpu_balance *balance = cpu_balance_create(size);
        for (int64_t count = 0; count < 40; count++)
            for (int64_t grain = 1; grain <= 16; grain += 5)
                for (int i = 0; i < size; i++) {
                    int64_t begin, end, expected, expected_end;
                    cpu_items(balance, count, grain, i, size, &begin, &end);
                    tr_team_chunk(count, grain, i, size, &expected, &expected_end);
                    assert_int_equal(begin, expected);
                    assert_int_equal(end, expected_end);
                }
        cpu_balance_destroy(balance);
    }
}

static void unequal_parts_cover_everything_once(void **state)
{
    (void)state;
    static const double shares[][MOST] = {
        {0.25, 0.25, 0.25, 0.25}, {0.7, 0.1, 0.1, 0.1}, {0.05, 0.05, 0.1, 0.8}, {0.4, 0.05, 0.5, 0.05}};
    for (size_t s = 0; s < sizeof shares / sizeof shares[0]; s++) {
        struct cpu_balance *balance = cpu_balance_create(MOST);
        cpu_balance_fix(balance, shares[s]);
        for (int64_t count = 0; count < 50; count++)
            for (int64_t grain = 1; grain <= 16; grain += 5) {
                int64_t next = 0;
                for (int i = 0; i < MOST; i++) {
                    int64_t begin, end;
                    cpu_items(balance, count, grain, i, MOST, &begin, &end);
                    assert_int_equal(begin, next);
                    assert_true(end >= begin && (end % grain == 0 || end == count));
                    next = end;
                }
                assert_int_equal(next, count);
            }
        /* As large as the shares, within a grain. */
        for (int i = 0; i < MOST; i++) {
            int64_t begin, end;
            cpu_items(balance, 1600, 16, i, MOST, &begin, &end);
            assert_true(fabs((double)(end - begin) - 1600 * shares[s][i]) <= 16);
        }
        cpu_balance_destroy(balance);
    }
}

/* A grid of two rows: each is as high as its members together are fast. */
static void grids_follow_the_shares(void **state)
{
    (void)state;
    struct cpu_balance *balance = cpu_balance_create(4);
    cpu_balance_fix(balance, (double[]){0.6, 0.2, 0.1, 0.1});
    static const struct cpu_part expected[] = {
        {0, 80, 0, 75}, {0, 80, 75, 100}, {80, 100, 0, 50}, {80, 100, 50, 100}};
    for (int i = 0; i < 4; i++) {
        const struct cpu_part part = cpu_part(balance, 2, 100, 100, 1, i, 4);
        assert_int_equal(part.row, expected[i].row);
        assert_int_equal(part.row_end, expected[i].row_end);
        assert_int_equal(part.column, expected[i].column);
        assert_int_equal(part.column_end, expected[i].column_end);
    }
    cpu_balance_destroy(balance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_follow_the_speeds),
        cmocka_unit_test(one_run_is_not_believed),
        cmocka_unit_test(shares_stay_within_limits),
        cmocka_unit_test(shares_stay_equal),
        cmocka_unit_test(equal_parts_are_those_of_the_team),
        cmocka_unit_test(unequal_parts_cover_everything_once),
        cmocka_unit_test(grids_follow_the_shares),
    };
    return cmocka_run_group_tests_name("balance of a team", tests, NULL, NULL);
}
