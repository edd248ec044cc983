/* PNG and JPEG images, and folders of them. */
#include "base/alloc.h"
#include "data/images/image.h"
#include "data/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <turbojpeg.h>
#include <unistd.h>

/* A pattern that differs by `seed`. */
static void paint(uint8_t *pixels, int count, int seed)
{
    for (int i = 0; i < count; i++) pixels[i] = (uint8_t)(i * 7 + seed * 31);
}

static void write_png(const char *name, int width, int height, int channels, const uint8_t *pixels)
{
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = (png_uint_32)width, .height = (png_uint_32)height};
    image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
    if (!png_image_write_to_file(&image, test_path(name), 0, pixels, 0, NULL)) fail_msg("%s", image.message);
}

static void write_jpeg(const char *name, int width, int height, int channels, const uint8_t *pixels)
{
    unsigned char *data = NULL;
    unsigned long size = 0;
    tjhandle handle = tjInitCompress();
    assert_int_equal(tjCompress2(handle, pixels, width, 0, height, channels == 1 ? TJPF_GRAY : TJPF_RGB,
                                 &data, &size, channels == 1 ? TJSAMP_GRAY : TJSAMP_444, 95, 0),
                     0);
    write_file(name, data, size);
    tjFree(data);
    tjDestroy(handle);
}

static void test_png_is_exact(void **unused)
{
    (void)unused;
    uint8_t painted[4 * 5 * 3];
    paint(painted, sizeof painted, 1);
    for (int channels = 1; channels <= 3; channels += 2) {
        struct tr_image_size size;
        uint8_t *pixels;
        write_png("a.png", 5, 4, channels, painted);
        assert_int_equal(tr_image_read(test_path("a.png"), 0, &size, &pixels), TR_OK);
        assert_int_equal(size.width, 5);
        assert_int_equal(size.height, 4);
        assert_int_equal(size.channels, channels);
        assert_memory_equal(pixels, painted, 20 * (size_t)channels);
        tr_text_free((char *)pixels);
    }
    /* grey as colour repeats each byte */
    struct tr_image_size size;
    uint8_t *pixels;
    write_png("a.png", 5, 4, 1, painted);
    assert_int_equal(tr_image_read(test_path("a.png"), 3, &size, &pixels), TR_OK);
    for (int i = 0; i < 60; i++) assert_int_equal(pixels[i], painted[i / 3]);
    tr_text_free((char *)pixels);
    /* transparency is dropped */
    const uint8_t see_through[8] = {200, 100, 50, 0, 200, 100, 50, 255};
    write_png("a.png", 2, 1, 4, see_through);
    assert_int_equal(tr_image_read(test_path("a.png"), 0, &size, &pixels), TR_OK);
    assert_int_equal(size.channels, 3);
    assert_memory_equal(pixels, ((const uint8_t[]){200, 100, 50, 200, 100, 50}), 6);
    tr_text_free((char *)pixels);
}

static void test_png_is_written(void **unused)
{
    (void)unused;
    uint8_t painted[4 * 5 * 3];
    paint(painted, sizeof painted, 2);
    for (int channels = 1; channels <= 3; channels += 2) {
        const struct tr_image_size wanted = {4, 5, channels};
        struct tr_image_size size;
        uint8_t *png, again[sizeof painted];
        size_t bytes;
        assert_int_equal(tr_image_encode(painted, wanted, &png, &bytes), TR_OK);
        assert_int_equal(tr_image_measure("a.png", png, bytes, &size), TR_OK);
        assert_memory_equal(&size, &wanted, sizeof size);
        assert_int_equal(tr_image_decode("a.png", png, bytes, size, channels, again), TR_OK);
        assert_memory_equal(again, painted, 20 * (size_t)channels);
        tr_text_free((char *)png);
    }
}

