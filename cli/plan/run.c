/* Rows of a plan: combinations of strategy and number of workers as in a comparison, and their figures
 * from rehearsals.
 */
#include "cli/compare/compare.h"
#include "cli/plan/plan.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "plan/world/traces.h"
#include "strategy/strategy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#define SEQUENCE_STEPS 64 /* of all ranks together */

int cli_plan_threads(const struct cli_plan_orders *orders, const struct tr_cluster *cluster, int workers,
                     int *on_host)
{
    *on_host = workers < cluster->per_host ? workers : cluster->per_host;
    int each = orders->processors / *on_host;
    return orders->threads > 0 ? orders->threads : each > 0 ? each : 1;
}

/* ---- rows ---- */

static tr_status add_row(const struct cli_compare_case *one, struct tr_plan *plan)
{
    if (!tr_grow(&plan->row, plan->rows, sizeof *plan->row)) return TR_ENOMEM;
    struct tr_plan_row *row = &plan->row[plan->rows++];
    *row = (struct tr_plan_row){.workers = one->workers, .ranks = one->ranks, .measured = NAN};
    row->strategy = tr_strdup(one->strategy);
    if (one->left_out) row->left_out = tr_strdup(one->left_out);
    return row->strategy && (row->left_out || !one->left_out) ? TR_OK : TR_ENOMEM;
}

/* The model file's settings of a step. */
static tr_status read_batch(const struct cli_plan_orders *orders, int64_t *batch, int64_t *microbatches)
{
    struct tr_job *job;
    const struct tr_job_settings settings = {.set = (const char *const *)orders->set->item,
                                             .set_count = orders->set->count,
                                             .steps = CLI_COMPARE_MANY,
                                             .first_of_strategy = tr_strategy_first_option};
    TR_TRY(tr_job_open(orders->model, &settings, &job));
    *batch = job->train.batch;
    *microbatches = job->train.microbatches;
    tr_job_destroy(&job);
    return TR_OK;
}

/* All rows for some workers; the first row is one process. */
static tr_status add_rows(const struct cli_plan_orders *orders, int workers, int64_t batch,
                          int64_t microbatches, struct tr_plan *plan)
{
    struct cli_compare_plan cases = {0};
    struct tr_int_list list = {.count = 1, .item = {workers}};
    struct tr_string_list set = {.item = tr_alloc((size_t)orders->set->count + 2, sizeof *set.item)};
    char sizes[2][64];
    if (!set.item) return TR_ENOMEM;
    for (; set.count < orders->set->count; set.count++) set.item[set.count] = orders->set->item[set.count];
    snprintf(sizes[0], sizeof sizes[0], "train.batch=%lld", (long long)batch);
    snprintf(sizes[1], sizeof sizes[1], "train.microbatches=%lld", (long long)microbatches);
    set.item[set.count++] = sizes[0];
    set.item[set.count++] = sizes[1];
    const struct cli_compare_orders compared = {.model = orders->model,
                                                .set = &set,
                                                .strategies = orders->strategies,
                                                .workers = &list,
                                                .threads = orders->processors};
    tr_status status = cli_compare_plan(&compared, &cases);
    for (int i = plan->rows > 0; i < cases.count && status == TR_OK; i++) {
        const struct cli_compare_case *one = &cases.cases[i];
        status = add_row(one, plan);
        if (status != TR_OK) break;
        /* Workers that do not wait for each other compute whole batches. */
        bool whole = one->asynchronous && orders->grow;
        plan->row[plan->rows - 1].batch = whole ? batch / workers : batch;
        plan->row[plan->rows - 1].microbatches = whole ? microbatches / workers : microbatches;
    }
    cli_compare_plan_release(&cases);
    tr_free(set.item);
    return status;
}

/* For one worker only the strategy that runs alone stays. */
static void keep_first(struct tr_plan *plan)
{
    while (plan->rows > 1) {
        tr_free(plan->row[--plan->rows].strategy);
        tr_free(plan->row[plan->rows].left_out);
    }
}

tr_status cli_plan_rows(const struct cli_plan_orders *orders, struct tr_plan *plan)
{
    int64_t batch, microbatches;
    TR_TRY(read_batch(orders, &batch, &microbatches));
    for (int i = 0; i < orders->worker_counts; i++) {
        int workers = orders->workers[i], times = orders->grow ? workers : 1;
        if (plan->rows == 0 && times > 1) TR_TRY(add_rows(orders, 1, batch, microbatches, plan));
        if (i == 0) keep_first(plan);
        TR_TRY(add_rows(orders, workers, times * batch, times * microbatches, plan));
    }
    return TR_OK;
}

/* ---- figures ---- */

tr_status cli_plan_expect(const struct cli_plan_orders *orders, const struct tr_plan *plan,
                          const struct tr_plan_row *row, struct tr_machine *machine)
{
    int on_host, threads = cli_plan_threads(orders, &plan->cluster, row->workers, &on_host);
    int64_t all = row->microbatches, share = all / row->workers > 0 ? all / row->workers : 1;
    const int64_t counts[] = {all, share, 1};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        /* Parts that no rank computes at once are not measured. */
        if (counts[i] == all && orders->grow && row->batch > 4 * (row->batch / row->workers)) continue;
        struct tr_measured_part part = {row->batch * counts[i] / all, counts[i]};
        if (part.rows < 1) part.rows = 1;
        if (tr_machine_expect(machine, threads, on_host, part) < 0) return TR_ENOMEM;
    }
    return TR_OK;
}

