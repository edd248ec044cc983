/* Sources as files of other formats: IDX byte by byte, what has no place in a format, and that a failure
 * leaves no file.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "data/convert.h"
#include "data/source.h"
#include "data/support.h"
#include "refuse.h"
#include "trireme/arrays.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t pixels[2 * 3 * 2 * 2] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,  12,
                                              13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 255, 0};

/* Two images, with channels or without; labels of the given type, or none where it is 0. */
static tr_source *images(bool colour, enum tr_array_type type, const void *labels, int rank)
{
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    tr_source *source;
    arrays.features = colour ? (struct tr_array){pixels, TR_ARRAY_UINT8, 4, {2, 3, 2, 2}, {0}}
                             : (struct tr_array){pixels, TR_ARRAY_UINT8, 3, {2, 3, 2}, {0}};
    if (labels) arrays.labels = (struct tr_array){labels, type, rank, {2, 3, 2}, {0}};
    if (tr_source_from_arrays(&arrays, &source) != TR_OK) fail_msg("%s", tr_error_message());
    return source;
}

static void expect_file(const char *name, const void *head, size_t head_size, const void *rest, size_t size)
{
    struct bytes file = read_file(test_path(name));
    assert_int_equal(file.size, head_size + size);
    assert_memory_equal(file.data, head, head_size);
    assert_memory_equal(file.data + head_size, rest, size);
    free(file.data);
}

static void idx_files_have_their_bytes(void **unused)
{
    static const int32_t labels[] = {255, 7};
    static const uint8_t grey_head[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2},
                         colour_head[] = {0, 0, 8, 4, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2},
                         label_head[] = {0, 0, 8, 1, 0, 0, 0, 2};
    (void)unused;
    tr_source *source = images(false, TR_ARRAY_INT32, labels, 1); /* of 256 classes, the most */
    assert_int_equal(tr_convert_to_idx(source, test_path("grey")), TR_OK);
    expect_file("grey-images-idx3-ubyte", grey_head, sizeof grey_head, pixels, 12);
    expect_file("grey-labels-idx1-ubyte", label_head, sizeof label_head, "\xff\x07", 2);
    tr_source_close(&source);
    source = images(true, 0, NULL, 0);
    assert_int_equal(tr_convert_to_idx(source, test_path("colour")), TR_OK);
    expect_file("colour-images-idx4-ubyte", colour_head, sizeof colour_head, pixels, 24);
    assert_false(tr_file_exists(test_path("colour-labels-idx1-ubyte")));
    tr_source_close(&source);
}

static void expect_no_idx(tr_source *source)
{
    assert_int_equal(tr_convert_to_idx(source, test_path("none")), TR_EUNSUPPORTED);
    assert_string_equal(
        tr_error_message(),
        "convert to idx: images of bytes with a class each are written, of at most 256 classes");
    assert_false(tr_file_exists(test_path("none-images-idx3-ubyte")));
    tr_source_close(&source);
}

static void some_have_no_place(void **unused)
{
    static const int32_t many[] = {256, 7}, of_pixels[12] = {0, 1};
    static const float values[] = {1, 2};
    (void)unused;
    expect_no_idx(images(false, TR_ARRAY_INT32, many, 1));
    expect_no_idx(images(false, TR_ARRAY_FLOAT32, values, 1));
    expect_no_idx(images(false, TR_ARRAY_INT32, of_pixels, 3));
    write_text("table", "1,2,0\n3,4,1\n");
    expect_no_idx(must_open("{csv: {path: table}}"));
    tr_source *source = images(false, TR_ARRAY_INT32, of_pixels, 3);
    assert_int_equal(tr_convert_to_tfrecord(source, test_path("none"), TR_PACKING_NONE), TR_EUNSUPPORTED);
    assert_string_equal(tr_error_message(),
                        "convert to tfrecord: labels of pixels have no place in the format");
    assert_false(tr_file_exists(test_path("none")));
    tr_source_close(&source);
}

/* Values to predict and examples without labels come back from records. */
static void records_have_what_the_source_has(void **unused)
{
    static const float values[] = {0.5F, -2};
    (void)unused;
    for (int labelled = 0; labelled < 2; labelled++) {
        tr_source *source = images(true, TR_ARRAY_FLOAT32, labelled ? values : NULL, 1);
        assert_int_equal(tr_convert_to_tfrecord(source, test_path("records"), TR_PACKING_ZLIB), TR_OK);
        tr_source_close(&source);
        source = must_open(
            labelled ? "{tfrecord: {path: records, height: 3, width: 2, channels: 2, targets: targets}}"
                     : "{tfrecord: {path: records, height: 3, width: 2, channels: 2, label: \"\"}}");
        assert_int_equal(tr_source_info(source)->count, 2);
        for (int i = 0; i < 2; i++) {
            uint8_t image[12];
            float value = 7;
            assert_int_equal(tr_source_read(source, i, image, 12, NULL, &value), TR_OK);
            assert_memory_equal(image, pixels + 12 * i, 12);
            assert_true(value == (labelled ? values[i] : 7));
        }
        tr_source_close(&source);
        if (!labelled)
            expect_refusal("{tfrecord: {path: records, height: 3, width: 2, channels: 2}}", TR_EFORMAT,
                           "no feature \"label\"");
    }
}

/* The second example cannot be read. */
static int read_one(void *user, int64_t index, void *features, int64_t *length, void *label)
{
    (void)user, (void)length;
    if (index > 0 && features) return 3;
    if (features) memset(features, 1, 6);
    if (label) *(int32_t *)label = 0;
    return 0;
}

static void a_failure_leaves_no_file(void **unused)
{
    struct tr_example_reader reader = TR_EXAMPLE_READER_INIT;
    tr_source *source;
    (void)unused;
    reader.info.count = 2;
    reader.info.features = TR_FEATURE_IMAGE;
    reader.info.height = 3, reader.info.width = 2, reader.info.channels = 1;
    reader.info.labels = TR_LABEL_CLASS;
    reader.info.classes = 1;
    reader.read = read_one;
    assert_int_equal(mkdir(test_path("failed"), 0700), 0);
    assert_int_equal(tr_source_from_reader(&reader, &source), TR_OK);
    assert_int_equal(tr_convert_to_idx(source, test_path("failed/x")), TR_EIO);
    assert_int_equal(tr_convert_to_tfrecord(source, test_path("failed/x"), TR_PACKING_NONE), TR_EIO);
    assert_int_equal(rmdir(test_path("failed")), 0); /* it is empty */
    tr_source_close(&source);
    static const int32_t labels[] = {0, 1};
    source = images(false, TR_ARRAY_INT32, labels, 1);
    assert_int_equal(tr_convert_to_idx(source, test_path("nowhere/x")), TR_ENOTFOUND);
    assert_int_equal(mkdir(test_path("x-labels-idx1-ubyte"), 0700), 0); /* in the way of the labels */
    assert_int_equal(tr_convert_to_idx(source, test_path("x")), TR_EIO);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_status status = tr_convert_to_idx(source, test_path("y"));
        if (status == TR_OK) status = tr_convert_to_tfrecord(source, test_path("y"), TR_PACKING_GZIP);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idx_files_have_their_bytes),
        cmocka_unit_test(some_have_no_place),
        cmocka_unit_test(records_have_what_the_source_has),
        cmocka_unit_test(a_failure_leaves_no_file),
    };
    return cmocka_run_group_tests_name("data.convert", tests, NULL, NULL);
}
