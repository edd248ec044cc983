/* Reading journals: resumed runs, runs that were killed while they wrote, and what is no journal. */
#include "report/journal.h"

#include "strategy/updates/file.h"
#include "strategy/updates/text.h"

#include "scratch.h"

#include "base/fail.h"
#include "base/files/file.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void what_was_done_again_counts_once(void **state)
{
    (void)state;
    struct tr_run *run;
    static const char text[] = START("0") STEP("10", "1") STEP("20", "2")
        STEP("30", "3") "{\"event\":\"evaluation\",\"step\":30,\"set\":\"test\",\"loss\":9,\"accuracy\":0.1}"
                        "\n" START("20") STEP("30", "4")
                            STEP("40", "5") "{\"event\":\"evaluation\",\"step\":40,\"set\":\"test\",\"loss\":"
                                            "1,\"accuracy\":0.9}\n"
                                            "{\"event\":\"warning\",\"step\":40,\"message\":\"hm\"}\n"
                                            "{\"event\":\"end\",\"status\":\"ok\",\"hash\":\"abc\","
                                            "\"step\":43,\"seconds\":2,\"statistics\":{\"ranks\":["
                                            "{\"bytes_sent\":7,\"wait_seconds\":0.5}],\"staleness\":[4,2,0,1]"
                                            ",\"dropped\":3}}\n";
    assert_int_equal(read_text(text, &run), TR_OK);
    static const double losses[] = {1, 2, 4, 5};
    assert_int_equal(run->points, 4);
    assert_int_equal(run->step, 43);
    for (int i = 0; i < 4; i++) assert_true(run->point[i].loss == losses[i]);
    assert_int_equal(run->evaluations, 1);
    assert_int_equal(run->evaluation[0].step, 40);
    assert_int_equal(run->resumed, 1);
    assert_int_equal(run->warnings, 1);
    assert_true(run->ended && run->classification && run->asynchronous);
    assert_string_equal(run->hash, "abc");
    assert_int_equal(run->rank_count, 1);
    assert_int_equal(run->rank[0].sent, 7);
    assert_int_equal(run->staleness_count, 4);
    assert_int_equal(run->staleness[1], 2);
    assert_int_equal(run->dropped, 3);
    assert_int_equal(run->ranks, 2);
    tr_run_destroy(&run);
    assert_null(run);
}

#define EVALUATED(step) "{\"event\":\"evaluation\",\"step\":" step ",\"set\":\"test\",\"loss\":1}\n"

/* What was done up to the step from which a run went on is not done again. */
static void what_was_done_before_stays(void **state)
{
    (void)state;
    struct tr_run *run;
    assert_int_equal(read_text(START("0") STEP("10", "1") STEP("20", "2") EVALUATED("20") STEP("30", "3")
                                   EVALUATED("30") START("20"),
                               &run),
                     TR_OK);
    assert_int_equal(run->points, 2);
    assert_int_equal(run->point[1].step, 20);
    assert_int_equal(run->evaluations, 1);
    assert_int_equal(run->evaluation[0].step, 20);
    assert_int_equal(run->step, 20);
    tr_run_destroy(&run);
}

/* A run that has not ended has the time and the speed of its last report. */
static void a_run_under_way_has_a_speed(void **state)
{
    (void)state;
    struct tr_run *run;
    static const char begun[] =
        START("0") "{\"event\":\"step\",\"step\":1,\"seconds\":2.5,\"examples_per_second\":40}\n"
                   "{\"event\":\"step\",\"step\":2,\"seconds\":5.5,\"examples_per_second\":30}\n";
    static const char end[] = "{\"event\":\"end\",\"status\":\"ok\",\"seconds\":6,\"examples_per_second\":35,"
                              "\"tokens_per_second\":70}\n";
    char text[sizeof begun + sizeof end];
    assert_int_equal(read_text(begun, &run), TR_OK);
    assert_true(run->seconds == 5.5 && run->speed == 30 && isnan(run->tokens));
    tr_run_destroy(&run);
    snprintf(text, sizeof text, "%s%s", begun, end);
    assert_int_equal(read_text(text, &run), TR_OK);
    assert_true(run->seconds == 6 && run->speed == 35 && run->tokens == 70);
    tr_run_destroy(&run);
}

/* A journal that ends at any byte is read up to its last whole line. */
static void a_killed_run_is_read_as_far_as_it_came(void **state)
{
    (void)state;
    static const char text[] = START("0") STEP("1", "1.25") STEP("2", "0.5");
    char cut[sizeof text];
    size_t head = strlen(START("0")), one = strlen(STEP("1", "1.25"));
    for (size_t length = 0; length < sizeof text; length++) {
        struct tr_run *run;
        memcpy(cut, text, length);
        cut[length] = 0;
        tr_status status = read_text(cut, &run);
        if (length < head) {
            assert_int_equal(status, TR_EFORMAT);
            assert_null(run);
            continue;
        }
        assert_int_equal(status, TR_OK);
        assert_int_equal(run->points, (length >= head + one) + (length == sizeof text - 1));
        assert_false(run->ended);
        tr_run_destroy(&run);
    }
}

