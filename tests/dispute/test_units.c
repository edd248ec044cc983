/* The unit of every operation (dispute/units) against what `ref` computes, in all cases: outputs of each
 * region, the first ones, the last one and others, each out of nothing but what its unit opened. And
 * what a unit takes of its own operation's outputs it takes only of those.
 *
 * test_dispute_units [OPERATION]
 */
#include "base/fail.h"
#include "device/cases/cases.h"
#include "dispute/units/unit.h"
#include "support/watched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Outputs of a region that are tried in a case: so many, or as many as take so many instructions. */
#define OUTPUTS      24
#define INSTRUCTIONS 50000
#define FIRST        6

/* The call of the case that runs. */
static struct call {
    enum tr_operation_number operation;
    int64_t rows;
    char arguments[1024];
    struct tr_unit_region region[TR_UNIT_REGIONS];
    int regions;
} call;

static void watch(enum tr_operation_number number, const void *arguments, size_t size)
{
    assert_true(size <= sizeof call.arguments);
    call.operation = number;
    memcpy(call.arguments, arguments, size);
    call.rows = tr_operation_rows(tr_operation_of(number), arguments, true);
    call.regions = tr_unit_regions(number, arguments, call.rows, call.region);
}

/* What was at an address before or after the operation; fails the test outside of the case's buffers. */
static const void *contents(const struct scene *s, const void *at, int bytes, bool after)
{
    for (int i = 0; i < s->buffers; i++) {
        const struct scene_buffer *b = &s->buffer[i];
        const char *begin = (const char *)b->memory + b->lead, *place = at;
        if (place < begin || place + bytes > begin + b->bytes) continue;
        return (after ? b->after : b->before) + b->lead + (place - begin);
    }
    fail_msg("%s: a unit opens what is no input (%s)", tr_operation_of(call.operation)->name, s->name);
    return NULL;
}

static bool is_output(const void *at)
{
    for (int i = 0; i < call.regions; i++) {
        const struct tr_unit_region *region = &call.region[i];
        const char *end = region->begin + (region->rows - 1) * region->step + region->width;
        if ((const char *)at >= region->begin && (const char *)at < end) return true;
    }
    return false;
}

#define LEAF 7

/* Of the program that is built; the one that fails, from 1. */
static struct {
    int64_t count, fails;
} openings;

static tr_status open_input(void *user, const void *at, int bytes, bool own, uint64_t *value, uint32_t *leaf,
                            uint32_t *byte)
{
    if (own && !is_output(at))
        fail_msg("%s: a unit takes an input for an output", tr_operation_of(call.operation)->name);
    if (++openings.count == openings.fails) return tr_fail(TR_EIO, "opening %lld", (long long)openings.fails);
    *value = 0;
    memcpy(value, contents(user, at, bytes, own), (size_t)bytes);
    *leaf = LEAF;
    *byte = (uint32_t)bytes;
    return TR_OK;
}

/* A referee loads as much as was opened, from there. */
static void check_loads(const struct tr_unit_program *program)
{
    for (int64_t i = 0; i < program->count; i++) {
        const struct tr_program_step *step = &program->step[i];
        if (step->op != TR_PROGRAM_LOAD && step->op != TR_PROGRAM_BYTE) continue;
        assert_int_equal(step->of[0], LEAF);
        assert_int_equal(step->of[1], step->op == TR_PROGRAM_BYTE ? 1 : 4);
    }
}

/* Output number `at` of a region; how many instructions it takes. */
static int64_t check_output(struct scene *s, const struct tr_unit_region *region, int64_t at)
{
    const int64_t per_row = region->width / region->size;
    const bool nodes = region->operand->role == TR_ROLE_NODES;
    const struct tr_unit_output place = {region->operand->name, nodes ? at / per_row : 0,
                                         nodes ? at % per_row : at};
    const struct tr_unit_source source = {open_input, s};
    const char *memory = region->begin + at / per_row * region->step + at % per_row * region->size;
    struct tr_unit_program program = {0};
    uint32_t expected = 0, got;
    memcpy(&expected, contents(s, memory, region->size, true), (size_t)region->size);
    if (tr_unit_build(call.operation, call.arguments, &place, &source, &program) != TR_OK)
        fail_msg("%s: %s", tr_operation_of(call.operation)->name, tr_error_message());
    got = tr_program_result(&program);
    if (!tr_program_same(expected, got, region->size == 4))
        fail_msg("%s: \"%s\" %lld of node %lld is %08x, its unit says %08x (%s)",
                 tr_operation_of(call.operation)->name, place.operand, (long long)place.at,
                 (long long)place.node, (unsigned)expected, (unsigned)got, s->name);
    check_loads(&program);
    const int64_t instructions = program.count;
    tr_program_release(&program);
    return instructions;
}

