/* Numbers that the records of a TFRecord file tell of themselves. */
#include "data/example.h"
#include "data/formats/tfrecord.h"
#include "data/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void write_record(const char *name, const struct tr_example_value *values, int count)
{
    uint8_t encoded[256];
    tr_record_writer *writer;
    const size_t size = tr_example_encoded_size(values, count);
    assert_true(size <= sizeof encoded);
    tr_example_encode(values, count, encoded);
    assert_int_equal(tr_record_writer_create(test_path(name), TR_PACKING_NONE, &writer), TR_OK);
    assert_int_equal(tr_record_writer_add(writer, encoded, size), TR_OK);
    assert_int_equal(tr_record_writer_finish(&writer), TR_OK);
}

/* The number of bytes of an image, where a record tells it, is right; and lists of floats have some. */
static void test_numbers_that_a_record_tells(void **state)
{
    (void)state;
    const int64_t label = 2, right = 6, wrong = 7;
    const float floats[] = {1, 2};
    const uint8_t raw[6] = {1, 2, 3, 4, 5, 6};
    struct tr_example_value image[] = {{"image_raw", TR_LIST_BYTES, raw, 6},
                                       {"label", TR_LIST_INT64, &label, 1},
                                       {"pixels", TR_LIST_INT64, &right, 1}};
    write_record("one", image, 3);
    tr_source *source = must_open("{tfrecord: {path: one, height: 2, width: 3}}");
    assert_int_equal(tr_source_info(source)->classes, 3);
    tr_source_close(&source);
    image[2].data = &wrong;
    write_record("one", image, 3);
    expect_refusal("{tfrecord: {path: one, height: 2, width: 3}}", TR_EFORMAT,
                   "feature \"pixels\" is 7; height x width x channels is 6");
    source = must_open("{tfrecord: {path: one, height: 2, width: 3, pixels: ''}}");
    tr_source_close(&source);
    struct tr_example_value row[] = {{"floats", TR_LIST_FLOATS, floats, 1},
                                     {"label", TR_LIST_INT64, &label, 1}};
    write_record("one", row, 2);
    source = must_open("{tfrecord: {path: one, floats: floats}}");
    assert_int_equal(tr_source_info(source)->floats, 1);
    tr_source_close(&source);
    row[0].count = 0;
    write_record("one", row, 2);
    expect_refusal("{tfrecord: {path: one, floats: floats}}", TR_EFORMAT,
                   "feature \"floats\" has 0 floats; 1 to 16777216 can be read");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_that_a_record_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
