/* trireme plan: the time and memory of a job on a cluster, before it is paid for. */
#include "cli/plan/plan.h"

#include "cli/program/commands.h"
#include "cli/data/cache.h"
#include "cli/launch/job.h"
#include "cli/terminal/output.h"
#include "cli/program/signals.h"
#include "cli/terminal/terminal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "data/cache/store.h"
#include "strategy/strategy.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct options {
    struct cli_common common;
    struct cli_device device;
    struct cli_data_cache cache;
    char *model, *hosts, *launched, *cluster, *strategies, *json, *page, *picture, *traces;
    struct tr_string_list set;
    struct tr_int_list workers, simulate;
    double seconds, run_seconds;
    int32_t steps, runs;
    bool grow, verify, probe;
};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    CLI_OPTION_MODEL(struct options),
    CLI_OPTION_SET(struct options),
    {.key = "cluster",
     .type = TR_OPTION_STRING,
     .offset = AT(cluster),
     .fallback = "",
     .help = "YAML file that describes hosts and network; without one this host alone",
     .value_name = "FILE"},
    {.key = "hosts",
     .type = TR_OPTION_STRING,
     .offset = AT(hosts),
     .fallback = "",
     .help = "hosts, with the number of processes on each, as for `trireme launch`: the network between the "
             "first two is measured, unless the file describes it, and --verify runs there",
     .value_name = "HOST:N,..."},
    {.key = "workers",
     .type = TR_OPTION_INT_LIST,
     .offset = AT(workers),
     .fallback = "0",
     .least = 0,
     .most = TR_STRATEGY_RANKS,
     .help = "numbers of computing processes; 0: 1, 2, 4, ... up to those of the cluster",
     .letter = 'w',
     .value_name = "N,..."},
    {.key = "simulate",
     .type = TR_OPTION_INT_LIST,
     .offset = AT(simulate),
     .fallback = "0",
     .least = 0,
     .most = TR_STRATEGY_RANKS,
     .help = "as --workers, on a cluster with as many hosts as needed",
     .value_name = "N,..."},
    CLI_OPTION_STRATEGIES(struct options),
    {.key = "grow",
     .type = TR_OPTION_BOOL,
     .offset = AT(grow),
     .fallback = "false",
     .help = "batch and microbatches grow with the workers, so that each computes as much as one process"},
    {.key = "seconds",
     .type = TR_OPTION_DOUBLE,
     .offset = AT(seconds),
     .fallback = "1",
     .least = 0,
     .most = 3600,
     .help = "seconds to measure each part of the job"},
    {.key = "steps",
     .type = TR_OPTION_INT32,
     .offset = AT(steps),
     .fallback = "3",
     .least = 1,
     .most = 1000,
     .help = "steps, or rounds of steps, of a simulation; for sequences of different lengths at least 64 "
             "divided by the ranks"},
    {.key = "verify",
     .type = TR_OPTION_BOOL,
     .offset = AT(verify),
     .fallback = "false",
     .help = "run the most promising ones on this host, and print the error of the plan"},
    {.key = "runs",
     .type = TR_OPTION_INT32,
     .offset = AT(runs),
     .fallback = "3",
     .least = 0,
     .most = 1000,
     .help = "number of runs of --verify; 0: all"},
    {.key = "run_seconds",
     .type = TR_OPTION_DOUBLE,
     .offset = AT(run_seconds),
     .fallback = "4",
     .least = 0,
     .most = 3600,
     .help = "seconds of each run of --verify, about"},
    {.key = "json",
     .type = TR_OPTION_STRING,
     .offset = AT(json),
     .fallback = "",
     .help = "write the figures to this file as JSON",
     .value_name = "FILE"},
    {.key = "page",
     .type = TR_OPTION_STRING,
     .offset = AT(page),
     .fallback = "",
     .help = "write table and curves to this file as a page (HTML)",
     .value_name = "FILE"},
    {.key = "picture",
     .type = TR_OPTION_STRING,
     .offset = AT(picture),
     .fallback = "",
     .help = "write the curves to this file as a picture (SVG)",
     .value_name = "FILE"},
    {.key = "traces",
     .type = TR_OPTION_STRING,
     .offset = AT(traces),
     .fallback = "",
     .help = "write time-independent traces of the simulated processes to this directory, for `smpirun "
             "-replay` of SimGrid",
     .value_name = "DIR"},
    {.key = "probe",
     .type = TR_OPTION_BOOL,
     .offset = AT(probe),
     .fallback = "false",
     .help = "set by --hosts: this is one of the two processes that measure the network"},
    {.key = "launched",
     .type = TR_OPTION_STRING,
     .offset = AT(launched),
     .fallback = "",
     .help = "set by `trireme launch` for these two; variable TRIREME_LAUNCHED",
     .flags = TR_OPTION_ENVIRONMENT,
     .value_name = "NAME"},
    CLI_OPTION_DEVICE(struct options),
    CLI_OPTION_DATA_CACHE(struct options),
    CLI_OPTION_HELP(struct options),
};
#undef AT

