/* The file of a log of updates against blocks that are made by hand: what is written are these bytes, what is
 * in them is read, and what is wrong with one is told. */
#include "strategy/updates/blocks.h"
#include "strategy/updates/file.h"

#include "base/alloc.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* 00, 01, ... as the digest of the parameters at the beginning; f0, ... as that of a state. */
#define BEGUN "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define STATE "f0f1f2f3f4f5f6f7f8f9fafbfcfdfefff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
#define DATA  "4041424340414243404142434041424340414243404142434041424340414243"
#define SOME  "8080808080808080808080808080808080808080808080808080808080808080"

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

static void put_digest(struct bytes *bytes, size_t at, uint8_t first, uint8_t most)
{
    for (int i = 0; i < 32; i++) bytes->at[at + (size_t)i] = (uint8_t)(first + i % (most + 1));
}

/* ---- the same log, by hand and in memory ---- */

static const uint32_t numbers[] = {1, 0x102, 2, 3, 0x201, 2}, others[] = {1, 0, 0, 2, 1, 1};

static void make_bytes(struct bytes *bytes)
{
    struct bytes session = bytes_session(numbers, 0x1020304050607, 1, 0x2000300040005),
                 records[3] = {{.size = 0}}, state = {.size = 0};
    *bytes = (struct bytes){.size = 0};
    put_digest(&session, 48, 0x80, 0);
    put_digest(&session, 80, 0x40, 3);
    put_digest(&session, 112, 0, 31);
    bytes_block(bytes, 1, &session, 1);
    bytes_record(&records[0], 0x1020304050607, 0, 2, TR_UPDATE_APPLIED);
    bytes_block(bytes, 2, &records[0], 1);
    /* The second half of the first update, and a message. */
    bytes_record(&records[1], 3, 0, 1, TR_UPDATE_APPLIED);
    bytes_record(&records[1], 2, 0, 0, TR_UPDATE_TOLD);
    bytes_record(&records[1], -1, 0, 2, TR_UPDATE_LOST);
    bytes_block(bytes, 2, &records[1], 2);
    bytes_fill(&state, 0, 32);
    put_digest(&state, 0, 0xf0, 15);
    bytes_block(bytes, 3, &state, 2);
    session = bytes_session(others, INT64_MAX, 2, 9);
    bytes_block(bytes, 1, &session, 2);
    bytes_record(&records[2], 2, 0, 0, TR_UPDATE_APPLIED);
    bytes_record(&records[2], 3, 1, 1, TR_UPDATE_APPLIED);
    bytes_block(bytes, 2, &records[2], 4);
}

static const struct tr_update_session first = {.mode = TR_UPDATE_BACKUP,
                                               .workers = 3,
                                               .servers = 0x201,
                                               .parts = 2,
                                               .staleness = 0x1020304050607,
                                               .first = 1,
                                               .steps = 0x2000300040005,
                                               .numerics = 0x102,
                                               .job = SOME,
                                               .data = DATA,
                                               .hash = BEGUN},
                                      second = {.workers = 2,
                                                .servers = 1,
                                                .parts = 1,
                                                .staleness = TR_UPDATE_ANY,
                                                .first = 2,
                                                .steps = 9};

static const struct tr_update records[] = {
    {0x1020304050607, 0, 2, TR_UPDATE_APPLIED, 0},
    {3, 0, 1, TR_UPDATE_APPLIED, 0},
    {2, 0, 0, TR_UPDATE_TOLD, 0},
    {-1, 0, 2, TR_UPDATE_LOST, 0},
    {2, 0, 0, TR_UPDATE_APPLIED, 0},
    {3, 1, 1, TR_UPDATE_APPLIED, 0},
};

/* Once all that is in the log, and then the rest, in a second call. */
static void what_is_written_are_these_bytes(void **state)
{
    (void)state;
    struct bytes expected;
    struct tr_update_log log = {0};
    struct tr_update_writer writer;
    struct tr_file_content content;
    bool found = true;
    const char *path = scratch_in("written");
    must(tr_update_writer_begin(NULL, path, NULL, 0, &writer, &found));
    assert_false(found);
    must(tr_update_log_begin(&log, &first));
    must(tr_update_log_add(&log, records, 1));
    must(tr_update_writer_add(NULL, &writer, &log));
    assert_int_equal(writer.count, 1);
    tr_update_log_clear(&log);
    must(tr_update_writer_add(NULL, &writer, &log)); /* nothing */
    must(tr_update_log_add(&log, records + 1, 3));
    must(tr_update_log_mark(&log, 2, STATE));
    must(tr_update_log_begin(&log, &second));
    must(tr_update_log_add(&log, records + 4, 2));
    must(tr_update_writer_add(NULL, &writer, &log));
    make_bytes(&expected);
    must(tr_file_read(path, sizeof expected.at, &content));
    assert_int_equal(content.size, expected.size);
    assert_memory_equal(content.data, expected.at, expected.size);
    assert_int_equal(writer.size, expected.size);
    assert_int_equal(writer.blocks, expected.blocks);
    assert_int_equal(writer.crc, expected.crc);
    tr_file_content_free(&content);
    tr_update_log_release(&log);
    tr_update_writer_release(&writer);
    assert_null(writer.path);
    must(tr_update_writer_add(NULL, &writer, &log)); /* to no file */
}

