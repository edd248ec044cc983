#include "report/sections/measures.h"

#include "report/draw/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Longer tables are of no use. */
#define OUTPUTS_MOST 40
#define COLUMNS_MOST 40

static const struct tr_run_evaluation *last_of(const struct tr_run *run)
{
    return run->evaluations ? &run->evaluation[run->evaluations - 1] : NULL;
}

static double number_of(const struct tr_json_value *value)
{
    if (value->kind == TR_JSON_INTEGER) return (double)value->integer;
    return value->kind == TR_JSON_REAL ? value->real : NAN;
}

/* The format of a column's numbers, so that their decimal points are aligned. */
struct digits {
    double most; /* greatest magnitude */
    bool whole;
};

static void count_in(struct digits *digits, double value)
{
    if (!isfinite(value)) return;
    digits->most = fmax(digits->most, fabs(value));
    if (value != floor(value)) digits->whole = false;
}

static void add_number(struct tr_text *html, const struct digits *digits, double value)
{
    char text[TR_TEXT_NUMBER_SIZE];
    if (!isfinite(value))
        tr_html_element(html, "td", "number", "-");
    else if (digits->whole && digits->most >= 2 && digits->most < 1e15)
        tr_html_element(html, "td", "number", tr_text_from_count((int64_t)value, text));
    else if (digits->most >= 1e6 || (digits->most < 1e-2 && digits->most > 0))
        tr_html_elementf(html, "td", "number", "%.3e", value);
    else
        tr_html_elementf(html, "td", "number", "%.*f",
                         digits->most < 10     ? 4
                         : digits->most < 1000 ? 2
                                               : 1,
                         value);
}

/* The name of a figure for people: the journal's name without underscores, unless it has another one. */
static void add_head(struct tr_text *html, const char *key)
{
    static const char *const names[][2] = {
        {"f1", "F1"},
        {"mae", "mean absolute error"},
        {"mse", "mean squared error"},
        {"rmse", "root mean squared error"},
        {"r2", "R\302\262"},
        {"roc_auc", "ROC AUC"},
        {"pr_auc", "PR AUC"},
        {"average_precision", "average precision"},
        {"support", "examples"},
    };
    char text[64];
    snprintf(text, sizeof text, "%s", key);
    for (char *at = text; *at; at++)
        if (*at == '_') *at = ' ';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(key, names[i][0]) == 0) snprintf(text, sizeof text, "%s", names[i][1]);
    if (strncmp(key, "top_", 4) == 0) snprintf(text, sizeof text, "among the %.20s likeliest", key + 4);
    tr_html_element(html, "th", "number", text);
}

static void add_runs(struct tr_text *html, struct tr_run *const *run, char *const *label, int count)
{
    const struct tr_json_value *columns = last_of(run[0])->metrics->first;
    struct digits digits[COLUMNS_MOST];
    int n = 0;
    for (const struct tr_json_value *column = columns; column && n < COLUMNS_MOST;
         column = column->next, n++) {
        digits[n] = (struct digits){0, true};
        for (int i = 0; i < count; i++) {
            const struct tr_run_evaluation *last = last_of(run[i]);
            if (last && last->metrics)
                count_in(&digits[n], tr_json_number_or_nan(last->metrics, column->key));
        }
    }
    tr_text_add(html, "<div class=\"scroll\"><table class=\"facts\"><thead><tr><th>run</th><th>data</th>");
    const struct tr_json_value *end = columns;
    for (int i = 0; i < n; i++, end = end->next) add_head(html, end->key);
    tr_text_add(html, "</tr></thead><tbody>");
    for (int i = 0; i < count; i++) {
        const struct tr_run_evaluation *last = last_of(run[i]);
        int k = 0;
        if (!last || !last->metrics) continue;
        tr_text_add(html, "<tr>");
        tr_html_element(html, "td", NULL, label[i]);
        tr_html_elementf(html, "td", NULL, "%s, step %lld", last->set, (long long)last->step);
        for (const struct tr_json_value *column = columns; column != end; column = column->next)
            add_number(html, &digits[k++], tr_json_number_or_nan(last->metrics, column->key));
        tr_text_add(html, "</tr>");
    }
    tr_text_add(html, "</tbody></table></div>\n");
}

/* The lists come from a journal, which may contain anything: the shortest determines the length. */
static int64_t rows_of(const struct tr_json_value *outputs)
{
    int64_t rows = OUTPUTS_MOST + 1;
    for (const struct tr_json_value *list = outputs->first; list; list = list->next) {
        if (list->kind != TR_JSON_ARRAY) return 0;
        if (list->count < rows) rows = list->count;
    }
    return rows;
}

static struct digits digits_of(const struct tr_json_value *list, int64_t rows)
{
    struct digits digits = {0, true};
    const struct tr_json_value *item = list->first;
    for (int64_t i = 0; i < rows; i++, item = item->next) count_in(&digits, number_of(item));
    return digits;
}

static void add_outputs(struct tr_text *html, const struct tr_json_value *outputs)
{
    const struct tr_json_value *names = tr_json_find(outputs, "name");
    int64_t rows = rows_of(outputs);
    if (rows < 1 || rows > OUTPUTS_MOST) return;
    tr_text_add(html,
                "<h3>By output</h3><div class=\"scroll\"><table class=\"facts\"><thead><tr><th>output</th>");
    for (const struct tr_json_value *list = outputs->first; list; list = list->next)
        if (list != names) add_head(html, list->key);
    tr_text_add(html, "</tr></thead><tbody>");
    for (int64_t row = 0; row < rows; row++) {
        tr_text_add(html, "<tr>");
        if (!names) tr_html_elementf(html, "td", NULL, "%lld", (long long)row);
        for (const struct tr_json_value *list = outputs->first; list; list = list->next) {
            const struct tr_json_value *item = list->first;
            const struct digits digits = digits_of(list, rows);
            for (int64_t i = 0; i < row; i++) item = item->next;
            if (list == names)
                tr_html_element(html, "td", NULL, item->kind == TR_JSON_TEXT ? item->text : "");
            else
                add_number(html, &digits, number_of(item));
        }
        tr_text_add(html, "</tr>");
    }
    tr_text_add(html, "</tbody></table></div>\n");
}

void tr_report_measures(struct tr_text *html, struct tr_run *const *run, char *const *label, int count,
                        const char *job, bool *begun)
{
    const struct tr_run_evaluation *last = last_of(run[0]);
    if (!last || !last->metrics || last->metrics->count == 0) return;
    if (!*begun) tr_text_add(html, "<h2>Metrics</h2>\n");
    *begun = true;
    if (job) tr_html_element(html, "h3", NULL, job);
    add_runs(html, run, label, count);
    if (last->outputs) add_outputs(html, last->outputs);
}