/* ---- orders ---- */

static bool is_given(const struct tr_int_list *list)
{
    return list->count > 1 || list->item[0] > 0;
}

static tr_status take_workers(const struct options *options, const struct tr_cluster *cluster,
                              struct cli_plan_orders *orders)
{
    const struct tr_int_list *list = is_given(&options->simulate) ? &options->simulate : &options->workers;
    int most = cluster->hosts * cluster->per_host;
    if (!is_given(list)) {
        for (int workers = 1; workers < most; workers *= 2)
            orders->workers[orders->worker_counts++] = workers;
        orders->workers[orders->worker_counts++] = most;
        return TR_OK;
    }
    for (int32_t i = 0; i < list->count; i++) {
        if (list->item[i] < 1)
            return tr_fail(TR_EINVAL, "numbers of workers: 0 stands alone for all that there may be");
        orders->workers[orders->worker_counts++] = (int)list->item[i];
    }
    return TR_OK;
}

/* The cluster of the file, or this host with a process for each processor. */
static tr_status take_cluster(const struct options *options, int processors, struct tr_cluster *out)
{
    struct tr_cluster_options described;
    *out = tr_cluster_ordinary;
    out->memory = 0; /* as measured */
    out->threads = 0;
    TR_TRY(tr_options_defaults(tr_cluster_option_table, tr_cluster_option_count, &described));
    if (options->cluster)
        TR_TRY(tr_cluster_read(options->cluster, &described));
    else if (!options->hosts)
        described.ranks_per_host = described.processors = processors;
    if (options->hosts) {
        int count, each;
        TR_TRY(cli_plan_probe_hosts(options->model, options->hosts, &count, &each, &out->remote));
        if (!options->cluster) {
            described.hosts = count;
            described.ranks_per_host = each;
            described.processors = processors;
        }
    }
    if (described.local_rate == 0 || described.local_latency == 0) {
        struct tr_path found = out->local;
        if (cli_plan_probe(&found) == TR_OK) out->local = found; /* otherwise it is an ordinary one */
    }
    tr_cluster_take(&described, out);
    return TR_OK;
}

static tr_status read_orders(const struct options *options, const struct tr_cluster *cluster, int processors,
                             struct cli_plan_orders *orders)
{
    *orders = (struct cli_plan_orders){
        .model = options->model,
        .set = &options->set,
        .strategies = options->strategies ? options->strategies : "all",
        .grow = options->grow,
        .threads = options->device.threads > 0 ? options->device.threads : cluster->threads,
        .processors = processors,
        .seconds = options->seconds,
        .run_seconds = options->run_seconds,
        .calls = options->steps,
        .traces = options->traces,
        .hosts = options->hosts,
        .device = {.name = options->device.device ? options->device.device : "cpu",
                   .isa = options->device.isa},
    };
    return take_workers(options, cluster, orders);
}

/* ---- the plan ---- */

