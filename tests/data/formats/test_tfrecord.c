/* TFRecord files: written and read back in every packing, against bytes made by hand, and every kind of
 * damage. */
#include "base/alloc.h"
#include "base/numbers/hash.h"
#include "data/convert.h"
#include "data/example.h"
#include "data/support.h"
#include "data/formats/tfrecord.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXAMPLES 40
#define READ     "{tfrecord: {path: %s, height: 2, width: 3%s}}"

static const char *describe(const char *path, const char *more)
{
    static char text[512];
    snprintf(text, sizeof text, READ, path, more);
    return text;
}

/* 40 images of 2 x 3 with labels 0 to 6, as IDX. */
static int write_idx(void **state)
{
    (void)state;
    uint8_t images[16 + 6 * EXAMPLES] = {0, 0, 8, 3, 0, 0, 0, EXAMPLES, 0, 0, 0, 2, 0, 0, 0, 3};
    uint8_t labels[8 + EXAMPLES] = {0, 0, 8, 1, 0, 0, 0, EXAMPLES};
    for (int i = 0; i < 6 * EXAMPLES; i++) images[16 + i] = (uint8_t)(i * 37);
    for (int i = 0; i < EXAMPLES; i++) labels[8 + i] = (uint8_t)(i % 7);
    write_file("images", images, sizeof images);
    write_file("labels", labels, sizeof labels);
    return 0;
}

static void convert(const char *name, enum tr_packing packing)
{
    tr_source *source = must_open("{idx: {images: images, labels: labels}}");
    if (tr_convert_to_tfrecord(source, test_path(name), packing) != TR_OK) fail_msg("%s", tr_error_message());
    tr_source_close(&source);
}

static void compare(tr_source *a, tr_source *b)
{
    const struct tr_source_info *one = tr_source_info(a), *two = tr_source_info(b);
    assert_int_equal(one->count, two->count);
    assert_int_equal(one->classes, two->classes);
    assert_int_equal(one->height, two->height);
    assert_int_equal(one->width, two->width);
    for (int64_t i = 0; i < one->count; i++) {
        uint8_t x[6], y[6];
        int32_t p, q;
        assert_int_equal(tr_source_read(a, i, x, 6, NULL, &p), TR_OK);
        assert_int_equal(tr_source_read(b, i, y, 6, NULL, &q), TR_OK);
        assert_memory_equal(x, y, 6);
        assert_int_equal(p, q);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    static const char *const name[] = {"plain", "gzip", "zlib"};
    tr_source *idx = must_open("{idx: {images: images, labels: labels}}");
    char digest[3][65];
    for (int packing = TR_PACKING_NONE; packing <= TR_PACKING_ZLIB; packing++) {
        convert(name[packing], (enum tr_packing)packing);
        tr_source *source = must_open(describe(name[packing], ""));
        assert_true(tr_source_info(source)->slow);
        compare(idx, source);
        assert_int_equal(tr_source_digest(source, digest[packing]), TR_OK);
        assert_string_equal(digest[packing], digest[0]);
        tr_source_close(&source);
        char more[32];
        snprintf(more, sizeof more, ", packing: %s", packing == TR_PACKING_NONE ? "none" : name[packing]);
        source = must_open(describe(name[packing], more));
        tr_source_close(&source);
    }
    /* a plain file of the same examples as shards */
    convert("plain2", TR_PACKING_NONE);
    tr_source *both = must_open(describe("[plain, gzip, plain2]", ""));
    assert_int_equal(tr_source_info(both)->count, 3 * EXAMPLES);
    for (int64_t i = 0; i < 3 * EXAMPLES; i++) {
        int32_t label;
        assert_int_equal(tr_source_read(both, i, NULL, 0, NULL, &label), TR_OK);
        assert_int_equal(label, i % EXAMPLES % 7);
    }
    tr_source_close(&both);

    assert_int_equal(tr_convert_to_idx(idx, test_path("back")), TR_OK);
    tr_source *back = must_open("{idx: {images: back-images-idx3-ubyte, labels: back-labels-idx1-ubyte}}");
    compare(idx, back);
    tr_source_close(&back);
    tr_source_close(&idx);
}

/* The bytes of a record and its Example as the format's documents give them, put together by hand. */
static void test_known_bytes(void **state)
{
    (void)state;
    static const uint8_t example[] = {
        0x0a, 42,                                                             /* features */
        0x0a, 19, 0x0a, 9, 'i',  'm',  'a',  'g',  'e',  '_',  'r', 'a', 'w', /* entry, key */
        0x12, 6,  0x0a, 4, 0x0a, 2,    7,    200,                             /* value, bytes list, bytes */
        0x0a, 19, 0x0a, 5, 'l',  'a',  'b',  'e',  'l',  0x12, 10,            /* entry, key, value */
        0x1a, 8,  0x0a, 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,                /* packed integers */
    };
    int64_t label = (1ll << 36) - 1;
    const uint8_t raw[] = {7, 200};
    const struct tr_example_value value[] = {{"image_raw", TR_LIST_BYTES, raw, 2},
                                             {"label", TR_LIST_INT64, &label, 1}};
    assert_int_equal(tr_example_encoded_size(value, 2), sizeof example);
    uint8_t encoded[sizeof example];
    tr_example_encode(value, 2, encoded);
    assert_memory_equal(encoded, example, sizeof example);

    struct tr_example_feature feature[] = {{.name = "label", .name_length = 5},
                                           {.name = "image_raw", .name_length = 9},
                                           {.name = "other", .name_length = 5}};
    assert_int_equal(tr_example_find(example, sizeof example, feature, 3), TR_OK);
    const uint8_t *bytes;
    size_t size;
    int64_t number;
    assert_int_equal(tr_example_bytes(&feature[1], &bytes, &size), TR_OK);
    assert_int_equal(size, 2);
    assert_memory_equal(bytes, raw, 2);
    assert_int_equal(tr_example_int64(&feature[0], &number), TR_OK);
    assert_true(number == label);
    assert_int_equal(feature[2].kind, TR_LIST_NONE);
    assert_int_equal(tr_example_int64(&feature[2], &number), TR_EFORMAT);
    assert_int_equal(tr_example_int64(&feature[1], &number), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "holds bytes, not integers"));

    /* the first record of every event file, whose head and checksum are well known */
    tr_record_writer *writer;
    static const uint8_t version[24] = {9,   0,   0,   0,   0,   0,   0,   0,   0,   0x1a, 13,  'b',
                                        'r', 'a', 'i', 'n', '.', 'E', 'v', 'e', 'n', 't',  ':', '2'};
    assert_int_equal(tr_record_writer_create(test_path("event"), TR_PACKING_NONE, &writer), TR_OK);
    assert_int_equal(tr_record_writer_add(writer, version, sizeof version), TR_OK);
    assert_int_equal(tr_record_writer_finish(&writer), TR_OK);
    assert_null(writer);
    struct bytes file = read_file(test_path("event"));
    assert_int_equal(file.size, 24 + 16);
    static const uint8_t head[12] = {0x18, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22};
    assert_memory_equal(file.data, head, 12);
    assert_memory_equal(file.data + 12, version, 24);
    free(file.data);
}

