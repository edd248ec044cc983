/* The hyperparameters of a run: the job's options of optimizer, schedule and batch, under the names that
 * --set takes. Defaults are left out, so that tables stay readable.
 */
#include "train/observe/tensorboard_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "io/region.h"

#include <assert.h>
#include <string.h>

#define HPARAMS_MAX 128

/* A list under way; its texts lie in the region. */
struct list {
    struct tr_region region;
    struct tr_hparam item[HPARAMS_MAX];
    int count;
};

/* `prefix`.`key` with a value, whose text may be freed then. */
static tr_status add(struct list *list, const char *prefix, const char *key, const struct tr_value *value)
{
    assert(list->count < HPARAMS_MAX);
    struct tr_hparam *hparam = &list->item[list->count];
    *hparam = (struct tr_hparam){
        .name = tr_region_format(&list->region, "%s%s%s", prefix, *prefix ? "." : "", key),
        .kind = TR_HPARAM_NUMBER,
        .number = value->number,
    };
    switch (value->kind) {
    case TR_VALUE_NONE:
        return TR_OK;
    case TR_VALUE_BOOL:
        hparam->kind = TR_HPARAM_BOOL;
        hparam->number = (double)value->integer;
        break;
    case TR_VALUE_INTEGER:
        hparam->number = (double)value->integer;
        break;
    case TR_VALUE_NUMBER:
        break;
    case TR_VALUE_TEXT:
        hparam->kind = TR_HPARAM_TEXT;
        hparam->text = tr_region_format(&list->region, "%s", value->text);
        break;
    }
    list->count++;
    return list->region.failed ? TR_ENOMEM : TR_OK;
}

static bool contains(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0) names++;
    return *names;
}

/* Adds those options of an object that `node`, from which it was read, contains, and those in `always`,
   which ends with NULL. */
static tr_status add_table(struct list *list, const char *prefix, const struct tr_option *table,
                           int32_t count, const void *object, const tr_config *node,
                           const char *const *always)
{
    for (int32_t i = 0; i < count; i++) {
        struct tr_value value;
        bool given = tr_config_get(node, table[i].key) && table[i].type != TR_OPTION_NODE;
        if (!given && !contains(always, table[i].key)) continue;
        TR_TRY(tr_options_get(table, i, object, &value));
        tr_status status = add(list, prefix, table[i].key, &value);
        tr_free(value.text);
        if (status != TR_OK) return status;
    }
    return TR_OK;
}

static tr_status add_number(struct list *list, const char *key, double number)
{
    return add(list, "", key, &(struct tr_value){.kind = TR_VALUE_NUMBER, .number = number});
}

static tr_status add_text(struct list *list, const char *key, const char *text)
{
    return add(list, "", key, &(struct tr_value){.kind = TR_VALUE_TEXT, .text = (char *)(uintptr_t)text});
}

static tr_status fill(struct list *list, const struct tr_tensorboard_settings *settings)
{
    static const char *const optimizer[] = {"rule", "rate", NULL}, *const schedule[] = {"kind", NULL},
                             *const train[] = {"batch", "microbatches", "steps", NULL};
    const struct tr_job *job = settings->job;
    const tr_config *node = tr_config_get(job->file.optimizer, "schedule");
    TR_TRY(add_number(list, "seed", (double)job->file.seed));
    TR_TRY(add_table(list, "optimizer", tr_optimizer_options, tr_optimizer_option_count, &job->optimizer,
                     job->file.optimizer, optimizer));
    TR_TRY(add_table(list, "optimizer.schedule", tr_schedule_options, tr_schedule_option_count,
                     &job->optimizer.schedule, node, schedule));
    TR_TRY(add_table(list, "train", tr_train_option_table, tr_train_option_count, &job->train, NULL, train));
    if (job->model->loss.label_smoothing > 0)
        TR_TRY(add_number(list, "loss.label_smoothing", (double)job->model->loss.label_smoothing));
    TR_TRY(add_number(list, "parameters", (double)job->model->parameter_total));
    TR_TRY(add_text(list, "strategy", settings->strategy));
    return add_number(list, "ranks", settings->ranks);
}

tr_status tensorboard_begin_session(tr_tensorboard *board, const struct tr_tensorboard_settings *settings)
{
    struct list *list = tr_alloc_zero(1, sizeof *list);
    if (!list) return TR_ENOMEM;
    tr_status status = fill(list, settings);
    if (status == TR_OK) status = tr_events_session_begin(board->run, list->item, list->count);
    tr_region_release(&list->region);
    tr_free(list);
    return status;
}