static tr_status show(struct cli_screen *screen, const struct tr_plan *plan)
{
    int width = cli_terminal_fold(STDOUT_FILENO);
    TR_TRY(cli_screen_text(screen, cli_plan_head(plan, width)));
    for (int i = 0; i < plan->rows; i++)
        if (!plan->row[i].left_out) TR_TRY(cli_screen_text(screen, cli_plan_row(plan, i, width)));
    for (int i = 0; i < plan->rows; i++)
        if (plan->row[i].left_out && !cli_plan_is_said(plan, i))
            TR_TRY(cli_screen_text(screen, cli_plan_left_out(plan, i)));
    return cli_screen_text(screen, cli_plan_verdict(plan));
}

static tr_status write_files(const struct options *options, const struct tr_plan *plan)
{
    char *text;
    if (options->json) {
        TR_TRY(tr_plan_json(plan, &text));
        TR_TRY(cli_output_file(options->json, text));
    }
    if (options->page) {
        TR_TRY(tr_plan_page(plan, &text));
        TR_TRY(cli_output_file(options->page, text));
    }
    if (!options->picture) return TR_OK;
    TR_TRY(tr_plan_picture(plan, plan->name, &text));
    return cli_output_file(options->picture, text);
}

static tr_status make(const struct options *options, const struct cli_plan_orders *orders,
                      const struct tr_job *job, struct tr_plan *plan)
{
    struct cli_screen screen;
    cli_screen_begin(&screen, stdout);
    tr_status status = cli_plan_rows(orders, plan);
    if (status == TR_OK) status = cli_plan_figures(orders, job, &screen, plan);
    if (status == TR_OK && options->verify) {
        cli_signals_catch(NULL, "ending the run");
        status = cli_plan_verify(orders, job, &screen, options->runs > 0 ? options->runs : plan->rows, plan);
        cli_signals_release();
    }
    if (status == TR_OK) status = show(&screen, plan);
    cli_screen_end(&screen);
    return status == TR_OK ? write_files(options, plan) : status;
}

/* The job with its training data open; to be destroyed after a failure, too. */
static tr_status open_job(const struct options *options, tr_store *store, struct tr_job **out)
{
    const struct tr_job_settings settings = {
        .set = (const char *const *)options->set.item,
        .set_count = options->set.count,
        .store = store,
        .first_of_strategy = tr_strategy_first_option,
    };
    TR_TRY(tr_job_open(options->model, &settings, out));
    return tr_job_open_set(*out, TR_SET_TRAIN);
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    int processors = tr_team_processors();
    struct cli_plan_orders orders;
    struct tr_plan plan = {.device = options->device.device ? options->device.device : "cpu",
                           .grows = options->grow};
    struct tr_job *job = NULL;
    tr_store *store = NULL;
    char *directory = NULL;
    tr_status status;
    if (options->probe) return cli_plan_answer(options->launched);
    if (options->json) TR_TRY(tr_file_replace_check(options->json));
    if (options->page) TR_TRY(tr_file_replace_check(options->page));
    if (options->picture) TR_TRY(tr_file_replace_check(options->picture));
    TR_TRY(take_cluster(options, processors, &plan.cluster));
    TR_TRY(read_orders(options, &plan.cluster, processors, &orders));
    if (is_given(&options->simulate)) plan.cluster.hosts = TR_STRATEGY_RANKS;
    TR_TRY_GOTO(cli_data_cache_directory(&options->cache, &directory), out);
    TR_TRY_GOTO(tr_store_create(NULL, directory, cli_data_cache_bytes(&options->cache), &store), out);
    TR_TRY_GOTO(open_job(options, store, &job), out);
    plan.name = job->file.name;
    status = make(options, &orders, job, &plan);
out:
    tr_plan_release(&plan);
    tr_job_destroy(&job);
    tr_store_destroy(&store);
    tr_free(directory);
    return status;
}

const struct cli_command cli_plan = {
    .name = "plan",
    .summary = "predict time, memory and messages of a job on a cluster",
    .about = "Measures the operations of a job on this machine and simulates the strategies' steps on any "
             "number of processes over a network that a file describes: time of a step, examples per second, "
             "memory, bytes, waiting, and what limits each strategy. --verify runs some and prints the error "
             "of the simulation.",
    CLI_OPTIONS(table, struct options),
    .model = offsetof(struct options, model),
    .run = run,
};