/* An input that cannot be opened ends a unit, which opens no more. */
static void check_failures(struct scene *s)
{
    for (int i = 0; i < call.regions; i++) {
        const struct tr_unit_output place = {call.region[i].operand->name, 0, 0};
        const struct tr_unit_source source = {open_input, s};
        tr_status status = TR_EIO;
        for (int64_t at = 1; status != TR_OK; at += 1 + at / 8) {
            struct tr_unit_program program = {0};
            openings.count = 0;
            openings.fails = at;
            status = tr_unit_build(call.operation, call.arguments, &place, &source, &program);
            assert_int_equal(program.status, status);
            if (openings.count >= at) {
                assert_int_equal(status, TR_EIO);
                assert_int_equal(openings.count, at);
            } else {
                assert_int_equal(status, TR_OK);
            }
            tr_program_release(&program);
        }
        openings.fails = 0;
    }
}

/* The k-th of `count` outputs that are tried: the first ones, the last one, then all others in disorder. */
static int64_t place_of(int64_t k, int64_t count, uint32_t seed)
{
    if (k < FIRST || count <= FIRST + 1) return k;
    if (k == FIRST) return count - 1;
    return FIRST + (int64_t)((uint64_t)(seed + k) * 2654435761u % (uint64_t)(count - FIRST - 1));
}

static bool is_in_region(const char *at)
{
    for (int i = 0; i < call.regions; i++) {
        const struct tr_unit_region *region = &call.region[i];
        if (at < region->begin) continue;
        const int64_t row = (at - region->begin) / region->step;
        if (row < region->rows && at - region->begin - row * region->step < region->width) return true;
    }
    return false;
}

/* Whatever an operation changes, its parties are committed to. */
static void check_changes(const struct scene *s)
{
    for (int i = 0; i < s->buffers; i++) {
        const struct scene_buffer *b = &s->buffer[i];
        for (size_t k = 0; k < b->all && b->kind != SCENE_WORKSPACE; k++)
            if (b->before[k] != b->after[k] && !is_in_region((const char *)b->memory + k))
                fail_msg("%s: \"%s\" is changed, and in no region (%s)",
                         tr_operation_of(call.operation)->name, b->name, s->name);
    }
}

static void check_regions(struct scene *s, uint32_t seed)
{
    for (int i = 0; i < call.regions; i++) {
        const int64_t count = call.region[i].rows * (call.region[i].width / call.region[i].size);
        int64_t taken = 0;
        assert_true(count > 0);
        for (int64_t k = 0; k < count && (k < OUTPUTS || taken < INSTRUCTIONS); k++)
            taken += check_output(s, &call.region[i], place_of(k, count, seed));
    }
}

static void test_units(void **state)
{
    const struct case_list *list = *state;
    const enum tr_operation_number number = (enum tr_operation_number)(list - case_lists);
    if (tr_operation_of(number)->class == TR_FUSION) return;
    if (!tr_unit_is_there(number))
        fail_msg(
            "operation \"%s\" has no unit: write UNIT(%s) in src/dispute/units, in the file of its family, "
            "and its line in the list at the end of that file",
            list->operation, list->operation);
    case_must_exist(list);
    for (int flavor = SCENE_PLAIN; flavor < SCENE_FLAVORS; flavor++)
        for (int index = 0;; index++) {
            struct scene s;
            if (flavor != SCENE_PLAIN && index % 3) continue;
            scene_begin(&s, &watched, (enum scene_flavor)flavor, 0, (uint32_t)index);
            call.regions = 0;
            if (!list->run(&s, index)) break;
            check_changes(&s);
            check_regions(&s, (uint32_t)index * 7919u);
            if (index < 2) check_failures(&s);
            scene_release(&s);
        }
}

/* An operand that is a part of something larger needs its step stated. */
static void test_parts(void **state)
{
    (void)state;
    for (int number = 0; number < TR_OPERATIONS; number++) {
        const struct tr_operation *operation = tr_operation_of((enum tr_operation_number)number);
        bool part = false;
        for (int i = 0; i < operation->count; i++)
            part |= operation->operand[i].role == TR_ROLE_WRITES_PART ||
                    operation->operand[i].role == TR_ROLE_UPDATES_PART;
        const bool stated = number == TR_OPERATION_attention_backward || number == TR_OPERATION_rotary ||
                            number == TR_OPERATION_sequence_copy;
        if (part && !stated && operation->class != TR_FUSION)
            fail_msg("operation \"%s\" writes a part of something: state its step in part_of() of "
                     "src/dispute/units/regions.c, and here",
                     operation->name);
    }
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[CASE_LISTS + 1];
    int count = 0;
    for (int i = 0; i < CASE_LISTS; i++)
        if (argc < 2 || strcmp(argv[1], case_lists[i].operation) == 0)
            tests[count++] =
                (struct CMUnitTest){case_lists[i].operation, test_units, NULL, NULL, (void *)&case_lists[i]};
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_parts);
    return _cmocka_run_group_tests("units of operations", tests, (size_t)count, watched_make, watched_remove);
}