static void strange_journals_are_refused_or_survived(void **state)
{
    (void)state;
    struct tr_run *run;
    assert_int_equal(tr_run_read("/nowhere", &run), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "/nowhere"));
    assert_int_equal(read_text("", &run), TR_EFORMAT);
    assert_int_equal(read_text("[1]\n", &run), TR_EFORMAT);
    assert_int_equal(read_text("{\"event\":\"step\"}\n", &run), TR_EFORMAT);
    /* Members of other kinds than expected count as missing. */
    assert_int_equal(read_text("{\"event\":\"start\",\"name\":5,\"steps\":\"many\",\"ranks\":-2}\n"
                               "{\"event\":\"step\",\"step\":1.5,\"loss\":[]}\n"
                               "{\"event\":\"end\",\"statistics\":{\"ranks\":{},\"staleness\":[\"a\",1]}}\n",
                               &run),
                     TR_OK);
    assert_string_equal(run->name, "");
    assert_int_equal(run->ranks, 1);
    assert_true(isnan(run->point[0].loss));
    assert_int_equal(run->staleness_count, 2);
    tr_run_destroy(&run);
}

/* Of a run that never said how it ended, the log knows. */
static void the_log_tells_of_staleness(void **state)
{
    (void)state;
    static const char updates[] = "applied 0 0 0\napplied 1 1 0\ndropped 2 0 1\napplied 3 1 2\n";
    static const char text[] = START("0") STEP("10", "1");
    struct tr_update_log log = {0};
    struct tr_update_writer writer;
    struct tr_run *run;
    char path[SCRATCH_PATH];
    bool found;
    scratch_join(path, scratch_place, TR_UPDATE_FILE);
    assert_int_equal(tr_update_text_read("log", updates, sizeof updates - 1, &log), TR_OK);
    assert_int_equal(tr_update_writer_begin(NULL, path, NULL, 0, &writer, &found), TR_OK);
    assert_int_equal(tr_update_writer_add(NULL, &writer, &log), TR_OK);
    tr_update_writer_release(&writer);
    tr_update_log_release(&log);
    assert_int_equal(read_text(text, &run), TR_OK);
    assert_true(run->asynchronous);
    assert_int_equal(run->dropped, 1);
    assert_int_equal(run->staleness[0], 2);
    assert_int_equal(run->staleness[1], 1);
    tr_run_destroy(&run);
    assert_int_equal(tr_file_remove(NULL, path), TR_OK);
    assert_int_equal(read_text(text, &run), TR_OK);
    assert_false(run->asynchronous);
    tr_run_destroy(&run);
}

/* A directory of runs is none, and the message names one that is. */
static void a_directory_of_runs_names_one(void **state)
{
    (void)state;
    char run[SCRATCH_PATH], empty[SCRATCH_PATH], journal[SCRATCH_PATH + 32], said[2 * SCRATCH_PATH];
    struct tr_run *read;
    scratch_join(run, scratch_place, "second");
    scratch_join(empty, scratch_place, "first");
    snprintf(journal, sizeof journal, "%s/%s", scratch_place, TR_JOURNAL_FILE);
    assert_int_equal(tr_file_remove(NULL, journal), TR_OK);
    assert_int_equal(tr_file_make_directory(NULL, run), TR_OK);
    assert_int_equal(tr_file_make_directory(NULL, empty), TR_OK);
    assert_int_equal(tr_run_read(scratch_place, &read), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "has no " TR_JOURNAL_FILE));
    snprintf(journal, sizeof journal, "%s/%s", run, TR_JOURNAL_FILE);
    assert_int_equal(tr_file_write_atomic(NULL, journal, START("0"), strlen(START("0"))), TR_OK);
    assert_int_equal(tr_run_read(scratch_place, &read), TR_ENOTFOUND);
    snprintf(said, sizeof said, "contains some, such as \"%s\"", run);
    assert_non_null(strstr(tr_error_message(), said));
    assert_int_equal(tr_file_remove(NULL, run), TR_OK);
    assert_int_equal(tr_file_remove(NULL, empty), TR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_done_again_counts_once),
        cmocka_unit_test(what_was_done_before_stays),
        cmocka_unit_test(a_run_under_way_has_a_speed),
        cmocka_unit_test(a_killed_run_is_read_as_far_as_it_came),
        cmocka_unit_test(strange_journals_are_refused_or_survived),
        cmocka_unit_test(the_log_tells_of_staleness),
        cmocka_unit_test(a_directory_of_runs_names_one),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
