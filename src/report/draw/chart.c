#include "report/draw/chart_frame.h"

#include "base/alloc.h"
#include "report/draw/html.h"

#include <stdio.h>
#include <string.h>

/* More points than this a line does not show. */
#define POINTS 400

/* ---- axes ---- */

/* The smallest of 1, 2, 5 times a power of ten that is at least `rough`. */
static double nice_step(double rough)
{
    double power = pow(10, floor(log10(rough)));
    double share = rough / power;
    return power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
}

static void widen(struct tr_chart_axis *axis)
{
    if (axis->high > axis->low) return;
    double half = axis->low != 0 ? fabs(axis->low) / 2 : 0.5;
    axis->low -= half;
    axis->high += half;
}

static struct tr_chart_axis make_axis(double low, double high, int ticks)
{
    struct tr_chart_axis axis = {.low = low, .high = high};
    widen(&axis);
    axis.step = nice_step((axis.high - axis.low) / ticks);
    axis.low = floor(axis.low / axis.step) * axis.step;
    axis.high = ceil(axis.high / axis.step) * axis.step;
    return axis;
}

static struct tr_chart_axis make_log_axis(double low, double high)
{
    return (struct tr_chart_axis){floor(log10(low)), ceil(log10(high)), 1, true, 10};
}

static struct tr_chart_axis make_doubling_axis(double low, double high)
{
    struct tr_chart_axis axis = {floor(log2(low)), ceil(log2(high)), 1, true, 2};
    if (axis.high <= axis.low) axis.high = axis.low + 1;
    return axis;
}

static void tick_text(double value, const struct tr_chart_axis *axis, bool percent, char text[32])
{
    static const struct {
        double unit;
        const char *sign;
    } units[] = {{1e9, "G"}, {1e6, "M"}, {1e4, "k"}};
    double step = axis->step;
    double most = fabs(axis->high);
    if (axis->logarithmic) most = value = pow(axis->base, value), step = value;
    if (fabs(value) < step * 1e-6) value = 0;
    if (percent) {
        snprintf(text, 32, step < 0.01 ? "%.1f %%" : "%.0f %%", value * 100);
        return;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (most < units[i].unit) continue;
        double unit = units[i].unit == 1e4 ? 1e3 : units[i].unit;
        snprintf(text, 32, "%g%s", value / unit, value != 0 ? units[i].sign : "");
        return;
    }
    snprintf(text, 32, "%.6g", value);
}

static void add_grid(struct tr_text *html, const struct tr_chart_frame *frame, const char *x_label)
{
    char text[32];
    tr_text_add(html, "<g class=\"grid\">");
    for (int i = 0; frame->y.low + i * frame->y.step <= frame->y.high + frame->y.step * 1e-6; i++) {
        double value = frame->y.low + i * frame->y.step;
        double y = tr_chart_y(frame, frame->y.logarithmic ? pow(10, value) : value);
        tick_text(value, &frame->y, frame->percent, text);
        tr_text_addf(html, "<path d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
                     CHART_LEFT, y, CHART_WIDTH - CHART_RIGHT, CHART_LEFT - 6, y + 4, text);
    }
    for (int i = 0; frame->x.low + i * frame->x.step <= frame->x.high + frame->x.step * 1e-6; i++) {
        double value = frame->x.low + i * frame->x.step;
        double x = tr_chart_x(frame, frame->x.logarithmic ? pow(frame->x.base, value) : value);
        tick_text(value, &frame->x, false, text);
        tr_text_addf(html, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s</text>", x,
                     CHART_HEIGHT - CHART_BOTTOM + 16, x > CHART_WIDTH - 30 ? "end" : "middle", text);
    }
    tr_text_addf(html, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
                 (CHART_LEFT + CHART_WIDTH - CHART_RIGHT) / 2, CHART_HEIGHT - 3);
    tr_html_text(html, x_label);
    tr_text_add(html, "</text></g>");
}

/* ---- lines ---- */

/* The mean of a point and of up to `reach` neighbours on each side, as many as there are on both. */
static double mean_around(const struct tr_chart_frame *frame, const struct tr_chart_series *series,
                          int64_t at, int64_t reach)
{
    double sum = 0;
    int64_t count = 0;
    if (reach > at) reach = at;
    if (reach > series->count - 1 - at) reach = series->count - 1 - at;
    for (int64_t i = at - reach; i <= at + reach; i++) {
        if (!tr_chart_shows(frame, &series->point[i])) continue;
        sum += series->point[i].y;
        count++;
    }
    return sum / (double)count;
}

static bool is_seen(const struct tr_chart_frame *frame, const struct tr_chart_series *series)
{
    for (int64_t i = 0; i < series->count; i++)
        if (tr_chart_shows(frame, &series->point[i])) return true;
    return false;
}

