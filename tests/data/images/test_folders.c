/* Folders of images: which files and folders count, sizes of masks, and options that do not fit. */
#include "base/alloc.h"
#include "base/fail.h"
#include "data/images/image.h"
#include "data/source.h"
#include "data/support.h"
#include "support/files/png.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static void write_png(const char *name, int height, int width, uint8_t value)
{
    uint8_t pixels[64], *png;
    size_t size;
    memset(pixels, value, sizeof pixels);
    assert_int_equal(tr_image_encode(pixels, (struct tr_image_size){height, width, 1}, &png, &size), TR_OK);
    write_file(name, png, size);
    tr_free(png);
}

static void make_folder(const char *name)
{
    assert_int_equal(mkdir(test_path(name), 0700), 0);
}

static int write_data(void **unused)
{
    (void)unused;
    static const char *const folders[] = {"pets", "pets/ox", "pets/cat", "pets/.git", "scenes", "masks"};
    for (int i = 0; i < LENGTH(folders); i++) make_folder(folders[i]);
    write_png("pets/ox/b.png", 3, 4, 1);
    write_png("pets/ox/a.PNG", 3, 4, 2);
    write_png("pets/ox/.hidden.png", 5, 5, 3);
    write_png("pets/.git/x.png", 5, 5, 3);
    write_text("pets/ox/notes.txt", "none");
    write_text("pets/ox/png", "none");
    write_text("pets/ox/x.png.bak", "none");
    write_text("pets/README.png", "no folder");
    write_png("pets/cat/c.jpeg", 3, 4, 4); /* the content counts, not the ending */
    write_png("scenes/1.png", 3, 4, 9);
    write_text("scenes/notes.txt", "none");
    write_png("masks/1.png", 3, 4, 1);
    return 0;
}

/* In the order of their names, classes and files; nothing that is hidden or no image. */
static void images_and_folders_count(void **unused)
{
    static const int values[] = {4, 2, 1}, classes[] = {0, 1, 1};
    (void)unused;
    for (int memory = 0; memory < 2; memory++) {
        tr_source *source =
            must_open(memory ? "{folder: {path: pets, memory: true}}" : "{folder: {path: pets}}");
        assert_int_equal(tr_source_info(source)->count, 3);
        assert_int_equal(tr_source_info(source)->classes, 2);
        assert_string_equal(tr_source_info(source)->class_names[1], "ox");
        for (int i = 0; i < 3; i++) {
            uint8_t pixels[12];
            int32_t class;
            assert_int_equal(tr_source_read(source, i, pixels, 12, NULL, &class), TR_OK);
            assert_int_equal(pixels[11], values[i]);
            assert_int_equal(class, classes[i]);
        }
        for (int64_t i = 0; i < source->files.count; i++) {
            const char *path = source->files.file[i].path;
            if (strstr(path, "notes") || strstr(path, "hidden") || strstr(path, ".git") ||
                strstr(path, "bak"))
                fail_msg("%s is none of the files", path);
        }
        assert_int_equal(source->files.count, memory ? 6 : 3);
        tr_source_close(&source);
        source = must_open(memory ? "{folder: {path: scenes, masks: masks, classes: 2, memory: true}}"
                                  : "{folder: {path: scenes, masks: masks, classes: 2}}");
        assert_int_equal(tr_source_info(source)->count, 1);
        assert_int_equal(source->files.count, memory ? 4 : 2); /* both folders, the image and its mask */
        tr_source_close(&source);
    }
}

