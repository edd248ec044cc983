#include "report/chart.h"

#include "base/alloc.h"
#include "report/html.h"

#include <math.h>
#include <stdio.h>

/* The picture, in units of its view box. */
#define WIDTH  480
#define HEIGHT 250
#define LEFT   52
#define RIGHT  12
#define TOP    10
#define BOTTOM 34
/* More points than this a line does not show. */
#define POINTS 400

struct axis {
    double low, high;
    double step; /* between ticks */
    bool logarithmic;
    double base; /* of the logarithm */
};

struct frame {
    struct axis x, y;
    bool percent;
};

/* ---- axes ---- */

/* The smallest of 1, 2, 5 times a power of ten that is at least `rough`. */
static double nice_step(double rough)
{
    double power = pow(10, floor(log10(rough)));
    double share = rough / power;
    return power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
}

static void widen(struct axis *axis)
{
    if (axis->high > axis->low) return;
    double half = axis->low != 0 ? fabs(axis->low) / 2 : 0.5;
    axis->low -= half;
    axis->high += half;
}

static struct axis make_axis(double low, double high, int ticks)
{
    struct axis axis = {.low = low, .high = high};
    widen(&axis);
    axis.step = nice_step((axis.high - axis.low) / ticks);
    axis.low = floor(axis.low / axis.step) * axis.step;
    axis.high = ceil(axis.high / axis.step) * axis.step;
    return axis;
}

static struct axis make_log_axis(double low, double high)
{
    return (struct axis){floor(log10(low)), ceil(log10(high)), 1, true, 10};
}

static struct axis make_doubling_axis(double low, double high)
{
    struct axis axis = {floor(log2(low)), ceil(log2(high)), 1, true, 2};
    if (axis.high <= axis.low) axis.high = axis.low + 1;
    return axis;
}

static double place(const struct axis *axis, double value, double from, double to)
{
    if (axis->logarithmic) value = log(value) / log(axis->base);
    return from + (value - axis->low) / (axis->high - axis->low) * (to - from);
}

static double x_of(const struct frame *frame, double value)
{
    return place(&frame->x, value, LEFT, WIDTH - RIGHT);
}

static double y_of(const struct frame *frame, double value)
{
    return place(&frame->y, value, HEIGHT - BOTTOM, TOP);
}

static void tick_text(double value, const struct axis *axis, bool percent, char text[32])
{
    static const struct {
        double unit;
        const char *sign;
    } units[] = {{1e9, "G"}, {1e6, "M"}, {1e4, "k"}};
    double step = axis->step;
    if (axis->logarithmic) {
        snprintf(text, 32, "%g", pow(axis->base, value));
        return;
    }
    if (fabs(value) < step * 1e-6) value = 0;
    if (percent) {
        snprintf(text, 32, step < 0.01 ? "%.1f %%" : "%.0f %%", value * 100);
        return;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (fabs(axis->high) < units[i].unit) continue;
        double unit = units[i].unit == 1e4 ? 1e3 : units[i].unit;
        snprintf(text, 32, "%g%s", value / unit, value != 0 ? units[i].sign : "");
        return;
    }
    snprintf(text, 32, "%.6g", value);
}

static void add_grid(struct tr_text *html, const struct frame *frame, const char *x_label)
{
    char text[32];
    tr_text_add(html, "<g class=\"grid\">");
    for (int i = 0; frame->y.low + i * frame->y.step <= frame->y.high + frame->y.step * 1e-6; i++) {
        double value = frame->y.low + i * frame->y.step;
        double y = y_of(frame, frame->y.logarithmic ? pow(10, value) : value);
        tick_text(value, &frame->y, frame->percent, text);
        tr_text_addf(html, "<path d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
                     LEFT, y, WIDTH - RIGHT, LEFT - 6, y + 4, text);
    }
    for (int i = 0; frame->x.low + i * frame->x.step <= frame->x.high + frame->x.step * 1e-6; i++) {
        double value = frame->x.low + i * frame->x.step;
        double x = x_of(frame, frame->x.logarithmic ? pow(frame->x.base, value) : value);
        if (x < LEFT - 0.5 || x > WIDTH - RIGHT + 0.5) continue;
        tick_text(value, &frame->x, false, text);
        tr_text_addf(html, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s</text>", x, HEIGHT - BOTTOM + 16,
                     x > WIDTH - 30 ? "end" : "middle", text);
    }
    tr_text_addf(html, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + WIDTH - RIGHT) / 2,
                 HEIGHT - 3);
    tr_html_text(html, x_label);
    tr_text_add(html, "</text></g>");
}

/* ---- lines ---- */

static bool shows(const struct frame *frame, const struct tr_chart_point *point)
{
    return isfinite(point->x) && isfinite(point->y) && (!frame->y.logarithmic || point->y > 0);
}

/* The mean of a point and of up to `reach` neighbours on each side, as many as there are on both. */
static double mean_around(const struct frame *frame, const struct tr_chart_series *series, int64_t at,
                          int64_t reach)
{
    double sum = 0;
    int64_t count = 0;
    if (reach > at) reach = at;
    if (reach > series->count - 1 - at) reach = series->count - 1 - at;
    for (int64_t i = at - reach; i <= at + reach; i++) {
        if (!shows(frame, &series->point[i])) continue;
        sum += series->point[i].y;
        count++;
    }
    return sum / (double)count;
}

