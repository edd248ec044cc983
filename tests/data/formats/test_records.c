/* Files of records: what is written is read again in every packing and size, and what is wrong is told with
 * its place. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/hash.h"
#include "data/formats/tfrecord.h"
#include "data/support.h"
#include "io/record.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define MOST          ((size_t)3 << 20)

static uint8_t data[MOST];

static void fill(void)
{
    uint32_t random = 1;
    for (size_t i = 0; i < sizeof data; i++) {
        random = random * 1664525 + 1013904223;
        data[i] = (uint8_t)(random >> 24);
    }
}

static tr_status open_records(const char *name, int packing, struct tr_record_file *file)
{
    char *path = tr_strdup(test_path(name));
    if (!path) return TR_ENOMEM;
    return tr_record_file_open(path, packing, file);
}

static void write_records(enum tr_packing packing, const size_t *sizes, int count)
{
    tr_record_writer *writer = NULL;
    assert_int_equal(tr_record_writer_create(test_path("records"), packing, &writer), TR_OK);
    for (int i = 0; i < count; i++) assert_int_equal(tr_record_writer_add(writer, data + i, sizes[i]), TR_OK);
    assert_int_equal(tr_record_writer_finish(&writer), TR_OK);
    assert_null(writer);
}

static void records_are_read_again(void **unused)
{
    static const size_t sizes[] = {0,         1, 5, 65520, 65536, 1 << 20, (1 << 20) - 16, (1 << 20) + 1,
                                   MOST - 20, 7};
    (void)unused;
    fill();
    for (int packing = TR_PACKING_NONE; packing <= TR_PACKING_ZLIB; packing++)
        for (int told = 0; told < 2; told++) {
            struct tr_record_file file;
            uint64_t offset = 0;
            write_records((enum tr_packing)packing, sizes, LENGTH(sizes));
            assert_int_equal(tr_record_file_is_packed(test_path("records")), packing != TR_PACKING_NONE);
            assert_int_equal(open_records("records", told ? packing : -1, &file), TR_OK);
            for (int i = 0; i < LENGTH(sizes); i++) {
                const uint8_t *at = NULL;
                size_t size = 0;
                enum tr_record_fault fault;
                if (tr_record_at(&file, offset, true, &at, &size, &fault) != TR_OK)
                    fail_msg("%s", tr_error_message());
                assert_int_equal(fault, TR_RECORD_GOOD);
                assert_int_equal(size, sizes[i]);
                assert_memory_equal(at, data + i, size);
                offset += 16 + size;
            }
            assert_int_equal(offset, file.size);
            tr_record_file_close(&file);
        }
}

/* The bytes of a plain file: length, its checksum, data, their checksum. */
static void plain_files_have_no_more(void **unused)
{
    static const size_t sizes[] = {3, 0};
    uint8_t wanted[3 + 32], head[TR_RECORD_HEAD], tail[TR_RECORD_TAIL];
    (void)unused;
    fill();
    write_records(TR_PACKING_NONE, sizes, 2);
    tr_record_frame(data, 3, head, tail);
    memcpy(wanted, head, 12);
    memcpy(wanted + 12, data, 3);
    memcpy(wanted + 15, tail, 4);
    tr_record_frame(data, 0, head, tail);
    memcpy(wanted + 19, head, 12);
    memcpy(wanted + 31, tail, 4);
    struct bytes got = read_file(test_path("records"));
    assert_int_equal(got.size, sizeof wanted);
    assert_memory_equal(got.data, wanted, sizeof wanted);
    assert_memory_equal(got.data, "\3\0\0\0\0\0\0\0", 8);
    free(got.data);
    /* An empty record ends the file. */
    struct tr_record_file file;
    enum tr_record_fault fault;
    const uint8_t *at = NULL;
    size_t size = 1;
    assert_int_equal(open_records("records", TR_PACKING_NONE, &file), TR_OK);
    assert_int_equal(tr_record_at(&file, 19, true, &at, &size, &fault), TR_OK);
    assert_int_equal(size, 0);
    tr_record_file_close(&file);
}

static void an_abandoned_file_is_not_there(void **unused)
{
    tr_record_writer *writer = NULL;
    (void)unused;
    write_text("records", "the old one");
    assert_int_equal(tr_record_writer_create(test_path("records"), TR_PACKING_GZIP, &writer), TR_OK);
    assert_int_equal(tr_record_writer_add(writer, data, 100), TR_OK);
    tr_record_writer_abandon(&writer);
    assert_null(writer);
    tr_record_writer_abandon(&writer);
    struct bytes got = read_file(test_path("records"));
    assert_int_equal(got.size, 11);
    free(got.data);
}

/* A device that is full: large records cannot be added, and small ones not be finished. */
static void a_full_device_is_told(void **unused)
{
    (void)unused;
    fill();
    unlink(test_path("full"));
    assert_int_equal(symlink("/dev/full", test_path("full")), 0);
    for (int packing = TR_PACKING_NONE; packing <= TR_PACKING_ZLIB; packing++)
        for (int large = 0; large < 2; large++) {
            const int64_t live = tr_alloc_live();
            tr_record_writer *writer = NULL;
            assert_int_equal(tr_record_writer_create(test_path("full"), (enum tr_packing)packing, &writer),
                             TR_OK);
            tr_status status = tr_record_writer_add(writer, data, large ? MOST : 5);
            assert_int_equal(status, large ? TR_EIO : TR_OK);
            if (large) {
                assert_non_null(strstr(tr_error_message(), "No space left"));
                tr_record_writer_abandon(&writer);
            } else {
                assert_int_equal(tr_record_writer_finish(&writer), TR_EIO);
                assert_null(writer);
            }
            assert_int_equal(tr_alloc_live(), live);
        }
}

