/* trireme log: the sums of a log of updates, and its lines, which can be read again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/files/file.h"
#include "cli/session.h"
#include "strategy/updates/file.h"
#include "strategy/updates/text.h"

/* Gradients that missed 0, 1 and 2 updates, one that came too late, and a worker that was lost. */
static const char updates[] = "session, workers=4\n"
                              "applied 0 0 0\napplied 1 1 0\nlost 2\ndropped 2 0 1\napplied 3 3 0\n";
static const char sums[] = "# 3 updates by 3 gradients in 1 session\n"
                           "# staleness: mean 1.00, at most 2; 1 gradient came too late\n"
                           "# workers that were lost: 1\n";

static void write_log(const char *text)
{
    struct tr_update_log log = {0};
    struct tr_update_writer writer;
    bool found;
    if (tr_update_text_read("log", text, strlen(text), &log) != TR_OK) fail_msg("%s", tr_error_message());
    assert_int_equal(tr_update_writer_begin(NULL, "run/" TR_UPDATE_FILE, NULL, 0, &writer, &found), TR_OK);
    assert_int_equal(tr_update_writer_add(NULL, &writer, &log), TR_OK);
    tr_update_writer_release(&writer);
    tr_update_log_release(&log);
}

static int make_run(void **state)
{
    return place_make(state) != 0 ? -1 : mkdir("run", 0700);
}

static void sums_are_told(void **state)
{
    (void)state;
    struct session session;
    write_log(updates);
    assert_int_equal(run(&session, "log", "run", "--summary", NULL), 0);
    assert_string_equal(session.text[0], sums);
    session_release(&session);
    write_log("applied 0 0 0\n");
    assert_int_equal(run(&session, "log", "run/" TR_UPDATE_FILE, "--summary", NULL), 0);
    assert_string_equal(session.text[0], "# 1 update by 1 gradient in 1 session\n"
                                         "# staleness: mean 0.00, at most 0; 0 gradients came too late\n");
    session_release(&session);
}

static void lines_are_read_again(void **state)
{
    (void)state;
    struct session session;
    struct tr_update_log log = {0};
    static const struct {
        int64_t worker, missed;
    } applied[] = {{0, 0}, {1, 1}, {3, 2}};
    write_log(updates);
    assert_int_equal(run(&session, "log", "run", NULL), 0);
    assert_memory_equal(session.text[0], sums, sizeof sums - 1);
    if (tr_update_text_read("told", session.text[0], session.size[0], &log) != TR_OK)
        fail_msg("%s", tr_error_message());
    int count = 0;
    for (int64_t i = 0; i < log.records; i++) {
        if (log.record[i].kind != TR_UPDATE_APPLIED) continue;
        assert_int_equal(log.record[i].worker, applied[count].worker);
        assert_int_equal(log.record[i].missed, applied[count++].missed);
    }
    assert_int_equal(count, 3);
    tr_update_log_release(&log);
    session_release(&session);
}

/* As a run leaves it that was killed while it wrote. */
static void a_torn_end_is_told(void **state)
{
    (void)state;
    struct session session;
    struct tr_file_content content;
    int bytes = 0;
    write_log(updates);
    assert_int_equal(tr_file_read("run/" TR_UPDATE_FILE, 1 << 16, &content), TR_OK);
    assert_int_equal(tr_file_write_atomic(NULL, "run/" TR_UPDATE_FILE, content.data, content.size - 5),
                     TR_OK);
    assert_int_equal(run(&session, "log", "run", "--summary", NULL), 0);
    assert_memory_equal(session.text[0], "# 0 updates by 0 gradients in 1 session\n", 40);
    const char *last = strrchr(session.text[0], '#');
    assert_int_equal(sscanf(last, "# %d bytes at the end are of a block that is not whole\n", &bytes), 1);
    /* The block of the records, of which some are there. */
    assert_true(bytes > 4 * TR_UPDATE_RECORD_BYTES && bytes < (int)content.size - TR_UPDATE_SESSION_BYTES);
    tr_file_content_free(&content);
    session_release(&session);
    int code = run(&session, "log", "elsewhere", NULL);
    expect_error(2, "elsewhere", &session, code);
    session_release(&session);
    code = run(&session, "log", "--summary", NULL);
    expect_error(2, "name the directory of an asynchronous run", &session, code);
    session_release(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_told),
        cmocka_unit_test(lines_are_read_again),
        cmocka_unit_test(a_torn_end_is_told),
    };
    return cmocka_run_group_tests(tests, make_run, place_remove);
}
