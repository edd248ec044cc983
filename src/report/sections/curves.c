#include "report/sections/curves.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "report/draw/chart.h"

#include <math.h>

#define SET_MOST 64

/* Runs of one job. */
struct set {
    struct tr_run *const *run;
    char *const *label;
    int count, colour; /* colour: of the first */
};

static int colour_of(const struct set *set, int run)
{
    return (set->colour + run) % TR_CHART_COLOURS;
}

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

static tr_status add_curve(struct tr_text *html, const struct set *set, const char *title,
                           enum quantity quantity)
{
    struct tr_chart_series series[2 * SET_MOST];
    struct tr_chart_point *owned[2 * SET_MOST];
    char *name[SET_MOST] = {0};
    int count = 0;
    bool failed = false;
    for (int i = 0; i < set->count; i++) {
        const struct tr_run *run = set->run[i];
        series[count] = (struct tr_chart_series){set->count > 1 ? set->label[i] : "training",
                                                 owned[count] = points_of(run, quantity),
                                                 run->points,
                                                 colour_of(set, i),
                                                 false,
                                                 quantity != RATE,
                                                 false};
        failed |= !owned[count++];
        if (quantity > ACCURACY || run->evaluations == 0) continue;
        name[i] = tr_format("%s, evaluated", set->label[i]);
        series[count] = (struct tr_chart_series){set->count > 1 ? name[i] : "evaluated",
                                                 owned[count] = evaluations_of(run, quantity),
                                                 run->evaluations,
                                                 set->count > 1 ? colour_of(set, i) : 1,
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
    if (!failed) tr_chart_lines(html, &chart);
    while (count > 0) tr_free(owned[--count]);
    for (int i = 0; i < set->count; i++) tr_free(name[i]);
    return failed ? TR_ENOMEM : TR_OK;
}

/* Losses of two kinds in one chart are not taken for one. */
static const char *title_of_losses(const struct set *set)
{
    for (int i = 0; i < set->count; i++)
        if (set->run[i]->label_smoothing > 0)
            return "Loss (of steps with label smoothing, of evaluations without)";
    return "Loss";
}

tr_status tr_report_curves(struct tr_text *html, struct tr_run *const *run, char *const *label, int count,
                           int colour)
{
    const struct set set = {run, label, count < SET_MOST ? count : SET_MOST, colour};
    tr_text_add(html, "<div class=\"figures\">\n");
    TR_TRY(add_curve(html, &set, title_of_losses(&set), LOSS));
    TR_TRY(add_curve(html, &set, "Accuracy", ACCURACY));
    TR_TRY(add_curve(html, &set, "Examples per second", SPEED));
    TR_TRY(add_curve(html, &set, "Learning rate", RATE));
    TR_TRY(add_curve(html, &set, "Norm of the gradient", NORM));
    tr_text_add(html, "</div>\n");
    return TR_OK;
}
