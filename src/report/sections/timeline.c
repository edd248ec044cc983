#include "report/sections/timeline.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/json.h"
#include "report/draw/html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MOST (512 << 20)
#define LANES     16
#define STEPS     2 /* shown */
#define WIDTH     960
#define LEFT      96
#define LANE      34
#define SPANS     4000

/* The order gives the colour. */
static const char *const categories[] = {
    "forward", "backward", "update", "communication", "waiting", "input", "evaluation", "checkpoint",
};
#define CATEGORIES (int)(sizeof categories / sizeof categories[0])

struct span {
    const char *name;
    double begin, end;
    int64_t rank, thread, about;
    int category; /* -1: a step */
};

struct lane {
    int64_t rank, thread;
};

struct excerpt {
    struct span *span;
    int64_t count;
    double begin, end;
    struct lane lane[LANES];
    int lanes;
};

/* ---- reading ---- */

static bool read_span(const struct tr_json_value *event, struct span *span)
{
    const struct tr_json_value *category = tr_json_find(event, "cat"), *name = tr_json_find(event, "name");
    if (!category || category->kind != TR_JSON_TEXT || !name || name->kind != TR_JSON_TEXT) return false;
    *span = (struct span){
        .name = name->text,
        .begin = tr_json_number_or_nan(event, "ts"),
        .rank = tr_json_integer_or(event, "pid", -1),
        .thread = tr_json_integer_or(event, "tid", -1),
        .about = tr_json_integer_or(tr_json_find(event, "args"), "for rank", -1),
        .category = -2,
    };
    span->end = span->begin + tr_json_number_or_nan(event, "dur");
    if (strcmp(category->text, "step") == 0) span->category = -1;
    for (int i = 0; i < CATEGORIES; i++)
        if (strcmp(category->text, categories[i]) == 0) span->category = i;
    return span->category >= -1 && isfinite(span->begin) && isfinite(span->end) && span->rank >= 0;
}

/* Where the last steps of rank 0 begin and end. */
static bool find_steps(const struct tr_json_value *events, struct excerpt *excerpt)
{
    double begin[STEPS] = {0}, end = 0;
    int64_t found = 0;
    for (const struct tr_json_value *event = events->first; event; event = event->next) {
        struct span span;
        if (!read_span(event, &span) || span.category != -1 || span.rank != 0) continue;
        begin[found++ % STEPS] = span.begin;
        end = span.end;
    }
    excerpt->begin = begin[found >= STEPS ? found % STEPS : 0];
    excerpt->end = end;
    return found > 0 && end > excerpt->begin;
}

static bool take_lane(struct excerpt *excerpt, const struct span *span)
{
    for (int i = 0; i < excerpt->lanes; i++)
        if (excerpt->lane[i].rank == span->rank && excerpt->lane[i].thread == span->thread) return true;
    if (excerpt->lanes == LANES) return false;
    excerpt->lane[excerpt->lanes++] = (struct lane){span->rank, span->thread};
    return true;
}

static tr_status take_spans(const struct tr_json_value *events, struct excerpt *excerpt)
{
    excerpt->span = tr_alloc(SPANS, sizeof *excerpt->span);
    if (!excerpt->span) return TR_ENOMEM;
    for (const struct tr_json_value *event = events->first; event && excerpt->count < SPANS;
         event = event->next) {
        struct span span;
        if (!read_span(event, &span) || span.category < 0) continue;
        if (span.end <= excerpt->begin || span.begin >= excerpt->end) continue;
        if (take_lane(excerpt, &span)) excerpt->span[excerpt->count++] = span;
    }
    return TR_OK;
}

/* Spans that contain others are sorted before them, so that these are drawn on top. */
static int by_begin(const void *a_, const void *b_)
{
    const struct span *a = a_, *b = b_;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return a->end > b->end ? -1 : a->end < b->end;
}

/* ---- showing ---- */

