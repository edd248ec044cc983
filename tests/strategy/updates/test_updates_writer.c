/* The writer of a log of updates: it goes on behind what a checkpoint covers, what it has added is durable,
 * and where the file system or memory fails, the same can be added later. */
#include "strategy/updates/blocks.h"
#include "strategy/updates/file.h"

#include "base/alloc.h"
#include "base/files/file_fault.h"
#include "refuse.h"
#include "scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

static const struct tr_update_session session = {
    .workers = 2, .servers = 1, .parts = 1, .staleness = TR_UPDATE_ANY, .steps = 9};

/* ---- what a checkpoint covers ---- */

enum { SESSION = 1, RECORDS, STATE };

/* Blocks by their kinds, and the updates done at the end of each. */
static const struct {
    uint32_t kind;
    int64_t step;
} history[] = {{SESSION, 0}, {RECORDS, 2}, {STATE, 2}, {STATE, 2},   {RECORDS, 2}, {STATE, 2},
               {RECORDS, 4}, {STATE, 4},   {STATE, 4}, {SESSION, 4}, {RECORDS, 5}, {STATE, 6}};
#define BLOCKS (int)(sizeof history / sizeof history[0])

/* Returns where each block ends. */
static void make_history(struct bytes *bytes, size_t ends[BLOCKS])
{
    static const uint32_t numbers[] = {1, 0, 0, 2, 1, 1};
    int64_t count = 0;
    *bytes = (struct bytes){.size = 0};
    for (int i = 0; i < BLOCKS; i++) {
        struct bytes data = {.size = 0};
        if (history[i].kind == SESSION) data = bytes_session(numbers, INT64_MAX, history[i].step, 9);
        if (history[i].kind == STATE) bytes_fill(&data, 1, 32);
        for (; history[i].kind == RECORDS && count < history[i].step; count++)
            bytes_record(&data, count, 0, 0, TR_UPDATE_APPLIED);
        if (history[i].kind == RECORDS) bytes_record(&data, count, 0, 0, TR_UPDATE_TOLD);
        bytes_block(bytes, history[i].kind, &data, history[i].step);
        ends[i] = bytes->size;
    }
}

/* A run of `step` updates goes on with the first so many blocks of a log (0: with none). */
static void expect_kept(const struct bytes *bytes, size_t size, int64_t step, bool same, size_t kept)
{
    const char *from = scratch_in("from"), *path = same ? from : scratch_in("to");
    struct tr_update_writer writer;
    struct tr_file_content content;
    bool found = !kept;
    scratch_write("from", bytes->at, size);
    must(tr_update_writer_begin(NULL, path, from, step, &writer, &found));
    assert_int_equal(found, kept > 0);
    assert_int_equal(writer.size, kept);
    must(tr_file_read(path, sizeof bytes->at, &content));
    assert_int_equal(content.size, kept);
    assert_memory_equal(content.data, bytes->at, kept);
    tr_file_content_free(&content);
    /* And adds blocks that go on from them. */
    struct tr_update_session next = session;
    struct tr_update_log log = {0}, again = {0};
    int64_t torn;
    next.first = kept ? step : 0;
    must(tr_update_log_begin(&log, &next));
    must(tr_update_log_add(&log, &(struct tr_update){.number = next.first}, 1));
    must(tr_update_writer_add(NULL, &writer, &log));
    must(tr_update_file_read(path, &again, &torn));
    assert_int_equal(torn, 0);
    assert_int_equal(again.session[again.sessions - 1].first, next.first);
    assert_int_equal(again.record[again.records - 1].number, next.first);
    tr_update_log_release(&again);
    tr_update_log_release(&log);
    tr_update_writer_release(&writer);
}

static void a_writer_goes_on_behind_a_checkpoint(void **state)
{
    (void)state;
    struct bytes bytes;
    size_t ends[BLOCKS];
    make_history(&bytes, ends);
    for (int same = 0; same < 2; same++) {
        expect_kept(&bytes, bytes.size, 0, same, ends[0]);
        expect_kept(&bytes, bytes.size, 1, same, 0);
        expect_kept(&bytes, bytes.size, 2, same, ends[3]);
        expect_kept(&bytes, bytes.size, 3, same, 0);
        expect_kept(&bytes, bytes.size, 4, same, ends[8]);
        expect_kept(&bytes, bytes.size, 5, same, ends[10]);
        expect_kept(&bytes, bytes.size, 7, same, 0);
        /* What is not whole is not covered. */
        expect_kept(&bytes, ends[3] - 1, 2, same, ends[2]);
        expect_kept(&bytes, ends[1] - 1, 2, same, 0);
        bytes.at[ends[2]]++;
        expect_kept(&bytes, bytes.size, 2, same, ends[2]);
        expect_kept(&bytes, bytes.size, 4, same, 0);
        bytes.at[ends[2]]--;
    }
}