static void masks_have_the_size_of_their_images(void **unused)
{
    static const struct {
        int height, width;
        const char *message;
    } sizes[] = {{3, 5, "1.png: 5 x 3 pixels, and its image "},
                 {4, 4, "1.png: 4 x 4 pixels, and its image "},
                 {4, 3, "has 4 x 3; give masks of the size of their images"}};
    (void)unused;
    for (int i = 0; i < LENGTH(sizes); i++) {
        write_png("masks/1.png", sizes[i].height, sizes[i].width, 1);
        expect_refusal("{folder: {path: scenes, masks: masks, classes: 2}}", TR_EFORMAT, sizes[i].message);
    }
    write_png("masks/1.png", 3, 4, 5);
    tr_source *source = must_open("{folder: {path: scenes, masks: masks, classes: 5}}");
    int32_t labels[12];
    assert_int_equal(tr_source_read(source, 0, NULL, 0, NULL, labels), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(),
                           "pixel (0, 0) has the number 5, which is not below classes: 5; correct the "
                           "file, set classes to at least 6, or set ignore"));
    tr_source_close(&source);
    source = must_open("{folder: {path: scenes, masks: masks, classes: 5, ignore: 5}}");
    assert_int_equal(tr_source_read(source, 0, NULL, 0, NULL, labels), TR_OK);
    for (int i = 0; i < 12; i++) assert_int_equal(labels[i], TR_NO_LABEL);
    tr_source_close(&source);
    write_png("masks/1.png", 3, 4, 4);
    source = must_open("{folder: {path: scenes, masks: masks, classes: 5, memory: true}}");
    assert_int_equal(tr_source_read(source, 0, NULL, 0, NULL, labels), TR_OK);
    for (int i = 0; i < 12; i++) assert_int_equal(labels[i], 4);
    tr_source_close(&source);
}

static void odd_files_are_told(void **unused)
{
    (void)unused;
    make_folder("odd");
    make_folder("odd/class");
    write_file("odd/class/1.png", "\xff\xd8\xff", 3); /* begins as a JPEG file, and ends there */
    expect_refusal("{folder: {path: odd}}", TR_EFORMAT, "1.png: a JPEG without an image; replace the file");
    write_file("odd/class/1.png", "\xff\xd8", 2);
    expect_refusal("{folder: {path: odd}}", TR_EFORMAT, "1.png: neither PNG nor JPEG");
    write_file("odd/class/1.png", "\x89PNG\r\n\x1a", 7);
    expect_refusal("{folder: {path: odd}}", TR_EFORMAT, "1.png: neither PNG nor JPEG");
    write_file("odd/class/1.png", "", 0);
    expect_refusal("{folder: {path: odd}}", TR_EFORMAT, "1.png");
    unlink(test_path("odd/class/1.png"));
    write_png("odd/class/1.png", 2, 2, 1);
    struct bytes file = read_file(test_path("odd/class/1.png"));
    file.data[29] ^= 1; /* of the checksum of the sizes */
    write_file("odd/class/1.png", file.data, file.size);
    expect_refusal("{folder: {path: odd}}", TR_EFORMAT, "1.png: damaged PNG: ");
    assert_null(strstr(tr_error_message(), "cut short"));
    file.data[29] ^= 1;
    write_file("odd/class/1.png", file.data, file.size);
    free(file.data);
    /* a table whose second row is bad */
    const int64_t live = tr_alloc_live();
    write_text("odd/table", "name,size\nclass/1.png,1\nclass/1.png\n");
    expect_refusal("{folder: {path: odd, table: odd/table, column: name, memory: true}}", TR_EFORMAT,
                   "table:3:");
    assert_int_equal(tr_alloc_live(), live);
    write_text("odd/table", "class/none.png\n");
    expect_refusal("{folder: {path: odd, table: odd/table}}", TR_ENOTFOUND,
                   "table: example 0 (counted from 0): open \"");
    assert_non_null(strstr(tr_error_message(), "/odd/class/none.png\": No such file"));
    write_file("scenes/bad.png", "none", 4);
    expect_refusal("{folder: {path: scenes, masks: masks, classes: 2}}", TR_EFORMAT,
                   "/scenes/bad.png: neither PNG nor JPEG");
    unlink(test_path("scenes/bad.png"));
    write_text("odd/table", "class/1.png\n");
    tr_source *source = must_open("{folder: {path: odd, table: odd/table}}");
    const char *name;
    char *state;
    assert_int_equal(tr_source_state(source, &name, &state), TR_OK);
    assert_null(state); /* images without labels have no classes */
    tr_source_close(&source);
    make_folder("odd/a\nb");
    expect_refusal("{folder: {path: odd}}", TR_EFORMAT,
                   "the name of a class has a line feed in it; rename the folder");
    rmdir(test_path("odd/a\nb"));
    expect_refusal("{folder: {path: odd, depth: 12}}", TR_EINVAL, "folder: depth is 12; give 8, 16, or 0");
    expect_refusal("{folder: {path: odd/class/1.png}}", TR_EIO, "1.png");
}