/* Runs with one hash have one curve, too. */
static bool are_equal(const struct tr_chart_series *a, const struct tr_chart_series *b)
{
    if (a->count != b->count || a->count == 0) return false;
    for (int64_t i = 0; i < a->count; i++) {
        const struct tr_chart_point *p = &a->point[i], *q = &b->point[i];
        if (p->x != q->x || !(p->y == q->y || (isnan(p->y) && isnan(q->y)))) return false;
    }
    return true;
}

/* The class of a line beside its colour: one that lies on another is dashed, so that both are seen. */
static const char *style_of(const struct tr_chart *chart, int index)
{
    const struct tr_chart_series *series = &chart->series[index];
    bool covers = false;
    for (int i = 0; i < index && !covers; i++)
        covers = chart->series[i].dashed == series->dashed && are_equal(&chart->series[i], series);
    if (series->dashed) return covers ? " dashed twin" : " dashed";
    return covers ? " twin" : "";
}

/* The points, thinned; with a reach each is a moving average. */
static void add_path(struct tr_text *html, const struct tr_chart_frame *frame,
                     const struct tr_chart_series *series, const char *class, const char *style,
                     int64_t reach)
{
    int64_t stride = (series->count + POINTS - 1) / POINTS;
    bool begun = false;
    tr_text_addf(html, "<path class=\"%s s%d%s\" d=\"", class, series->colour + 1, style);
    for (int64_t i = 0; i < series->count; i++) {
        const struct tr_chart_point *point = &series->point[i];
        if (!tr_chart_shows(frame, point) || (i % stride && i + 1 < series->count)) continue;
        tr_text_addf(html, "%c%.1f %.1f", begun ? 'L' : 'M', tr_chart_x(frame, point->x),
                     tr_chart_y(frame, mean_around(frame, series, i, reach)));
        begun = true;
    }
    tr_text_add(html, "\"/>");
}

static void add_dots(struct tr_text *html, const struct tr_chart_frame *frame,
                     const struct tr_chart_series *series)
{
    for (int64_t i = 0; i < series->count; i++) {
        const struct tr_chart_point *point = &series->point[i];
        if (!tr_chart_shows(frame, point)) continue;
        tr_text_addf(html, "<circle class=\"dot s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>",
                     series->colour + 1, tr_chart_x(frame, point->x), tr_chart_y(frame, point->y));
        tr_html_text(html, series->name);
        tr_text_addf(html, frame->percent ? ": %.2f %% at %.6g" : ": %.6g at %.6g",
                     frame->percent ? point->y * 100 : point->y, point->x);
        tr_text_add(html, "</title></circle>");
    }
}

static void add_series(struct tr_text *html, const struct tr_chart_frame *frame, const struct tr_chart *chart,
                       int index)
{
    const struct tr_chart_series *series = &chart->series[index];
    const char *style = style_of(chart, index);
    if (series->dots) {
        add_path(html, frame, series, "line", style, 0);
        if (series->count <= 60) add_dots(html, frame, series);
        return;
    }
    int64_t reach = series->smooth ? series->count / 30 : 0;
    if (reach > 0) add_path(html, frame, series, "raw", "", 0);
    add_path(html, frame, series, "line", style, reach);
}

static void add_legend(struct tr_text *html, const struct tr_chart_frame *frame, const struct tr_chart *chart)
{
    tr_text_add(html, "<ul class=\"legend\">");
    for (int i = 0; i < chart->count; i++) {
        if (!is_seen(frame, &chart->series[i])) continue;
        tr_text_addf(html, "<li><i class=\"s%d%s\"></i>", chart->series[i].colour + 1, style_of(chart, i));
        tr_html_text(html, chart->series[i].name);
        tr_text_add(html, "</li>");
    }
    tr_text_add(html, "</ul>");
}

/* The range of all points; false if there are none. */
static bool find_range(const struct tr_chart *chart, double range[4])
{
    bool found = false;
    for (int s = 0; s < chart->count; s++)
        for (int64_t i = 0; i < chart->series[s].count; i++) {
            const struct tr_chart_point *point = &chart->series[s].point[i];
            if (!isfinite(point->x) || !isfinite(point->y)) continue;
            if (!found || point->x < range[0]) range[0] = point->x;
            if (!found || point->x > range[1]) range[1] = point->x;
            if (!found || point->y < range[2]) range[2] = point->y;
            if (!found || point->y > range[3]) range[3] = point->y;
            found = true;
        }
    return found;
}

static void begin_figure(struct tr_text *html, const char *title)
{
    tr_text_add(html, "<figure>");
    tr_html_element(html, "figcaption", NULL, title);
}

