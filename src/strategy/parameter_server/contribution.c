#include "strategy/parameter_server/contribution.h"

#include "base/fail.h"
#include "base/numbers/tree.h"

#include <math.h>

tr_status ps_contribution_compute(tr_strategy *strategy, tr_variables *variables, int parts, int64_t number,
                                  struct ps_figures *out)
{
    tr_gradient *gradient = strategy->replicas->gradient;
    int64_t batch = number / parts, part = number % parts;
    int64_t microbatches = strategy->job->train.microbatches, floats = strategy->job->model->arena_floats;
    float none[TR_PASS_SUMS] = {0};
    if (parts > 1)
        tr_gradient_narrow(gradient, tr_cut(microbatches, parts, part),
                           tr_cut(microbatches, parts, part + 1));
    TR_TRY(tr_variables_begin_step(variables, batch));
    TR_TRY(tr_driver_compute(strategy, batch, &out->examples));
    const float *sums = tr_gradient_sums(gradient);
    if (out->examples == 0) {
        /* A part of a ragged batch with fewer rows than microbatches. */
        struct tr_op_fill zero = {floats + TR_PASS_SUMS, 0, tr_gradient_slots(gradient)};
        TR_TRY(tr_device_fill(strategy->device, &zero));
        TR_TRY(tr_device_wait(strategy->device));
        sums = none;
    }
    out->loss = sums[0];
    out->correct = sums[1];
    return TR_OK;
}

bool ps_update_note(const struct tr_job *job, struct ps_update *update, struct ps_news *news,
                    const struct ps_figures *contribution, bool first, bool completes)
{
    if (first) *update = (struct ps_update){0};
    if (isfinite(contribution->loss)) {
        update->examples += contribution->examples;
        update->loss += contribution->loss;
        update->correct += contribution->correct;
    } else {
        update->spoiled = true;
    }
    struct tr_verdict verdict = tr_judge(job, !update->spoiled, 0);
    if (!completes && !verdict.bad_loss) return false;
    news->steps++;
    news->examples += update->examples;
    news->loss += update->loss;
    news->correct += update->correct;
    if (verdict.bad_loss) news->bad_loss = true;
    if (verdict.skipped) news->skipped = true;
    return verdict.bad_loss;
}

float ps_update_factor(const struct ps_update *update)
{
    return update->examples > 0 ? 1 / (float)update->examples : 0;
}

struct tr_verdict ps_update_judge(const struct tr_job *job, struct ps_news *news, double norm)
{
    struct tr_verdict verdict = tr_judge(job, true, norm); /* a bad loss does not get here */
    if (verdict.skipped) {
        news->skipped = true;
    } else if (tr_strategy_measures(job)) {
        news->norms += norm;
        news->measured++;
    }
    return verdict;
}

void ps_news_tell(const struct ps_news *news, struct tr_step_figures *figures)
{
    figures->steps = news->steps;
    figures->examples = news->examples;
    figures->loss = (float)news->loss;
    figures->correct = (float)news->correct;
    if (news->measured > 0) figures->norm = (float)(news->norms / (double)news->measured);
    figures->skipped = news->skipped != 0;
    figures->bad_loss = news->bad_loss != 0;
    figures->poisoned = news->poisoned != 0;
    figures->request = news->request;
}
