/* The results of a sweep. */
#include "cli/sweep/sweep.h"

#include "base/alloc.h"
#include "base/text/table.h"
#include "job/file/monitor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows that are printed; the rest is in the files. */
#define ROWS 40

bool cli_sweep_has_figure(const struct cli_sweep_orders *orders)
{
    return strcmp(orders->by, "loss") != 0 && strcmp(orders->by, "accuracy") != 0;
}

/* ---- order ---- */

struct ranked {
    int index;
    bool done;
    double figure; /* the lower the better */
};

static int compare(const void *a_, const void *b_)
{
    const struct ranked *a = a_, *b = b_;
    if (a->done != b->done) return a->done ? -1 : 1;
    if (a->done && a->figure != b->figure) return a->figure < b->figure ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static double figure_of(const struct cli_sweep_orders *orders, const struct cli_sweep_point *point)
{
    double cost = tr_monitor_cost(orders->by, point->figure);
    return isnan(cost) ? INFINITY : cost;
}

tr_status cli_sweep_rank(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan,
                         int **order, int *count)
{
    struct ranked *ranked = tr_alloc((size_t)plan->count, sizeof *ranked);
    *order = tr_alloc((size_t)plan->count, sizeof **order);
    *count = 0;
    if (!ranked || !*order) {
        tr_free(ranked);
        tr_free(*order);
        return TR_ENOMEM;
    }
    for (int i = 0; i < plan->count; i++)
        if (plan->points[i].wanted)
            ranked[(*count)++] = (struct ranked){i, plan->points[i].state == CLI_SWEEP_DONE,
                                                 figure_of(orders, &plan->points[i])};
    qsort(ranked, (size_t)*count, sizeof *ranked, compare);
    for (int i = 0; i < *count; i++) (*order)[i] = ranked[i].index;
    tr_free(ranked);
    return TR_OK;
}

/* ---- for people ---- */

static void figure_cell(struct tr_table *table, const char *format, double value)
{
    char text[32] = "-";
    if (!isnan(value)) snprintf(text, sizeof text, format, value);
    tr_table_cell(table, "%s", text);
}

static const char *const words[] = {"stopped", "", "FAILED"};

static void add_row(struct tr_table *table, const struct cli_sweep_orders *orders,
                    const struct cli_sweep_plan *plan, const struct cli_sweep_point *point)
{
    char seconds[TR_TEXT_NUMBER_SIZE], seed[24] = "";
    bool done = point->state == CLI_SWEEP_DONE;
    tr_table_cell(table, "%s", point->directory);
    for (int a = 0; a < plan->axes; a++) tr_table_cell(table, "%s", point->value[a]);
    if (point->seed >= 0) snprintf(seed, sizeof seed, "%" PRId64, point->seed);
    tr_table_cell(table, "%s", seed);
    if (plan->folds > 0) tr_table_cell(table, "%" PRId32, point->fold);
    figure_cell(table, "%.4g", point->loss);
    figure_cell(table, "%.4f", point->accuracy);
    if (cli_sweep_has_figure(orders)) figure_cell(table, "%.4f", point->figure);
    tr_table_cell(table, "%s", point->set);
    tr_table_cell(table, "%s", done ? tr_text_from_seconds(point->seconds, seconds) : "");
    tr_table_cell(table, "%.8s", done ? point->hash : words[point->state]);
}

static void add_points(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan,
                       const int *order, int count, struct tr_text *text)
{
    struct tr_table table;
    char columns[CLI_SWEEP_AXES + 10] = "l";
    bool figure = cli_sweep_has_figure(orders);
    for (int a = 0; a < plan->axes; a++) strcat(columns, "r");
    strcat(columns, plan->folds > 0 ? "rr" : "r");
    strcat(columns, figure ? "rrrlrl" : "rrlrl");
    tr_table_begin(&table, columns);
    tr_table_cell(&table, "point");
    for (int a = 0; a < plan->axes; a++) tr_table_cell(&table, "%s", plan->axis[a].path);
    const char *const heads[] = {
        "seed", plan->folds > 0 ? "fold" : NULL, "loss", "accuracy", figure ? orders->by : NULL, "on", "time",
        "hash"};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (heads[i]) tr_table_cell(&table, "%s", heads[i]);
    for (int i = 0; i < count && i < ROWS; i++) add_row(&table, orders, plan, &plan->points[order[i]]);
    tr_table_finish(&table, text);
    if (count > ROWS) tr_text_addf(text, "and %d more in sweep.csv\n", count - ROWS);
}

static bool same_values(const struct cli_sweep_plan *plan, const struct cli_sweep_point *a,
                        const struct cli_sweep_point *b)
{
    for (int i = 0; i < plan->axes; i++)
        if (strcmp(a->value[i], b->value[i]) != 0) return false;
    return true;
}

enum of { OF_LOSS, OF_ACCURACY, OF_FIGURE };

static double value_of(const struct cli_sweep_point *point, enum of of)
{
    return of == OF_LOSS ? point->loss : of == OF_ACCURACY ? point->accuracy : point->figure;
}

/* Mean and deviation (of the sample) of a figure over the seeds and folds of the values of `first`. */
static int over_seeds(const struct cli_sweep_plan *plan, const struct cli_sweep_point *first, enum of of,
                      double *mean, double *deviation)
{
    double sum = 0, squares = 0;
    int count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < plan->count; i++) {
            const struct cli_sweep_point *point = &plan->points[i];
            double figure = value_of(point, of);
            if (!point->wanted || point->state != CLI_SWEEP_DONE || isnan(figure) ||
                !same_values(plan, point, first))
                continue;
            if (pass == 0) {
                sum += figure;
                count++;
            } else {
                squares += (figure - sum / count) * (figure - sum / count);
            }
        }
    *mean = count > 0 ? sum / count : NAN;
    *deviation = count > 1 ? sqrt(squares / (count - 1)) : NAN;
    return count;
}

