/* Markdown in the language of man(7): every kind of line, what troff would obey, and texts that end early. */
#include "cli/manual/manual.h"

#include "base/text/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void expect_roff(const char *markdown, const char *roff)
{
    struct tr_text text = TR_TEXT_INIT;
    cli_roff_markdown(&text, markdown);
    assert_false(text.failed);
    assert_string_equal(text.bytes, roff);
    tr_text_release(&text);
}

static void headings_are_sections(void **state)
{
    (void)state;
    expect_roff("# The `data` section", ".SH THE DATA SECTION\n");
    expect_roff("## A \"set\"\nText\n", ".SH A \\(dqSET\\(dq\nText\n");
    expect_roff("### With a - in it\n#### Deeper\n", ".SS With a \\- in it\n.SS Deeper\n");
}

static void paragraphs_are_apart(void **state)
{
    (void)state;
    expect_roff("# A\n\nOne\nmore\n\nTwo\n", ".SH A\nOne\nmore\n.PP\nTwo\n");
    expect_roff("One\n\n    code\n\n    more\n\nTwo", "One\n.PP\n.EX\n    code\n    more\n.EE\n.PP\nTwo\n");
    expect_roff("    code", ".PP\n.EX\n    code\n.EE\n");
}

static void tables_are_lists(void **state)
{
    (void)state;
    expect_roff("| key | value | default | meaning |\n|---|---|---|---|\n"
                "| `a` | number | 1 | a \\| b |\n| `b` | text | required | |\n| `c` | | | all |\nBehind\n",
                ".TP\n\\fBa\\fR (number; default 1)\na | b\n"
                ".TP\n\\fBb\\fR (text; required)\n\\&\n"
                ".TP\n\\fBc\\fR\nall\n.PP\nBehind\n");
}

static void nothing_is_obeyed(void **state)
{
    (void)state;
    expect_roff(".so /etc/passwd\n'x'\na.b\n", "\\&.so /etc/passwd\n\\&'x\\(aq\na.b\n");
    expect_roff("a\\b ^ ~ `open", "a\\eb \\(ha \\(ti \\fBopen\\fR\n");
    /* A bar is a bar, and only a backslash before one stands for nothing. */
    expect_roff("a|b \\| c|", "a|b | c|\n");
    expect_roff("the end \\", "the end \\e\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headings_are_sections),
        cmocka_unit_test(paragraphs_are_apart),
        cmocka_unit_test(tables_are_lists),
        cmocka_unit_test(nothing_is_obeyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
