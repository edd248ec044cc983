/* Images in tar archives: the examples of a folder with the same images, and what is refused. */
#include "base/alloc.h"
#include "data/images/image.h"
#include "data/support.h"
#include "io/tar.h"
#include "refuse.h"
#include "support/files/png.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct archive {
    uint8_t bytes[1 << 16];
    size_t size;
};

static void add_member(struct archive *archive, const char *directory, const char *name, const void *data,
                       size_t size)
{
    assert_int_equal(tr_tar_header(directory, name, size, archive->bytes + archive->size), TR_OK);
    archive->size += TR_TAR_BLOCK;
    memcpy(archive->bytes + archive->size, data, size);
    archive->size += size;
    memset(archive->bytes + archive->size, 0, tr_tar_padding(size));
    archive->size += tr_tar_padding(size);
}

static void add_text(struct archive *archive, const char *name, const char *text)
{
    add_member(archive, "some", name, text, strlen(text));
}

static void add_image(struct archive *archive, const char *name, int height, int width, int number)
{
    uint8_t pixels[64], *png;
    size_t size;
    for (int i = 0; i < height * width; i++) pixels[i] = (uint8_t)(number * 31 + i * 7);
    assert_int_equal(tr_image_encode(pixels, (struct tr_image_size){height, width, 1}, &png, &size), TR_OK);
    add_member(archive, "some", name, png, size);
    tr_free(png);
}

static void write_archive(struct archive *archive, const char *name)
{
    memset(archive->bytes + archive->size, 0, 2 * TR_TAR_BLOCK);
    write_file(name, archive->bytes, archive->size + 2 * TR_TAR_BLOCK);
    archive->size = 0;
}

static void expect_examples(const char *description, int count, const int *numbers, const int *classes)
{
    tr_source *source = must_open(description);
    assert_int_equal(tr_source_info(source)->count, count);
    assert_int_equal(tr_source_info(source)->features, TR_FEATURE_IMAGE);
    for (int k = 0; k < count; k++) {
        uint8_t pixels[64];
        int64_t length;
        int32_t label = -1;
        assert_int_equal(tr_source_read(source, k, pixels, 64, &length, &label), TR_OK);
        assert_int_equal(length, 12);
        for (int i = 0; i < 12; i++) assert_int_equal(pixels[i], (uint8_t)(numbers[k] * 31 + i * 7));
        assert_int_equal(label, classes ? classes[k] : -1);
    }
    tr_source_close(&source);
}

static struct archive archive;

/* In the order of the archives; the class before or behind its image, with other files between. */
static void test_examples(void **unused)
{
    (void)unused;
    add_image(&archive, "0001.png", 3, 4, 1);
    add_text(&archive, "0001.json", "{}");
    add_text(&archive, "0001.cls", "2\n");
    add_text(&archive, "0002.cls", "0");
    add_image(&archive, "0002.PNG", 3, 4, 5);
    add_text(&archive, "README", "no image");
    write_archive(&archive, "a.tar");
    add_image(&archive, "0001.seg.png", 3, 4, 9);
    add_text(&archive, "0001.cls", "1 \r\n");
    write_archive(&archive, "b.tar");
    expect_examples("{shards: {path: [a.tar, b.tar]}}", 3, (const int[]){1, 5, 9}, (const int[]){2, 0, 1});
    expect_examples("{shards: {path: b.tar, classes: 7}}", 1, (const int[]){9}, (const int[]){1});
    expect_examples("{shards: {path: a.tar, label: \"\"}}", 2, (const int[]){1, 5}, NULL);
}

/* As a folder brings them to one size. */
static void test_sizes(void **unused)
{
    (void)unused;
    uint8_t mine[64], folders[64];
    int64_t length;
    uint8_t pixels[64], *png;
    size_t size;
    for (int i = 0; i < 30; i++) pixels[i] = (uint8_t)(i * 9);
    assert_int_equal(tr_image_encode(pixels, (struct tr_image_size){5, 6, 1}, &png, &size), TR_OK);
    add_member(&archive, "", "x.png", png, size);
    add_text(&archive, "x.cls", "0");
    write_archive(&archive, "one.tar");
    char path[512];
    snprintf(path, sizeof path, "%s/class", test_directory());
    mkdir(path, 0777);
    write_file("class/x.png", png, size);
    tr_free(png);
    tr_source *shards = must_open("{shards: {path: one.tar, height: 3, width: 4, fit: scale, channels: 3}}"),
              *folder = must_open("{folder: {path: ., height: 3, width: 4, fit: scale, channels: 3}}");
    assert_int_equal(tr_source_read(shards, 0, mine, 64, &length, NULL), TR_OK);
    assert_int_equal(length, 36);
    assert_int_equal(tr_source_read(folder, 0, folders, 64, NULL, NULL), TR_OK);
    assert_memory_equal(mine, folders, 36);
    tr_source_close(&shards);
    tr_source_close(&folder);
}

