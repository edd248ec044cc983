/* Charts as inline SVG: lines over a common axis, and bars. Colours are classes of the page's style sheet, s1
 * to s8, so that charts follow light and dark. */
#ifndef TR_REPORT_CHART_H
#define TR_REPORT_CHART_H

#include "base/text/text.h"

#include <stdbool.h>

#define TR_CHART_COLOURS 8

struct tr_chart_point {
    double x, y; /* points that are not finite are left out */
};

struct tr_chart_series {
    const char *name;
    const struct tr_chart_point *point; /* ascending by x */
    int64_t count;
    int colour;  /* 0 to TR_CHART_COLOURS - 1 */
    bool dots;   /* a dot at each point */
    bool smooth; /* many points are drawn as a moving average, with the points faint behind it */
    bool dashed;
};

struct tr_chart {
    const char *title, *x_label;
    const struct tr_chart_series *series;
    int count;
    bool percent;     /* y is a share, shown in percent */
    bool logarithmic; /* y, where all values are above 0 and span more than a factor of 20 */
    bool from_zero;   /* the y axis begins at 0 */
    bool still;       /* no values appear under the pointer */
    bool doubling;    /* the x axis doubles from mark to mark; all x are above 0 */
};

/* Appends a <figure>; nothing when there is no point to show. */
void tr_chart_lines(struct tr_text *html, const struct tr_chart *chart);

/* Appends a <figure> of points, both axes with one range, and the line where x is y. Nothing when there is no
   point to show. */
void tr_chart_scatter(struct tr_text *html, const char *title, const char *x_label,
                      const struct tr_chart_point *point, int64_t count);

struct tr_chart_bar {
    const char *label;
    double value;
};
/* Appends a <figure> with a bar for each value, the value written above it. */
void tr_chart_bars(struct tr_text *html, const char *title, const char *x_label,
                   const struct tr_chart_bar *bar, int count);

#endif
