/* Programs of the referee: their lines, their values, and which words count as equal. */
#include "dispute/program.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void lines_are_as_the_referee_reads_them(void **state)
{
    struct tr_unit_program program = {0};
    struct tr_text text = TR_TEXT_INIT;
    char *lines;
    (void)state;
    assert_int_equal(tr_program_result(&program), 0);
    assert_int_equal(tr_program_constant(&program, 0x3fc00000), 0); /* 1.5 */
    assert_int_equal(tr_program_load(&program, false, 7, 12, 0x40000000), 1);
    assert_int_equal(tr_program_load(&program, true, 8, 255, 200), 2);
    assert_int_equal(tr_program_add(&program, TR_PROGRAM_FLOAT, (const uint32_t[4]){2}), 3);
    assert_int_equal(tr_program_add(&program, TR_PROGRAM_FMA, (const uint32_t[4]){0, 1, 3}), 4);
    assert_int_equal(tr_program_result(&program), 0x434b0000); /* 203 */
    assert_int_equal(tr_program_add(&program, TR_PROGRAM_LESS, (const uint32_t[4]){1, 0, 2, 4}), 5);
    assert_int_equal(tr_program_result(&program), 0x434b0000);
    assert_int_equal(tr_program_add(&program, TR_PROGRAM_ISUB, (const uint32_t[4]){2, 2}), 6);
    assert_int_equal(program.count, 7);
    tr_program_write(&program, &text);
    assert_int_equal(tr_text_finish(&text, &lines), TR_OK);
    assert_string_equal(lines, "CONST 3fc00000\nLOAD 7 12\nBYTE 8 255\nFLOAT 2\nFMA 0 1 3\nLESS 1 0 2 4\n"
                               "ISUB 2 2\n");
    tr_free(lines);
    tr_program_release(&program);
    assert_true(program.count == 0 && !program.step);
}

static uint32_t value_of(enum tr_program_op op, uint32_t a, uint32_t b)
{
    struct tr_unit_program program = {0};
    const uint32_t x = tr_program_constant(&program, a), y = tr_program_constant(&program, b);
    tr_program_add(&program, op, (const uint32_t[4]){x, y, x, y});
    const uint32_t out = tr_program_result(&program);
    assert_int_equal(program.status, TR_OK);
    tr_program_release(&program);
    return out;
}

/* Whole numbers; floats are compared with `ref` in the tests of units. */
static void words_wrap_and_shift(void **state)
{
    (void)state;
    assert_int_equal(value_of(TR_PROGRAM_IADD, 0xffffffff, 2), 1);
    assert_int_equal(value_of(TR_PROGRAM_ISUB, 1, 2), 0xffffffff);
    assert_int_equal(value_of(TR_PROGRAM_IMUL, 0x10001, 0x10001), 0x20001);
    assert_int_equal(value_of(TR_PROGRAM_HIGH, 0x80000000, 6), 3);
    assert_int_equal(value_of(TR_PROGRAM_AND, 12, 10), 8);
    assert_int_equal(value_of(TR_PROGRAM_OR, 12, 10), 14);
    assert_int_equal(value_of(TR_PROGRAM_XOR, 12, 10), 6);
    assert_int_equal(value_of(TR_PROGRAM_SHL, 3, 4), 48);
    assert_int_equal(value_of(TR_PROGRAM_SHL, 3, 33), 6);
    assert_int_equal(value_of(TR_PROGRAM_SHR, 0x80000001, 1), 0xc0000000);
    assert_int_equal(value_of(TR_PROGRAM_SHR, 0x80000001, 32), 0x80000001);
    assert_int_equal(value_of(TR_PROGRAM_SHR, 0x40000000, 31), 0);
    assert_int_equal(value_of(TR_PROGRAM_FLOAT, 0xfffffffe, 0), 0xc0000000); /* -2 */
    assert_int_equal(value_of(TR_PROGRAM_LESS, 0x3f800000, 0x3f800000), 0x3f800000);
    assert_int_equal(value_of(TR_PROGRAM_LESS, 0xbf800000, 0x3f800000), 0xbf800000);
    assert_int_equal(value_of(TR_PROGRAM_LESS, 0x40000000, 0x3f800000), 0x3f800000);
    assert_int_equal(value_of(TR_PROGRAM_EQUAL, 0x80000000, 0), 0x80000000); /* -0 and 0 */
    assert_int_equal(value_of(TR_PROGRAM_EQUAL, 0x3f800000, 0), 0);
}

static void all_nans_are_one_number(void **state)
{
    enum { NAN_A = 0x7fc00000, NAN_B = 0x7f800001, INFINITE = 0x7f800000 };
    (void)state;
    assert_true(tr_program_same(NAN_A, NAN_B, true));
    assert_true(tr_program_same(NAN_A, NAN_A, false));
    assert_false(tr_program_same(NAN_A, NAN_B, false));
    assert_false(tr_program_same(NAN_A, INFINITE, true));
    assert_false(tr_program_same(INFINITE, NAN_A, true));
    assert_true(tr_program_same(5, 5, false));
    assert_false(tr_program_same(0, 0x80000000, true)); /* other bits, though 0 == -0 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_as_the_referee_reads_them),
        cmocka_unit_test(words_wrap_and_shift),
        cmocka_unit_test(all_nans_are_one_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
