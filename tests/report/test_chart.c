/* Where charts put what they show: points by proportion between the ends of axes, axes with round steps,
 * lines that are smoothed and thinned, bars by their height. In a picture of 480 by 250, with the plot
 * between 52 and 468, and between 216 at the bottom and 10.
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

enum { LEFT = 52, RIGHT = 468, TOP = 10, BOTTOM = 216, MOST = 1000 };

static char *draw(struct tr_chart chart, const struct tr_chart_point *point, int64_t count, bool smooth)
{
    const struct tr_chart_series series = {.name = "line", .point = point, .count = count, .smooth = smooth};
    struct tr_text html = TR_TEXT_INIT;
    char *text;
    chart.title = "title";
    chart.x_label = "steps";
    chart.series = &series;
    chart.count = 1;
    chart.still = true;
    tr_chart_lines(&html, &chart);
    assert_int_equal(tr_text_finish(&html, &text), TR_OK);
    return text;
}

/* The points of the line, in units of the picture; their number. */
static int points_of(const char *html, double x[MOST], double y[MOST])
{
    const char *at = strstr(html, "<path class=\"line ");
    int count = 0;
    assert_non_null(at);
    at = strstr(at, " d=\"") + 4;
    while (*at == 'M' || *at == 'L') {
        char *end;
        assert_true(count < MOST);
        x[count] = strtod(at + 1, &end);
        y[count++] = strtod(end, &end);
        at = end;
    }
    return count;
}

static double place(double value, double low, double high, double from, double to)
{
    return from + (value - low) / (high - low) * (to - from);
}

static void near(double is, double expected)
{
    if (!(fabs(is - expected) <= 0.0501)) fail_msg("%g, not %g", is, expected); /* a decimal is written */
}

/* With steps of 1, 2 or 5 times a power of ten, about six along and five up, that cover all. */
static void points_lie_between_round_ends(void **state)
{
    static const struct {
        double x, y;                           /* of the last point; the first is 0, 0 */
        double x_high, y_high, x_step, y_step; /* of the axes */
    } cases[] = {
        {20, 10, 20, 10, 5, 2},         {12, 7, 12, 8, 2, 2}, {6, 12, 6, 15, 1, 5},
        {0.6, 0.3, 0.6, 0.3, 0.1, 0.1}, {7, 5, 8, 5, 2, 1},   {120, 2.6, 120, 3, 20, 1},
        {33, 27.5, 40, 30, 10, 10},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_chart_point points[] = {
            {0, 0}, {cases[i].x / 4, cases[i].y / 2}, {cases[i].x, cases[i].y}};
        double x[MOST], y[MOST];
        char tick[128];
        char *html = draw((struct tr_chart){0}, points, 3, false);
        assert_int_equal(points_of(html, x, y), 3);
        for (int k = 0; k < 3; k++) {
            near(x[k], place(points[k].x, 0, cases[i].x_high, LEFT, RIGHT));
            near(y[k], place(points[k].y, 0, cases[i].y_high, BOTTOM, TOP));
        }
        int steps = (int)(cases[i].y_high / cases[i].y_step + 0.5);
        for (int k = 0; k <= steps; k++) {
            const double at = place(k, 0, steps, BOTTOM, TOP);
            snprintf(tick, sizeof tick,
                     "<path d=\"M52 %.1fH468\"/><text x=\"46\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>",
                     at, at + 4, k * cases[i].y_step);
            expect(html, tick);
        }
        steps = (int)(cases[i].x_high / cases[i].x_step + 0.5);
        for (int k = 0; k < steps; k++) {
            snprintf(tick, sizeof tick, "<text x=\"%.1f\" y=\"232\" text-anchor=\"middle\">%.6g</text>",
                     place(k, 0, steps, LEFT, RIGHT), k * cases[i].x_step);
            expect(html, tick);
        }
        snprintf(tick, sizeof tick, "<text x=\"468.0\" y=\"232\" text-anchor=\"end\">%.6g</text>",
                 cases[i].x_high);
        expect(html, tick);
        tr_free(html);
    }
}

