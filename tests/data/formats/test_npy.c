/* Arrays of NumPy as data: every type in both byte orders, classes and values, and what does not fit
 * together. */
#include "base/alloc.h"
#include "data/source.h"
#include "data/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define BOTH "{npy: {features: x, labels: y}}"

/* Writes an array of `count` elements of `size` bytes each, given in the order of this machine, as NumPy type
   `type`
   ("<f4"); with '>' the bytes of an element are reversed. */
static void write_array(const char *name, const char *type, const char *shape, const void *data, size_t size,
                        size_t count)
{
    uint8_t file[2048];
    int length = snprintf((char *)file + 10, 256, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                          type, shape);
    memcpy(file, "\x93NUMPY\1", 8);
    file[8] = (uint8_t)length;
    file[9] = 0;
    uint8_t *to = file + 10 + length;
    for (size_t i = 0; i < size * count; i++) {
        size_t in = i % size;
        to[i] = ((const uint8_t *)data)[i - in + (type[0] == '>' ? size - 1 - in : in)];
    }
    write_file(name, file, (size_t)(to - file) + size * count);
}

static const uint8_t pixels[2 * 2 * 3] = {0, 1, 2, 3, 4, 5, 250, 251, 252, 253, 254, 255};
static const int64_t classes[2] = {3, 1};

static int write_good(void **state)
{
    (void)state;
    write_array("x", "|u1", "(2, 2, 3)", pixels, 1, 12);
    write_array("y", "<i8", "(2,)", classes, 8, 2);
    return 0;
}

static void digest_of(tr_source *source, char digest[65])
{
    assert_int_equal(tr_source_digest(source, digest), TR_OK);
}

static void test_images(void **state)
{
    (void)state;
    char digest[2][65];
    tr_source *source = must_open(BOTH);
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->features, TR_FEATURE_IMAGE);
    assert_int_equal(info->count, 2);
    assert_int_equal(info->height, 2);
    assert_int_equal(info->width, 3);
    assert_int_equal(info->channels, 1);
    assert_int_equal(info->labels, TR_LABEL_CLASS);
    assert_int_equal(info->classes, 4);
    assert_memory_equal(((const struct tr_source *)source)->resident, pixels, sizeof pixels);
    for (int64_t i = 0; i < 2; i++) {
        uint8_t image[6];
        int64_t length;
        int32_t label;
        assert_int_equal(tr_source_read(source, i, image, 6, &length, &label), TR_OK);
        assert_int_equal(length, 6);
        assert_memory_equal(image, pixels + 6 * i, 6);
        assert_int_equal(label, classes[i]);
    }
    digest_of(source, digest[0]);
    tr_source_close(&source);

    /* Labels of another type are the same labels; channels of their own are not the same images. */
    write_array("y", "|u1", "(2,)", "\3\1", 1, 2);
    source = must_open(BOTH);
    digest_of(source, digest[1]);
    assert_string_equal(digest[0], digest[1]);
    tr_source_close(&source);
    write_array("x", "|u1", "(2, 1, 2, 3)", pixels, 1, 12);
    source = must_open("{npy: {features: x}}");
    assert_int_equal(tr_source_info(source)->channels, 3);
    assert_int_equal(tr_source_info(source)->labels, TR_LABEL_NONE);
    int32_t label = 77;
    assert_int_equal(tr_source_read(source, 1, NULL, 0, NULL, &label), TR_OK);
    assert_int_equal(label, 77);
    tr_source_close(&source);
}

