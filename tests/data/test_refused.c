/* What sources say of data that they cannot read, at the first number or byte that is one too many, and what
 * is just good.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/log.h"
#include "data/example.h"
#include "data/order/order.h"
#include "data/source.h"
#include "data/support.h"
#include "support/files/npy.h"

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

static void expect_good(const char *description)
{
    tr_source *source = must_open(description);
    tr_source_close(&source);
}

static void texts(void **unused)
{
    static const struct {
        const char *text;
        size_t size; /* 0: up to its end */
        const char *options, *says;
    } cases[] = {
        {"good\t1\n \t0\n", 0, "unit: words", "t:2:1: no words; leave the line out"},
        {"a\t2\nb\t3\n", 0, "classes: 3", "t:2:3: label 3 is not in 0 to 2; correct the line or set classes"},
        {"a\t2\nb\t0\n", 0, "classes: 3", NULL},
        {"a\t0\nb\t-1\n", 0, "classes: 3", "label -1 is not in 0 to 2"},
        {"a\t0\nb\0c\t1\n", 10, "unit: words", "t:2:2: a byte 0; give a text file"},
        {"a\t0\nbc\xff\t1\n", 0, "unit: characters",
         "t:2:3: a byte that is part of no UTF-8 character; correct it, or set unit: bytes"},
        {"a\t0\nbc\xff\t1\n", 0, "unit: bytes", NULL},
        {"1 2\t0\n0 3\t1\n", 0, "unit: ids, ids: 3",
         "t:2:1: token 1 of the text is no number from 0 to 2; give the numbers that the tokenizer gave, or "
         "raise "
         "`ids`"},
        {"1 2\t0\n0 2\t1\n", 0, "unit: ids, ids: 3", NULL},
        {"a\t0\nb\t1\0x\n", 10, "classes: 2", "t:2:3: label \"1"},
        {"a,0\nb\xff,1\n", 0, "layout: table, unit: characters", "t:2:1: a byte that is part of no UTF-8"},
        {"a,0\nb,1\n", 0, "layout: table, text_columns: 1, label_column: 0", NULL},
        {"a,0\nb,1\n", 0, "layout: table, text_columns: 2",
         "there is no column \"2\"; the table has 2 columns; a header would name them"},
        {"a,0\nb,1\n", 0, "layout: table, text_columns: -1", "there is no column \"-1\""},
        {"a,0\nb,1\n", 0, "layout: table, header: true, text_columns: c",
         "there is no column \"c\"; the table has 2 columns, named here"},
        {"\"a\"x,0\n\"b\"y,1\n", 0, "layout: table", "t:1:4: text after a closed quote"},
        {"\"a\"x,\"0\"y\nb,1\n", 0, "layout: table", "t:1:4: text after a closed quote"},
        {"a\tx\nb\ty\n", 0, "classes: 3", "t: there are 2 classes by name, but classes is 3"},
        {"a\tx\nb\ty\n", 0, "classes: 2", NULL},
        {"a\t-\nb\t+\n", 0, "classes: 3", "t: there are 2 classes by name, but classes is 3"},
        {"a\t0\nb\t1234567890123456789012345678901234567890x\n", 0, "classes: 2",
         "label \"1234567890123456789012345678901234567890\" is not a whole number"},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        char description[256];
        write_file("t", cases[i].text, cases[i].size ? cases[i].size : strlen(cases[i].text));
        snprintf(description, sizeof description, "{text: {path: t, %s}}", cases[i].options);
        if (cases[i].says)
            expect_refusal(description, TR_EFORMAT, cases[i].says);
        else
            expect_good(description);
    }
}

