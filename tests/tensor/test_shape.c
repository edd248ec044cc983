/* Shapes: when two are equal, how many elements they have, which are refused, their text. */
#include "tensor/shape.h"

#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void shapes_are_equal_in_every_size(void **state)
{
    (void)state;
    const struct tr_shape image = {3, {28, 26, 3}, false};
    const struct tr_shape others[] = {
        {3, {27, 26, 3}, false}, {3, {28, 27, 3}, false}, {3, {28, 26, 1}, false},
        {2, {28, 26}, false},    {3, {28, 26, 3}, true},
    };
    struct tr_shape same = {3, {28, 26, 3, 99}, false}; /* sizes beyond the rank do not count */
    assert_true(tr_shape_equal(&image, &same));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(tr_shape_equal(&image, &others[i]));
}

static void elements_are_counted(void **state)
{
    (void)state;
    assert_int_equal(tr_shape_count(&(struct tr_shape){0, {7}, false}), 1);
    assert_int_equal(tr_shape_count(&(struct tr_shape){3, {28, 26, 3}, false}), 2184);
    assert_int_equal(tr_shape_count(&(struct tr_shape){1, {128}, true}), 128);
}

static void sizes_have_limits(void **state)
{
    (void)state;
    const int64_t million = 1 << 20;
    assert_int_equal(tr_shape_check(&(struct tr_shape){2, {million, million - 1}, false}, "x"), TR_OK);
    assert_int_equal(tr_shape_check(&(struct tr_shape){2, {million, million}, false}, "x"), TR_EINVAL);
    assert_string_equal(tr_error_message(), "x: shape 1048576x1048576 has 2^40 elements or more");
    assert_int_equal(tr_shape_check(&(struct tr_shape){3, {INT64_MAX, 4, INT64_MAX}, false}, "x"), TR_EINVAL);
    assert_int_equal(tr_shape_check(&(struct tr_shape){2, {3, 0}, false}, "x"), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "below 1"));
    assert_int_equal(tr_shape_check(&(struct tr_shape){1, {-1}, false}, "x"), TR_EINVAL);
}

static void shapes_have_texts(void **state)
{
    (void)state;
    char text[TR_SHAPE_TEXT];
    assert_string_equal(tr_shape_text(&(struct tr_shape){3, {28, 26, 3}, false}, text), "28x26x3");
    assert_string_equal(tr_shape_text(&(struct tr_shape){0, {0}, false}, text), "scalar");
    assert_string_equal(tr_shape_text(&(struct tr_shape){1, {128}, true}, text), "tokens x 128");
    const int64_t most = INT64_MAX;
    const char *longest = tr_shape_text(&(struct tr_shape){4, {most, most, most, most}, true}, text);
    assert_true(strlen(longest) < TR_SHAPE_TEXT);
    assert_string_equal(strrchr(longest, 'x'), "x9223372036854775807");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_equal_in_every_size),
        cmocka_unit_test(elements_are_counted),
        cmocka_unit_test(sizes_have_limits),
        cmocka_unit_test(shapes_have_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
