/* The output of a comparison for people: a row for each run as it ends, and the conclusions. */
#include "cli/terminal/columns.h"
#include "cli/compare/compare.h"
#include "cli/compare/judge.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what follows from results ---- */

bool cli_compare_has_run(const struct cli_compare_result *result)
{
    return result->end == CLI_COMPARE_DONE || result->end == CLI_COMPARE_OUT_OF_TIME;
}

double cli_compare_speedup(const struct cli_compare_result *results, int index)
{
    if (!cli_compare_has_run(&results[0]) || !cli_compare_has_run(&results[index]) ||
        results[0].examples_per_second <= 0)
        return NAN;
    return results[index].examples_per_second / results[0].examples_per_second;
}

/* Only hashes after the same number of steps can be compared. */
enum cli_compare_hash cli_compare_hash(const struct cli_compare_plan *plan,
                                       const struct cli_compare_result *results, int index)
{
    const struct cli_compare_result *result = &results[index];
    if (index == 0 || plan->cases[index].asynchronous || plan->cases[index].own_hash) return CLI_HASH_OTHER;
    if (!cli_compare_has_run(result) || !cli_compare_has_run(&results[0]) || result->step != results[0].step)
        return CLI_HASH_OTHER;
    return strcmp(result->hash, results[0].hash) == 0 ? CLI_HASH_EQUAL : CLI_HASH_NOT_EQUAL;
}

bool cli_compare_doubtful(const struct cli_compare_plan *plan, const struct cli_compare_result *results,
                          int index)
{
    const struct cli_compare_result *result = &results[index];
    if (!cli_compare_has_run(result)) return false;
    double waiting = result->has_statistics ? result->statistics.waiting : 0;
    return !cli_compare_can_be(cli_compare_speedup(results, index), plan->cases[index].workers, waiting);
}

static bool beats(const struct cli_compare_orders *orders, const struct cli_compare_result *a,
                  const struct cli_compare_result *b)
{
    if (orders->until <= 0) return a->examples_per_second > b->examples_per_second;
    if (isnan(a->target_seconds)) return false;
    return isnan(b->target_seconds) || a->target_seconds < b->target_seconds;
}

bool cli_compare_counts(const struct cli_compare_orders *orders, const struct cli_compare_result *before,
                        const struct cli_compare_result *now)
{
    if (before->end == CLI_COMPARE_NOT_RUN || now->end == CLI_COMPARE_FAILED) return true;
    if (before->end == CLI_COMPARE_FAILED || !cli_compare_has_run(now)) return false;
    if (!cli_compare_has_run(before)) return true;
    return beats(orders, now, before);
}

int cli_compare_best(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                     const struct cli_compare_result *results)
{
    int best = -1;
    for (int i = 0; i < plan->count; i++) {
        if (plan->cases[i].left_out || !cli_compare_has_run(&results[i])) continue;
        if (orders->until > 0 && isnan(results[i].target_seconds)) continue;
        if (cli_compare_doubtful(plan, results, i)) continue;
        if (best < 0 || beats(orders, &results[i], &results[best])) best = i;
    }
    return best;
}

/* ---- rows ---- */

static size_t name_width(const struct cli_compare_plan *plan)
{
    size_t width = 12;
    for (int i = 0; i < plan->count; i++)
        if (!plan->cases[i].left_out && strlen(plan->cases[i].strategy) > width)
            width = strlen(plan->cases[i].strategy);
    return width;
}

enum { WORKERS, THREADS, SPEED, SPEEDUP, TIME, EPOCHS, ACCURACY, STALE, MOVED, WAITING, COLUMNS };

#define HASH   16                                            /* columns of "  2f0c6f0e equal" */
#define TARGET (UINT32_C(1) << TIME | UINT32_C(1) << EPOCHS) /* columns of comparisons that have a target */

static const struct cli_column columns[COLUMNS] = {
    [WORKERS] = {"workers", 9, 0},    [THREADS] = {"threads", 9, 6},  [SPEED] = {"examples/s", 12, 0},
    [SPEEDUP] = {"speed-up", 10, 0},  [TIME] = {"to target", 13, 0},  [EPOCHS] = {"epochs", 8, 3},
    [ACCURACY] = {"accuracy", 10, 1}, [STALE] = {"staleness", 11, 5}, [MOVED] = {"moved/step", 12, 4},
    [WAITING] = {"waiting", 9, 2},
};

static uint32_t unused_columns(const struct cli_compare_orders *orders)
{
    return orders->until > 0 ? 0 : TARGET;
}

static struct cli_layout layout_of(const struct cli_compare_orders *orders,
                                   const struct cli_compare_plan *plan)
{
    return cli_layout_make(columns, COLUMNS, unused_columns(orders), name_width(plan), HASH, plan->width);
}