static void begin_picture(struct tr_text *html, const char *title)
{
    tr_text_addf(html, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", CHART_WIDTH, CHART_HEIGHT);
    tr_html_text(html, title);
    tr_text_add(html, "\">");
}

void tr_chart_lines(struct tr_text *html, const struct tr_chart *chart)
{
    double range[4] = {0};
    if (!find_range(chart, range)) return;
    struct tr_chart_frame frame = {.x = make_axis(range[0], range[1], 6), .percent = chart->percent};
    if (chart->doubling) frame.x = make_doubling_axis(range[0], range[1]);
    if (chart->logarithmic && range[2] > 0 && range[3] > 20 * range[2])
        frame.y = make_log_axis(range[2], range[3]);
    else
        frame.y = make_axis(chart->from_zero ? fmin(0, range[2]) : range[2], range[3], 5);
    /* No room above what a share can be, but above 1 where one is. */
    if (chart->percent && range[3] <= 1 && frame.y.high > 1) frame.y.high = 1;
    begin_figure(html, chart->title);
    if (chart->count > 1) add_legend(html, &frame, chart);
    begin_picture(html, chart->title);
    add_grid(html, &frame, chart->x_label);
    for (int i = 0; i < chart->count; i++) add_series(html, &frame, chart, i);
    if (!chart->still) tr_chart_hover(html, &frame, chart);
    tr_text_add(html, "</svg></figure>\n");
}

/* ---- points ---- */

void tr_chart_scatter(struct tr_text *html, const char *title, const char *x_label,
                      const struct tr_chart_point *point, int64_t count)
{
    struct tr_chart_series series = {.point = point, .count = count};
    struct tr_chart chart = {.series = &series, .count = 1};
    double range[4] = {0};
    if (!find_range(&chart, range)) return;
    double low = fmin(range[0], range[2]), high = fmax(range[1], range[3]);
    struct tr_chart_frame frame = {.x = make_axis(low, high, 5), .y = make_axis(low, high, 5)};
    begin_figure(html, title);
    begin_picture(html, title);
    add_grid(html, &frame, x_label);
    tr_text_addf(
        html, "<path class=\"line s8 dashed\" d=\"M%.1f %.1fL%.1f %.1f\"/><g class=\"s1\" opacity=\"0.5\">",
        tr_chart_x(&frame, frame.x.low), tr_chart_y(&frame, frame.x.low), tr_chart_x(&frame, frame.x.high),
        tr_chart_y(&frame, frame.x.high));
    for (int64_t i = 0; i < count; i++)
        if (tr_chart_shows(&frame, &point[i]))
            tr_text_addf(html,
                         "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"><title>%.6g "
                         "at %.6g</title></circle>",
                         tr_chart_x(&frame, point[i].x), tr_chart_y(&frame, point[i].y), point[i].y,
                         point[i].x);
    tr_text_add(html, "</g></svg></figure>\n");
}

/* ---- bars ---- */

void tr_chart_bars(struct tr_text *html, const char *title, const char *x_label,
                   const struct tr_chart_bar *bar, int count)
{
    double most = 0;
    for (int i = 0; i < count; i++) most = fmax(most, bar[i].value);
    if (most <= 0) return;
    double room = (double)(CHART_WIDTH - CHART_LEFT - CHART_RIGHT) / count, width = fmin(room * 0.8, 48);
    begin_figure(html, title);
    begin_picture(html, title);
    for (int i = 0; i < count; i++) {
        double height = bar[i].value / most * (CHART_HEIGHT - CHART_TOP - CHART_BOTTOM - 16),
               x = CHART_LEFT + room * (i + 0.5);
        tr_text_addf(html, "<rect class=\"bar s1\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
                     x - width / 2, CHART_HEIGHT - CHART_BOTTOM - height, width, height);
        tr_text_addf(html, "<g class=\"grid\"><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.6g</text>",
                     x, CHART_HEIGHT - CHART_BOTTOM - height - 4, bar[i].value);
        tr_text_addf(html, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x,
                     CHART_HEIGHT - CHART_BOTTOM + 16);
        tr_html_text(html, bar[i].label);
        tr_text_add(html, "</text></g>");
    }
    tr_text_addf(html,
                 "<g class=\"grid\"><path d=\"M%d %dH%d\"/><text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
                 CHART_LEFT, CHART_HEIGHT - CHART_BOTTOM, CHART_WIDTH - CHART_RIGHT,
                 (CHART_LEFT + CHART_WIDTH - CHART_RIGHT) / 2, CHART_HEIGHT - 3);
    tr_html_text(html, x_label);
    tr_text_add(html, "</text></g></svg></figure>\n");
}
