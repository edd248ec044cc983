/* Words of a line: what is taken, to the last digit, and what is refused. */
#include "dispute/wire.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define HEX "0123456789abcdef"

static struct tr_wire line(const char *text)
{
    return (struct tr_wire){.at = text};
}

static void a_line_begins_with_a_whole_word(void **state)
{
    (void)state;
    struct tr_wire wire = line("node entries");
    assert_false(tr_wire_begins(&wire, "nod"));
    assert_false(tr_wire_begins(&wire, "nodes"));
    assert_false(tr_wire_begins(&wire, "edge"));
    assert_true(tr_wire_begins(&wire, "node"));
    assert_string_equal(wire.at, "entries");
    assert_false(tr_wire_ends(&wire));
    assert_true(tr_wire_begins(&wire, "entries"));
    assert_true(tr_wire_ends(&wire));
}

static void words_have_room(void **state)
{
    char word[5];
    (void)state;
    struct tr_wire wire = line("four five more");
    tr_wire_word(&wire, word, sizeof word);
    assert_string_equal(word, "four");
    tr_wire_word(&wire, word, sizeof word);
    assert_string_equal(word, "five");
    assert_false(wire.bad);
    wire = line("fives");
    tr_wire_word(&wire, word, sizeof word);
    assert_true(wire.bad);
    assert_string_equal(word, "");
    wire = line("");
    tr_wire_word(&wire, word, sizeof word);
    assert_true(wire.bad);
    assert_false(tr_wire_ends(&wire));
    wire = line("a  b"); /* two blanks have an empty word between */
    tr_wire_word(&wire, word, sizeof word);
    tr_wire_word(&wire, word, sizeof word);
    assert_true(wire.bad);
}

static void expect_number(const char *text, int64_t most, int64_t expected)
{
    struct tr_wire wire = line(text);
    const int64_t got = tr_wire_number(&wire, most);
    assert_int_equal(got, expected < 0 ? 0 : expected);
    assert_int_equal(wire.bad, expected < 0);
    assert_int_equal(tr_wire_ends(&wire), expected >= 0);
}

static void numbers_are_decimal(void **state)
{
    (void)state;
    expect_number("0", 0, 0);
    expect_number("1", 0, -1);
    expect_number("9", 9, 9);
    expect_number("10", 9, -1);
    expect_number("10", 10, 10);
    expect_number("00", 10, -1);
    expect_number("01", 10, -1);
    expect_number("100", 100, 100);
    expect_number("-1", 10, -1);
    expect_number("+1", 10, -1);
    expect_number("1a", 100, -1);
    expect_number("/", 10, -1);
    expect_number(":", 10, -1);
    expect_number("", 10, -1);
    expect_number("0", -1, -1);
    expect_number("9223372036854775807", INT64_MAX, INT64_MAX);
    expect_number("9223372036854775808", INT64_MAX, -1);
    struct tr_wire wire = line("18446744073709551615");
    assert_true(tr_wire_seed(&wire) == UINT64_MAX && tr_wire_ends(&wire));
    wire = line("18446744073709551616");
    assert_true(tr_wire_seed(&wire) == 0 && wire.bad);
    wire = line("184467440737095516150");
    assert_true(tr_wire_seed(&wire) == 0 && wire.bad);
}

static void bytes_are_hexadecimal(void **state)
{
    static const char *const refused[] = {"",   "0",  "012", "0g", "g0",  "0A",
                                          "/0", "0:", "`0",  "0G", "0 0", "0123456789"};
    uint8_t byte[8];
    char text[17] = HEX;
    (void)state;
    struct tr_wire wire = line(HEX);
    assert_int_equal(tr_wire_bytes(&wire, byte, 8), 8);
    assert_true(tr_wire_ends(&wire));
    for (int i = 0; i < 8; i++) assert_int_equal(byte[i], 2 * i * 16 + 2 * i + 1);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        wire = line(refused[i]);
        assert_int_equal(tr_wire_bytes(&wire, byte, 4), 0);
        assert_true(wire.bad);
    }
    wire = line("89abcdef");
    assert_true(tr_wire_bits(&wire) == 0x89abcdef && tr_wire_ends(&wire));
    wire = line("89abcd");
    (void)tr_wire_bits(&wire);
    assert_true(wire.bad);
    struct tr_sha256_sum sum;
    wire = line(HEX HEX HEX HEX);
    tr_wire_digest(&wire, &sum);
    assert_true(tr_wire_ends(&wire));
    assert_int_equal(sum.byte[31], 0xef);
    text[14] = '\0';
    wire = line(text);
    memset(&sum, 7, sizeof sum);
    tr_wire_digest(&wire, &sum);
    assert_true(wire.bad);
    assert_int_equal(sum.byte[31], 0);
}

