/* Which combinations of strategy and number of workers are compared.
 *
 * A strategy without options stands for all variants that its class offers for comparisons. Impossible
 * combinations stay in the plan, with the reason.
 */
#include "cli/compare/compare.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "job/job.h"
#include "strategy/class.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORKERS "{workers}" /* in a variant: replaced by their number */

/* ---- cases ---- */

static struct cli_compare_case *add_case(struct cli_compare_plan *plan)
{
    struct cli_compare_case *more = tr_realloc(plan->cases, (size_t)plan->count + 1, sizeof *plan->cases);
    if (!more) return NULL;
    plan->cases = more;
    struct cli_compare_case *one = &more[plan->count++];
    *one = (struct cli_compare_case){0};
    return one;
}

/* `text` with the number of workers in place of each {workers}. */
static char *fill_in(const char *text, int workers)
{
    struct tr_text out = TR_TEXT_INIT;
    char *filled = NULL;
    for (const char *at; (at = strstr(text, WORKERS)); text = at + strlen(WORKERS)) {
        tr_text_add_bytes(&out, text, (size_t)(at - text));
        tr_text_addf(&out, "%d", workers);
    }
    tr_text_add(&out, text);
    return tr_text_finish(&out, &filled) == TR_OK ? filled : NULL;
}

/* `steps` > 0 keeps a job that counts epochs from opening its data. There are many steps, so that a
   schedule as long as the training has room for its warm-up. */
static tr_status open_job(const struct cli_compare_orders *orders, const char *strategy, int64_t steps,
                          struct tr_job **out)
{
    struct tr_job_settings settings = {
        .set = (const char *const *)orders->set->item,
        .set_count = orders->set->count,
        .strategy = strategy,
        .steps = steps,
        .first_of_strategy = tr_strategy_first_option,
    };
    return tr_job_open(orders->model, &settings, out);
}

/* Fills in a case whose strategy and workers are known. */
static tr_status look_at(const struct cli_compare_orders *orders, struct cli_compare_case *one)
{
    struct tr_job *job;
    struct tr_strategy_outline outline = {0};
    const char *name;
    bool asynchronous;
    int threads = orders->threads / one->workers;
    one->threads = threads > 1 ? threads : 1;
    TR_TRY(open_job(orders, one->strategy, CLI_COMPARE_MANY, &job));
    tr_status readable = tr_strategy_peek(job->file.strategy, &name, &asynchronous), status = readable;
    if (readable == TR_OK) status = tr_strategy_outline(job, one->workers, &outline);
    tr_job_destroy(&job);
    one->ranks = outline.ranks;
    one->asynchronous = outline.asynchronous;
    one->own_hash = outline.own_hash;
    if (status == TR_OK && (one->ranks > 1 || one->alone)) return TR_OK;
    if (readable != TR_OK || (status != TR_OK && status != TR_EINVAL)) return status;
    one->left_out =
        tr_strdup(status == TR_OK ? "a single process has nobody to share with" : tr_error_message());
    return one->left_out ? TR_OK : TR_ENOMEM;
}

/* The default strategy of a single process is the one that runs without others, whatever its name. */
static bool is_alone(const char *strategy, int workers)
{
    return workers == 1 && strcmp(strategy, tr_strategy_class_at(0)->name) == 0;
}

static tr_status add(const struct cli_compare_orders *orders, const char *strategy, int workers,
                     struct cli_compare_plan *plan)
{
    bool alone = is_alone(strategy, workers);
    if (alone && plan->count > 0) return TR_OK;
    struct cli_compare_case *one = add_case(plan);
    if (!one) return TR_ENOMEM;
    one->strategy = fill_in(strategy, workers);
    one->workers = workers;
    one->alone = alone;
    return one->strategy ? look_at(orders, one) : TR_ENOMEM;
}

static tr_status add_for_all_workers(const struct cli_compare_orders *orders, const char *strategy,
                                     struct cli_compare_plan *plan)
{
    for (int32_t i = 0; i < orders->workers->count; i++)
        TR_TRY(add(orders, strategy, (int)orders->workers->item[i], plan));
    return TR_OK;
}

/* ---- strategies ---- */

