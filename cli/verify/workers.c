/* A verification in several processes: each is another run of this program, with a part of the segments. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/json.h"
#include "base/threads/team.h"
#include "cli/program/child.h"
#include "cli/program/signals.h"
#include "cli/verify/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct worker {
    struct cli_child child;
    struct cli_verify_conclusion conclusion;
    bool heard;
};

/* The line that a child prints with --json. */
static void hear(void *user, const struct tr_json_value *object)
{
    struct worker *worker = user;
    struct tr_verify_result *result = &worker->conclusion.result;
    const char *word = tr_json_text_or_empty(object, "outcome");
    for (int i = TR_VERIFIED; i <= TR_UNVERIFIABLE; i++) {
        if (strcmp(word, cli_verify_word((enum tr_verify_outcome)i)) != 0) continue;
        result->outcome = (enum tr_verify_outcome)i;
        worker->heard = true;
    }
    result->step = tr_json_integer_or(object, "step", 0);
    result->segments = tr_json_integer_or(object, "segments", 0);
    result->checked = tr_json_integer_or(object, "checked", 0);
    result->steps = tr_json_integer_or(object, "steps", 0);
    snprintf(result->hash, sizeof result->hash, "%s", tr_json_text_or_empty(object, "hash"));
    tr_free(worker->conclusion.text);
    worker->conclusion.text = tr_strdup(tr_json_text_or_empty(object, "text"));
}

static void make_words(const struct cli_verify_options *options, int number, struct cli_arguments *words)
{
    int threads = options->device.threads;
    if (threads == 0) threads = tr_team_processors() / options->workers;
    cli_arguments_add_self(words);
    cli_arguments_add(words, "verify");
    cli_arguments_add(words, "%s", options->path);
    cli_arguments_add(words, "--json");
    cli_arguments_add(words, "--share=%d/%d", number + 1, options->workers);
    cli_arguments_add(words, "--threads=%d", threads > 0 ? threads : 1);
    cli_arguments_add(words, "--segments=%" PRId64, options->segments);
    cli_arguments_add(words, "--seed=%" PRId64, options->seed);
    cli_arguments_add(words, "--device=%s", options->device.device);
    if (options->model) cli_arguments_add(words, "--model=%s", options->model);
    if (options->from) cli_arguments_add(words, "--from=%s", options->from);
    if (options->expect) cli_arguments_add(words, "--expect=%s", options->expect);
    if (options->device.isa) cli_arguments_add(words, "--isa=%s", options->device.isa);
    if (!options->memory_check) cli_arguments_add(words, "--no-memory-check");
    if (!options->cache.use) cli_arguments_add(words, "--no-data-cache");
    if (options->cache.directory) cli_arguments_add(words, "--data-cache-dir=%s", options->cache.directory);
    cli_arguments_add(words, "--data-cache-size=%" PRId64, options->cache.megabytes);
    for (int32_t i = 0; i < options->set.count; i++)
        cli_arguments_add(words, "--set=%s", options->set.item[i]);
}

static tr_status start(const struct cli_verify_options *options, int number, struct worker *worker)
{
    struct cli_arguments words = {0};
    worker->child = (struct cli_child){.hear = hear, .user = worker};
    make_words(options, number, &words);
    tr_status status = words.failed ? TR_ENOMEM : cli_child_start(&worker->child, &words);
    cli_arguments_release(&words);
    return status;
}

/* Waits until the first `count` have ended. */
static void attend(struct worker *workers, int count)
{
    bool ended[CLI_CHILDREN_MOST] = {false};
    for (;;) {
        struct cli_child *running[CLI_CHILDREN_MOST];
        int left = 0;
        for (int i = 0; i < count; i++)
            if (!ended[i]) running[left++] = &workers[i].child;
        if (left == 0) return;
        cli_child_wait(running, left);
        for (int i = 0; i < count; i++)
            if (!ended[i]) ended[i] = cli_child_attend(&workers[i].child);
    }
}

/* Whether `a` ranks above `b`: the first difference before missing segments, both before verified ones. */
static bool weighs_more(const struct tr_verify_result *a, const struct tr_verify_result *b)
{
    static const int weight[] = {[TR_VERIFIED] = 0, [TR_DIFFERS] = 2, [TR_UNVERIFIABLE] = 1};
    if (a->outcome != b->outcome) return weight[a->outcome] > weight[b->outcome];
    return a->outcome == TR_DIFFERS && a->step < b->step;
}

static tr_status combine(struct worker *workers, int count, struct cli_verify_conclusion *out)
{
    int64_t checked = 0, steps = 0;
    const struct worker *first = &workers[0];
    const char *hash = "";
    for (int i = 0; i < count; i++) {
        const struct tr_verify_result *result = &workers[i].conclusion.result;
        char why[TR_MESSAGE_SIZE];
        cli_child_explain(&workers[i].child, why, sizeof why);
        if (!workers[i].heard)
            return tr_fail(cli_signals_received() ? TR_EINTERRUPTED : TR_EIO,
                           "process %d of %d did not end with an outcome: %s", i + 1, count, why);
        checked += result->checked;
        steps += result->steps;
        if (result->hash[0]) hash = result->hash;
        if (weighs_more(result, &first->conclusion.result)) first = &workers[i];
    }
    out->result = first->conclusion.result;
    out->result.checked = checked;
    out->result.steps = steps;
    snprintf(out->result.hash, sizeof out->result.hash, "%s", hash);
    out->text =
        out->result.outcome == TR_VERIFIED
            ? tr_format("%" PRId64 " of %" PRId64 " segments came out as the receipt says, by %d processes",
                        checked, out->result.segments, count)
            : tr_strdup(first->conclusion.text ? first->conclusion.text : "");
    return out->text ? TR_OK : TR_ENOMEM;
}

tr_status cli_verify_by_workers(const struct cli_verify_options *options, struct cli_verify_conclusion *out)
{
    int count = 0;
    tr_status status = TR_OK;
    if (options->share)
        return tr_fail(TR_EINVAL,
                       "give --workers or --share, not both; with --share, start one command for each share");
    struct worker *workers = tr_alloc_zero((size_t)options->workers, sizeof *workers);
    if (!workers) return TR_ENOMEM;
    cli_signals_catch(NULL, "stopping");
    for (; status == TR_OK && count < options->workers; count++)
        status = start(options, count, &workers[count]);
    attend(workers, status == TR_OK ? count : count - 1);
    if (status == TR_OK) status = combine(workers, count, out);
    cli_signals_release();
    for (int i = 0; i < options->workers; i++) tr_free(workers[i].conclusion.text);
    tr_free(workers);
    return status;
}
