/* What stands in charts beside a single line: the lines of several series, their legend, dots, titles; and
 * charts of points and of bars. In a picture of 480 by 250, with the plot between 52 and 468, and between 216
 * at the bottom and 10.
 */
#include "report/draw/chart.h"

#include "base/alloc.h"
#include "report/pages.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char *finish(struct tr_text *html)
{
    char *text;
    assert_int_equal(tr_text_finish(html, &text), TR_OK);
    return text;
}

static char *draw(const struct tr_chart_series *series, int count, bool percent)
{
    struct tr_text html = TR_TEXT_INIT;
    const struct tr_chart chart = {.title = "a <title>",
                                   .x_label = "<steps>",
                                   .series = series,
                                   .count = count,
                                   .percent = percent,
                                   .still = true};
    tr_chart_lines(&html, &chart);
    return finish(&html);
}

static const struct tr_chart_point rising[] = {{0, 0}, {20, 10}}, middle[] = {{10, 5}}, low[] = {{5, -2}},
                                   late[] = {{40, 4}}, never[] = {{1, NAN}, {INFINITY, 2}};

/* The range of all of them, in whichever order they come. */
static void series_have_common_axes(void **state)
{
    const struct tr_chart_series series[] = {
        {.name = "rising", .point = rising, .count = 2, .colour = 0},
        {.name = "middle", .point = middle, .count = 1, .colour = 1},
        {.name = "low", .point = low, .count = 1, .colour = 2},
        {.name = "late", .point = late, .count = 1, .colour = 3},
        {.name = "never", .point = never, .count = 2, .colour = 4},
    };
    (void)state;
    /* 0 to 20 along, 0 to 10 up. */
    char *html = draw(series, 2, false);
    expect(html, "<path class=\"line s1\" d=\"M52.0 216.0L468.0 10.0\"/>");
    expect(html, "<path class=\"line s2\" d=\"M260.0 113.0\"/>");
    tr_free(html);
    const struct tr_chart_series turned[] = {series[1], series[0]};
    html = draw(turned, 2, false);
    expect(html, "<path class=\"line s1\" d=\"M52.0 216.0L468.0 10.0\"/>");
    tr_free(html);
    /* 0 to 40, and -5 to 10; what is not finite is none of it */
    html = draw(series, 5, false);
    expect(html, "<path class=\"line s1\" d=\"M52.0 147.3L260.0 10.0\"/>");
    expect(html, "<path class=\"line s3\" d=\"M104.0 174.8\"/>");
    expect(html, "<path class=\"line s4\" d=\"M468.0 92.4\"/>");
    expect(html, "<path class=\"line s5\" d=\"\"/>");
    /* nor is it in the legend */
    expect(html, "<ul class=\"legend\"><li><i class=\"s1\"></i>rising</li><li><i class=\"s2\"></i>middle</li>"
                 "<li><i class=\"s3\"></i>low</li><li><i class=\"s4\"></i>late</li></ul>");
    tr_free(html);
}

static void charts_have_a_title_and_a_label(void **state)
{
    const struct tr_chart_series series[] = {{.name = "<a>", .point = rising, .count = 2},
                                             {.name = "b", .point = middle, .count = 1}},
                                 none = {.name = "none", .point = never, .count = 2};
    (void)state;
    char *html = draw(series, 1, false);
    assert_ptr_equal(strstr(html,
                            "<figure><figcaption>a &lt;title&gt;</figcaption>"
                            "<svg viewBox=\"0 0 480 250\" role=\"img\" aria-label=\"a &lt;title&gt;\">"),
                     html);
    expect(html, "<text x=\"260\" y=\"247\" text-anchor=\"middle\">&lt;steps&gt;</text></g>");
    expect(html, "</svg></figure>\n");
    expect_none(html, "legend"); /* of one line */
    tr_free(html);
    html = draw(series, 2, false);
    expect(html, "<i class=\"s1\"></i>&lt;a&gt;</li>");
    tr_free(html);
    struct tr_text nothing = TR_TEXT_INIT;
    const struct tr_chart empty = {.title = "t", .x_label = "x", .series = &none, .count = 1};
    tr_chart_lines(&nothing, &empty);
    assert_int_equal(nothing.length, 0);
    tr_text_release(&nothing);
}