static tr_status add_class(const struct cli_compare_orders *orders, const struct tr_strategy_class *class,
                           struct cli_compare_plan *plan)
{
    if (!class->variants) return add_for_all_workers(orders, class->name, plan);
    for (const char *const *variant = class->variants; *variant; variant++) {
        char *strategy = tr_format("%s,%s", class->name, *variant);
        if (!strategy) return TR_ENOMEM;
        tr_status status = add_for_all_workers(orders, strategy, plan);
        tr_free(strategy);
        if (status != TR_OK) return status;
    }
    return TR_OK;
}

/* One strategy of the list: only a name, or with options. */
static tr_status add_named(const struct cli_compare_orders *orders, const char *text,
                           struct cli_compare_plan *plan)
{
    const struct tr_entry *entry;
    size_t length = strcspn(text, ",");
    char *name = tr_format("%.*s", (int)length, text);
    if (!name) return TR_ENOMEM;
    tr_status status = tr_registry_get(&tr_strategies, name, &entry);
    tr_free(name);
    if (status != TR_OK) return tr_fail_in(status, "--strategies");
    return text[length] ? add_for_all_workers(orders, text, plan)
                        : add_class(orders, (const struct tr_strategy_class *)entry, plan);
}

/* Items with "=" are options of the strategy before them. */
static tr_status add_list(const struct cli_compare_orders *orders, char *list, struct cli_compare_plan *plan)
{
    char *begin = list;
    while (*begin) {
        char *end = begin + strcspn(begin, ",");
        while (*end) {
            char *next = end + 1, *next_end = next + strcspn(next, ",");
            if (!memchr(next, '=', (size_t)(next_end - next))) break;
            end = next_end;
        }
        bool more = *end != '\0';
        *end = '\0';
        TR_TRY(add_named(orders, begin, plan));
        begin = more ? end + 1 : end;
    }
    return TR_OK;
}

static tr_status add_strategies(const struct cli_compare_orders *orders, struct cli_compare_plan *plan)
{
    if (strcmp(orders->strategies, "all") == 0) {
        for (int i = 0; tr_strategy_class_at(i); i++)
            TR_TRY(add_class(orders, tr_strategy_class_at(i), plan));
        return TR_OK;
    }
    char *list = tr_strdup(orders->strategies);
    if (!list) return TR_ENOMEM;
    tr_status status = add_list(orders, list, plan);
    tr_free(list);
    return status;
}

/* ---- the plan ---- */

/* Evaluations often enough to see when a target was met: as in the model file, otherwise eight per epoch. */
static tr_status plan_evaluations(const struct cli_compare_orders *orders, struct cli_compare_plan *plan)
{
    struct tr_job *job = NULL;
    struct tr_order order;
    tr_status status;
    TR_TRY_GOTO(open_job(orders, NULL, 0, &job), out);
    if (!tr_job_has_accuracy(job)) {
        status = tr_fail(TR_EINVAL, "--until names an accuracy, but \"%s\" trains no classification",
                         orders->model);
        goto out;
    }
    plan->evaluate_every = job->train.evaluate_every;
    if (plan->evaluate_every > 0) goto out;
    TR_TRY_GOTO(tr_job_open_set(job, TR_SET_TRAIN), out);
    TR_TRY_GOTO(tr_job_order(job, &order), out);
    plan->evaluate_every = order.steps_per_epoch / 8 > 0 ? order.steps_per_epoch / 8 : 1;
out:
    tr_job_destroy(&job);
    return status;
}

tr_status cli_compare_plan(const struct cli_compare_orders *orders, struct cli_compare_plan *plan)
{
    *plan = (struct cli_compare_plan){0};
    TR_TRY(add(orders, tr_strategy_class_at(0)->name, 1, plan));
    TR_TRY(add_strategies(orders, plan));
    return orders->until > 0 ? plan_evaluations(orders, plan) : TR_OK;
}

void cli_compare_plan_release(struct cli_compare_plan *plan)
{
    for (int i = 0; i < plan->count; i++) {
        tr_free(plan->cases[i].strategy);
        tr_free(plan->cases[i].left_out);
    }
    tr_free(plan->cases);
    *plan = (struct cli_compare_plan){0};
}
