/* The reduction tree: covers are made of nodes and as few as possible; counters combine in the order of the
 * recursive definition; parts computed apart give the bits of the whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/numbers/rng.h"
#include "base/numbers/tree.h"

#include <stdbool.h>
#include <string.h>

#define MOST 70

/* The size of the left child of a node over `leaves`: the largest power of two below. */
static int64_t left_size(int64_t leaves)
{
    int64_t left = 1;
    while (left * 2 < leaves) left *= 2;
    return left;
}

/* Whether [begin, end) is a node of the tree over [first, last). */
static bool is_node(int64_t first, int64_t last, int64_t begin, int64_t end)
{
    if (begin == first && end == last) return true;
    if (last - first < 2) return false;
    int64_t middle = first + left_size(last - first);
    return end <= middle ? is_node(first, middle, begin, end)
                         : begin >= middle && is_node(middle, last, begin, end);
}

static void test_cover(void **state)
{
    (void)state;
    for (int64_t leaves = 1; leaves <= 33; leaves++) {
        for (int64_t begin = 0; begin <= leaves; begin++) {
            for (int64_t end = begin; end <= leaves; end++) {
                int64_t bounds[2 * TR_TREE_DEPTH + 1];
                int nodes = tr_tree_cover(leaves, begin, end, bounds);
                assert_int_equal(bounds[0], begin);
                assert_int_equal(bounds[nodes], end);
                for (int i = 0; i < nodes; i++) assert_true(is_node(0, leaves, bounds[i], bounds[i + 1]));
                /* Fewest: nodes nest, so a smaller cover would join neighbours. */
                for (int i = 0; i + 1 < nodes; i++)
                    assert_false(is_node(0, leaves, bounds[i], bounds[i + 2]));
            }
        }
    }
}

static float leaf(int64_t i)
{
    uint32_t words[4];
    tr_rng_philox((tr_rng_key){1, 2}, (uint32_t)i, 0, 0, 0, words);
    return (tr_rng_unit(words[0]) - 0.5f) * (float)(1u << words[1] % 24); /* sums round, so order shows */
}

static float by_definition(int64_t first, int64_t last)
{
    if (last - first == 1) return leaf(first);
    int64_t middle = first + left_size(last - first);
    return by_definition(first, middle) + by_definition(middle, last);
}

/* The sum of leaves [begin, end) as a tree of its own, by the counter. */
static float by_counter(int64_t begin, int64_t end)
{
    float stack[TR_TREE_DEPTH];
    int top = -1, most = 0;
    for (int64_t i = begin; i < end; i++) {
        stack[++top] = leaf(i);
        if (top + 1 > most) most = top + 1;
        for (int due = tr_tree_combines_after(i - begin); due > 0; due--, top--) stack[top - 1] += stack[top];
    }
    assert_int_equal(top, tr_tree_combines_at_end(end - begin));
    assert_int_equal(most, tr_tree_levels(end - begin));
    for (; top > 0; top--) stack[top - 1] += stack[top];
    return stack[0];
}

/* The same by the helper; `known`: whether it is told at once that a leaf is the last. */
static float by_fold(int64_t begin, int64_t end, bool known)
{
    float value[TR_TREE_DEPTH] = {0};
    struct tr_tree_fold fold = {0};
    int right;
    for (int64_t i = begin; i < end; i++) {
        value[fold.waiting] = leaf(i);
        tr_tree_push(&fold, known && i + 1 == end);
        assert_true(fold.waiting <= tr_tree_levels(end - begin));
        while ((right = tr_tree_combine(&fold)) > 0) value[right - 1] += value[right];
    }
    if (!known) tr_tree_end(&fold);
    while ((right = tr_tree_combine(&fold)) > 0) value[right - 1] += value[right];
    assert_int_equal(fold.waiting, 1);
    return value[0];
}

static void test_counter_is_the_tree(void **state)
{
    (void)state;
    bool order_matters = false;
    for (int64_t leaves = 1; leaves <= 1000; leaves += 1 + leaves / 50) {
        float expected = by_definition(0, leaves), counted = by_counter(0, leaves), chain = 0;
        assert_memory_equal(&expected, &counted, sizeof expected);
        for (int known = 0; known < 2; known++) {
            float folded = by_fold(0, leaves, known);
            assert_memory_equal(&expected, &folded, sizeof expected);
        }
        for (int64_t i = 0; i < leaves; i++) chain += leaf(i);
        order_matters = order_matters || chain != expected;
    }
    assert_true(order_matters); /* else this test shows nothing */
}

/* What a worker or two compute apart: node values by the counter, looked up where the whole tree needs them.
 */
struct parts {
    int nodes;
    int64_t bounds[4 * TR_TREE_DEPTH];
    float value[4 * TR_TREE_DEPTH];
};

static float from_parts(const struct parts *parts, int64_t first, int64_t last)
{
    for (int i = 0; i < parts->nodes; i++)
        if (parts->bounds[i] == first && parts->bounds[i + 1] == last) return parts->value[i];
    assert_true(last - first > 1); /* every leaf lies in some part's node */
    int64_t middle = first + left_size(last - first);
    return from_parts(parts, first, middle) + from_parts(parts, middle, last);
}

