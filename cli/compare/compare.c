/* trireme compare: one job under every strategy, side by side. */
#include "cli/program/arguments.h"
#include "cli/program/commands.h"
#include "cli/compare/compare.h"
#include "cli/launch/job.h"
#include "cli/terminal/output.h"
#include "cli/program/signals.h"
#include "cli/terminal/terminal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    struct cli_common common;
    char *model, *strategies, *until, *budget, *csv, *json;
    struct tr_string_list set;
    struct tr_int_list workers;
    int64_t steps, seed;
    int32_t threads, rounds;
};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    CLI_OPTION_MODEL(struct options),
    CLI_OPTION_SET(struct options),
    {.key = "workers",
     .type = TR_OPTION_INT_LIST,
     .offset = AT(workers),
     .fallback = "1,2",
     .least = 1,
     .most = 1024,
     .help = "numbers of processes that compute",
     .letter = 'w',
     .value_name = "N,..."},
    CLI_OPTION_STRATEGIES(struct options),
    {.key = "until",
     .type = TR_OPTION_STRING,
     .offset = AT(until),
     .fallback = "",
     .help = "end a run once it reaches this accuracy, as in accuracy=0.98, and compare the times",
     .value_name = "TARGET"},
    {.key = "budget",
     .type = TR_OPTION_STRING,
     .offset = AT(budget),
     .fallback = "5m",
     .help = "limit of the time of each run, as in 90s, 5m or 1h; 0: none",
     .value_name = "TIME"},
    {.key = "steps",
     .type = TR_OPTION_INT64,
     .offset = AT(steps),
     .fallback = "0",
     .least = 0,
     .most = TR_OPTION_WHOLE,
     .help = "steps of each run; 0: as the file says"},
    CLI_OPTION_SEED(struct options),
    CLI_OPTION_THREADS(struct options, "threads, divided evenly among the workers; 0: one per processor"),
    {.key = "rounds",
     .type = TR_OPTION_INT32,
     .offset = AT(rounds),
     .fallback = "1",
     .least = 1,
     .most = 1000,
     .help =
         "how often all are run, in turn; the fastest run of each counts; for machines that are not quiet"},
    {.key = "csv",
     .type = TR_OPTION_STRING,
     .offset = AT(csv),
     .fallback = "",
     .help = "write the figures to this file as comma-separated values",
     .value_name = "FILE"},
    {.key = "json",
     .type = TR_OPTION_STRING,
     .offset = AT(json),
     .fallback = "",
     .help = "write the figures to this file as JSON",
     .value_name = "FILE"},
    CLI_OPTION_HELP(struct options),
};
#undef AT

/* ---- orders ---- */

static tr_status read_until(const char *text, double *accuracy)
{
    static const char prefix[] = "accuracy=";
    const char *wrong = "is no accuracy";
    *accuracy = 0;
    if (!text) return TR_OK;
    if (strncmp(text, prefix, strlen(prefix)) == 0) wrong = tr_text_double(text + strlen(prefix), accuracy);
    if (!wrong && (*accuracy <= 0 || *accuracy > 1)) wrong = "is not between 0 and 1";
    if (!wrong) return TR_OK;
    return tr_fail(TR_EINVAL, "--until: \"%s\" %s; write accuracy=0.98", text, wrong);
}

static tr_status read_budget(const char *text, double *seconds)
{
    const char *wrong = cli_argument_seconds(text, seconds);
    if (!wrong) return TR_OK;
    return tr_fail(TR_EINVAL, "--budget: \"%s\" %s; write 90s, 5m or 1h", text, wrong);
}

static tr_status read_orders(const struct options *options, struct cli_compare_orders *orders)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    *orders = (struct cli_compare_orders){
        .model = options->model,
        .set = &options->set,
        .strategies = options->strategies ? options->strategies : "all",
        .workers = &options->workers,
        .steps = options->steps,
        .seed = options->seed,
        .threads = options->threads > 0 ? options->threads : (int32_t)processors,
    };
    TR_TRY(read_until(options->until, &orders->until));
    return read_budget(options->budget ? options->budget : "0", &orders->budget);
}

