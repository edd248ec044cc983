/* What a verification says in the end: its figures for programs, and for people how likely forged segments
 * would have been drawn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/printed.h"
#include "cli/verify/verify.h"

/* What is printed, in static storage. */
static const char *printed(bool json, const struct tr_verify_result *result)
{
    char reason[] = "a reason";
    const struct cli_verify_options options = {.json = json};
    const struct cli_verify_conclusion conclusion = {*result, reason};
    printed_begin();
    const tr_status status = cli_verify_conclude(&options, &conclusion);
    const char *text = printed_end();
    assert_int_equal(status, TR_OK);
    return text;
}

static void figures_have_their_places(void **state)
{
    struct tr_verify_result result = TR_VERIFY_RESULT_INIT;
    (void)state;
    result.segments = 40;
    result.checked = 10;
    result.steps = 70;
    snprintf(result.hash, sizeof result.hash, "abc");
    assert_string_equal(printed(true, &result), "{\"outcome\":\"verified\",\"segments\":40,\"checked\":10,"
                                                "\"steps\":70,\"hash\":\"abc\",\"text\":\"a reason\"}\n");
    result.outcome = TR_DIFFERS;
    result.step = 33;
    assert_string_equal(printed(true, &result),
                        "{\"outcome\":\"differs\",\"step\":33,\"segments\":40,\"checked\":10,"
                        "\"steps\":70,\"hash\":\"abc\",\"text\":\"a reason\"}\n");
    assert_string_equal(printed(false, &result), "hash        abc\nDIFFERS at step 33: a reason\n");
    result.outcome = TR_UNVERIFIABLE;
    result.hash[0] = '\0';
    assert_string_equal(printed(false, &result), "CANNOT: a reason\n");
}

/* One forged segment of four is among two drawn ones with probability 1/2, two are with 5/6. */
static void chances_are_told_of_parts(void **state)
{
    struct tr_verify_result result = TR_VERIFY_RESULT_INIT;
    (void)state;
    result.segments = 4;
    result.checked = 2;
    assert_string_equal(printed(false, &result), "forged segments   seen with probability\n"
                                                 "              1   0.5000\n"
                                                 "              2   0.8333\n"
                                                 "VERIFIED: a reason\n");
    /* Shares of more segments: 1 - (40 - k over 10) / (40 over 10). */
    result.segments = 40;
    result.checked = 10;
    assert_string_equal(printed(false, &result), "forged segments   seen with probability\n"
                                                 "              1   0.2500\n"
                                                 "              2   0.4423\n"
                                                 "              4   0.7001\n"
                                                 "             10   0.9646\n"
                                                 "             20   0.9998\n"
                                                 "VERIFIED: a reason\n");
    /* Of many segments there are both a single one and a hundredth. */
    result.segments = 1000;
    static const char many[] = "forged segments   seen with probability\n"
                               "              1   0.0100\n"
                               "             10   0.0";
    assert_memory_equal(printed(false, &result), many, strlen(many));
    result.segments = 2;
    result.checked = 1;
    assert_string_equal(printed(false, &result), "forged segments   seen with probability\n"
                                                 "              1   0.5000\n"
                                                 "VERIFIED: a reason\n");
    result.segments = 4;
    result.checked = 4; /* all */
    assert_string_equal(printed(false, &result), "VERIFIED: a reason\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_have_their_places),
        cmocka_unit_test(chances_are_told_of_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
