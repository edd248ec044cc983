/* The values under the pointer. The picture is cut into bands, each with a line and a separate box that a
 * style sheet shows while the pointer is in the band. */
#include "report/draw/chart_frame.h"

#include "report/draw/html.h"

#include <stdio.h>

#define BANDS 48 /* most bands: more would be narrower than a finger */
#define LINES 12 /* lines of a box */
#define LINE  13 /* from one to the next */
#define BOX   164
#define NAME  21 /* characters of a name that fit a box */

const char *tr_chart_value(const struct tr_chart_frame *frame, double value, char text[TR_CHART_VALUE_SIZE])
{
    if (frame->percent)
        snprintf(text, TR_CHART_VALUE_SIZE, "%.2f %%", 100 * value);
    else if (fabs(value) >= 1e4 && fabs(value) < 1e15)
        tr_text_from_count((int64_t)llround(value), text);
    else
        snprintf(text, TR_CHART_VALUE_SIZE, "%.4g", value);
    return text;
}

/* The series with the most points to show; NULL: there is none. */
static const struct tr_chart_series *densest(const struct tr_chart_frame *frame, const struct tr_chart *chart)
{
    const struct tr_chart_series *best = NULL;
    int64_t most = 0;
    for (int s = 0; s < chart->count; s++) {
        int64_t shown = 0;
        for (int64_t i = 0; i < chart->series[s].count; i++)
            shown += tr_chart_shows(frame, &chart->series[s].point[i]);
        if (shown > most) most = shown, best = &chart->series[s];
    }
    return best;
}

/* The point nearest to `x` of the picture, at most `reach` away; NULL: there is none. */
static const struct tr_chart_point *nearest(const struct tr_chart_frame *frame,
                                            const struct tr_chart_series *series, double x, double reach)
{
    const struct tr_chart_point *best = NULL;
    for (int64_t i = 0; i < series->count; i++) {
        const struct tr_chart_point *point = &series->point[i];
        if (!tr_chart_shows(frame, point)) continue;
        double away = fabs(tr_chart_x(frame, point->x) - x);
        if (away <= reach) best = point, reach = away;
    }
    return best;
}

/* A name that fits the box: bytes of whole characters. */
static size_t name_length(const char *name)
{
    size_t length = 0, characters = 0;
    for (uint32_t character; name[length] && characters < NAME; characters++) {
        size_t bytes = tr_text_utf8(name + length, &character);
        length += bytes ? bytes : 1;
    }
    return length;
}

static void add_line(struct tr_text *html, const struct tr_chart_frame *frame,
                     const struct tr_chart_series *series, const struct tr_chart_point *point, double left,
                     int line)
{
    char value[TR_CHART_VALUE_SIZE], name[4 * NAME + 1];
    int y = CHART_TOP + 8 + (line + 1) * LINE;
    snprintf(name, sizeof name, "%.*s", (int)name_length(series->name), series->name);
    tr_text_addf(html, "<circle class=\"dot s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>", series->colour + 1,
                 tr_chart_x(frame, point->x), tr_chart_y(frame, point->y));
    tr_text_addf(html,
                 "<rect class=\"dot s%d\" x=\"%.1f\" y=\"%d\" width=\"7\" height=\"7\"/><text x=\"%.1f\" "
                 "y=\"%d\">",
                 series->colour + 1, left + 6, y - 7, left + 17, y);
    tr_html_text(html, name);
    tr_text_addf(html, "</text><text x=\"%.1f\" y=\"%d\" text-anchor=\"end\">", left + BOX - 6, y);
    tr_html_text(html, tr_chart_value(frame, point->y, value));
    tr_text_add(html, "</text>");
}

static void add_band(struct tr_text *html, const struct tr_chart_frame *frame, const struct tr_chart *chart,
                     const struct tr_chart_point *at, double from, double to)
{
    double x = tr_chart_x(frame, at->x), reach = fmax(to - from, 1) * 0.75;
    double left = x + 8 + BOX > CHART_WIDTH ? x - 8 - BOX : x + 8;
    const struct tr_chart_point *found[LINES];
    const struct tr_chart_series *series[LINES];
    int lines = 0;
    for (int s = 0; s < chart->count && lines < LINES; s++) {
        found[lines] = nearest(frame, &chart->series[s], x, reach);
        series[lines] = &chart->series[s];
        lines += found[lines] != NULL;
    }
    tr_text_addf(html,
                 "<g class=\"band\"><rect x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"%d\" fill=\"none\" "
                 "pointer-events=\"all\"/><g class=\"tip\" visibility=\"hidden\">"
                 "<path d=\"M%.1f %dV%d\"/><rect x=\"%.1f\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>",
                 from, to - from, CHART_HEIGHT, x, CHART_TOP, CHART_HEIGHT - CHART_BOTTOM, left,
                 CHART_TOP - 8, BOX, 12 + (lines + 1) * LINE);
    tr_text_addf(html, "<text x=\"%.1f\" y=\"%d\">%.6g ", left + 6, CHART_TOP + 6, at->x);
    tr_html_text(html, chart->x_label);
    tr_text_add(html, "</text>");
    for (int i = 0; i < lines; i++) add_line(html, frame, series[i], found[i], left, i);
    tr_text_add(html, "</g></g>");
}

void tr_chart_hover(struct tr_text *html, const struct tr_chart_frame *frame, const struct tr_chart *chart)
{
    const struct tr_chart_series *series = densest(frame, chart);
    const struct tr_chart_point *stop[BANDS + 2];
    int stops = 0;
    if (!series) return;
    /* Every point, or as many as wide enough bands allow; always the last one. */
    const struct tr_chart_point *last = NULL;
    int64_t stride = (series->count + BANDS - 1) / BANDS;
    for (int64_t i = 0; i < series->count; i++) {
        if (!tr_chart_shows(frame, &series->point[i])) continue;
        last = &series->point[i];
        if (i % stride == 0 && stops <= BANDS) stop[stops++] = last;
    }
    if (stops == 0 || stop[stops - 1] != last) stop[stops++] = last;
    for (int i = 0; i < stops; i++) {
        double x = tr_chart_x(frame, stop[i]->x);
        double from = i > 0 ? (tr_chart_x(frame, stop[i - 1]->x) + x) / 2 : CHART_LEFT;
        double to = i + 1 < stops ? (x + tr_chart_x(frame, stop[i + 1]->x)) / 2 : CHART_WIDTH - CHART_RIGHT;
        if (to > from) add_band(html, frame, chart, stop[i], from, to);
    }
}