static void without_a_history_it_begins_anew(void **state)
{
    (void)state;
    const char *const none[] = {NULL, "", scratch_in("nothing"), scratch_place /* a directory */};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        const char *path = scratch_in("anew");
        struct tr_update_writer writer;
        struct tr_file_content content;
        bool found = true;
        scratch_write_text("anew", "TRUL and the log of another run");
        must(tr_update_writer_begin(NULL, path, none[i], 0, &writer, &found));
        assert_false(found);
        assert_string_equal(writer.path, path);
        assert_int_equal(writer.size + writer.blocks + writer.crc, 0);
        must(tr_file_read(path, 4096, &content));
        assert_int_equal(content.size, 0);
        tr_file_content_free(&content);
        tr_update_writer_release(&writer);
    }
}

/* ---- failures ---- */

static void make_log(struct tr_update_log *log)
{
    static const struct tr_update records[] = {{.number = 0}, {.number = 1, .worker = 1, .missed = 1}};
    *log = (struct tr_update_log){0};
    must(tr_update_log_begin(log, &session));
    must(tr_update_log_add(log, records, 2));
    must(tr_update_log_mark(log, 2, HASH));
}

/* The log, once, and whole. */
static void expect_log(const char *path)
{
    struct tr_update_log log = {0};
    int64_t torn;
    must(tr_update_file_read(path, &log, &torn));
    assert_int_equal(torn, 0);
    assert_int_equal(log.sessions, 1);
    assert_int_equal(log.records, 2);
    assert_int_equal(log.states, 1);
    tr_update_log_release(&log);
}

/* Whichever call of the file system fails, in whatever way, and the next time, too. */
static void what_could_not_be_written_is_added_later(void **state)
{
    (void)state;
    static const enum fault_kind kinds[] = {FAULT_ERROR, FAULT_SHORT_WRITE};
    for (size_t k = 0; k < 2; k++)
        for (int persistent = 0; persistent < 2; persistent++) {
            bool done = false;
            for (int64_t at = 1; !done; at++) {
                struct tr_update_log log;
                struct tr_update_writer writer, before;
                struct fault_files fault;
                bool found;
                const char *path = scratch_in("failing");
                make_log(&log);
                must(tr_update_writer_begin(NULL, path, NULL, 0, &writer, &found));
                before = writer;
                fault_files_init(&fault, kinds[k], ENOSPC, at, persistent);
                tr_status status = tr_update_writer_add(&fault.system, &writer, &log);
                done = status == TR_OK;
                if (!done) {
                    assert_int_equal(status, TR_EIO);
                    assert_true(writer.torn);
                    assert_int_equal(writer.size, before.size);
                    assert_int_equal(writer.blocks, before.blocks);
                    assert_int_equal(writer.crc, before.crc);
                    assert_int_equal(writer.count, before.count);
                    /* Nor is what is left of it mended. */
                    fault_files_init(&fault, FAULT_ERROR, EIO, 1, true);
                    assert_int_equal(tr_update_writer_add(&fault.system, &writer, &log), TR_EIO);
                    assert_true(writer.torn);
                    must(tr_update_writer_add(NULL, &writer, &log));
                }
                assert_false(writer.torn);
                assert_int_equal(writer.blocks, 3);
                assert_int_equal(writer.count, 2);
                expect_log(path);
                tr_update_log_release(&log);
                tr_update_writer_release(&writer);
                assert_true(at < 100);
            }
        }
}