static void mean_cell(struct tr_table *table, const struct cli_sweep_plan *plan,
                      const struct cli_sweep_point *first, enum of of)
{
    double mean, deviation;
    const char *alone = of == OF_LOSS ? "%.4g" : "%.4f",
               *both = of == OF_LOSS ? "%.4g +- %.2g" : "%.4f +- %.4f";
    if (over_seeds(plan, first, of, &mean, &deviation) == 0)
        tr_table_cell(table, "-");
    else
        tr_table_cell(table, isnan(deviation) ? alone : both, mean, deviation);
}

/* A row for each combination of values, the best first by the mean. */
struct group {
    const struct cli_sweep_point *first;
    double figure;
};

static int compare_groups(const void *a_, const void *b_)
{
    const struct group *a = a_, *b = b_;
    if (a->figure != b->figure) return a->figure < b->figure ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static tr_status add_groups(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan,
                            struct tr_text *text)
{
    struct group *groups = tr_alloc((size_t)plan->count, sizeof *groups);
    struct tr_table table;
    char columns[CLI_SWEEP_AXES + 8] = "";
    int count = 0;
    if (!groups) return TR_ENOMEM;
    for (int i = 0; i < plan->count; i++) {
        int k = 0;
        while (k < count && !same_values(plan, groups[k].first, &plan->points[i])) k++;
        double mean, deviation;
        if (k < count || !plan->points[i].wanted ||
            over_seeds(plan, &plan->points[i], OF_FIGURE, &mean, &deviation) == 0)
            continue;
        groups[count++] = (struct group){&plan->points[i], tr_monitor_cost(orders->by, mean)};
    }
    qsort(groups, (size_t)count, sizeof *groups, compare_groups);
    for (int a = 0; a < plan->axes; a++) strcat(columns, "r");
    strcat(columns, cli_sweep_has_figure(orders) ? "rlll" : "rll");
    tr_table_begin(&table, columns);
    for (int a = 0; a < plan->axes; a++) tr_table_cell(&table, "%s", plan->axis[a].path);
    tr_table_cell(&table, plan->folds > 0 ? "runs" : "seeds");
    tr_table_cell(&table, "loss");
    tr_table_cell(&table, "accuracy");
    if (cli_sweep_has_figure(orders)) tr_table_cell(&table, "%s", orders->by);
    for (int i = 0; i < count && i < ROWS; i++) {
        double mean, deviation;
        int runs = over_seeds(plan, groups[i].first, OF_FIGURE, &mean, &deviation);
        for (int a = 0; a < plan->axes; a++) tr_table_cell(&table, "%s", groups[i].first->value[a]);
        tr_table_cell(&table, "%d", runs);
        mean_cell(&table, plan, groups[i].first, OF_LOSS);
        mean_cell(&table, plan, groups[i].first, OF_ACCURACY);
        if (cli_sweep_has_figure(orders)) mean_cell(&table, plan, groups[i].first, OF_FIGURE);
    }
    tr_text_addf(text, "\nmeans over %s%s%s, with the deviation:\n", plan->folds > 0 ? "folds" : "",
                 plan->folds > 0 && plan->seeds > 1 ? " and " : "",
                 plan->seeds > 1 || plan->folds == 0 ? "seeds" : "");
    tr_table_finish(&table, text);
    tr_free(groups);
    return TR_OK;
}

tr_status cli_sweep_table(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan,
                          const int *order, int count, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "\n");
    add_points(orders, plan, order, count, &text);
    tr_status status = plan->seeds > 1 || plan->folds > 0 ? add_groups(orders, plan, &text) : TR_OK;
    if (status != TR_OK) {
        tr_text_release(&text);
        return status;
    }
    return tr_text_finish(&text, out);
}