static void test_jpeg_is_near(void **unused)
{
    (void)unused;
    uint8_t painted[16 * 16];
    for (int i = 0; i < 256; i++) painted[i] = (uint8_t)(i / 16 * 8 + i % 16 * 4);
    struct tr_image_size size;
    uint8_t *pixels;
    write_jpeg("a.jpg", 16, 16, 1, painted);
    assert_int_equal(tr_image_read(test_path("a.jpg"), 0, &size, &pixels), TR_OK);
    assert_int_equal(size.channels, 1);
    for (int i = 0; i < 256; i++) assert_true(abs(pixels[i] - painted[i]) <= 4);
    tr_text_free((char *)pixels);
    assert_int_equal(tr_image_read(test_path("a.jpg"), 3, &size, &pixels), TR_OK);
    for (int i = 0; i < 768; i++) assert_true(abs(pixels[i] - painted[i / 3]) <= 4);
    tr_text_free((char *)pixels);
}

/* No cut image is taken for a whole one, and no flipped bit of a PNG goes unnoticed. */
static void test_damage(void **unused)
{
    (void)unused;
    uint8_t painted[20 * 20 * 3];
    paint(painted, sizeof painted, 2);
    write_png("a.png", 6, 5, 3, painted);
    write_jpeg("a.jpg", 20, 20, 3, painted);
    static const char *const names[] = {"a.png", "a.jpg"};
    for (int i = 0; i < 2; i++) {
        struct bytes file = read_file(test_path(names[i]));
        /* the last bytes of a JPEG only say that it ends */
        size_t needed = i == 0 ? file.size : file.size - 2;
        for (size_t size = 0; size < file.size; size++) {
            struct tr_image_size is;
            uint8_t *pixels;
            write_file("cut", file.data, size);
            tr_status status = tr_image_read(test_path("cut"), 0, &is, &pixels);
            if (size < needed) assert_int_equal(status, TR_EFORMAT);
            if (status == TR_OK) tr_text_free((char *)pixels);
        }
        for (size_t bit = 0; i == 0 && bit < file.size * 8; bit++) {
            struct tr_image_size is;
            uint8_t *pixels;
            file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            write_file("cut", file.data, file.size);
            if (tr_image_read(test_path("cut"), 0, &is, &pixels) == TR_OK) {
                assert_memory_equal(pixels, painted, 90);
                tr_text_free((char *)pixels);
            }
            file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        free(file.data);
    }
}

static void test_fit(void **unused)
{
    (void)unused;
    const uint8_t from[] = {0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110};
    const struct tr_image_size is = {3, 4, 1};
    uint8_t to[64];
    assert_int_equal(tr_image_fit("x", TR_IMAGE_CROP, from, is, to, (struct tr_image_size){1, 2, 1}), TR_OK);
    assert_memory_equal(to, ((const uint8_t[]){50, 60}), 2);
    assert_int_equal(tr_image_fit("x", TR_IMAGE_SCALE, from, is, to, (struct tr_image_size){3, 2, 1}), TR_OK);
    assert_memory_equal(to, ((const uint8_t[]){5, 25, 45, 65, 85, 105}), 6);
    assert_int_equal(tr_image_fit("x", TR_IMAGE_SCALE, from, is, to, (struct tr_image_size){3, 4, 1}), TR_OK);
    assert_memory_equal(to, from, sizeof from);
    const uint8_t flat[2] = {77, 77};
    assert_int_equal(tr_image_fit("x", TR_IMAGE_SCALE, flat, (struct tr_image_size){1, 2, 1}, to,
                                  (struct tr_image_size){7, 9, 1}),
                     TR_OK);
    for (int i = 0; i < 63; i++) assert_int_equal(to[i], 77);
    assert_int_equal(tr_image_fit("x", TR_IMAGE_EXACT, from, is, to, (struct tr_image_size){3, 3, 1}),
                     TR_EFORMAT);
    assert_non_null(
        strstr(tr_error_message(), "x: 4 x 3 pixels, 3 x 3 are wanted; set fit: crop or fit: scale"));
    assert_int_equal(tr_image_fit("x", TR_IMAGE_CROP, from, is, to, (struct tr_image_size){4, 4, 1}),
                     TR_EFORMAT);
}

/* cats: 2 PNG; dogs: a PNG and a JPEG; a stray file and a hidden folder that do not count. */
static int make_folder(void **unused)
{
    (void)unused;
    uint8_t painted[6 * 4];
    mkdir(test_path("pets"), 0700);
    mkdir(test_path("pets/dogs"), 0700);
    mkdir(test_path("pets/cats"), 0700);
    mkdir(test_path("pets/.hidden"), 0700);
    for (int i = 0; i < 3; i++) {
        paint(painted, 24, i);
        static const char *const names[] = {"pets/cats/b.png", "pets/cats/a.PNG", "pets/dogs/a.png"};
        write_png(names[i], 6, 4, 1, painted);
    }
    memset(painted, 128, sizeof painted);
    write_jpeg("pets/dogs/b.jpeg", 6, 4, 1, painted);
    write_file("pets/readme.txt", "hello", 5);
    write_file("pets/dogs/notes", "hello", 5);
    return 0;
}

static void test_folder(void **unused)
{
    (void)unused;
    uint8_t painted[24], pixels[24];
    char digest[2][65];
    for (int memory = 0; memory < 2; memory++) {
        tr_source *source =
            must_open(memory ? "{folder: {path: pets, memory: true}}" : "{folder: {path: pets}}");
        const struct tr_source_info *info = tr_source_info(source);
        assert_int_equal(info->count, 4);
        assert_int_equal(info->classes, 2);
        assert_string_equal(info->class_names[0], "cats");
        assert_string_equal(info->class_names[1], "dogs");
        assert_int_equal(info->height, 4);
        assert_int_equal(info->width, 6);
        assert_int_equal(info->channels, 1);
        assert_int_equal(info->slow, !memory);
        static const int seeds[] = {1, 0, 2};
        for (int64_t i = 0; i < 4; i++) {
            int32_t label;
            assert_int_equal(tr_source_read(source, i, pixels, 24, NULL, &label), TR_OK);
            assert_int_equal(label, i / 2);
            if (i < 3) {
                paint(painted, 24, seeds[i]);
                assert_memory_equal(pixels, painted, 24);
            } else {
                for (int k = 0; k < 24; k++) assert_int_equal(pixels[k], 128);
            }
        }
        assert_int_equal(tr_source_digest(source, digest[memory]), TR_OK);
        tr_source_close(&source);
    }
    assert_string_equal(digest[0], digest[1]);
}

static void test_folder_sizes(void **unused)
{
    (void)unused;
    uint8_t painted[8 * 8];
    paint(painted, 64, 9);
    write_png("pets/dogs/c.png", 8, 8, 1, painted);
    expect_refusal("{folder: {path: pets}}", TR_EFORMAT,
                   "c.png: 8 x 8 pixels, 6 x 4 are wanted; set fit: crop or fit: scale");
    tr_source *source = must_open("{folder: {path: pets, fit: crop}}");
    uint8_t pixels[64 * 3];
    assert_int_equal(tr_source_read(source, 4, pixels, 24, NULL, NULL), TR_OK);
    for (int y = 0; y < 4; y++) assert_memory_equal(pixels + y * 6, painted + (y + 2) * 8 + 1, 6);
    tr_source_close(&source);
    expect_refusal("{folder: {path: pets, height: 8, width: 8, fit: crop}}", TR_EFORMAT, "set fit: scale");
    source = must_open("{folder: {path: pets, height: 8, width: 8, channels: 3, fit: scale}}");
    assert_int_equal(tr_source_info(source)->channels, 3);
    assert_int_equal(tr_source_read(source, 4, pixels, 192, NULL, NULL), TR_OK);
    for (int i = 0; i < 192; i++) assert_int_equal(pixels[i], painted[i / 3]);
    tr_source_close(&source);
    unlink(test_path("pets/dogs/c.png"));
    expect_refusal("{folder: {path: pets, channels: 2}}", TR_EINVAL, "channels is 2");
}

static void test_folder_classes_are_shared(void **unused)
{
    (void)unused;
    tr_source *train = must_open("{folder: {path: pets}}"), *test = NULL;
    const char *name;
    char *state;
    assert_int_equal(tr_source_state(train, &name, &state), TR_OK);
    assert_string_equal(state, "trireme classes 1, 2 classes, 2 lines\ncats\ndogs\n");
    uint8_t painted[24] = {0};
    mkdir(test_path("unseen"), 0700);
    mkdir(test_path("unseen/dogs"), 0700);
    write_png("unseen/dogs/x.png", 6, 4, 1, painted);
    assert_int_equal(tr_source_open("{folder: {path: unseen}}", test_directory(), state, &test), TR_OK);
    int32_t label;
    assert_int_equal(tr_source_read(test, 0, NULL, 0, NULL, &label), TR_OK);
    assert_int_equal(label, 1);
    assert_int_equal(tr_source_info(test)->classes, 2);
    tr_source_close(&test);
    mkdir(test_path("unseen/mice"), 0700);
    assert_int_equal(tr_source_open("{folder: {path: unseen}}", test_directory(), state, &test),
                     TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "\"mice\""));
    assert_int_equal(tr_source_open("{folder: {path: pets}}", test_directory(),
                                    "trireme classes 1, 1 classes, 1 lines\n../pets\n", &test),
                     TR_EFORMAT);
    tr_text_free(state);
    tr_source_close(&train);
    /* Training data without names for their classes: folders are called by their numbers. */
    mkdir(test_path("digits"), 0700);
    mkdir(test_path("digits/1"), 0700);
    write_png("digits/1/x.png", 6, 4, 1, painted);
    static const char nameless[] = "trireme classes 1, 3 classes, 0 lines\n";
    assert_int_equal(tr_source_open("{folder: {path: digits}}", test_directory(), nameless, &test), TR_OK);
    assert_int_equal(tr_source_read(test, 0, NULL, 0, NULL, &label), TR_OK);
    assert_int_equal(label, 1);
    assert_int_equal(tr_source_info(test)->classes, 3);
    tr_source_close(&test);
    mkdir(test_path("digits/3"), 0700);
    assert_int_equal(tr_source_open("{folder: {path: digits}}", test_directory(), nameless, &test),
                     TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "\"3\""));
}

