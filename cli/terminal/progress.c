#include "cli/terminal/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The bar takes the rest of the line, between these. */
#define BAR_LEAST 8
#define BAR_MOST  30
#define GAP       2
/* "2 h 05 min left": room that is reserved for the time, so that the bar keeps its length. */
#define LEFT_MOST 15

enum field { PERCENT, STEP, LOSS, ACCURACY, SPEED, LEFT, FIELDS };

/* The order in which fields are kept on a narrow terminal. */
static const enum field by_importance[FIELDS] = {PERCENT, LOSS, STEP, LEFT, ACCURACY, SPEED};

const char *cli_figure(double value, char buffer[CLI_FIGURE_SIZE])
{
    if (isnan(value)) value = NAN; /* whose sign has no meaning and is not shown */
    double size = fabs(value);
    const char *format = isfinite(value) && size > 0 && (size >= 1e5 || size < 1e-3) ? "%.3e" : "%.4f";
    snprintf(buffer, CLI_FIGURE_SIZE, format, value);
    return buffer;
}

static void write_fields(const struct cli_progress *progress, char field[FIELDS][64])
{
    char a[TR_TEXT_NUMBER_SIZE], b[TR_TEXT_NUMBER_SIZE], figure[CLI_FIGURE_SIZE];
    for (int i = 0; i < FIELDS; i++) field[i][0] = '\0';
    int percent = progress->steps > 0 ? (int)(100.0 * (double)progress->step / (double)progress->steps) : 0;
    snprintf(field[PERCENT], sizeof field[PERCENT], "%3d%%", percent);
    const char *total = tr_text_from_count(progress->steps, b);
    snprintf(field[STEP], sizeof field[STEP], "step %*s/%s", (int)strlen(total),
             tr_text_from_count(progress->step, a), total);
    if (!isnan(progress->loss))
        snprintf(field[LOSS], sizeof field[LOSS], "loss %s", cli_figure(progress->loss, figure));
    if (!isnan(progress->accuracy))
        snprintf(field[ACCURACY], sizeof field[ACCURACY], "accuracy %.3f", progress->accuracy);
    if (progress->examples_per_second > 0)
        snprintf(field[SPEED], sizeof field[SPEED], "%s examples/s",
                 tr_text_from_count((int64_t)(progress->examples_per_second + 0.5), a));
    if (progress->seconds_left >= 0)
        snprintf(field[LEFT], sizeof field[LEFT], "%s left", tr_text_from_seconds(progress->seconds_left, a));
}

static void add_repeated(struct tr_text *text, const char *glyph, int count)
{
    for (int i = 0; i < count; i++) tr_text_add(text, glyph);
}

static void add_bar(struct tr_text *text, double share, int columns, struct cli_progress_style style)
{
    const char *done = style.unicode ? "━" : "=", *tip = style.unicode ? "╸" : ">",
               *open = style.unicode ? "─" : " ";
    int inside = style.unicode ? columns : columns - 2;
    int filled = (int)(share * inside);
    if (filled > inside) filled = inside;
    if (!style.unicode) tr_text_add(text, "[");
    if (style.color) tr_text_add(text, "\033[32m");
    add_repeated(text, done, filled);
    if (filled < inside) tr_text_add(text, tip);
    if (style.color) tr_text_add(text, "\033[0m\033[2m");
    add_repeated(text, open, inside - filled - 1);
    if (style.color) tr_text_add(text, "\033[0m");
    if (!style.unicode) tr_text_add(text, "]");
}

void cli_progress_line(const struct cli_progress *progress, int width, struct cli_progress_style style,
                       struct tr_text *text)
{
    char field[FIELDS][64];
    bool shown[FIELDS] = {false};
    write_fields(progress, field);
    int room = width - 1, used = 0;
    for (int i = 0; i < FIELDS; i++) {
        enum field f = by_importance[i];
        int length = (int)strlen(field[f]);
        if (length == 0) continue;
        int more = length + (used ? GAP : 0);
        if (used + more > room) break;
        used += more;
        shown[f] = true;
    }
    if (used == 0) return;
    int bar = room - used - GAP, spare = LEFT_MOST - (int)strlen(field[LEFT]);
    if (shown[LEFT] && spare > 0) bar -= spare;
    if (bar > BAR_MOST) bar = BAR_MOST;
    const char *between = "";
    if (bar >= BAR_LEAST) {
        double share = progress->steps > 0 ? (double)progress->step / (double)progress->steps : 0;
        add_bar(text, share, bar, style);
        between = "  ";
    }
    for (int f = 0; f < FIELDS; f++) {
        if (!shown[f]) continue;
        tr_text_addf(text, "%s%s", between, field[f]);
        between = "  ";
    }
}