static void test_parts_make_the_whole(void **state)
{
    (void)state;
    for (int64_t leaves = 1; leaves <= MOST; leaves++) {
        float whole = by_definition(0, leaves);
        for (int64_t workers = 1; workers <= leaves && workers <= 9; workers++) {
            struct parts parts = {0};
            for (int64_t w = 0; w < workers; w++)
                parts.nodes += tr_tree_cover(leaves, tr_cut(leaves, workers, w),
                                             tr_cut(leaves, workers, w + 1), parts.bounds + parts.nodes);
            for (int i = 0; i < parts.nodes; i++)
                parts.value[i] = by_counter(parts.bounds[i], parts.bounds[i + 1]);
            float joined = from_parts(&parts, 0, leaves);
            assert_memory_equal(&whole, &joined, sizeof whole);
        }
    }
}

static void test_cut(void **state)
{
    (void)state;
    for (int64_t items = 0; items <= 100; items++) {
        for (int64_t parts = 1; parts <= 12; parts++) {
            assert_int_equal(tr_cut(items, parts, 0), 0);
            assert_int_equal(tr_cut(items, parts, parts), items);
            for (int64_t i = 0; i < parts; i++) {
                int64_t size = tr_cut(items, parts, i + 1) - tr_cut(items, parts, i);
                assert_true(size == items / parts || size == items / parts + 1);
            }
        }
    }
    assert_int_equal(tr_cut(INT64_MAX, 3, 3), INT64_MAX);
}

/* Every leaf is in one part, none is larger than need be or, if there are enough leaves, empty; and together
   they are no more nodes than where all are as equal as can be. Of 16 leaves, five parts are five nodes. */
static void test_cuts_at_nodes(void **state)
{
    (void)state;
    int64_t bound[81], even[81], cut[2 * TR_TREE_DEPTH + 1];
    static const int64_t five[] = {0, 4, 8, 12, 14, 16};
    for (int64_t leaves = 1; leaves <= 70; leaves++)
        for (int64_t parts = 1; parts <= 80; parts++) {
            int64_t most = (leaves + parts - 1) / parts, nodes = 0, nodes_even = 0;
            tr_tree_cut(leaves, parts, bound);
            for (int64_t i = 0; i <= parts; i++) even[i] = tr_cut(leaves, parts, i);
            assert_int_equal(bound[0], 0);
            assert_int_equal(bound[parts], leaves);
            for (int64_t i = 0; i < parts; i++) {
                assert_in_range(bound[i + 1] - bound[i], leaves >= parts, most);
                nodes += tr_tree_cover(leaves, bound[i], bound[i + 1], cut);
                nodes_even += tr_tree_cover(leaves, even[i], even[i + 1], cut);
            }
            assert_true(nodes <= nodes_even);
        }
    tr_tree_cut(16, 5, bound);
    for (int i = 0; i <= 5; i++) assert_int_equal(bound[i], five[i]);
}

static double slowest(int64_t parts, const double *speed, const int64_t *bound)
{
    double most = 0;
    for (int64_t i = 0; i < parts; i++) {
        double time = (double)(bound[i + 1] - bound[i]) / speed[i];
        if (time > most) most = time;
    }
    return most;
}

/* The slowest part is done as soon as in the best of all cuts, all of which are tried; no part is empty; and
   equal speeds make the cut of parts that are equal. */
static void test_cuts_by_speed(void **state)
{
    static const double speeds[] = {1, 3, 0.37, 1, 20};
    int64_t bound[4], tried[4] = {0}, equal[4];
    (void)state;
    for (int64_t leaves = 3; leaves <= 24; leaves++)
        for (int code = 0; code < 125; code++) {
            double speed[3] = {speeds[code % 5], speeds[code / 5 % 5], speeds[code / 25]}, best = 1e9;
            tried[3] = leaves;
            for (tried[1] = 1; tried[1] < leaves - 1; tried[1]++)
                for (tried[2] = tried[1] + 1; tried[2] < leaves; tried[2]++) {
                    double time = slowest(3, speed, tried);
                    if (time < best) best = time;
                }
            tr_tree_cut_by_speed(leaves, 3, speed, bound);
            assert_int_equal(bound[0], 0);
            assert_int_equal(bound[3], leaves);
            for (int i = 0; i < 3; i++) assert_true(bound[i] < bound[i + 1]);
            assert_true(slowest(3, speed, bound) == best);
            if (speed[0] != speed[1] || speed[1] != speed[2]) continue;
            tr_tree_cut(leaves, 3, equal);
            assert_memory_equal(bound, equal, sizeof bound);
        }
    static const double uneven[] = {3, 1};
    tr_tree_cut_by_speed(16, 2, uneven, bound);
    assert_int_equal(bound[1], 12); /* three nodes, of 8, 4 and 4 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts_at_nodes),
        cmocka_unit_test(test_cuts_by_speed),
        cmocka_unit_test(test_cover),
        cmocka_unit_test(test_counter_is_the_tree),
        cmocka_unit_test(test_parts_make_the_whole),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
