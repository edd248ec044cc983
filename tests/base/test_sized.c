/* Structures that begin with their size, between programs and libraries of different ages. */
#include "base/sized.h"

#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

struct thing {
    size_t size;
    int32_t a, b, c;
};
#define OLD offsetof(struct thing, c) /* before c was appended */

static const struct thing defaults = {sizeof(struct thing), 1, 2, 3};

static void older_settings_get_the_defaults_of_what_is_new(void **state)
{
    (void)state;
    struct thing out, given = {OLD, 10, 20, 30};
    assert_int_equal(tr_sized_take(&given, &defaults, sizeof out, "THING_INIT", &out), TR_OK);
    assert_int_equal(out.size, sizeof out);
    assert_int_equal(out.a, 10);
    assert_int_equal(out.b, 20);
    assert_int_equal(out.c, 3);
    given.size = sizeof given;
    assert_int_equal(tr_sized_take(&given, &defaults, sizeof out, "THING_INIT", &out), TR_OK);
    assert_int_equal(out.c, 30);
}

static void sizes_that_are_none_are_refused(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, sizeof(size_t), sizeof(struct thing) + 1, SIZE_MAX};
    struct thing out, given = defaults;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        given.size = sizes[i];
        out.a = -1;
        assert_int_equal(tr_sized_take(&given, &defaults, sizeof out, "THING_INIT", &out), TR_EINVAL);
        assert_non_null(strstr(tr_error_message(), "begin with THING_INIT"));
        assert_int_equal(out.a, -1);
    }
    for (size_t i = 0; i < 3; i++) {
        out.size = sizes[i];
        assert_int_equal(tr_sized_give(&defaults, sizeof defaults, "THING_INIT", &out), TR_EINVAL);
        assert_non_null(strstr(tr_error_message(), "begin with THING_INIT"));
        assert_int_equal(tr_sized_check(&out, "THING_INIT"), TR_EINVAL);
        assert_int_equal(out.a, -1);
    }
}

static void facts_end_where_the_structure_of_the_caller_does(void **state)
{
    (void)state;
    struct thing out = {OLD, -1, -1, -1};
    assert_int_equal(tr_sized_check(&out, "THING_INIT"), TR_OK);
    assert_int_equal(tr_sized_give(&defaults, sizeof defaults, "THING_INIT", &out), TR_OK);
    assert_int_equal(out.size, OLD);
    assert_int_equal(out.a, 1);
    assert_int_equal(out.b, 2);
    assert_int_equal(out.c, -1);
    /* A program that knows more than the library learns where the facts end. */
    struct {
        struct thing known;
        int32_t more;
    } newer = {{sizeof newer, -1, -1, -1}, -1};
    assert_int_equal(tr_sized_give(&defaults, sizeof defaults, "THING_INIT", &newer), TR_OK);
    assert_int_equal(newer.known.size, sizeof defaults);
    assert_int_equal(newer.known.c, 3);
    assert_int_equal(newer.more, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(older_settings_get_the_defaults_of_what_is_new),
        cmocka_unit_test(sizes_that_are_none_are_refused),
        cmocka_unit_test(facts_end_where_the_structure_of_the_caller_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