/* The indices of a palette are the numbers, whatever their colours; here of two bits each. */
static void masks_may_have_palettes(void **unused)
{
    static const uint8_t magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'},
                         head[13] = {0, 0, 0, 4, 0, 0, 0, 2, 2, 3}, rows[4] = {0, 0x1b, 0, 0xe4},
                         colours[12] = {9, 8, 7, 200, 100, 0, 1, 1, 1, 255, 255, 255};
    uint8_t file[256], packed[64], *at = file;
    uLongf size = sizeof packed;
    (void)unused;
    make_folder("coloured");
    make_folder("indices");
    write_png("coloured/1.png", 2, 4, 9);
    assert_int_equal(compress(packed, &size, rows, sizeof rows), Z_OK);
    memcpy(at, magic, 8);
    at = png_chunk(at + 8, "IHDR", head, sizeof head);
    at = png_chunk(at, "PLTE", colours, sizeof colours);
    at = png_chunk(at, "IDAT", packed, size);
    at = png_chunk(at, "IEND", NULL, 0);
    write_file("indices/1.png", file, (size_t)(at - file));
    for (int memory = 0; memory < 2; memory++) {
        static const int32_t wanted[8] = {0, 1, 2, 3, 3, 2, 1, 0};
        tr_source *source =
            must_open(memory ? "{folder: {path: coloured, masks: indices, classes: 4, memory: true}}"
                             : "{folder: {path: coloured, masks: indices, classes: 4}}");
        int32_t labels[8];
        if (tr_source_read(source, 0, NULL, 0, NULL, labels) != TR_OK) fail_msg("%s", tr_error_message());
        assert_memory_equal(labels, wanted, sizeof wanted);
        tr_source_close(&source);
    }
}

/* Pictures of 16 bits are numbers, decoded each time or kept; by depth those of 8 bits are, too. */
static void deep_pictures_are_numbers(void **unused)
{
    static const uint16_t values[2][6] = {{0, 1, 256, 65535, 40000, 7}, {9, 8, 7, 6, 5, 4}};
    (void)unused;
    make_folder("deep");
    make_folder("deep/class");
    for (int i = 0; i < 2; i++) {
        size_t size;
        uint8_t *file = png_of(PNG_GREY, 16, 2, 3, values[i], &size);
        write_file(i ? "deep/class/2.png" : "deep/class/1.png", file, size);
        free(file);
    }
    for (int memory = 0; memory < 2; memory++) {
        tr_source *source =
            must_open(memory ? "{folder: {path: deep, memory: true}}" : "{folder: {path: deep}}");
        const struct tr_source_info *info = tr_source_info(source);
        assert_int_equal(info->features, TR_FEATURE_FLOATS);
        assert_int_equal(info->floats, 6);
        assert_true(info->height == 2 && info->width == 3 && info->channels == 1);
        assert_int_equal(source->range, TR_RANGE_PICTURE);
        assert_null(source->resident);
        for (int i = 0; i < 2; i++) {
            float numbers[6];
            int64_t length = 0;
            assert_int_equal(tr_source_read(source, i, numbers, 6, &length, NULL), TR_OK);
            assert_int_equal(length, 6);
            for (int k = 0; k < 6; k++) assert_true(numbers[k] == values[i][k]);
        }
        tr_source_close(&source);
    }
    write_png("deep/class/3.png", 2, 3, 1);
    expect_refusal("{folder: {path: deep}}", TR_EFORMAT, "class/3.png has 8 bits a value, and ");
    assert_non_null(strstr(tr_error_message(), "class/1.png has 16; set depth: 16 to widen those of 8"));
    write_png("deep/class/0.png", 2, 3, 1);
    expect_refusal("{folder: {path: deep}}", TR_EFORMAT, "class/1.png has 16 bits a value, and ");
    assert_non_null(strstr(tr_error_message(), "class/0.png has 8; set depth: 16 to widen those of 8"));
    unlink(test_path("deep/class/0.png"));
    /* 2^24 numbers an image, and more */
    tr_source *source = must_open("{folder: {path: deep, depth: 16, height: 4096, width: 4096, fit: scale}}");
    assert_int_equal(tr_source_info(source)->floats, 1 << 24);
    tr_source_close(&source);
    expect_refusal("{folder: {path: deep, depth: 16, height: 4097, width: 4096, fit: scale}}", TR_EFORMAT,
                   "1.png: 16781312 values of 16 bits an image; at most 16777216 are read: give height and "
                   "width, with fit, or depth: 8");
    source = must_open("{folder: {path: deep, depth: 16}}");
    float numbers[6];
    uint8_t pixels[6];
    assert_int_equal(tr_source_read(source, 2, numbers, 6, NULL, NULL), TR_OK);
    for (int k = 0; k < 6; k++) assert_true(numbers[k] == 257);
    tr_source_close(&source);
    source = must_open("{folder: {path: deep, depth: 8}}");
    assert_int_equal(tr_source_info(source)->features, TR_FEATURE_IMAGE);
    assert_int_equal(source->range, TR_RANGE_OPEN);
    assert_int_equal(tr_source_read(source, 0, pixels, 6, NULL, NULL), TR_OK);
    for (int k = 0; k < 6; k++) assert_int_equal(pixels[k], values[0][k] >> 8);
    tr_source_close(&source);
}

