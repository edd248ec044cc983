#include "report/sections/processes.h"

#include "report/draw/chart.h"
#include "report/draw/html.h"

#include <inttypes.h>
#include <stdio.h>

void tr_report_staleness(struct tr_text *html, const struct tr_run *run, const char *label)
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
    tr_chart_bars(html, title, "updates missed between reading parameters and applying the gradient", bars,
                  used);
}

void tr_report_ranks(struct tr_text *html, const struct tr_run *run, const char *label)
{
    char figure[TR_TEXT_NUMBER_SIZE];
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
