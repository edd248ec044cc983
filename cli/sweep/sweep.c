/* trireme sweep: one job with many settings, several at a time. */
#include "cli/sweep/sweep.h"

#include "cli/program/child.h"
#include "cli/program/commands.h"
#include "cli/terminal/output.h"
#include "cli/train/run_directory.h"
#include "cli/program/signals.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/ops.h"
#include "trireme/trireme.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Runs on the page. */
#define SHOWN 16

struct options {
    struct cli_common common;
    char *model, *out;
    struct tr_string_list set;
    int64_t seeds, seed, random;
    int32_t workers, threads, folds;
    bool rate_test;
    char *by;
};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    CLI_OPTION_MODEL(struct options),
    {.key = "set",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(set),
     .fallback = "",
     .help = "values of a field of the model file, for instance optimizer.rate=1e-4,1e-3; with --random also "
             "a range as in 1e-4..1e-2; may be given several times: all combinations are run",
     .letter = 's',
     .value_name = "KEY=VALUE,..."},
    {.key = "seeds",
     .type = TR_OPTION_INT64,
     .offset = AT(seeds),
     .fallback = "1",
     .least = 1,
     .most = 1000,
     .help = "seeds of each combination"},
    {.key = "seed",
     .type = TR_OPTION_INT64,
     .offset = AT(seed),
     .fallback = "-1",
     .least = -1,
     .most = TR_OPTION_WHOLE,
     .help = "the first seed, which also decides the draws of --random; -1: 1, or the model file's if "
             "--seeds is 1"},
    {.key = "random",
     .type = TR_OPTION_INT64,
     .offset = AT(random),
     .fallback = "0",
     .least = 0,
     .most = CLI_SWEEP_POINTS,
     .help = "draw N random combinations, positive ranges on a logarithmic scale; 0: all combinations"},
    {.key = "workers",
     .type = TR_OPTION_INT32,
     .offset = AT(workers),
     .fallback = "1",
     .least = 1,
     .most = CLI_CHILDREN_MOST,
     .help = "runs at a time",
     .letter = 'w'},
    CLI_OPTION_THREADS(struct options,
                       "threads, divided evenly among the runs at a time; 0: one per processor"),
    {.key = "folds",
     .type = TR_OPTION_INT32,
     .offset = AT(folds),
     .fallback = "0",
     .least = 0,
     .most = 1000,
     .help = "cross-validation: cut the training data into N parts, and run each point N times, with another "
             "part as validation data each time; 0: as the model file says"},
    {.key = "rate_test",
     .type = TR_OPTION_BOOL,
     .offset = AT(rate_test),
     .fallback = "false",
     .help = "make one short run whose learning rate rises from 1e-6 to 10 in 100 steps, instead of a "
             "sweep; proposes a rate, and draws the loss over the rate (rate-test.html)"},
    {.key = "by",
     .type = TR_OPTION_STRING,
     .offset = AT(by),
     .fallback = "",
     .help = "figure by which points are ranked: loss, accuracy, or a metric such as f1 or rmse; taken "
             "from the best evaluation on validation data, else from the last one on test data; default: "
             "train.monitor of the model file, else loss",
     .value_name = "FIGURE"},
    {.key = "out",
     .type = TR_OPTION_STRING,
     .offset = AT(out),
     .fallback = "",
     .help = "directory of the sweep; default: runs/NAME-sweep after the job; an earlier sweep there is "
             "continued",
     .letter = 'o',
     .value_name = "DIR"},
    CLI_OPTION_HELP(struct options),
};
#undef AT

/* ---- orders ---- */

static tr_status digest_model(const char *path, char digest[TR_SHA256_TEXT])
{
    struct tr_file_content content;
    TR_TRY(tr_file_read(path, 1 << 20, &content));
    tr_status status = tr_sha256_of(content.data, content.size, digest);
    tr_file_content_free(&content);
    return status;
}

/* runs/NAME-sweep. */
static tr_status default_directory(const struct options *options, char **out)
{
    struct cli_sweep_plan plan = {0};
    char *directory = NULL;
    *out = NULL;
    tr_status status = cli_sweep_axes(&options->set, true, &plan);
    if (status == TR_OK) status = cli_run_directory(options->model, &plan.fixed, NULL, &directory);
    if (status == TR_OK && !(*out = tr_format("%s-sweep", directory))) status = TR_ENOMEM;
    tr_free(directory);
    cli_sweep_plan_release(&plan);
    return status;
}

