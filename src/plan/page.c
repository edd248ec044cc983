/* Plans as pictures: a page with table and curves, and only the curves. */
#include "plan/plan.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "report/draw/chart.h"
#include "report/draw/html.h"
#include "trireme/trireme.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

extern const char tr_report_text_page[]; /* the style sheet of reports */

#define SERIES_MOST 32
#define NAME        80

/* The rows of one strategy, whatever the number of workers in its options. */
struct curve {
    char name[NAME];
    struct tr_chart_point *point;
    int64_t count;
};

struct curves {
    struct curve curve[SERIES_MOST];
    int count;
};

/* "local-sgd,replicas=8,every=8" with 8 workers becomes "local-sgd,every=8": other equal numbers may be a
 * coincidence.
 */
static void name_curve(const struct tr_plan_row *row, char name[NAME])
{
    char own[40];
    size_t length = (size_t)snprintf(own, sizeof own, ",replicas=%d", row->workers);
    const char *at = strstr(row->strategy, own);
    bool whole = at && row->workers > 1 && (at[length] == ',' || !at[length]);
    int before = whole ? (int)(at - row->strategy) : (int)strlen(row->strategy);
    snprintf(name, NAME, "%.*s%s", before, row->strategy, whole ? at + length : "");
}

static struct curve *find_curve(struct curves *curves, const char *name)
{
    for (int i = 0; i < curves->count; i++)
        if (strcmp(curves->curve[i].name, name) == 0) return &curves->curve[i];
    if (curves->count == SERIES_MOST) return NULL;
    struct curve *curve = &curves->curve[curves->count++];
    *curve = (struct curve){0};
    snprintf(curve->name, sizeof curve->name, "%s", name);
    return curve;
}

/* Examples per second, or the ratio to the speed of as many single processes. */
static tr_status make_curves(const struct tr_plan *plan, bool share, struct curves *out)
{
    *out = (struct curves){0};
    for (int i = 1; i < plan->rows; i++) {
        const struct tr_plan_row *row = &plan->row[i];
        char name[NAME];
        if (row->left_out || row->ranks < 2) continue;
        name_curve(row, name);
        struct curve *curve = find_curve(out, name);
        if (!curve) continue;
        if (!tr_grow(&curve->point, curve->count, sizeof *curve->point)) return TR_ENOMEM;
        double y = share ? tr_plan_speedup(plan, i) / row->workers : row->figures.examples_per_second;
        curve->point[curve->count++] = (struct tr_chart_point){row->workers, y};
    }
    return TR_OK;
}

static void release_curves(struct curves *curves)
{
    for (int i = 0; i < curves->count; i++) tr_free(curves->curve[i].point);
}

/* `still`: for a picture, without values under the pointer. */
static tr_status add_curves(const struct tr_plan *plan, bool share, bool still, const char *title,
                            struct tr_text *html)
{
    struct curves curves;
    struct tr_chart_series series[SERIES_MOST];
    tr_status status = make_curves(plan, share, &curves);
    for (int i = 0; i < curves.count; i++)
        series[i] = (struct tr_chart_series){.name = curves.curve[i].name,
                                             .point = curves.curve[i].point,
                                             .count = curves.curve[i].count,
                                             .colour = i % TR_CHART_COLOURS,
                                             .dots = true,
                                             .dashed = i >= TR_CHART_COLOURS};
    const struct tr_chart chart = {.title = title,
                                   .x_label = "workers",
                                   .series = series,
                                   .count = curves.count,
                                   .percent = share,
                                   .logarithmic = !share,
                                   .from_zero = share,
                                   .still = still,
                                   .doubling = true};
    if (status == TR_OK) tr_chart_lines(html, &chart);
    release_curves(&curves);
    return status;
}

/* ---- the page ---- */

enum { PROCESSES, STEP, SPEED, SPEEDUP, MEMORY, MOVED, WAITING, REASON, ERROR, COLUMNS };

static const struct {
    const char *head, *class;
} columns[COLUMNS] = {
    [PROCESSES] = {"processes", "number"}, [STEP] = {"step", "number"},
    [SPEED] = {"examples/s", "number"},    [SPEEDUP] = {"speed-up", "number"},
    [MEMORY] = {"memory", "number"},       [MOVED] = {"moved/step", "number"},
    [WAITING] = {"waiting", "number"},     [REASON] = {"held back by", NULL},
    [ERROR] = {"error", "number"},
};

static void add_cell(struct tr_text *html, int column, const char *text)
{
    tr_html_cell(html, columns[column].head, columns[column].class, text);
}

static void add_cellf(struct tr_text *html, int column, const char *format, double value)
{
    char text[64] = "";
    if (isfinite(value)) snprintf(text, sizeof text, format, value);
    add_cell(html, column, text);
}

/* A column of errors, if any row was run. */
static bool has_column(const struct tr_plan *plan, int column)
{
    if (column != ERROR) return true;
    for (int i = 0; i < plan->rows; i++)
        if (plan->row[i].failure || isfinite(tr_plan_error(&plan->row[i]))) return true;
    return false;
}

