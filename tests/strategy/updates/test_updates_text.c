/* The text of a log of updates: every number at its bounds, every message of what cannot be read, what
 * follows from what is left out, and the text that is written. */
#include "strategy/updates/text.h"

#include "base/alloc.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define HASH  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define COUNT (sizeof cases / sizeof cases[0])

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

static void read_text(const char *text, struct tr_update_log *log)
{
    *log = (struct tr_update_log){0};
    if (tr_update_text_read("text", text, strlen(text), log) != TR_OK)
        fail_msg("\"%s\": %s", text, tr_error_message());
}

static void refuse(const char *text, size_t size, const char *message)
{
    struct tr_update_log log = {0};
    int64_t live = tr_alloc_live();
    assert_int_equal(tr_update_text_read("text", text, size, &log), TR_EFORMAT);
    assert_string_equal(tr_error_message(), message);
    assert_null(log.session);
    assert_int_equal(log.sessions + log.records + log.states, 0);
    assert_int_equal(tr_alloc_live(), live);
}

/* ---- numbers ---- */

static void numbers_have_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"applied 9223372036854775807 0 0",
         "text: record 1 is of contribution 9223372036854775807; they count from 0"},
        {"applied -1 0 0", "text:1: the contribution is -1; it is 0 to 9223372036854775807"},
        {"applied 9223372036854775808 0 0", "text:1: the contribution \"9223372036854775808\" is too large"},
        {"applied 1 4095 0", NULL},
        {"applied 1 4096 0", "text:1: the worker is 4096; it is 0 to 4095"},
        {"applied 1 -1 0", "text:1: the worker is -1; it is 0 to 4095"},
        {"lost 4095", NULL},
        {"lost 4096", "text:1: the worker is 4096; it is 0 to 4095"},
        {"lost 0 0", NULL},
        {"lost 0 -1", "text:1: the contribution is -1; it is 0 to 9223372036854775807"},
        {"applied 0 0 0\napplied 1 1 2", "text:2: the version is 2; it is 0 to 1"},
        {"applied 0 0 0\napplied 1 1 -1", "text:2: the version is -1; it is 0 to 1"},
        {"applied 0 0 x", "text:1: the version \"x\" is not an integer"},
        /* what a record can miss has 32 bits */
        {"session first=4294967297 steps=4294967300\napplied 1 0 1",
         "text:2: the version is 1; it is 2 to 4294967297"},
        {"session first=4294967297 steps=4294967300\napplied 1 0 2",
         "text: record 1: worker 0 read version 2, but was at work until version 4294967297; a worker reads "
         "no "
         "version of before its last gradient"},
        {"session workers=1", NULL},
        {"session workers=0", "text:1: workers is 0; it is 1 to 4096"},
        {"session workers=4096 servers=4096 parts=4096", NULL},
        {"session workers=4097", "text:1: workers is 4097; it is 1 to 4096"},
        {"session servers=0", "text:1: servers is 0; it is 1 to 4096"},
        {"session servers=4097", "text:1: servers is 4097; it is 1 to 4096"},
        {"session parts=0", "text:1: parts is 0; it is 1 to 4096"},
        {"session parts=4097", "text:1: parts is 4097; it is 1 to 4096"},
        {"session staleness=0", NULL},
        {"session staleness=9223372036854775807", NULL},
        {"session staleness=-1", "text:1: staleness is -1; it is 0 to 9223372036854775807"},
        {"session first=0 steps=1125899906842624", NULL},
        {"session first=1125899906842624", NULL},
        {"session first=1125899906842625", "text:1: first is 1125899906842625; it is 0 to 1125899906842624"},
        {"session first=-1", "text:1: first is -1; it is 0 to 1125899906842624"},
        {"session steps=1125899906842625", "text:1: steps is 1125899906842625; it is 0 to 1125899906842624"},
        {"session steps=-1", "text:1: steps is -1; it is 0 to 1125899906842624"},
        {"session numerics=1", NULL},
        {"session numerics=2147483647", NULL},
        {"session numerics=0", "text:1: numerics is 0; it is 1 to 2147483647"},
        {"session numerics=2147483648", "text:1: numerics is 2147483648; it is 1 to 2147483647"},
        {"session servers=12345678901234567890123456789012345678901234567890",
         "text:1: servers \"1234567890123456789012345678901234567890\" is too large"},
    };
    for (size_t i = 0; i < COUNT; i++) {
        struct tr_update_log log;
        if (cases[i].message) {
            refuse(cases[i].text, strlen(cases[i].text), cases[i].message);
            continue;
        }
        read_text(cases[i].text, &log);
        tr_update_log_release(&log);
    }
}

/* ---- words and columns ---- */

