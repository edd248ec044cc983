/* Curves of runs: which there are, from which figures, in which colours and scales. */
#include "report/sections/curves.h"

#include "base/alloc.h"
#include "refuse.h"
#include "report/pages.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { POINTS = 30 };

/* A run whose figures are told apart by their values, of POINTS steps, 10 by 10. */
static void make_run(struct tr_run *run, struct tr_run_point point[POINTS])
{
    for (int i = 0; i < POINTS; i++)
        point[i] = (struct tr_run_point){.step = 10 * i,
                                         .loss = 1 + i,
                                         .accuracy = 0.25,
                                         .rate = 0.5,
                                         .norm = 1 + i,
                                         .speed = 300,
                                         .seconds = 7};
    *run = (struct tr_run){.point = point, .points = POINTS};
}

static char *draw(struct tr_run *const *run, char *const *label, int count, int colour)
{
    struct tr_text html = TR_TEXT_INIT;
    char *text;
    assert_int_equal(tr_report_curves(&html, run, label, count, colour), TR_OK);
    assert_int_equal(tr_text_finish(&html, &text), TR_OK);
    return text;
}

/* The chart with this title, up to its end. */
static char *chart_of(const char *html, const char *title)
{
    char head[96];
    snprintf(head, sizeof head, "<figure><figcaption>%s</figcaption>", title);
    const char *begin = strstr(html, head);
    if (!begin) fail_msg("no chart \"%s\"", title);
    char *chart = tr_strdup(begin);
    assert_non_null(chart);
    *strstr(chart, "</figure>") = 0;
    return chart;
}

static void each_figure_has_a_chart(void **state)
{
    static char name[] = "alone";
    char *const label[] = {name};
    struct tr_run_point point[POINTS];
    struct tr_run_evaluation evaluation[] = {{.step = 0, .loss = 8, .accuracy = 0.5},
                                             {.step = 290, .loss = 2, .accuracy = 0.75}};
    struct tr_run run, *const runs[] = {&run};
    (void)state;
    make_run(&run, point);
    run.evaluation = evaluation, run.evaluations = 2;
    char *html = draw(runs, label, 1, 0);
    assert_int_equal(count_of(html, "<figure>"), 5);
    assert_ptr_equal(strstr(html, "<div class=\"figures\">\n"), html);
    assert_string_equal(html + strlen(html) - strlen("</figure>\n</div>\n"), "</figure>\n</div>\n");
    /* on a logarithmic axis from 1 to 100, over 300 steps */
    char *chart = chart_of(html, "Loss");
    expect(chart, "<li><i class=\"s1\"></i>training</li><li><i class=\"s2 dashed\"></i>evaluated</li>");
    expect(chart, ">steps</text>");
    expect(chart, "<path class=\"raw s1\" d=\"M52.0 216.0L65.9 185.0");
    expect(chart, "<path class=\"line s1\" d=\"M52.0 216.0L");
    expect(chart, "<path class=\"line s2 dashed\" d=\"M52.0 123.0L454.1 185.0\"/><circle class=\"dot s2\"");
    tr_free(chart);
    /* from 20 to 80 percent */
    chart = chart_of(html, "Accuracy");
    expect(chart, ">20 %</text>");
    expect(chart, "evaluated: 75.00 % at 290</title>");
    expect(chart, "<path class=\"raw s1\"");
    tr_free(chart);
    /* from 0 to 300 */
    chart = chart_of(html, "Examples per second");
    expect(chart, "<path class=\"line s1\" d=\"M52.0 10.0L");
    expect(chart, ">0</text>");
    expect(chart, "<path class=\"raw s1\"");
    expect_none(chart, "legend");
    tr_free(chart);
    /* a rate that changes at once is not smoothed away */
    chart = chart_of(html, "Learning rate");
    expect(chart, "<path class=\"line s1\" d=\"M52.0 10.0L");
    expect(chart, ">0.5</text>");
    expect_none(chart, "\"raw ");
    expect_none(chart, "legend");
    tr_free(chart);
    chart = chart_of(html, "Norm of the gradient");
    expect(chart, "<path class=\"raw s1\" d=\"M52.0 216.0L65.9 185.0");
    expect_none(chart, "evaluated");
    tr_free(chart);
    tr_free(html);
}