/* To be cut out of a picture, what is wanted must not be larger either way. */
static void pictures_are_cropped_if_large(void **unused)
{
    (void)unused;
    make_folder("cropped");
    make_folder("cropped/class");
    write_png("cropped/class/1.png", 3, 4, 1);
    tr_source *source = must_open("{folder: {path: cropped, height: 2, width: 4, fit: crop}}");
    tr_source_close(&source);
    expect_refusal("{folder: {path: cropped, height: 2, width: 5, fit: crop}}", TR_EFORMAT,
                   "1.png: 4 x 3 pixels, 5 x 2 are wanted");
    expect_refusal("{folder: {path: cropped, height: 4, width: 4, fit: crop}}", TR_EFORMAT,
                   "1.png: 4 x 3 pixels, 4 x 4 are wanted");
}

/* A table may name files whose names begin with dots, but none outside of the folder. */
static void names_stay_in_the_folder(void **unused)
{
    static const char *const outside[] = {"..", "../1.png", "class/../../1.png", "class/..", "/1.png"};
    (void)unused;
    make_folder("dots");
    make_folder("dots/..class");
    write_png("dots/..1.png", 2, 3, 1);
    write_png("dots/..class/...png", 2, 3, 1);
    write_text("dots/table", "name\n..1.png\n..class/...png\n");
    tr_source *source = must_open("{folder: {path: dots, table: dots/table, column: name}}");
    assert_int_equal(tr_source_info(source)->count, 2);
    tr_source_close(&source);
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        char table[64];
        snprintf(table, sizeof table, "name\n%s\n", outside[i]);
        write_text("dots/table", table);
        expect_refusal("{folder: {path: dots, table: dots/table, column: name}}", TR_EFORMAT,
                       "which is not in the folder");
    }
    expect_refusal("{folder: {path: dots, masks: dots, table: dots/table, column: name}}", TR_EUNSUPPORTED,
                   "folder: masks and table are both given; leave one of them out");
}

/* Names of classes come from a state, which may be hostile. */
static void names_of_states_are_checked(void **unused)
{
    static const char *const names[] = {"", ".", "..", ".git", "a/b", "/"};
    (void)unused;
    for (int i = 0; i < LENGTH(names); i++) {
        char state[128];
        tr_source *source = NULL;
        snprintf(state, sizeof state, "trireme classes 1, 2 classes, 2 lines\nox\n%s\n", names[i]);
        assert_int_equal(tr_source_open("{folder: {path: pets}}", test_directory(), state, &source),
                         TR_EFORMAT);
        if (!strstr(tr_error_message(), "classes.txt:3: \""))
            fail_msg("%s: %s", names[i], tr_error_message());
        assert_non_null(strstr(tr_error_message(), "is no name of a folder; take the file that was saved"));
    }
    tr_source *source = NULL;
    assert_int_equal(tr_source_open("{folder: {path: pets}}", test_directory(),
                                    "trireme classes 1, 2 classes, 2 lines\nox\nelk\n", &source),
                     TR_EMISMATCH);
    assert_non_null(
        strstr(tr_error_message(), "folder \"cat\" is none of the 2 classes of the training data"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_and_folders_count),
        cmocka_unit_test(masks_have_the_size_of_their_images),
        cmocka_unit_test(deep_pictures_are_numbers),
        cmocka_unit_test(masks_may_have_palettes),
        cmocka_unit_test(odd_files_are_told),
        cmocka_unit_test(names_of_states_are_checked),
        cmocka_unit_test(pictures_are_cropped_if_large),
        cmocka_unit_test(names_stay_in_the_folder),
    };
    return cmocka_run_group_tests(tests, write_data, NULL);
}
