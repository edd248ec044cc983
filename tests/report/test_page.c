/* The page of runs: well-formed, complete, and closed to hostile names. */
#include "trireme/report.h"

#include "support/html.h"
#include "support/training.h"

#include "base/files/file.h"
#include "report/draw/chart_frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

/* Writes a file of a run directory, which is made if need be. */
static void put(const char *run, const char *name, const char *text)
{
    char path[SCRATCH_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", scratch_place, run);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", scratch_place, run, name);
    must_train(tr_file_write_atomic(NULL, path, text, strlen(text)));
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

static void losses_of_two_kinds_are_told_apart(void **state)
{
    (void)state;
    static const char line[] = "{\"event\":\"step\",\"step\":1,\"loss\":4}\n";
    char text[256];
    for (int smoothed = 0; smoothed < 2; smoothed++) {
        snprintf(text, sizeof text, "{\"event\":\"start\",\"name\":\"n\"%s}\n%s",
                 smoothed ? ",\"label_smoothing\":0.1" : "", line);
        put("s", "journal.jsonl", text);
        char *html = page_of("s", NULL);
        assert_int_equal(strstr(html, "steps with label smoothing") != NULL, smoothed);
        tr_text_free(html);
    }
}

static void the_best_evaluation_is_named(void **state)
{
    (void)state;
    put("best", "journal.jsonl",
        "{\"event\":\"start\",\"name\":\"n\"}\n"
        "{\"event\":\"step\",\"step\":9,\"loss\":4,\"accuracy\":0.5}\n"
        "{\"event\":\"end\",\"status\":\"ok\",\"step\":9,\"best\":{\"step\":6,\"set\":\"validation\","
        "\"loss\":0.25,"
        "\"accuracy\":0.75}}\n");
    char *html = page_of("best", NULL);
    assert_non_null(strstr(html, "step 6: accuracy 75.00 %, loss 0.25 on the validation data"));
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

#define METRICS                                                                                              \
    "\"metrics\":{\"top_5\":1,\"roc_auc\":0.98,\"exact_match\":0.5},"                                        \
    "\"outputs\":{\"name\":[\"x\",\"y\"],\"f1\":[0.9712091,0.5],\"support\":[1234,5]}"

/* How often `part` occurs. */
static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) count++;
    return count;
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

#define SPAN(rank, thread, category, name, begin, length)                                                    \
    "{\"ph\":\"X\",\"pid\":" rank ",\"tid\":" thread ",\"ts\":" begin ",\"dur\":" length                     \
    ",\"cat\":\"" category "\",\"name\":\"" name "\",\"args\":{\"step\":1}}"

/* The last two steps of the trace, of 5 ms: spans by proportion between 96 and 960, cut off where they begin
   before; and a lane for each thread. */
static void timelines_show_the_last_steps(void **state)
{
    (void)state;
    put("traced", "journal.jsonl",
        "{\"event\":\"start\",\"name\":\"n\"}\n{\"event\":\"step\",\"step\":1,\"loss\":4}\n");
    put("traced", "trace.json",
        "{\"traceEvents\":[" SPAN("0", "0", "forward", "gone", "200", "300") "," SPAN("0", "0", "step", "step", "0", "1000") "," SPAN(
            "0", "0", "backward", "cut", "500",
            "1500") "," SPAN("0", "0", "step", "step", "1000",
                             "2000") "," SPAN("0", "0", "forward", "conv", "3000",
                                              "1000") "," SPAN("0", "1", "input", "rows", "4000",
                                                               "500") "," SPAN("1", "0", "waiting", "for all",
                                                                               "5000",
                                                                               "1000") "," SPAN("0", "0",
                                                                                                "step",
                                                                                                "step",
                                                                                                "3000",
                                                                                                "3000") "]}");
    char *html = page_of("traced", NULL);
    static const char *const parts[] = {"Timeline: 5.0 ms at the end of the trace",
                                        "<rect class=\"bar s2\" x=\"96.0\" y=\"4\" width=\"172.8\" "
                                        "height=\"26\"><title>cut, backward: 1.500 ms<",
                                        "<rect class=\"bar s1\" x=\"441.6\" y=\"4\" width=\"172.8\" "
                                        "height=\"26\"><title>conv, forward: 1.000 ms<",
                                        "<rect class=\"bar s6\" x=\"614.4\" y=\"38\" width=\"86.4\" "
                                        "height=\"26\"><title>rows, input: 0.500 ms<",
                                        "<rect class=\"bar s5\" x=\"787.2\" y=\"82\" width=\"172.8\" "
                                        "height=\"16\"><title>for all, waiting: 1.000 ms<",
                                        ">rank 0, reader<",
                                        ">rank 1<"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!strstr(html, parts[i])) fail_msg("no %s in\n%s", parts[i], strstr(html, "Timeline"));
    assert_null(strstr(html, "gone, forward"));
    tr_text_free(html);
}

/* What each process did, below its heads. */
static void processes_have_a_row(void **state)
{
    (void)state;
    put("ranks", "journal.jsonl",
        "{\"event\":\"start\",\"name\":\"n\",\"ranks\":2}\n{\"event\":\"step\",\"step\":1,\"loss\":4}\n"
        "{\"event\":\"end\",\"status\":\"ok\",\"statistics\":{\"ranks\":[{\"bytes_sent\":2048,"
        "\"bytes_received\":3072,\"bytes_shared\":4096,\"wait_seconds\":0.25,\"compute_seconds\":1.5},{}]}}"
        "\n");
    char *html = page_of("ranks", NULL);
    static const char *const cells[] = {"computing", "1.50 s",  "waiting",
                                        "0.25 s",    "sent",    "2.0 KiB",
                                        "received",  "3.0 KiB", "read in shared memory",
                                        "4.0 KiB"};
    const char *head = strstr(html, "<th>rank</th>"), *row = strstr(html, "<tr><td>0</td>");
    assert_true(head && row && head < row);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        const char **at = i % 2 ? &row : &head;
        char cell[64];
        snprintf(cell, sizeof cell, i % 2 ? "<td class=\"number\">%s</td>" : "<th class=\"number\">%s</th>",
                 cells[i]);
        const char *next = strstr(*at, "class=\"number\"");
        if (!next || strncmp(next - 4, cell, strlen(cell)) != 0) fail_msg("no %s in %.60s", cell, *at);
        *at = next + 1;
    }
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

/* How a run can be made once more: what it was of, and how often it was interrupted. */
static void the_facts_to_repeat_a_run_are_told(void **state)
{
    (void)state;
#define BEGUN(step)                                                                                          \
    "{\"event\":\"start\",\"name\":\"n\",\"seed\":7,\"batch\":12,\"microbatches\":3,\"parameters\":345,"     \
    "\"step\":" step "}\n{\"event\":\"step\",\"step\":9,\"loss\":4}\n"
    static const char *const facts[][2] = {
        {"seed", "7"}, {"batch", "12 examples in 3 microbatches"}, {"parameters", "345"}};
    static const struct {
        const char *journal, *again;
    } cases[] = {
        {BEGUN("0"), NULL}, {BEGUN("0") BEGUN("9"), "1 time"}, {BEGUN("0") BEGUN("9") BEGUN("9"), "2 times"}};
    char row[128];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put("repeated", "journal.jsonl", cases[i].journal);
        char *html = page_of("repeated", NULL);
        for (size_t k = 0; k < sizeof facts / sizeof facts[0]; k++) {
            snprintf(row, sizeof row, ">%s</th><td class=\"hash\">%s</td>", facts[k][0], facts[k][1]);
            if (!strstr(html, row)) fail_msg("no %s", row);
        }
        snprintf(row, sizeof row, ">taken up again</th><td class=\"hash\">%s</td>",
                 cases[i].again ? cases[i].again : "");
        if (cases[i].again && !strstr(html, row)) fail_msg("no %s", row);
        if (!cases[i].again) assert_null(strstr(html, "taken up again"));
        tr_text_free(html);
    }
}

