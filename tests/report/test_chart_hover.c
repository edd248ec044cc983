/* The values under the pointer: bands that divide the plot, from 52 to 468, and the box that belongs to each.
 */
#include "report/draw/chart_frame.h"

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

static char *draw(const struct tr_chart_series *series, int count, bool percent)
{
    struct tr_text html = TR_TEXT_INIT;
    const struct tr_chart chart = {
        .title = "t", .x_label = "<steps>", .series = series, .count = count, .percent = percent};
    char *text;
    tr_chart_lines(&html, &chart);
    assert_int_equal(tr_text_finish(&html, &text), TR_OK);
    return text;
}

static double number_after(const char *text, const char *mark)
{
    const char *at = strstr(text, mark);
    assert_non_null(at);
    return strtod(at + strlen(mark), NULL);
}

#define BAND "<g class=\"band\">"

/* The bands follow each other from the left end of the plot to the right. Returns their number. */
static int expect_whole_plot(const char *html)
{
    double end = 52;
    int bands = 0;
    for (const char *at = html; (at = strstr(at, BAND)) != NULL; at++, bands++) {
        const double from = number_after(at, " x=\""), width = number_after(at, " width=\""),
                     mark = number_after(at, "<path d=\"M");
        assert_true(width > 0);
        if (fabs(from - end) > 0.11) fail_msg("a band from %g, the one before ends at %g", from, end);
        if (mark < from - 0.11 || mark > from + width + 0.11) fail_msg("a mark at %g is beside it", mark);
        end = from + width;
    }
    assert_true(fabs(end - 468) < 0.11);
    return bands;
}

/* A box is right of its line, and left of it where it would leave the picture, of 480. */
static void boxes_stay_in_the_picture(void **state)
{
    static const struct tr_chart_point points[] = {
        {0, 1}, {256, 2}, {257, 3}, {416, 4}}; /* 52 to 468 along */
    static const double lefts[] = {60, 316, 137, 296};
    const struct tr_chart_series series = {.name = "l", .point = points, .count = 4};
    struct tr_text html = TR_TEXT_INIT;
    struct tr_chart_frame frame = {.x = {.low = 0, .high = 416, .step = 100},
                                   .y = {.low = 0, .high = 4, .step = 1}};
    const struct tr_chart chart = {.title = "t", .x_label = "x", .series = &series, .count = 1};
    char *text;
    (void)state;
    tr_chart_hover(&html, &frame, &chart);
    assert_int_equal(tr_text_finish(&html, &text), TR_OK);
    const char *at = text;
    for (int i = 0; i < 4; i++) {
        at = strstr(at, "<g class=\"tip\"");
        assert_non_null(at);
        const double left = number_after(at, "<rect x=\"");
        if (fabs(left - lefts[i]) > 0.06) fail_msg("box %d begins at %g", i, left);
        at++;
    }
    tr_free(text);
}

/* Of every point where there are few, else at even distances; and of the last. */
static void bands_divide_the_plot(void **state)
{
    static const struct {
        int points, bands;
    } cases[] = {{1, 1}, {2, 2}, {48, 48}, {49, 25}, {50, 26}, {96, 49}, {97, 33}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_chart_point point[97];
        const int count = cases[i].points;
        char last[64];
        for (int k = 0; k < count; k++) point[k] = (struct tr_chart_point){k, k};
        const struct tr_chart_series series = {.name = "a", .point = point, .count = count};
        char *html = draw(&series, 1, false);
        const int bands = expect_whole_plot(html);
        if (bands != cases[i].bands) fail_msg("%d points have %d bands", count, bands);
        snprintf(last, sizeof last, ">%d &lt;steps&gt;</text>", count - 1);
        assert_int_equal(count_of(html, last), 1);
        tr_free(html);
    }
}