static tr_status read_orders(const struct options *options, const char *out, struct cli_sweep_orders *orders)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = options->threads > 0 ? options->threads : (int)processors;
    *orders = (struct cli_sweep_orders){
        .model = options->model,
        .set = &options->set,
        .seeds = options->seeds,
        .seed = options->seed,
        .random = options->random,
        .workers = options->workers,
        .threads = threads > options->workers ? threads / options->workers : 1,
        .folds = options->folds,
        .out = out,
    };
    if (options->folds == 1)
        return tr_fail(TR_EINVAL, "--folds 1 leaves nothing to train on; give 2 or more");
    TR_TRY(cli_sweep_choose(options->by, orders));
    return digest_model(options->model, orders->digest);
}

/* A point's settings are checked before its run; if all are wrong, nothing is run. */
static tr_status check_points(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan)
{
    const char **set = tr_alloc((size_t)plan->fixed.count + CLI_SWEEP_AXES + 1, sizeof *set);
    tr_status status = set ? TR_OK : TR_ENOMEM;
    bool some = false;
    for (int i = 0; i < plan->count && set && !some; i++) {
        struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
        struct tr_train_plan ignored = TR_TRAIN_PLAN_INIT;
        char *own[CLI_SWEEP_AXES] = {NULL};
        int count = 0;
        if (!plan->points[i].wanted) continue;
        for (int32_t k = 0; k < plan->fixed.count; k++) set[count++] = plan->fixed.item[k];
        for (int a = 0; a < plan->axes; a++) {
            own[a] = tr_format("%s=%s", plan->axis[a].path, plan->points[i].value[a]);
            set[count++] = own[a] ? own[a] : "";
        }
        char fold[32];
        snprintf(fold, sizeof fold, "data.fold=%" PRId32, plan->points[i].fold);
        if (plan->points[i].fold > 0) set[count++] = fold;
        settings.model = orders->model;
        settings.set = set;
        settings.set_count = count;
        status = tr_train_plan(&settings, &ignored);
        some = status == TR_OK;
        for (int a = 0; a < plan->axes; a++) tr_free(own[a]);
    }
    tr_free(set);
    return some ? TR_OK : status;
}

/* ---- the end ---- */

/* Writes a text to a file of the sweep, and frees it. */
static tr_status write_file(const struct cli_sweep_orders *orders, const char *name, char *text)
{
    char *path = tr_path_join(orders->out, name);
    tr_status status = TR_ENOMEM;
    if (path)
        status = cli_output_file(path, text);
    else
        tr_free(text);
    tr_free(path);
    return status;
}

/* A page of the best finished points. */
static tr_status write_page(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan,
                            const int *order, int count)
{
    struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
    char *runs[SHOWN] = {NULL}, *html = NULL;
    tr_status status = TR_OK;
    int shown = 0;
    for (int i = 0; i < count && shown < SHOWN && plan->points[order[i]].state == CLI_SWEEP_DONE; i++)
        if (!(runs[shown++] = tr_path_join(orders->out, plan->points[order[i]].directory)))
            status = TR_ENOMEM;
    settings.examples = false;
    if (status == TR_OK && shown > 0) status = tr_report((const char *const *)runs, shown, &settings, &html);
    if (status == TR_OK && html) status = write_file(orders, "report.html", html);
    for (int i = 0; i < shown; i++) tr_free(runs[i]);
    return status;
}

static tr_status say_best(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan,
                          const int *order, int count, struct cli_screen *screen)
{
    const struct cli_sweep_point *best = count > 0 ? &plan->points[order[0]] : NULL;
    struct tr_text text = TR_TEXT_INIT;
    char *lines;
    tr_text_add(&text, "\n");
    if (best && best->state == CLI_SWEEP_DONE) {
        tr_text_addf(&text, "best        %s: ", best->directory);
        cli_sweep_name(plan, best, &text);
        tr_text_addf(&text, "\nreport      %s/report.html\n", orders->out);
    }
    tr_text_addf(&text, "table       %s/sweep.csv\n", orders->out);
    TR_TRY(tr_text_finish(&text, &lines));
    return cli_screen_text(screen, lines);
}

