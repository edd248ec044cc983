/* IDX files: right ones, plain and packed; every truncation and every kind of wrong contents. */
#include "base/alloc.h"
#include "data/formats/idx.h"
#include "data/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BOTH "{idx: {images: images, labels: labels}}"

/* 5 images of 2 x 3, labels 3 0 2 1 3. */
static const uint8_t images[16 + 30] = {0, 0, 8, 3, 0, 0,  0,  5,  0,  0,  0,
                                        2, 0, 0, 0, 3, 10, 11, 12, 13, 14, 15};
static const uint8_t labels[8 + 5] = {0, 0, 8, 1, 0, 0, 0, 5, 3, 0, 2, 1, 3};

static int write_good(void **state)
{
    (void)state;
    write_file("images", images, sizeof images);
    write_file("labels", labels, sizeof labels);
    return 0;
}

static void check_good(tr_source *source)
{
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->count, 5);
    assert_int_equal(info->features, TR_FEATURE_IMAGE);
    assert_int_equal(info->height, 2);
    assert_int_equal(info->width, 3);
    assert_int_equal(info->channels, 1);
    assert_int_equal(info->labels, TR_LABEL_CLASS);
    assert_int_equal(info->classes, 4);
    assert_int_equal(tr_source_capacity(source), 6);
    assert_memory_equal(((const struct tr_source *)source)->resident, images + 16, 30);
    for (int64_t i = 0; i < 5; i++) {
        uint8_t pixels[6];
        int64_t length;
        int32_t label;
        assert_int_equal(tr_source_read(source, i, pixels, 6, &length, &label), TR_OK);
        assert_int_equal(length, 6);
        assert_memory_equal(pixels, images + 16 + 6 * i, 6);
        assert_int_equal(label, labels[8 + i]);
    }
}

static void write_packed(const char *name, const void *data, size_t size, int window_bits)
{
    struct bytes packed = pack(data, size, window_bits);
    write_file(name, packed.data, packed.size);
    free(packed.data);
}

static void test_plain_and_gzip(void **state)
{
    (void)state;
    char digest[2][65];
    tr_source *source = must_open(BOTH);
    check_good(source);
    assert_int_equal(tr_source_digest(source, digest[0]), TR_OK);
    tr_source_close(&source);
    assert_null(source);
    tr_source_close(&source);

    write_packed("images.gz", images, sizeof images, 31);
    write_packed("labels.gz", labels, sizeof labels, 31);
    source = must_open("{idx: {images: images.gz, labels: labels.gz}}");
    check_good(source);
    assert_int_equal(tr_source_digest(source, digest[1]), TR_OK);
    assert_string_equal(digest[0], digest[1]);
    tr_source_close(&source);

    /* two gzip members, cut in the header */
    struct bytes one = pack(images, 9, 31), two = pack(images + 9, sizeof images - 9, 31);
    uint8_t joined[512];
    memcpy(joined, one.data, one.size);
    memcpy(joined + one.size, two.data, two.size);
    write_file("images.gz", joined, one.size + two.size);
    free(one.data);
    free(two.data);
    source = must_open("{idx: {images: images.gz, labels: labels.gz, classes: 4}}");
    check_good(source);
    tr_source_close(&source);
}

static void test_colour_and_no_labels(void **state)
{
    (void)state;
    const uint8_t colour[20 + 24] = {0, 0, 8, 4, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3};
    write_file("colour", colour, sizeof colour);
    tr_source *source = must_open("{idx: {images: colour}}");
    assert_int_equal(tr_source_info(source)->channels, 3);
    assert_int_equal(tr_source_info(source)->labels, TR_LABEL_NONE);
    int32_t label = 77;
    assert_int_equal(tr_source_read(source, 1, NULL, 0, NULL, &label), TR_OK);
    assert_int_equal(label, 77);
    const char *name;
    char *text;
    assert_int_equal(tr_source_state(source, &name, &text), TR_OK);
    assert_null(name);
    assert_null(text);
    tr_source_close(&source);
}

