/* Numbers that the records of a TFRecord file tell of themselves. */
#include "base/alloc.h"
#include "data/example.h"
#include "data/formats/tfrecord.h"
#include "data/source.h"
#include "data/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static void add_record(tr_record_writer *writer, const struct tr_example_value *values, int count)
{
    uint8_t encoded[256];
    const size_t size = tr_example_encoded_size(values, count);
    assert_true(size <= sizeof encoded);
    tr_example_encode(values, count, encoded);
    assert_int_equal(tr_record_writer_add(writer, encoded, size), TR_OK);
}

static void write_record(const char *name, const struct tr_example_value *values, int count)
{
    tr_record_writer *writer;
    assert_int_equal(tr_record_writer_create(test_path(name), TR_PACKING_NONE, &writer), TR_OK);
    add_record(writer, values, count);
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

/* A record after the first one, which is as the first. */
static void test_records_unlike_the_first(void **state)
{
    static const int64_t zero = 0, six = 6, below = -1, numbers[] = {6, 6};
    static const float floats[] = {1, 2, 3};
    static const uint8_t raw[6] = {1, 2, 3, 4, 5, 6};
#define IMAGE                                                                                                \
    {                                                                                                        \
        "image_raw", TR_LIST_BYTES, raw, 6                                                                   \
    }
#define LABEL                                                                                                \
    {                                                                                                        \
        "label", TR_LIST_INT64, &zero, 1                                                                     \
    }
#define PIXELS                                                                                               \
    {                                                                                                        \
        "pixels", TR_LIST_INT64, &six, 1                                                                     \
    }
#define FLOATS(count)                                                                                        \
    {                                                                                                        \
        "floats", TR_LIST_FLOATS, floats, count                                                              \
    }
#define TARGETS(count)                                                                                       \
    {                                                                                                        \
        "targets", TR_LIST_FLOATS, floats, count                                                             \
    }
#define INTEGERS(name)                                                                                       \
    {                                                                                                        \
        name, TR_LIST_INT64, numbers, 2                                                                      \
    }
#define IMAGES "{tfrecord: {path: two, height: 2, width: 3, on_bad_record: stop}}"
#define ROWS   "{tfrecord: {path: two, floats: floats}}"
#define VALUES "{tfrecord: {path: two, floats: floats, targets: targets}}"
    static const struct {
        const char *description;
        struct tr_example_value first[3], second[3];
        const char *says; /* NULL: they are read */
    } cases[] = {
        {IMAGES, {IMAGE, LABEL, PIXELS}, {IMAGE, LABEL, PIXELS}, NULL},
        {IMAGES,
         {IMAGE, LABEL, PIXELS},
         {IMAGE, LABEL, {"pixels", TR_LIST_BYTES, raw, 6}},
         "feature \"pixels\" holds bytes, not integers"},
        {IMAGES, {IMAGE, LABEL, PIXELS}, {IMAGE, LABEL, INTEGERS("pixels")}, "feature \"pixels\" has 2"},
        {IMAGES,
         {IMAGE, LABEL, PIXELS},
         {IMAGE, {"label", TR_LIST_INT64, &below, 1}, PIXELS},
         "label -1 is not in 0 to"},
        {ROWS, {FLOATS(2), LABEL}, {FLOATS(2), LABEL}, NULL},
        {ROWS,
         {FLOATS(2), LABEL},
         {FLOATS(1), LABEL},
         "feature \"floats\" has 1 floats; the first example has 2"},
        {ROWS,
         {FLOATS(2), LABEL},
         {FLOATS(3), LABEL},
         "feature \"floats\" has 3 floats; the first example has 2"},
        {ROWS, {FLOATS(2), LABEL}, {INTEGERS("floats"), LABEL}, "feature \"floats\" holds integers"},
        {VALUES, {FLOATS(2), TARGETS(1)}, {FLOATS(2), TARGETS(1)}, NULL},
        {VALUES, {FLOATS(2), INTEGERS("targets")}, {FLOATS(2)}, "feature \"targets\" holds integers"},
        {VALUES, {FLOATS(2), TARGETS(0)}, {FLOATS(2)}, "feature \"targets\" has 0 floats; 1 to"},
        {VALUES,
         {FLOATS(2), TARGETS(1)},
         {FLOATS(2), TARGETS(2)},
         "feature \"targets\" has 2 floats; the first example has 1"},
        {VALUES, {FLOATS(2), TARGETS(1)}, {FLOATS(2)}, "no feature \"targets\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tr_record_writer *writer;
        assert_int_equal(tr_record_writer_create(test_path("two"), TR_PACKING_NONE, &writer), TR_OK);
        for (int k = 0; k < 2; k++) {
            const struct tr_example_value *values = k ? cases[i].second : cases[i].first;
            add_record(writer, values, values[1].name == NULL ? 1 : values[2].name == NULL ? 2 : 3);
        }
        assert_int_equal(tr_record_writer_finish(&writer), TR_OK);
        if (cases[i].says)
            expect_refusal(cases[i].description, TR_EFORMAT, cases[i].says);
        else
            assert_int_equal(try_open(cases[i].description), TR_OK);
    }
    /* No Example at all, though its checksum is right. */
    tr_record_writer *writer;
    assert_int_equal(tr_record_writer_create(test_path("two"), TR_PACKING_NONE, &writer), TR_OK);
    add_record(writer, cases[0].first, 3);
    assert_int_equal(tr_record_writer_add(writer, "\x0f", 1), TR_OK);
    assert_int_equal(tr_record_writer_finish(&writer), TR_OK);
    expect_refusal(IMAGES, TR_EFORMAT, "a field of unknown wire type");
    /* Its length is damaged: what is left of the file counts as a record, however short it is. */
    struct bytes file = read_file(test_path("two"));
    file.data[file.size - 17] ^= 1;
    write_file("two", file.data, file.size);
    free(file.data);
    tr_source *source =
        must_open("{tfrecord: {path: two, height: 2, width: 3, on_bad_record: skip, max_bad: 0.5}}");
    assert_int_equal(tr_source_info(source)->count, 1);
    assert_int_equal(tr_source_info(source)->skipped, 1);
    tr_source_close(&source);
}

/* A folder took the place of the file meanwhile. */
static void test_files_that_cannot_be_finished(void **state)
{
    (void)state;
    for (int packed = 0; packed < 2; packed++) {
        const int64_t live = tr_alloc_live();
        const char *name = packed ? "taken.gz" : "taken";
        tr_record_writer *writer;
        assert_int_equal(
            tr_record_writer_create(test_path(name), packed ? TR_PACKING_GZIP : TR_PACKING_NONE, &writer),
            TR_OK);
        assert_int_equal(tr_record_writer_add(writer, "abc", 3), TR_OK);
        assert_int_equal(mkdir(test_path(name), 0700), 0);
        assert_int_equal(tr_record_writer_finish(&writer), TR_EIO);
        assert_null(writer);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_that_a_record_tells),
        cmocka_unit_test(test_records_unlike_the_first),
        cmocka_unit_test(test_files_that_cannot_be_finished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