/* Table, files and last lines. */
static tr_status sum_up(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan,
                        struct cli_screen *screen)
{
    int *order, count;
    char *text;
    TR_TRY(cli_sweep_rank(orders, plan, &order, &count));
    tr_status status = cli_sweep_table(orders, plan, order, count, &text);
    if (status == TR_OK) status = cli_screen_text(screen, text);
    if (status == TR_OK) status = cli_sweep_csv(orders, plan, order, count, &text);
    if (status == TR_OK) status = write_file(orders, "sweep.csv", text);
    if (status == TR_OK) status = write_page(orders, plan, order, count);
    if (status == TR_OK) status = say_best(orders, plan, order, count, screen);
    tr_free(order);
    return status;
}

/* The exit status of the command. */
static tr_status judge(const struct cli_sweep_plan *plan)
{
    int failed = 0, waiting = 0, wanted = 0;
    const struct cli_sweep_point *first = NULL;
    for (int i = 0; i < plan->count; i++) {
        const struct cli_sweep_point *point = &plan->points[i];
        if (!point->wanted) continue;
        wanted++;
        waiting += point->state == CLI_SWEEP_WAITING;
        failed += point->state == CLI_SWEEP_FAILED;
        if (point->state == CLI_SWEEP_FAILED && !first) first = point;
    }
    if (waiting > 0)
        return tr_fail(TR_EINTERRUPTED,
                       "stopped with %d of %d points to do; the same command goes on with them", waiting,
                       wanted);
    if (failed == 0) return TR_OK;
    return tr_fail(TR_EIO, "%d of %d points failed; the first, %s: %s", failed, wanted, first->directory,
                   first->failure);
}

static tr_status sweep(const struct cli_sweep_orders *orders, struct cli_sweep_plan *plan)
{
    struct cli_screen screen;
    cli_screen_begin(&screen, stdout);
    cli_signals_catch(NULL, "ending the runs");
    tr_status status = cli_sweep_run(orders, plan, &screen);
    if (status == TR_OK) status = sum_up(orders, plan, &screen);
    if (status == TR_OK) status = judge(plan);
    cli_signals_release();
    cli_screen_end(&screen);
    return status;
}

/* The directory is locked by this process during the sweep. */
static tr_status sweep_in(const struct cli_sweep_orders *orders, struct cli_sweep_plan *plan)
{
    int lock = -1;
    TR_TRY(tr_file_make_directories(NULL, orders->out));
    TR_TRY(tr_file_lock(orders->out, &lock));
    tr_status status = cli_sweep_recall(orders, plan);
    if (status == TR_OK) status = sweep(orders, plan);
    if (lock >= 0) close(lock);
    return status;
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    struct cli_sweep_orders orders;
    struct cli_sweep_plan plan = {0};
    char *out = NULL;
    tr_status status;
    TR_TRY_GOTO(options->out ? (out = tr_strdup(options->out)) ? TR_OK : TR_ENOMEM
                             : default_directory(options, &out),
                done);
    TR_TRY_GOTO(read_orders(options, out, &orders), done);
    TR_TRY_GOTO(cli_sweep_plan(&orders, &plan), done);
    TR_TRY_GOTO(check_points(&orders, &plan), done);
    if (!options->rate_test)
        status = sweep_in(&orders, &plan);
    else if (plan.axes > 0 || options->seeds > 1 || options->folds > 0)
        status = tr_fail(TR_EINVAL, "--rate-test is one run; leave --seeds, --folds and several values out");
    else
        status = cli_sweep_rate_test(&orders, &plan);
done:
    cli_sweep_plan_release(&plan);
    tr_free(out);
    return status;
}

const struct cli_command cli_sweep = {
    .name = "sweep",
    .summary = "run a job with many settings and seeds, and say which is best",
    .about = "Trains the network of a model file with every combination of the values of --set (a point), "
             "or with random ones, each with --seeds seeds. --workers runs at a time share the processors. "
             "Prints the result of each point, the means over seeds and the best point, and writes a table "
             "(sweep.csv) and a page (report.html). A run that fails is reported; the others go on. Ctrl-C "
             "saves the current runs; the same command continues them, and with more values or seeds it "
             "runs the new ones. Validation data (data.validation_split) are evaluated every "
             "train.evaluate_every steps; all points and seeds have the same validation rows. With --folds "
             "each point is run with every part of the training data as validation data; the table then "
             "has the means over folds.",
    CLI_OPTIONS(table, struct options),
    .model = offsetof(struct options, model),
    .run = run,
};