/* An entry may lack its value, or its key: it holds nothing, and takes back what an earlier one held. Builds
   that check for undefined behaviour stop where its bytes are looked for. */
static void test_entries_without_a_value(void **state)
{
    (void)state;
    static const uint8_t example[] = {
        0x0a, 43,                                                    /* features */
        0x0a, 11, 0x0a, 1, 'a',  0x12, 6,    0x1a, 4, 0x0a, 2, 5, 6, /* a: two integers */
        0x0a, 10, 0x0a, 1, 'b',  0x12, 5,    0x1a, 3, 0x0a, 1, 7,    /* b: one */
        0x0a, 3,  0x0a, 1, 'a',                                      /* a without a value */
        0x0a, 7,  0x12, 5, 0x1a, 3,    0x0a, 1,    8,                /* a value without a key */
        0x0a, 0,                                                     /* neither */
        0x0a, 0,
    };
    struct tr_example_feature feature[] = {{.name = "a", .name_length = 1}, {.name = "b", .name_length = 1}};
    int64_t number = 0;
    assert_int_equal(example[1] + 2, sizeof example);
    assert_int_equal(tr_example_find(example, sizeof example, feature, 2), TR_OK);
    assert_int_equal(feature[0].kind, TR_LIST_NONE);
    assert_int_equal(tr_example_int64(&feature[0], &number), TR_EFORMAT);
    assert_int_equal(tr_example_int64(&feature[1], &number), TR_OK);
    assert_int_equal(number, 7);
}

