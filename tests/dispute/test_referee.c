/* The referee on a case of a few lines: its verdicts, and that it refuses a case that proves nothing. */
#include "dispute/referee.h"

#include "base/alloc.h"
#include "base/text/text.h"
#include "dispute/evidence.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { A_RIGHT, B_RIGHT, BOTH, NEITHER, NO_CASE };

/* Both have one operation with one number, and an input is given: 1. */
static char *make_case(uint32_t a, uint32_t b, const char *program)
{
    struct tr_text text = TR_TEXT_INIT, records = TR_TEXT_INIT, leaves = TR_TEXT_INIT;
    const uint32_t word[2] = {a, b};
    char *out, hex[TR_SHA256_TEXT];
    tr_sha256 *hash;
    must_train(tr_sha256_begin(&hash));
    for (int i = 0; i < 2; i++) {
        struct tr_sha256_sum leaf, root;
        must_train(tr_merkle_leaf(hash, &word[i], 4, &leaf));
        must_train(tr_evidence_sum("add", &leaf, 1, &root));
        tr_text_addf(&text, "root %c %s\n", "AB"[i], tr_sha256_text(&root, hex));
        tr_text_addf(&records, "record %d %c 0 1 add 1 %s\n", i, "AB"[i], tr_sha256_text(&leaf, hex));
        tr_text_add(&leaves, "leaf ");
        for (int k = 0; k < 4; k++) tr_text_addf(&leaves, "%02x", (unsigned)(word[i] >> 8 * k & 255));
        tr_text_addf(&leaves, "\nby %d 0 0 1\n", i);
    }
    tr_sha256_destroy(&hash);
    tr_text_addf(&text, "%s%sleaf 0000803f\ngiven\nclaim A 0 0 4\nclaim B 1 0 4\n%s", records.bytes,
                 leaves.bytes, program);
    tr_text_release(&records);
    tr_text_release(&leaves);
    must_train(tr_text_finish(&text, &out));
    return out;
}

static void expect(int verdict, uint32_t a, uint32_t b, const char *program)
{
    char *text = make_case(a, b, program);
    const int said = referee_on(scratch_place, text);
    if (said != verdict) fail_msg("%d instead of %d: %s", said, verdict, text);
    assert_int_equal(referee_on_input(scratch_place, text), verdict);
    tr_free(text);
}

enum { ONE = 0x3f800000, TWO = 0x40000000, NAN_A = 0x7fc00001, NAN_B = 0x7fc00002 };

static void the_number_decides(void **state)
{
    (void)state;
    expect(A_RIGHT, ONE, TWO, "float\nLOAD 2 0\n");
    expect(B_RIGHT, TWO, ONE, "float\nLOAD 2 0\n");
    expect(B_RIGHT, ONE, TWO, "float\nLOAD 2 0\nADD 0 0\n");
    expect(BOTH, ONE, ONE, "bits\nLOAD 2 0\n");
    expect(NEITHER, ONE, TWO, "float\nLOAD 2 0\nSUB 0 0\n");
    expect(A_RIGHT, ONE, TWO, "bits\n# a comment\n\nCONST 3f800000\n");
    expect(A_RIGHT, 0x80, TWO, "bits\nBYTE 2 2\n");
    expect(B_RIGHT, TWO, 0x3f, "bits\nBYTE 2 3\n");
    expect(BOTH, NAN_A, NAN_B, "float\nCONST 7fc00003\n");
    expect(NEITHER, NAN_A, NAN_B, "bits\nCONST 7fc00003\n");
    expect(A_RIGHT, NAN_A, NAN_B, "bits\nCONST 7fc00001\n");
    expect(A_RIGHT, ONE, TWO, "both 0 1 3 0\nfloat\nLOAD 2 0\n");
    expect(BOTH, ONE, ONE, "both 0 1 0 4\nfloat\nLOAD 3 0\n");
    expect(A_RIGHT, 0, 0x80000000, "both 0 1 0 3\nbits\nBYTE 3 2\n");
}

