/* The runs of a page: their order, the head, the lead, each row of the table, and the verdict. */
#include "trireme/report.h"

#include "base/alloc.h"
#include "refuse.h"
#include "report/pages.h"
#include "scratch.h"
#include "support/files/html.h"
#include "trireme/data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define RUNS_MOST 64

static tr_status report(const char *const *names, int count, const struct tr_report_settings *settings,
                        char **html)
{
    static char path[RUNS_MOST + 1][SCRATCH_PATH];
    const char *runs[RUNS_MOST + 1];
    for (int i = 0; i < count; i++) runs[i] = scratch_join(path[i], scratch_place, names[i]);
    return tr_report(runs, count, settings, html);
}

/* The page of runs, without their examples. */
static char *page_of(const char *const *names, int count)
{
    struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
    char *html;
    settings.examples = false;
    if (report(names, count, &settings, &html) != TR_OK) fail_msg("%s", tr_error_message());
    expect_well_formed(html);
    expect_whole_rows(html);
    expect_none(html, "could not be looked at");
    return html;
}

static void put(const char *run, const char *journal)
{
    put_file(scratch_place, run, "journal.jsonl", journal);
}

/* The page from its table on, without rows before this one. */
static const char *row_of(const char *html, const char *label)
{
    char begin[64];
    snprintf(begin, sizeof begin, "\"></i>%s</td>", label);
    const char *table = strstr(html, "<tbody>"), *row = table ? strstr(table, begin) : NULL;
    if (!row) fail_msg("no row of %s", label);
    return row + strlen(begin);
}

static void expect_row(const char *html, const char *label, const char *cells)
{
    const char *row = row_of(html, label);
    if (strncmp(row, cells, strlen(cells)) != 0) fail_msg("%s has\n%.700s\nnot\n%s", label, row, cells);
}

#define CELL(head, class, text) "<td data-head=\"" head "\"" class ">" text "</td>"
#define NUMBER(head, text)      CELL(head, " class=\"number\"", text)

static void a_run_alone_has_few_columns(void **state)
{
    static const char *const names[] = {"alone"};
    (void)state;
    put("alone", "{\"event\":\"start\",\"name\":\"job\",\"strategy\":\"allreduce\",\"device\":\"cpu\"}\n"
                 "{\"event\":\"step\",\"step\":5,\"loss\":4,\"accuracy\":0.5}\n"
                 "{\"event\":\"evaluation\",\"step\":5,\"set\":\"test\",\"loss\":1,\"accuracy\":0.25}\n"
                 "{\"event\":\"evaluation\",\"step\":6,\"set\":\"test\",\"loss\":1,\"accuracy\":0.125}\n"
                 "{\"event\":\"end\",\"status\":\"ok\",\"step\":1234,\"hash\":\"0123456789abcdef\","
                 "\"seconds\":4.2,\"examples_per_second\":1234.6,\"tokens_per_second\":9999.7}\n");
    char *html = page_of(names, 1);
    expect(html, "<title>job</title>");
    expect(html, "<h1>job</h1>");
    expect(html, "<thead><tr><th>run</th><th class=\"number\">processes</th><th class=\"number\">steps</th>"
                 "<th class=\"number\">time</th><th class=\"number\">examples/s</th>"
                 "<th class=\"number\">result</th><th>hash</th></tr></thead>");
    expect_row(html, "alone",
               NUMBER("processes", "1") NUMBER("steps", "1,234") NUMBER("time", "4.2 s")
                   NUMBER("examples/s", "1,235<small>10,000 tokens/s</small>") NUMBER("result", "12.50 %")
                       CELL("hash", " class=\"hash\"", "0123456789ab") "</tr>\n</tbody></table></div>\n");
    expect(html,
           "<p class=\"lead\">Accuracy 12.50 % on the test data after 4.2 s of training, cpu, 1 process."
           "</p>");
    expect_none(html, "of the other runs");
    expect_none(html, "Time and communication");
    expect_none(html, "<h3>");
    expect(html, "<footer><span>Trireme ");
    tr_text_free(html);
}