/* A test set in which the highest classes do not occur has the classes of the training set all the same. */
static void test_classes_are_shared(void **state)
{
    (void)state;
    const uint8_t few[8 + 5] = {0, 0, 8, 1, 0, 0, 0, 5, 1, 0, 1, 1, 0};
    const uint8_t more[8 + 5] = {0, 0, 8, 1, 0, 0, 0, 5, 1, 0, 4, 1, 0};
    write_file("few", few, sizeof few);
    write_file("more", more, sizeof more);
    tr_source *train = must_open(BOTH), *test = NULL;
    const char *name;
    char *text;
    assert_int_equal(tr_source_state(train, &name, &text), TR_OK);
    assert_string_equal(name, "classes.txt");
    assert_string_equal(text, "trireme classes 1, 4 classes, 0 lines\n");
    assert_int_equal(tr_source_open("{idx: {images: images, labels: few}}", test_directory(),
                                    "trireme classes 1, 4 classes, 4 lines\n0\n1\n2\n3\n", &test),
                     TR_OK); /* as it once was */
    assert_int_equal(tr_source_info(test)->classes, 4);
    tr_source_close(&test);
    assert_int_equal(tr_source_open("{idx: {images: images, labels: few}}", test_directory(), text, &test),
                     TR_OK);
    assert_int_equal(tr_source_info(test)->classes, 4);
    tr_source_close(&test);
    assert_int_equal(tr_source_open("{idx: {images: images, labels: more}}", test_directory(), text, &test),
                     TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "label 4"));
    /* the state of another kind of source, then damaged state */
    assert_int_equal(
        tr_source_open(BOTH, test_directory(), "trireme vocabulary 1, 2 classes, 0 lines\n", &test),
        TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "need classes.txt of the model"));
    assert_non_null(strstr(tr_error_message(), "left vocabulary.txt"));
    for (size_t length = 0; length < strlen(text); length++) {
        char *cut = strndup(text, length);
        assert_int_equal(tr_source_open(BOTH, test_directory(), cut, &test), TR_EFORMAT);
        free(cut);
    }
    tr_text_free(text);
    tr_source_close(&train);
}

static void test_reading_is_checked(void **state)
{
    (void)state;
    tr_source *source = must_open(BOTH);
    uint8_t pixels[6];
    int64_t length;
    int32_t label;
    assert_int_equal(tr_source_read(source, -1, pixels, 6, &length, &label), TR_EINVAL);
    assert_int_equal(tr_source_read(source, 5, pixels, 6, &length, &label), TR_EINVAL);
    assert_int_equal(tr_source_read(source, 0, pixels, 5, &length, &label), TR_EINVAL);
    tr_source_close(&source);
}

static void test_every_truncation(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof images; size++) {
        write_file("images", images, size);
        expect_refusal(BOTH, TR_EFORMAT, "truncated");
    }
    write_good(NULL);
    for (size_t size = 0; size < sizeof labels; size++) {
        write_file("labels", labels, size);
        expect_refusal(BOTH, TR_EFORMAT, "truncated");
    }
    write_good(NULL);
    struct bytes packed = pack(images, sizeof images, 31);
    for (size_t size = 0; size < packed.size; size++) {
        write_file("images", packed.data, size);
        expect_refusal(BOTH, TR_EFORMAT, "images");
    }
    free(packed.data);
}

/* A flipped bit of packed data is found by structure or checksum; those that gzip does not cover change
 * nothing. */
