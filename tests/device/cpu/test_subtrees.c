/* Members of any speeds do all work of the subtrees once, most of it where they hold the operands. */
#include "device/cpu/subtrees.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <cmocka.h>

enum { MOST = 4, ROWS = 64, UNITS = 27 };

/* Equal microbatches, unequal ones, and more of them than members. */
static const int64_t equal[] = {0, 16, 32, 48, 64}, unequal[] = {0, 17, 33, 50, 64},
                     many[] = {0, 8, 16, 24, 32, 40, 48, 56, 64};
static const struct tr_cut cuts[] = {{.count = 4, .row = equal, .nodes = 1},
                                     {.count = 4, .row = unequal, .nodes = 1},
                                     {.count = 8, .row = many, .nodes = 1}};
static const double shares[][MOST] = {{0.25, 0.25, 0.25, 0.25}, {0.4, 0.2, 0.2, 0.2},
                                      {0.1, 0.3, 0.2, 0.4},     {0.05, 0.05, 0.1, 0.8},
                                      {0.24, 0.26, 0.26, 0.24}, {0.7, 0.1, 0.1, 0.1}};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static struct subtrees subtrees_of(const struct tr_cut *cut)
{
    return (struct subtrees){.count = MOST, .leaves = cut->count / MOST};
}

/* Calls `check` for every cut and all shares. */
static void for_all(void (*check)(struct cpu_balance *balance, const struct subtrees *s,
                                  const struct tr_cut *cut, const double *share))
{
    for (size_t i = 0; i < LENGTH(shares); i++)
        for (size_t k = 0; k < LENGTH(cuts); k++) {
            struct cpu_balance *balance = cpu_balance_create(MOST);
            assert_non_null(balance);
            cpu_balance_fix(balance, shares[i]);
            const struct subtrees s = subtrees_of(&cuts[k]);
            check(balance, &s, &cuts[k], shares[i]);
            cpu_balance_destroy(balance);
        }
}

static void check_tiles(struct cpu_balance *balance, const struct subtrees *s, const struct tr_cut *cut,
                        const double *share)
{
    int taken[MOST][UNITS] = {{0}};
    for (int m = 0; m < MOST; m++) {
        const struct subtree_tiles part = cpu_subtree_tiles(balance, s, cut, UNITS, m);
        double work = 0.0;
        for (int i = part.first; i <= part.last && i < MOST; i++) {
            const int64_t rows = cut->row[(i + 1) * s->leaves] - cut->row[i * s->leaves];
            const int64_t end = i == part.last ? part.end : UNITS;
            for (int64_t u = i == part.first ? part.begin : 0; u < end; u++) {
                taken[i][u]++;
                work += (double)rows / (ROWS * UNITS);
            }
        }
        /* As its share, but for ends of subtrees that are near. */
        assert_true(fabs(work - share[m]) <= 2.0 / (12 * MOST) + 0.01);
    }
    for (int i = 0; i < MOST; i++)
        for (int u = 0; u < UNITS; u++) assert_int_equal(taken[i][u], 1);
}

static void tiles_are_computed_once(void **state)
{
    (void)state;
    for_all(check_tiles);
}

static void check_rows(struct cpu_balance *balance, const struct subtrees *s, const struct tr_cut *cut,
                       const double *share)
{
    int64_t next = 0;
    double wanted = 0.0; /* where the next member should begin: twice its place, less the rows of the sums */
    for (int m = 0; m < MOST; m++) {
        int64_t begin, end;
        cpu_subtree_rows(balance, s, cut, m, &begin, &end);
        assert_int_equal(begin, next);
        assert_true(end >= begin);
        next = end;
        const double own = (double)(cut->row[(m + 1) * s->leaves] - cut->row[m * s->leaves]);
        wanted += 2.0 * share[m] * ROWS - own;
        /* But for members whose sums alone are more than their share, and for ends of subtrees that are near.
         */
        if (share[0] >= 0.125 && share[1] >= 0.125 && share[2] >= 0.125)
            assert_true(fabs((double)end - fmin(wanted, ROWS)) <= (double)ROWS / (12 * MOST) + 2.0);
    }
    assert_int_equal(next, ROWS);
}