/* ---- the comparison ---- */

/* Prints a text at once, and frees it. */
static tr_status print(struct cli_screen *screen, char *text)
{
    TR_TRY(cli_screen_text(screen, text));
    cli_output_flush();
    return TR_OK;
}

/* Synchronous runs repeat themselves bit by bit. */
static void check_repetition(const struct cli_compare_case *one, const struct cli_compare_result *before,
                             struct cli_compare_result *now)
{
    if (one->asynchronous || before->step != now->step || before->step == 0) return;
    if (strcmp(before->hash, now->hash) == 0) return;
    now->end = CLI_COMPARE_FAILED;
    snprintf(now->failure, sizeof now->failure, "NOT EQUAL: hash %.8s, in an earlier round it was %.8s",
             now->hash, before->hash);
}

/* Runs each case once; `results` keep the better result of each. */
static tr_status run_round(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                           struct cli_screen *screen, struct cli_compare_result *results)
{
    TR_TRY(print(screen, cli_compare_head(orders, plan)));
    for (int i = 0; i < plan->count && cli_signals_received() == 0; i++) {
        struct cli_compare_result now, before = results[i];
        if (plan->cases[i].left_out) continue;
        TR_TRY(cli_compare_run(orders, plan, &plan->cases[i], screen, &now));
        if (plan->cases[i].alone && now.refused)
            return tr_fail(TR_EINVAL, "one process cannot run the job, so no strategy can: %s", now.failure);
        check_repetition(&plan->cases[i], &before, &now);
        results[i] = now;
        TR_TRY(print(screen, cli_compare_row(orders, plan, results, i)));
        if (!cli_compare_counts(orders, &before, &now)) results[i] = before;
    }
    return TR_OK;
}

/* Runs the single process again: the reference of the others must not have changed meanwhile. Several
   rounds do so anyway. */
static tr_status measure_again(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                               struct cli_screen *screen, struct cli_compare_result *results)
{
    struct cli_compare_result again;
    if (plan->count < 2 || results[0].end == CLI_COMPARE_NOT_RUN || cli_signals_received() != 0) return TR_OK;
    TR_TRY(cli_compare_run(orders, plan, &plan->cases[0], screen, &again));
    check_repetition(&plan->cases[0], &results[0], &again);
    if (again.end == CLI_COMPARE_FAILED)
        results[0] = again;
    else if (again.end != CLI_COMPARE_STOPPED)
        results[0].again = again.examples_per_second;
    return TR_OK;
}

static tr_status run_cases(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                           int32_t rounds, struct cli_screen *screen, struct cli_compare_result *results)
{
    for (int32_t round = 1; round <= rounds && cli_signals_received() == 0; round++) {
        if (round > 1) cli_screen_line(screen, "");
        TR_TRY(run_round(orders, plan, screen, results));
    }
    if (rounds == 1) return measure_again(orders, plan, screen, results);
    cli_screen_line(screen, "");
    cli_screen_line(screen, "the fastest of each:");
    TR_TRY(print(screen, cli_compare_head(orders, plan)));
    for (int i = 0; i < plan->count; i++)
        if (results[i].end != CLI_COMPARE_NOT_RUN)
            TR_TRY(print(screen, cli_compare_row(orders, plan, results, i)));
    return TR_OK;
}

static tr_status write_files(const struct options *options, const struct cli_compare_orders *orders,
                             const struct cli_compare_plan *plan, const struct cli_compare_result *results)
{
    char *text;
    if (options->csv) {
        TR_TRY(cli_compare_csv(plan, results, &text));
        TR_TRY(cli_output_file(options->csv, text));
    }
    if (!options->json) return TR_OK;
    TR_TRY(cli_compare_json(orders, plan, results, &text));
    return cli_output_file(options->json, text);
}

