/* What a page says of a run beside its curves: its processes, how stale its gradients were, and all that is
 * needed to repeat it.
 */
#include "report/repeat.h"
#include "report/sections/processes.h"

#include "base/alloc.h"
#include "report/pages.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static char *finish(struct tr_text *html)
{
    char *text;
    tr_text_add(html, "");
    assert_int_equal(tr_text_finish(html, &text), TR_OK);
    return text;
}

/* A bar for each number of missed updates, up to the greatest that occurred. */
static void staleness_is_counted(void **state)
{
    struct tr_run run = {.staleness = {5, 0, 1, 0, 0}, .staleness_count = 5, .dropped = 2};
    struct tr_text html = TR_TEXT_INIT;
    (void)state;
    tr_report_staleness(&html, &run, "<label>");
    char *text = finish(&html);
    expect(text, "<figcaption>Staleness of gradients: &lt;label&gt; (2 dropped)</figcaption>");
    expect(text, ">updates missed between reading parameters and applying the gradient</text>");
    assert_int_equal(count_of(text, "<rect class=\"bar "), 3);
    static const char *const labels[] = {">5</text><text ", "y=\"232\" text-anchor=\"middle\">0</text>",
                                         "y=\"232\" text-anchor=\"middle\">1</text>",
                                         "y=\"232\" text-anchor=\"middle\">2</text>"};
    const char *at = text;
    for (int i = 0; i < 4; i++) {
        at = strstr(at, labels[i]);
        if (!at) fail_msg("no %s in its place in\n%s", labels[i], text);
    }
    tr_free(text);
    run.staleness_count = TR_RUN_BINS, run.staleness[TR_RUN_BINS - 1] = 1;
    tr_report_staleness(&html, &run, "l");
    text = finish(&html);
    assert_int_equal(count_of(text, "<rect class=\"bar "), TR_RUN_BINS);
    tr_free(text);
    run = (struct tr_run){.staleness = {7}, .staleness_count = 3}; /* where none was stale */
    tr_report_staleness(&html, &run, "l");
    text = finish(&html);
    assert_int_equal(count_of(text, "<rect class=\"bar "), 1);
    tr_free(text);
    run = (struct tr_run){.staleness_count = 3};
    tr_report_staleness(&html, &run, "l");
    assert_int_equal(html.length, 0);
    tr_text_release(&html);
}

static void processes_have_a_row(void **state)
{
    struct tr_run_rank rank[] = {
        {.sent = 2048, .received = 3072, .shared = 4096, .wait = 0.25, .compute = 1.5}, {.wait = 12.25}};
    const struct tr_run run = {.rank = rank, .rank_count = 2};
    struct tr_text html = TR_TEXT_INIT;
    (void)state;
    tr_report_ranks(&html, &run, "<label>");
    char *text = finish(&html);
    assert_string_equal(
        text,
        "<figure class=\"wide\"><figcaption>Processes: &lt;label&gt;</figcaption><div class=\"scroll\">"
        "<table class=\"facts\"><thead><tr><th>rank</th><th class=\"number\">computing</th>"
        "<th class=\"number\">waiting</th><th class=\"number\">sent</th><th class=\"number\">received</th>"
        "<th class=\"number\">read in shared memory</th></tr></thead><tbody>"
        "<tr><td>0</td><td class=\"number\">1.50 s</td><td class=\"number\">0.25 s</td>"
        "<td class=\"number\">2.0 KiB</td><td class=\"number\">3.0 KiB</td><td class=\"number\">4.0 KiB</td>"
        "</tr><tr><td>1</td><td class=\"number\">0.00 s</td><td class=\"number\">12.25 s</td>"
        "<td class=\"number\">0 bytes</td><td class=\"number\">0 bytes</td><td class=\"number\">0 "
        "bytes</td></tr>"
        "</tbody></table></div></figure>\n");
    tr_free(text);
}

#define ROW(name, value) "<tr><th>" name "</th><td class=\"hash\">" value "</td></tr>"

/* Everything that is known, in this order. */
static void a_run_can_be_repeated(void **state)
{
    const struct tr_run run = {.name = "n",
                               .command = "trireme train \"m\"",
                               .hash = "abc",
                               .settings = "def",
                               .seed = -7,
                               .model = "<m>.yaml",
                               .batch = 12,
                               .microbatches = 3,
                               .parameters = 345,
                               .device = "cpu",
                               .host = "h",
                               .started = "noon",
                               .resumed = 2,
                               .checkpoint = "/c",
                               .best = {.step = 6, .loss = 0.25, .accuracy = 0.75, .set = "validation"},
                               .version = "1.0",
                               .status = "full",
                               .message = "no <room>"};
    struct tr_text html = TR_TEXT_INIT;
    (void)state;
    tr_report_repetition(&html, &run, "<label>");
    char *text = finish(&html);
    assert_string_equal(
        text,
        "<h3>&lt;label&gt;</h3><pre>trireme train &quot;m&quot;</pre><div class=\"scroll\">"
        "<table class=\"facts\"><tbody>" ROW("hash", "abc") ROW("settings", "def") ROW("seed", "-7")
            ROW("model file", "&lt;m&gt;.yaml") ROW("batch", "12 examples in 3 microbatches")
                ROW("parameters", "345") ROW("device", "cpu") ROW("host", "h") ROW("started", "noon")
                    ROW("taken up again", "2 times") ROW("checkpoint", "/c")
                        ROW("best evaluation", "step 6: accuracy 75.00 %, loss 0.25 on the validation data")
                            ROW("version", "1.0")
                                ROW("ended with", "no &lt;room&gt;") "</tbody></table></div>\n");
    tr_free(text);
}

/* What is not known has no row. */
static void little_may_be_known(void **state)
{
    struct tr_run run = {.name = "",
                         .command = "",
                         .hash = "",
                         .settings = "",
                         .model = "",
                         .device = "",
                         .host = "",
                         .started = "",
                         .checkpoint = "",
                         .version = "",
                         .status = "",
                         .message = "unsaid"};
    struct tr_text html = TR_TEXT_INIT;
    (void)state;
    tr_report_repetition(&html, &run, NULL);
    char *text = finish(&html);
    assert_string_equal(text, "<div class=\"scroll\"><table class=\"facts\"><tbody>" ROW("seed", "0")
                                  ROW("batch", "0 examples in 0 microbatches")
                                      ROW("parameters", "0") "</tbody></table></div>\n");
    tr_free(text);
    run.status = "ok", run.resumed = 1;
    run.best = (struct tr_run_evaluation){.step = 1, .loss = 2, .accuracy = NAN, .set = "test"};
    tr_report_repetition(&html, &run, NULL);
    text = finish(&html);
    expect(text, ROW("taken up again", "1 time"));
    expect(text, ROW("best evaluation", "step 1: loss 2 on the test data"));
    expect_none(text, "ended with");
    tr_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(staleness_is_counted),
        cmocka_unit_test(processes_have_a_row),
        cmocka_unit_test(a_run_can_be_repeated),
        cmocka_unit_test(little_may_be_known),
    };
    return cmocka_run_group_tests_name("report.facts", tests, NULL, NULL);
}
