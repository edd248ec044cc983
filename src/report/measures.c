#include "report/measures.h"

#include "report/html.h"

#include <math.h>
#include <string.h>

/* Longer tables help nobody. */
#define OUTPUTS_MOST 40

static const struct tr_run_evaluation *last_of(const struct tr_run *run)
{
    return run->evaluations ? &run->evaluation[run->evaluations - 1] : NULL;
}

static double number_of(const struct tr_json_value *value)
{
    if (value->kind == TR_JSON_INTEGER) return (double)value->integer;
    return value->kind == TR_JSON_REAL ? value->real : NAN;
}

static void add_number(struct tr_text *html, double value)
{
    if (isfinite(value))
        tr_html_elementf(html, "td", "number", "%.6g", value);
    else
        tr_html_element(html, "td", "number", "-");
}

static void add_runs(struct tr_text *html, struct tr_run *const *run, char *const *label, int count)
{
    const struct tr_json_value *columns = last_of(run[0])->metrics->first;
    tr_text_add(html, "<div class=\"scroll\"><table class=\"facts\"><thead><tr><th>run</th><th>data</th>");
    for (const struct tr_json_value *column = columns; column; column = column->next)
        tr_html_element(html, "th", "number", column->key);
    tr_text_add(html, "</tr></thead><tbody>");
    for (int i = 0; i < count; i++) {
        const struct tr_run_evaluation *last = last_of(run[i]);
        if (!last || !last->metrics) continue;
        tr_text_add(html, "<tr>");
        tr_html_element(html, "td", NULL, label[i]);
        tr_html_elementf(html, "td", NULL, "%s, step %lld", last->set, (long long)last->step);
        for (const struct tr_json_value *column = columns; column; column = column->next)
            add_number(html, tr_json_number_or_nan(last->metrics, column->key));
        tr_text_add(html, "</tr>");
    }
    tr_text_add(html, "</tbody></table></div>\n");
}

/* The lists are those of a journal, which may hold anything: the shortest decides. */
static int64_t rows_of(const struct tr_json_value *outputs)
{
    int64_t rows = OUTPUTS_MOST + 1;
    for (const struct tr_json_value *list = outputs->first; list; list = list->next) {
        if (list->kind != TR_JSON_ARRAY) return 0;
        if (list->count < rows) rows = list->count;
    }
    return rows;
}

static void add_outputs(struct tr_text *html, const struct tr_json_value *outputs)
{
    const struct tr_json_value *names = tr_json_find(outputs, "name");
    int64_t rows = rows_of(outputs);
    if (rows < 1 || rows > OUTPUTS_MOST) return;
    tr_text_add(html,
                "<h3>By output</h3><div class=\"scroll\"><table class=\"facts\"><thead><tr><th>output</th>");
    for (const struct tr_json_value *list = outputs->first; list; list = list->next)
        if (list != names) tr_html_element(html, "th", "number", list->key);
    tr_text_add(html, "</tr></thead><tbody>");
    for (int64_t row = 0; row < rows; row++) {
        tr_text_add(html, "<tr>");
        if (!names) tr_html_elementf(html, "td", NULL, "%lld", (long long)row);
        for (const struct tr_json_value *list = outputs->first; list; list = list->next) {
            const struct tr_json_value *item = list->first;
            for (int64_t i = 0; i < row; i++) item = item->next;
            if (list == names)
                tr_html_element(html, "td", NULL, item->kind == TR_JSON_TEXT ? item->text : "");
            else
                add_number(html, number_of(item));
        }
        tr_text_add(html, "</tr>");
    }
    tr_text_add(html, "</tbody></table></div>\n");
}

void tr_report_measures(struct tr_text *html, struct tr_run *const *run, char *const *label, int count)
{
    const struct tr_run_evaluation *last = last_of(run[0]);
    if (!last || !last->metrics || last->metrics->count == 0) return;
    tr_text_add(html, "<h2>Metrics</h2>\n");
    add_runs(html, run, label, count);
    if (last->outputs) add_outputs(html, last->outputs);
}