/* Who reads texts to continue them, and who does not. */
static void texts_and_their_states(void **unused)
{
    char *many = calloc(1, 65536);
    (void)unused;
    write_text("t", "a b\nc a\n");
    for (int next = 0; next < 2; next++) {
        const char *const descriptions[] = {"{text: {path: t, labels: false}}",
                                            "{text: {path: t, labels: false, next: true}}"};
        tr_source *source = must_open(descriptions[next]), *other;
        const char *name;
        char *state;
        assert_int_equal(tr_source_state(source, &name, &state), TR_OK);
        assert_int_equal(tr_source_open(descriptions[!next], test_directory(), state, &other), TR_EMISMATCH);
        assert_non_null(strstr(tr_error_message(), next ? "t: the training data have next: true; set the same"
                                                        : "t: the training data have next: false; set the "
                                                          "same"));
        tr_text_free(state);
        tr_source_close(&source);
    }
    /* As many names of classes as there may be, and more. */
    assert_non_null(many);
    for (int i = 0; i < 4096; i++) sprintf(many + strlen(many), "a\tn%d\n", i);
    write_text("t", many);
    expect_good("{text: {path: t}}");
    strcat(many, "a\tz\n");
    write_text("t", many);
    expect_refusal("{text: {path: t}}", TR_EFORMAT, "t:4097:3: there are more than 4096 different labels");
    free(many);
}

static void corpora(void **unused)
{
    static const uint16_t ids[] = {1, 4, 0, 4};
    tr_source *source, *other;
    const char *name;
    char *state;
    (void)unused;
    write_file("c", "abc\nde\xff g\n", 10);
    expect_refusal("{corpus: {path: c, window: 2}}", TR_EFORMAT,
                   "c:2:3: byte 0xff is no part of a UTF-8 character; correct the file, or set unit: bytes");
    write_file("c", "abc\n\nde\0g\n", 10);
    expect_refusal("{corpus: {path: c, window: 2}}", TR_EFORMAT,
                   "c:3:3: byte 0x00 is not text; correct the file, or set unit: bytes");
    expect_good("{corpus: {path: c, window: 2, unit: bytes}}");
    write_file("ids", ids, sizeof ids);
    expect_refusal("{corpus: {path: ids, unit: ids, ids: 4, window: 2}}", TR_EFORMAT,
                   "ids: token 1 is 4, there are 4 ids; set ids higher");
    source = must_open("{corpus: {path: ids, unit: ids, ids: 5, window: 2}}");
    assert_int_equal(tr_source_state(source, &name, &state), TR_OK);
    write_text("c", "abc");
    assert_int_equal(tr_source_open("{corpus: {path: c, window: 2}}", test_directory(), state, &other),
                     TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "c: the network was trained on ids; set unit: ids"));
    tr_text_free(state);
    tr_source_close(&source);
    source = must_open("{corpus: {path: c, window: 2}}");
    assert_int_equal(tr_source_state(source, &name, &state), TR_OK);
    assert_int_equal(tr_source_open("{corpus: {path: ids, unit: ids, ids: 5, window: 2}}", test_directory(),
                                    state, &other),
                     TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "ids: unit is ids, the network was trained on another one"));
    tr_text_free(state);
    tr_source_close(&source);
    const int32_t square[] = {0, 1, 2, 3};
    npy_write(test_path("square.npy"), "<i4", "2, 2", square, sizeof square);
    expect_refusal("{corpus: {path: square.npy, unit: ids, ids: 5, window: 2}}", TR_EUNSUPPORTED,
                   "square.npy: holds no integers in one dimension; save the tokens as such");
    npy_write(test_path("square.npy"), "<i4", "4,", square, sizeof square);
    expect_good("{corpus: {path: square.npy, unit: ids, ids: 5, window: 2}}");
    write_text("square.npy", "\x93NUMPY and nothing of it");
    expect_refusal("{corpus: {path: square.npy, unit: ids, ids: 5, window: 2}}", TR_EUNSUPPORTED,
                   "is an .npy file of version");
    write_file("ids", ids, sizeof ids - 1);
    expect_refusal("{corpus: {path: ids, unit: ids, ids: 5, window: 2}}", TR_EFORMAT,
                   "ids: 7 bytes are no numbers of 16 bits; save the tokens so, or as a .npy file");
}