/* A line is dashed where it lies on an earlier one of its kind; one that differs in a point does not. */
static void lines_on_others_are_dashed(void **state)
{
    static const struct tr_chart_point base[] = {{0, 0}, {1, NAN}, {2, 4}},
                                       same[] = {{0, 0}, {1, NAN}, {2, 4}},
                                       higher[] = {{0, 0}, {1, NAN}, {2, 5}},
                                       wider[] = {{0, 0}, {1.5, NAN}, {2, 4}},
                                       known[] = {{0, 0}, {1, 2}, {2, 4}};
#define LINE(p, n, c, d)                                                                                     \
    {                                                                                                        \
        .name = "l", .point = (p), .count = (n), .colour = (c), .dashed = (d)                                \
    }
    const struct tr_chart_series series[] = {LINE(base, 3, 0, false),   LINE(same, 3, 1, false),
                                             LINE(higher, 3, 2, false), LINE(wider, 3, 3, false),
                                             LINE(known, 3, 4, false),  LINE(same, 2, 5, false),
                                             LINE(same, 3, 6, true),    LINE(base, 3, 7, true)};
    (void)state;
    char *html = draw(series, 8, false);
    static const char *const styles[] = {"s1", "s2 twin", "s3",        "s4",
                                         "s5", "s6",      "s7 dashed", "s8 dashed twin"};
    for (int i = 0; i < 8; i++) {
        char part[64];
        snprintf(part, sizeof part, "<path class=\"line %s\" ", styles[i]);
        expect(html, part);
        snprintf(part, sizeof part, "<i class=\"%s\"></i>", styles[i]);
        expect(html, part);
    }
    tr_free(html);
    /* Those without points are not equal. */
    const struct tr_chart_series empty[] = {LINE(base, 0, 0, false), LINE(base, 0, 1, false),
                                            LINE(base, 3, 2, false)};
    html = draw(empty, 3, false);
    expect(html, "<path class=\"line s1\" d=\"\"/><path class=\"line s2\" d=\"\"/>");
    tr_free(html);
}

/* Up to 60 dots, each with its value. */
static void dots_say_their_values(void **state)
{
    struct tr_chart_point many[61];
    struct tr_chart_series series = {
        .name = "<d>", .point = rising, .count = 2, .colour = 4, .dots = true, .smooth = true};
    (void)state;
    char *html = draw(&series, 1, false);
    expect(html, "<path class=\"line s5\" d=\"M52.0 216.0L468.0 10.0\"/>"
                 "<circle class=\"dot s5\" cx=\"52.0\" cy=\"216.0\" r=\"3\"><title>&lt;d&gt;: 0 at 0</title>"
                 "</circle><circle class=\"dot s5\" cx=\"468.0\" cy=\"10.0\" r=\"3\"><title>&lt;d&gt;: 10 at "
                 "20</title></circle>");
    tr_free(html);
    static const struct tr_chart_point corner[] = {{0, 0}, {10, 10}, {20, 0}};
    series.point = corner, series.count = 3;
    html = draw(&series, 1, false);
    expect(html, "<path class=\"line s5\" d=\"M52.0 216.0L260.0 10.0L468.0 216.0\"/>");
    tr_free(html);
    static const struct tr_chart_point shares[] = {{0, 0}, {1, NAN}, {5, 0.5}};
    series.point = shares, series.count = 3;
    html = draw(&series, 1, true);
    expect(html, "<title>&lt;d&gt;: 50.00 % at 5</title>");
    assert_int_equal(count_of(html, "<circle"), 2);
    tr_free(html);
    for (int i = 0; i < 61; i++) many[i] = (struct tr_chart_point){i, i % 5};
    for (int count = 60; count <= 61; count++) {
        series.point = many, series.count = count;
        html = draw(&series, 1, false);
        assert_int_equal(count_of(html, "<circle"), count == 60 ? 60 : 0);
        expect_none(html, "\"raw "); /* nothing is smoothed */
        tr_free(html);
    }
}

