#include "plan/plan.h"

#include "base/alloc.h"
#include "base/text/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void tr_plan_release(struct tr_plan *plan)
{
    for (int i = 0; i < plan->rows; i++) {
        tr_free(plan->row[i].strategy);
        tr_free(plan->row[i].left_out);
        tr_free(plan->row[i].failure);
    }
    tr_free(plan->row);
    plan->row = NULL;
    plan->rows = 0;
}

const char *tr_plan_row_name(const struct tr_plan *plan, int row)
{
    return row == 0 && plan->row[0].ranks <= 1 ? "one process" : plan->row[row].strategy;
}

static bool is_known(const struct tr_plan_row *row)
{
    return !row->left_out && row->figures.examples_per_second > 0;
}

double tr_plan_speedup(const struct tr_plan *plan, int row)
{
    if (plan->rows == 0 || !is_known(&plan->row[0]) || !is_known(&plan->row[row])) return NAN;
    return plan->row[row].figures.examples_per_second / plan->row[0].figures.examples_per_second;
}

int tr_plan_best(const struct tr_plan *plan)
{
    int best = -1;
    for (int i = 0; i < plan->rows; i++) {
        const struct tr_plan_row *row = &plan->row[i];
        if (!is_known(row)) continue;
        if (best < 0 || row->figures.examples_per_second > plan->row[best].figures.examples_per_second)
            best = i;
    }
    return best;
}

bool tr_plan_go_together(const struct tr_plan_row *a, const struct tr_plan_row *b)
{
    return a->left_out && b->left_out && a->workers == b->workers && strcmp(a->left_out, b->left_out) == 0;
}

double tr_plan_error(const struct tr_plan_row *row)
{
    return row->measured > 0 ? row->figures.examples_per_second / row->measured - 1 : NAN;
}

/* ---- JSON ---- */

static void add_path(struct tr_json_writer *json, const char *name, const struct tr_path *path)
{
    tr_json_open_object(json, name);
    tr_json_double(json, "latency_seconds", path->latency);
    tr_json_double(json, "bytes_per_second", path->rate);
    tr_json_double(json, "overhead_seconds", path->overhead);
    tr_json_double(json, "waking_seconds", path->waking);
    tr_json_double(json, "copied_bytes_per_second", path->copying);
    tr_json_close_object(json);
}

static void add_figures(struct tr_json_writer *json, const struct tr_plan *plan, int index)
{
    const struct tr_plan_row *row = &plan->row[index];
    const struct tr_rehearsed *figures = &row->figures;
    double ranks = figures->ranks;
    tr_json_double(json, "step_seconds", figures->seconds);
    tr_json_double(json, "examples_per_second", figures->examples_per_second);
    tr_json_double(json, "speedup", tr_plan_speedup(plan, index));
    tr_json_integer(json, "memory_bytes", (int64_t)figures->most.memory);
    tr_json_integer(json, "bytes_sent_per_step", figures->sum.bytes_sent);
    tr_json_integer(json, "bytes_shared_per_step", figures->sum.bytes_shared);
    tr_json_integer(json, "messages_per_step", figures->sum.messages);
    tr_json_double(json, "computing_seconds", figures->sum.compute / ranks);
    tr_json_double(json, "processing_seconds", figures->sum.other / ranks);
    tr_json_double(json, "waiting", figures->waiting);
    tr_json_double(json, "busiest_link", figures->link);
    tr_json_text(json, "bottleneck", tr_bottleneck_names[figures->bottleneck]);
    if (row->failure) tr_json_text(json, "failure", row->failure);
    if (!(row->measured > 0)) return;
    tr_json_double(json, "measured_examples_per_second", row->measured);
    tr_json_double(json, "error", tr_plan_error(row));
}

static void add_row(struct tr_json_writer *json, const struct tr_plan *plan, int index)
{
    const struct tr_plan_row *row = &plan->row[index];
    tr_json_open_object(json, NULL);
    tr_json_text(json, "strategy", row->strategy);
    tr_json_integer(json, "workers", row->workers);
    tr_json_integer(json, "processes", row->ranks);
    tr_json_integer(json, "batch", row->batch);
    if (row->left_out)
        tr_json_text(json, "reason", row->left_out);
    else
        add_figures(json, plan, index);
    tr_json_close_object(json);
}

const char *tr_plan_step_text(double seconds, char text[TR_TEXT_NUMBER_SIZE])
{
    if (seconds >= 1) return tr_text_from_seconds(seconds, text);
    double ms = 1e3 * seconds;
    snprintf(text, TR_TEXT_NUMBER_SIZE, "%.*f ms", ms >= 100 ? 0 : ms >= 10 ? 1 : ms >= 1 ? 2 : 3, ms);
    return text;
}

tr_status tr_plan_json(const struct tr_plan *plan, char **out)
{
    struct tr_json_writer json;
    tr_json_begin(&json, true);
    tr_json_text(&json, "job", plan->name);
    tr_json_text(&json, "device", plan->device);
    tr_json_bool(&json, "simulated", true);
    tr_json_bool(&json, "batch_grows", plan->grows);
    tr_json_open_object(&json, "cluster");
    tr_json_integer(&json, "hosts", plan->cluster.hosts);
    tr_json_integer(&json, "ranks_per_host", plan->cluster.per_host);
    tr_json_double(&json, "added_bytes_per_second", plan->cluster.memory);
    add_path(&json, "between_hosts", &plan->cluster.remote);
    add_path(&json, "within_hosts", &plan->cluster.local);
    tr_json_close_object(&json);
    tr_json_open_array(&json, "rows");
    for (int i = 0; i < plan->rows; i++) add_row(&json, plan, i);
    tr_json_close_array(&json);
    tr_json_integer(&json, "best", tr_plan_best(plan));
    return tr_json_finish(&json, out);
}