static void test_every_flip_of_gzip(void **state)
{
    (void)state;
    struct bytes packed = pack(images, sizeof images, 31);
    int refused = 0;
    for (size_t bit = 0; bit < packed.size * 8; bit++) {
        packed.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        write_file("images", packed.data, packed.size);
        tr_source *source = NULL;
        tr_status status = tr_source_open(BOTH, test_directory(), NULL, &source);
        if (status == TR_OK) {
            check_good(source);
            assert_in_range(bit / 8, 3, 9); /* flags, time and system */
            tr_source_close(&source);
        } else {
            assert_true(status == TR_EFORMAT || status == TR_ECORRUPT);
            refused++;
        }
        packed.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(refused >= (int)(packed.size - 10) * 8);
    free(packed.data);
}

static void refuse_images(size_t at, uint8_t byte, const char *part)
{
    uint8_t changed[sizeof images];
    memcpy(changed, images, sizeof images);
    changed[at] = byte;
    write_file("images", changed, sizeof changed);
    expect_refusal(BOTH, TR_EFORMAT, part);
    write_packed("images", changed, sizeof changed, 31);
    expect_refusal(BOTH, TR_EFORMAT, part);
}

static void test_wrong_contents(void **state)
{
    (void)state;
    refuse_images(0, 1, "not an IDX file");
    refuse_images(1, 8, "not an IDX file");
    refuse_images(2, 0x0d, "floats");
    refuse_images(2, 0x77, "unknown type");
    refuse_images(3, 0, "0 dimensions");
    refuse_images(3, 5, "5 dimensions");
    refuse_images(3, 2, "trailing");
    refuse_images(7, 0, "the set is empty");
    refuse_images(11, 0, "size 0 at offset 8");
    refuse_images(7, 4, "trailing bytes at offset 40");
    refuse_images(7, 6, "truncated");
    refuse_images(4, 0xff, "truncated"); /* 4 GiB of images promised */
    write_good(NULL);

    uint8_t huge[20];
    memset(huge, 0xff, sizeof huge);
    memcpy(huge, (uint8_t[]){0, 0, 8, 4}, 4);
    write_file("images", huge, sizeof huge);
    expect_refusal(BOTH, TR_EFORMAT, "multiply to more than 2^63");
    write_good(NULL);

    uint8_t extra[sizeof images + 1] = {0};
    memcpy(extra, images, sizeof images);
    write_file("images", extra, sizeof extra);
    expect_refusal(BOTH, TR_EFORMAT, "trailing bytes at offset 46");
    write_packed("images", extra, sizeof extra, 31);
    expect_refusal(BOTH, TR_EFORMAT, "trailing bytes at offset 46 (unpacked)");

    struct bytes packed = pack(images, sizeof images, 31);
    packed.data = realloc(packed.data, packed.size + 1);
    packed.data[packed.size] = 'x';
    write_file("images", packed.data, packed.size + 1);
    expect_refusal(BOTH, TR_EFORMAT, "1 trailing byte at");
    free(packed.data);
}

/* Labels of pixels, of which 12 is that of those that have none. */
static void test_pixels(void **state)
{
    (void)state;
    char digest[2][65];
    tr_source *source = must_open("{idx: {images: images, labels: images, ignore: 12}}");
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->labels, TR_LABEL_PIXELS);
    assert_int_equal(info->classes, 16);
    int32_t label[6];
    static const int32_t expected[6] = {10, 11, TR_NO_LABEL, 13, 14, 15};
    assert_int_equal(tr_source_read(source, 0, NULL, 0, NULL, label), TR_OK);
    assert_memory_equal(label, expected, sizeof label);
    assert_int_equal(tr_source_read(source, 4, NULL, 0, NULL, label), TR_OK);
    for (int i = 0; i < 6; i++) assert_int_equal(label[i], 0);
    assert_int_equal(tr_source_digest(source, digest[0]), TR_OK);
    tr_source_close(&source);
    source = must_open("{idx: {images: images, labels: images}}");
    assert_int_equal(tr_source_digest(source, digest[1]), TR_OK);
    assert_string_not_equal(digest[0], digest[1]);
    tr_source_close(&source);
}

static void test_files_that_do_not_match(void **state)
{
    (void)state;
    const uint8_t four[8 + 4] = {0, 0, 8, 1, 0, 0, 0, 4, 3, 0, 2, 1};
    write_file("four", four, sizeof four);
    expect_refusal("{idx: {images: images, labels: four}}", TR_EFORMAT, "four has 4 labels");
    expect_refusal("{idx: {images: labels, labels: labels}}", TR_EFORMAT, "not that of labels");
    expect_refusal("{idx: {images: labels, labels: labels}}", TR_EFORMAT, "1 dimension at offset 3");
    const uint8_t one[8 + 1] = {0, 0, 8, 1, 0, 0, 0, 1, 3};
    write_file("one", one, sizeof one);
    expect_refusal("{idx: {images: images, labels: one}}", TR_EFORMAT, "has 1 label, ");
    expect_refusal("{idx: {images: images, labels: one}}", TR_EFORMAT, "has 5 images; ");
    const uint8_t square[12 + 5] = {0, 0, 8, 2, 0, 0, 0, 5, 0, 0, 0, 1, 3};
    write_file("square", square, sizeof square);
    expect_refusal("{idx: {images: images, labels: square}}", TR_EFORMAT, "give the file of labels here");
    uint8_t turned[sizeof images];
    memcpy(turned, images, sizeof turned);
    turned[11] = 3;
    turned[15] = 2;
    write_file("turned", turned, sizeof turned);
    expect_refusal("{idx: {images: images, labels: turned}}", TR_EFORMAT, "has labels of 3 x 2 pixels");
    expect_refusal("{idx: {images: images, labels: images, classes: 15}}", TR_EFORMAT,
                   "label 15 of example 0 at offset 21 is not below classes: 15");
    expect_refusal("{idx: {images: images, labels: labels, ignore: 1}}", TR_EINVAL,
                   "one label for each image");
    expect_refusal("{idx: {images: images, labels: labels, classes: 3}}", TR_EFORMAT,
                   "label 3 of example 0 at offset 8");
    const uint8_t wide[16] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1};
    uint8_t *image = calloc(1, sizeof wide + 65536);
    memcpy(image, wide, sizeof wide);
    write_file("wide", image, sizeof wide + 65536);
    expect_refusal("{idx: {images: wide}}", TR_EFORMAT, "at most 65535 pixels a side");
    free(image);
}