/* A line of so many numbers 1, and one of zeros. */
static void write_columns(int count)
{
    char *text = malloc(4 * (size_t)count);
    assert_non_null(text);
    for (int i = 0; i < 4 * count; i++) text[i] = i % 2 ? ',' : i < 2 * count ? '1' : '0';
    text[2 * count - 1] = text[4 * count - 1] = '\n';
    write_file("wide", text, 4 * (size_t)count);
    free(text);
}

static void tables(void **unused)
{
    (void)unused;
    write_columns(1 << 20);
    tr_source *source = must_open("{csv: {path: wide}}");
    assert_int_equal(tr_source_info(source)->floats, (1 << 20) - 1);
    tr_source_close(&source);
    write_columns((1 << 20) + 1);
    expect_refusal("{csv: {path: wide}}", TR_EFORMAT,
                   "wide:1:1: 1048577 columns; at most 1048576 can be read");
    write_file("names", "1,a\n2,b\0c\n", 10);
    expect_refusal("{csv: {path: names}}", TR_EFORMAT, "a byte 0 in a label; give a text file");
    write_text("s", "1,2,3\n4,5,6\n");
    /* 3 * 5592405 is below 2^24, one more is not. */
    expect_refusal("{series: {path: s, window: 5592406}}", TR_EINVAL,
                   "s: an example has 16777218 numbers and 3 targets; at most 16777216 are read");
    expect_refusal("{series: {path: s, window: 5592405}}", TR_EFORMAT, "s");
    assert_null(strstr(tr_error_message(), "numbers and"));
    expect_refusal("{series: {path: s, window: 1, horizon: 5592406, every_step: true}}", TR_EINVAL,
                   "s: an example has 3 numbers and 16777218 targets; at most 16777216 are read");
}

/* ---- records that are passed over ---- */

static int lines_told;
static char last_line[256];

static void count_line(void *user, enum tr_log_level level, const char *message)
{
    (void)user;
    lines_told += level == TR_LOG_WARNING && strstr(message, "skipped a bad record: ") != NULL;
    snprintf(last_line, sizeof last_line, "%s", message);
}

static void bad_records_are_told_ten_times(void **unused)
{
    char text[1024] = "";
    (void)unused;
    for (int i = 0; i < 12; i++) strcat(text, "1,2,1\n1,x,0\n");
    write_text("bad", text);
    lines_told = 0;
    tr_log_set_sink(count_line, NULL, TR_LOG_INFO);
    tr_source *source = must_open("{csv: {path: bad, on_bad_record: skip, max_bad: 0.5}}");
    assert_int_equal(source->info.skipped, 12);
    assert_int_equal(source->info.count, 12);
    assert_int_equal(lines_told, 10);
    tr_source_close(&source);
    expect_refusal("{csv: {path: bad, on_bad_record: skip, max_bad: 0.499}}", TR_EFORMAT, "bad");
    tr_log_set_sink(NULL, NULL, TR_LOG_WARNING);
}

/* ---- images and arrays ---- */

static void put32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void write_idx(const char *name, int dimensions, uint32_t count, uint32_t height, uint32_t width)
{
    const size_t size = 4 + 4 * (size_t)dimensions + (size_t)count * height * width;
    uint8_t *file = calloc(1, size + 16);
    assert_non_null(file);
    file[2] = 8;
    file[3] = (uint8_t)dimensions;
    put32(file + 4, count);
    if (dimensions > 1) put32(file + 8, height);
    if (dimensions > 2) put32(file + 12, width);
    write_file(name, file, size);
    free(file);
}

