/* The log of an asynchronous run: what is written is read again, as a file and as text; what a kill leaves is
 * cut off; what breaks a rule or was damaged is refused by name. */
#include "strategy/updates/file.h"
#include "strategy/updates/text.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define HASH  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static const char sample[] =
    "# two sessions\n"
    "session, workers=3, servers=2, parts=2, mode=backup, steps=9, numerics=2, job=" HASH ", data=" OTHER "\n"
    "applied, 0, 0, 0\n"
    "told\n"
    "applied, 1, 1, 0\n"
    "dropped, 2, 2, 0\n"
    "lost, 2\n"
    "applied 2 1 1\n"
    "applied 3 0 1\n"
    "gathered\n"
    "state, " HASH "\n"
    "session, workers=2, servers=1, mode=bounded, staleness=1, steps=9, hash=" HASH "\n"
    "applied, 2, 1, 2\n"
    "applied, 3, 0, 2   # stale\n"
    "lost, 1, 4\n"
    "applied, 4, 0, 4\n"
    "drained\n";

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

static void expect_same(const struct tr_update_log *a, const struct tr_update_log *b)
{
    assert_int_equal(a->records, b->records);
    assert_int_equal(a->sessions, b->sessions);
    assert_int_equal(a->states, b->states);
    assert_memory_equal(a->record, b->record, (size_t)a->records * sizeof *a->record);
    for (int64_t i = 0; i < a->sessions; i++) {
        const struct tr_update_session *s = &a->session[i], *t = &b->session[i];
        assert_int_equal(s->mode, t->mode);
        assert_int_equal(s->workers, t->workers);
        assert_int_equal(s->servers, t->servers);
        assert_int_equal(s->parts, t->parts);
        assert_int_equal(s->staleness, t->staleness);
        assert_int_equal(s->first, t->first);
        assert_int_equal(s->steps, t->steps);
        assert_int_equal(s->begin, t->begin);
        assert_int_equal(s->numerics, t->numerics);
        assert_string_equal(s->job, t->job);
        assert_string_equal(s->data, t->data);
        assert_string_equal(s->hash, t->hash);
    }
    for (int64_t i = 0; i < a->states; i++) {
        assert_int_equal(a->state[i].at, b->state[i].at);
        assert_int_equal(a->state[i].step, b->state[i].step);
        assert_string_equal(a->state[i].hash, b->state[i].hash);
    }
}

static void read_sample(struct tr_update_log *log)
{
    *log = (struct tr_update_log){0};
    must(tr_update_text_read("sample", sample, sizeof sample - 1, log));
}

/* ---- as text ---- */

static void text_is_read_and_written(void **state)
{
    (void)state;
    struct tr_update_log log, again = {0};
    struct tr_update_figures figures;
    struct tr_text text = TR_TEXT_INIT;
    char *written;
    read_sample(&log);
    assert_int_equal(log.sessions, 2);
    assert_int_equal(log.records, 13);
    assert_int_equal(log.session[1].first, 2);
    assert_int_equal(log.session[1].begin, 8);
    assert_int_equal(log.record[9].missed, 1);
    tr_update_log_count(&log, &figures);
    assert_int_equal(figures.updates, 5);
    assert_int_equal(figures.applied, 7);
    assert_int_equal(figures.dropped, 1);
    assert_int_equal(figures.lost, 2);
    assert_int_equal(figures.staleness[0], 6);
    assert_int_equal(figures.staleness[1], 1);
    tr_update_text_write(&log, &text);
    must(tr_text_finish(&text, &written));
    must(tr_update_text_read("written", written, strlen(written), &again));
    expect_same(&log, &again);
    tr_free(written);
    tr_update_log_release(&log);
    tr_update_log_release(&again);
}

static void what_is_left_out_follows_from_the_records(void **state)
{
    (void)state;
    static const char text[] = "applied 0 2 0\napplied 1 0 0\n\napplied 2 1 1";
    struct tr_update_log log = {0};
    must(tr_update_text_read("text", text, sizeof text - 1, &log));
    assert_int_equal(log.session[0].workers, 3);
    assert_int_equal(log.session[0].servers, 1);
    assert_int_equal(log.session[0].parts, 1);
    assert_int_equal(log.session[0].steps, 3);
    assert_int_equal(log.record[2].missed, 1);
    tr_update_log_release(&log);
}

static void the_most_workers_are_accepted(void **state)
{
    (void)state;
    static const char text[] = "session workers=4096 servers=4096\napplied 0 4095 0";
    struct tr_update_log log = {0};
    must(tr_update_text_read("text", text, sizeof text - 1, &log));
    assert_int_equal(log.session[0].workers, 4096);
    assert_int_equal(log.session[0].servers, 4096);
    assert_int_equal(log.record[0].worker, 4095);
    tr_update_log_release(&log);
}

static void refuse_text(const char *text, tr_status status, const char *said)
{
    struct tr_update_log log = {0};
    int64_t live = tr_alloc_live();
    if (tr_update_text_read("text", text, strlen(text), &log) != status || !strstr(tr_error_message(), said))
        fail_msg("\"%s\": %s, not \"%s\"", text, tr_error_message(), said);
    assert_null(log.record);
    assert_int_equal(tr_alloc_live(), live);
}