/* ---- for programs ---- */

static void add_quoted(struct tr_text *text, const char *value)
{
    if (!value[strcspn(value, ",\"\r\n")]) {
        tr_text_add(text, value);
        return;
    }
    tr_text_add(text, "\"");
    for (; *value; value++) tr_text_addf(text, *value == '"' ? "\"\"" : "%c", *value);
    tr_text_add(text, "\"");
}

static void add_number(struct tr_text *text, double value)
{
    char number[TR_TEXT_NUMBER_SIZE];
    tr_text_addf(text, ",%s", isnan(value) ? "" : tr_text_from_double(value, number));
}

tr_status cli_sweep_csv(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan,
                        const int *order, int count, char **out)
{
    static const char *const names[] = {"waiting", "done", "failed"};
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "point");
    for (int a = 0; a < plan->axes; a++) {
        tr_text_add(&text, ",");
        add_quoted(&text, plan->axis[a].path);
    }
    tr_text_addf(&text, ",seed%s,loss,accuracy", plan->folds > 0 ? ",fold" : "");
    if (cli_sweep_has_figure(orders)) tr_text_addf(&text, ",%s", orders->by);
    tr_text_add(&text, ",set,seconds,step,hash,state,failure\n");
    for (int i = 0; i < count; i++) {
        const struct cli_sweep_point *point = &plan->points[order[i]];
        tr_text_add(&text, point->directory);
        for (int a = 0; a < plan->axes; a++) {
            tr_text_add(&text, ",");
            add_quoted(&text, point->value[a]);
        }
        tr_text_add(&text, ",");
        if (point->seed >= 0) tr_text_addf(&text, "%" PRId64, point->seed);
        if (plan->folds > 0) tr_text_addf(&text, ",%" PRId32, point->fold);
        add_number(&text, point->loss);
        add_number(&text, point->accuracy);
        if (cli_sweep_has_figure(orders)) add_number(&text, point->figure);
        tr_text_addf(&text, ",%s", point->set);
        add_number(&text, point->seconds);
        tr_text_addf(&text, ",%" PRId64 ",%s,%s,", point->step, point->hash, names[point->state]);
        add_quoted(&text, point->failure);
        tr_text_add(&text, "\n");
    }
    return tr_text_finish(&text, out);
}
