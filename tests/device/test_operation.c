/* Descriptions of operations against what `ref` does in all cases: every pointer among the arguments is
 * described, with the elements that are there; what changes is said to be written, and what is said to be
 * written changes; fusions have parts, and nothing else has.
 */
#include "device/cases/cases.h"
#include "support/watched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* The call of the case that runs. */
static struct call {
    const struct tr_operation *operation;
    const char *arguments; /* a copy */
    size_t size;
    int64_t rows, elements[TR_OPERANDS_MOST];
    struct tr_operation_cost cost;
} call;
static char arguments_of_call[1024];

static void watch(enum tr_operation_number number, const void *arguments, size_t size)
{
    assert_true(size <= sizeof arguments_of_call);
    memcpy(arguments_of_call, arguments, size);
    call = (struct call){.operation = tr_operation_of(number), .arguments = arguments_of_call, .size = size};
    call.rows = tr_operation_rows(call.operation, arguments, true);
    call.operation->measure(arguments, call.rows, true, call.elements);
    call.cost = tr_operation_cost(call.operation, arguments, true);
}

static const char *begin_of(const struct scene_buffer *b)
{
    return (const char *)b->memory + b->lead;
}

static bool points_into(const void *pointer, const struct scene_buffer *b)
{
    return b->bytes > 0 && (const char *)pointer >= begin_of(b) &&
           (const char *)pointer < begin_of(b) + b->bytes;
}

static bool may_write(enum tr_role role)
{
    return role == TR_ROLE_WRITES || role == TR_ROLE_WRITES_PART || role == TR_ROLE_KEEPS ||
           role == TR_ROLE_UPDATES || role == TR_ROLE_UPDATES_PART || role == TR_ROLE_REPLACES ||
           role == TR_ROLE_NODES || role == TR_ROLE_WORKSPACE;
}

/* Whether a line says as much as the buffer has. */
static bool agrees(const struct tr_operand *operand, int64_t elements, const struct scene_buffer *b,
                   const void *pointer)
{
    const int64_t bytes = elements * (int64_t)operand->bytes, all = (int64_t)b->bytes;
    const struct tr_cut *cut = tr_operation_cut(call.operation, call.arguments);
    switch (operand->role) {
    case TR_ROLE_READS_PART:
    case TR_ROLE_OFFSET:
        return true;
    case TR_ROLE_WRITES_PART:
    case TR_ROLE_UPDATES_PART:
        return bytes <= all;
    case TR_ROLE_INDEX:
        return (const char *)pointer == begin_of(b) && bytes <= all;
    case TR_ROLE_NODES:
        return (const char *)pointer == begin_of(b) && cut && elements <= cut->stride &&
               all == cut->nodes * cut->stride * (int64_t)operand->bytes;
    default:
        return (const char *)pointer == begin_of(b) && bytes == all;
    }
}

static void check_buffer(const struct scene *s, const struct scene_buffer *b, bool wrote[TR_OPERANDS_MOST])
{
    const struct tr_operation *operation = call.operation;
    const bool changed = memcmp(b->before + b->lead, b->after + b->lead, b->bytes) != 0;
    bool may_change = false, described[sizeof arguments_of_call / sizeof(void *)] = {false};
    for (int i = 0; i < operation->count; i++) {
        const struct tr_operand *operand = &operation->operand[i];
        const void *pointer = tr_operand_pointer(operand, call.arguments);
        if (!points_into(pointer, b)) continue;
        described[operand->offset / sizeof(void *)] = true;
        if (!agrees(operand, call.elements[i], b, pointer))
            fail_msg("%s: the line of \"%s\" says %lld elements of %d bytes, \"%s\" has %lld bytes (%s)",
                     operation->name, operand->name, (long long)call.elements[i], (int)operand->bytes,
                     b->name, (long long)b->bytes, s->name);
        if (!may_write(operand->role)) continue;
        may_change = true;
        wrote[i] |= changed;
    }
    if (changed && !may_change)
        fail_msg("%s: no line says that \"%s\" is written (%s)", operation->name, b->name, s->name);
    for (size_t at = 0; at + sizeof(void *) <= call.size; at += sizeof(void *)) {
        const void *pointer;
        memcpy(&pointer, call.arguments + at, sizeof pointer);
        if (points_into(pointer, b) && !described[at / sizeof(void *)])
            fail_msg(
                "%s: the pointer at byte %d of the arguments, to \"%s\", is in no line of its description",
                operation->name, (int)at, b->name);
    }
}