static void test_folder_refusals(void **unused)
{
    (void)unused;
    mkdir(test_path("empty"), 0700);
    expect_refusal("{folder: {path: empty}}", TR_EFORMAT, "one folder of images per class");
    mkdir(test_path("empty/class"), 0700);
    expect_refusal("{folder: {path: empty}}", TR_EFORMAT, "the set is empty");
    write_file("empty/class/x.png", "no image", 8);
    expect_refusal("{folder: {path: empty}}", TR_EFORMAT, "x.png: neither PNG nor JPEG");
    expect_refusal("{folder: {path: nowhere}}", TR_EIO, "nowhere");

    /* damage behind the header is found when the image is read */
    struct bytes file = read_file(test_path("pets/cats/a.PNG"));
    write_file("pets/cats/a.PNG", file.data, file.size - 16);
    tr_source *source = must_open("{folder: {path: pets}}");
    uint8_t pixels[24];
    assert_int_equal(tr_source_read(source, 0, pixels, 24, NULL, NULL), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "a.PNG: damaged PNG"));
    assert_int_equal(tr_source_read(source, 1, pixels, 24, NULL, NULL), TR_OK);
    tr_source_close(&source);
    expect_refusal("{folder: {path: pets, memory: true}}", TR_EFORMAT, "a.PNG: damaged PNG");
    write_file("pets/cats/a.PNG", file.data, file.size);
    free(file.data);
}