static void tell(void *user, const struct tr_usage *usage)
{
    char line[160];
    snprintf(line, sizeof line, "measuring %d process%s of %d thread%s", usage->copies,
             usage->copies == 1 ? "" : "es", usage->threads, usage->threads == 1 ? "" : "s");
    cli_screen_status(user, line);
}

/* The reason against a row: the message of its refusal. */
static tr_status leave_out(tr_status status, struct tr_plan_row *row)
{
    if (status != TR_EINVAL && status != TR_EUNSUPPORTED) return status;
    row->left_out = tr_strdup(tr_error_message());
    return row->left_out ? TR_OK : TR_ENOMEM;
}

/* Steps to simulate: for sequences, which have unequal lengths, all ranks together have to play many. */
static int64_t count_calls(const struct cli_plan_orders *orders, const struct tr_job *job, int ranks)
{
    const int64_t least = job->source[TR_SET_TRAIN]->info.features == TR_FEATURE_TOKENS
                              ? (SEQUENCE_STEPS + ranks - 1) / ranks
                              : 0;
    return orders->calls > least ? orders->calls : least;
}

static tr_status rehearse(const struct cli_plan_orders *orders, const struct tr_job *job,
                          const struct tr_machine *machine, const struct tr_plan *plan,
                          struct tr_plan_row *row)
{
    struct tr_cluster cluster = plan->cluster;
    int on_host, threads = cli_plan_threads(orders, &cluster, row->workers, &on_host), usage = 0;
    while (machine->usage[usage].threads != threads || machine->usage[usage].copies != on_host) usage++;
    cluster.threads = threads;
    if (cluster.memory == 0) cluster.memory = machine->usage[usage].rates.memory;
    cluster.beside = machine->usage[usage].rates.beside;
    bool asynchronous = false;
    const char *name;
    struct tr_job_variant variant;
    struct tr_job_variant_settings settings = {
        .strategy = row->strategy, .batch = row->batch, .microbatches = row->microbatches, .blank = true};
    struct tr_traces *traces = NULL;
    tr_status status;
    TR_TRY_GOTO(tr_job_variant_make(job, &settings, &variant), out);
    TR_TRY_GOTO(tr_strategy_peek(variant.job.file.strategy, &name, &asynchronous), out);
    const int64_t calls = count_calls(orders, job, row->ranks);
    variant.job.train.steps = asynchronous ? (2 + calls) * 2 * row->workers : 1 << 20;
    if (orders->traces)
        TR_TRY_GOTO(tr_traces_create(orders->traces, row->strategy, row->ranks, &cluster, &traces), out);
    const struct tr_rehearsal rehearsal = {
        .job = &variant.job,
        .cluster = &cluster,
        .ranks = row->ranks,
        .costs = machine->usage[usage].costs,
        .calls = calls,
        .listener = traces ? tr_traces_listener(traces) : NULL,
    };
    status = tr_rehearse(&rehearsal, &row->figures);
    if (traces && status == TR_OK) status = tr_traces_finish(traces, row->figures.whole);
out:
    tr_traces_destroy(&traces);
    tr_job_variant_release(&variant);
    return status == TR_OK ? TR_OK : leave_out(status, row);
}

/* Measures one process again at the end: whether the machine was as fast as in the beginning. */
static tr_status look_again(const struct cli_plan_orders *orders, const struct tr_job *job,
                            struct cli_screen *screen, struct tr_plan *plan)
{
    struct tr_machine machine = {0};
    struct tr_plan_row row = {.workers = 1, .ranks = 1};
    const struct tr_plan_row *first = &plan->row[0];
    struct cli_plan_orders quiet = *orders;
    quiet.traces = NULL;
    row.strategy = first->strategy;
    row.batch = first->batch;
    row.microbatches = first->microbatches;
    tr_status status = cli_plan_expect(orders, plan, &row, &machine);
    if (status == TR_OK)
        status = tr_machine_measure(&machine, job, &orders->device, orders->seconds, tell, screen);
    if (status == TR_OK) status = rehearse(&quiet, job, &machine, plan, &row);
    if (status == TR_OK && !row.left_out) plan->again = row.figures.examples_per_second;
    tr_free(row.left_out);
    tr_machine_release(&machine);
    return status;
}

tr_status cli_plan_figures(const struct cli_plan_orders *orders, const struct tr_job *job,
                           struct cli_screen *screen, struct tr_plan *plan)
{
    struct tr_machine machine = {0};
    tr_status status = TR_OK;
    for (int i = 0; i < plan->rows && status == TR_OK; i++)
        if (!plan->row[i].left_out) status = cli_plan_expect(orders, plan, &plan->row[i], &machine);
    if (status == TR_OK)
        status = tr_machine_measure(&machine, job, &orders->device, orders->seconds, tell, screen);
    /* A simulated rank touches a little of many large blocks: with huge pages each touch would take 2 MiB. */
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    for (int i = 0; i < plan->rows && status == TR_OK; i++) {
        char line[200];
        if (plan->row[i].left_out) continue;
        snprintf(line, sizeof line, "rehearsing %s on %d", plan->row[i].strategy, plan->row[i].ranks);
        cli_screen_status(screen, line);
        status = rehearse(orders, job, &machine, plan, &plan->row[i]);
    }
    if (status == TR_OK && plan->rows > 1 && !plan->row[0].left_out && plan->row[0].ranks == 1 &&
        orders->seconds > 0)
        status = look_again(orders, job, screen, plan);
    prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    if (status == TR_OK && plan->cluster.memory == 0) plan->cluster.memory = machine.usage[0].rates.memory;
    tr_machine_release(&machine);
    return status;
}
