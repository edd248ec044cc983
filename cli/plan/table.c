/* What a plan says to people. */
#include "cli/terminal/columns.h"
#include "cli/compare/judge.h"
#include "cli/plan/plan.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WORKERS = 9, BATCH = 9, STEP = 11, SPEED = 13, SPEEDUP = 10, MEMORY = 11, MOVED = 12, WAITING = 9 };

static size_t name_width(const struct tr_plan *plan)
{
    size_t width = strlen("one process");
    for (int i = 0; i < plan->rows; i++)
        if (!plan->row[i].left_out && strlen(plan->row[i].strategy) > width)
            width = strlen(plan->row[i].strategy);
    return width;
}

char *cli_plan_head(const struct tr_plan *plan)
{
    struct tr_text text = TR_TEXT_INIT;
    cli_column_left(&text, "strategy", name_width(plan));
    cli_column_right(&text, "workers", WORKERS);
    cli_column_right(&text, "batch", BATCH);
    cli_column_right(&text, "step", STEP);
    cli_column_right(&text, "examples/s", SPEED);
    cli_column_right(&text, "speed-up", SPEEDUP);
    cli_column_right(&text, "memory", MEMORY);
    cli_column_right(&text, "moved/step", MOVED);
    cli_column_right(&text, "waiting", WAITING);
    tr_text_add(&text, "  held back by");
    return cli_columns_end(&text);
}

/* Whether a prediction cannot be, as where the machine was busy while operations were measured. */
static bool is_doubtful(const struct tr_plan *plan, int index)
{
    const struct tr_plan_row *row = &plan->row[index];
    return !row->left_out &&
           !cli_compare_can_be(tr_plan_speedup(plan, index), row->workers, row->figures.waiting);
}

char *cli_plan_row(const struct tr_plan *plan, int index)
{
    const struct tr_plan_row *row = &plan->row[index];
    const struct tr_rehearsed *figures = &row->figures;
    char cell[64];
    struct tr_text text = TR_TEXT_INIT;
    cli_column_left(&text, tr_plan_row_name(plan, index), name_width(plan));
    cli_column_workers(&text, row->workers, row->ranks, WORKERS);
    snprintf(cell, sizeof cell, "%lld", (long long)row->batch);
    cli_column_right(&text, cell, BATCH);
    cli_column_right(&text, tr_text_from_seconds(figures->seconds, cell), STEP);
    cli_column_right(&text, tr_text_from_count((int64_t)(figures->examples_per_second + 0.5), cell), SPEED);
    snprintf(cell, sizeof cell, "%.2f%s", tr_plan_speedup(plan, index), is_doubtful(plan, index) ? "?" : "");
    cli_column_right(&text, cell, SPEEDUP);
    cli_column_right(&text, tr_text_from_bytes((int64_t)figures->most.memory, cell), MEMORY);
    cli_column_right(&text, tr_text_from_bytes(figures->sum.bytes_sent + figures->sum.bytes_shared, cell), MOVED);
    snprintf(cell, sizeof cell, "%.0f %%", 100 * figures->waiting);
    cli_column_right(&text, cell, WAITING);
    tr_text_addf(&text, "  %s", tr_bottleneck_names[figures->bottleneck]);
    if (row->measured > 0)
        tr_text_addf(&text, "; measured %.0f examples/s, %+.0f %%", row->measured, 100 * tr_plan_error(row));
    if (row->failure) tr_text_addf(&text, "; the run failed: %s", row->failure);
    return cli_columns_end(&text);
}

static bool go_together(const struct tr_plan_row *a, const struct tr_plan_row *b)
{
    return a->left_out && b->left_out && a->workers == b->workers && strcmp(a->left_out, b->left_out) == 0;
}

bool cli_plan_is_said(const struct tr_plan *plan, int index)
{
    for (int i = 0; i < index; i++)
        if (go_together(&plan->row[i], &plan->row[index])) return true;
    return false;
}

char *cli_plan_left_out(const struct tr_plan *plan, int index)
{
    const struct tr_plan_row *row = &plan->row[index];
    struct tr_text text = TR_TEXT_INIT;
    tr_text_addf(&text, "left out on %d worker%s: ", row->workers, row->workers == 1 ? "" : "s");
    for (int i = index; i < plan->rows; i++)
        if (go_together(row, &plan->row[i]))
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
                     "measured; plan again, "
                     "or with a larger --seconds.\n",
                     doubtful);
    if (row->ranks == 1)
        tr_text_addf(&text, "Fastest by prediction: one process, %s examples/s.", speed);
    else
        tr_text_addf(&text,
                     "Fastest by prediction: %s on %d worker%s, %s examples/s, %.2f times one process; held "
                     "back by: %s.",
                     row->strategy, row->workers, row->workers == 1 ? "" : "s", speed,
                     tr_plan_speedup(plan, best), tr_bottleneck_names[row->figures.bottleneck]);
    return cli_columns_end(&text);
}
