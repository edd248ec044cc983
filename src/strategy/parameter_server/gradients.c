/* A gradient that all servers have: measured, added, applied, or dropped. */
#include "strategy/parameter_server/coordinator.h"

#include "base/threads/clock.h"
#include "base/fail.h"

#include <math.h>

/* The norm of the gradient that is about to be applied, over all servers. */
static tr_status measure(struct ps *self, const struct ps_command *update, double *norm)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_command order = *update;
    struct ps_report result;
    order.kind = PS_MEASURE;
    coordinator->measured = 0;
    TR_TRY(ps_coordinator_command(self, &order, &result));
    for (double began = tr_clock_seconds(); coordinator->measured < self->servers - 1;) {
        bool quiet = true;
        TR_TRY(tr_comm_progress(self->head.comm));
        TR_TRY(ps_coordinator_hear_servers(self, &quiet));
        TR_TRY(ps_watch_probe(&self->watch));
        if (quiet) tr_comm_idle(self->head.comm, ps_nap(tr_clock_seconds() - began));
    }
    /* In the order of the shards, not of the answers. */
    double squares = result.squares;
    for (int s = 1; s < self->servers; s++) squares += coordinator->colleague[s].squares;
    *norm = sqrt(squares);
    return TR_OK;
}

/* Makes the servers apply the chosen gradient, unless it is not finite and such gradients are skipped.
 *given becomes -1 if it was applied and the parameters were given to that worker. */
static tr_status apply(struct ps *self, struct ps_command *order, int *given)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    const struct tr_job *job = self->head.job;
    struct ps_report result;
    double norm = 0;
    if (tr_strategy_measures(job)) {
        TR_TRY(measure(self, order, &norm));
        order->chosen = true;
    }
    struct tr_verdict verdict = ps_update_judge(job, &coordinator->news, norm);
    order->clip = verdict.clip;
    if (verdict.skipped) return TR_OK;
    TR_TRY(ps_coordinator_command(self, order, &result));
    *given = -1;
    if (result.kind == PS_POISONED) coordinator->news.poisoned = coordinator->halted = true;
    return TR_OK;
}

static void count_staleness(struct ps_coordinator *coordinator, int64_t missed)
{
    int64_t last = TR_STALENESS_BINS - 1;
    coordinator->table.staleness[missed < last ? missed : last]++;
}

/* An accepted gradient becomes part of an update; the last one completes it. *give, unless -1, is the
   worker that gets the new parameters, and becomes -1 if it got them with the update. */
static tr_status use(struct ps *self, int worker, const struct ps_taken *taken, int *give)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    const struct ps_up *push = &self->server->peer[worker].pushed;
    struct ps_command order = {.worker = worker, .give = -1, .first = taken->first, .factor = 1};
    struct ps_report result;
    if (self->parts > 1) {
        /* Each is the mean over its own examples; their weighted sum is the mean over all. */
        order.kind = PS_ADD;
        order.factor = (float)push->examples;
        TR_TRY(ps_coordinator_command(self, &order, &result));
        order.worker = -1;
        order.factor = ps_update_factor(&coordinator->update);
    }
    if (!taken->completes || coordinator->update.spoiled) return TR_OK;
    order.kind = PS_UPDATE;
    order.give = *give;
    order.count = ps_schedule_count(coordinator->schedule) - 1;
    return apply(self, &order, give);
}

/* Notes updates that are complete, for the root. */
static void note(struct ps *self, const struct ps_up *push, const struct ps_taken *taken)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    const struct ps_figures figures = {push->examples, push->loss, push->correct};
    if (ps_update_note(self->head.job, &coordinator->update, &coordinator->news, &figures, taken->first,
                       taken->completes))
        coordinator->halted = true;
}

/* The gradient is no longer needed: its room is free. */
static tr_status release(struct ps *self, int worker)
{
    struct ps_command order = {.kind = PS_RELEASE, .worker = worker, .give = -1};
    struct ps_report result;
    if (!self->distant[worker]) return TR_OK;
    ps_credits_leave(self->server->coordinator->incoming, worker);
    return ps_coordinator_command(self, &order, &result);
}

tr_status ps_coordinator_take(struct ps *self, int worker)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_peer *peer = &self->server->peer[worker];
    struct ps_taken taken = ps_schedule_take(coordinator->schedule, worker);
    peer->haves = 0;
    if (worker == 0) coordinator->root_waits = true;
    /* The root asks again only if its gradient is not yet in an update and too few others might be left. */
    if (worker > 0 || (!taken.late && !taken.completes)) ps_schedule_ask(coordinator->schedule, worker);
    if (worker == 0) coordinator->root_asks = !taken.late && !taken.completes;
    coordinator->table.dropped += taken.late;
    if (coordinator->halted) return release(self, worker); /* a bad step stays the last one */
    TR_TRY(ps_coordinator_note_work(self, worker, &taken));
    if (taken.late) return release(self, worker);
    count_staleness(coordinator, taken.missed);
    peer->applied++;
    note(self, &peer->pushed, &taken);
    ps_coordinator_recall_root(coordinator);
    /* A worker that may begin with the new parameters gets them in the pass that computes them. */
    struct ps_work work = {.worker = -1};
    bool goes_on = ps_coordinator_draw(self, &work);
    int give = work.worker;
    TR_TRY(use(self, worker, &taken, &give));
    TR_TRY(release(self, worker));
    return goes_on ? ps_coordinator_give(self, &work, give < 0) : TR_OK;
}