static void texts_that_break_a_rule_are_refused(void **state)
{
    (void)state;
    refuse_text("", TR_EFORMAT, "does not begin with a session");
    refuse_text("aplied 0 0 0", TR_EFORMAT, "text:1: \"aplied\" is none of");
    refuse_text("told\napplied 0 0", TR_EFORMAT, "text:2: \"applied\" has 2 columns");
    refuse_text("applied 0 0 1", TR_EFORMAT, "the version is 1; it is 0 to 0");
    refuse_text("applied -1 0 0", TR_EFORMAT, "the contribution is -1");
    refuse_text("applied 0 4096 0", TR_EFORMAT, "the worker is 4096");
    refuse_text("session workers=4097\napplied 0 0 0", TR_EFORMAT, "4096");
    refuse_text("applied x 0 0", TR_EFORMAT, "the contribution \"x\" is not an integer");
    refuse_text("session, workers", TR_EFORMAT, "has no value");
    refuse_text("session, worker=2", TR_EFORMAT, "did you mean \"workers\"");
    refuse_text("session, mode=sync", TR_EFORMAT, "\"sync\" is none of async");
    refuse_text("session, job=12", TR_EFORMAT, "is no SHA-256");
    refuse_text("session workers=1 parts=2", TR_EFORMAT, "make an update, but here is 2");
    refuse_text("session workers=1\napplied 0 1 0", TR_EFORMAT, "is of worker 1; its session has 1");
    refuse_text("applied 0 0 0\napplied 1 0 0", TR_EFORMAT,
                "worker 0 read version 0, but was at work until version 1");
    refuse_text("lost 0\napplied 0 0 0", TR_EFORMAT, "it was lost before");
    refuse_text("session steps=1\napplied 0 0 0\napplied 1 0 1", TR_EFORMAT, "update 2 of 1");
    refuse_text("session staleness=0\napplied 0 0 0\napplied 1 1 0", TR_EFORMAT,
                "missed 1 updates; its session allows 0");
    refuse_text("applied 0 0 0\nsession first=3 steps=9", TR_EFORMAT,
                "begins after 3 updates, the one before ends with 1");
    refuse_text("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", TR_EFORMAT, "more than 16 columns");
}

/* ---- as a file ---- */

/* The sample as a file of a scratch directory. */
static void write_sample(char place[SCRATCH_PATH], char path[SCRATCH_PATH], struct tr_update_log *log)
{
    struct tr_update_writer writer;
    bool found;
    scratch_make(place);
    scratch_join(path, place, TR_UPDATE_FILE);
    read_sample(log);
    must(tr_update_writer_begin(NULL, path, NULL, 0, &writer, &found));
    assert_false(found);
    must(tr_update_writer_add(NULL, &writer, log));
    tr_update_writer_release(&writer);
}

static void a_file_is_written_and_read(void **state)
{
    (void)state;
    char place[SCRATCH_PATH], path[SCRATCH_PATH];
    struct tr_update_log log, again = {0};
    int64_t torn;
    write_sample(place, path, &log);
    must(tr_update_file_read(path, &again, &torn));
    assert_int_equal(torn, 0);
    expect_same(&log, &again);
    tr_update_log_release(&log);
    tr_update_log_release(&again);
    scratch_remove(place);
}

/* However much of it a kill left: whole blocks are read, and a writer goes on behind those that a checkpoint
 * covers. */
static void any_beginning_is_read_and_gone_on_with(void **state)
{
    (void)state;
    char place[SCRATCH_PATH], path[SCRATCH_PATH], part[SCRATCH_PATH];
    struct tr_update_log log;
    struct tr_file_content content;
    write_sample(place, path, &log);
    scratch_join(part, place, "part");
    must(tr_file_read(path, 1 << 20, &content));
    int64_t most = 0;
    for (size_t size = 4; size <= content.size; size++) {
        struct tr_update_log some = {0}, after = {0};
        struct tr_update_writer writer;
        int64_t torn = -1;
        bool found;
        tr_status status = tr_update_bytes_read("part", content.data, size, &some, &torn);
        if (status != TR_OK) {
            assert_true(size < TR_UPDATE_HEAD_BYTES + TR_UPDATE_SESSION_BYTES); /* not even a session */
            continue;
        }
        assert_true(torn >= 0 && torn < (int64_t)size);
        assert_true(some.records >= most);
        most = some.records;
        assert_memory_equal(some.record, log.record, (size_t)some.records * sizeof *log.record);
        must(tr_file_write_atomic(NULL, part, content.data, size));
        must(tr_update_writer_begin(NULL, part, part, 2, &writer, &found));
        assert_int_equal(found, some.states == 1 || some.records == 8);
        tr_update_writer_release(&writer);
        if (found) {
            must(tr_update_file_read(part, &after, &torn));
            assert_int_equal(torn, 0);
            assert_int_equal(after.records, 8);
            assert_int_equal(after.states, some.states);
            assert_int_equal(after.sessions, 1);
        }
        tr_update_log_release(&some);
        tr_update_log_release(&after);
    }
    assert_int_equal(most, log.records);
    tr_file_content_free(&content);
    tr_update_log_release(&log);
    scratch_remove(place);
}