/* Once a word is bad, nothing is taken any more. */
static void what_is_bad_stays_bad(void **state)
{
    char word[8];
    uint8_t byte;
    (void)state;
    struct tr_wire wire = line("x 1 ab word");
    (void)tr_wire_number(&wire, 9);
    assert_true(wire.bad);
    wire.at = "1 ab word";
    assert_int_equal(tr_wire_number(&wire, 9), 0);
    assert_int_equal(tr_wire_bytes(&wire, &byte, 1), 0);
    tr_wire_word(&wire, word, sizeof word);
    assert_string_equal(word, "");
    wire.at = "";
    assert_false(tr_wire_ends(&wire));
}

/* Paths from all leaves of trees of up to nine, written and read. */
static void ways_lead_to_the_root(void **state)
{
    struct tr_sha256_sum leaf[9], root, sum;
    (void)state;
    for (int i = 0; i < 9; i++) memset(&leaf[i], 17 * i + 1, sizeof leaf[i]);
    for (int64_t leaves = 1; leaves <= 9; leaves++) {
        assert_int_equal(tr_merkle_root(leaf, leaves, &root), TR_OK);
        for (int64_t i = 0; i < leaves; i++) {
            struct tr_merkle_proof proof, read;
            struct tr_text text = TR_TEXT_INIT;
            char *bytes;
            assert_int_equal(tr_merkle_prove(leaf, leaves, i, &proof), TR_OK);
            tr_wire_add_way(&text, &proof);
            tr_text_add(&text, " end");
            assert_int_equal(tr_text_finish(&text, &bytes), TR_OK);
            assert_int_equal(strlen(bytes), 65 * proof.length + 4);
            struct tr_wire wire = line(bytes + 1);
            sum = leaf[i];
            tr_wire_way(&wire, i, leaves, &sum, &read);
            assert_memory_equal(&sum, &root, sizeof sum);
            assert_true(read.leaf == i && read.leaves == leaves && read.length == proof.length);
            for (int k = 0; k < proof.length; k++)
                assert_memory_equal(&read.beside[k], &proof.beside[k], sizeof sum);
            assert_true(tr_wire_begins(&wire, "end") && tr_wire_ends(&wire));
            wire = line(bytes + 1);
            sum = leaf[i];
            tr_wire_way(&wire, i, leaves, &sum, NULL);
            assert_memory_equal(&sum, &root, sizeof sum);
            tr_free(bytes);
        }
        struct tr_wire wire = line("");
        tr_wire_way(&wire, leaves, leaves, &sum, NULL);
        assert_true(wire.bad);
    }
    struct tr_wire wire = line("ab");
    tr_wire_way(&wire, 0, 2, &sum, NULL);
    assert_true(wire.bad);
}

/* More bytes than are written at once. */
static void bytes_are_written(void **state)
{
    uint8_t bytes[700], back[700];
    (void)state;
    for (int i = 0; i < 700; i++) bytes[i] = (uint8_t)(i * 7);
    for (size_t size = 250; size <= 700; size += size < 260 ? 1 : 40) {
        struct tr_text text = TR_TEXT_INIT;
        char *out;
        tr_wire_add_bytes(&text, bytes, size);
        assert_int_equal(tr_text_finish(&text, &out), TR_OK);
        assert_int_equal(out[0], ' ');
        assert_int_equal(strlen(out), 1 + 2 * size);
        struct tr_wire wire = line(out + 1);
        assert_int_equal(tr_wire_bytes(&wire, back, size), size);
        assert_memory_equal(back, bytes, size);
        tr_free(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_begins_with_a_whole_word),
        cmocka_unit_test(words_have_room),
        cmocka_unit_test(numbers_are_decimal),
        cmocka_unit_test(bytes_are_hexadecimal),
        cmocka_unit_test(what_is_bad_stays_bad),
        cmocka_unit_test(ways_lead_to_the_root),
        cmocka_unit_test(bytes_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