/* Columns about several processes are there for all where one run has them. */
static void runs_of_many_processes_have_all_columns(void **state)
{
    static const char *const names[] = {"many", "alone", "silent"};
    (void)state;
    put("many", "{\"event\":\"start\",\"name\":\"job\",\"strategy\":\"gossip\",\"ranks\":3}\n"
                "{\"event\":\"evaluation\",\"step\":5,\"set\":\"dev\",\"loss\":1.23456,\"perplexity\":3.25}\n"
                "{\"event\":\"end\",\"status\":\"ok\",\"statistics\":{\"ranks\":["
                "{\"bytes_sent\":1024,\"bytes_shared\":512,\"wait_seconds\":1},"
                "{\"bytes_sent\":512,\"bytes_shared\":1024,\"wait_seconds\":4},{\"wait_seconds\":1}]}}\n");
    put("alone", "{\"event\":\"start\",\"name\":\"other\",\"strategy\":\"gossip\"}\n"
                 "{\"event\":\"evaluation\",\"step\":5,\"set\":\"dev\",\"loss\":0.123456}\n"
                 "{\"event\":\"end\",\"status\":\"ok\",\"statistics\":{\"ranks\":[{\"wait_seconds\":2}]}}\n");
    put("silent", "{\"event\":\"start\",\"name\":\"other\",\"ranks\":2}\n");
    char *html = page_of(names, 3);
    expect(html,
           "<thead><tr><th>run</th><th>job</th><th>strategy</th><th class=\"number\">processes</th>"
           "<th class=\"number\">steps</th><th class=\"number\">time</th><th class=\"number\">examples/s"
           "</th><th class=\"number\">result</th><th class=\"number\">moved</th><th "
           "class=\"number\">waiting</th><th>hash</th></tr></thead><tbody><tr><td><i class=\"s1\"></i>");
    expect_row(html, "many",
               CELL("job", "", "job") CELL("strategy", "", "gossip") NUMBER("processes", "3")
                   NUMBER("steps", "0") NUMBER("time", "-") NUMBER("examples/s", "-")
                       NUMBER("result", "perplexity 3.25") NUMBER("moved", "3.0 KiB")
                           NUMBER("waiting", "2.0 s") CELL("hash", " class=\"hash\"", "-") "</tr>");
    expect_row(html, "alone",
               CELL("job", "", "other") CELL("strategy", "", "one process") NUMBER("processes", "1")
                   NUMBER("steps", "0") NUMBER("time", "-") NUMBER("examples/s", "-")
                       NUMBER("result", "loss 0.12346") NUMBER("moved", "-") NUMBER("waiting", "-")
                           CELL("hash", " class=\"hash\"", "-") "</tr>");
    expect_row(html, "silent",
               CELL("job", "", "other") CELL("strategy", "", "-") NUMBER("processes", "2")
                   NUMBER("steps", "0") NUMBER("time", "-") NUMBER("examples/s", "-") NUMBER("result", "-")
                       NUMBER("moved", "-") NUMBER("waiting", "-")
                           CELL("hash", " class=\"hash\"", "-") "</tr>");
    expect(html, ">3 runs. The first: Perplexity 3.25 (loss 1.2346) on the dev data, unknown device, 3 "
                 "processes.</p>");
    assert_int_equal(count_of(html, "Processes: "), 1);
    expect(html, "Processes: many");
    expect(html, "<h1>job, other</h1>");
    for (int i = 0; i < 3; i++) {
        char heading[64]; /* of how to repeat it */
        snprintf(heading, sizeof heading, "<h3>%s</h3><div class=\"scroll\">", names[i]);
        expect(html, heading);
    }
    tr_text_free(html);
}

#define NAMED(name)                                                                                          \
    "{\"event\":\"start\",\"name\":\"" name "\"}\n{\"event\":\"step\",\"step\":1,\"loss\":4}\n"

/* Jobs come as their first runs do, and their runs in the order given; the ninth has the first's colour. */
static void runs_are_grouped_by_job(void **state)
{
    static const char *const names[] = {"a1", "b1", "c1", "a2", "c2", "b2", "a3", "b3", "a4"};
    static const char *const order[] = {"a1", "a2", "a3", "a4", "b1", "b2", "b3", "c1", "c2"};
    (void)state;
    for (int i = 0; i < 9; i++)
        put(names[i], *names[i] == 'a' ? NAMED("a") : *names[i] == 'b' ? NAMED("b<>") : NAMED("c"));
    char *html = page_of(names, 9);
    expect(html, "<h1>a, b&lt;&gt;, c</h1>");
    const char *at = strstr(html, "<tbody>");
    for (int i = 0; i < 9; i++) {
        char begin[64];
        snprintf(begin, sizeof begin, "<tr><td><i class=\"s%d\"></i>%s</td>", i % 8 + 1, order[i]);
        at = strstr(at, begin);
        if (!at) fail_msg("no row %s in its place", begin);
    }
    at = strstr(html, "<h2>Curves</h2>");
    static const char *const jobs[] = {"<h3>a</h3><div class=\"figures\">",
                                       "s4",
                                       "<h3>b&lt;&gt;</h3><div",
                                       "<path class=\"line s5\"",
                                       "<h3>c</h3><div",
                                       "<path class=\"line s8\""};
    for (int i = 0; i < 6; i++) {
        at = strstr(at, jobs[i]);
        if (!at) fail_msg("no %s in its place", jobs[i]);
    }
    tr_text_free(html);
}