/* The points, thinned; with a reach each is a moving average. */
static void add_path(struct tr_text *html, const struct frame *frame, const struct tr_chart_series *series,
                     const char *class, int64_t reach)
{
    int64_t stride = (series->count + POINTS - 1) / POINTS;
    bool begun = false;
    tr_text_addf(html, "<path class=\"%s s%d%s\" d=\"", class, series->colour + 1,
                 series->dashed ? " dashed" : "");
    for (int64_t i = 0; i < series->count; i++) {
        const struct tr_chart_point *point = &series->point[i];
        if (!shows(frame, point) || (i % stride && i + 1 < series->count)) continue;
        tr_text_addf(html, "%c%.1f %.1f", begun ? 'L' : 'M', x_of(frame, point->x),
                     y_of(frame, mean_around(frame, series, i, reach)));
        begun = true;
    }
    tr_text_add(html, "\"/>");
}

static void add_dots(struct tr_text *html, const struct frame *frame, const struct tr_chart_series *series)
{
    for (int64_t i = 0; i < series->count; i++) {
        const struct tr_chart_point *point = &series->point[i];
        if (!shows(frame, point)) continue;
        tr_text_addf(html, "<circle class=\"dot s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>",
                     series->colour + 1, x_of(frame, point->x), y_of(frame, point->y));
        tr_html_text(html, series->name);
        tr_text_addf(html, frame->percent ? ": %.2f %% at %.6g" : ": %.6g at %.6g",
                     frame->percent ? point->y * 100 : point->y, point->x);
        tr_text_add(html, "</title></circle>");
    }
}

static void add_series(struct tr_text *html, const struct frame *frame, const struct tr_chart_series *series)
{
    if (series->dots) {
        add_path(html, frame, series, "line", 0);
        if (series->count <= 60) add_dots(html, frame, series);
        return;
    }
    int64_t reach = series->smooth ? series->count / 30 : 0;
    if (reach > 0) add_path(html, frame, series, "raw", 0);
    add_path(html, frame, series, "line", reach);
}

static void add_legend(struct tr_text *html, const struct tr_chart *chart)
{
    tr_text_add(html, "<ul class=\"legend\">");
    for (int i = 0; i < chart->count; i++) {
        if (chart->series[i].count == 0) continue;
        tr_text_addf(html, "<li><i class=\"s%d%s\"></i>", chart->series[i].colour + 1,
                     chart->series[i].dashed ? " dashed" : "");
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
    tr_text_addf(html, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    tr_html_text(html, title);
    tr_text_add(html, "\">");
}

void tr_chart_lines(struct tr_text *html, const struct tr_chart *chart)
{
    double range[4] = {0};
    if (!find_range(chart, range)) return;
    struct frame frame = {.x = make_axis(range[0], range[1], 6), .percent = chart->percent};
    if (chart->doubling)
        frame.x = make_doubling_axis(range[0], range[1]);
    else
        frame.x.low = range[0] < range[1] ? fmin(range[0], frame.x.low) : frame.x.low;
    if (chart->logarithmic && range[2] > 0 && range[3] > 20 * range[2])
        frame.y = make_log_axis(range[2], range[3]);
    else
        frame.y = make_axis(chart->from_zero ? fmin(0, range[2]) : range[2], range[3], 5);
    if (chart->percent && frame.y.high > 1) frame.y.high = 1;
    begin_figure(html, chart->title);
    if (chart->count > 1) add_legend(html, chart);
    begin_picture(html, chart->title);
    add_grid(html, &frame, chart->x_label);
    for (int i = 0; i < chart->count; i++) add_series(html, &frame, &chart->series[i]);
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
    struct frame frame = {.x = make_axis(low, high, 5), .y = make_axis(low, high, 5)};
    begin_figure(html, title);
    begin_picture(html, title);
    add_grid(html, &frame, x_label);
    tr_text_addf(
        html, "<path class=\"line s8 dashed\" d=\"M%.1f %.1fL%.1f %.1f\"/><g class=\"s1\" opacity=\"0.5\">",
        x_of(&frame, frame.x.low), y_of(&frame, frame.x.low), x_of(&frame, frame.x.high),
        y_of(&frame, frame.x.high));
    for (int64_t i = 0; i < count; i++)
        if (shows(&frame, &point[i]))
            tr_text_addf(html, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>",
                         x_of(&frame, point[i].x), y_of(&frame, point[i].y));
    tr_text_add(html, "</g></svg></figure>\n");
}

/* ---- bars ---- */

void tr_chart_bars(struct tr_text *html, const char *title, const char *x_label,
                   const struct tr_chart_bar *bar, int count)
{
    double most = 0;
    for (int i = 0; i < count; i++) most = fmax(most, bar[i].value);
    if (most <= 0) return;
    double room = (double)(WIDTH - LEFT - RIGHT) / count, width = fmin(room * 0.8, 48);
    begin_figure(html, title);
    begin_picture(html, title);
    for (int i = 0; i < count; i++) {
        double height = bar[i].value / most * (HEIGHT - TOP - BOTTOM - 16), x = LEFT + room * (i + 0.5);
        tr_text_addf(html, "<rect class=\"bar s1\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
                     x - width / 2, HEIGHT - BOTTOM - height, width, height);
        tr_text_addf(html, "<g class=\"grid\"><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.6g</text>",
                     x, HEIGHT - BOTTOM - height - 4, bar[i].value);
        tr_text_addf(html, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x, HEIGHT - BOTTOM + 16);
        tr_html_text(html, bar[i].label);
        tr_text_add(html, "</text></g>");
    }
    tr_text_addf(html,
                 "<g class=\"grid\"><path d=\"M%d %dH%d\"/><text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
                 LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 3);
    tr_html_text(html, x_label);
    tr_text_add(html, "</text></g></svg></figure>\n");
}