static void idx_files(void **unused)
{
    (void)unused;
    write_idx("labels", 1, 2, 1, 1);
    write_idx("images", 3, 2, 65535, 1);
    expect_good("{idx: {images: images, labels: labels}}");
    write_idx("images", 3, 2, 1, 65535);
    expect_good("{idx: {images: images, labels: labels}}");
    write_idx("images", 3, 2, 65536, 1);
    expect_refusal("{idx: {images: images, labels: labels}}", TR_EFORMAT,
                   "images: size 65536 at offset 8; images have at most 65535 pixels a side");
    write_idx("images", 3, 2, 1, 65536);
    expect_refusal("{idx: {images: images, labels: labels}}", TR_EFORMAT,
                   "images: size 65536 at offset 12; images have at most 65535 pixels a side");
    write_idx("images", 1, 2, 1, 1);
    expect_refusal(
        "{idx: {images: images, labels: labels}}", TR_EFORMAT,
        "images: 1 dimension at offset 3; images have 3 or 4; give the file of images here, not that of "
        "labels");
    for (int dimensions = 0; dimensions <= 5; dimensions += 5) {
        char message[64];
        uint8_t file[32] = {0, 0, 8, (uint8_t)dimensions};
        write_file("images", file, sizeof file);
        snprintf(message, sizeof message, "images: %d dimensions at offset 3; 1 to 4 can be read",
                 dimensions);
        expect_refusal("{idx: {images: images, labels: labels}}", TR_EFORMAT, message);
    }
}

static void idx_files_of_other_types(void **unused)
{
    static const struct {
        uint8_t type;
        const char *name;
    } types[] = {{0x07, "an unknown type"}, {0x09, "signed bytes"},   {0x0a, "an unknown type"},
                 {0x0b, "16-bit numbers"},  {0x0c, "32-bit numbers"}, {0x0d, "floats"},
                 {0x0e, "doubles"},         {0x0f, "an unknown type"}};
    (void)unused;
    for (int i = 0; i < LENGTH(types); i++) {
        char message[96];
        const uint8_t file[20] = {0, 0, types[i].type, 3, [7] = 1, [11] = 2, [15] = 2};
        write_file("images", file, sizeof file);
        snprintf(message, sizeof message,
                 "images: type %02x at offset 2 is %s; only 08, unsigned bytes, can be read", types[i].type,
                 types[i].name);
        expect_refusal("{idx: {images: images}}", TR_EFORMAT, message);
    }
}

static void idx_files_of_pixels(void **unused)
{
    static const uint8_t masks[16 + 8] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, [16 + 5] = 9};
    (void)unused;
    write_idx("images", 3, 2, 2, 2);
    write_idx("sizes", 3, 2, 2, 3);
    expect_refusal("{idx: {images: images, labels: sizes}}", TR_EFORMAT,
                   "sizes has labels of 2 x 3 pixels, the images of ");
    write_idx("sizes", 3, 2, 1, 2);
    expect_refusal("{idx: {images: images, labels: sizes}}", TR_EFORMAT,
                   "sizes has labels of 1 x 2 pixels, the images of ");
    write_idx("sizes", 3, 2, 2, 2); /* zeros all */
    expect_refusal("{idx: {images: images, labels: sizes, ignore: 0}}", TR_EFORMAT,
                   "sizes: all pixels have the label 0, which is ignored; give other labels");
    expect_good("{idx: {images: images, labels: sizes, ignore: 0, classes: 2}}");
    const uint8_t zeros[12] = {0};
    npy_write(test_path("x.npy"), "|u1", "1, 2, 2", zeros, 4);
    npy_write(test_path("y.npy"), "|u1", "1, 2, 3", zeros, 6);
    expect_refusal("{npy: {features: x.npy, labels: y.npy}}", TR_EFORMAT,
                   "y.npy\" has labels of 2 x 3 pixels, the images have 2 x 2; give a label for each pixel");
    npy_write(test_path("y.npy"), "|u1", "1, 3, 2", zeros, 6);
    expect_refusal("{npy: {features: x.npy, labels: y.npy}}", TR_EFORMAT,
                   "y.npy\" has labels of 3 x 2 pixels, the images have 2 x 2; give a label for each pixel");
    static const struct {
        const char *type;
        enum tr_number_range range;
    } types[] = {{"<i2", TR_RANGE_I16}, {"<u2", TR_RANGE_U16}, {"<i4", TR_RANGE_OPEN}};
    for (int i = 0; i < LENGTH(types); i++) {
        npy_write(test_path("x.npy"), types[i].type, "1, 1, 3, 1", zeros, i < 2 ? 6 : 12);
        tr_source *source = must_open("{npy: {features: x.npy}}");
        assert_int_equal(source->range, types[i].range);
        tr_source_close(&source);
    }
    write_file("masks", masks, sizeof masks);
    expect_good("{idx: {images: images, labels: masks, classes: 10}}");
    expect_refusal(
        "{idx: {images: images, labels: masks, classes: 9}}", TR_EFORMAT,
        "masks: label 9 of example 1 at offset 21 is not below classes: 9; correct the file or set "
        "classes to at least 10, or set ignore, where it marks pixels without a class");
    write_file("labels", "\0\0\10\1\0\0\0\2\0\3", 10);
    expect_refusal(
        "{idx: {images: images, labels: labels, classes: 3}}", TR_EFORMAT,
        "labels: label 3 of example 1 at offset 9 is not below classes: 3; correct the file or set "
        "classes to at least 4");
    assert_null(strstr(tr_error_message(), "ignore"));
}