/* Pictures of 8 bits among those of 16 are widened. */
static void test_depth(void **unused)
{
    static const uint16_t values[12] = {0, 1, 256, 65535, 40000, 7, 9, 8, 7, 6, 5, 4};
    size_t size;
    uint8_t *file = png_of(PNG_GREY, 16, 3, 4, values, &size), bytes[12];
    float numbers[12];
    (void)unused;
    add_member(&archive, "some", "1.png", file, size);
    add_text(&archive, "1.cls", "0");
    add_image(&archive, "2.png", 3, 4, 1);
    add_text(&archive, "2.cls", "0");
    write_archive(&archive, "deep.tar");
    free(file);
    expect_refusal("{shards: {path: deep.tar}}", TR_EFORMAT, "2.png has 8 bits a value, and 1.png has 16");
    tr_source *source = must_open("{shards: {path: deep.tar, depth: 16}}");
    assert_int_equal(tr_source_info(source)->features, TR_FEATURE_FLOATS);
    for (int64_t at = 0, done = 0; !done; at++) {
        refuse_begin(at);
        const tr_status status = tr_source_read(source, 0, numbers, 12, NULL, NULL);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
    }
    for (int i = 0; i < 12; i++) assert_true(numbers[i] == values[i]);
    assert_int_equal(tr_source_read(source, 1, numbers, 12, NULL, NULL), TR_OK);
    for (int i = 0; i < 12; i++) assert_true(numbers[i] == 257 * (31 + i * 7));
    tr_source_close(&source);
    source = must_open("{shards: {path: deep.tar, depth: 8}}");
    assert_int_equal(tr_source_read(source, 0, bytes, 12, NULL, NULL), TR_OK);
    for (int i = 0; i < 12; i++) assert_int_equal(bytes[i], values[i] >> 8);
    tr_source_close(&source);
}

/* The largest class counts, wherever it is; a state of the training data before it. */
static void test_classes(void **unused)
{
    static const char state[] = "trireme classes 1, 4 classes, 0 lines\n";
    const char *name;
    char *text;
    (void)unused;
    add_image(&archive, "1.png", 3, 4, 1);
    add_image(&archive, "._1.cls", 3, 9, 1);        /* as systems add them beside every file */
    add_text(&archive, "1.cls", "000000000000003"); /* of 15 digits */
    add_image(&archive, ".hidden.png", 3, 9, 1);
    add_image(&archive, "2.png", 3, 4, 2);
    add_text(&archive, "2.cls", "1");
    write_archive(&archive, "c.tar");
    expect_examples("{shards: {path: c.tar}}", 2, (const int[]){1, 2}, (const int[]){3, 1});
    tr_source *source = must_open("{shards: {path: c.tar}}");
    assert_int_equal(tr_source_info(source)->classes, 4);
    assert_int_equal(tr_source_state(source, &name, &text), TR_OK);
    assert_string_equal(name, "classes.txt");
    assert_string_equal(text, state);
    tr_text_free(text);
    tr_source_close(&source);
    assert_int_equal(tr_source_open("{shards: {path: b.tar}}", test_directory(), state, &source), TR_OK);
    assert_int_equal(tr_source_info(source)->classes, 4);
    tr_source_close(&source);
    source = must_open("{shards: {path: c.tar, label: \"\"}}");
    assert_int_equal(tr_source_info(source)->classes, 0);
    assert_int_equal(tr_source_state(source, &name, &text), TR_OK);
    assert_null(text);
    tr_source_close(&source);
    /* one side as wanted, the other larger: the middle is cut out */
    add_image(&archive, "1.png", 3, 6, 1);
    add_text(&archive, "1.cls", "0");
    add_image(&archive, "2.png", 5, 4, 1);
    add_text(&archive, "2.cls", "0");
    write_archive(&archive, "cut.tar");
    source = must_open("{shards: {path: cut.tar, height: 3, width: 4, fit: crop}}");
    uint8_t pixels[12];
    assert_int_equal(tr_source_read(source, 0, pixels, 12, NULL, NULL), TR_OK);
    for (int i = 0; i < 12; i++) assert_int_equal(pixels[i], (uint8_t)(31 + (i / 4 * 6 + 1 + i % 4) * 7));
    assert_int_equal(tr_source_read(source, 1, pixels, 12, NULL, NULL), TR_OK);
    for (int i = 0; i < 12; i++) assert_int_equal(pixels[i], (uint8_t)(31 + (i + 4) * 7));
    tr_source_close(&source);
}

/* More examples than there is room for at first; one that is damaged is told with its archive.
 */