/* The same numbers in every type. */
static void test_numbers(void **state)
{
    (void)state;
    static const uint8_t u1[6] = {0, 1, 2, 3, 200, 255};
    static const uint16_t u2[6] = {0, 1, 2, 3, 200, 255};
    static const int32_t i4[6] = {0, 1, 2, 3, 200, 255};
    static const int64_t i8[6] = {0, 1, 2, 3, 200, 255};
    static const float f4[6] = {0, 1, 2, 3, 200, 255};
    static const double f8[6] = {0, 1, 2, 3, 200, 255};
    static const struct {
        const char *type;
        const void *data;
        size_t size;
    } forms[] = {{"|u1", u1, 1}, {"<u2", u2, 2}, {">i2", u2, 2}, {"<i4", i4, 4},
                 {">i4", i4, 4}, {"<i8", i8, 8}, {">i8", i8, 8}, {"<f4", f4, 4},
                 {">f4", f4, 4}, {"<f8", f8, 8}, {">f8", f8, 8}};
    char digest[2][65];
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        write_array("x", forms[i].type, "(2, 3)", forms[i].data, forms[i].size, 6);
        tr_source *source = must_open(BOTH);
        assert_int_equal(tr_source_info(source)->features, TR_FEATURE_FLOATS);
        assert_int_equal(tr_source_info(source)->floats, 3);
        float row[3];
        int64_t length;
        assert_int_equal(tr_source_read(source, 1, row, 3, &length, NULL), TR_OK);
        assert_int_equal(length, 3);
        assert_memory_equal(row, f4 + 3, sizeof row);
        digest_of(source, digest[i > 0]);
        assert_string_equal(digest[0], digest[i > 0]);
        tr_source_close(&source);
    }
    /* One dimension: a number each. Negative ones, and doubles that float32 rounds. */
    static const double rough[2] = {-0.1, 1e-60};
    write_array("x", "<f8", "(2,)", rough, 8, 2);
    tr_source *source = must_open("{npy: {features: x}}");
    float value;
    assert_int_equal(tr_source_info(source)->floats, 1);
    assert_int_equal(tr_source_read(source, 0, &value, 1, NULL, NULL), TR_OK);
    assert_true(value == -0.1f);
    assert_int_equal(tr_source_read(source, 1, &value, 1, NULL, NULL), TR_OK);
    assert_true(value == 0);
    tr_source_close(&source);
    static const int16_t deep[2] = {-7, INT16_MIN};
    write_array("x", "<i2", "(2,)", deep, 2, 2);
    source = must_open("{npy: {features: x}}");
    assert_int_equal(tr_source_read(source, 1, &value, 1, NULL, NULL), TR_OK);
    assert_true(value == -32768.0f);
    tr_source_close(&source);
    static const uint16_t bright[4] = {1, 65535, 40000, 7};
    write_array("x", "<u2", "(2, 1, 2, 1)", bright, 2, 4);
    source = must_open("{npy: {features: x}}");
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->features, TR_FEATURE_FLOATS);
    assert_int_equal(info->floats, 2);
    assert_true(info->steps == 0 && info->height == 1 && info->width == 2 && info->channels == 1);
    float image[2];
    assert_int_equal(tr_source_read(source, 0, image, 2, NULL, NULL), TR_OK);
    assert_true(image[0] == 1 && image[1] == 65535);
    tr_source_close(&source);
    static const int32_t negative[2] = {-7, INT32_MIN};
    write_array("x", ">i4", "(2,)", negative, 4, 2);
    source = must_open("{npy: {features: x}}");
    assert_int_equal(tr_source_read(source, 1, &value, 1, NULL, NULL), TR_OK);
    assert_true(value == -2147483648.0f);
    tr_source_close(&source);
}

static void test_values(void **state)
{
    (void)state;
    static const float wanted[4] = {1.5f, -2, 0, 1e30f};
    write_array("y", ">f4", "(2, 2)", wanted, 4, 4);
    tr_source *source = must_open(BOTH);
    float values[2];
    const char *name;
    char *text;
    assert_int_equal(tr_source_info(source)->labels, TR_LABEL_VALUES);
    assert_int_equal(tr_source_info(source)->values, 2);
    assert_int_equal(tr_source_read(source, 1, NULL, 0, NULL, values), TR_OK);
    assert_memory_equal(values, wanted + 2, sizeof values);
    assert_int_equal(tr_source_state(source, &name, &text), TR_OK);
    assert_null(text);
    tr_source_close(&source);
    write_array("y", "<f4", "(2,)", wanted, 4, 2);
    source = must_open(BOTH);
    assert_int_equal(tr_source_info(source)->values, 1);
    tr_source_close(&source);
}

/* A test set in which the highest classes do not occur has those of the training set. */
static void test_classes_are_shared(void **state)
{
    (void)state;
    const char *name;
    char *text;
    tr_source *source = must_open("{npy: {features: x, labels: y, classes: 9}}");
    assert_int_equal(tr_source_info(source)->classes, 9);
    assert_int_equal(tr_source_state(source, &name, &text), TR_OK);
    assert_string_equal(name, "classes.txt");
    tr_source_close(&source);
    assert_int_equal(tr_source_open(BOTH, test_directory(), text, &source), TR_OK);
    assert_int_equal(tr_source_info(source)->classes, 9);
    tr_source_close(&source);
    tr_text_free(text);
}

/* One label says that there are 16 million classes. A line for each of them took 15 s and more than a
   checkpoint may keep. */