/* The exit status of the command: failed runs and differing hashes are failures. */
static tr_status judge(const struct cli_compare_plan *plan, const struct cli_compare_result *results)
{
    int failed = 0, differ = 0;
    for (int i = 0; i < plan->count; i++) {
        failed += results[i].end == CLI_COMPARE_FAILED;
        differ += cli_compare_hash(plan, results, i) == CLI_HASH_NOT_EQUAL;
    }
    if (differ > 0)
        return tr_fail(TR_EIO, "%d synchronous runs ended with other weights than one process", differ);
    if (failed > 0) return tr_fail(TR_EIO, "%d of the runs failed", failed);
    if (cli_signals_received() != 0) return tr_fail(TR_EINTERRUPTED, "stopped before all runs were done");
    return TR_OK;
}

static tr_status compare(const struct options *options, const struct cli_compare_orders *orders,
                         const struct cli_compare_plan *plan)
{
    struct cli_screen screen;
    struct cli_compare_result *results = tr_alloc_zero((size_t)plan->count, sizeof *results);
    if (!results) return TR_ENOMEM;
    cli_screen_begin(&screen, stdout);
    cli_signals_catch(NULL, "ending the run");
    tr_status status = run_cases(orders, plan, options->rounds, &screen, results);
    if (status == TR_OK) status = print(&screen, cli_compare_verdict(orders, plan, results));
    if (status == TR_OK) status = write_files(options, orders, plan, results);
    if (status == TR_OK) status = judge(plan, results);
    cli_signals_release();
    cli_screen_end(&screen);
    tr_free(results);
    return status;
}

/* Whether processes can be started here at all is checked once, before the first run. */
static tr_status check_processes(const struct cli_compare_plan *plan)
{
    struct cli_job_orders largest = {.processes = 1};
    for (int i = 0; i < plan->count; i++)
        if (!plan->cases[i].left_out && plan->cases[i].ranks > largest.processes)
            largest.processes = plan->cases[i].ranks;
    if (largest.processes == 1) return TR_OK;
    return cli_launcher_local.check(&largest);
}

/* A directory for the files of the runs, removed at the end. */
static tr_status make_directory(char **out)
{
    const char *above = getenv("TMPDIR");
    *out = tr_format("%s/trireme-compare-XXXXXX", above && *above ? above : "/tmp");
    if (!*out) return TR_ENOMEM;
    if (mkdtemp(*out)) return TR_OK;
    tr_status status = tr_fail(TR_EIO, "no directory can be made at \"%s\"; set TMPDIR", *out);
    tr_free(*out);
    *out = NULL;
    return status;
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    struct cli_compare_orders orders;
    struct cli_compare_plan plan = {0};
    char *directory = NULL;
    tr_status status;
    TR_TRY(read_orders(options, &orders));
    if (options->csv) TR_TRY(tr_file_replace_check(options->csv));
    if (options->json) TR_TRY(tr_file_replace_check(options->json));
    TR_TRY_GOTO(cli_compare_plan(&orders, &plan), out);
    plan.width = cli_terminal_fold(STDOUT_FILENO);
    TR_TRY_GOTO(check_processes(&plan), out);
    TR_TRY_GOTO(make_directory(&directory), out);
    orders.directory = directory;
    status = compare(options, &orders, &plan);
out:
    if (directory) tr_file_remove(NULL, directory); /* remaining files do no harm */
    tr_free(directory);
    cli_compare_plan_release(&plan);
    return status;
}

const struct cli_command cli_compare = {
    .name = "compare",
    .summary = "run a job under several strategies and say which is best here",
    .about = "Trains the network of a model file alone and then under every strategy on every number of "
             "workers, one run after the other, with the processors divided evenly. Prints a row for each: "
             "speed, time and epochs to a target, accuracy, staleness of gradients (mean/maximum), bytes "
             "moved in a step, share of the time spent waiting, and hash. Impossible combinations are listed "
             "with the reason. Ctrl-C ends the current run and prints the rows so far.",
    CLI_OPTIONS(table, struct options),
    .model = offsetof(struct options, model),
    .run = run,
};