/* What is not finite has no band, nor is it a value. */
static void missing_points_have_none(void **state)
{
    static const struct tr_chart_point point[] = {{0, 1}, {1, NAN}, {2, 3}, {3, NAN}};
    const struct tr_chart_series series = {.name = "a", .point = point, .count = 4};
    (void)state;
    char *html = draw(&series, 1, false);
    assert_int_equal(expect_whole_plot(html), 2);
    expect(html, ">0 &lt;steps&gt;</text>");
    expect(html, ">2 &lt;steps&gt;</text>");
    tr_free(html);
    /* Those of a chart that stands still are not shown. */
    const struct tr_chart chart = {
        .title = "t", .x_label = "x", .series = &series, .count = 1, .still = true};
    struct tr_text text = TR_TEXT_INIT;
    tr_chart_lines(&text, &chart);
    assert_int_equal(tr_text_finish(&text, &html), TR_OK);
    expect_none(html, BAND);
    tr_free(html);
}

/* The whole band of a point: its line, its box on the side where there is room, a row for each series. */
static void a_box_has_a_row_for_each_line(void **state)
{
    static const struct tr_chart_point rising[] = {{0, 0}, {10, 5}, {20, 10}}, two[] = {{0, 4}, {20, 1.25}};
    const struct tr_chart_series series[] = {{.name = "<a>", .point = rising, .count = 3, .colour = 2},
                                             {.name = "b", .point = two, .count = 2, .colour = 7}};
    (void)state;
    char *html = draw(series, 2, false);
    /* of the densest, at 0, 10 and 20 */
    assert_int_equal(expect_whole_plot(html), 3);
    expect(html, BAND
           "<rect x=\"52.0\" y=\"0\" width=\"104.0\" height=\"250\" fill=\"none\" pointer-events=\"all\"/>"
           "<g class=\"tip\" visibility=\"hidden\"><path d=\"M52.0 10V216\"/><rect x=\"60.0\" y=\"2\" "
           "width=\"164\" height=\"51\" rx=\"4\"/><text x=\"66.0\" y=\"16\">0 &lt;steps&gt;</text>"
           "<circle class=\"dot s3\" cx=\"52.0\" cy=\"216.0\" r=\"3\"/><rect class=\"dot s3\" x=\"66.0\" "
           "y=\"24\" width=\"7\" height=\"7\"/><text x=\"77.0\" y=\"31\">&lt;a&gt;</text><text "
           "x=\"218.0\" y=\"31\" text-anchor=\"end\">0</text>"
           "<circle class=\"dot s8\" cx=\"52.0\" cy=\"133.6\" r=\"3\"/><rect class=\"dot s8\" x=\"66.0\" "
           "y=\"37\" width=\"7\" height=\"7\"/><text x=\"77.0\" y=\"44\">b</text><text x=\"218.0\" "
           "y=\"44\" text-anchor=\"end\">4</text></g></g>");
    /* in the middle only the first has a point; the box just fits on the right */
    expect(html, "<rect x=\"156.0\" y=\"0\" width=\"208.0\" ");
    expect(html, "<path d=\"M260.0 10V216\"/><rect x=\"268.0\" y=\"2\" width=\"164\" height=\"38\" rx=\"4\"/>"
                 "<text x=\"274.0\" y=\"16\">10 &lt;steps&gt;</text><circle class=\"dot s3\" cx=\"260.0\" "
                 "cy=\"113.0\" r=\"3\"/><rect class=\"dot s3\" x=\"274.0\" y=\"24\"");
    /* at the end it is on the left */
    expect(html, "<path d=\"M468.0 10V216\"/><rect x=\"296.0\" y=\"2\" width=\"164\" height=\"51\" rx=\"4\"/>"
                 "<text x=\"302.0\" y=\"16\">20 &lt;steps&gt;</text>");
    expect(html, ">1.25</text></g></g>");
    tr_free(html);
}

