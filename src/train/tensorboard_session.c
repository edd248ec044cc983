/* The hyperparameters of a run: what its job says about the optimizer and the batch, under the names that
 * --set takes, and the measures that they are judged by. */
#include "train/tensorboard_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "io/parts.h"

#include <assert.h>
#include <string.h>

#define HPARAMS_MAX 128

/* A list under way; its texts lie in the parts. */
struct list {
    struct tr_parts parts;
    struct tr_hparam item[HPARAMS_MAX];
    int count;
};

/* `prefix`.`key` with a value, the text of which may be freed then. */
static tr_status add(struct list *list, const char *prefix, const char *key, const struct tr_value *value)
{
    assert(list->count < HPARAMS_MAX);
    struct tr_hparam *hparam = &list->item[list->count];
    *hparam = (struct tr_hparam){
        .name = tr_parts_format(&list->parts, "%s%s%s", prefix, *prefix ? "." : "", key),
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
        hparam->text = tr_parts_format(&list->parts, "%s", value->text);
        break;
    }
    list->count++;
    return list->parts.failed ? TR_ENOMEM : TR_OK;
}

/* Adds the options that belong to the kind of the object; `only` names the wanted ones and ends with NULL, or
   is NULL: all. */
static tr_status add_table(struct list *list, const char *prefix, const struct tr_option *table,
                           int32_t count, const void *object, const char *const *only)
{
    for (int32_t i = 0; i < count; i++) {
        struct tr_value value;
        const char *const *wanted = only;
        while (wanted && *wanted && strcmp(*wanted, table[i].key) != 0) wanted++;
        if (wanted && !*wanted) continue;
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
    static const char *const train[] = {"batch", "microbatches", "steps", "shuffle", NULL};
    const struct tr_job *job = settings->job;
    TR_TRY(add_text(list, "name", job->file.name));
    TR_TRY(add_number(list, "seed", (double)job->file.seed));
    TR_TRY(
        add_table(list, "optimizer", tr_optimizer_options, tr_optimizer_option_count, &job->optimizer, NULL));
    TR_TRY(add_table(list, "optimizer.schedule", tr_schedule_options, tr_schedule_option_count,
                     &job->optimizer.schedule, NULL));
    TR_TRY(add_table(list, "train", tr_train_option_table, tr_train_option_count, &job->train, train));
    TR_TRY(add_number(list, "parameters", (double)job->model->parameter_total));
    TR_TRY(add_text(list, "strategy", settings->strategy));
    return add_number(list, "ranks", settings->ranks);
}

/* What is measured: on test and validation data where there are any, and in training. */
static int metrics_of(const struct tr_job *job, struct tr_hparam_metric *metrics)
{
    static const struct tr_hparam_metric all[TR_SETS][2] = {
        [TR_SET_TEST] = {{"test", TENSORBOARD_ACCURACY, "test accuracy", true},
                         {"test", TENSORBOARD_LOSS, "test loss", true}},
        [TR_SET_VALIDATION] = {{"validation", TENSORBOARD_ACCURACY, "validation accuracy", true},
                               {"validation", TENSORBOARD_LOSS, "validation loss", true}},
        [TR_SET_TRAIN] = {{"", TENSORBOARD_ACCURACY, "training accuracy", false},
                          {"", TENSORBOARD_LOSS, "training loss", false}},
    };
    static const enum tr_data_set order[] = {TR_SET_TEST, TR_SET_VALIDATION, TR_SET_TRAIN};
    int count = 0;
    for (int i = 0; i < TR_SETS; i++)
        for (int k = tr_job_is_classification(job) ? 0 : 1; tr_job_has_set(job, order[i]) && k < 2; k++)
            metrics[count++] = all[order[i]][k];
    return count;
}

tr_status tensorboard_begin_session(tr_tensorboard *board, const struct tr_tensorboard_settings *settings)
{
    struct tr_hparam_metric metrics[2 * TR_SETS];
    struct list *list = tr_alloc_zero(1, sizeof *list);
    if (!list) return TR_ENOMEM;
    tr_status status = fill(list, settings);
    if (status == TR_OK)
        status = tr_events_session_begin(board->run, list->item, list->count, metrics,
                                         metrics_of(settings->job, metrics));
    tr_parts_release(&list->parts);
    tr_free(list);
    return status;
}