/* A writer that cannot begin leaves the log that is there. */
static void what_was_there_stays_where_it_cannot_begin(void **state)
{
    (void)state;
    bool done = false;
    for (int64_t at = 1; !done; at++) {
        const char *path = scratch_in("kept");
        struct tr_update_log log;
        struct tr_update_writer writer;
        struct fault_files fault;
        bool found;
        make_log(&log);
        must(tr_update_writer_begin(NULL, path, NULL, 0, &writer, &found));
        must(tr_update_writer_add(NULL, &writer, &log));
        tr_update_writer_release(&writer);
        fault_files_init(&fault, FAULT_ERROR, ENOSPC, at, false);
        tr_status status = tr_update_writer_begin(&fault.system, path, path, 2, &writer, &found);
        done = status == TR_OK;
        if (!done) assert_int_equal(status, TR_EIO);
        assert_int_equal(writer.path != NULL, done);
        expect_log(path);
        tr_update_writer_release(&writer);
        tr_update_log_release(&log);
        assert_true(at < 100);
    }
}

static void a_file_that_became_shorter_gets_nothing(void **state)
{
    (void)state;
    const char *path = scratch_in("short");
    struct tr_update_log log;
    struct tr_update_writer writer;
    bool found;
    make_log(&log);
    must(tr_update_writer_begin(NULL, path, NULL, 0, &writer, &found));
    must(tr_update_writer_add(NULL, &writer, &log));
    char message[SCRATCH_PATH + 80];
    writer.torn = true;
    assert_int_equal(truncate(path, 303), 0);
    assert_int_equal(tr_update_writer_add(NULL, &writer, &log), TR_EIO);
    snprintf(message, sizeof message,
             "\"%s\" has become shorter, from 304 to 303 bytes; nothing more is added", path);
    assert_string_equal(tr_error_message(), message);
    assert_true(writer.torn);
    struct tr_file_content content;
    must(tr_file_read(path, 4096, &content));
    assert_int_equal(content.size, 303);
    tr_file_content_free(&content);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(tr_update_writer_add(NULL, &writer, &log), TR_ENOTFOUND);
    tr_update_writer_release(&writer);
    tr_update_log_release(&log);
}

/* Also that which a history is read with: a log is not dropped for want of it. */
static void missing_memory_is_told(void **state)
{
    (void)state;
    for (int torn = 0; torn < 2; torn++) {
        bool done = false;
        for (int64_t at = 0; !done; at++) {
            const char *path = scratch_in("memory");
            struct tr_update_log log;
            struct tr_update_writer writer;
            bool found;
            make_log(&log);
            must(tr_update_writer_begin(NULL, path, NULL, 0, &writer, &found));
            writer.torn = torn;
            int64_t live = tr_alloc_live();
            refuse_begin(at);
            tr_status status = tr_update_writer_add(NULL, &writer, &log);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            if (!done) must(tr_update_writer_add(NULL, &writer, &log));
            assert_int_equal(tr_alloc_live(), live);
            expect_log(path);
            tr_update_log_release(&log);
            tr_update_writer_release(&writer);
        }
    }
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        struct tr_update_writer writer;
        bool found;
        refuse_begin(at);
        tr_status status =
            tr_update_writer_begin(NULL, scratch_in("memory"), scratch_in("memory"), 2, &writer, &found);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) assert_true(found);
        expect_log(scratch_in("memory"));
        tr_update_writer_release(&writer);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* ---- durability ---- */

static int64_t synced;

static int count_sync(void *context, int descriptor)
{
    synced++;
    return tr_file_ops_posix.sync(context, descriptor);
}

static void what_was_added_is_durable(void **state)
{
    (void)state;
    struct tr_file_ops ops = tr_file_ops_posix;
    const tr_file_system files = {&ops, NULL};
    struct tr_update_log log;
    struct tr_update_writer writer;
    bool found;
    ops.sync = count_sync;
    make_log(&log);
    must(tr_update_writer_begin(&files, scratch_in("durable"), NULL, 0, &writer, &found));
    synced = 0;
    must(tr_update_writer_add(&files, &writer, &log));
    assert_int_equal(synced, 1);
    tr_update_writer_release(&writer);
    tr_update_log_release(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_writer_goes_on_behind_a_checkpoint),
        cmocka_unit_test(without_a_history_it_begins_anew),
        cmocka_unit_test(what_could_not_be_written_is_added_later),
        cmocka_unit_test(what_was_there_stays_where_it_cannot_begin),
        cmocka_unit_test(a_file_that_became_shorter_gets_nothing),
        cmocka_unit_test(missing_memory_is_told),
        cmocka_unit_test(what_was_added_is_durable),
    };
    return cmocka_run_group_tests_name("strategy.updates_writer", tests, scratch_place_make,
                                       scratch_place_remove);
}
