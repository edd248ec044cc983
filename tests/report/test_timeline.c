/* Traces as pictures: which spans of which steps, where, in which lane, and what is said of them. The plot is
 * between 96 and 960; a lane is 34 high.
 */
#include "report/sections/timeline.h"

#include "base/alloc.h"
#include "refuse.h"
#include "report/pages.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define EVENT(rank, thread, begin, length, category, name, more)                                             \
    "{\"ph\":\"X\",\"pid\":" rank ",\"tid\":" thread ",\"ts\":" begin ",\"dur\":" length                     \
    ",\"cat\":\"" category "\",\"name\":\"" name "\"" more "}"
#define STEP(begin, length) EVENT("0", "0", begin, length, "step", "step", "")

/* The picture of these events; "" where there is none. */
static char *draw(const char *events)
{
    struct tr_text trace = TR_TEXT_INIT, html = TR_TEXT_INIT;
    char *text;
    tr_text_addf(&trace, "{\"traceEvents\":[%s]}", events);
    assert_int_equal(tr_text_finish(&trace, &text), TR_OK);
    scratch_write_text("trace.json", text);
    tr_free(text);
    assert_int_equal(tr_report_timeline(&html, scratch_in("trace.json")), TR_OK);
    tr_text_add(&html, "");
    assert_int_equal(tr_text_finish(&html, &text), TR_OK);
    return text;
}

/* The last two steps, of 5 ms: spans by proportion, cut off where they begin before; a lane for each thread.
 */
static void the_last_steps_are_shown(void **state)
{
    (void)state;
    char *html = draw(EVENT("0", "0", "200", "300", "forward", "gone", "") "," STEP("0", "1000") "," EVENT(
        "0", "0", "500", "1500", "backward", "cut",
        "") "," STEP("1000", "2000") "," EVENT("0", "0", "3000", "1000", "forward", "conv<1>",
                                               "") "," EVENT("0", "1", "4000", "500", "input", "rows",
                                                             "") "," EVENT("1", "0", "5000", "2000",
                                                                           "waiting", "for all",
                                                                           ",\"args\":{\"for "
                                                                           "rank\":3}") "," STEP("300"
                                                                                                 "0",
                                                                                                 "300"
                                                                                                 "0"));
    static const char *const parts[] = {
        "<figure class=\"wide\"><figcaption>Timeline: 5.0 ms at the end of the trace</figcaption>"
        "<ul class=\"legend\"><li><i class=\"s1\"></i>forward</li><li><i class=\"s2\"></i>backward</li>"
        "<li><i class=\"s3\"></i>update</li><li><i class=\"s4\"></i>communication</li>"
        "<li><i class=\"s5\"></i>waiting</li><li><i class=\"s6\"></i>input</li>"
        "<li><i class=\"s7\"></i>evaluation</li><li><i class=\"s8\"></i>checkpoint</li></ul>",
        "viewBox=\"0 0 960 124\"",
        "<text x=\"0\" y=\"21\">rank 0</text>",
        "<rect class=\"bar s2\" x=\"96.0\" y=\"4\" width=\"172.8\" height=\"26\"><title>cut, backward: 1.500 "
        "ms</title></rect>",
        "<rect class=\"bar s1\" x=\"441.6\" y=\"4\" width=\"172.8\" height=\"26\"><title>conv&lt;1&gt;, "
        "forward: 1.000 ms</title></rect>",
        "<text x=\"0\" y=\"55\">rank 0, reader</text>",
        "<rect class=\"bar s6\" x=\"614.4\" y=\"38\" width=\"86.4\" height=\"26\"><title>rows, input: 0.500 "
        "ms</title></rect>",
        "<text x=\"0\" y=\"89\">rank 1</text>",
        "<rect class=\"bar s5\" x=\"787.2\" y=\"82\" width=\"172.8\" height=\"16\"><title>for all, waiting: "
        "2.000 ms, for rank 3</title></rect>",
        "<path d=\"M96 106H960\"/><text x=\"96\" y=\"121\">0</text><text x=\"960\" y=\"121\" "
        "text-anchor=\"end\">5.0 ms</text></g></svg></div></figure>\n"};
    const char *at = html;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        at = strstr(at, parts[i]);
        if (!at) fail_msg("no %s in its place in\n%s", parts[i], html);
    }
    assert_int_equal(count_of(html, "<rect"), 4);
    tr_free(html);
}

/* Of one step, that one; other ranks' steps decide nothing. */
static void a_single_step_is_enough(void **state)
{
    (void)state;
    char *html = draw(EVENT("1", "0", "0", "9000", "step", "step", "") "," STEP("1000", "1000") "," EVENT(
        "0", "0", "1000", "500", "update", "u", ",\"args\":{\"for rank\":0}"));
    expect(html, "Timeline: 1.0 ms");
    expect(html, "viewBox=\"0 0 960 56\"");
    expect(html, "<rect class=\"bar s3\" x=\"96.0\" y=\"4\" width=\"432.0\" height=\"26\"><title>u, update: "
                 "0.500 ms, for rank 0</title></rect>");
    tr_free(html);
}

