/* The report of runs: a self-contained HTML page. */
#include "trireme/report.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/sized.h"
#include "report/draw/chart.h"
#include "report/sections/curves.h"
#include "report/sections/examples.h"
#include "report/draw/html.h"
#include "report/sections/measures.h"
#include "report/sections/processes.h"
#include "report/repeat.h"
#include "report/run.h"
#include "report/sections/timeline.h"

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
    char *label[RUNS_MOST]; /* to distinguish directories */
    int count;
};

static int colour_of(int run)
{
    return run % TR_CHART_COLOURS;
}

/* ---- jobs ---- */

/* Runs of the same job are grouped, in the given order. */
static void order_by_job(struct page *page)
{
    for (int i = 1; i < page->count; i++) {
        int to = i;
        while (to > 0 && strcmp(page->run[to - 1]->name, page->run[i]->name) != 0) to--;
        if (to == 0 || to == i) continue;
        struct tr_run *run = page->run[i];
        char *label = page->label[i];
        memmove(&page->run[to + 1], &page->run[to], (size_t)(i - to) * sizeof *page->run);
        memmove(&page->label[to + 1], &page->label[to], (size_t)(i - to) * sizeof *page->label);
        page->run[to] = run;
        page->label[to] = label;
    }
}

/* The end of the runs of the job whose first run is `first`. */
static int end_of_job(const struct page *page, int first)
{
    int end = first;
    while (end < page->count && strcmp(page->run[end]->name, page->run[first]->name) == 0) end++;
    return end;
}

/* ---- head ---- */

