/* The effect of a gradient on the variables, as on parameter servers. */
#include "strategy/replay/replay.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <math.h>

void replay_release_shards(struct replay *self)
{
    for (int s = 0; s < self->stores; s++) ps_store_destroy(&self->store[s]);
    tr_free(self->store);
    self->store = NULL;
    self->stores = 0;
}

tr_status replay_make_shards(struct replay *self, const struct tr_update_session *session)
{
    const struct tr_job *job = self->head.job;
    replay_release_shards(self);
    self->store = tr_alloc_zero((size_t)session->servers, sizeof *self->store);
    if (!self->store) return TR_ENOMEM;
    for (int s = 0; s < session->servers; s++) {
        int64_t begin = ps_shard_begin(job, session->servers, s),
                end = ps_shard_begin(job, session->servers, s + 1);
        TR_TRY(ps_store_create(job, self->head.replicas->variables, begin, end, session->parts > 1,
                               &self->store[s]));
        self->stores++;
    }
    return TR_OK;
}

static tr_status add(struct replay *self, float *gradient, float factor, bool first)
{
    for (int s = 0; s < self->stores; s++) TR_TRY(ps_store_add(self->store[s], gradient, factor, first));
    return TR_OK;
}

static tr_status choose(struct replay *self, float *gradient)
{
    for (int s = 0; s < self->stores; s++)
        TR_TRY(gradient ? ps_store_choose(self->store[s], gradient)
                        : ps_store_choose_sum(self->store[s], ps_update_factor(&self->update)));
    return TR_OK;
}

/* The norm of the chosen gradient, added shard by shard as the coordinator does. */
static tr_status measure(struct replay *self, double *norm)
{
    double all = 0;
    for (int s = 0; s < self->stores; s++) {
        double squares;
        TR_TRY(ps_store_squares(self->store[s], &squares));
        all += squares;
    }
    *norm = sqrt(all);
    return TR_OK;
}

static tr_status update(struct replay *self, int64_t count, float clip)
{
    for (int s = 0; s < self->stores; s++) {
        bool poisoned;
        TR_TRY(ps_store_update(self->store[s], count, clip, NULL, &poisoned));
        if (poisoned) self->news.poisoned = self->halted = true;
    }
    return TR_OK;
}

tr_status replay_apply(struct replay *self, const struct tr_update_entry *entry,
                       const struct ps_figures *figures, float *gradient)
{
    const struct tr_job *job = self->head.job;
    bool summed = entry->session->parts > 1;
    double norm = 0;
    if (ps_update_note(job, &self->update, &self->news, figures, entry->first, entry->completes))
        self->halted = true;
    if (summed) TR_TRY(add(self, gradient, (float)figures->examples, entry->first));
    if (!entry->completes || self->update.spoiled) return TR_OK;
    TR_TRY(choose(self, summed ? NULL : gradient));
    if (tr_strategy_measures(job)) TR_TRY(measure(self, &norm));
    struct tr_verdict verdict = ps_update_judge(job, &self->news, norm);
    return verdict.skipped ? TR_OK : update(self, entry->count, verdict.clip);
}
