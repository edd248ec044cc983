/* The common part of the charts: the picture's size, its axes, and where a value lies in it. */
#ifndef TR_REPORT_CHART_FRAME_H
#define TR_REPORT_CHART_FRAME_H

#include "report/draw/chart.h"

#include <math.h>

/* The picture, in units of its view box. */
#define CHART_WIDTH  480
#define CHART_HEIGHT 250
#define CHART_LEFT   52
#define CHART_RIGHT  12
#define CHART_TOP    10
#define CHART_BOTTOM 34

struct tr_chart_axis {
    double low, high;
    double step; /* between ticks */
    bool logarithmic;
    double base; /* of the logarithm */
};

struct tr_chart_frame {
    struct tr_chart_axis x, y;
    bool percent;
};

static inline double tr_chart_scale(const struct tr_chart_axis *axis, double value, double from, double to)
{
    if (axis->logarithmic) value = log(value) / log(axis->base);
    return from + (value - axis->low) / (axis->high - axis->low) * (to - from);
}

static inline double tr_chart_x(const struct tr_chart_frame *frame, double value)
{
    return tr_chart_scale(&frame->x, value, CHART_LEFT, CHART_WIDTH - CHART_RIGHT);
}

static inline double tr_chart_y(const struct tr_chart_frame *frame, double value)
{
    return tr_chart_scale(&frame->y, value, CHART_HEIGHT - CHART_BOTTOM, CHART_TOP);
}

static inline bool tr_chart_shows(const struct tr_chart_frame *frame, const struct tr_chart_point *point)
{
    return isfinite(point->x) && isfinite(point->y) && (!frame->y.logarithmic || point->y > 0);
}

/* A value of the y axis for people: "97.91 %", "0.0312", "1,643". */
#define TR_CHART_VALUE_SIZE 40
const char *tr_chart_value(const struct tr_chart_frame *frame, double value, char text[TR_CHART_VALUE_SIZE]);

/* Appends the parts that appear under a pointer over the picture: a line at the nearest step, and the
   values of all series there. Style sheets show it (`.tip`); no script is needed. */
void tr_chart_hover(struct tr_text *html, const struct tr_chart_frame *frame, const struct tr_chart *chart);

#endif