/* Forms that other writers use: unpacked numbers, duplicate keys, unknown fields, negative integers. */
static void test_other_encodings(void **state)
{
    (void)state;
    static const uint8_t
        example[] =
            {
                0x7a, 2,    1,    2, /* unknown field 15 of Example */
                0x0a, 70,   0x0a, 12,   0x0a, 1,    'a',  0x12, 7,    0x1a, 5,    0x0a, 3,
                1,    2,    3, /* a: three integers, overruled below */
                0x0a, 9,    0x12, 4,    0x1a, 2,    0x08, 5,    0x0a, 1,    'a', /* a: 5, unpacked; value
                                                                                    before key */
                0x0a, 17,   0x0a, 1,    'f',  0x12, 12,   0x12, 10,              /* f: floats, unpacked */
                0x0d, 0,    0,    0x80, 0x3f, 0x0d, 0,    0,    0,    0xc0, 0x0a, 19,   0x0a,
                1,    'n',  0x12, 14,   0x1a, 12,   0x0a, 10,                        /* n: -1 */
                0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,    0x10, 3, /* unknown field 2 of
                                                                                        Features */
                0x0a, 1,    0x00,                                                    /* cut off below */
            };
    struct tr_example_feature feature[] = {
        {.name = "a", .name_length = 1}, {.name = "f", .name_length = 1}, {.name = "n", .name_length = 1}};
    uint8_t copy[sizeof example];
    memcpy(copy, example, sizeof example);
    copy[5] = (uint8_t)(sizeof example - 3 - 6);
    if (tr_example_find(copy, sizeof example - 3, feature, 3) != TR_OK) fail_msg("%s", tr_error_message());
    int64_t number;
    float floats[2];
    size_t count;
    assert_int_equal(tr_example_int64(&feature[0], &number), TR_OK);
    assert_int_equal(number, 5);
    assert_int_equal(tr_example_floats(&feature[1], floats, 2, &count), TR_OK);
    assert_int_equal(count, 2);
    assert_true(floats[0] == 1 && floats[1] == -2);
    assert_int_equal(tr_example_int64(&feature[2], &number), TR_OK);
    assert_int_equal(number, -1);
}

static void test_floats_and_targets(void **state)
{
    (void)state;
    write_file("table.csv", "1.5,-2,0.25,7\n3,4,5,8\n", 22);
    tr_source *csv = must_open("{csv: {path: table.csv, label: value, label_columns: [2, 3]}}");
    assert_int_equal(tr_convert_to_tfrecord(csv, test_path("floats"), TR_PACKING_GZIP), TR_OK);
    tr_source *source = must_open("{tfrecord: {path: floats, floats: floats, targets: targets}}");
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->features, TR_FEATURE_FLOATS);
    assert_int_equal(info->floats, 2);
    assert_int_equal(info->labels, TR_LABEL_VALUES);
    assert_int_equal(info->values, 2);
    for (int64_t i = 0; i < 2; i++) {
        float x[2], y[2], p[2], q[2];
        assert_int_equal(tr_source_read(csv, i, x, 2, NULL, p), TR_OK);
        assert_int_equal(tr_source_read(source, i, y, 2, NULL, q), TR_OK);
        assert_memory_equal(x, y, sizeof x);
        assert_memory_equal(p, q, sizeof p);
    }
    tr_source_close(&source);
    tr_source_close(&csv);
    expect_refusal("{tfrecord: {path: floats, floats: nothing}}", TR_EFORMAT, "no feature \"nothing\"");
    expect_refusal("{tfrecord: {path: floats, floats: floats}}", TR_EFORMAT, "no feature \"label\"");
    expect_refusal("{tfrecord: {path: floats, height: 1, width: 1}}", TR_EFORMAT, "no feature \"image_raw\"");
}

static void test_every_truncation(void **state)
{
    (void)state;
    convert("full", TR_PACKING_NONE);
    struct bytes file = read_file(test_path("full"));
    size_t record = file.size / EXAMPLES; /* all are of one size */
    assert_int_equal(record * EXAMPLES, file.size);
    for (size_t size = 0; size < file.size; size += size < 2 * record ? 1 : 13) {
        write_file("cut", file.data, size);
        if (size > 0 && size % record == 0) {
            assert_int_equal(try_open(describe("cut", "")), TR_OK); /* the end of a record is no truncation */
        } else {
            expect_refusal(describe("cut", ", packing: none"), TR_EFORMAT, size == 0 ? "empty" : "truncated");
        }
    }
    free(file.data);
    convert("full", TR_PACKING_ZLIB);
    file = read_file(test_path("full"));
    for (size_t size = 0; size < file.size; size++) {
        write_file("cut", file.data, size);
        expect_refusal(describe("cut", ", packing: zlib"), TR_EFORMAT, "cut");
    }
    free(file.data);
}