char *cli_compare_head(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan)
{
    const struct cli_layout layout = layout_of(orders, plan);
    char target[32];
    struct tr_text text = TR_TEXT_INIT;
    struct cli_column named[COLUMNS];
    struct cli_layout heads = layout;
    memcpy(named, columns, sizeof named);
    snprintf(target, sizeof target, "to %.4g %%", 100 * orders->until);
    named[TIME].head = target;
    heads.column = named;
    cli_layout_heads(&heads, &text, "strategy");
    tr_text_add(&text, "  hash");
    return cli_columns_end(&text);
}

/* "0.75" with so many digits, or "-". */
static const char *figure(double value, int digits, const char *unit, char buffer[32])
{
    if (isnan(value))
        snprintf(buffer, 32, "-");
    else
        snprintf(buffer, 32, "%.*f%s", digits, value, unit);
    return buffer;
}

static void put_statistics(const struct cli_compare_case *one, const struct cli_compare_result *result,
                           const struct cli_layout *layout, struct tr_text *text)
{
    const struct cli_statistics *sum = &result->statistics;
    char stale[48] = "-", moved[TR_TEXT_NUMBER_SIZE] = "-", waiting[32] = "-";
    bool shares = result->has_statistics && one->ranks > 1;
    if (shares && one->asynchronous)
        snprintf(stale, sizeof stale, "%.2f/%d%s", sum->mean_staleness, sum->most_staleness,
                 sum->more_staleness ? "+" : "");
    if (shares) {
        tr_text_from_bytes((int64_t)(sum->sent + sum->shared), moved);
        figure(100 * sum->waiting, 0, " %", waiting);
    }
    cli_layout_cell(layout, text, STALE, stale);
    cli_layout_cell(layout, text, MOVED, moved);
    cli_layout_cell(layout, text, WAITING, waiting);
}

static void put_hash(enum cli_compare_hash kind, const struct cli_compare_result *result,
                     struct tr_text *text)
{
    static const char *const words[] = {
        [CLI_HASH_OTHER] = "", [CLI_HASH_EQUAL] = " equal", [CLI_HASH_NOT_EQUAL] = " NOT EQUAL"};
    tr_text_addf(text, "  %.8s%s", result->hash, words[kind]);
    if (result->end == CLI_COMPARE_OUT_OF_TIME) tr_text_addf(text, " (step %lld)", (long long)result->step);
}

char *cli_compare_row(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                      const struct cli_compare_result *results, int index)
{
    const struct cli_compare_case *one = &plan->cases[index];
    const struct cli_compare_result *result = &results[index];
    const struct cli_layout layout = layout_of(orders, plan);
    char buffer[64], number[TR_TEXT_NUMBER_SIZE];
    struct tr_text text = TR_TEXT_INIT;
    cli_layout_name(&layout, &text, one->alone ? "one process" : one->strategy);
    cli_layout_cell(&layout, &text, WORKERS, cli_workers_text(one->workers, one->ranks, buffer));
    snprintf(buffer, sizeof buffer, "%d", one->threads);
    cli_layout_cell(&layout, &text, THREADS, buffer);
    if (!cli_compare_has_run(result)) {
        tr_text_addf(&text, "  %s", result->end == CLI_COMPARE_FAILED ? result->failure : "stopped");
        return cli_columns_end(&text);
    }
    bool doubtful = cli_compare_doubtful(plan, results, index);
    tr_text_from_count((int64_t)(result->examples_per_second + 0.5), number);
    cli_layout_cell(&layout, &text, SPEED, number);
    cli_layout_cell(&layout, &text, SPEEDUP,
                    figure(cli_compare_speedup(results, index), 2, doubtful ? "?" : "", buffer));
    bool met = !isnan(result->target_seconds);
    cli_layout_cell(&layout, &text, TIME,
                    met ? tr_text_from_seconds(result->target_seconds, number) : "not met");
    cli_layout_cell(&layout, &text, EPOCHS, figure(result->target_epochs, 2, "", buffer));
    cli_layout_cell(&layout, &text, ACCURACY, figure(result->accuracy, 4, "", buffer));
    put_statistics(one, result, &layout, &text);
    put_hash(cli_compare_hash(plan, results, index), result, &text);
    return cli_columns_end(&text);
}

/* ---- the verdict ---- */

static void add_hashes(const struct cli_compare_plan *plan, const struct cli_compare_result *results,
                       struct tr_text *text)
{
    int equal = 0, other = 0;
    for (int i = 0; i < plan->count; i++) {
        enum cli_compare_hash kind = cli_compare_hash(plan, results, i);
        equal += kind == CLI_HASH_EQUAL;
        other += kind == CLI_HASH_NOT_EQUAL;
    }
    if (other > 0)
        tr_text_addf(text,
                     "hash        NOT EQUAL: %d synchronous run%s ended with other weights than one process; "
                     "this must not be\n",
                     other, other == 1 ? "" : "s");
    else if (equal > 0)
        tr_text_addf(text,
                     "hash        %d synchronous run%s ended with the weights of one process, bit for bit\n",
                     equal, equal == 1 ? "" : "s");
}