static void expect_session(const struct tr_update_session *got, const struct tr_update_session *expected,
                           int64_t begin)
{
    assert_int_equal(got->mode, expected->mode);
    assert_int_equal(got->workers, expected->workers);
    assert_int_equal(got->servers, expected->servers);
    assert_int_equal(got->parts, expected->parts);
    assert_true(got->staleness == expected->staleness);
    assert_true(got->first == expected->first);
    assert_true(got->steps == expected->steps);
    assert_int_equal(got->numerics, expected->numerics);
    assert_string_equal(got->job, expected->job);
    assert_string_equal(got->data, expected->data);
    assert_string_equal(got->hash, expected->hash);
    assert_int_equal(got->begin, begin);
}

static void what_is_in_them_is_read(void **state)
{
    (void)state;
    struct bytes bytes;
    struct tr_update_log log = {0};
    int64_t torn = -1;
    make_bytes(&bytes);
    must(tr_update_bytes_read("bytes", bytes.at, bytes.size, &log, &torn));
    assert_int_equal(torn, 0);
    assert_int_equal(log.sessions, 2);
    expect_session(&log.session[0], &first, 0);
    expect_session(&log.session[1], &second, 4);
    assert_int_equal(log.records, 6);
    assert_memory_equal(log.record, records, sizeof records);
    assert_int_equal(log.states, 1);
    assert_int_equal(log.state[0].at, 4);
    assert_int_equal(log.state[0].step, 2);
    assert_string_equal(log.state[0].hash, STATE);
    tr_update_log_release(&log);
}

/* ---- what is wrong ---- */

static void refuse(const struct bytes *bytes, tr_status status, const char *message)
{
    struct tr_update_log log = {0};
    int64_t live = tr_alloc_live();
    assert_int_equal(tr_update_bytes_read("bytes", bytes->at, bytes->size, &log, NULL), status);
    assert_string_equal(tr_error_message(), message);
    assert_null(log.session);
    assert_null(log.record);
    assert_int_equal(tr_alloc_live(), live);
}

/* A whole session, and a block behind it that has a checksum and something wrong. */
static void refuse_block(uint32_t kind, size_t size, const char *message)
{
    struct bytes bytes = {.size = 0}, session = bytes_session(others, 3, 0, 9), data = {.size = 0};
    bytes_block(&bytes, 1, &session, 0);
    bytes_fill(&data, 0, size);
    if (kind == 1 && size > 0) data.at[0] = 1;
    bytes_block(&bytes, kind, &data, 0);
    refuse(&bytes, TR_ECORRUPT, message);
}

static void blocks_of_other_sizes_are_refused(void **state)
{
    (void)state;
    refuse_block(
        1, 143,
        "bytes: block 1, which ends at byte 351, is a session, which has 144 bytes, but here are 143; the "
        "log is damaged");
    refuse_block(
        1, 145,
        "bytes: block 1, which ends at byte 353, is a session, which has 144 bytes, but here are 145; the "
        "log is damaged");
    refuse_block(
        1, 3,
        "bytes: block 1, which ends at byte 211, is a session, which has 144 bytes, but here are 3; the "
        "log is damaged");
    refuse_block(2, 17,
                 "bytes: block 1, which ends at byte 225, is of records of 16 bytes, but has 17; the log is "
                 "damaged");
    refuse_block(
        3, 31,
        "bytes: block 1, which ends at byte 239, is a hash of 32 bytes, but has 31; the log is damaged");
    refuse_block(
        4, 8,
        "bytes: block 1, which ends at byte 216, is of none of the kinds 1 to 3, but of 4; the log is "
        "damaged");
    refuse_block(
        0, 8,
        "bytes: block 1, which ends at byte 216, is of none of the kinds 1 to 3, but of 0; the log is "
        "damaged");
}