static void what_proves_nothing_is_refused(void **state)
{
    static const char *const programs[] = {
        "",
        "float\n",
        "LOAD 2 0",   /* without an end */
        "LOAD 0 0\n", /* which only A has */
        "LOAD 1 0\n", /* which only B has */
        "LOAD 3 0\n", /* a leaf that is none */
        "LOAD 2 1\n", /* beyond it */
        "BYTE 2 4\n",
        "LOAD 2\n",
        "LOAD 2 x\n",
        "LOAD 2 0\nADD 0 1\n", /* of a later value */
        "LOAD 2 0\nADD 0\n",
        "LOAD 2 0\nAD 0 0\n",
        "LOAD 2 0\nZZZ 0 0\n",
        "CONST 3f8000\n",
        "CONST 3f8000000\n",
        "CONST 3f80000000\n",
        "CONST 3F800000\n",
        "CONST 3f80000g\n",
        "both 0 1 0 4\nLOAD 2 0\n", /* which are not the same */
        "both 0 0 0 4\nLOAD 2 0\n", /* of A alone */
        "both 0 1 4 1\nLOAD 2 0\n",
        "leaf 00000000\nby 1 0 0 1\nLOAD 2 0\n",
        "leaf 00000000\nby 1 0 1 1\nLOAD 2 0\n",
        "leaf 0000803f\nby 0 0 1 1\nLOAD 2 0\n", /* which A has, but as leaf 0 */
        "leaf 00000000\nby 2 0 0 1\nLOAD 2 0\n",
        "leaf 00000000\nby 1 1 0 1\nLOAD 2 0\n",
        "leaf 00000000\nstate S 0 1\nLOAD 2 0\n",
        "claim B 0 0 4\nLOAD 2 0\n", /* which it has not said */
        "claim A 1 0 4\nLOAD 2 0\n",
        "claim A 0 1 4\nLOAD 2 0\n",
        "claim A 0 0 5\nLOAD 2 0\n",
        "record 3 A 0 1 add 0\nLOAD 2 0\n",
        "record 2 C 0 1 add 0\nLOAD 2 0\n",
        "record 2 A 1 1 add 0\nLOAD 2 0\n",
        "record 2 A 0 1 add 0\nLOAD 2 0\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) expect(NO_CASE, ONE, TWO, programs[i]);
    assert_int_equal(referee_on(scratch_place, ""), NO_CASE);
    assert_int_equal(referee_on(scratch_place, "\n"), NO_CASE);
    assert_int_equal(referee_on(scratch_place, "given\n"), NO_CASE);
}

/* A case without one of its lines. */
static void each_line_counts(void **state)
{
    char *text = make_case(ONE, TWO, "LOAD 2 0\n");
    int lines = 0;
    (void)state;
    for (char *at = text; *at; at = strchr(at, '\n') + 1, lines++) {
        const char before = *at;
        *at = '#';
        assert_int_equal(referee_on(scratch_place, text), NO_CASE);
        *at = before;
    }
    assert_int_equal(lines, 13);
    assert_int_equal(referee_on(scratch_place, text), A_RIGHT);
    tr_free(text);
}

/* What leads to a root has a place that there is. */
static void places_are_there(void **state)
{
    static const char *const places[][2] = {{"record 0 A 0 1 ", "record 0 A 1 1 "},
                                            {"record 1 B 0 1 ", "record 1 B 1 1 "},
                                            {"\nby 1 0 0 1\n", "\nby 1 0 1 1\n"}};
    char *text = make_case(ONE, TWO, "LOAD 2 0\n");
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char *at = strstr(text, places[i][0]);
        assert_non_null(at);
        memcpy(at, places[i][1], strlen(places[i][1]));
        assert_int_equal(referee_on(scratch_place, text), NO_CASE);
        memcpy(at, places[i][0], strlen(places[i][0]));
    }
    assert_int_equal(referee_on(scratch_place, text), A_RIGHT);
    tr_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_number_decides),
        cmocka_unit_test(what_proves_nothing_is_refused),
        cmocka_unit_test(each_line_counts),
        cmocka_unit_test(places_are_there),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