/* The last line is what it computes, and there is one; a fusion computes no less than its parts. */
static void check_lines(const struct tr_operation *operation)
{
    int sizes = 0, cuts = 0, parts = 0, costs = 0, nodes = 0;
    for (int i = 0; i < operation->count; i++) {
        const enum tr_role role = operation->operand[i].role;
        sizes += role == TR_ROLE_SIZE;
        cuts += role == TR_ROLE_CUT;
        parts += role == TR_ROLE_PART;
        costs += role == TR_ROLE_OPERATIONS;
        nodes += role == TR_ROLE_NODES;
        if (role == TR_ROLE_SIZE && operation->operand[i].bytes != sizeof(int64_t))
            fail_msg("%s: SIZE \"%s\" is no int64_t", operation->name, operation->operand[i].name);
        if (role == TR_ROLE_CUT && operation->operand[i].bytes != sizeof(struct tr_cut))
            fail_msg("%s: CUT \"%s\" is no cut", operation->name, operation->operand[i].name);
    }
    if (sizes > 1 || cuts > 1 || sizes + cuts == 0)
        fail_msg("%s: a description has SIZE, or CUT, or one of each", operation->name);
    if (costs != 1) fail_msg("%s: a description has one OPERATIONS", operation->name);
    if (nodes > 0 && cuts == 0) fail_msg("%s: NODES are those of a CUT", operation->name);
    if ((parts > 0) != (operation->class == TR_FUSION))
        fail_msg("%s: fusions, and only these, have PARTs", operation->name);
}

/* Every case of plain numbers, and some that are not finite, which change what remembers that. */
static void test_operation(void **state)
{
    const struct case_list *list = *state;
    const struct tr_operation *operation = tr_operation_of((enum tr_operation_number)(list - case_lists));
    bool wrote[TR_OPERANDS_MOST] = {false};
    double operations = 0;
    case_must_exist(list);
    assert_string_equal(operation->name, list->operation);
    check_lines(operation);
    for (int flavor = SCENE_PLAIN; flavor < SCENE_FLAVORS; flavor += SCENE_HUGE - SCENE_PLAIN)
        for (int index = 0;; index++) {
            struct scene s;
            if (flavor == SCENE_HUGE && index % 5) continue;
            scene_begin(&s, &watched, (enum scene_flavor)flavor, 0, (uint32_t)index);
            if (!list->run(&s, index)) break;
            for (int b = 0; b < s.buffers; b++) check_buffer(&s, &s.buffer[b], wrote);
            operations += (double)call.cost.operations;
            scene_release(&s);
        }
    for (int i = 0; i < operation->count; i++)
        if (may_write(operation->operand[i].role) && operation->operand[i].role != TR_ROLE_WORKSPACE &&
            !wrote[i])
            fail_msg("%s: \"%s\" is said to be written, and no case changes it", operation->name,
                     operation->operand[i].name);
    assert_true(operations >= 0);
}

/* Which roles are of data that is read, and which of data that is written, for others than the operation
 * itself. */
static void test_roles(void **state)
{
    (void)state;
    static const enum tr_role read[] = {TR_ROLE_READS, TR_ROLE_READS_PART, TR_ROLE_REPLACES, TR_ROLE_UPDATES,
                                        TR_ROLE_UPDATES_PART},
                              written[] = {TR_ROLE_WRITES, TR_ROLE_WRITES_PART, TR_ROLE_UPDATES,
                                           TR_ROLE_UPDATES_PART, TR_ROLE_NODES};
    for (int role = TR_ROLE_SIZE; role <= TR_ROLE_OPERATIONS; role++) {
        const struct tr_operand operand = {.role = (enum tr_role)role};
        bool reads = false, writes = false;
        for (int i = 0; i < 5; i++) {
            reads |= read[i] == operand.role;
            writes |= written[i] == operand.role;
        }
        assert_int_equal(tr_operand_reads(&operand), reads);
        assert_int_equal(tr_operand_writes(&operand), writes);
    }
}