/* Masks beside images: numbers as they are stored, fitted like the images. */
static void test_masks(void **unused)
{
    (void)unused;
    uint8_t painted[24], mask[24];
    mkdir(test_path("scenes"), 0700);
    mkdir(test_path("masks"), 0700);
    for (int i = 0; i < 24; i++) mask[i] = (uint8_t)(i == 7 ? 255 : i % 6 / 2);
    paint(painted, 24, 1);
    write_png("scenes/a.png", 6, 4, 1, painted);
    write_jpeg("scenes/b.jpg", 6, 4, 1, painted);
    write_png("masks/a.png", 6, 4, 1, mask);
    expect_refusal("{folder: {path: scenes, masks: masks, classes: 3}}", TR_ENOTFOUND, "the mask of ");
    write_png("masks/b.png", 6, 4, 1, mask);
    for (int memory = 0; memory < 2; memory++) {
        tr_source *source =
            must_open(memory ? "{folder: {path: scenes, masks: masks, classes: 3, ignore: 255, memory: true}}"
                             : "{folder: {path: scenes, masks: masks, classes: 3, ignore: 255}}");
        const struct tr_source_info *info = tr_source_info(source);
        assert_int_equal(info->count, 2);
        assert_int_equal(info->labels, TR_LABEL_PIXELS);
        assert_int_equal(info->classes, 3);
        for (int64_t e = 0; e < 2; e++) {
            int32_t label[24];
            assert_int_equal(tr_source_read(source, e, NULL, 0, NULL, label), TR_OK);
            for (int i = 0; i < 24; i++) assert_int_equal(label[i], i == 7 ? TR_NO_LABEL : i % 6 / 2);
        }
        tr_source_close(&source);
    }
    /* Centres map to centres, and each takes the nearest: columns 1, 3, 5 and rows 1, 3. */
    tr_source *source = must_open(
        "{folder: {path: scenes, masks: masks, classes: 3, ignore: 255, height: 2, width: 3, fit: scale}}");
    int32_t label[6];
    static const int32_t expected[6] = {TR_NO_LABEL, 1, 2, 0, 1, 2};
    assert_int_equal(tr_source_read(source, 0, NULL, 0, NULL, label), TR_OK);
    assert_memory_equal(label, expected, sizeof label);
    tr_source_close(&source);
    source = must_open("{folder: {path: scenes, masks: masks, classes: 2, ignore: 255}}");
    int32_t whole[24];
    assert_int_equal(tr_source_read(source, 0, NULL, 0, NULL, whole), TR_EFORMAT);
    assert_non_null(
        strstr(tr_error_message(), "pixel (4, 0) has the number 2, which is not below classes: 2"));
    tr_source_close(&source);
    expect_refusal("{folder: {path: scenes, masks: masks}}", TR_EINVAL, "set classes, the number of classes");
    expect_refusal("{folder: {path: pets, classes: 3}}", TR_EINVAL, "classes is of masks");
    expect_refusal("{folder: {path: pets, ignore: 3}}", TR_EINVAL, "ignore is of masks");
    uint8_t colours[24 * 3] = {0};
    write_png("masks/b.png", 6, 4, 3, colours);
    expect_refusal("{folder: {path: scenes, masks: masks, classes: 3, ignore: 255, memory: true}}",
                   TR_EFORMAT, "no image of class numbers: it has colours");
    write_png("masks/b.png", 4, 6, 1, mask);
    expect_refusal("{folder: {path: scenes, masks: masks, classes: 3}}", TR_EFORMAT,
                   "of the size of their images");
}

static int fail_nth(size_t size, void *user)
{
    (void)size;
    int *left = user;
    return (*left)-- == 0;
}

static void test_allocation_failures(void **unused)
{
    (void)unused;
    int64_t live = tr_alloc_live();
    for (int n = 0;; n++) {
        int left = n;
        tr_alloc_set_hook(fail_nth, &left);
        tr_status status = try_open("{folder: {path: pets, memory: true}}");
        tr_alloc_set_hook(NULL, NULL);
        assert_int_equal(tr_alloc_live(), live);
        assert_int_equal(status, left < 0 ? TR_ENOMEM : TR_OK); /* one was refused */
        if (status == TR_OK) break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png_is_exact),
        cmocka_unit_test(test_png_is_written),
        cmocka_unit_test(test_jpeg_is_near),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_folder_sizes),
        cmocka_unit_test(test_folder_classes_are_shared),
        cmocka_unit_test(test_folder_refusals),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, make_folder, NULL);
}