static void test_a_large_label_costs_no_time(void **state)
{
    (void)state;
    static const int32_t large[2] = {0, (1 << 24) - 1};
    const char *name;
    char *text;
    write_array("y", "<i4", "(2,)", large, 4, 2);
    tr_source *source = must_open(BOTH), *second;
    assert_int_equal(tr_source_info(source)->classes, 1 << 24);
    assert_int_equal(tr_source_state(source, &name, &text), TR_OK);
    assert_true(strlen(text) < 100);
    assert_int_equal(tr_source_open(BOTH, test_directory(), text, &second), TR_OK);
    assert_int_equal(tr_source_info(second)->classes, 1 << 24);
    tr_source_close(&second);
    tr_source_close(&source);
    tr_text_free(text);
}

/* Three dimensions of other numbers than bytes are sequences of vectors. */
static void test_sequences(void **unused)
{
    (void)unused;
    float row[6];
    int64_t length;
    static const float numbers[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    write_array("x", "<f4", "(2, 3, 2)", numbers, 4, 12);
    tr_source *source = must_open("{npy: {features: x}}");
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->features, TR_FEATURE_FLOATS);
    assert_int_equal(info->count, 2);
    assert_int_equal(info->floats, 6);
    assert_int_equal(info->steps, 3);
    assert_int_equal(tr_source_read(source, 1, row, 6, &length, NULL), TR_OK);
    assert_memory_equal(row, numbers + 6, sizeof row);
    tr_source_close(&source);
    write_array("x", "<f4", "(2, 6)", numbers, 4, 12);
    source = must_open("{npy: {features: x}}");
    assert_int_equal(tr_source_info(source)->steps, 0);
    tr_source_close(&source);
}

