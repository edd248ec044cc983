/* The page of runs: well-formed, complete, and closed to hostile names. */
#include "trireme/report.h"

#include "support/files/html.h"
#include "support/training.h"

#include "report/pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void put(const char *run, const char *name, const char *text)
{
    put_file(scratch_place, run, name, text);
}

static char *page_of(const char *first, const char *second)
{
    char path[2][SCRATCH_PATH + 32];
    const char *runs[2] = {path[0], path[1]};
    struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
    char *html;
    snprintf(path[0], sizeof path[0], "%s/%s", scratch_place, first);
    if (second) snprintf(path[1], sizeof path[1], "%s/%s/", scratch_place, second);
    must_train(tr_report(runs, second ? 2 : 1, &settings, &html));
    return html;
}

#define HOSTILE "<script>alert(1)</script>\\\" onload=\\\"x&'"

static void names_from_outside_are_text(void **state)
{
    (void)state;
    put("a", "journal.jsonl",
        "{\"event\":\"start\",\"name\":\"" HOSTILE "\",\"model\":\"" HOSTILE "\",\"device\":\"" HOSTILE
        "\",\"strategy\":\"" HOSTILE "\",\"command\":\"" HOSTILE "\",\"host\":\"" HOSTILE "\",\"steps\":3}\n"
        "{\"event\":\"step\",\"step\":1,\"loss\":1,\"accuracy\":0.5,\"seconds\":1}\n"
        "{\"event\":\"evaluation\",\"step\":2,\"set\":\"" HOSTILE "\",\"loss\":1,\"accuracy\":0.5}\n"
        "{\"event\":\"warning\",\"step\":2,\"message\":\"" HOSTILE "\"}\n"
        "{\"event\":\"end\",\"status\":\"" HOSTILE "\",\"message\":\"" HOSTILE "\",\"hash\":\"" HOSTILE
        "\"}\n");
    char *html = page_of("a", NULL);
    assert_null(strstr(html, "<script"));
    assert_null(strstr(html, "\" onload"));
    assert_non_null(strstr(html, "&lt;script&gt;"));
    expect_well_formed(html);
    tr_text_free(html);
}

static void runs_are_compared(void **state)
{
    (void)state;
#define RUN(name, hash, more)                                                                                \
    "{\"event\":\"start\",\"name\":\"" name                                                                  \
    "\",\"settings\":\"s\",\"strategy\":\"allreduce\",\"steps\":3}\n"                                        \
    "{\"event\":\"step\",\"step\":1,\"loss\":4,\"rate\":0.5,\"examples_per_second\":100,\"seconds\":1}\n"    \
    "{\"event\":\"step\",\"step\":2,\"loss\":2,\"rate\":0.5,\"examples_per_second\":100,\"seconds\":2}\n"    \
    "{\"event\":\"end\",\"status\":\"ok\",\"hash\":\"" hash "\",\"seconds\":2,\"statistics\":{\"ranks\":"    \
    "[{\"bytes_sent\":2048},{\"wait_seconds\":1}],\"x\":0" more "}}\n"
    put("b", "journal.jsonl", RUN("one", "1234567890abcdef", ""));
    put("c", "journal.jsonl", RUN("two", "1234567890abcdef", ""));
    put("d", "journal.jsonl", RUN("three", "fedcba", ""));
    put("c", "trace.json",
        "{\"traceEvents\":[{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":1,\"dur\":5,\"cat\":\"forward\",\"name\":"
        "\"conv<1>\","
        "\"args\":{\"step\":1}},{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":0,\"dur\":10,\"cat\":\"step\","
        "\"name\":\"step\"}]}");
    char *html = page_of("b", "c");
    expect_well_formed(html);
    expect_whole_rows(html);
    expect_styled(html);
    expect(html, ">2 runs. The first: ");
    expect(html, "<figcaption>Processes: b</figcaption>");
    assert_non_null(strstr(html, "1234567890ab"));
    assert_non_null(strstr(html, "<td><i class=\"s2\"></i>c</td>"));
    assert_non_null(strstr(html, "has the first one&#39;s settings, and its hash"));
    assert_non_null(strstr(html, "conv&lt;1&gt;, forward: 0.005 ms"));
    /* No data to look at, and it says so. */
    assert_non_null(strstr(html, "could not be looked at"));
    tr_text_free(html);
    html = page_of("b", "d");
    assert_non_null(strstr(html, "another hash"));
    assert_null(strstr(html, "Staleness"));
    tr_text_free(html);
    /* An asynchronous run promises no hash. */
    put("f", "journal.jsonl", RUN("four", "fedcba", ",\"staleness\":[5,1],\"dropped\":2"));
    html = page_of("b", "f");
    assert_null(strstr(html, "another hash"));
    assert_non_null(strstr(html, "Staleness of gradients: f (2 dropped)"));
    expect_well_formed(html);
    tr_text_free(html);
}