/* Logarithms where values differ by more than a factor of 20; whole powers of ten at the ends. */
static void large_ranges_have_logarithms(void **state)
{
    (void)state;
    for (int above = 0; above < 2; above++) {
        const struct tr_chart_point points[] = {{0, 1}, {1, 10}, {2, above ? 21 : 20}};
        double x[MOST], y[MOST];
        char *html = draw((struct tr_chart){.logarithmic = true}, points, 3, false);
        assert_int_equal(points_of(html, x, y), 3);
        if (above) {
            near(y[0], BOTTOM);
            near(y[1], (BOTTOM + TOP) / 2.0);
            expect(html, ">1</text>");
            expect(html, ">100</text>");
        } else {
            near(y[0], place(1, 0, 20, BOTTOM, TOP));
            near(y[2], TOP);
        }
        tr_free(html);
    }
    static const struct tr_chart_point small[] = {{0, 0.05}, {1, 7}}, zero[] = {{0, 0}, {1, 100}};
    double x[MOST], y[MOST];
    char *html = draw((struct tr_chart){.logarithmic = true}, small, 2, false);
    points_of(html, x, y);
    near(y[0], place(log10(0.05), -2, 1, BOTTOM, TOP));
    near(y[1], place(log10(7), -2, 1, BOTTOM, TOP));
    expect(html, ">0.01</text>");
    expect(html, ">10</text>");
    tr_free(html);
    html = draw((struct tr_chart){.logarithmic = true}, zero, 2, false);
    assert_int_equal(points_of(html, x, y), 2);
    near(y[0], BOTTOM);
    tr_free(html);
}

/* Of shares, none is above 1, and no room either; of one value alone the axis goes half as far around it. */
static void shares_end_at_one(void **state)
{
    static const struct tr_chart_point one[] = {{0, 1}, {1, 1}}, more[] = {{0, 1.2}, {1, 1.2}};
    double x[MOST], y[MOST];
    (void)state;
    char *html = draw((struct tr_chart){.percent = true}, one, 2, false);
    assert_int_equal(points_of(html, x, y), 2);
    near(y[0], TOP);
    expect(html, ">100 %</text>");
    assert_null(strstr(html, ">120 %</text>"));
    tr_free(html);
    html = draw((struct tr_chart){.percent = true}, more, 2, false);
    points_of(html, x, y);
    near(y[0], place(1.2, 0.5, 2, BOTTOM, TOP)); /* 0.6 to 1.8, in halves */
    tr_free(html);
}

/* Means of as many neighbours on both sides: a thirtieth of all, fewer at the ends. What is not finite is
   left out. */
static void lines_are_smoothed(void **state)
{
    enum { COUNT = 60, REACH = 2 };
    struct tr_chart_point points[COUNT];
    double x[MOST], y[MOST];
    (void)state;
    for (int i = 0; i < COUNT; i++) points[i] = (struct tr_chart_point){i, i == 30 ? NAN : i * i % 7};
    char *html = draw((struct tr_chart){0}, points, COUNT, true);
    expect(html, "<path class=\"raw s1\"");
    assert_int_equal(points_of(html, x, y), COUNT - 1);
    for (int i = 0, k = 0; i < COUNT; i++) {
        double sum = 0;
        int reach = i < REACH ? i : COUNT - 1 - i < REACH ? COUNT - 1 - i : REACH, count = 0;
        for (int n = i - reach; n <= i + reach; n++)
            if (n != 30) sum += points[n].y, count++;
        if (i == 30) continue;
        near(x[k], place(i, 0, 60, LEFT, RIGHT));
        near(y[k++], place(sum / count, 0, 4, BOTTOM, TOP));
    }
    tr_free(html);
    html = draw((struct tr_chart){0}, points, 29, true);
    assert_null(strstr(html, "\"raw "));
    tr_free(html);
}

/* Of many points some are drawn, and always the last. */
static void lines_are_thinned(void **state)
{
    enum { COUNT = 801 };
    static struct tr_chart_point points[COUNT];
    double x[MOST], y[MOST];
    (void)state;
    for (int i = 0; i < COUNT; i++) points[i] = (struct tr_chart_point){i, i};
    char *html = draw((struct tr_chart){0}, points, COUNT, false);
    int count = points_of(html, x, y);
    assert_in_range(count, 200, 401);
    near(x[0], LEFT);
    near(x[count - 1], RIGHT);
    tr_free(html);
    html = draw((struct tr_chart){0}, points, 400, false);
    assert_int_equal(points_of(html, x, y), 400);
    tr_free(html);
    html = draw((struct tr_chart){0}, points, 401, false);
    assert_int_equal(points_of(html, x, y), 201); /* every second one */
    tr_free(html);
    html = draw((struct tr_chart){0}, points, 402, false);
    assert_int_equal(points_of(html, x, y), 202);
    tr_free(html);
}