static void arrays(void **unused)
{
    const int32_t label[] = {0, 3};
    const int32_t pixels[] = {0, 1, 2, -2};
    float values[8] = {0};
    (void)unused;
    uint8_t *many = calloc(1, ((size_t)1 << 24) + 1);
    assert_non_null(many);
    npy_write(test_path("x.npy"), "|u1", "1, 16777216", many, (size_t)1 << 24);
    expect_good("{npy: {features: x.npy}}");
    npy_write(test_path("x.npy"), "|u1", "1, 16777217", many, ((size_t)1 << 24) + 1);
    expect_refusal("{npy: {features: x.npy}}", TR_EFORMAT,
                   "x.npy\" has 16777217 numbers an example; 1 to 16777216 can be read");
    npy_write(test_path("x.npy"), "|u1", "1, 65535, 1", many, 65535);
    expect_good("{npy: {features: x.npy}}");
    npy_write(test_path("x.npy"), "|u1", "1, 1, 65535", many, 65535);
    expect_good("{npy: {features: x.npy}}");
    npy_write(test_path("x.npy"), "|u1", "1, 65536, 1", many, 65536);
    expect_refusal("{npy: {features: x.npy}}", TR_EFORMAT,
                   "images of 65536 x 1; at most 65535 pixels a side can be read");
    npy_write(test_path("x.npy"), "|u1", "1, 1, 65536", many, 65536);
    expect_refusal("{npy: {features: x.npy}}", TR_EFORMAT, "images of 1 x 65536; at most 65535");
    free(many);
    npy_write(test_path("x.npy"), "<f4", "2, 0", values, 0);
    expect_refusal("{npy: {features: x.npy}}", TR_EFORMAT, "x.npy\" has 0 numbers an example");
    npy_write(test_path("x.npy"), "<f4", "2, 4", values, sizeof values);
    npy_write(test_path("y.npy"), "<i4", "2,", label, sizeof label);
    expect_refusal("{npy: {features: x.npy, labels: y.npy, classes: 3}}", TR_EFORMAT,
                   "y.npy\": label 3 of example 1 is not from 0 to 2; correct the file or set classes");
    expect_good("{npy: {features: x.npy, labels: y.npy, classes: 4}}");
    npy_write(test_path("x.npy"), "|u1", "1, 2, 2", values, 4);
    npy_write(test_path("y.npy"), "<i4", "1, 2, 2", pixels, sizeof pixels);
    expect_refusal(
        "{npy: {features: x.npy, labels: y.npy}}", TR_EFORMAT,
        "y.npy\": label -2 of example 0 is not from 0 to 16777215; correct the file, or set ignore, "
        "where it marks pixels without a class");
}

