/* Examples as text: numbers as they are, and an example that cannot be read is an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_shown_or_their_failure),
    };
    return cmocka_run_group_tests_name("data.show", tests, NULL, NULL);
}
