/* The report of runs: one HTML page that needs nothing else. */
#include "trireme/report.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/sized.h"
#include "report/chart.h"
#include "report/examples.h"
#include "report/html.h"
#include "report/measures.h"
#include "report/run.h"
#include "report/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trireme/trireme.h"

#define RUNS_MOST  64
#define TRACE_FILE "trace.json"

extern const char tr_report_text_page[]; /* the style sheet */

struct page {
    struct tr_text html;
    const struct tr_report_settings *settings;
    struct tr_run *run[RUNS_MOST];
    char *label[RUNS_MOST]; /* as directories are told apart */
    int count;
};

static int colour_of(int run)
{
    return run % TR_CHART_COLOURS;
}

/* ---- head ---- */

static void add_head(struct page *page)
{
    struct tr_text *html = &page->html;
    tr_text_add(html, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    const char *title = page->settings->title ? page->settings->title : page->run[0]->name;
    tr_html_element(html, "title", NULL, title);
    tr_text_add(html, "<style>\n");
    tr_text_add(html, tr_report_text_page);
    tr_text_add(html, "</style></head><body><main>\n");
    tr_html_element(html, "h1", NULL, title);
}

static const struct tr_run_evaluation *last_evaluation(const struct tr_run *run)
{
    return run->evaluations ? &run->evaluation[run->evaluations - 1] : NULL;
}

/* One sentence on what came out. */
static void add_lead(struct page *page)
{
    const struct tr_run *run = page->run[0];
    const struct tr_run_evaluation *last = last_evaluation(run);
    char seconds[TR_TEXT_NUMBER_SIZE];
    struct tr_text text = TR_TEXT_INIT;
    if (page->count > 1) tr_text_addf(&text, "%d runs. The first: ", page->count);
    if (last && isfinite(last->perplexity))
        tr_text_addf(&text, "Perplexity %.4g (loss %.4f) on the %s data", last->perplexity, last->loss,
                     last->set);
    else if (last && run->classification)
        tr_text_addf(&text, "Accuracy %.2f %% on the %s data", last->accuracy * 100, last->set);
    else if (last)
        tr_text_addf(&text, "Loss %.6g on the %s data", last->loss, last->set);
    else
        tr_text_add(&text, "Not evaluated");
    if (isfinite(run->seconds))
        tr_text_addf(&text, " after %s of training", tr_text_from_seconds(run->seconds, seconds));
    tr_text_addf(&text, ", %s, %" PRId64 " process%s.", *run->device ? run->device : "unknown device",
                 run->ranks, run->ranks == 1 ? "" : "es");
    if (!run->ended) tr_text_add(&text, " It has not ended, or was killed.");
    if (text.bytes) tr_html_element(&page->html, "p", "lead", text.bytes);
    if (text.failed) page->html.failed = true;
    tr_text_release(&text);
    if (run->shares) tr_html_element(&page->html, "p", "note", run->shares);
    for (int64_t i = 0; i < run->warnings; i++) tr_html_element(&page->html, "p", "warning", run->warning[i]);
}

/* ---- the table of runs ---- */

static void add_row(struct page *page, int index)
{
    const struct tr_run *run = page->run[index];
    const struct tr_run_evaluation *last = last_evaluation(run);
    struct tr_text *html = &page->html;
    char figure[TR_TEXT_NUMBER_SIZE];
    int64_t moved = 0;
    double waited = 0;
    for (int64_t r = 0; r < run->rank_count; r++) {
        moved += run->rank[r].sent + run->rank[r].shared;
        waited += run->rank[r].wait;
    }
    tr_text_addf(html, "<tr><td><i class=\"s%d\"></i>", colour_of(index) + 1);
    tr_html_text(html, page->label[index]);
    tr_text_add(html, "</td>");
    tr_html_element(html, "td", NULL, *run->strategy ? run->strategy : "-");
    tr_html_elementf(html, "td", "number", "%" PRId64, run->ranks);
    tr_html_elementf(html, "td", "number", "%" PRId64, run->step);
    tr_html_element(html, "td", "number",
                    isfinite(run->seconds) ? tr_text_from_seconds(run->seconds, figure) : "-");
    if (isfinite(run->speed) && isfinite(run->tokens))
        tr_html_elementf(html, "td", "number", "%.0f (%.0f tokens/s)", run->speed, run->tokens);
    else if (isfinite(run->speed))
        tr_html_elementf(html, "td", "number", "%.0f", run->speed);
    else
        tr_html_element(html, "td", "number", "-");
    if (last && isfinite(last->perplexity))
        tr_html_elementf(html, "td", "number", "perplexity %.4g", last->perplexity);
    else if (last && run->classification)
        tr_html_elementf(html, "td", "number", "%.2f %%", last->accuracy * 100);
    else if (last)
        tr_html_elementf(html, "td", "number", "loss %.5g", last->loss);
    else
        tr_html_element(html, "td", "number", "-");
    tr_html_element(html, "td", "number", moved ? tr_text_from_bytes(moved, figure) : "-");
    tr_html_element(html, "td", "number",
                    run->rank_count > 1 ? tr_text_from_seconds(waited / (double)run->rank_count, figure)
                                        : "-");
    tr_html_elementf(html, "td", "hash", "%.12s", *run->hash ? run->hash : "-");
    tr_text_add(html, "</tr>\n");
}

static void add_table(struct page *page)
{
    static const struct {
        const char *head;
        bool number;
    } columns[] = {
        {"run", false},       {"strategy", false}, {"processes", true}, {"steps", true},   {"time", true},
        {"examples/s", true}, {"result", true},    {"moved", true},     {"waiting", true}, {"hash", false},
    };
    tr_text_add(&page->html, "<div class=\"scroll\"><table class=\"facts\"><thead><tr>");
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        tr_html_element(&page->html, "th", columns[i].number ? "number" : NULL, columns[i].head);
    tr_text_add(&page->html, "</tr></thead><tbody>");
    for (int i = 0; i < page->count; i++) add_row(page, i);
    tr_text_add(&page->html, "</tbody></table></div>\n");
}

/* Whether runs of the same settings ended with the same hash: the promise, and whether it was kept. */
static void add_verdict(struct page *page)
{
    int same = 0, equal = 0;
    const struct tr_run *first = page->run[0];
    for (int i = 1; i < page->count; i++) {
        const struct tr_run *run = page->run[i];
        if (!*first->hash || !*run->hash || strcmp(run->settings, first->settings) != 0) continue;
        if (first->asynchronous || run->asynchronous) continue; /* they promise none */
        same++;
        equal += strcmp(run->hash, first->hash) == 0;
    }
    if (same == 0) return;
    if (equal == same)
        tr_html_elementf(&page->html, "p", NULL,
                         "%d of the other runs %s the first one's settings, and %s hash.", same,
                         same == 1 ? "has" : "have", same == 1 ? "its" : "all of them its");
    else
        tr_html_elementf(
            &page->html, "p", "warning",
            "%d of the other runs have the first one's settings, %d of them another hash; `trireme diff` "
            "finds where they part.",
            same, same - equal);
}

/* ---- curves ---- */

enum quantity { LOSS, ACCURACY, RATE, SPEED, NORM };

static double value_of(const struct tr_run_point *point, enum quantity quantity)
{
    const double values[] = {point->loss, point->accuracy, point->rate, point->speed, point->norm};
    return values[quantity];
}

/* The points of a run over its steps; returned, free with tr_free(). */
static struct tr_chart_point *points_of(const struct tr_run *run, enum quantity quantity)
{
    struct tr_chart_point *points = tr_alloc((size_t)run->points + 1, sizeof *points);
    for (int64_t i = 0; points && i < run->points; i++)
        points[i] = (struct tr_chart_point){(double)run->point[i].step, value_of(&run->point[i], quantity)};
    return points;
}

static struct tr_chart_point *evaluations_of(const struct tr_run *run, enum quantity quantity)
{
    struct tr_chart_point *points = tr_alloc((size_t)run->evaluations + 1, sizeof *points);
    for (int64_t i = 0; points && i < run->evaluations; i++)
        points[i] =
            (struct tr_chart_point){(double)run->evaluation[i].step,
                                    quantity == LOSS ? run->evaluation[i].loss : run->evaluation[i].accuracy};
    return points;
}

static tr_status add_curve(struct page *page, const char *title, enum quantity quantity)
{
    struct tr_chart_series series[2 * RUNS_MOST];
    struct tr_chart_point *owned[2 * RUNS_MOST];
    char *name[RUNS_MOST] = {0};
    int count = 0;
    bool failed = false;
    for (int i = 0; i < page->count; i++) {
        const struct tr_run *run = page->run[i];
        series[count] = (struct tr_chart_series){page->count > 1 ? page->label[i] : "training",
                                                 owned[count] = points_of(run, quantity),
                                                 run->points,
                                                 colour_of(i),
                                                 false,
                                                 quantity != RATE,
                                                 false};
        failed |= !owned[count++];
        if (quantity > ACCURACY || run->evaluations == 0) continue;
        name[i] = tr_format("%s, evaluated", page->label[i]);
        series[count] = (struct tr_chart_series){page->count > 1 ? name[i] : "evaluated",
                                                 owned[count] = evaluations_of(run, quantity),
                                                 run->evaluations,
                                                 page->count > 1 ? colour_of(i) : 1,
                                                 true,
                                                 false,
                                                 true};
        failed |= !owned[count++] || !name[i];
    }
    struct tr_chart chart = {.title = title,
                             .x_label = "steps",
                             .series = series,
                             .count = count,
                             .percent = quantity == ACCURACY,
                             .logarithmic = quantity == LOSS || quantity == NORM,
                             .from_zero = quantity == SPEED || quantity == RATE};
    if (!failed) tr_chart_lines(&page->html, &chart);
    while (count > 0) tr_free(owned[--count]);
    for (int i = 0; i < page->count; i++) tr_free(name[i]);
    return failed ? TR_ENOMEM : TR_OK;
}

/* Losses of two kinds in one chart are not taken for one. */
static const char *title_of_losses(const struct page *page)
{
    for (int i = 0; i < page->count; i++)
        if (page->run[i]->label_smoothing > 0)
            return "Loss (of steps with label smoothing, of evaluations without)";
    return "Loss";
}

static tr_status add_curves(struct page *page)
{
    tr_text_add(&page->html, "<h2>Curves</h2><div class=\"figures\">\n");
    TR_TRY(add_curve(page, title_of_losses(page), LOSS));
    TR_TRY(add_curve(page, "Accuracy", ACCURACY));
    TR_TRY(add_curve(page, "Examples a second", SPEED));
    TR_TRY(add_curve(page, "Learning rate", RATE));
    TR_TRY(add_curve(page, "Norm of the gradient", NORM));
    tr_text_add(&page->html, "</div>\n");
    return TR_OK;
}

/* ---- parallel training ---- */

static void add_staleness(struct page *page, const struct tr_run *run, const char *label)
{
    struct tr_chart_bar bars[TR_RUN_BINS];
    char text[TR_RUN_BINS][16], title[256];
    int used = 0;
    for (int64_t i = 0; i < run->staleness_count; i++)
        if (run->staleness[i]) used = (int)i + 1;
    for (int i = 0; i < used; i++) {
        snprintf(text[i], sizeof text[i], "%d", i);
        bars[i] = (struct tr_chart_bar){text[i], (double)run->staleness[i]};
    }
    snprintf(title, sizeof title, "Staleness of gradients: %s (%" PRId64 " dropped)", label, run->dropped);
    tr_chart_bars(&page->html, title, "updates missed between reading parameters and applying the gradient",
                  bars, used);
}

static void add_ranks(struct page *page, const struct tr_run *run, const char *label)
{
    char figure[TR_TEXT_NUMBER_SIZE];
    struct tr_text *html = &page->html;
    tr_text_add(html, "<figure class=\"wide\">");
    tr_html_elementf(html, "figcaption", NULL, "Processes: %s", label);
    tr_text_add(html,
                "<div class=\"scroll\"><table class=\"facts\"><thead><tr><th>rank</th><th class=\"number\">"
                "computing</th><th class=\"number\">waiting</th><th class=\"number\">sent</th>"
                "<th class=\"number\">received</th><th class=\"number\">read in shared memory</th></tr>"
                "</thead><tbody>");
    for (int64_t r = 0; r < run->rank_count; r++) {
        const struct tr_run_rank *rank = &run->rank[r];
        tr_text_addf(html, "<tr><td>%" PRId64 "</td>", r);
        tr_html_elementf(html, "td", "number", "%.2f s", rank->compute);
        tr_html_elementf(html, "td", "number", "%.2f s", rank->wait);
        tr_html_element(html, "td", "number", tr_text_from_bytes(rank->sent, figure));
        tr_html_element(html, "td", "number", tr_text_from_bytes(rank->received, figure));
        tr_html_element(html, "td", "number", tr_text_from_bytes(rank->shared, figure));
        tr_text_add(html, "</tr>");
    }
    tr_text_add(html, "</tbody></table></div></figure>\n");
}

/* The trace that was named, or the first that lies in the directory of a run. */
static tr_status add_timeline(struct page *page)
{
    if (page->settings->trace) return tr_report_timeline(&page->html, page->settings->trace);
    for (int i = 0; i < page->count; i++) {
        char *path = tr_path_join(page->run[i]->path, TRACE_FILE);
        if (!path) return TR_ENOMEM;
        bool there = tr_file_exists(path);
        tr_status status = there ? tr_report_timeline(&page->html, path) : TR_OK;
        tr_free(path);
        if (there) return status;
    }
    return TR_OK;
}

static tr_status add_parallel(struct page *page)
{
    size_t before = page->html.length;
    tr_text_add(&page->html, "<h2>Time and communication</h2><div class=\"figures\">\n");
    size_t empty = page->html.length;
    for (int i = 0; i < page->count; i++) {
        if (page->run[i]->rank_count > 1) add_ranks(page, page->run[i], page->label[i]);
        if (page->run[i]->asynchronous) add_staleness(page, page->run[i], page->label[i]);
    }
    TR_TRY(add_timeline(page));
    if (page->html.length == empty && page->html.bytes)
        page->html.bytes[page->html.length = before] = 0; /* nothing to say */
    else
        tr_text_add(&page->html, "</div>\n");
    return TR_OK;
}

/* ---- how to repeat ---- */

static void add_fact(struct tr_text *html, const char *name, const char *value)
{
    if (!*value) return;
    tr_text_add(html, "<tr>");
    tr_html_element(html, "th", NULL, name);
    tr_html_element(html, "td", "hash", value);
    tr_text_add(html, "</tr>");
}

/* The evaluation whose weights were kept. */
static void add_best(struct tr_text *html, const struct tr_run *run)
{
    char text[256], accuracy[48] = "";
    if (run->best.step <= 0) return;
    if (isfinite(run->best.accuracy))
        snprintf(accuracy, sizeof accuracy, "accuracy %.2f %%, ", run->best.accuracy * 100);
    snprintf(text, sizeof text, "step %" PRId64 ": %sloss %.6g on the %.64s data", run->best.step, accuracy,
             run->best.loss, run->best.set);
    add_fact(html, "best evaluation", text);
}

static void add_repetition(struct page *page, int index)
{
    const struct tr_run *run = page->run[index];
    struct tr_text *html = &page->html;
    char text[96];
    if (page->count > 1) tr_html_element(html, "h3", NULL, page->label[index]);
    if (*run->command) tr_html_element(html, "pre", NULL, run->command);
    tr_text_add(html, "<div class=\"scroll\"><table class=\"facts\"><tbody>");
    add_fact(html, "hash", run->hash);
    add_fact(html, "settings", run->settings);
    snprintf(text, sizeof text, "%" PRId64, run->seed);
    add_fact(html, "seed", text);
    add_fact(html, "model file", run->model);
    snprintf(text, sizeof text, "%" PRId64 " examples in %" PRId64 " microbatches", run->batch,
             run->microbatches);
    add_fact(html, "batch", text);
    snprintf(text, sizeof text, "%" PRId64, run->parameters);
    add_fact(html, "parameters", text);
    add_fact(html, "device", run->device);
    add_fact(html, "host", run->host);
    add_fact(html, "started", run->started);
    if (run->resumed) {
        snprintf(text, sizeof text, "%d time%s", run->resumed, run->resumed == 1 ? "" : "s");
        add_fact(html, "taken up again", text);
    }
    add_fact(html, "checkpoint", run->checkpoint);
    add_best(html, run);
    add_fact(html, "version", run->version);
    if (*run->status && strcmp(run->status, "ok") != 0) add_fact(html, "ended with", run->message);
    tr_text_add(html, "</tbody></table></div>\n");
}

static void add_repetitions(struct page *page)
{
    tr_text_add(&page->html,
                "<h2>How to repeat it</h2><p>The same model file, data and seed give the same hash on "
                "any number of threads and processes and on any device, with every synchronous "
                "strategy.</p>\n");
    for (int i = 0; i < page->count; i++) add_repetition(page, i);
}

/* ---- the page ---- */

static tr_status add_examples(struct page *page)
{
    if (!page->settings->examples) return TR_OK;
    return tr_report_examples(&page->html, page->run[0]->path);
}

static tr_status write_page(struct page *page, char **html)
{
    char now[TR_CLOCK_TEXT];
    add_head(page);
    add_lead(page);
    add_table(page);
    add_verdict(page);
    TR_TRY(add_curves(page));
    tr_report_measures(&page->html, page->run, page->label, page->count);
    TR_TRY(add_parallel(page));
    TR_TRY(add_examples(page));
    add_repetitions(page);
    tr_text_add(&page->html, "<footer>");
    tr_html_elementf(&page->html, "span", NULL, "Trireme %s, %s", tr_version(),
                     tr_clock_text(tr_clock_wall(), now));
    tr_text_add(&page->html, "</footer></main></body></html>\n");
    return tr_text_finish(&page->html, html);
}

/* The directory without what all runs' directories begin with would say less than its last part does. */
static char *label_of(const char *directory)
{
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/') length--;
    size_t begin = length;
    while (begin > 0 && directory[begin - 1] != '/') begin--;
    return tr_format("%.*s", (int)(length - begin), directory + begin);
}

tr_status tr_report(const char *const *runs, int count, const struct tr_report_settings *given, char **html)
{
    static const struct tr_report_settings defaults = TR_REPORT_SETTINGS_INIT;
    struct tr_report_settings settings;
    struct page page = {.settings = &settings};
    tr_status status = TR_OK;
    TR_TRY(tr_sized_take(given, &defaults, sizeof defaults, "TR_REPORT_SETTINGS_INIT", &settings));
    if (count < 1 || count > RUNS_MOST)
        return tr_fail(TR_EINVAL, "a report of %d runs; give 1 to %d directories", count, RUNS_MOST);
    for (int i = 0; status == TR_OK && i < count; i++) {
        status = tr_run_read(runs[i], &page.run[i]);
        if (status != TR_OK) break;
        page.count++;
        page.label[i] = label_of(runs[i]);
        if (!page.label[i]) status = TR_ENOMEM;
    }
    if (status == TR_OK) status = write_page(&page, html);
    tr_text_release(&page.html);
    for (int i = 0; i < page.count; i++) {
        tr_run_destroy(&page.run[i]);
        tr_free(page.label[i]);
    }
    return status;
}