/* As people write numbers, in the box that follows the pointer. */
static void values_of_charts_are_short(void **state)
{
    (void)state;
    static const struct {
        double value;
        bool percent;
        const char *text;
    } cases[] = {{0.123456, false, "0.1235"}, {9999, false, "9999"},  {10000, false, "10,000"},
                 {-25000, false, "-25,000"},  {2e15, false, "2e+15"}, {0.5, true, "50.00 %"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_chart_frame frame = {.percent = cases[i].percent};
        char text[TR_CHART_VALUE_SIZE];
        assert_string_equal(tr_chart_value(&frame, cases[i].value, text), cases[i].text);
    }
}

static void figures_have_names_and_even_digits(void **state)
{
    (void)state;
    put("m", "journal.jsonl",
        "{\"event\":\"start\",\"name\":\"n\"}\n{\"event\":\"step\",\"step\":1,\"loss\":4}\n"
        "{\"event\":\"evaluation\",\"step\":2,\"set\":\"test\",\"loss\":1,\"accuracy\":0.5," METRICS "}\n");
    char *html = page_of("m", NULL);
    expect_well_formed(html);
    static const char *const parts[] = {">among the 5 likeliest<",
                                        ">ROC AUC<",
                                        ">exact match<",
                                        ">F1<",
                                        ">examples<",
                                        ">1.0000<",
                                        ">0.9800<",
                                        ">0.5000<",
                                        ">0.9712<",
                                        ">1,234<",
                                        ">5<"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!strstr(html, parts[i])) fail_msg("%s is missing in\n%s", parts[i], html);
    assert_null(strstr(html, "roc_auc"));
    tr_text_free(html);
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
        cmocka_unit_test(names_from_outside_are_text),
        cmocka_unit_test(losses_of_two_kinds_are_told_apart),
        cmocka_unit_test(the_best_evaluation_is_named),
        cmocka_unit_test(runs_are_compared),
        cmocka_unit_test(what_is_no_run_is_refused),
        cmocka_unit_test(jobs_have_curves_of_their_own),
        cmocka_unit_test(a_single_process_has_no_strategy),
        cmocka_unit_test(timelines_show_the_last_steps),
        cmocka_unit_test(processes_have_a_row),
        cmocka_unit_test(the_lead_tells_what_there_is),
        cmocka_unit_test(the_facts_to_repeat_a_run_are_told),
        cmocka_unit_test(values_of_charts_are_short),
        cmocka_unit_test(figures_have_names_and_even_digits),
        cmocka_unit_test(charts_answer_a_pointer),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