static void rows_are_computed_once(void **state)
{
    (void)state;
    for_all(check_rows);
}

/* Equal members of equal subtrees touch only their own operands. */
static void equal_members_keep_their_subtrees(void **state)
{
    (void)state;
    struct cpu_balance *balance = cpu_balance_create(MOST);
    for (size_t k = 0; k < LENGTH(cuts); k++)
        for (int m = 0; m < MOST && cuts[k].row != unequal; m++) {
            const struct subtrees s = subtrees_of(&cuts[k]);
            const struct subtree_tiles part = cpu_subtree_tiles(balance, &s, &cuts[k], UNITS, m);
            assert_int_equal(part.first, m);
            assert_int_equal(part.begin, 0);
            assert_int_equal(part.last, m + 1);
            assert_int_equal(part.end, 0);
            int64_t begin, end;
            cpu_subtree_rows(balance, &s, &cuts[k], m, &begin, &end);
            assert_int_equal(begin, cuts[k].row[m * s.leaves]);
            assert_int_equal(end, cuts[k].row[(m + 1) * s.leaves]);
        }
    cpu_balance_destroy(balance);
}

/* A member of half the speed of the other: it does two thirds of its tiles, and a third of its rows. */
static void a_slow_member_leaves_its_last_work(void **state)
{
    (void)state;
    static const int64_t row[] = {0, 30, 60};
    const struct tr_cut cut = {.count = 2, .row = row, .nodes = 1};
    const struct subtrees s = {.count = 2, .leaves = 1};
    struct cpu_balance *balance = cpu_balance_create(2);
    cpu_balance_fix(balance, (double[]){1.0 / 3, 2.0 / 3});
    const struct subtree_tiles slow = cpu_subtree_tiles(balance, &s, &cut, 30, 0),
                               fast = cpu_subtree_tiles(balance, &s, &cut, 30, 1);
    assert_int_equal(slow.last, 0);
    assert_int_equal(slow.end, 20);
    assert_int_equal(fast.first, 0);
    assert_int_equal(fast.begin, 20);
    assert_int_equal(fast.last, 2);
    int64_t begin, end;
    cpu_subtree_rows(balance, &s, &cut, 0, &begin, &end);
    assert_int_equal(begin, 0);
    assert_int_equal(end, 10);
    cpu_subtree_rows(balance, &s, &cut, 1, &begin, &end);
    assert_int_equal(begin, 10);
    assert_int_equal(end, 60);
    cpu_balance_destroy(balance);
}

/* Parts that would hardly fill a block of their own are not moved. */
static void members_of_about_the_same_speed_keep_their_subtrees(void **state)
{
    (void)state;
    static const int64_t row[] = {0, 30, 60};
    const struct tr_cut cut = {.count = 2, .row = row, .nodes = 1};
    const struct subtrees s = {.count = 2, .leaves = 1};
    struct cpu_balance *balance = cpu_balance_create(2);
    cpu_balance_fix(balance, (double[]){0.48, 0.52});
    const struct subtree_tiles part = cpu_subtree_tiles(balance, &s, &cut, 30, 0);
    assert_int_equal(part.last, 1);
    assert_int_equal(part.end, 0);
    int64_t begin, end;
    cpu_subtree_rows(balance, &s, &cut, 0, &begin, &end);
    assert_int_equal(end, 30);
    cpu_balance_destroy(balance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_are_computed_once),
        cmocka_unit_test(rows_are_computed_once),
        cmocka_unit_test(equal_members_keep_their_subtrees),
        cmocka_unit_test(a_slow_member_leaves_its_last_work),
        cmocka_unit_test(members_of_about_the_same_speed_keep_their_subtrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
