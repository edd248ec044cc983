#include "cli/train/facts.h"

#include "base/alloc.h"
#include "base/text/text.h"

#include <stdio.h>
#include <string.h>

tr_status cli_facts_begin(struct cli_facts *facts, const tr_trainer *trainer)
{
    facts->info = (struct tr_train_info)TR_TRAIN_INFO_INIT;
    tr_status status = tr_trainer_info(trainer, &facts->info);
    if (status != TR_OK) return status;
    facts->out_word = tr_text_word(facts->out);
    return facts->out_word ? TR_OK : TR_ENOMEM;
}

void cli_facts_release(struct cli_facts *facts)
{
    tr_free(facts->checkpoint);
    tr_free(facts->out_word);
    facts->checkpoint = facts->out_word = NULL;
}

void cli_facts_take(struct cli_facts *facts, const struct tr_train_event *event)
{
    if (event->kind == TR_EVENT_STEP || event->kind == TR_EVENT_PROGRESS) {
        facts->last = *event;
        if (facts->first.steps == 0) facts->first = *event;
    }
    if (event->kind == TR_EVENT_EVALUATION) {
        facts->test = *event;
        snprintf(facts->test_name, sizeof facts->test_name, "%s", event->name);
    }
    if (event->kind == TR_EVENT_CHECKPOINT) {
        tr_free(facts->checkpoint);
        facts->checkpoint = tr_strdup(event->name); /* NULL: the summary leaves it out */
    }
}

/* ---- figures ---- */

/* Examples in the first `steps` steps. */
static int64_t examples_until(const struct tr_train_info *info, int64_t steps)
{
    int64_t per_epoch = info->steps_per_epoch * info->batch;
    if (per_epoch > info->train_examples) per_epoch = info->train_examples;
    int64_t rest = steps % info->steps_per_epoch * info->batch;
    return steps / info->steps_per_epoch * per_epoch + (rest < per_epoch ? rest : per_epoch);
}

bool cli_facts_monitors(const struct tr_train_info *info)
{
    return strcmp(info->monitor, "loss") != 0 && strcmp(info->monitor, "accuracy") != 0 &&
           strcmp(info->monitor, "perplexity") != 0;
}

double cli_facts_speed(const struct cli_facts *facts)
{
    if (facts->last.seconds <= 0) return 0;
    int64_t examples =
        examples_until(&facts->info, facts->last.step) - examples_until(&facts->info, facts->info.step);
    return (double)examples / facts->last.seconds;
}

/* A single step measures the length of steps only if it took this many seconds; otherwise cold memory and
   caches dominate. */
#define TELLING 1.0

/* By the mean time of a step since the first event, which includes the cold start; negative before any. */
double cli_facts_seconds_left(const struct cli_facts *facts, const struct tr_train_event *event)
{
    const struct tr_train_event *first = &facts->first;
    int64_t done = event->step - facts->info.step;
    double seconds = event->seconds;
    if (event->step > first->step && event->seconds > first->seconds) {
        done = event->step - first->step;
        seconds -= first->seconds;
    } else if (done <= 0 || (done == 1 && seconds < TELLING) || seconds <= 0) {
        return -1;
    }
    return seconds / (double)done * (double)(event->steps - event->step);
}