/* Any flipped bit anywhere in a file is found. */
static void test_every_flip(void **state)
{
    (void)state;
    convert("full", TR_PACKING_NONE);
    struct bytes file = read_file(test_path("full"));
    size_t record = file.size / EXAMPLES;
    for (size_t bit = 0; bit < record * 8; bit++) {
        file.data[record + bit / 8] ^= (uint8_t)(1 << bit % 8);
        write_file("flipped", file.data, file.size);
        char place[64];
        snprintf(place, sizeof place, "record at offset %zu", record);
        expect_refusal(describe("flipped", ""), TR_ECORRUPT, place);
        file.data[record + bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(file.data);
}

static void put_checksum(uint8_t *record)
{
    size_t length = record[0];
    uint32_t crc = tr_crc32c_mask(tr_crc32c(0, record + 12, length));
    for (int i = 0; i < 4; i++) record[12 + length + (size_t)i] = (uint8_t)(crc >> 8 * i);
}

/* Skipping: exact counts, the right examples left, and the ceiling. */
static void test_skip(void **state)
{
    (void)state;
    convert("full", TR_PACKING_NONE);
    struct bytes file = read_file(test_path("full"));
    size_t record = file.size / EXAMPLES;
    file.data[3 * record + 20] ^= 1; /* bad data */
    uint8_t *label = file.data + 17 * record + 12 + record - 16;
    while (memcmp(label, "label", 5) != 0) label--;
    label[5 + 6] = 0x7f; /* label 127 */
    put_checksum(file.data + 17 * record);
    write_file("bad", file.data, file.size);

    expect_refusal(describe("bad", ""), TR_ECORRUPT, "checksum of the data");
    expect_refusal(describe("bad", ", classes: 7, on_bad_record: skip"), TR_EFORMAT,
                   "2 of 40 records are bad, more than max_bad: 0.001");
    tr_source *source = must_open(describe("bad", ", classes: 7, on_bad_record: skip, max_bad: 0.05"));
    assert_int_equal(tr_source_info(source)->count, EXAMPLES - 2);
    assert_int_equal(tr_source_info(source)->skipped, 2);
    for (int64_t i = 0; i < EXAMPLES - 2; i++) {
        int64_t original = i + (i >= 3) + (i >= 16);
        int32_t got;
        assert_int_equal(tr_source_read(source, i, NULL, 0, NULL, &got), TR_OK);
        assert_int_equal(got, original % 7);
    }
    tr_source_close(&source);

    /* a bad length loses the rest of its file, but not the next file */
    file.data[30 * record + 8] ^= 1;
    write_file("bad", file.data, file.size);
    source = must_open(describe("[bad, full]", ", classes: 7, on_bad_record: skip, max_bad: 0.2"));
    assert_int_equal(tr_source_info(source)->count, 30 - 2 + EXAMPLES);
    assert_int_equal(tr_source_info(source)->skipped, 2 + 10);
    tr_source_close(&source);
    expect_refusal(describe("[bad, full]", ", classes: 7, on_bad_record: skip, max_bad: 0.1"), TR_EFORMAT,
                   "12 of 80 records");

    /* nothing left */
    file.data[8] ^= 1;
    write_file("bad", file.data, file.size);
    expect_refusal(describe("bad", ", packing: none, on_bad_record: skip, max_bad: 1"), TR_EFORMAT, "empty");
    free(file.data);
}

/* `check: read` finds damage when the example is read, and names the place. */
static void test_late_check(void **state)
{
    (void)state;
    convert("full", TR_PACKING_NONE);
    struct bytes file = read_file(test_path("full"));
    size_t record = file.size / EXAMPLES;
    file.data[5 * record + 20] ^= 1;
    write_file("bad", file.data, file.size);
    tr_source *source = must_open(describe("bad", ", check: read, classes: 7"));
    int32_t label;
    assert_int_equal(tr_source_info(source)->count, EXAMPLES);
    assert_int_equal(tr_source_read(source, 4, NULL, 0, NULL, &label), TR_OK);
    assert_int_equal(tr_source_read(source, 5, NULL, 0, NULL, &label), TR_ECORRUPT);
    assert_int_equal(tr_source_read(source, 6, NULL, 0, NULL, &label), TR_OK);
    tr_source_close(&source);
    source = must_open(describe("bad", ", check: read, classes: 6"));
    assert_int_equal(tr_source_read(source, 6, NULL, 0, NULL, &label), TR_EFORMAT);
    char place[64];
    snprintf(place, sizeof place, "record at offset %zu: label 6", 6 * record);
    assert_non_null(strstr(tr_error_message(), place));
    tr_source_close(&source);
    expect_refusal(describe("bad", ", check: read"), TR_EINVAL, "needs classes");
    expect_refusal(describe("bad", ", check: read, classes: 7, on_bad_record: skip"), TR_EINVAL,
                   "needs check: open");
    free(file.data);
}

static void test_refusals(void **state)
{
    (void)state;
    convert("full", TR_PACKING_NONE);
    expect_refusal("{tfrecord: {path: full}}", TR_EINVAL, "height and width");
    expect_refusal("{tfrecord: {path: [], height: 2, width: 3}}", TR_EINVAL, "path");
    expect_refusal("{tfrecord: {path: full, height: 2, width: 4}}", TR_EFORMAT,
                   "has 6 bytes; height x width x channels is 8");
    expect_refusal(describe("full", ", image: label"), TR_EFORMAT, "holds integers, not bytes");
    expect_refusal(describe("full", ", label: image_raw"), TR_EFORMAT, "holds bytes, not integers");
    expect_refusal(describe("full", ", classes: 6"), TR_EFORMAT, "label 6 is not in 0 to 5");
    expect_refusal(describe("nowhere", ""), TR_ENOTFOUND, "nowhere");
    write_file("noise", "this is no record file, whatever else it may be", 47);
    expect_refusal(describe("noise", ""), TR_ECORRUPT, "checksum of the length");
    /* a length that reaches far beyond everything, with a right checksum */
    uint8_t huge[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    uint32_t crc = tr_crc32c_mask(tr_crc32c(0, huge, 8));
    for (int i = 0; i < 4; i++) huge[8 + i] = (uint8_t)(crc >> 8 * i);
    write_file("huge", huge, sizeof huge);
    expect_refusal(describe("huge", ""), TR_EFORMAT, "truncated");
    tr_source *source = must_open(describe("full", ", label: ''"));
    assert_int_equal(tr_source_info(source)->labels, TR_LABEL_NONE);
    tr_source_close(&source);
}

static void test_nothing_is_left_behind(void **state)
{
    (void)state;
    tr_source *source = must_open("{idx: {images: images, labels: labels}}");
    assert_int_equal(tr_convert_to_tfrecord(source, test_path("no/such/folder"), TR_PACKING_NONE),
                     TR_ENOTFOUND);
    tr_record_writer *writer;
    assert_int_equal(tr_record_writer_create(test_path("given-up"), TR_PACKING_GZIP, &writer), TR_OK);
    assert_int_equal(tr_record_writer_add(writer, "abc", 3), TR_OK);
    tr_record_writer_abandon(&writer);
    assert_null(writer);
    assert_int_not_equal(access(test_path("given-up"), F_OK), 0);
    char aside[64];
    snprintf(aside, sizeof aside, "given-up.%ld.tmp", (long)getpid());
    assert_int_not_equal(access(test_path(aside), F_OK), 0);
    /* A device stays a device, and is full. */
    struct stat facts;
    assert_int_equal(symlink("/dev/full", test_path("device")), 0);
    assert_int_equal(tr_convert_to_tfrecord(source, test_path("device"), TR_PACKING_NONE), TR_EIO);
    assert_int_equal(stat(test_path("device"), &facts), 0);
    assert_true(S_ISCHR(facts.st_mode));
    tr_source_close(&source);
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
    convert("full", TR_PACKING_GZIP);
    tr_source *source = must_open("{idx: {images: images, labels: labels}}");
    int64_t live = tr_alloc_live();
    for (int n = 0, done = 0; !done; n++) {
        int left = n;
        tr_alloc_set_hook(fail_nth, &left);
        tr_status read = try_open(describe("full", ""));
        const tr_status wanted = left < 0 ? TR_ENOMEM : TR_OK; /* one was refused */
        left = n;
        tr_status written = tr_convert_to_tfrecord(source, test_path("again"), TR_PACKING_ZLIB);
        tr_alloc_set_hook(NULL, NULL);
        assert_int_equal(tr_alloc_live(), live);
        assert_int_equal(read, wanted);
        assert_int_equal(written, left < 0 ? TR_ENOMEM : TR_OK);
        done = read == TR_OK && written == TR_OK;
        if (done) assert_true(n >= 10);
    }
    tr_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_known_bytes),
        cmocka_unit_test(test_entries_without_a_value),
        cmocka_unit_test(test_other_encodings),
        cmocka_unit_test(test_floats_and_targets),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_every_flip),
        cmocka_unit_test(test_skip),
        cmocka_unit_test(test_late_check),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_nothing_is_left_behind),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, write_idx, NULL);
}