static double x_of(const struct excerpt *excerpt, double time)
{
    double share = (time - excerpt->begin) / (excerpt->end - excerpt->begin);
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    return LEFT + share * (WIDTH - LEFT);
}

/* Waits are within communication: they are drawn lower. */
static void add_span(struct tr_text *html, const struct excerpt *excerpt, const struct span *span, int row)
{
    double x = x_of(excerpt, span->begin), width = x_of(excerpt, span->end) - x;
    bool waits = strcmp(categories[span->category], "waiting") == 0;
    if (width < 0.3) return;
    tr_text_addf(html, "<rect class=\"bar s%d\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>",
                 span->category + 1, x, row * LANE + (waits ? 14 : 4), width, waits ? 16 : 26);
    tr_html_text(html, span->name);
    tr_text_addf(html, ", %s: %.3f ms", categories[span->category], (span->end - span->begin) * 1e-3);
    if (span->about >= 0) tr_text_addf(html, ", for rank %lld", (long long)span->about);
    tr_text_add(html, "</title></rect>");
}

static void add_legend(struct tr_text *html)
{
    tr_text_add(html, "<ul class=\"legend\">");
    for (int i = 0; i < CATEGORIES; i++)
        tr_text_addf(html, "<li><i class=\"s%d\"></i>%s</li>", i + 1, categories[i]);
    tr_text_add(html, "</ul>");
}

static void add_picture(struct tr_text *html, const struct excerpt *excerpt)
{
    int height = excerpt->lanes * LANE + 22;
    tr_text_addf(html,
                 "<figure class=\"wide\"><figcaption>Timeline: %.1f ms at the end of the trace</figcaption>",
                 (excerpt->end - excerpt->begin) * 1e-3);
    add_legend(html);
    tr_text_addf(html,
                 "<div class=\"scroll\"><svg class=\"timeline\" viewBox=\"0 0 %d %d\" role=\"img\" "
                 "aria-label=\"timeline\">",
                 WIDTH, height);
    for (int row = 0; row < excerpt->lanes; row++) {
        const struct lane *lane = &excerpt->lane[row];
        tr_text_addf(html, "<g class=\"grid\"><text x=\"0\" y=\"%d\">rank %lld%s</text></g>", row * LANE + 21,
                     (long long)lane->rank, lane->thread > 0 ? ", reader" : "");
        for (int64_t i = 0; i < excerpt->count; i++)
            if (excerpt->span[i].rank == lane->rank && excerpt->span[i].thread == lane->thread)
                add_span(html, excerpt, &excerpt->span[i], row);
    }
    tr_text_addf(html,
                 "<g class=\"grid\"><path d=\"M%d %dH%d\"/><text x=\"%d\" y=\"%d\">0</text><text x=\"%d\" "
                 "y=\"%d\" text-anchor=\"end\">%.1f ms</text></g>",
                 LEFT, height - 18, WIDTH, LEFT, height - 3, WIDTH, height - 3,
                 (excerpt->end - excerpt->begin) * 1e-3);
    tr_text_add(html, "</svg></div></figure>\n");
}

tr_status tr_report_timeline(struct tr_text *html, const char *path)
{
    struct tr_file_content content = {0};
    struct excerpt excerpt = {0};
    tr_json *trace = NULL;
    const struct tr_json_value *events;
    tr_status status;
    TR_TRY(tr_file_read(path, FILE_MOST, &content));
    TR_TRY_GOTO(tr_json_parse(content.data, content.size, path, &trace), out);
    TR_TRY_GOTO(tr_json_get_array(tr_json_root(trace), path, "traceEvents", &events), out);
    if (!find_steps(events, &excerpt)) goto out;
    TR_TRY_GOTO(take_spans(events, &excerpt), out);
    qsort(excerpt.span, (size_t)excerpt.count, sizeof *excerpt.span, by_begin);
    if (excerpt.count > 0) add_picture(html, &excerpt);
out:
    tr_free(excerpt.span);
    tr_json_destroy(&trace);
    tr_file_content_free(&content);
    return status;
}