/* ---- faults ---- */

static void expect_fault(const uint8_t *bytes, size_t size, uint64_t offset, enum tr_record_fault wanted,
                         const char *message)
{
    struct tr_record_file file;
    const uint8_t *at;
    size_t length;
    enum tr_record_fault fault;
    write_file("bad", bytes, size);
    assert_int_equal(open_records("bad", TR_PACKING_NONE, &file), TR_OK);
    assert_int_not_equal(tr_record_at(&file, offset, true, &at, &length, &fault), TR_OK);
    if (fault != wanted || !strstr(tr_error_message(), message))
        fail_msg("fault %d, \"%s\" lacks \"%s\"", (int)fault, tr_error_message(), message);
    tr_record_file_close(&file);
}

static void faults_have_their_place(void **unused)
{
    static const size_t sizes[] = {3, 4};
    struct tr_record_file file;
    (void)unused;
    fill();
    write_records(TR_PACKING_NONE, sizes, 2);
    struct bytes good = read_file(test_path("records"));
    expect_fault(good.data, 19, 19, TR_RECORD_BAD_LENGTH,
                 "bad: truncated at offset 19: a record starts at 19; get the file again");
    expect_fault(good.data, 30, 19, TR_RECORD_BAD_LENGTH,
                 "bad: truncated at offset 30: a record starts at 19");
    expect_fault(good.data, 31, 19, TR_RECORD_BAD_LENGTH,
                 "bad: truncated at offset 31: the record at 19 has 4 bytes of data; get the file again");
    expect_fault(good.data, 38, 19, TR_RECORD_BAD_LENGTH,
                 "bad: truncated at offset 38: the record at 19 has 4 bytes");
    good.data[19] ^= 1;
    expect_fault(good.data, good.size, 19, TR_RECORD_BAD_LENGTH,
                 "bad: record at offset 19: checksum of the length is ");
    assert_non_null(strstr(tr_error_message(), "set on_bad_record: skip to go without the rest"));
    good.data[19] ^= 1;
    good.data[31] ^= 1;
    expect_fault(good.data, good.size, 19, TR_RECORD_BAD_DATA,
                 "bad: record at offset 19: checksum of the data is ");
    assert_int_equal(open_records("bad", TR_PACKING_NONE, &file), TR_OK);
    const uint8_t *at;
    size_t length;
    enum tr_record_fault fault;
    assert_int_equal(tr_record_at(&file, 19, false, &at, &length, &fault), TR_OK); /* not looked at */
    assert_int_equal(length, 4);
    tr_record_file_close(&file);
    free(good.data);
    write_file("empty", "", 0);
    assert_int_equal(open_records("empty", -1, &file), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "empty: the file is empty"));
    tr_record_file_close(&file);
    assert_int_equal(open_records("nowhere", -1, &file), TR_ENOTFOUND);
    tr_record_file_close(&file);
    assert_false(tr_record_file_is_packed(test_path("empty")));
    assert_false(tr_record_file_is_packed(test_path("nowhere")));
}

static void a_lack_of_memory_leaves_nothing(void **unused)
{
    (void)unused;
    for (int packing = TR_PACKING_NONE; packing <= TR_PACKING_ZLIB; packing++)
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            struct tr_record_file file = {0};
            tr_record_writer *writer = NULL;
            unlink(test_path("records"));
            refuse_begin(at);
            tr_status status =
                tr_record_writer_create(test_path("records"), (enum tr_packing)packing, &writer);
            if (status == TR_OK) status = tr_record_writer_add(writer, data, 5000);
            if (status == TR_OK) status = tr_record_writer_finish(&writer);
            if (status == TR_OK) status = open_records("records", -1, &file);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            tr_record_writer_abandon(&writer);
            tr_record_file_close(&file);
            assert_int_equal(tr_alloc_live(), live);
        }
}

/* ---- options ---- */

static void options_must_go_together(void **unused)
{
    (void)unused;
    tr_status bad = TR_EINVAL;
    static const size_t sizes[] = {3};
    write_records(TR_PACKING_NONE, sizes, 1);
    expect_refusal("{tfrecord: {path: records, image: \"\"}}", bad, "tfrecord: give image or floats");
    expect_refusal("{tfrecord: {path: records, height: 2}}", bad,
                   "height and width of the images are needed");
    expect_refusal("{tfrecord: {path: records, width: 2}}", bad, "height and width of the images are needed");
    expect_refusal(
        "{tfrecord: {path: records, height: 2, width: 2, check: read, classes: 2, on_bad_record: skip}}", bad,
        "tfrecord: on_bad_record: skip needs check: open");
    expect_refusal("{tfrecord: {path: records, height: 2, width: 2, check: read}}", bad,
                   "tfrecord: check: read needs classes, since labels are not looked at before training");
    /* without classes there is nothing to look at */
    assert_int_not_equal(
        try_open("{tfrecord: {path: records, height: 2, width: 2, check: read, label: \"\"}}"), bad);
    assert_int_not_equal(
        try_open("{tfrecord: {path: records, height: 2, width: 2, check: read, targets: x}}"), bad);
    expect_refusal("{tfrecord: {path: [], height: 2, width: 2}}", bad, "path");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_read_again),          cmocka_unit_test(plain_files_have_no_more),
        cmocka_unit_test(an_abandoned_file_is_not_there),  cmocka_unit_test(faults_have_their_place),
        cmocka_unit_test(a_lack_of_memory_leaves_nothing), cmocka_unit_test(a_full_device_is_told),
        cmocka_unit_test(options_must_go_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
