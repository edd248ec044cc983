/* The results of a comparison for programs: CSV and JSON. */
#include "cli/compare/compare.h"

#include "base/text/json.h"

#include <math.h>
#include <string.h>

static const char *const ends[] = {
    [CLI_COMPARE_NOT_RUN] = "not run",         [CLI_COMPARE_DONE] = "done",
    [CLI_COMPARE_OUT_OF_TIME] = "out of time", [CLI_COMPARE_STOPPED] = "stopped",
    [CLI_COMPARE_FAILED] = "failed",
};

static const char *const hashes[] = {
    [CLI_HASH_OTHER] = "",
    [CLI_HASH_EQUAL] = "yes",
    [CLI_HASH_NOT_EQUAL] = "no",
};

/* Empty without a value. */
static void add_number(struct tr_text *text, double value)
{
    char buffer[TR_TEXT_NUMBER_SIZE];
    tr_text_add(text, ",");
    if (!isnan(value)) tr_text_add(text, tr_text_from_double(value, buffer));
}

static void add_text(struct tr_text *text, const char *value)
{
    tr_text_add(text, "\"");
    for (; *value; value++) {
        if (*value == '"') tr_text_add(text, "\"");
        tr_text_add_bytes(text, value, 1);
    }
    tr_text_add(text, "\"");
}

static void add_row(const struct cli_compare_plan *plan, const struct cli_compare_result *results, int index,
                    struct tr_text *text)
{
    const struct cli_compare_case *one = &plan->cases[index];
    const struct cli_compare_result *result = &results[index];
    const struct cli_statistics *sum = &result->statistics;
    bool ran = cli_compare_has_run(result);
    bool shares = result->has_statistics && one->ranks > 1, stale = shares && one->asynchronous;
    add_text(text, one->strategy);
    tr_text_addf(text, ",%d,%d,%d,%s", one->workers, one->ranks, one->threads,
                 one->left_out ? "left out" : ends[result->end]);
    add_number(text, ran ? (double)result->step : NAN);
    add_number(text, ran ? result->seconds : NAN);
    add_number(text, ran ? result->examples_per_second : NAN);
    add_number(text, cli_compare_speedup(results, index));
    add_number(text, ran ? result->target_seconds : NAN);
    add_number(text, ran ? result->target_epochs : NAN);
    add_number(text, ran ? result->accuracy : NAN);
    add_number(text, ran ? result->loss : NAN);
    add_number(text, stale ? sum->mean_staleness : NAN);
    add_number(text, stale ? sum->most_staleness : NAN);
    add_number(text, stale ? (double)result->dropped : NAN);
    add_number(text, shares ? sum->sent : NAN);
    add_number(text, shares ? sum->shared : NAN);
    add_number(text, shares ? sum->computing : NAN);
    add_number(text, shares ? sum->waiting : NAN);
    tr_text_addf(text, ",%s,%s,", result->hash, hashes[cli_compare_hash(plan, results, index)]);
    add_text(text, one->left_out ? one->left_out : result->failure);
    tr_text_addf(text, ",%s\n", !ran ? "" : cli_compare_doubtful(plan, results, index) ? "yes" : "no");
}

tr_status cli_compare_csv(const struct cli_compare_plan *plan, const struct cli_compare_result *results,
                          char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(
        &text,
        "strategy,workers,processes,threads,end,steps,seconds,examples_per_second,speedup,"
        "target_seconds,target_epochs,accuracy,loss,staleness_mean,staleness_most,dropped,"
        "bytes_sent_per_step,bytes_shared_per_step,computing,waiting,hash,hash_equal,reason,doubtful\n");
    for (int i = 0; i < plan->count; i++) add_row(plan, results, i, &text);
    return tr_text_finish(&text, out);
}

/* A missing number is left out. */
static void add_member(struct tr_json_writer *json, const char *key, double value)
{
    if (!isnan(value)) tr_json_double(json, key, value);
}

static void add_run(const struct cli_compare_plan *plan, const struct cli_compare_result *results, int index,
                    struct tr_json_writer *json)
{
    const struct cli_compare_result *result = &results[index];
    const struct cli_statistics *sum = &result->statistics;
    enum cli_compare_hash hash = cli_compare_hash(plan, results, index);
    tr_json_integer(json, "steps", result->step);
    tr_json_double(json, "seconds", result->seconds);
    tr_json_double(json, "examples_per_second", result->examples_per_second);
    add_member(json, "speedup", cli_compare_speedup(results, index));
    add_member(json, "target_seconds", result->target_seconds);
    add_member(json, "target_epochs", result->target_epochs);
    add_member(json, "accuracy", result->accuracy);
    add_member(json, "loss", result->loss);
    tr_json_text(json, "hash", result->hash);
    if (hash != CLI_HASH_OTHER) tr_json_bool(json, "hash_equal", hash == CLI_HASH_EQUAL);
    tr_json_bool(json, "doubtful", cli_compare_doubtful(plan, results, index));
    if (result->again > 0) tr_json_double(json, "examples_per_second_again", result->again);
    if (!result->has_statistics || plan->cases[index].ranks < 2) return;
    tr_json_double(json, "bytes_sent_per_step", sum->sent);
    tr_json_double(json, "bytes_shared_per_step", sum->shared);
    tr_json_double(json, "computing", sum->computing);
    tr_json_double(json, "waiting", sum->waiting);
    if (!plan->cases[index].asynchronous) return;
    tr_json_double(json, "staleness_mean", sum->mean_staleness);
    tr_json_integer(json, "staleness_most", sum->most_staleness);
    tr_json_integer(json, "dropped", result->dropped);
}

static void add_case(const struct cli_compare_plan *plan, const struct cli_compare_result *results, int index,
                     struct tr_json_writer *json)
{
    const struct cli_compare_case *one = &plan->cases[index];
    const struct cli_compare_result *result = &results[index];
    tr_json_open_object(json, NULL);
    tr_json_text(json, "strategy", one->strategy);
    tr_json_integer(json, "workers", one->workers);
    if (one->left_out) {
        tr_json_text(json, "end", "left out");
        tr_json_text(json, "reason", one->left_out);
    } else {
        tr_json_integer(json, "processes", one->ranks);
        tr_json_integer(json, "threads", one->threads);
        tr_json_text(json, "end", ends[result->end]);
        if (result->end == CLI_COMPARE_FAILED) tr_json_text(json, "reason", result->failure);
        if (cli_compare_has_run(result)) add_run(plan, results, index, json);
    }
    tr_json_close_object(json);
}

tr_status cli_compare_json(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                           const struct cli_compare_result *results, char **out)
{
    struct tr_json_writer json;
    tr_json_begin(&json, true);
    tr_json_text(&json, "model", orders->model);
    if (orders->until > 0) tr_json_double(&json, "until_accuracy", orders->until);
    if (orders->budget > 0) tr_json_double(&json, "budget_seconds", orders->budget);
    tr_json_integer(&json, "threads", orders->threads);
    tr_json_open_array(&json, "runs");
    for (int i = 0; i < plan->count; i++) add_case(plan, results, i, &json);
    tr_json_close_array(&json);
    tr_json_integer(&json, "best", cli_compare_best(orders, plan, results));
    return tr_json_finish(&json, out);
}