#define ENDED(settings, hash, more)                                                                          \
    "{\"event\":\"start\",\"name\":\"n\",\"settings\":\"" settings                                           \
    "\"}\n{\"event\":\"end\",\"status\":\"ok\",\"hash\":\"" hash "\"" more "}\n"
#define LOOSE ",\"statistics\":{\"staleness\":[1]}"

/* Equal settings promise equal hashes, where strategies do; runs without a hash say nothing. */
static void equal_settings_promise_equal_hashes(void **state)
{
    static const struct {
        const char *run[4], *said;
    } cases[] = {
        {{ENDED("s", "h", ""), ENDED("s", "h", "")},
         "<p>1 of the other runs has the first one&#39;s settings, and its hash.</p>"},
        {{ENDED("s", "h", ""), ENDED("s", "h", ""), ENDED("s", "h", ""), ENDED("t", "i", "")},
         "<p>2 of the other runs have the first one&#39;s settings, and all of them its hash.</p>"},
        {{ENDED("s", "h", ""), ENDED("s", "h", ""), ENDED("s", "i", ""), ENDED("s", "j", "")},
         "<p class=\"warning\">3 of the other runs have the first one&#39;s settings, 2 of them another "
         "hash; "
         "`trireme diff` finds where they part.</p>"},
        {{ENDED("s", "h", ""), ENDED("t", "i", "")}, NULL},
        {{ENDED("s", "", ""), ENDED("s", "i", "")}, NULL},
        {{ENDED("s", "h", ""), ENDED("s", "", "")}, NULL},
        {{ENDED("s", "h", LOOSE), ENDED("s", "i", "")}, NULL},
        {{ENDED("s", "h", ""), ENDED("s", "i", LOOSE)}, NULL},
        {{ENDED("s", "h", "")}, NULL},
    };
    static const char *const names[] = {"r0", "r1", "r2", "r3"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int count = 0;
        while (count < 4 && cases[i].run[count]) put(names[count], cases[i].run[count]), count++;
        char *html = page_of(names, count);
        if (cases[i].said)
            expect(html, cases[i].said);
        else
            expect_none(html, "of the other runs");
        tr_text_free(html);
    }
}

/* What went on: shares, warnings, an end that did not come. */
static void the_lead_has_notes(void **state)
{
    static const char *const names[] = {"noted"};
    (void)state;
    put("noted", "{\"event\":\"start\",\"name\":\"n\",\"ranks\":2,\"device\":\"<gpu>\"}\n"
                 "{\"event\":\"shares\",\"message\":\"3 of <4>\"}\n"
                 "{\"event\":\"warning\",\"message\":\"one & only\"}\n"
                 "{\"event\":\"warning\",\"message\":\"two\"}\n");
    char *html = page_of(names, 1);
    expect(html, "<p class=\"lead\">Not evaluated, &lt;gpu&gt;, 2 processes. It has not ended, or was killed."
                 "</p><p class=\"note\">3 of &lt;4&gt;</p><p class=\"warning\">one &amp; only</p>"
                 "<p class=\"warning\">two</p>");
    tr_text_free(html);
    put("noted", "{\"event\":\"start\",\"name\":\"n\"}\n{\"event\":\"end\",\"status\":\"ok\"}\n");
    html = page_of(names, 1);
    expect_none(html, "has not ended");
    tr_text_free(html);
}

#define TRACE(name)                                                                                          \
    "{\"traceEvents\":[{\"pid\":0,\"tid\":0,\"ts\":0,\"dur\":5,\"cat\":\"update\",\"name\":\"" name          \
    "\"},{\"pid\":0,\"tid\":0,\"ts\":0,\"dur\":10,\"cat\":\"step\",\"name\":\"s\"}]}"

