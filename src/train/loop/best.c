/* Which evaluation of a run is its best, and whether its weights are there. */
#include "base/alloc.h"
#include "base/fail.h"
#include "train/loop/internal.h"

#include <inttypes.h>
#include <math.h>

enum tr_data_set trainer_judging_set(const tr_trainer *trainer)
{
    if (tr_job_has_set(trainer->job, TR_SET_VALIDATION)) return TR_SET_VALIDATION;
    return tr_job_has_set(trainer->job, TR_SET_TEST) ? TR_SET_TEST : TR_SETS;
}

/* By what the run waits for: an accuracy, else a loss. Of equal accuracies the lower loss is better, of equal
   losses the earlier one. */
bool trainer_is_best(const tr_trainer *trainer, const struct tr_train_event *event)
{
    const struct trainer_best *best = &trainer->best;
    const struct tr_train_options *train = &trainer->job->train;
    if (!tr_train_keeps_best(train) || isnan(event->loss)) return false;
    if (best->step < 0) return true;
    if (train->until_accuracy > 0 && event->accuracy != best->accuracy)
        return event->accuracy > best->accuracy;
    return event->loss < best->loss;
}

/* Adds a line to the note on what was resumed. */
static tr_status add_note(tr_trainer *trainer, int64_t step)
{
    char *note = tr_format("%sthe weights of the best evaluation so far, after step %" PRId64
                           ", are not in %s: the best counts from here on\n",
                           trainer->resume_note, step, trainer->out);
    if (!note) return TR_ENOMEM;
    tr_free(trainer->resume_note);
    trainer->resume_note = note;
    return TR_OK;
}

tr_status trainer_settle_best(tr_trainer *trainer)
{
    struct {
        int32_t status, there;
    } found = {TR_OK, false};
    int64_t step = trainer->best.step;
    if (!trainer->out || !tr_train_keeps_best(&trainer->job->train)) return TR_OK;
    if (trainer_is_root(trainer)) {
        bool there = false;
        found.status = (int32_t)tr_checkpoint_settle_best(NULL, trainer->out, step, &there);
        found.there = there;
    }
    TR_TRY(tr_strategy_share(trainer->strategy, &found, sizeof found));
    if (found.status != TR_OK)
        return trainer_is_root(trainer)
                   ? (tr_status)found.status
                   : tr_fail((tr_status)found.status, "rank 0 could not mark the best checkpoint");
    if (step < 0 || found.there) return TR_OK;
    trainer->best = (struct trainer_best){.step = -1, .loss = INFINITY};
    return add_note(trainer, step);
}