static void what_cannot_be_read_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"# nothing\n\n  ,\n", "text: the log does not begin with a session"},
        {"told\naplied 0 0 0", "text:2: \"aplied\" is none of applied, dropped, lost, told, gathered, "
                               "drained, session, state; did you "
                               "mean \"applied\"?"},
        {"12345678901234567890123456789012345678901234567890",
         "text:1: \"1234567890123456789012345678901234567890\" is none of applied, dropped, lost, told, "
         "gathered, "
         "drained, session, state"},
        {"applied 0 0",
         "text:1: \"applied\" has 2 columns after it; write KIND, CONTRIBUTION, WORKER, VERSION"},
        {"dropped 0 0 0 0",
         "text:1: \"dropped\" has 4 columns after it; write KIND, CONTRIBUTION, WORKER, VERSION"},
        {"lost",
         "text:1: \"lost\" has 0 columns after it; write lost, WORKER, or lost, WORKER, CONTRIBUTION"},
        {"lost 0 0 0",
         "text:1: \"lost\" has 3 columns after it; write lost, WORKER, or lost, WORKER, CONTRIBUTION"},
        {"told 1", "text:1: \"told\" has 1 columns after it; write it alone"},
        {"drained 1", "text:1: \"drained\" has 1 columns after it; write it alone"},
        {"state", "text:1: \"state\" has 0 columns after it; write state, HASH"},
        {"state " HASH " 1", "text:1: \"state\" has 2 columns after it; write state, HASH"},
        {"state 0" HASH, "text:1: the state \"0" HASH "\" is no SHA-256, which has 64 digits from 0 to f"},
        {"session data=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde",
         "text:1: data \"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\" is no SHA-256, "
         "which "
         "has 64 digits from 0 to f"},
        {"session hash=0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
         "text:1: hash \"0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef\" is no SHA-256, "
         "which "
         "has 64 digits from 0 to f"},
        {"session job=g", "text:1: job \"g\" is no SHA-256, which has 64 digits from 0 to f"},
        {"session workers",
         "text:1: \"workers\" of a session has no value; write KEY=VALUE, as in workers=2"},
        {"session workers=2 worker=2", "text:1: \"worker\" is none of workers, servers, parts, mode, "
                                       "staleness, first, steps, numerics, job, "
                                       "data, hash; did you mean \"workers\"?"},
        {"session mode=sync", "text:1: \"sync\" is none of async, bounded, backup; did you mean \"async\"?"},
        {"session parts=2 workers=1", "text: session 1: 1 to as many gradients as there are workers make an "
                                      "update, but here is 2; the log is "
                                      "damaged"},
        {"session a=1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", "text:1: more than 16 columns"},
    };
    for (size_t i = 0; i < COUNT; i++) refuse(cases[i].text, strlen(cases[i].text), cases[i].message);
    static const char zero[] = "told\n\0told\n", behind[] = "told\ntold\0";
    refuse(zero, sizeof zero - 1, "text:2: a byte 0 is no text; `trireme log` shows logs that are none");
    refuse(behind, sizeof behind - 1, "text:2: a byte 0 is no text; `trireme log` shows logs that are none");
}

/* Commas and blanks, comments, lines of other systems, and as many columns as there may be. */
static void columns_may_be_written_in_many_ways(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "session,workers=2,steps=2\napplied,3,1,0\napplied,4,0,1\n",
        "session workers=2 steps=2\r\n\r\napplied 3 1 0\r\napplied 4 0 1",
        "# a log\n\tsession , workers=2 , steps=2 # of two workers\n\n,applied\t3, 1, 0,\n applied 4 0 1#",
        ("session workers=9 workers=9 workers=9 workers=9 workers=9 workers=9 workers=9 workers=9 workers=9 "
         "workers=9 workers=9 workers=9 steps=9 workers=2 steps=2\napplied 3 1 0\napplied +4 0x0 1"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        static const struct tr_update expected[] = {{.number = 3, .worker = 1}, {.number = 4}};
        struct tr_update_log log;
        read_text(texts[i], &log);
        assert_int_equal(log.sessions, 1);
        assert_int_equal(log.session[0].workers, 2);
        assert_int_equal(log.session[0].steps, 2);
        assert_int_equal(log.records, 2);
        assert_memory_equal(log.record, expected, sizeof expected);
        tr_update_log_release(&log);
    }
}

/* ---- what is left out ---- */

