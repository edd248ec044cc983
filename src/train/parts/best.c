#include "train/parts/best.h"

#include "job/file/monitor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void trainer_best_begin(struct trainer_best *best, const char *monitor)
{
    *best = (struct trainer_best){.monitor = monitor, .least_cost = INFINITY};
    trainer_best_forget(best);
}

double trainer_best_figure(const char *monitor, const struct tr_train_event *event)
{
    const char *name = tr_monitor_figure(monitor);
    const struct tr_metrics *metrics = event->metrics;
    if (strcmp(name, "loss") == 0) return event->loss;
    if (strcmp(name, "accuracy") == 0) return event->accuracy;
    for (int i = 0; metrics && i < metrics->count; i++)
        if (strcmp(metrics->metric[i].name, name) == 0) return metrics->metric[i].value;
    return strcmp(name, "perplexity") == 0 ? event->perplexity : NAN;
}

/* Lower is better; NaN where the figure is not known. */
static double cost_of(const struct trainer_best *best, const struct tr_train_event *event)
{
    return tr_monitor_cost(best->monitor, trainer_best_figure(best->monitor, event));
}

void trainer_best_forget(struct trainer_best *best)
{
    best->kept.step = -1;
    best->kept.loss = INFINITY;
    best->kept.accuracy = 0;
    best->kept.figure = NAN;
}

void trainer_best_evaluated(struct trainer_best *best, const struct tr_train_event *event)
{
    double cost = cost_of(best, event);
    if (cost < best->least_cost) {
        best->least_cost = cost;
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
    double cost = cost_of(best, event), kept = tr_monitor_cost(best->monitor, best->kept.figure);
    if (!tr_train_keeps_best(train) || isnan(event->loss)) return false;
    if (best->monitor && isnan(cost)) return false;
    if (best->kept.step < 0) return true;
    if (best->monitor && cost != kept) return isnan(kept) || cost < kept;
    if (!best->monitor && train->until_accuracy > 0 && event->accuracy != best->kept.accuracy)
        return event->accuracy > best->kept.accuracy;
    return event->loss < best->kept.loss;
}

void trainer_best_keep(struct trainer_best *best, const struct tr_train_event *event)
{
    best->kept.step = event->step;
    best->kept.loss = event->loss;
    best->kept.accuracy = event->accuracy;
    best->kept.figure = trainer_best_figure(best->monitor, event);
}

/* ---- in checkpoints ---- */

#define COST              "best_" /* and the name of the figure */
#define WORSE_EVALUATIONS "worse_evaluations"
#define LAST_ACCURACY     "last_accuracy"
#define KEPT_STEP         "best_step"
#define KEPT_LOSS         "best_step_loss"
#define KEPT_ACCURACY     "best_step_accuracy"
#define KEPT_FIGURE       "best_step_monitor_"

int64_t trainer_best_write(const struct trainer_best *best,
                           struct tr_checkpoint_metric metrics[TRAINER_BEST_METRICS],
                           char name[2][TRAINER_BEST_NAME])
{
    const char *figure = tr_monitor_figure(best->monitor);
    snprintf(name[0], TRAINER_BEST_NAME, COST "%s", figure);
    snprintf(name[1], TRAINER_BEST_NAME, KEPT_FIGURE "%s", figure);
    const struct tr_checkpoint_metric all[TRAINER_BEST_METRICS] = {
        {name[0], best->least_cost},          {WORSE_EVALUATIONS, (double)best->worse_evaluations},
        {LAST_ACCURACY, best->last_accuracy}, {KEPT_STEP, (double)best->kept.step},
        {KEPT_LOSS, best->kept.loss},         {KEPT_ACCURACY, best->kept.accuracy},
        {name[1], best->kept.figure},
    };
    memcpy(metrics, all, sizeof all);
    return best->monitor ? TRAINER_BEST_METRICS : TRAINER_BEST_METRICS - 1;
}

/* Whether `name` is `begin` and then the figure that judges. */
static bool is_of_figure(const struct trainer_best *best, const char *name, const char *begin)
{
    size_t length = strlen(begin);
    return strncmp(name, begin, length) == 0 && strcmp(name + length, tr_monitor_figure(best->monitor)) == 0;
}

void trainer_best_read(struct trainer_best *best, const struct tr_checkpoint_metric *metric)
{
    const char *name = metric->name;
    double value = metric->value;
    bool counts = value >= 0 && value < 0x1p53;
    if (is_of_figure(best, name, COST)) best->least_cost = isnan(value) ? INFINITY : value;
    if (strcmp(name, WORSE_EVALUATIONS) == 0 && counts) best->worse_evaluations = (int64_t)value;
    if (strcmp(name, LAST_ACCURACY) == 0 && !isnan(value)) best->last_accuracy = value;
    if (strcmp(name, KEPT_STEP) == 0 && counts) best->kept.step = (int64_t)value;
    if (strcmp(name, KEPT_LOSS) == 0) best->kept.loss = value;
    if (strcmp(name, KEPT_ACCURACY) == 0) best->kept.accuracy = value;
    if (is_of_figure(best, name, KEPT_FIGURE)) best->kept.figure = value;
}