static void add_head(struct page *page)
{
    struct tr_text *html = &page->html;
    tr_text_add(html, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    struct tr_text names = TR_TEXT_INIT;
    for (int first = 0; first < page->count; first = end_of_job(page, first))
        tr_text_addf(&names, "%s%s", first > 0 ? ", " : "", page->run[first]->name);
    if (names.failed) html->failed = true;
    const char *title = page->settings->title ? page->settings->title : names.bytes ? names.bytes : "";
    tr_html_element(html, "title", NULL, title);
    tr_text_add(html, "<style>\n");
    tr_text_add(html, tr_report_text_page);
    tr_text_add(html, "</style></head><body><main>\n");
    tr_html_element(html, "h1", NULL, title);
    tr_text_release(&names);
}

static const struct tr_run_evaluation *last_evaluation(const struct tr_run *run)
{
    return run->evaluations ? &run->evaluation[run->evaluations - 1] : NULL;
}

/* One sentence about the result. */
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

enum { JOB, STRATEGY, PROCESSES, STEPS, TIME, SPEED, RESULT, MOVED, WAITING, HASH };

static const struct {
    const char *head, *class;
} columns[] = {
    [JOB] = {"job", NULL},           [STRATEGY] = {"strategy", NULL}, [PROCESSES] = {"processes", "number"},
    [STEPS] = {"steps", "number"},   [TIME] = {"time", "number"},     [SPEED] = {"examples/s", "number"},
    [RESULT] = {"result", "number"}, [MOVED] = {"moved", "number"},   [WAITING] = {"waiting", "number"},
    [HASH] = {"hash", "hash"},
};

static void add_cell(struct tr_text *html, int column, const char *text)
{
    tr_html_cell(html, columns[column].head, columns[column].class, text);
}

static void add_cellf(struct tr_text *html, int column, const char *format, double value)
{
    char text[64] = "-";
    if (isfinite(value)) snprintf(text, sizeof text, format, value);
    add_cell(html, column, text);
}

static void add_speed(struct tr_text *html, const struct tr_run *run)
{
    char figure[TR_TEXT_NUMBER_SIZE];
    tr_text_addf(html, "<td data-head=\"%s\" class=\"number\">", columns[SPEED].head);
    tr_html_text(html, isfinite(run->speed) ? tr_text_from_count(llround(run->speed), figure) : "-");
    if (isfinite(run->tokens))
        tr_text_addf(html, "<small>%s tokens/s</small>", tr_text_from_count(llround(run->tokens), figure));
    tr_text_add(html, "</td>");
}

static void add_result(struct tr_text *html, const struct tr_run *run)
{
    const struct tr_run_evaluation *last = last_evaluation(run);
    if (!last)
        add_cell(html, RESULT, "-");
    else if (isfinite(last->perplexity))
        add_cellf(html, RESULT, "perplexity %.4g", last->perplexity);
    else if (run->classification)
        add_cellf(html, RESULT, "%.2f %%", last->accuracy * 100);
    else
        add_cellf(html, RESULT, "loss %.5g", last->loss);
}

/* Columns about several processes appear where a run has them. */
static bool has_column(const struct page *page, int column)
{
    bool shared = false;
    for (int i = 0; i < page->count; i++) shared |= page->run[i]->ranks > 1;
    if (column == JOB) return end_of_job(page, 0) < page->count;
    return shared || (column != STRATEGY && column != MOVED && column != WAITING);
}

static void add_row(struct page *page, int index)
{
    const struct tr_run *run = page->run[index];
    struct tr_text *html = &page->html;
    char figure[TR_TEXT_NUMBER_SIZE];
    int64_t moved = 0;
    double waited = 0;
    bool shares = run->ranks > 1;
    for (int64_t r = 0; r < run->rank_count; r++) {
        moved += run->rank[r].sent + run->rank[r].shared;
        waited += run->rank[r].wait;
    }
    tr_text_addf(html, "<tr><td><i class=\"s%d\"></i>", colour_of(index) + 1);
    tr_html_text(html, page->label[index]);
    tr_text_add(html, "</td>");
    if (has_column(page, JOB)) add_cell(html, JOB, run->name);
    if (has_column(page, STRATEGY))
        add_cell(html, STRATEGY, !shares ? "one process" : *run->strategy ? run->strategy : "-");
    add_cell(html, PROCESSES, tr_text_from_count(run->ranks, figure));
    add_cell(html, STEPS, tr_text_from_count(run->step, figure));
    add_cell(html, TIME, isfinite(run->seconds) ? tr_text_from_seconds(run->seconds, figure) : "-");
    add_speed(html, run);
    add_result(html, run);
    if (has_column(page, MOVED)) add_cell(html, MOVED, moved ? tr_text_from_bytes(moved, figure) : "-");
    if (has_column(page, WAITING))
        add_cell(html, WAITING,
                 run->rank_count > 1 ? tr_text_from_seconds(waited / (double)run->rank_count, figure) : "-");
    snprintf(figure, sizeof figure, "%.12s", *run->hash ? run->hash : "-");
    add_cell(html, HASH, figure);
    tr_text_add(html, "</tr>\n");
}

static void add_table(struct page *page)
{
    tr_text_add(&page->html, "<div class=\"scroll\"><table class=\"facts stack\"><thead><tr><th>run</th>");
    for (int i = 0; i < (int)(sizeof columns / sizeof columns[0]); i++)
        if (has_column(page, i)) {
            bool number = columns[i].class && strcmp(columns[i].class, "number") == 0;
            tr_html_element(&page->html, "th", number ? "number" : NULL, columns[i].head);
        }
    tr_text_add(&page->html, "</tr></thead><tbody>");
    for (int i = 0; i < page->count; i++) add_row(page, i);
    tr_text_add(&page->html, "</tbody></table></div>\n");
}

/* Whether runs of the same settings ended with the same hash, as promised. */
static void add_verdict(struct page *page)
{
    int same = 0, equal = 0;
    const struct tr_run *first = page->run[0];
    for (int i = 1; i < page->count; i++) {
        const struct tr_run *run = page->run[i];
        if (!*first->hash || !*run->hash || strcmp(run->settings, first->settings) != 0) continue;
        if (first->asynchronous || run->asynchronous) continue; /* they promise no equal hash */
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

/* ---- curves and metrics, by job ---- */

static tr_status add_jobs(struct page *page)
{
    bool several = end_of_job(page, 0) < page->count;
    tr_text_add(&page->html, "<h2>Curves</h2>\n");
    for (int first = 0, end; first < page->count; first = end) {
        end = end_of_job(page, first);
        if (several) tr_html_element(&page->html, "h3", NULL, page->run[first]->name);
        TR_TRY(tr_report_curves(&page->html, page->run + first, page->label + first, end - first, first));
    }
    bool begun = false;
    for (int first = 0, end; first < page->count; first = end) {
        end = end_of_job(page, first);
        tr_report_measures(&page->html, page->run + first, page->label + first, end - first,
                           several ? page->run[first]->name : NULL, &begun);
    }
    return TR_OK;
}

/* ---- parallel training ---- */

/* The named trace, or the first one in the directory of a run. */
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
        if (page->run[i]->rank_count > 1) tr_report_ranks(&page->html, page->run[i], page->label[i]);
        if (page->run[i]->asynchronous) tr_report_staleness(&page->html, page->run[i], page->label[i]);
    }
    TR_TRY(add_timeline(page));
    if (page->html.length == empty && page->html.bytes)
        page->html.bytes[page->html.length = before] = 0; /* nothing to say */
    else
        tr_text_add(&page->html, "</div>\n");
    return TR_OK;
}

/* ---- how to repeat ---- */

static void add_repetitions(struct page *page)
{
    tr_text_add(&page->html,
                "<h2>How to repeat it</h2><p>The same model file, data and seed give the same hash on "
                "any number of threads and processes and on any device, with every synchronous "
                "strategy.</p>\n");
    for (int i = 0; i < page->count; i++)
        tr_report_repetition(&page->html, page->run[i], page->count > 1 ? page->label[i] : NULL);
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
    TR_TRY(add_jobs(page));
    TR_TRY(add_parallel(page));
    TR_TRY(add_examples(page));
    add_repetitions(page);
    tr_text_add(&page->html, "<footer>");
    tr_html_elementf(&page->html, "span", NULL, "Trireme %s, %s", tr_version(),
                     tr_clock_text(tr_clock_wall(), now));
    tr_text_add(&page->html, "</footer></main></body></html>\n");
    return tr_text_finish(&page->html, html);
}

/* The directory without the common beginning of all would say less than its last part. */
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
    if (status == TR_OK) order_by_job(&page);
    if (status == TR_OK) status = write_page(&page, html);
    tr_text_release(&page.html);
    for (int i = 0; i < page.count; i++) {
        tr_run_destroy(&page.run[i]);
        tr_free(page.label[i]);
    }
    return status;
}
