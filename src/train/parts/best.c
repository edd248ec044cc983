#include "train/parts/best.h"

#include <math.h>
#include <string.h>

void trainer_best_begin(struct trainer_best *best)
{
    *best = (struct trainer_best){.lowest_loss = INFINITY};
    trainer_best_forget(best);
}

void trainer_best_forget(struct trainer_best *best)
{
    best->kept.step = -1;
    best->kept.loss = INFINITY;
    best->kept.accuracy = 0;
}

void trainer_best_evaluated(struct trainer_best *best, const struct tr_train_event *event)
{
    if (event->loss < best->lowest_loss) {
        best->lowest_loss = event->loss;
        best->worse_evaluations = 0;
    } else {
        best->worse_evaluations++;
    }
    best->last_accuracy = event->accuracy;
}

bool trainer_best_ends_early(const struct trainer_best *best, const struct tr_train_options *train)
{
    bool reached = train->until_accuracy > 0 && best->last_accuracy >= train->until_accuracy;
    return reached || (train->patience > 0 && best->worse_evaluations >= train->patience);
}

bool trainer_best_is_better(const struct trainer_best *best, const struct tr_train_options *train,
                            const struct tr_train_event *event)
{
    if (!tr_train_keeps_best(train) || isnan(event->loss)) return false;
    if (best->kept.step < 0) return true;
    if (train->until_accuracy > 0 && event->accuracy != best->kept.accuracy)
        return event->accuracy > best->kept.accuracy;
    return event->loss < best->kept.loss;
}

void trainer_best_keep(struct trainer_best *best, const struct tr_train_event *event)
{
    best->kept.step = event->step;
    best->kept.loss = event->loss;
    best->kept.accuracy = event->accuracy;
}

/* ---- in checkpoints ---- */

#define LOWEST_LOSS       "best_loss"
#define WORSE_EVALUATIONS "worse_evaluations"
#define LAST_ACCURACY     "last_accuracy"
#define KEPT_STEP         "best_step"
#define KEPT_LOSS         "best_step_loss"
#define KEPT_ACCURACY     "best_step_accuracy"

void trainer_best_write(const struct trainer_best *best,
                        struct tr_checkpoint_metric metrics[TRAINER_BEST_METRICS])
{
    const struct tr_checkpoint_metric all[TRAINER_BEST_METRICS] = {
        {LOWEST_LOSS, best->lowest_loss},     {WORSE_EVALUATIONS, (double)best->worse_evaluations},
        {LAST_ACCURACY, best->last_accuracy}, {KEPT_STEP, (double)best->kept.step},
        {KEPT_LOSS, best->kept.loss},         {KEPT_ACCURACY, best->kept.accuracy},
    };
    memcpy(metrics, all, sizeof all);
}

void trainer_best_read(struct trainer_best *best, const struct tr_checkpoint_metric *metric)
{
    const char *name = metric->name;
    double value = metric->value;
    bool counts = value >= 0 && value < 0x1p53;
    if (strcmp(name, LOWEST_LOSS) == 0) best->lowest_loss = isnan(value) ? INFINITY : value;
    if (strcmp(name, WORSE_EVALUATIONS) == 0 && counts) best->worse_evaluations = (int64_t)value;
    if (strcmp(name, LAST_ACCURACY) == 0 && !isnan(value)) best->last_accuracy = value;
    if (strcmp(name, KEPT_STEP) == 0 && counts) best->kept.step = (int64_t)value;
    if (strcmp(name, KEPT_LOSS) == 0) best->kept.loss = value;
    if (strcmp(name, KEPT_ACCURACY) == 0) best->kept.accuracy = value;
}