static bool go_together(const struct cli_compare_case *a, const struct cli_compare_case *b)
{
    return b->left_out && a->workers == b->workers && strcmp(a->left_out, b->left_out) == 0;
}

/* Cases that are left out for the same reason share a line, at the place of the first. */
static void add_left_out(const struct cli_compare_plan *plan, struct tr_text *text)
{
    for (int i = 0; i < plan->count; i++) {
        const struct cli_compare_case *one = &plan->cases[i];
        bool said = !one->left_out;
        for (int k = 0; k < i && !said; k++) said = go_together(one, &plan->cases[k]);
        if (said) continue;
        tr_text_addf(text, "left out    %s", one->strategy);
        for (int k = i + 1; k < plan->count; k++)
            if (go_together(one, &plan->cases[k])) tr_text_addf(text, "; %s", plan->cases[k].strategy);
        tr_text_addf(text, " on %d worker%s: %s\n", one->workers, one->workers == 1 ? "" : "s",
                     one->left_out);
    }
}

/* Doubts about the figures. */
static void add_doubts(const struct cli_compare_plan *plan, const struct cli_compare_result *results,
                       struct tr_text *text)
{
    char first[TR_TEXT_NUMBER_SIZE], again[TR_TEXT_NUMBER_SIZE];
    int doubtful = 0;
    for (int i = 0; i < plan->count; i++) doubtful += cli_compare_doubtful(plan, results, i);
    bool steady = cli_compare_steady(results[0].examples_per_second, results[0].again);
    if (!steady)
        tr_text_addf(text, "busy        one process learned %s examples/s at first and %s at the end\n",
                     tr_text_from_count((int64_t)(results[0].examples_per_second + 0.5), first),
                     tr_text_from_count((int64_t)(results[0].again + 0.5), again));
    if (doubtful > 0) tr_text_addf(text, "busy        figures with ? cannot be (%d of the runs)\n", doubtful);
    if (doubtful > 0 || !steady)
        tr_text_add(
            text,
            "busy        the machine did something else meanwhile; --rounds 3 takes the fastest of three\n");
}

static void add_best(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                     const struct cli_compare_result *results, struct tr_text *text)
{
    int best = cli_compare_best(orders, plan, results), runs = 0;
    for (int i = 0; i < plan->count; i++)
        runs += !plan->cases[i].left_out && cli_compare_has_run(&results[i]);
    if (runs < 2) return;
    if (best < 0) {
        tr_text_addf(text, "best here   none: no run met %.4g %%\n", 100 * orders->until);
        return;
    }
    const struct cli_compare_case *one = &plan->cases[best];
    const struct cli_compare_result *result = &results[best];
    double gain = cli_compare_speedup(results, best);
    if (orders->until > 0) gain = results[0].target_seconds / result->target_seconds;
    if (one->alone) {
        tr_text_add(text,
                    "best here   one process: to share this job costs more than it gains on this machine\n");
        return;
    }
    tr_text_addf(text, "best here   %s on %d worker%s", one->strategy, one->workers,
                 one->workers == 1 ? "" : "s");
    if (isnan(gain) && orders->until > 0)
        tr_text_addf(text, ": met %.4g %%, which one process did not", 100 * orders->until);
    else if (!isnan(gain))
        tr_text_addf(text, ": %.2f times as fast as one process%s", gain,
                     orders->until > 0 ? " at meeting the target" : "");
    bool same = cli_compare_hash(plan, results, best) == CLI_HASH_EQUAL;
    if (!same && !isnan(result->accuracy) && !isnan(results[0].accuracy))
        tr_text_addf(text, ", accuracy %.4f against %.4f", result->accuracy, results[0].accuracy);
    tr_text_add(text, "\n");
}

char *cli_compare_verdict(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                          const struct cli_compare_result *results)
{
    struct tr_text text = TR_TEXT_INIT;
    char *lines = NULL;
    tr_text_add(&text, "\n");
    const struct cli_layout layout = layout_of(orders, plan);
    if (layout.hidden & ~unused_columns(orders)) {
        tr_text_add(&text, "not shown   ");
        cli_layout_add_hidden(&layout, unused_columns(orders), &text);
        tr_text_add(&text, ": a wider terminal, --csv and --json have room for them\n");
    }
    add_left_out(plan, &text);
    add_hashes(plan, results, &text);
    add_doubts(plan, results, &text);
    add_best(orders, plan, results, &text);
    return tr_text_finish(&text, &lines) == TR_OK ? lines : NULL;
}