static void later_formats_are_refused(void **state)
{
    (void)state;
    for (size_t size = 4; size <= 145; size += 141) {
        struct bytes bytes = {.size = 0}, data = {.size = 0};
        bytes_number(&data, 2, 4);
        bytes_fill(&data, 7, size - 4);
        bytes_block(&bytes, 1, &data, 0);
        refuse(&bytes, TR_EUNSUPPORTED,
               "bytes: a log of format 2, this program reads 1; use the one that wrote it");
    }
    /* Records that are well, of a file that breaks a rule. */
    struct bytes bytes = {.size = 0}, session = bytes_session(others, 3, 0, 9), data = {.size = 0};
    bytes_block(&bytes, 1, &session, 0);
    bytes_record(&data, 0, 0, 2, TR_UPDATE_APPLIED);
    bytes_block(&bytes, 2, &data, 1);
    refuse(&bytes, TR_EFORMAT, "bytes: record 1 is of worker 2; its session has 2, from 0");
}

static void other_files_are_refused(void **state)
{
    (void)state;
    static const char *const beginnings[] = {"", "TRU", "TRUX", "TRXL and more of it"};
    struct bytes bytes;
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        bytes = (struct bytes){.size = 0};
        bytes_text(&bytes, beginnings[i]);
        refuse(&bytes, TR_EFORMAT,
               "bytes is no log of updates: it does not begin with \"TRUL\"; name the directory of an "
               "asynchronous "
               "run, or its updates.log");
    }
    bytes = (struct bytes){.size = 0};
    bytes_text(&bytes, "TRUL");
    refuse(&bytes, TR_EFORMAT, "bytes: the log does not begin with a session");
    struct tr_update_log log = {0};
    assert_int_equal(tr_update_file_read(scratch_in("none"), &log, NULL), TR_ENOTFOUND);
}

/* ---- what a kill leaves ---- */

/* The rest behind the log: torn, or damage. */
static void expect_rest(const struct bytes *bytes, size_t whole, bool torn)
{
    struct tr_update_log log = {0};
    int64_t left = -1;
    if (!torn) {
        refuse(
            bytes, TR_ECORRUPT,
            "bytes: 6 blocks are whole, and what follows from byte 608 on is no block whose checksum goes on "
            "from them: one is damaged, missing or out of turn; take the file from a copy");
        return;
    }
    must(tr_update_bytes_read("bytes", bytes->at, bytes->size, &log, &left));
    assert_int_equal(left, bytes->size - whole);
    assert_int_equal(log.records, 6);
    tr_update_log_release(&log);
}

static void a_rest_is_torn_or_damaged(void **state)
{
    (void)state;
    struct bytes bytes;
    make_bytes(&bytes);
    size_t whole = bytes.size;
    assert_int_equal(whole, 608);
    bytes_fill(&bytes, 0, 100); /* room that the file system has made */
    expect_rest(&bytes, whole, true);
    bytes_fill(&bytes, 1, 1);
    expect_rest(&bytes, whole, false);

    static const struct {
        const char *text;
        bool torn;
    } texts[] = {{"T", true},   {"TRU", true},   {"TRUL", true},  {"X", false},
                 {"TX", false}, {"TRUX", false}, {"TRULx", true}, {"XRULx", false}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        make_bytes(&bytes);
        bytes_text(&bytes, texts[i].text);
        expect_rest(&bytes, whole, texts[i].torn);
    }
}

/* A block whose data, number, reserved bytes or checksum are wrong, as the last one or with something behind.
 */
static void blocks_that_are_not_right_are_not_read(void **state)
{
    (void)state;
    static const struct {
        int at;
        uint8_t by;
    } wrong[] = {{12, 1}, {15, 1}, {16, 1}, {24, 1}, {27, 128}, {28, 1}, {31, 128}, {32, 1}, {47, 128}};
    struct bytes data = {.size = 0};
    bytes_record(&data, 4, 0, 0, TR_UPDATE_TOLD);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct bytes bytes;
        make_bytes(&bytes);
        size_t whole = bytes.size;
        bytes_block(&bytes, 2, &data, 4);
        bytes.at[whole + (size_t)wrong[i].at] ^= wrong[i].by;
        expect_rest(&bytes, whole, true);
        bytes_fill(&bytes, 0, 1);
        expect_rest(&bytes, whole, false);
        bytes.size -= 2; /* not whole */
        expect_rest(&bytes, whole, true);
    }
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    struct bytes bytes;
    make_bytes(&bytes);
    scratch_write("whole", bytes.at, bytes.size);
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        struct tr_update_log log = {0};
        refuse_begin(at);
        tr_status status = tr_update_file_read(scratch_in("whole"), &log, NULL);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_update_log_release(&log);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_are_these_bytes),
        cmocka_unit_test(what_is_in_them_is_read),
        cmocka_unit_test(blocks_of_other_sizes_are_refused),
        cmocka_unit_test(later_formats_are_refused),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(a_rest_is_torn_or_damaged),
        cmocka_unit_test(blocks_that_are_not_right_are_not_read),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("strategy.updates_blocks", tests, scratch_place_make,
                                       scratch_place_remove);
}
