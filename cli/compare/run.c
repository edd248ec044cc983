/* A run of a comparison: another run of this program, single or by `trireme launch`, which writes JSON. */
#include "cli/program/child.h"
#include "cli/compare/compare.h"
#include "cli/compare/judge.h"

#include "cli/program/exit_codes.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/files/file.h"
#include "strategy/strategy.h"
#include "strategy/updates/file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the command ---- */

static void make_training(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                          const struct cli_compare_case *one, const char *out,
                          struct cli_arguments *arguments)
{
    cli_arguments_add_self(arguments);
    if (one->ranks > 1) {
        cli_arguments_add(arguments, "launch");
        if (orders->hosts)
            cli_arguments_add(arguments, "--hosts=%s", orders->hosts);
        else
            cli_arguments_add(arguments, "--transport=local");
        cli_arguments_add(arguments, "--processes=%d", one->ranks);
        cli_arguments_add(arguments, "--threads=%d", one->threads);
    }
    cli_arguments_add(arguments, "train");
    cli_arguments_add(arguments, "%s", orders->model);
    cli_arguments_add(arguments, "--out=%s", out);
    cli_arguments_add(arguments, "--log=json");
    cli_arguments_add(arguments, "--quiet");
    cli_arguments_add(arguments, "--strategy=%s", one->strategy);
    if (one->ranks == 1) {
        cli_arguments_add(arguments, "--transport=none");
        cli_arguments_add(arguments, "--threads=%d", one->threads);
    }
    if (orders->steps > 0) cli_arguments_add(arguments, "--steps=%" PRId64, orders->steps);
    if (orders->seed >= 0) cli_arguments_add(arguments, "--seed=%" PRId64, orders->seed);
    for (int32_t i = 0; i < orders->set->count; i++)
        cli_arguments_add(arguments, "--set=%s", orders->set->item[i]);
    cli_arguments_add(arguments, "--set=train.checkpoint_every=0");
    cli_arguments_add(arguments, "--set=train.checkpoint_seconds=0");
    if (orders->until <= 0) return;
    cli_arguments_add(arguments, "--set=train.until_accuracy=%.17g", orders->until);
    cli_arguments_add(arguments, "--set=train.evaluate_every=%" PRId64, plan->evaluate_every);
    cli_arguments_add(arguments, "--set=train.log_every=%" PRId64, plan->evaluate_every);
}

/* ---- what is heard ---- */

static const struct tr_json_value *array_of(const struct tr_json_value *object, const char *key)
{
    const struct tr_json_value *value = tr_json_find(object, key);
    return value && value->kind == TR_JSON_ARRAY ? value : NULL;
}

#define RANKS_MOST 1024

static void take_statistics(const struct tr_json_value *object, double seconds,
                            struct cli_compare_result *result)
{
    struct tr_train_rank ranks[RANKS_MOST];
    int64_t bins[TR_STALENESS_BINS] = {0};
    const struct tr_json_value *list = array_of(object, "ranks"), *staleness = array_of(object, "staleness");
    struct tr_train_statistics statistics = {
        .rank = ranks, .steps = tr_json_integer_or(object, "steps", 0), .asynchronous = staleness != NULL};
    if (!list) return;
    for (const struct tr_json_value *at = list->first; at && statistics.ranks < RANKS_MOST; at = at->next)
        ranks[statistics.ranks++] = (struct tr_train_rank){
            .bytes_sent = tr_json_integer_or(at, "bytes_sent", 0),
            .bytes_received = tr_json_integer_or(at, "bytes_received", 0),
            .bytes_shared = tr_json_integer_or(at, "bytes_shared", 0),
            .wait_seconds = tr_json_number_or_nan(at, "wait_seconds"),
            .compute_seconds = tr_json_number_or_nan(at, "compute_seconds"),
        };
    statistics.staleness = bins;
    statistics.staleness_bins = TR_STALENESS_BINS;
    int bin = 0;
    for (const struct tr_json_value *at = staleness ? staleness->first : NULL; at && bin < TR_STALENESS_BINS;
         at = at->next)
        bins[bin++] = at->kind == TR_JSON_INTEGER ? at->integer : 0;
    result->has_statistics = true;
    result->statistics = cli_statistics_of(&statistics, seconds);
    result->dropped = tr_json_integer_or(object, "dropped", 0);
}

/* The log of an asynchronous run counts staleness beyond the bins. */
static void take_log(const char *out, struct cli_compare_result *result)
{
    struct tr_update_log log = {0};
    struct tr_update_figures figures;
    char *path = tr_path_join(out, TR_UPDATE_FILE);
    tr_status status = path ? tr_update_file_read(path, &log, NULL) : TR_ENOMEM;
    tr_free(path);
    if (status != TR_OK) return;
    tr_update_log_count(&log, &figures);
    tr_update_log_release(&log);
    result->statistics.mean_staleness = figures.applied > 0 ? figures.missed / (double)figures.applied : 0;
    result->statistics.most_staleness = (int)figures.most;
    result->statistics.more_staleness = false;
    result->dropped = figures.dropped;
}

struct listener {
    struct cli_compare_result *result;
    double until;
    const char *label;
    struct cli_screen *screen;
    int64_t first_step; /* 0: no step was reported */
    double first_seconds;
};

