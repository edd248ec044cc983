/* The learning rate between two steps: read, and set instead of the schedule's. */
#include "base/fail.h"
#include "train/loop/internal.h"

#include <float.h>
#include <math.h>

tr_status tr_trainer_rate(const tr_trainer *trainer, double *rate)
{
    const struct tr_optimizer *optimizer = &trainer->job->optimizer;
    *rate = tr_schedule_rate(&optimizer->schedule, optimizer->rate, trainer->variables.step);
    return TR_OK;
}

tr_status trainer_take_rate(tr_trainer *trainer)
{
    struct tr_schedule *schedule = &trainer->job->optimizer.schedule;
    trainer->rate.wanted = false;
    TR_TRY(
        tr_strategy_broadcast(trainer->variables.strategy, &trainer->rate.value, sizeof trainer->rate.value));
    schedule->is_given = !isnan(trainer->rate.value);
    schedule->given = schedule->is_given ? trainer->rate.value : 0;
    trainer->directory.saved_step = -1; /* an earlier checkpoint of this step has another rate */
    trainer_receipt_renew(trainer);
    return TR_OK;
}

tr_status tr_trainer_set_rate(tr_trainer *trainer, double rate)
{
    if (!isnan(rate) && !(rate >= 0 && rate <= FLT_MAX))
        return tr_fail(
            TR_EINVAL,
            "a learning rate of %g cannot be set; give one from 0 to %g, or NaN for the schedule's", rate,
            (double)FLT_MAX);
    if (tr_strategy_is_asynchronous(trainer->variables.strategy))
        return tr_fail(
            TR_EUNSUPPORTED,
            "in an asynchronous run of the strategy %s there is no step from which on all processes "
            "could have another learning rate; give the job a schedule, or choose a synchronous strategy",
            tr_strategy_name(trainer->variables.strategy));
    TR_TRY(trainer_check_process(trainer));
    trainer->rate.value = rate;
    trainer->rate.wanted = trainer->rate.running;
    return trainer->rate.running ? TR_OK : trainer_take_rate(trainer);
}