/* Labels of pixels, in the types of masks; 255 and -1 are of those that have none. */
static void test_pixels(void **state)
{
    (void)state;
    static const uint8_t bytes[12] = {0, 1, 2, 255, 1, 0, 0, 0, 2, 2, 2, 255};
    static const int64_t wide[12] = {0, 1, 2, -1, 1, 0, 0, 0, 2, 2, 2, 255};
    static const int32_t expected[12] = {0, 1, 2, -1, 1, 0, 0, 0, 2, 2, 2, -1};
    char digest[2][65];
    for (int i = 0; i < 2; i++) {
        write_array("y", i ? "<i8" : "|u1", "(2, 2, 3)", i ? (const void *)wide : bytes, i ? 8 : 1, 12);
        tr_source *source = must_open("{npy: {features: x, labels: y, ignore: 255}}");
        assert_int_equal(tr_source_info(source)->labels, TR_LABEL_PIXELS);
        assert_int_equal(tr_source_info(source)->classes, 3);
        for (int64_t e = 0; e < 2; e++) {
            int32_t label[6];
            assert_int_equal(tr_source_read(source, e, NULL, 0, NULL, label), TR_OK);
            assert_memory_equal(label, expected + 6 * e, sizeof label);
        }
        digest_of(source, digest[i]);
        tr_source_close(&source);
    }
    assert_string_equal(digest[0], digest[1]);
    expect_refusal("{npy: {features: x, labels: y, classes: 3}}", TR_EFORMAT, "or set ignore");
    /* One class is one; without any the file says nothing, unless the job says how many there are. */
    static const uint8_t first[12] = {0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                         none[12] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    static const struct {
        const uint8_t *mask;
        const char *options;
        int classes; /* 0: refused */
    } few[] = {{first, "", 1},
               {first, ", classes: 1", 1},
               {none, ", classes: 1", 1},
               {none, ", classes: 5", 5},
               {none, "", 0}};
    for (size_t i = 0; i < sizeof few / sizeof few[0]; i++) {
        char description[96];
        snprintf(description, sizeof description, "{npy: {features: x, labels: y, ignore: 255%s}}",
                 few[i].options);
        write_array("y", "|u1", "(2, 2, 3)", few[i].mask, 1, 12);
        if (few[i].classes == 0) {
            expect_refusal(description, TR_EFORMAT, "no pixel has a class");
            continue;
        }
        tr_source *source = must_open(description);
        assert_int_equal(tr_source_info(source)->classes, few[i].classes);
        tr_source_close(&source);
    }
    write_array("y", "|u1", "(2, 3, 2)", bytes, 1, 12);
    expect_refusal(BOTH, TR_EFORMAT, "has labels of 3 x 2 pixels, the images have 2 x 3");
    write_array("y", "|u1", "(2, 6)", bytes, 1, 12);
    expect_refusal(BOTH, TR_EFORMAT, "of one-hot rows save y.argmax(1)");
    write_array("y", "|u1", "(2, 2, 3, 1)", bytes, 1, 12);
    expect_refusal(BOTH, TR_EFORMAT, "labels of pixels are [count, height, width]");
    write_array("y", "|u1", "(2,)", bytes, 1, 2);
    expect_refusal("{npy: {features: x, labels: y, ignore: 1}}", TR_EINVAL, "one label for each example");
}

static void test_what_does_not_fit(void **state)
{
    (void)state;
    static const int64_t wrong[3] = {0, -1, 2};
    static const float poison[4] = {1, 2, NAN, 4}, endless[2] = {0, INFINITY};
    static const double large[2] = {1, 1e39};
    expect_refusal("{npy: {features: missing}}", TR_ENOTFOUND, "missing");
    expect_refusal("{npy: {labels: y}}", TR_EINVAL, "features");
    expect_refusal("{npy: {features: x, labels: y, classes: 3}}", TR_EFORMAT,
                   "label 3 of example 0 is not from 0 to 2");
    write_array("y", "<i8", "(3,)", wrong, 8, 3);
    expect_refusal(BOTH, TR_EFORMAT, "has labels for 3 examples");
    write_array("y", "<i8", "(1,)", wrong, 8, 1);
    expect_refusal(BOTH, TR_EFORMAT, "has labels for 1 example, ");
    write_array("y", "<i8", "(2,)", wrong, 8, 2);
    expect_refusal(BOTH, TR_EFORMAT, "label -1 of example 1 is not from 0 to 16777215");
    write_array("y", "<i8", "(2, 1)", wrong, 8, 2);
    expect_refusal(BOTH, TR_EFORMAT, "classes have one");
    write_array("x", "<f4", "(2, 2)", (const float[]){1, 2, 3, 4}, 4, 4);
    write_array("y", "<i8", "(2, 1, 2)", (const int64_t[]){0, 1, 2, 3}, 8, 4);
    expect_refusal(BOTH, TR_EFORMAT,
                   "has 3 dimensions; classes have one, and three where features are images");
    write_array("y", "<i8", "(2, 1, 1, 2)", (const int64_t[]){0, 1, 2, 3}, 8, 4);
    expect_refusal(BOTH, TR_EFORMAT,
                   "has 4 dimensions; classes have one, and three where features are images");
    write_array("y", "<f4", "(2, 1, 1)", poison, 4, 2);
    expect_refusal(BOTH, TR_EFORMAT, "values have one or two");
    write_array("y", ">f4", "(2, 2)", poison, 4, 4);
    expect_refusal(BOTH, TR_EFORMAT, "number 0 of example 1 is NaN");
    write_array("y", "|i1", "(2,)", wrong, 1, 2);
    expect_refusal(BOTH, TR_EUNSUPPORTED, "holds I8; u1, u2, i2, i4, i8, f4 and f8 can be read");
    write_array("x", "<f4", "(1, 2)", endless, 4, 2);
    expect_refusal("{npy: {features: x}}", TR_EFORMAT, "number 1 of example 0 is infinite");
    write_array("x", "<f4", "(1, 2)", poison + 2, 4, 2);
    expect_refusal("{npy: {features: x}}", TR_EFORMAT, "number 0 of example 0 is NaN");
    write_array("x", "<f8", "(2, 1)", large, 8, 2);
    expect_refusal("{npy: {features: x}}", TR_EFORMAT, "too large for float32");
    write_array("x", "<f4", "(1, 1, 1, 2)", endless, 4, 2);
    expect_refusal("{npy: {features: x}}", TR_EFORMAT, "number 1 of example 0 is infinite");
    write_array("x", "|u1", "(1, 1, 2, 1, 1)", pixels, 1, 2);
    expect_refusal("{npy: {features: x}}", TR_EUNSUPPORTED,
                   "has 5 dimensions; images have the channels last");
    write_array("x", "|u1", "()", pixels, 1, 1);
    expect_refusal("{npy: {features: x}}", TR_EFORMAT, "no examples");
    write_array("x", "|u1", "(0, 2)", pixels, 1, 0);
    expect_refusal("{npy: {features: x}}", TR_EFORMAT, "no examples");
    write_array("x", "|u1", "(2, 0)", pixels, 1, 0);
    expect_refusal("{npy: {features: x}}", TR_EFORMAT, "0 numbers an example");
    write_file("x", pixels, sizeof pixels);
    expect_refusal("{npy: {features: x}}", TR_EFORMAT, "numpy.save()");
    assert_int_equal(tr_alloc_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_images, write_good),
        cmocka_unit_test_setup(test_numbers, write_good),
        cmocka_unit_test_setup(test_values, write_good),
        cmocka_unit_test_setup(test_classes_are_shared, write_good),
        cmocka_unit_test_setup(test_a_large_label_costs_no_time, write_good),
        cmocka_unit_test_setup(test_sequences, write_good),
        cmocka_unit_test_setup(test_pixels, write_good),
        cmocka_unit_test_setup(test_what_does_not_fit, write_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
