/* Workers that are lost, and the end of the run. */
#include "strategy/parameter_server/coordinator.h"

#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/text/log.h"

#include <stdio.h>

/* Between two checks of the workers, and how long to wait for earlier messages of a lost one. */
#define LOOK_SECONDS  0.05
#define GRACE_SECONDS 0.2

/* ---- workers that are lost ---- */

static tr_status lose(struct ps *self, int worker, const char *why)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_command order = {.kind = PS_DROP, .worker = worker, .give = -1};
    struct ps_down fence = {.kind = PS_FENCED};
    struct ps_report result;
    int64_t number = ps_schedule_lose(coordinator->schedule, worker);
    char again[96] = "";
    if (number >= 0)
        snprintf(again, sizeof again, "; batch %lld is computed by another",
                 (long long)(number / self->parts));
    tr_log_line(TR_LOG_WARNING, "after step %lld: worker %d on host %s %s; going on without it%s",
                (long long)self->count, worker, tr_comm_host(self->head.comm, worker), why, again);
    coordinator->lost++;
    TR_TRY(ps_coordinator_note_lost(self, worker, number));
    self->server->peer[worker].haves = 0;
    ps_assignment_lose(coordinator->assignment, worker);
    ps_credits_leave(coordinator->incoming, worker);
    ps_credits_leave(coordinator->outgoing, worker);
    TR_TRY(ps_coordinator_command(self, &order, &result));
    return ps_coordinator_tell(self, worker, &fence,
                               "end of the part in the run"); /* in case it comes back to life */
}

tr_status ps_coordinator_look_after(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    double now = tr_clock_seconds();
    if (now < coordinator->next_look) return TR_OK;
    coordinator->next_look = now + LOOK_SECONDS;
    for (int w = 1; w < self->workers; w++) {
        struct ps_peer *peer = &self->server->peer[w];
        char why[256];
        if (peer->gone || peer->ended) continue;
        if (tr_comm_life(self->head.comm, w, why, sizeof why) == TR_COMM_ALIVE)
            peer->troubled = 0;
        else if (peer->troubled == 0)
            peer->troubled = now;
        else if (now - peer->troubled > GRACE_SECONDS)
            TR_TRY(lose(self, w, why));
    }
    return TR_OK;
}

/* ---- the end ---- */

/* Whether a worker has work. */
static bool anybody_works(struct ps *self)
{
    bool works = false;
    for (int w = 0; w < self->workers; w++)
        works = works || ps_schedule_works(self->server->coordinator->schedule, w);
    return works;
}

tr_status ps_coordinator_settle(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    if (!coordinator->settling || coordinator->settled || anybody_works(self)) return TR_OK;
    coordinator->settled = true;
    return ps_coordinator_answer(self, PS_DRAINED);
}

tr_status ps_coordinator_finish(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_down text = {.kind = PS_ENDED, .lost = coordinator->lost};
    struct ps_report result;
    bool all = true;
    for (int w = 1; w < self->workers; w++) {
        struct ps_peer *peer = &self->server->peer[w];
        if (peer->gone || peer->ended) continue;
        if (ps_schedule_works(coordinator->schedule, w)) {
            all = false;
            continue;
        }
        peer->ended = true;
        TR_TRY(ps_coordinator_tell(self, w, &text, "end of the run"));
    }
    if (!all) return TR_OK;
    struct ps_command order = {.kind = PS_FINISH, .worker = -1, .give = -1, .lost = coordinator->lost};
    TR_TRY(ps_coordinator_tell(self, 0, &text, "end of the run"));
    return ps_coordinator_command(self, &order, &result);
}