/* Both axes of a chart of points have the range of both, and a line where the two are equal. */
static void points_lie_about_a_line(void **state)
{
    static const struct tr_chart_point points[] = {{0, 2}, {4, NAN}, {5, 10}};
    struct tr_text html = TR_TEXT_INIT;
    (void)state;
    tr_chart_scatter(&html, "t&", "true <value>", points, 3);
    char *text = finish(&html);
    expect(text, "<figcaption>t&amp;</figcaption>");
    expect(text, ">true &lt;value&gt;</text>");
    expect(text, "<path class=\"line s8 dashed\" d=\"M52.0 216.0L468.0 10.0\"/>");
    expect(text, "<circle class=\"dot\" cx=\"52.0\" cy=\"174.8\" r=\"2.5\"><title>2 at 0</title></circle>");
    expect(text, "<circle class=\"dot\" cx=\"260.0\" cy=\"10.0\" r=\"2.5\"><title>10 at 5</title></circle>");
    assert_int_equal(count_of(text, "<circle"), 2);
    /* one mark of each axis: of the same values */
    expect(text, "<text x=\"46\" y=\"14.0\" text-anchor=\"end\">10</text>");
    expect(text, "<text x=\"468.0\" y=\"232\" text-anchor=\"end\">10</text>");
    tr_free(text);
    static const struct tr_chart_point wide[] = {{-10, -4}, {6, 0}};
    tr_chart_scatter(&html, "t", "x", wide, 2);
    text = finish(&html);
    expect(text, "cx=\"52.0\" cy=\"154.2\""); /* -10 to 10 */
    tr_free(text);
    static const struct tr_chart_point twelve[] = {{0, 0}, {12, 12}};
    tr_chart_scatter(&html, "t", "x", twelve, 2);
    text = finish(&html);
    expect(text, "cx=\"384.8\" cy=\"51.2\""); /* 0 to 15, by 5 */
    tr_free(text);
    tr_chart_scatter(&html, "t", "x", points + 1, 1);
    assert_int_equal(html.length, 0);
    tr_text_release(&html);
}

/* As high as their values, with room for the number above; evenly spaced, each above its label. */
static void bars_are_as_high_as_their_values(void **state)
{
    static const struct tr_chart_bar bars[] = {{"<0>", 3}, {"1", 0}, {"2", 1.5}, {"3", 0.75}};
    struct tr_chart_bar many[26];
    struct tr_text html = TR_TEXT_INIT;
    (void)state;
    tr_chart_bars(&html, "title", "<missed>", bars, 4);
    char *text = finish(&html);
    static const char *const parts[] = {
        "<figcaption>title</figcaption>",
        "<rect class=\"bar s1\" x=\"80.0\" y=\"26.0\" width=\"48.0\" height=\"190.0\"/>",
        "<text x=\"104.0\" y=\"22.0\" text-anchor=\"middle\">3</text>",
        "<text x=\"104.0\" y=\"232\" text-anchor=\"middle\">&lt;0&gt;</text>",
        "<rect class=\"bar s1\" x=\"184.0\" y=\"216.0\" width=\"48.0\" height=\"0.0\"/>",
        "<rect class=\"bar s1\" x=\"288.0\" y=\"121.0\" width=\"48.0\" height=\"95.0\"/>",
        "<text x=\"312.0\" y=\"117.0\" text-anchor=\"middle\">1.5</text>",
        "<rect class=\"bar s1\" x=\"392.0\" y=\"168.5\" width=\"48.0\" height=\"47.5\"/>",
        "<text x=\"416.0\" y=\"232\" text-anchor=\"middle\">3</text>",
        "<path d=\"M52 216H468\"/>",
        "<text x=\"260\" y=\"247\" text-anchor=\"middle\">&lt;missed&gt;</text>"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) expect(text, parts[i]);
    tr_free(text);
    for (int i = 0; i < 26; i++) many[i] = (struct tr_chart_bar){"b", 26 - i};
    tr_chart_bars(&html, "title", "x", many, 26); /* 16 for each, of which a fifth stays free */
    text = finish(&html);
    expect(text, "<rect class=\"bar s1\" x=\"53.6\" y=\"26.0\" width=\"12.8\" height=\"190.0\"/>");
    expect(text, "<rect class=\"bar s1\" x=\"453.6\" ");
    tr_free(text);
    /* Nothing where all are 0, or there are none. */
    tr_chart_bars(&html, "title", "x", bars + 1, 1);
    tr_chart_bars(&html, "title", "x", NULL, 0);
    assert_int_equal(html.length, 0);
    tr_text_release(&html);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(series_have_common_axes),    cmocka_unit_test(charts_have_a_title_and_a_label),
        cmocka_unit_test(lines_on_others_are_dashed), cmocka_unit_test(dots_say_their_values),
        cmocka_unit_test(points_lie_about_a_line),    cmocka_unit_test(bars_are_as_high_as_their_values),
    };
    return cmocka_run_group_tests_name("report.chart_parts", tests, NULL, NULL);
}