/* The first trace of the runs, unless another one is named; and a title. */
static void settings_choose_trace_and_title(void **state)
{
    static const char *const names[] = {"t1", "t2", "t3"};
    struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
    char *html;
    (void)state;
    for (int i = 0; i < 3; i++) put(names[i], NAMED("n"));
    put_file(scratch_place, "t2", "trace.json", TRACE("second"));
    put_file(scratch_place, "t3", "trace.json", TRACE("third"));
    html = page_of(names, 3);
    expect(html, "<h2>Time and communication</h2><div class=\"figures\">\n<figure class=\"wide\"><figcaption>"
                 "Timeline");
    expect(html, ">second, update: ");
    expect_none(html, ">third, update: ");
    tr_text_free(html);
    settings.examples = false;
    settings.title = "my <title>";
    settings.trace = scratch_in("t3/trace.json");
    assert_int_equal(report(names, 3, &settings, &html), TR_OK);
    expect(html, "<title>my &lt;title&gt;</title>");
    expect(html, "<h1>my &lt;title&gt;</h1>");
    expect(html, ">third, update: ");
    expect_none(html, ">second, update: ");
    tr_text_free(html);
    put_file(scratch_place, "t2", "trace.json", "no trace");
    settings.trace = NULL;
    assert_int_equal(report(names, 3, &settings, &html), TR_EFORMAT);
}

/* Labels are the last part of a path, whatever follows it. */
static void paths_have_short_labels(void **state)
{
    static const char *const names[] = {"x/y//", "x"};
    (void)state;
    put("x", NAMED("n"));
    put("x/y", NAMED("n"));
    char *html = page_of(names, 2);
    row_of(html, "y");
    row_of(html, "x");
    tr_text_free(html);
    /* One within the directory at hand has no other part. */
    char before[SCRATCH_PATH];
    const char *const within[] = {"x/", "x", "x/y"};
    struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(scratch_place), 0);
    settings.examples = false;
    const tr_status status = tr_report(within, 3, &settings, &html);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(status, TR_OK);
    const char *second = strstr(row_of(html, "x"), "\"></i>x</td>");
    assert_true(second && strstr(second, "\"></i>y</td>"));
    tr_text_free(html);
}

/* The columns of several processes are there, too, where only the first run has them; and each job has its
   metrics. */
static void the_first_run_counts_as_others_do(void **state)
{
#define MEASURED(name, ranks)                                                                                \
    "{\"event\":\"start\",\"name\":\"" name "\",\"ranks\":" ranks "}\n"                                      \
    "{\"event\":\"evaluation\",\"step\":1,\"set\":\"test\",\"loss\":1,\"metrics\":{\"f1\":0.5}}\n"
    static const char *const names[] = {"shared", "single"};
    (void)state;
    put("shared", MEASURED("cat", "2"));
    put("single", MEASURED("dog", "1"));
    char *html = page_of(names, 2);
    expect(html, "<th>strategy</th>");
    expect(html, "<h2>Metrics</h2>\n<h3>cat</h3>");
    assert_int_equal(count_of(html, "<h2>Metrics</h2>"), 1);
    assert_int_equal(count_of(html, "<h3>dog</h3>"), 2); /* its curves, and its metrics */
    tr_text_free(html);
}

static void up_to_64_runs_have_a_page(void **state)
{
    const char *names[RUNS_MOST + 1];
    struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
    char *html = NULL;
    (void)state;
    put("r", NAMED("n"));
    for (int i = 0; i <= RUNS_MOST; i++) names[i] = "r";
    html = page_of(names, RUNS_MOST);
    assert_int_equal(count_of(html, "</i>r</td>"), RUNS_MOST);
    tr_text_free(html);
    html = NULL;
    assert_int_equal(report(names, RUNS_MOST + 1, &settings, &html), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "a report of 65 runs; give 1 to 64 directories"));
    assert_int_equal(report(names, 0, &settings, &html), TR_EINVAL);
    assert_null(html);
}

static void missing_memory_is_told(void **state)
{
    static const char *const names[] = {"t1", "many"};
    struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
    bool done = false;
    (void)state;
    put_file(scratch_place, "t1", "trace.json", TRACE("first"));
    settings.examples = false;
    for (int64_t at = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        char *html = NULL;
        refuse_begin(at);
        const tr_status status = report(names, 2, &settings, &html);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(html != NULL, done);
        tr_text_free(html);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_alone_has_few_columns),
        cmocka_unit_test(runs_of_many_processes_have_all_columns),
        cmocka_unit_test(runs_are_grouped_by_job),
        cmocka_unit_test(equal_settings_promise_equal_hashes),
        cmocka_unit_test(the_lead_has_notes),
        cmocka_unit_test(settings_choose_trace_and_title),
        cmocka_unit_test(paths_have_short_labels),
        cmocka_unit_test(the_first_run_counts_as_others_do),
        cmocka_unit_test(up_to_64_runs_have_a_page),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("report.page_runs", tests, scratch_place_make, scratch_place_remove);
}