static void test_many_and_a_bad_one(void **unused)
{
    enum { MANY = 600 };
    static uint8_t bytes[MANY * 4 * TR_TAR_BLOCK];
    size_t used = 0;
    (void)unused;
    for (int i = 0; i < MANY; i++) {
        char name[32], class[16];
        snprintf(name, sizeof name, "%d.png", i);
        add_image(&archive, name, 1, 2, i);
        snprintf(name, sizeof name, "%d.cls", i);
        snprintf(class, sizeof class, "%d", i);
        add_text(&archive, name, class);
        memcpy(bytes + used, archive.bytes, archive.size);
        used += archive.size;
        archive.size = 0;
    }
    write_file("many.tar", bytes, used);
    tr_source *source = must_open("{shards: {path: [cut.tar, many.tar], height: 1, width: 2, fit: crop}}");
    assert_int_equal(tr_source_info(source)->count, 2 + MANY);
    assert_int_equal(tr_source_info(source)->classes, MANY);
    for (int i = 0; i < MANY; i += 7) {
        uint8_t pixels[2];
        int32_t label;
        assert_int_equal(tr_source_read(source, 2 + i, pixels, 2, NULL, &label), TR_OK);
        assert_int_equal(pixels[1], (uint8_t)(i * 31 + 7));
        assert_int_equal(label, i);
    }
    tr_source_close(&source);
    size_t at = TR_TAR_BLOCK;
    while (memcmp(bytes + at, "IDAT", 4) != 0) at++;
    bytes[at + 6] ^= 1; /* in the pixels of the first image */
    write_file("many.tar", bytes, used);
    source = must_open("{shards: {path: many.tar}}");
    uint8_t pixels[2];
    assert_int_equal(tr_source_read(source, 0, pixels, 2, NULL, NULL), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "many.tar: 0.png: damaged PNG"));
    assert_int_equal(tr_source_read(source, 1, pixels, 2, NULL, NULL), TR_OK);
    tr_source_close(&source);
}

static void expect_bad(const char *options, tr_status status, const char *part)
{
    char description[128];
    write_archive(&archive, "bad.tar");
    snprintf(description, sizeof description, "{shards: {path: bad.tar%s}}", options);
    expect_refusal(description, status, part);
}

static void test_what_is_refused(void **unused)
{
    (void)unused;
    add_text(&archive, "README", "no image");
    expect_bad("", TR_EFORMAT, "no PNG or JPEG files in the archive");
    assert_null(strstr(tr_error_message(), "archives"));
    add_image(&archive, "1.png", 3, 4, 1);
    expect_bad("", TR_EFORMAT, "\"1\" has no class; give each image a file of its name");
    add_text(&archive, "1.cls", "0");
    expect_bad("", TR_EFORMAT, "\"1\" has no image");
    add_image(&archive, "1.png", 3, 4, 1);
    add_image(&archive, "1.b.png", 3, 4, 1);
    expect_bad("", TR_EFORMAT, "\"1\" has two images, \"1.png\" and \"1.b.png\"");
    add_image(&archive, "1.png", 3, 4, 1);
    add_text(&archive, "1.cls", "cat");
    expect_bad("", TR_EFORMAT, "\"1.cls\" is not a whole number from 0 as text");
    add_image(&archive, "1.png", 3, 4, 1);
    add_text(&archive, "1.cls", "5");
    expect_bad(", classes: 5", TR_EFORMAT, "class 5 of \"1.cls\" is not from 0 to 4");
    add_image(&archive, "1.png", 3, 4, 1);
    add_text(&archive, "1.cls", "0");
    add_image(&archive, "2.png", 3, 5, 1);
    add_text(&archive, "2.cls", "0");
    expect_bad("", TR_EFORMAT, "bad.tar: 2.png: 5 x 3 pixels, 4 x 3 are wanted");
    add_image(&archive, "1.png", 3, 4, 1);
    add_text(&archive, "1.cls", "0");
    add_text(&archive, "1.cls", "0");
    expect_bad("", TR_EFORMAT, "\"1\" has two classes");
    static const char *const no_classes[] = {"", " \n", "-1", "1 2", "1x", "0000000000000001"};
    for (size_t i = 0; i < sizeof no_classes / sizeof no_classes[0]; i++) {
        add_image(&archive, "1.png", 3, 4, 1);
        add_text(&archive, "1.cls", no_classes[i]);
        expect_bad("", TR_EFORMAT, "\"1.cls\" is not a whole number from 0 as text");
    }
    add_image(&archive, "1.png", 3, 4, 1);
    add_member(&archive, "some", "1.cls", "1\0002", 3);
    expect_bad("", TR_EFORMAT, "\"1.cls\" is not a whole number from 0 as text");
    expect_refusal("{shards: {path: a.tar, depth: 7}}", TR_EINVAL,
                   "shards: depth is 7; give 8, 16, or 0 for that of the files");
    expect_refusal("{shards: {path: a.tar, channels: 2}}", TR_EINVAL,
                   "shards: channels is 2; give 1, 3, or 0 for those of the first");
    add_text(&archive, "README", "no image");
    write_archive(&archive, "none.tar");
    expect_refusal("{shards: {path: [none.tar, none.tar]}}", TR_EFORMAT,
                   "no PNG or JPEG files in the archives");
    write_file("bad.tar", "no archive", 10);
    expect_refusal("{shards: {path: bad.tar}}", TR_EFORMAT, "too few for a member of a tar archive");
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
        tr_status status = try_open("{shards: {path: [a.tar, b.tar]}}");
        tr_alloc_set_hook(NULL, NULL);
        assert_int_equal(tr_alloc_live(), live);
        assert_int_equal(status, left < 0 ? TR_ENOMEM : TR_OK); /* one was refused */
        if (status == TR_OK) break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_many_and_a_bad_one),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