static void sessions_follow_from_their_records(void **state)
{
    (void)state;
    struct tr_update_log log;
    read_text(
        "lost 5\napplied 0 2 0\nsession parts=2\napplied 0 0 1\napplied 1 0 1\napplied 2 0 2\n"
        "session parts=3 mode=backup\napplied 0 1 2\nsession workers=7 steps=20\napplied 0 1 2\nsession\n"
        "state " HASH "\napplied 0 0 3\nsession first=4",
        &log);
    static const struct tr_update_session expected[] = {
        {.workers = 6, .parts = 1, .first = 0, .steps = 1, .begin = 0},
        {.workers = 2, .parts = 2, .first = 1, .steps = 2, .begin = 2},
        {.workers = 3, .parts = 3, .first = 2, .steps = 2, .begin = 5, .mode = TR_UPDATE_BACKUP},
        {.workers = 7, .parts = 1, .first = 2, .steps = 20, .begin = 6},
        {.workers = 1, .parts = 1, .first = 3, .steps = 4, .begin = 7},
        {.workers = 1, .parts = 1, .first = 4, .steps = 4, .begin = 8},
    };
    assert_int_equal(log.sessions, sizeof expected / sizeof expected[0]);
    for (int64_t i = 0; i < log.sessions; i++) {
        const struct tr_update_session *session = &log.session[i];
        assert_int_equal(session->mode, expected[i].mode);
        assert_int_equal(session->workers, expected[i].workers);
        assert_int_equal(session->servers, 1);
        assert_int_equal(session->parts, expected[i].parts);
        assert_true(session->staleness == TR_UPDATE_ANY);
        assert_int_equal(session->first, expected[i].first);
        assert_int_equal(session->steps, expected[i].steps);
        assert_int_equal(session->begin, expected[i].begin);
        assert_int_equal(session->numerics, 0);
        assert_string_equal(session->job, "");
        assert_string_equal(session->data, "");
        assert_string_equal(session->hash, "");
    }
    assert_int_equal(log.states, 1);
    assert_int_equal(log.state[0].at, 7);
    assert_int_equal(log.state[0].step, 3);
    assert_int_equal(log.record[0].number, -1);
    tr_update_log_release(&log);
    /* The half of an update that a session leaves counts for none of the next. */
    read_text(
        "session parts=2 steps=9\napplied 0 0 0\nsession parts=2 steps=9\napplied 0 0 0\ntold\napplied 1 0 "
        "0\ntold",
        &log);
    assert_int_equal(log.record[2].number, 0);
    assert_int_equal(log.record[4].number, 1);
    tr_update_log_release(&log);
}

/* ---- writing ---- */

static void expect_text(const struct tr_update_log *log, const char *expected)
{
    struct tr_text text = TR_TEXT_INIT;
    char *written;
    tr_update_text_write(log, &text);
    must(tr_text_finish(&text, &written));
    assert_string_equal(written, expected);
    tr_free(written);
}

/* What is written is read as the same, so it is written alike. */
static void texts_are_written_as_they_are_read(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "session, workers=3, servers=2, parts=2, mode=backup, first=0, steps=9, numerics=2, job=" HASH
        ", data=" HASH ", hash=" HASH "\n"
        "applied, 0, 0, 0\ntold\napplied, 1, 1, 0\ndropped, 2, 2, 0\nlost, 2\ngathered\nstate, " HASH "\n"
        "state, " HASH "\n"
        "session, workers=2, servers=1, parts=1, mode=bounded, staleness=1, first=1, steps=9\n"
        "session, workers=2, servers=1, parts=1, mode=async, staleness=0, first=1, steps=9, data=" HASH "\n"
        "applied, 2, 1, 1\nstate, " HASH "\nlost, 1, 4\nlost, 0, 0\ndrained\n"
        "session, workers=1, servers=1, parts=1, mode=async, first=2, steps=2\n",
        /* The parameters of the beginning. */
        "session, workers=1, servers=1, parts=1, mode=async, first=0, steps=1\nstate, " HASH
        "\napplied, 0, 0, 0\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct tr_update_log log;
        read_text(texts[i], &log);
        expect_text(&log, texts[i]);
        tr_update_log_release(&log);
    }
}

/* ---- files and memory ---- */

static const char some[] = "session, job=" HASH "\napplied 0 1 0\nstate, " HASH "\nsession\napplied 1 0 1";

static void files_are_read(void **state)
{
    (void)state;
    struct tr_update_log log = {0};
    scratch_write_text("some", some);
    must(tr_update_text_file(scratch_in("some"), &log));
    assert_int_equal(log.records, 2);
    assert_int_equal(log.sessions, 2);
    tr_update_log_release(&log);
    scratch_write_text("wrong", "told\n\nsaid\n");
    assert_int_equal(tr_update_text_file(scratch_in("wrong"), &log), TR_EFORMAT);
    char message[SCRATCH_PATH + 40];
    snprintf(message, sizeof message, "%s:3: \"said\" is none of", scratch_in("wrong"));
    assert_int_equal(strncmp(tr_error_message(), message, strlen(message)), 0);
    assert_int_equal(tr_update_text_file(scratch_in("none"), &log), TR_ENOTFOUND);
    assert_null(log.record);
}

/* Also for the messages. */
static void missing_memory_is_told(void **state)
{
    (void)state;
    static const char *const texts[] = {some, "said"};
    for (int i = 0; i < 2; i++) {
        bool done = false;
        for (int64_t at = 0; !done; at++) {
            int64_t live = tr_alloc_live();
            struct tr_update_log log = {0};
            refuse_begin(at);
            tr_status status = tr_update_text_read("text", texts[i], strlen(texts[i]), &log);
            done = refuse_end();
            assert_int_equal(status, !done ? TR_ENOMEM : i == 0 ? TR_OK : TR_EFORMAT);
            tr_update_log_release(&log);
            assert_int_equal(tr_alloc_live(), live);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_bounds),
        cmocka_unit_test(what_cannot_be_read_is_told),
        cmocka_unit_test(columns_may_be_written_in_many_ways),
        cmocka_unit_test(sessions_follow_from_their_records),
        cmocka_unit_test(texts_are_written_as_they_are_read),
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("strategy.updates_text", tests, scratch_place_make,
                                       scratch_place_remove);
}