static void refuse_bytes(const char *bytes, size_t size, const char *how)
{
    struct tr_update_log log = {0};
    int64_t live = tr_alloc_live();
    tr_status status = tr_update_bytes_read("bytes", bytes, size, &log, NULL);
    if (status == TR_OK) fail_msg("%s: was read", how);
    assert_non_null(strstr(tr_error_message(), "bytes"));
    assert_null(log.session);
    assert_int_equal(tr_alloc_live(), live);
}

/* Where block `index` begins; the end behind the last. */
static size_t block_at(const struct tr_file_content *content, int index)
{
    size_t at = 0;
    for (; index > 0 && at < content->size; index--) {
        uint32_t bytes;
        memcpy(&bytes, content->data + at + 8, 4);
        at += TR_UPDATE_HEAD_BYTES + bytes;
    }
    return at;
}

static void what_was_damaged_is_refused(void **state)
{
    (void)state;
    char place[SCRATCH_PATH], path[SCRATCH_PATH];
    struct tr_update_log log;
    struct tr_file_content content;
    write_sample(place, path, &log);
    must(tr_file_read(path, 1 << 20, &content));
    size_t last = block_at(&content, 4), second = block_at(&content, 1), third = block_at(&content, 2);
    assert_true(third < last && last < content.size);
    assert_int_equal(block_at(&content, 5), content.size);
    char *bytes = tr_alloc(2 * content.size, 1);
    assert_non_null(bytes);
    /* Any bit of what is not the last block. */
    for (size_t at = 0; at < last; at++) {
        memcpy(bytes, content.data, content.size);
        bytes[at] ^= 16;
        struct tr_update_log some = {0};
        int64_t torn = 0;
        tr_status status = tr_update_bytes_read("bytes", bytes, content.size, &some, &torn);
        /* A length that reaches beyond the end is that of a block that is not whole. */
        if (status == TR_OK) assert_true(torn > 0 && some.records < log.records);
        tr_update_log_release(&some);
        if (status == TR_OK) assert_true(memcmp(content.data + at - at % 4, "TRUL", 4) != 0);
    }
    /* Blocks twice, out of turn, or left out. */
    memcpy(bytes, content.data, third);
    memcpy(bytes + third, content.data + second, content.size - second);
    refuse_bytes(bytes, third + content.size - second, "a block twice");
    memcpy(bytes, content.data, second);
    memcpy(bytes + second, content.data + third, content.size - third);
    refuse_bytes(bytes, second + content.size - third, "a block left out");
    memcpy(bytes, content.data + second, third - second);
    memcpy(bytes + third - second, content.data, second);
    refuse_bytes(bytes, third, "blocks out of turn");
    memcpy(bytes, content.data, content.size);
    memset(bytes + content.size, 'x', content.size);
    refuse_bytes(bytes, 2 * content.size, "something behind them");
    refuse_bytes("TRU", 3, "no log");
    refuse_bytes("", 0, "nothing");
    tr_free(bytes);
    tr_file_content_free(&content);
    tr_update_log_release(&log);
    scratch_remove(place);
}

/* Another run's log, in whose directory this one begins, is gone; a write that failed is repeated. */
static void a_writer_begins_anew_and_mends(void **state)
{
    (void)state;
    char place[SCRATCH_PATH], path[SCRATCH_PATH];
    struct tr_update_log log, again = {0};
    struct tr_update_writer writer;
    bool found;
    write_sample(place, path, &log);
    must(tr_update_writer_begin(NULL, path, NULL, 0, &writer, &found));
    assert_false(found);
    must(tr_update_writer_add(NULL, &writer, &log));
    /* Half a block, which the writer knows of. */
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    assert_int_equal(fwrite("TRUL\\2", 1, 5, file), 5);
    fclose(file);
    writer.torn = true;
    struct tr_update_log more = {0};
    const struct tr_update told = {.number = 5, .kind = TR_UPDATE_TOLD};
    must(tr_update_log_add(&more, &told, 1));
    must(tr_update_writer_add(NULL, &writer, &more));
    int64_t torn;
    must(tr_update_file_read(path, &again, &torn));
    assert_int_equal(torn, 0);
    assert_int_equal(again.records, log.records + 1);
    tr_update_writer_release(&writer);
    tr_update_log_release(&log);
    tr_update_log_release(&more);
    tr_update_log_release(&again);
    scratch_remove(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_read_and_written),
        cmocka_unit_test(what_is_left_out_follows_from_the_records),
        cmocka_unit_test(the_most_workers_are_accepted),
        cmocka_unit_test(texts_that_break_a_rule_are_refused),
        cmocka_unit_test(a_file_is_written_and_read),
        cmocka_unit_test(any_beginning_is_read_and_gone_on_with),
        cmocka_unit_test(what_was_damaged_is_refused),
        cmocka_unit_test(a_writer_begins_anew_and_mends),
    };
    return cmocka_run_group_tests_name("strategy.updates", tests, NULL, NULL);
}