static void add_row(const struct tr_plan *plan, int index, struct tr_text *html)
{
    const struct tr_plan_row *row = &plan->row[index];
    const struct tr_rehearsed *figures = &row->figures;
    char text[TR_TEXT_NUMBER_SIZE];
    tr_text_addf(html, "<tr%s>", index == tr_plan_best(plan) ? " class=\"best\"" : "");
    tr_html_element(html, "td", NULL, tr_plan_row_name(plan, index));
    add_cell(html, PROCESSES, tr_text_from_count(row->ranks, text));
    add_cell(html, STEP, tr_plan_step_text(figures->seconds, text));
    add_cell(html, SPEED, tr_text_from_count(llround(figures->examples_per_second), text));
    add_cellf(html, SPEEDUP, "%.2f", tr_plan_speedup(plan, index));
    add_cell(html, MEMORY, tr_text_from_bytes((int64_t)figures->most.memory, text));
    add_cell(html, MOVED, tr_text_from_bytes(figures->sum.bytes_sent + figures->sum.bytes_shared, text));
    add_cellf(html, WAITING, "%.0f %%", 100 * figures->waiting);
    add_cell(html, REASON, tr_bottleneck_names[figures->bottleneck]);
    if (row->failure)
        add_cell(html, ERROR, row->failure);
    else if (has_column(plan, ERROR))
        add_cellf(html, ERROR, "%+.0f %%", 100 * tr_plan_error(row));
    tr_text_add(html, "</tr>\n");
}

static int column_count(const struct tr_plan *plan)
{
    int count = 1;
    for (int i = 0; i < COLUMNS; i++) count += has_column(plan, i);
    return count;
}

/* Rows with equally many workers are separated by a line from others. */
static void add_table(const struct tr_plan *plan, struct tr_text *html)
{
    int workers = 0;
    tr_text_add(html, "<div class=\"scroll\"><table class=\"facts stack\"><thead><tr><th>strategy</th>");
    for (int i = 0; i < COLUMNS; i++)
        if (has_column(plan, i)) tr_html_element(html, "th", columns[i].class, columns[i].head);
    tr_text_add(html, "</tr></thead><tbody>\n");
    for (int i = 0; i < plan->rows; i++) {
        if (plan->row[i].left_out) continue;
        if (i > 0 && plan->row[i].workers != workers) {
            workers = plan->row[i].workers;
            tr_text_addf(html, "<tr><td class=\"group\" colspan=\"%d\">%d worker%s</td></tr>\n",
                         column_count(plan), workers, workers == 1 ? "" : "s");
        }
        add_row(plan, i, html);
    }
    tr_text_add(html, "</tbody></table></div>\n");
}

static bool is_said(const struct tr_plan *plan, int index)
{
    for (int i = 0; i < index; i++)
        if (tr_plan_go_together(&plan->row[i], &plan->row[index])) return true;
    return false;
}

/* Impossible combinations, with the reason; those with the same reason together. */
static void add_left_out(const struct tr_plan *plan, struct tr_text *html)
{
    bool any = false;
    for (int i = 0; i < plan->rows; i++) {
        const struct tr_plan_row *row = &plan->row[i];
        if (!row->left_out || is_said(plan, i)) continue;
        if (!any)
            tr_text_add(html, "<h2>Left out</h2><table class=\"facts stack wrap\"><thead><tr><th>reason</th>"
                              "<th class=\"number\">workers</th><th>strategies</th></tr></thead><tbody>\n");
        any = true;
        struct tr_text names = TR_TEXT_INIT;
        char workers[TR_TEXT_NUMBER_SIZE];
        for (int k = i; k < plan->rows; k++)
            if (tr_plan_go_together(row, &plan->row[k]))
                tr_text_addf(&names, "%s%s", k > i ? "; " : "", tr_plan_row_name(plan, k));
        if (names.failed) html->failed = true;
        tr_text_add(html, "<tr>");
        tr_html_element(html, "td", NULL, row->left_out);
        tr_html_cell(html, "workers", "number", tr_text_from_count(row->workers, workers));
        tr_html_cell(html, "strategies", NULL, names.bytes ? names.bytes : "");
        tr_text_add(html, "</tr>\n");
        tr_text_release(&names);
    }
    if (any) tr_text_add(html, "</tbody></table>\n");
}

static void add_lead(const struct tr_plan *plan, struct tr_text *html)
{
    const struct tr_cluster *cluster = &plan->cluster;
    tr_html_elementf(
        html, "p", "lead",
        "Simulated: the strategies' own steps, played over a network of %.3g Gb/s for each host "
        "with %.3g microseconds between two, %d process%s a host; computing as measured on this "
        "machine (%s).%s",
        cluster->remote.rate * 8e-9, cluster->remote.latency * 1e6, cluster->per_host,
        cluster->per_host == 1 ? "" : "es", plan->device,
        has_column(plan, ERROR) ? " Error: the prediction against a real run, where there was one." : "");
}

