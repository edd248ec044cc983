/* Values of the program in a tree: in place of what is there, or behind it, and as they were given. */
#include "base/options/config.h"

#include "base/alloc.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static tr_config *parse(const char *text)
{
    tr_config *root;
    if (tr_config_parse(text, strlen(text), "p.yaml", &root) != TR_OK) fail_msg("%s", tr_error_message());
    return root;
}

static void expect_dump(const tr_config *root, const char *expected)
{
    char *text;
    assert_int_equal(tr_config_dump(root, &text), TR_OK);
    assert_string_equal(text, expected);
    tr_free(text);
}

static void values_take_their_places(void **state)
{
    (void)state;
    static const char *const texts[] = {"a b", "3", "~", "x: y", "\xff!"};
    tr_config *root = parse("first: 1\nempty:\nmiddle: {a: 1, b: [1, 2], c: 3}\nlast: 9\n");
    assert_int_equal(tr_config_put_text(root, NULL, "first", "one"), TR_OK);
    assert_int_equal(tr_config_put_integer(root, "middle", "b", INT64_MIN), TR_OK);
    assert_int_equal(tr_config_put_integer(root, "middle", "d", 4), TR_OK);
    assert_int_equal(tr_config_put_text(root, "empty", "now", "null"), TR_OK);
    assert_int_equal(tr_config_put_texts(root, "new", "list", 5, texts), TR_OK);
    assert_int_equal(tr_config_put_texts(root, "new", "none", 0, NULL), TR_OK);
    assert_int_equal(tr_config_put_nothing(root, NULL, "last"), TR_OK);
    expect_dump(root, "first: one\n"
                      "empty:\n"
                      "  now: \"null\"\n"
                      "middle:\n"
                      "  a: 1\n"
                      "  b: -9223372036854775808\n"
                      "  c: 3\n"
                      "  d: 4\n"
                      "last: ~\n"
                      "new:\n"
                      "  list: [\"a b\", 3, \"~\", \"x: y\", \"\xef\xbf\xbd!\"]\n"
                      "  none: []\n");
    char *text, place[64]; /* a place without a line, for what was in no file */
    assert_string_equal(tr_config_location(tr_config_get(root, "first"), place, sizeof place), "`first`");
    assert_int_equal(tr_config_dump(root, &text), TR_OK);
    tr_config *again = parse(text);
    expect_dump(again, text);
    tr_free(text);
    tr_config_destroy(&again);
    tr_config_destroy(&root);
}

static void what_is_no_section_stays(void **state)
{
    (void)state;
    tr_config *root = parse("a: 1\nb: [2]\n");
    assert_int_equal(tr_config_put_integer(root, "a", "x", 1), TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "p.yaml:1:4: a: is a text; write a mapping, so that more can be added");
    assert_int_equal(tr_config_put_nothing(root, "b", "x"), TR_EINVAL);
    assert_int_equal(tr_config_put_text(root, "b", "x", "y"), TR_EINVAL);
    assert_int_equal(tr_config_put_texts(root, "b", "x", 1, (const char *const[]){"y"}), TR_EINVAL);
    expect_dump(root, "a: 1\nb: [2]\n");
    tr_config_destroy(&root);
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    static const char *const texts[] = {"one", "two"};
    for (int kind = 0; kind < 3; kind++)
        for (int64_t at = 0, done = 0; !done; at++) {
            int64_t live = tr_alloc_live();
            tr_config *root = parse("a: {b: 1}\n");
            refuse_begin(at);
            tr_status status = kind == 0   ? tr_config_put_texts(root, "a", "b", 2, texts)
                               : kind == 1 ? tr_config_put_text(root, "new", "b", "x")
                                           : tr_config_put_nothing(root, NULL, "c");
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            if (!done && kind == 0) expect_dump(root, "a:\n  b: 1\n");
            tr_config_destroy(&root);
            assert_int_equal(tr_alloc_live(), live);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_take_their_places),
        cmocka_unit_test(what_is_no_section_stays),
        cmocka_unit_test(memory_may_fail_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
