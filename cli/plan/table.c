/* The printed tables of a plan. */
#include "cli/terminal/columns.h"
#include "cli/compare/judge.h"
#include "cli/plan/plan.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WORKERS, BATCH, STEP, SPEED, SPEEDUP, MEMORY, MOVED, WAITING, COLUMNS };

#define REASON 14 /* columns of "  held back by" */

static const struct cli_column columns[COLUMNS] = {
    [WORKERS] = {"workers", 9, 0},   [BATCH] = {"batch", 9, 4},       [STEP] = {"step", 11, 1},
    [SPEED] = {"examples/s", 13, 0}, [SPEEDUP] = {"speed-up", 10, 0}, [MEMORY] = {"memory", 11, 2},
    [MOVED] = {"moved/step", 12, 5}, [WAITING] = {"waiting", 9, 3},
};

static size_t name_width(const struct tr_plan *plan)
{
    size_t width = strlen("one process");
    for (int i = 0; i < plan->rows; i++)
        if (!plan->row[i].left_out && strlen(plan->row[i].strategy) > width)
            width = strlen(plan->row[i].strategy);
    return width;
}

static struct cli_layout layout_of(const struct tr_plan *plan, int width)
{
    return cli_layout_make(columns, COLUMNS, 0, name_width(plan), REASON, width);
}

char *cli_plan_head(const struct tr_plan *plan, int width)
{
    const struct cli_layout layout = layout_of(plan, width);
    struct tr_text text = TR_TEXT_INIT;
    cli_layout_heads(&layout, &text, "strategy");
    tr_text_add(&text, "  held back by");
    return cli_columns_end(&text);
}

/* Whether a prediction is impossible, as on a machine that was busy during the measurements. */
static bool is_doubtful(const struct tr_plan *plan, int index)
{
    const struct tr_plan_row *row = &plan->row[index];
    return !row->left_out &&
           !cli_compare_can_be(tr_plan_speedup(plan, index), row->workers, row->figures.waiting);
}

char *cli_plan_row(const struct tr_plan *plan, int index, int width)
{
    const struct tr_plan_row *row = &plan->row[index];
    const struct tr_rehearsed *figures = &row->figures;
    const struct cli_layout layout = layout_of(plan, width);
    char cell[64];
    struct tr_text text = TR_TEXT_INIT;
    cli_layout_name(&layout, &text, tr_plan_row_name(plan, index));
    cli_layout_cell(&layout, &text, WORKERS, cli_workers_text(row->workers, row->ranks, cell));
    snprintf(cell, sizeof cell, "%lld", (long long)row->batch);
    cli_layout_cell(&layout, &text, BATCH, cell);
    cli_layout_cell(&layout, &text, STEP, tr_plan_step_text(figures->seconds, cell));
    cli_layout_cell(&layout, &text, SPEED,
                    tr_text_from_count((int64_t)(figures->examples_per_second + 0.5), cell));
    snprintf(cell, sizeof cell, "%.2f%s", tr_plan_speedup(plan, index), is_doubtful(plan, index) ? "?" : "");
    cli_layout_cell(&layout, &text, SPEEDUP, cell);
    cli_layout_cell(&layout, &text, MEMORY, tr_text_from_bytes((int64_t)figures->most.memory, cell));
    cli_layout_cell(&layout, &text, MOVED,
                    tr_text_from_bytes(figures->sum.bytes_sent + figures->sum.bytes_shared, cell));
    snprintf(cell, sizeof cell, "%.0f %%", 100 * figures->waiting);
    cli_layout_cell(&layout, &text, WAITING, cell);
    tr_text_addf(&text, "  %s", tr_bottleneck_names[figures->bottleneck]);
    if (row->measured > 0)
        tr_text_addf(&text, "; measured %.0f examples/s, %+.0f %%", row->measured, 100 * tr_plan_error(row));
    if (row->failure) tr_text_addf(&text, "; the run failed: %s", row->failure);
    return cli_columns_end(&text);
}

bool cli_plan_is_said(const struct tr_plan *plan, int index)
{
    for (int i = 0; i < index; i++)
        if (tr_plan_go_together(&plan->row[i], &plan->row[index])) return true;
    return false;
}

char *cli_plan_left_out(const struct tr_plan *plan, int index)
{
    const struct tr_plan_row *row = &plan->row[index];
    struct tr_text text = TR_TEXT_INIT;
    tr_text_addf(&text, "left out on %d worker%s: ", row->workers, row->workers == 1 ? "" : "s");
    for (int i = index; i < plan->rows; i++)
        if (tr_plan_go_together(row, &plan->row[i]))
            tr_text_addf(&text, "%s%s", i > index ? "; " : "", tr_plan_row_name(plan, i));
    tr_text_addf(&text, ": %s", row->left_out);
    return cli_columns_end(&text);
}

char *cli_plan_verdict(const struct tr_plan *plan)
{
    int best = tr_plan_best(plan);
    struct tr_text text = TR_TEXT_INIT;
    char speed[TR_TEXT_NUMBER_SIZE];
    if (best < 0) {
        tr_text_add(&text, "Nothing can be recommended: every combination was left out.");
        return cli_columns_end(&text);
    }
    const struct tr_plan_row *row = &plan->row[best];
    tr_text_from_count((int64_t)(row->figures.examples_per_second + 0.5), speed);
    int doubtful = 0;
    for (int i = 0; i < plan->rows; i++) doubtful += is_doubtful(plan, i);
    if (doubtful > 0)
        tr_text_addf(&text,
                     "Speed-ups with ? cannot be (%d of the rows): the machine was busy while it was "
                     "measured; plan again, or "
                     "with a larger --seconds.\n",
                     doubtful);
    if (!cli_compare_steady(plan->row[0].figures.examples_per_second, plan->again)) {
        char first[TR_TEXT_NUMBER_SIZE], again[TR_TEXT_NUMBER_SIZE];
        tr_text_addf(&text,
                     "One process would make %s examples/s by the measurements of the beginning, and %s by "
                     "those of the end: the machine was busy; plan again, or with a larger --seconds.\n",
                     tr_text_from_count((int64_t)(plan->row[0].figures.examples_per_second + 0.5), first),
                     tr_text_from_count((int64_t)(plan->again + 0.5), again));
    }
    if (row->ranks == 1)
        tr_text_addf(&text, "Fastest by prediction: one process, %s examples/s.", speed);
    else
        tr_text_addf(&text,
                     "Fastest by prediction: %s on %d worker%s, %s examples/s, %.2f%s times one process; "
                     "held back by: %s.",
                     row->strategy, row->workers, row->workers == 1 ? "" : "s", speed,
                     tr_plan_speedup(plan, best), is_doubtful(plan, best) ? "?" : "",
                     tr_bottleneck_names[row->figures.bottleneck]);
    return cli_columns_end(&text);
}
