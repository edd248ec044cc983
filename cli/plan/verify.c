/* Runs the most promising rows of a plan on this host. */
#include "cli/compare/compare.h"
#include "cli/plan/plan.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "cli/launch/job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS      8 /* of a run at least */
#define STEPS_MOST 100000
#define BUDGET     40.0 /* limit of a run in seconds, with its start, whatever was predicted */

/* The most promising row that was not tried. */
static int next_best(const struct tr_plan *plan, const bool *tried)
{
    int best = -1;
    for (int i = 0; i < plan->rows; i++) {
        const struct tr_plan_row *row = &plan->row[i];
        if (tried[i] || row->left_out) continue;
        if (best < 0 || row->figures.examples_per_second > plan->row[best].figures.examples_per_second)
            best = i;
    }
    return best;
}

/* ---- a run ---- */

#define SETTINGS 4 /* at most */

/* Changes the job for a run of a few steps: the sizes of the row, no evaluations, which plans do not
   count, and no length of the schedule, as the run is the beginning of the whole training. */
static int change(const struct tr_job *job, const struct tr_plan_row *row, char setting[SETTINGS][96])
{
    const struct tr_schedule *schedule = &job->optimizer.schedule;
    bool follows = schedule->kind == TR_SCHEDULE_PLATEAU; /* it needs evaluations */
    bool ends = schedule->kind == TR_SCHEDULE_COSINE || schedule->kind == TR_SCHEDULE_ONE_CYCLE;
    int count = 0;
    snprintf(setting[count++], sizeof *setting, "train.batch=%lld", (long long)row->batch);
    snprintf(setting[count++], sizeof *setting, "train.microbatches=%lld", (long long)row->microbatches);
    snprintf(setting[count++], sizeof *setting, "train.evaluate_every=%lld",
             follows ? (long long)job->train.evaluate_every * STEPS_MOST : 0LL);
    if (ends)
        snprintf(setting[count++], sizeof *setting, "optimizer.schedule.steps=%lld",
                 (long long)schedule->steps);
    return count;
}

static tr_status run_row(const struct cli_plan_orders *orders, const struct tr_job *job,
                         const char *directory, struct cli_screen *screen, const struct tr_plan *plan,
                         struct tr_plan_row *row)
{
    struct cli_compare_result result;
    char setting[SETTINGS][96];
    int settings = change(job, row, setting);
    struct tr_string_list set = {.item = tr_alloc((size_t)orders->set->count + SETTINGS, sizeof *set.item)};
    if (!set.item) return TR_ENOMEM;
    for (; set.count < orders->set->count; set.count++) set.item[set.count] = orders->set->item[set.count];
    for (int i = 0; i < settings; i++) set.item[set.count++] = setting[i];
    double seconds = orders->run_seconds, steps = seconds / row->figures.seconds;
    int on_host;
    const struct cli_compare_orders compared = {
        .model = orders->model,
        .set = &set,
        .steps = steps < STEPS        ? STEPS
                 : steps > STEPS_MOST ? STEPS_MOST
                                      : (int64_t)steps,
        .seed = -1,
        .directory = directory,
        .hosts = orders->hosts,
        .budget = 10 * seconds > BUDGET ? 10 * seconds : BUDGET,
    };
    const struct cli_compare_plan none = {0};
    const struct cli_compare_case one = {
        .strategy = row->strategy,
        .workers = row->workers,
        .ranks = row->ranks,
        .threads = cli_plan_threads(orders, &plan->cluster, row->workers, &on_host),
    };
    tr_status status = cli_compare_run(&compared, &none, &one, screen, &result);
    tr_free(set.item);
    if (status != TR_OK) return status;
    switch (result.end) {
    case CLI_COMPARE_DONE:
    case CLI_COMPARE_OUT_OF_TIME:
        row->measured = result.steady_examples_per_second;
        return TR_OK;
    case CLI_COMPARE_STOPPED:
        return tr_fail(TR_EINTERRUPTED, "interrupted");
    default:
        row->failure = tr_strdup(result.failure);
        return row->failure ? TR_OK : TR_ENOMEM;
    }
}

/* A directory for the files of the runs, removed at the end. */
static tr_status make_directory(char **out)
{
    const char *above = getenv("TMPDIR");
    *out = tr_format("%s/trireme-plan-XXXXXX", above && *above ? above : "/tmp");
    if (!*out) return TR_ENOMEM;
    if (mkdtemp(*out)) return TR_OK;
    tr_status status = tr_fail(TR_EIO, "no directory can be made at \"%s\"; set TMPDIR", *out);
    tr_free(*out);
    *out = NULL;
    return status;
}

tr_status cli_plan_verify(const struct cli_plan_orders *orders, const struct tr_job *job,
                          struct cli_screen *screen, int count, struct tr_plan *plan)
{
    char *directory;
    bool *tried = tr_alloc_zero((size_t)plan->rows + 1, sizeof *tried);
    if (!tried) return TR_ENOMEM;
    tr_status status = make_directory(&directory);
    for (int i = 0, row; i < count && status == TR_OK && (row = next_best(plan, tried)) >= 0; i++) {
        tried[row] = true;
        status = run_row(orders, job, directory, screen, plan, &plan->row[row]);
    }
    if (directory) tr_file_remove(NULL, directory); /* remaining files do no harm */
    tr_free(directory);
    tr_free(tried);
    return status;
}