tr_status tr_plan_page(const struct tr_plan *plan, char **out)
{
    struct tr_text html = TR_TEXT_INIT;
    char now[TR_CLOCK_TEXT];
    const char *name = plan->name ? plan->name : "plan";
    tr_text_add(&html, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    tr_html_elementf(&html, "title", NULL, "%s: plan", name);
    tr_text_add(&html, "<style>\n");
    tr_text_add(&html, tr_report_text_page);
    tr_text_add(&html, "</style></head><body><main>\n");
    tr_html_elementf(&html, "h1", NULL, "%s: plan", name);
    add_lead(plan, &html);
    add_table(plan, &html);
    tr_text_add(&html, "<h2>Over workers</h2><div class=\"figures\">\n");
    tr_status status = add_curves(plan, false, false, "Examples per second, simulated", &html);
    if (status == TR_OK)
        status = add_curves(plan, true, false, "Share of as many single processes, simulated", &html);
    tr_text_add(&html, "</div>\n");
    add_left_out(plan, &html);
    tr_text_add(&html, "<footer>");
    tr_html_elementf(&html, "span", NULL, "Trireme %s, %s", tr_version(),
                     tr_clock_text(tr_clock_wall(), now));
    tr_text_add(&html, "</footer></main></body></html>\n");
    if (status == TR_OK) return tr_text_finish(&html, out);
    tr_text_release(&html);
    return status;
}

/* ---- the picture ---- */

/* The chart's own picture, with a separate legend: pages' style sheets are not there. */
#define WIDTH  480
#define HEIGHT 250
#define LINE   16

static void add_style(struct tr_text *svg)
{
    tr_text_add(svg,
                "<style>text{font:12px system-ui,sans-serif;fill:#626a73}.grid path{stroke:#dfe2e6;fill:none}"
                ".line{fill:none;stroke:currentColor;stroke-width:2}.dot{fill:currentColor}"
                "path.dashed{stroke-dasharray:5 4}"
                ".s1{color:#0b69b7}.s2{color:#c9500a}.s3{color:#00845c}.s4{color:#a8438b}.s5{color:#9a6a00}"
                ".s6{color:#2a8fbd}.s7{color:#6b5fc7}.s8{color:#7a7f87}"
                "@media (prefers-color-scheme:dark){text{fill:#9aa3ad}.grid path{stroke:#31373f}"
                ".s1{color:#5aa9ea}.s2{color:#f0884a}.s3{color:#3fc293}.s4{color:#dd86c4}.s5{color:#e0b040}"
                ".s6{color:#7fd0f2}.s7{color:#a59bf0}.s8{color:#9aa0a8}}</style>\n");
}

static void add_legend(const struct curves *curves, struct tr_text *svg)
{
    for (int i = 0; i < curves->count; i++) {
        int x = 52 + i % 2 * 214, y = HEIGHT + 34 + i / 2 * LINE;
        tr_text_addf(svg, "<path class=\"line s%d%s\" d=\"M%d %dh18\"/><text x=\"%d\" y=\"%d\">",
                     i % TR_CHART_COLOURS + 1, i >= TR_CHART_COLOURS ? " dashed" : "", x, y - 4, x + 24, y);
        tr_html_text(svg, curves->curve[i].name);
        tr_text_add(svg, "</text>\n");
    }
}

/* What lies between <svg ...> and </svg> of a figure. */
static void add_inside(const char *figure, struct tr_text *svg)
{
    const char *begin = strstr(figure, "<svg"), *end = strstr(figure, "</svg>");
    if (begin) begin = strchr(begin, '>');
    if (begin && end) tr_text_add_bytes(svg, begin + 1, (size_t)(end - begin - 1));
}

tr_status tr_plan_picture(const struct tr_plan *plan, const char *title, char **out)
{
    struct tr_text svg = TR_TEXT_INIT, figure = TR_TEXT_INIT;
    struct curves curves;
    tr_status status = make_curves(plan, plan->grows, &curves);
    int height = HEIGHT + 34 + (curves.count + 1) / 2 * LINE;
    if (status == TR_OK) status = add_curves(plan, plan->grows, true, title, &figure);
    tr_text_addf(&svg,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
                 "role=\"img\" aria-label=\"",
                 WIDTH, height, 3 * WIDTH / 2, 3 * height / 2);
    tr_html_text(&svg, title);
    tr_text_add(&svg, "\">\n");
    add_style(&svg);
    tr_text_add(&svg, "<text x=\"8\" y=\"14\" style=\"font-weight:600\">");
    tr_html_text(&svg, title);
    tr_text_addf(&svg, ", %.3g Gb/s, simulated: %s</text>\n<g transform=\"translate(0 20)\">",
                 plan->cluster.remote.rate * 8e-9,
                 plan->grows ? "share of as many single processes" : "examples per second");
    add_inside(figure.bytes ? figure.bytes : "", &svg);
    if (figure.failed) svg.failed = true;
    tr_text_add(&svg, "</g>\n");
    add_legend(&curves, &svg);
    tr_text_add(&svg, "</svg>\n");
    tr_text_release(&figure);
    release_curves(&curves);
    if (status == TR_OK) return tr_text_finish(&svg, out);
    tr_text_release(&svg);
    return status;
}