/* Colours go on from those of other jobs, and begin anew after the eighth. */
static void runs_share_charts(void **state)
{
    static char first[] = "<one>", second[] = "two";
    char *const label[] = {first, second};
    struct tr_run_point point[2][POINTS];
    struct tr_run_evaluation evaluation[] = {{.step = 290, .loss = 2, .accuracy = 0.75}};
    struct tr_run run[2], *const runs[] = {&run[0], &run[1]};
    (void)state;
    make_run(&run[0], point[0]);
    make_run(&run[1], point[1]);
    run[1].points = 20;
    run[0].evaluation = run[1].evaluation = evaluation;
    run[0].evaluations = 0, run[1].evaluations = 1;
    char *html = draw(runs, label, 2, 7);
    char *chart = chart_of(html, "Loss");
    expect(chart,
           "<ul class=\"legend\"><li><i class=\"s8\"></i>&lt;one&gt;</li><li><i class=\"s1\"></i>two</li>"
           "<li><i class=\"s1 dashed\"></i>two, evaluated</li></ul>");
    tr_free(chart);
    chart = chart_of(html, "Learning rate");
    expect(chart,
           "<ul class=\"legend\"><li><i class=\"s8\"></i>&lt;one&gt;</li><li><i class=\"s1\"></i>two</li>"
           "</ul>");
    tr_free(chart);
    tr_free(html);
    run[0].evaluations = 1;
    html = draw(runs, label, 2, 2);
    expect(html, "<ul class=\"legend\"><li><i class=\"s3\"></i>&lt;one&gt;</li>"
                 "<li><i class=\"s3 dashed\"></i>&lt;one&gt;, evaluated</li><li><i class=\"s4\"></i>two</li>"
                 "<li><i class=\"s4 dashed twin\"></i>two, evaluated</li></ul>");
    tr_free(html);
}

/* Where a figure was never recorded there is no chart; smoothed losses of any run are named. */
static void charts_follow_from_the_runs(void **state)
{
    static char first[] = "one", second[] = "two";
    static const char smoothed[] = "Loss (of steps with label smoothing, of evaluations without)";
    char *const label[] = {first, second};
    struct tr_run_point point[2][POINTS];
    struct tr_run run[2], *const runs[] = {&run[0], &run[1]};
    (void)state;
    make_run(&run[0], point[0]);
    make_run(&run[1], point[1]);
    for (int i = 0; i < POINTS; i++) point[0][i].accuracy = point[0][i].norm = NAN;
    char *html = draw(runs, label, 1, 0);
    expect_none(html, "Accuracy");
    expect_none(html, "Norm");
    expect_none(html, smoothed);
    assert_int_equal(count_of(html, "<figure>"), 3);
    tr_free(html);
    for (int which = 0; which < 2; which++) {
        run[which].label_smoothing = 0.1, run[1 - which].label_smoothing = 0;
        html = draw(runs, label, 2, 0);
        expect(html, smoothed);
        tr_free(html);
    }
    run[0].points = run[1].points = 0;
    html = draw(runs, label, 2, 0);
    assert_string_equal(html, "<div class=\"figures\">\n</div>\n");
    tr_free(html);
}

static void missing_memory_is_told(void **state)
{
    static char first[] = "one", second[] = "two";
    char *const label[] = {first, second};
    struct tr_run_point point[2][POINTS];
    struct tr_run_evaluation evaluation[] = {{.step = 290, .loss = 2, .accuracy = 0.75}};
    struct tr_run run[2], *const runs[] = {&run[0], &run[1]};
    bool done = false;
    (void)state;
    for (int i = 0; i < 2; i++) {
        make_run(&run[i], point[i]);
        run[i].evaluation = evaluation, run[i].evaluations = 1;
    }
    for (int64_t at = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct tr_text html = TR_TEXT_INIT;
        refuse_begin(at);
        const tr_status status = tr_report_curves(&html, runs, label, 2, 0);
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
        cmocka_unit_test(each_figure_has_a_chart),
        cmocka_unit_test(runs_share_charts),
        cmocka_unit_test(charts_follow_from_the_runs),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("report.curves", tests, NULL, NULL);
}