/* Known figures: two for a multiply-add, parts of fusions added, bytes of all that is touched. */
static void test_costs(void **state)
{
    (void)state;
    float x[1] = {0};
    const int32_t offset[] = {0, 3, 3, 5};
    const struct tr_op_dense_forward dense = {.rows = 5, .in = 3, .out = 7, .x = x, .w = x, .b = x, .y = x};
    struct tr_operation_cost cost =
        tr_operation_cost(tr_operation_of(TR_OPERATION_dense_forward), &dense, true);
    assert_int_equal(cost.operations, 2 * 5 * 3 * 7);
    assert_int_equal(cost.bytes, 4 * (5 * 3 + 3 * 7 + 7 + 5 * 7));
    /* Of gradients there is one for each node. */
    static const int64_t row[] = {0, 2, 4, 5};
    static const int32_t bound[] = {0, 1, 2, 3};
    const struct tr_op_dense_backward_weights gradient = {
        .in = 3, .out = 7, .x = x, .dy = x, .dw = x, .db = x, .cut = {3, row, 3, bound, 64}};
    cost = tr_operation_cost(tr_operation_of(TR_OPERATION_dense_backward_weights), &gradient, true);
    assert_int_equal(cost.bytes, 4 * (5 * 3 + 5 * 7 + 3 * (3 * 7 + 7)));
    const struct tr_op_dense_gelu_forward gelu = {.dense = dense, .derivative = x};
    cost = tr_operation_cost(tr_operation_of(TR_OPERATION_dense_gelu_forward), &gelu, true);
    assert_int_equal(cost.operations, 2 * 5 * 3 * 7 + 2 * 5 * 7);
    const struct tr_op_attention_forward attention = {.at = {.examples = 3,
                                                             .heads = 2,
                                                             .size = 4,
                                                             .kv_heads = 2,
                                                             .causal = true,
                                                             .offset = offset,
                                                             .key_offset = offset}};
    cost = tr_operation_cost(tr_operation_of(TR_OPERATION_attention_forward), &attention, true);
    assert_int_equal(cost.operations, (6 + 3) * 2 * (4 * 4 + 4)); /* 6 pairs of 3 tokens, 3 of 2 */
    assert_int_equal(tr_operation_rows(tr_operation_of(TR_OPERATION_attention_forward), &attention, true), 5);
    /* 3 queries of 4 keys and 2 of 3: all, those up to their own, and windows of 2 of both. */
    static const int32_t key_offset[] = {0, 4, 4, 7};
    static const int pairs[2][2] = {{18, 14}, {13, 10}};
    for (int window = 0; window < 2; window++)
        for (int causal = 0; causal < 2; causal++) {
            struct tr_op_attention_forward other = attention;
            other.at.key_offset = key_offset;
            other.at.causal = causal;
            other.at.window = 2 * window;
            cost = tr_operation_cost(tr_operation_of(TR_OPERATION_attention_forward), &other, true);
            assert_int_equal(cost.operations, pairs[window][causal] * 2 * (4 * 4 + 4));
        }
    assert_int_equal(tr_operation_rows(tr_operation_of(TR_OPERATION_attention_forward), &attention, false),
                     3);
}

int main(void)
{
    struct CMUnitTest tests[CASE_LISTS + 2];
    for (int i = 0; i < CASE_LISTS; i++)
        tests[i] =
            (struct CMUnitTest){case_lists[i].operation, test_operation, NULL, NULL, (void *)&case_lists[i]};
    tests[CASE_LISTS] = (struct CMUnitTest)cmocka_unit_test(test_costs);
    tests[CASE_LISTS + 1] = (struct CMUnitTest)cmocka_unit_test(test_roles);
    return cmocka_run_group_tests_name("descriptions of operations", tests, watched_make, watched_remove);
}