static void jobs_have_curves_of_their_own(void **state)
{
    (void)state;
    put("one", "journal.jsonl", RUN("cat", "1234567890abcdef", ""));
    put("two", "journal.jsonl", RUN("dog", "fedcba", ""));
    char *html = page_of("one", "two");
    expect_well_formed(html);
    assert_non_null(strstr(html, "<h1>cat, dog</h1>"));
    assert_non_null(strstr(html, "<h3>cat</h3><div class=\"figures\">"));
    assert_int_equal(count_of(html, "<figcaption>Loss</figcaption>"), 2);
    assert_int_equal(count_of(html, "class=\"legend\""), 0); /* each chart has one line */
    tr_text_free(html);
    put("two", "journal.jsonl", RUN("cat", "fedcba", ""));
    html = page_of("one", "two");
    assert_int_equal(count_of(html, "<figcaption>Loss</figcaption>"), 1);
    /* The two are equal: the second is dashed, so that the first is seen below it. */
    assert_non_null(strstr(html, "<path class=\"line s2 twin\""));
    assert_non_null(strstr(html, "<i class=\"s2 twin\"></i>two"));
    assert_null(strstr(html, "<i class=\"s1 twin\"></i>"));
    tr_text_free(html);
}

static void a_single_process_has_no_strategy(void **state)
{
    (void)state;
#define RANKS(n)                                                                                             \
    "{\"event\":\"start\",\"name\":\"n\",\"strategy\":\"allreduce\",\"ranks\":" n "}\n"                      \
    "{\"event\":\"step\",\"step\":1,\"loss\":4}\n"
    put("alone", "journal.jsonl", RANKS("1"));
    put("shared", "journal.jsonl", RANKS("2"));
    char *html = page_of("alone", NULL);
    assert_null(strstr(html, "allreduce"));
    tr_text_free(html);
    html = page_of("alone", "shared");
    assert_non_null(strstr(html, ">one process</td>"));
    assert_int_equal(count_of(html, ">allreduce</td>"), 1);
    tr_text_free(html);
}

/* The first sentence tells what there is: a perplexity, else an accuracy, else a loss. */
static void the_lead_tells_what_there_is(void **state)
{
    (void)state;
#define EVALUATED(figures)                                                                                   \
    "{\"event\":\"start\",\"name\":\"n\"}\n{\"event\":\"step\",\"step\":1,\"loss\":4" figures "}\n"          \
    "{\"event\":\"evaluation\",\"step\":2,\"set\":\"test\",\"loss\":1.5" figures "}\n"
    static const struct {
        const char *journal, *lead;
    } cases[] = {
        {EVALUATED(""), ">Loss 1.5 on the test data, "},
        {EVALUATED(",\"accuracy\":0.25"), ">Accuracy 25.00 % on the test data, "},
        {EVALUATED(",\"accuracy\":0.25,\"perplexity\":4.48"),
         ">Perplexity 4.48 (loss 1.5000) on the test data, "},
        {"{\"event\":\"start\",\"name\":\"n\"}\n", ">Not evaluated, "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put("lead", "journal.jsonl", cases[i].journal);
        char *html = page_of("lead", NULL);
        const char *lead = strstr(html, "class=\"lead\"");
        assert_non_null(lead);
        if (!strstr(lead, cases[i].lead)) fail_msg("not %s but %.80s", cases[i].lead, lead);
        tr_text_free(html);
    }
}

/* The values under a pointer at a step: of every line that has one there. */
static void charts_answer_a_pointer(void **state)
{
    (void)state;
    put("h", "journal.jsonl",
        "{\"event\":\"start\",\"name\":\"n\"}\n"
        "{\"event\":\"step\",\"step\":1,\"loss\":4.25}\n{\"event\":\"step\",\"step\":2,\"loss\":2.5}\n"
        "{\"event\":\"evaluation\",\"step\":2,\"set\":\"test\",\"loss\":1.125}\n");
    char *html = page_of("h", NULL);
    expect_well_formed(html);
    assert_int_equal(count_of(html, "<g class=\"band\">"), 2);
    assert_null(strstr(html, "<script"));
    const char *first = strstr(html, ">1 steps</text>"), *second = strstr(html, ">2 steps</text>");
    assert_non_null(first);
    assert_non_null(second);
    const char *value = strstr(first, ">4.25</text>");
    assert_true(value && value < second);
    assert_non_null(strstr(second, ">2.5</text>"));
    assert_non_null(strstr(second, ">evaluated</text>"));
    assert_non_null(strstr(second, ">1.125</text>"));
    assert_null(strstr(second, ">4.25</text>"));
    tr_text_free(html);
}

static void what_is_no_run_is_refused(void **state)
{
    (void)state;
    const char *runs[] = {"/nowhere/at/all"};
    struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
    char *html;
    assert_int_equal(tr_report(runs, 1, &settings, &html), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "/nowhere/at/all"));
    assert_int_equal(tr_report(runs, 0, &settings, &html), TR_EINVAL);
    put("e", "journal.jsonl", "{\"event\":\"start\",\"name\":\"e\"}\n");
    char path[SCRATCH_PATH + 8];
    snprintf(path, sizeof path, "%s/e", scratch_place);
    runs[0] = path;
    settings.trace = "/nowhere/trace.json";
    assert_int_equal(tr_report(runs, 1, &settings, &html), TR_ENOTFOUND);
    put("e", "bad.json", "{\"traceEvents\":7}");
    char bad[SCRATCH_PATH + 16];
    snprintf(bad, sizeof bad, "%s/e/bad.json", scratch_place);
    settings.trace = bad;
    assert_int_equal(tr_report(runs, 1, &settings, &html), TR_EFORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_from_outside_are_text),      cmocka_unit_test(runs_are_compared),
        cmocka_unit_test(what_is_no_run_is_refused),        cmocka_unit_test(jobs_have_curves_of_their_own),
        cmocka_unit_test(a_single_process_has_no_strategy), cmocka_unit_test(the_lead_tells_what_there_is),
        cmocka_unit_test(charts_answer_a_pointer),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