/* Large numbers are short: in thousands from 10,000 on, in millions, in billions. */
static void large_numbers_have_units(void **state)
{
#define ZERO "y=\"220.0\" text-anchor=\"end\">0</text>"
    static const struct {
        double most;
        const char *ticks[3];
    } cases[] = {
        {8000, {ZERO, ">2000</text>", ">8000</text>"}},   {10000, {ZERO, ">2k</text>", ">10k</text>"}},
        {500000, {ZERO, ">100k</text>", ">500k</text>"}}, {1e6, {ZERO, ">0.2M</text>", ">1M</text>"}},
        {5e8, {ZERO, ">100M</text>", ">500M</text>"}},    {1e9, {ZERO, ">0.2G</text>", ">1G</text>"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_chart_point points[] = {{0, 0}, {1, cases[i].most}};
        char *html = draw((struct tr_chart){0}, points, 2, false);
        for (int k = 0; k < 3; k++) expect(html, cases[i].ticks[k]);
        tr_free(html);
    }
}

static void shares_are_percents(void **state)
{
    static const struct tr_chart_point coarse[] = {{0, 0}, {1, 1}}, fine[] = {{0, 0.9}, {1, 0.92}};
    (void)state;
    char *html = draw((struct tr_chart){.percent = true}, coarse, 2, false);
    expect(html, ">0 %</text>");
    expect(html, ">20 %</text>");
    tr_free(html);
    html = draw((struct tr_chart){.percent = true}, fine, 2, false);
    expect(html, ">90.5 %</text>");
    expect(html, ">0.2</text>"); /* along, where nothing is a share */
    tr_free(html);
}

/* The axis of one value goes half as far around it, and of 0 by a half; that from zero reaches to what is
   below. */
static void axes_have_an_extent(void **state)
{
    static const struct {
        double first, second;
        bool from_zero;
        double low, high;
    } cases[] = {
        {0, 0, false, -0.6, 0.6}, {-4, -4, false, -6, -2}, {4, 4, false, 2, 6},
        {6, 10, true, 0, 10},     {6, 10, false, 6, 10},   {-5, 10, true, -5, 10},
    };
    double x[MOST], y[MOST];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_chart_point points[] = {{0, cases[i].first}, {1, cases[i].second}};
        char *html = draw((struct tr_chart){.from_zero = cases[i].from_zero}, points, 2, false);
        points_of(html, x, y);
        near(y[0], place(cases[i].first, cases[i].low, cases[i].high, BOTTOM, TOP));
        near(y[1], place(cases[i].second, cases[i].low, cases[i].high, BOTTOM, TOP));
        tr_free(html);
    }
    const struct tr_chart_point one = {8, 1};
    char *html = draw((struct tr_chart){0}, &one, 1, false);
    assert_int_equal(points_of(html, x, y), 1);
    near(x[0], place(8, 4, 12, LEFT, RIGHT));
    tr_free(html);
}

/* Along an axis that doubles; that of one value alone doubles once. */
static void axes_may_double(void **state)
{
    static const struct {
        double first, last, low, high; /* the axis: powers of 2 */
        const char *ticks[2];
    } cases[] = {
        {1, 8, 0, 3, {">1</text>", ">8</text>"}},
        {3, 5, 1, 3, {">2</text>", ">4</text>"}},
        {4, 4, 2, 3, {">4</text>", ">8</text>"}},
    };
    double x[MOST], y[MOST];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_chart_point points[] = {{cases[i].first, 0}, {cases[i].last, 1}};
        char *html = draw((struct tr_chart){.doubling = true}, points, 2, false);
        assert_int_equal(points_of(html, x, y), 2);
        near(x[0], place(log2(cases[i].first), cases[i].low, cases[i].high, LEFT, RIGHT));
        near(x[1], place(log2(cases[i].last), cases[i].low, cases[i].high, LEFT, RIGHT));
        for (int k = 0; k < 2; k++) expect(html, cases[i].ticks[k]);
        expect_none(html, ">16</text>");
        tr_free(html);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_lie_between_round_ends),
        cmocka_unit_test(large_ranges_have_logarithms),
        cmocka_unit_test(shares_end_at_one),
        cmocka_unit_test(lines_are_smoothed),
        cmocka_unit_test(lines_are_thinned),
        cmocka_unit_test(large_numbers_have_units),
        cmocka_unit_test(shares_are_percents),
        cmocka_unit_test(axes_have_an_extent),
        cmocka_unit_test(axes_may_double),
    };
    return cmocka_run_group_tests_name("report.chart", tests, NULL, NULL);
}