/* A value is that of the nearest point, at most three quarters of the band away. */
static void values_are_of_near_points(void **state)
{
    /* Bands of 8 steps but for the ends, 4; a step is 416 / 40 = 10.4 wide. */
    static const struct tr_chart_point dense[] = {{0, 0}, {8, 0}, {16, 0}, {24, 0}, {32, 0}, {40, 0}};
    static const struct {
        double x, step; /* of the lone point, and of a band whose box has it */
        int boxes;      /* that have it */
    } cases[] = {{8, 8, 1}, {9, 8, 1}, {11, 8, 2}, {11, 16, 2}, {13, 16, 2}, {16, 16, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_chart_point lone = {cases[i].x, 0.5};
        const struct tr_chart_series series[] = {{.name = "dense", .point = dense, .count = 6},
                                                 {.name = "lone", .point = &lone, .count = 1}};
        char *html = draw(series, 2, false), step[64];
        snprintf(step, sizeof step, ">%g &lt;steps&gt;</text>", cases[i].step);
        const char *box = strstr(html, step), *value = box ? strstr(box, ">0.5</text></g>") : NULL;
        if (!value || value > strstr(box, "</g></g>")) fail_msg("at %g: no value in %s", cases[i].x, step);
        assert_int_equal(count_of(html, ">lone</text>"), cases[i].boxes);
        tr_free(html);
    }
    /* Of several points the nearest one. */
    static const struct tr_chart_point few[] = {{0, 0}, {20, 0}, {40, 0}},
                                       group[] = {{17, 0.1}, {19, 0.2}, {23, 0.3}};
    const struct tr_chart_series series[] = {{.name = "few", .point = few, .count = 3},
                                             {.name = "group", .point = group, .count = 3}};
    char *html = draw(series, 2, false);
    const char *box = strstr(html, ">20 &lt;steps&gt;</text>");
    assert_non_null(box);
    assert_non_null(strstr(box, ">0.2</text></g></g>"));
    tr_free(html);
}

/* 12 rows at most, and 21 characters of a name. */
static void boxes_have_limits(void **state)
{
    static const struct tr_chart_point point[] = {{0, 0}, {1, 1}};
    struct tr_chart_series series[14];
    char name[14][16];
    (void)state;
    for (int i = 0; i < 14; i++) {
        snprintf(name[i], sizeof name[i], "n%d", i);
        series[i] = (struct tr_chart_series){.name = name[i], .point = point, .count = 2};
    }
    for (int count = 12; count <= 14; count++) {
        char *html = draw(series, count, false);
        expect(html, "height=\"181\" rx=\"4\"/>"); /* 12 + 13 rows of 13 */
        assert_int_equal(count_of(html, ">n11</text>"), 2);
        expect_none(html, ">n12</text>");
        tr_free(html);
    }
    static const struct {
        const char *name, *shown;
    } cases[] = {
        {"", "></text>"},
        {"abcdefghijklmnopqrstu", ">abcdefghijklmnopqrstu</text>"},
        {"abcdefghijklmnopqrstuv", ">abcdefghijklmnopqrstu</text>"},
        /* whole characters: twenty of one byte, one of three, one of four */
        {"abcdefghijklmnopqrst\xe2\x82\xac\xf0\x9f\x98\x80", ">abcdefghijklmnopqrst\xe2\x82\xac</text>"},
        /* and 21 of four bytes */
        {"\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80"
         "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80"
         "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80"
         "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x81zzz",
         "\xf0\x9f\x98\x80\xf0\x9f\x98\x81</text>"},
        /* what is no character is one */
        {"abcdefghijklmnopqrst\xff\xff", ">abcdefghijklmnopqrst\xef\xbf\xbd</text>"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_chart_series named = {.name = cases[i].name, .point = point, .count = 2};
        char *html = draw(&named, 1, true);
        assert_int_equal(count_of(html, cases[i].shown), 2);
        expect(html, ">100.00 %</text></g></g>");
        tr_free(html);
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
    } cases[] = {{0.123456, false, "0.1235"}, {9999, false, "9999"},      {9999.5, false, "1e+04"},
                 {10000, false, "10,000"},    {10000.5, false, "10,001"}, {-25000, false, "-25,000"},
                 {2e15, false, "2e+15"},      {0.5, true, "50.00 %"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_chart_frame frame = {.percent = cases[i].percent};
        char text[TR_CHART_VALUE_SIZE];
        assert_string_equal(tr_chart_value(&frame, cases[i].value, text), cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_stay_in_the_picture),  cmocka_unit_test(bands_divide_the_plot),
        cmocka_unit_test(missing_points_have_none),   cmocka_unit_test(a_box_has_a_row_for_each_line),
        cmocka_unit_test(values_are_of_near_points),  cmocka_unit_test(boxes_have_limits),
        cmocka_unit_test(values_of_charts_are_short),
    };
    return cmocka_run_group_tests_name("report.chart_hover", tests, NULL, NULL);
}
