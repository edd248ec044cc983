/* Examples as text: numbers as they are, and an example that cannot be read is an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "data/source.h"
#include "trireme/arrays.h"

enum { COUNT = 3, WIDTH = 4 };

/* The last example cannot be read. */
static int read_floats(void *user, int64_t index, void *features, int64_t *length, void *label)
{
    static const float first[WIDTH] = {0.5F, -2, 1e-3F, 7};
    (void)user, (void)label;
    if (index == COUNT - 1) return 42;
    *length = WIDTH;
    for (int k = 0; features && k < WIDTH; k++) ((float *)features)[k] = first[k] + (float)index;
    return 0;
}

static void numbers_are_shown_or_their_failure(void **state)
{
    (void)state;
    struct tr_example_reader reader = TR_EXAMPLE_READER_INIT;
    struct tr_text text = TR_TEXT_INIT;
    tr_source *source;
    char *shown;
    reader.info.count = COUNT;
    reader.info.features = TR_FEATURE_FLOATS;
    reader.info.floats = WIDTH;
    reader.read = read_floats;
    assert_int_equal(tr_source_from_reader(&reader, &source), TR_OK);
    assert_int_equal(tr_source_add_floats(source, 0, &text), TR_OK);
    tr_text_add(&text, "; ");
    assert_int_equal(tr_source_add_floats(source, 1, &text), TR_OK);
    assert_int_equal(tr_text_finish(&text, &shown), TR_OK);
    assert_string_equal(shown, "0.5 -2 0.001 7; 1.5 -1 1.001 8");
    tr_free(shown);
    assert_int_equal(tr_source_add_floats(source, COUNT - 1, &text), TR_EIO);
    assert_non_null(strstr(tr_error_message(), "returned 42 for example 2"));
    tr_text_release(&text);
    tr_source_close(&source);
}

/* Of a long vector the first 16 numbers are shown, and that there are more. */
static void long_vectors_are_cut(void **state)
{
    (void)state;
    static const float numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    for (int width = 16; width <= 17; width++) {
        struct tr_arrays arrays = TR_ARRAYS_INIT;
        tr_source *source;
        char *shown;
        arrays.features = (struct tr_array){numbers, TR_ARRAY_FLOAT32, 2, {1, width}, {0}};
        arrays.labels = (struct tr_array){numbers, TR_ARRAY_FLOAT32, 2, {1, 2}, {0}};
        assert_int_equal(tr_source_from_arrays(&arrays, &source), TR_OK);
        assert_int_equal(tr_source_show(source, 0, 1, 1, &shown), TR_OK);
        assert_string_equal(shown, width == 16 ? "[0] 1 2: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
                                               : "[0] 1 2: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 ...\n");
        tr_free(shown);
        assert_int_equal(tr_source_show(source, 0, 1, 0, &shown), TR_EINVAL);
        assert_string_equal(tr_error_message(), "0 columns are no room to show anything; give at least 1");
        assert_int_equal(tr_source_show(source, 1, 1, 80, &shown), TR_EINVAL);
        assert_string_equal(tr_error_message(),
                            "examples 1 and 1 more were asked for; the data set has 0 to 0");
        assert_int_equal(tr_source_show(source, 0, -1, 80, &shown), TR_EINVAL);
        assert_int_equal(tr_source_show(source, 0, 0, 80, &shown), TR_OK);
        assert_string_equal(shown, "");
        tr_free(shown);
        tr_source_close(&source);
    }
}

/* Where columns are few a character stands for several pixels; images stand side by side under their labels.
 */
static void images_are_drawn(void **state)
{
    (void)state;
    static const uint8_t pixels[2][4][4] = {
        {{0, 0, 255, 255}, {0, 0, 255, 255}, {130, 130, 0, 0}, {130, 130, 0, 0}},
        {{255, 255, 0, 0}, {255, 255, 0, 0}, {255, 255, 0, 0}, {255, 255, 0, 0}}};
    static const uint8_t labels[] = {3, 1};
    static const struct {
        int columns;
        const char *shown;
    } cases[] = {
        {80, "[0] 3 [1] 1\n  @@  @@  \n++    @@  \n"},
        {9, "[0] 3\n  @@\n++  \n[1] 1\n@@  \n@@  \n"}, /* two need ten */
        {3, "[0] 3\n:=\n[1] 1\n@ \n"},
        {1, "[0] 3\n-\n[1] 1\n=\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_arrays arrays = TR_ARRAYS_INIT;
        tr_source *source;
        char *shown;
        arrays.features = (struct tr_array){pixels, TR_ARRAY_UINT8, 3, {2, 4, 4}, {0}};
        arrays.labels = (struct tr_array){labels, TR_ARRAY_UINT8, 1, {2}, {0}};
        assert_int_equal(tr_source_from_arrays(&arrays, &source), TR_OK);
        assert_int_equal(tr_source_show(source, 0, 9, cases[i].columns, &shown), TR_OK);
        assert_string_equal(shown, cases[i].shown);
        tr_free(shown);
        tr_source_close(&source);
    }
}

/* What does not fill a character is drawn by the pixels that are there. */
static void edges_are_drawn(void **state)
{
    (void)state;
    static const uint8_t pixels[5][5] = {
        {0, 0, 0, 0, 255}, {0, 0, 0, 0, 255}, {0, 0, 0, 0, 255}, {0, 0, 0, 0, 255}, {255, 0, 0, 0, 255}};
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    tr_source *source;
    char *shown;
    arrays.features = (struct tr_array){pixels, TR_ARRAY_UINT8, 3, {1, 5, 5}, {0}};
    assert_int_equal(tr_source_from_arrays(&arrays, &source), TR_OK);
    assert_int_equal(tr_source_show(source, 0, 1, 3, &shown), TR_OK);
    assert_string_equal(shown, "[0] \n  @\n= @\n");
    tr_free(shown);
    tr_source_close(&source);
}

/* Of many values to learn the first 16 are shown. */
static void many_values_are_cut(void **state)
{
    (void)state;
    static const float numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    tr_source *source;
    char *shown;
    arrays.features = (struct tr_array){numbers, TR_ARRAY_FLOAT32, 2, {1, 1}, {0}};
    arrays.labels = (struct tr_array){numbers, TR_ARRAY_FLOAT32, 2, {1, 17}, {0}};
    assert_int_equal(tr_source_from_arrays(&arrays, &source), TR_OK);
    assert_int_equal(tr_source_show(source, 0, 1, 80, &shown), TR_OK);
    assert_string_equal(shown, "[0] 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16: 1\n");
    tr_free(shown);
    tr_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_shown_or_their_failure),
        cmocka_unit_test(long_vectors_are_cut),
        cmocka_unit_test(images_are_drawn),
        cmocka_unit_test(edges_are_drawn),
        cmocka_unit_test(many_values_are_cut),
    };
    return cmocka_run_group_tests_name("data.show", tests, NULL, NULL);
}