static void test_no_files(void **state)
{
    (void)state;
    expect_refusal("{idx: {images: nowhere, labels: labels}}", TR_ENOTFOUND, "nowhere");
    mkdir(test_path("folder"), 0700);
    expect_refusal("{idx: {images: folder, labels: labels}}", TR_EFORMAT, "folder");
    expect_refusal("{idx: {images: /dev/zero}}", TR_EFORMAT, "/dev/zero");
}

static void test_descriptions(void **state)
{
    (void)state;
    expect_refusal("{ids: {images: images}}", TR_EINVAL, "did you mean \"idx\"?");
    expect_refusal("{idx: {image: images}}", TR_EINVAL, "images");
    expect_refusal("{idx: {labels: labels}}", TR_EINVAL, "images");
    expect_refusal("{idx: {images: images, classes: -1}}", TR_EINVAL, "classes");
    expect_refusal("{idx: {images: images}, csv: {path: x}}", TR_EINVAL, "only key");
    expect_refusal("[idx]", TR_EINVAL, "mapping");
    expect_refusal("{idx: {images: images}", TR_EFORMAT, "data description");
}

static int fail_nth(size_t size, void *user)
{
    (void)size;
    int *left = user;
    return (*left)-- == 0;
}

static void test_allocation_failures(void **state)
{
    (void)state;
    write_packed("images", images, sizeof images, 31);
    int64_t live = tr_alloc_live();
    for (int n = 0;; n++) {
        int left = n;
        tr_alloc_set_hook(fail_nth, &left);
        tr_status status = try_open(BOTH);
        tr_alloc_set_hook(NULL, NULL);
        assert_int_equal(tr_alloc_live(), live);
        assert_int_equal(status, left < 0 ? TR_ENOMEM : TR_OK); /* one was refused */
        if (status == TR_OK) {
            assert_true(n >= 6);
            break;
        }
    }
}

static void test_mnist(void **state)
{
    (void)state;
    tr_source *source = NULL;
    assert_int_equal(
        tr_source_open("{idx: {images: t10k-images-idx3-ubyte.gz, labels: t10k-labels-idx1-ubyte.gz}}",
                       TRIREME_SOURCE_DIR "/data/mnist", NULL, &source),
        TR_OK);
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->count, 10000);
    assert_int_equal(info->height, 28);
    assert_int_equal(info->width, 28);
    assert_int_equal(info->classes, 10);
    static const int32_t first[] = {7, 2, 1, 0, 4, 1, 4, 9, 5, 9};
    for (int64_t i = 0; i < 10; i++) {
        int32_t label;
        assert_int_equal(tr_source_read(source, i, NULL, 0, NULL, &label), TR_OK);
        assert_int_equal(label, first[i]);
    }
    tr_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_plain_and_gzip, write_good),
        cmocka_unit_test_setup(test_colour_and_no_labels, write_good),
        cmocka_unit_test_setup(test_classes_are_shared, write_good),
        cmocka_unit_test_setup(test_reading_is_checked, write_good),
        cmocka_unit_test_setup(test_every_truncation, write_good),
        cmocka_unit_test_setup(test_every_flip_of_gzip, write_good),
        cmocka_unit_test_setup(test_wrong_contents, write_good),
        cmocka_unit_test_setup(test_pixels, write_good),
        cmocka_unit_test_setup(test_files_that_do_not_match, write_good),
        cmocka_unit_test_setup(test_no_files, write_good),
        cmocka_unit_test_setup(test_descriptions, write_good),
        cmocka_unit_test_setup(test_allocation_failures, write_good),
        cmocka_unit_test(test_mnist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
