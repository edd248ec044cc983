#include "report/repeat.h"

#include "report/draw/html.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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

void tr_report_repetition(struct tr_text *html, const struct tr_run *run, const char *heading)
{
    char text[96];
    if (heading) tr_html_element(html, "h3", NULL, heading);
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