static void folders_and_records(void **unused)
{
    (void)unused;
    mkdir(test_path("scenes"), 0700);
    mkdir(test_path("masks"), 0700);
    expect_refusal("{folder: {path: scenes, masks: masks, classes: 3}}", TR_EFORMAT,
                   "scenes: the set is empty: no PNG or JPEG files in the folder");
    mkdir(test_path("classes"), 0700);
    mkdir(test_path("classes/cat"), 0700);
    expect_refusal("{folder: {path: classes}}", TR_EFORMAT,
                   "classes: the set is empty: no PNG or JPEG files in a folder for each class, as in "
                   "photos/cat/1.jpg");
    expect_refusal("{tfrecord: {path: [], height: 2, width: 2}}", TR_EINVAL,
                   "tfrecord: path is an empty list; name a file");
    /* joined sources have labels of examples */
    write_idx("images", 3, 2, 2, 2);
    write_text("table", "1,2,0\n3,4,1\n");
    expect_refusal("{join: {sources: {a: {idx: {images: images, labels: images}}, b: {csv: {path: table}}}}}",
                   TR_EUNSUPPORTED,
                   "source \"a\" has labels of pixels, which joined sources cannot have; train on its images "
                   "alone");
}

/* ---- others ---- */

static void fields_of_examples(void **unused)
{
    static const struct {
        uint8_t bytes[4];
        size_t size;
        const char *says;
    } cases[] = {
        {{0x02, 0}, 2, "byte 1 of the Example: a field with number 0"},
        {{0x0b, 0}, 2, "byte 1 of the Example: a field of unknown wire type"},
        {{0x0c, 0}, 2, "byte 1 of the Example: a field of unknown wire type"},
        {{0x0e, 0}, 2, "byte 1 of the Example: a field of unknown wire type"},
        {{0x0f, 0}, 2, "byte 1 of the Example: a field of unknown wire type"},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        struct tr_example_feature feature = {.name = "x", .name_length = 1};
        assert_int_equal(tr_example_find(cases[i].bytes, cases[i].size, &feature, 1), TR_EFORMAT);
        assert_string_equal(tr_error_message(), cases[i].says);
    }
}

static void orders(void **unused)
{
    struct tr_order order;
    (void)unused;
    assert_int_equal(tr_order_make(&order, 0, 1, TR_LAST_BATCH_KEEP, true, 1), TR_EINVAL);
    assert_string_equal(tr_error_message(), "the data set has 0 examples; at least 1 is needed");
    assert_int_equal(tr_order_make(&order, 5, 0, TR_LAST_BATCH_KEEP, true, 1), TR_EINVAL);
    assert_string_equal(tr_error_message(), "batch is 0; at least 1 is needed");
    assert_int_equal(tr_order_make(&order, 5, 6, TR_LAST_BATCH_DROP, true, 1), TR_EINVAL);
    assert_string_equal(
        tr_error_message(),
        "no batch would be left: batch is 6, the data set has 5 examples and last_batch is drop; "
        "make the batch smaller or set last_batch: keep");
}

static void conversions(void **unused)
{
    (void)unused;
    write_text("table", "1,2,0\n3,4,1\n");
    tr_source *source = must_open("{csv: {path: table}}");
    assert_int_equal(tr_source_convert(source, "parquet", "none", test_path("out")), TR_EINVAL);
    assert_string_equal(tr_error_message(), "format \"parquet\" cannot be written; give tfrecord or idx");
    assert_int_equal(tr_source_convert(source, "tfrecord", "lzma", test_path("out")), TR_EINVAL);
    assert_string_equal(tr_error_message(), "packing \"lzma\" is unknown; give none, gzip or zlib");
    assert_int_equal(tr_source_convert(source, "idx", "gzip", test_path("out")), TR_EUNSUPPORTED);
    assert_string_equal(tr_error_message(), "idx files are written with packing none; pack them with gzip");
    assert_int_not_equal(access(test_path("out"), F_OK), 0);
    tr_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(texts_and_their_states),
        cmocka_unit_test(corpora),
        cmocka_unit_test(tables),
        cmocka_unit_test(bad_records_are_told_ten_times),
        cmocka_unit_test(idx_files),
        cmocka_unit_test(idx_files_of_other_types),
        cmocka_unit_test(idx_files_of_pixels),
        cmocka_unit_test(arrays),
        cmocka_unit_test(folders_and_records),
        cmocka_unit_test(fields_of_examples),
        cmocka_unit_test(orders),
        cmocka_unit_test(conversions),
    };
    return cmocka_run_group_tests_name("data.refused", tests, NULL, NULL);
}
