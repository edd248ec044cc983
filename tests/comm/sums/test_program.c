/* Programs of the reduction tree: outputs are the largest nodes that the inputs cover, with the sums of the
 * definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/numbers/tree.h"
#include "comm/program.h"
#include "refuse.h"
#include "comm/scenarios/scenarios.h"

#include <stdlib.h>
#include <string.h>

#define LEAVES_MOST 21
#define COUNT       1100 /* more than two blocks */

static int64_t middle_of(struct tr_node node)
{
    int64_t left = 1;
    while (left * 2 < node.last - node.first) left *= 2;
    return node.first + left;
}

static float sum_of(struct tr_node node, int64_t element)
{
    if (node.last - node.first == 1) return scenario_leaf(node.first, element);
    int64_t middle = middle_of(node);
    return sum_of((struct tr_node){node.first, middle}, element) +
           sum_of((struct tr_node){middle, node.last}, element);
}

static bool covered(uint32_t leaves, struct tr_node node)
{
    for (int64_t i = node.first; i < node.last; i++)
        if (!(leaves >> i & 1)) return false;
    return true;
}

/* Counts the largest covered nodes and checks that each is an output. */
static int check_outputs(const tr_program *program, uint32_t leaves, struct tr_node node, int found)
{
    if (covered(leaves, node)) {
        struct tr_node output = tr_program_output(program, found);
        assert_int_equal(output.first, node.first);
        assert_int_equal(output.last, node.last);
        return found + 1;
    }
    if (node.last - node.first == 1) return found;
    int64_t middle = middle_of(node);
    found = check_outputs(program, leaves, (struct tr_node){node.first, middle}, found);
    return check_outputs(program, leaves, (struct tr_node){middle, node.last}, found);
}

/* Cuts a random set of leaves into nodes, now and then smaller ones than need be. */
static int cut(uint32_t leaves, struct tr_node node, struct tr_node *input, int inputs)
{
    if (covered(leaves, node) && (node.last - node.first == 1 || rand() % 3)) {
        input[inputs] = node;
        return inputs + 1;
    }
    if (node.last - node.first == 1) return inputs;
    int64_t middle = middle_of(node);
    inputs = cut(leaves, (struct tr_node){node.first, middle}, input, inputs);
    return cut(leaves, (struct tr_node){middle, node.last}, input, inputs);
}

static float value[LEAVES_MOST][COUNT], result[LEAVES_MOST][COUNT];

static void run_one(int64_t leaves, uint32_t set, int64_t count)
{
    struct tr_node input[LEAVES_MOST];
    const float *in[LEAVES_MOST];
    float *out[LEAVES_MOST];
    tr_program *program;
    struct tr_node all = {0, leaves};
    int inputs = cut(set, all, input, 0);
    assert_int_equal(tr_program_create(leaves, input, inputs, &program), TR_OK);
    int outputs = tr_program_outputs(program);
    assert_int_equal(check_outputs(program, set, all, 0), outputs);
    for (int i = 0; i < inputs; i++) {
        in[i] = value[i];
        for (int64_t e = 0; e < count; e++) value[i][e] = sum_of(input[i], e);
    }
    int skipped = outputs > 1 ? rand() % outputs : -1;
    for (int i = 0; i < outputs; i++) {
        int direct = tr_program_direct(program, i);
        struct tr_node node = tr_program_output(program, i);
        if (direct >= 0) assert_true(input[direct].first == node.first && input[direct].last == node.last);
        out[i] = i == skipped           ? NULL
                 : direct >= 0 && i % 2 ? value[direct]
                                        : result[i]; /* in place now and then */
    }
    tr_program_run(program, in, count, out);
    for (int i = 0; i < outputs; i++) {
        for (int64_t e = 0; out[i] && e < count; e++) {
            float right = sum_of(tr_program_output(program, i), e);
            assert_memory_equal(&out[i][e], &right, sizeof right);
        }
    }
    tr_program_destroy(&program);
    assert_null(program);
}

static void test_random_sets(void **state)
{
    (void)state;
    srand(1);
    for (int64_t leaves = 1; leaves <= LEAVES_MOST; leaves++) {
        uint32_t whole = (1u << leaves) - 1;
        run_one(leaves, whole, 3);
        run_one(leaves, 0, 3);
        for (int i = 0; i < 60; i++) run_one(leaves, (uint32_t)rand() & whole, 3);
    }
    run_one(LEAVES_MOST, (1u << LEAVES_MOST) - 1, COUNT);
    run_one(LEAVES_MOST, 0xfbfff, 513);
    run_one(LEAVES_MOST, 0xfbfff, 0);
}

/* The sum may take the place of its first input. */
static void test_in_place(void **state)
{
    (void)state;
    struct tr_node input[] = {{0, 4}, {4, 5}, {5, 6}};
    const float *in[] = {value[0], value[1], value[2]};
    float *out[] = {value[0]};
    tr_program *program;
    assert_int_equal(tr_program_create(6, input, 3, &program), TR_OK);
    for (int i = 0; i < 3; i++)
        for (int64_t e = 0; e < COUNT; e++) value[i][e] = sum_of(input[i], e);
    tr_program_run(program, in, COUNT, out);
    for (int64_t e = 0; e < COUNT; e++) {
        float right = scenario_sum(6, e);
        assert_memory_equal(&value[0][e], &right, sizeof right);
    }
    tr_program_destroy(&program);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct tr_node input[] = {{0, 2}, {2, 3}};
    for (int64_t at = 0, done = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        tr_program *program;
        refuse_begin(at);
        tr_status status = tr_program_create(3, input, 2, &program);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_program_destroy(&program);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_sets),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests_name("comm.program", tests, NULL, NULL);
}