/* A line of `trireme train --log json`. */
static void hear_training(void *user, const struct tr_json_value *object)
{
    struct listener *listener = user;
    struct cli_compare_result *result = listener->result;
    const char *event = tr_json_text_or_empty(object, "event");
    if (strcmp(event, "step") == 0) {
        char status[200], left[TR_TEXT_NUMBER_SIZE];
        result->seconds = tr_json_number_or_nan(object, "seconds");
        if (listener->first_step == 0) {
            listener->first_step = tr_json_integer_or(object, "step", 0);
            listener->first_seconds = result->seconds;
        }
        double share = tr_json_number_or_nan(object, "step") / tr_json_number_or_nan(object, "steps");
        snprintf(status, sizeof status, "  %s: step %.0f of %.0f, loss %.4f, %s so far", listener->label,
                 tr_json_number_or_nan(object, "step"), tr_json_number_or_nan(object, "steps"),
                 tr_json_number_or_nan(object, "loss"), tr_text_from_seconds(result->seconds, left));
        if (share < 1) cli_screen_status(listener->screen, status);
    } else if (strcmp(event, "evaluation") == 0) {
        result->accuracy = tr_json_number_or_nan(object, "accuracy");
        result->loss = tr_json_number_or_nan(object, "loss");
        if (listener->until > 0 && isnan(result->target_epochs) && result->accuracy >= listener->until) {
            result->target_seconds = result->seconds;
            result->target_epochs = tr_json_number_or_nan(object, "epoch");
        }
    } else if (strcmp(event, "end") == 0) {
        result->step = tr_json_integer_or(object, "step", 0);
        result->seconds = tr_json_number_or_nan(object, "seconds");
        result->examples_per_second = tr_json_number_or_nan(object, "examples_per_second");
        result->steady_examples_per_second =
            cli_compare_later_speed(result->examples_per_second, result->step, result->seconds,
                                    listener->first_step, listener->first_seconds);
        snprintf(result->hash, sizeof result->hash, "%s", tr_json_text_or_empty(object, "hash"));
        const struct tr_json_value *statistics = tr_json_find(object, "statistics");
        if (statistics) take_statistics(statistics, result->seconds, result);
    }
}

/* The object of `trireme eval --json`. */
static void hear_evaluation(void *user, const struct tr_json_value *object)
{
    struct cli_compare_result *result = user;
    result->accuracy = tr_json_number_or_nan(object, "accuracy");
    result->loss = tr_json_number_or_nan(object, "loss");
}

/* Whether a repetition would fail in the same way. */
static bool is_refusal(int code)
{
    return code == CLI_EXIT_WRONG || code == CLI_EXIT_DAMAGED;
}

static enum cli_compare_end end_of(const struct cli_child *child)
{
    if (child->code == CLI_EXIT_DONE) return CLI_COMPARE_DONE;
    if (child->stopped) return CLI_COMPARE_STOPPED;
    if (child->out_of_time && child->code == CLI_EXIT_INTERRUPTED) return CLI_COMPARE_OUT_OF_TIME;
    return CLI_COMPARE_FAILED;
}

/* ---- a run ---- */

/* A run that its budget ended has saved, but has not been evaluated at that point. */
static tr_status evaluate(const char *out, struct cli_compare_result *result)
{
    struct cli_arguments arguments = {0};
    struct cli_compare_result evaluated = {.accuracy = NAN, .loss = NAN};
    struct cli_child child = {.hear = hear_evaluation, .user = &evaluated};
    cli_arguments_add_self(&arguments);
    cli_arguments_add(&arguments, "eval");
    cli_arguments_add(&arguments, "%s", out);
    cli_arguments_add(&arguments, "--json");
    tr_status status = cli_child_run(&child, &arguments);
    cli_arguments_release(&arguments);
    if (status != TR_OK || isnan(evaluated.loss)) return status; /* no test data, say */
    result->accuracy = evaluated.accuracy;
    result->loss = evaluated.loss;
    return TR_OK;
}

tr_status cli_compare_run(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                          const struct cli_compare_case *one, struct cli_screen *screen,
                          struct cli_compare_result *result)
{
    struct cli_arguments arguments = {0};
    *result = (struct cli_compare_result){
        .accuracy = NAN, .loss = NAN, .target_seconds = NAN, .target_epochs = NAN};
    char label[200], *out = tr_path_join(orders->directory, "run");
    if (!out) return TR_ENOMEM;
    snprintf(label, sizeof label, "%s on %d worker%s", one->strategy, one->workers,
             one->workers == 1 ? "" : "s");
    struct listener listener = {.result = result, .until = orders->until, .label = label, .screen = screen};
    struct cli_child child = {
        .hear = hear_training,
        .user = &listener,
        .stop_at = orders->budget > 0 ? tr_clock_seconds() + orders->budget : 0,
    };
    make_training(orders, plan, one, out, &arguments);
    cli_screen_status(screen, label);
    tr_status status = cli_child_run(&child, &arguments);
    cli_arguments_release(&arguments);
    if (one->asynchronous && result->has_statistics) take_log(out, result);
    if (status == TR_OK) {
        result->end = end_of(&child);
        result->refused = result->end == CLI_COMPARE_FAILED && is_refusal(child.code);
        if (result->end == CLI_COMPARE_FAILED)
            cli_child_explain(&child, result->failure, sizeof result->failure);
        if (result->end == CLI_COMPARE_OUT_OF_TIME) status = evaluate(out, result);
    }
    tr_status removed = tr_file_remove(NULL, out);
    tr_free(out);
    return status == TR_OK ? removed : status;
}