static void without_steps_or_spans_there_is_no_picture(void **state)
{
    static const char *const traces[] = {
        "",
        EVENT("0", "0", "0", "5", "forward", "f", ""),
        STEP("0", "5"),
        STEP("0", "0") "," EVENT("0", "0", "0", "5", "forward", "f", ""),
        /* before and after the step, or of no known kind */
        STEP("10", "10") "," EVENT("0", "0", "5", "5", "forward", "f", "") "," EVENT(
            "0", "0", "20", "5", "forward", "f", "") "," EVENT("0", "0", "12", "5", "sleep", "f", ""),
    };
    (void)state;
    for (size_t i = 0; i < sizeof traces / sizeof traces[0]; i++) {
        char *html = draw(traces[i]);
        assert_string_equal(html, "");
        tr_free(html);
    }
}

/* What is no span is passed over, and has no lane. */
static void strange_events_are_passed_over(void **state)
{
    (void)state;
    char *html = draw("{\"cat\":\"forward\",\"pid\":1,\"ts\":1,\"dur\":5},"
                      "{\"name\":\"n\",\"pid\":2,\"ts\":1,\"dur\":5},"
                      "{\"cat\":3,\"name\":\"n\",\"pid\":3,\"ts\":1,\"dur\":5},"
                      "{\"cat\":\"forward\",\"name\":7,\"pid\":4,\"ts\":1,\"dur\":5},"
                      "{\"cat\":\"forward\",\"name\":\"n\",\"pid\":5,\"dur\":5},"
                      "{\"cat\":\"forward\",\"name\":\"n\",\"pid\":6,\"ts\":1},"
                      "{\"cat\":\"forward\",\"name\":\"n\",\"ts\":1,\"dur\":5}," STEP("0", "10") "," EVENT(
                          "0", "0", "2", "3", "checkpoint", "save",
                          "") "," EVENT("-1", "0", "2", "3", "checkpoint", "nobody's", ""));
    assert_int_equal(count_of(html, "<rect"), 1);
    assert_int_equal(count_of(html, ">rank "), 1);
    expect(html, "<rect class=\"bar s8\"");
    tr_free(html);
}

/* Those that contain others are drawn first; and none that is too narrow to be seen. */
static void spans_lie_on_those_around_them(void **state)
{
    (void)state;
    char *html = draw(EVENT("0", "0", "300", "100", "communication", "third", "") "," EVENT(
        "0", "0", "100", "100", "communication", "second",
        "") "," EVENT("0", "0", "100", "500", "communication", "first",
                      "") "," EVENT("0", "0", "700", "0.3", "update", "narrow",
                                    "") "," EVENT("0", "0", "800", "0.4", "update", "seen",
                                                  "") "," STEP("0", "1000"));
    const char *first = strstr(html, ">first,"), *second = strstr(html, ">second,"),
               *third = strstr(html, ">third,");
    assert_true(first && second && third && first < second && second < third);
    expect(html, ">seen,");
    expect_none(html, "narrow");
    tr_free(html);
}

/* 16 lanes, and 4,000 spans. */
static void pictures_have_limits(void **state)
{
    struct tr_text events = TR_TEXT_INIT;
    char *text;
    (void)state;
    for (int i = 0; i < 18; i++)
        tr_text_addf(&events, EVENT("%d", "0", "10", "500", "forward", "f", "") ",", i);
    tr_text_add(&events, STEP("0", "1000"));
    assert_int_equal(tr_text_finish(&events, &text), TR_OK);
    char *html = draw(text);
    tr_free(text);
    assert_int_equal(count_of(html, "<rect"), 16);
    expect(html, ">rank 15</text>");
    expect_none(html, ">rank 16</text>");
    tr_free(html);
    events = (struct tr_text)TR_TEXT_INIT;
    for (int i = 0; i < 4001; i++)
        tr_text_addf(&events, EVENT("0", "0", "%d", "500", "forward", "f%d", "") ",", 4001 - i, i);
    tr_text_add(&events, STEP("0", "5000"));
    assert_int_equal(tr_text_finish(&events, &text), TR_OK);
    html = draw(text);
    tr_free(text);
    assert_int_equal(count_of(html, "<rect"), 4000);
    expect_none(html, ">f4000,");
    tr_free(html);
}

static void what_is_no_trace_is_refused(void **state)
{
    struct tr_text html = TR_TEXT_INIT;
    (void)state;
    assert_int_equal(tr_report_timeline(&html, "/nowhere/trace.json"), TR_ENOTFOUND);
    scratch_write_text("bad.json", "{\"traceEvents\":7}");
    assert_int_equal(tr_report_timeline(&html, scratch_in("bad.json")), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "traceEvents"));
    scratch_write_text("bad.json", "{\"traceEvents\":[");
    assert_int_equal(tr_report_timeline(&html, scratch_in("bad.json")), TR_EFORMAT);
    assert_int_equal(html.length, 0);
    tr_text_release(&html);
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    tr_free(draw(STEP("0", "10") "," EVENT("0", "0", "2", "3", "update", "u", "")));
    const char *path = scratch_in("trace.json");
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct tr_text html = TR_TEXT_INIT;
        refuse_begin(at);
        const tr_status status = tr_report_timeline(&html, path);
        const bool failed = status == TR_ENOMEM || (status == TR_OK && html.failed);
        done = refuse_end();
        assert_int_equal(failed, !done);
        tr_text_release(&html);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_steps_are_shown),
        cmocka_unit_test(a_single_step_is_enough),
        cmocka_unit_test(without_steps_or_spans_there_is_no_picture),
        cmocka_unit_test(strange_events_are_passed_over),
        cmocka_unit_test(spans_lie_on_those_around_them),
        cmocka_unit_test(pictures_have_limits),
        cmocka_unit_test(what_is_no_trace_is_refused),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("report.timeline", tests, scratch_place_make, scratch_place_remove);
}
