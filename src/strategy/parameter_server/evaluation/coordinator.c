/* Evaluations that all workers share: the coordinator's part. */
#include "strategy/parameter_server/coordinator.h"

#include "base/fail.h"

tr_status ps_coordinator_begin_evaluation(struct ps *self, const struct tr_shared_evaluation *evaluation)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    if (evaluation->piece <= 0 || evaluation->count <= 0)
        return tr_fail(TR_EMISMATCH, "an evaluation of %lld examples, %lld at a time",
                       (long long)evaluation->count, (long long)evaluation->piece);
    ps_assignment_destroy(&coordinator->assignment);
    coordinator->evaluation = *evaluation;
    for (int w = 0; w < self->workers; w++) self->server->peer[w].shown = false;
    return ps_assignment_create(self->workers, (evaluation->count - 1) / evaluation->piece + 1,
                                &coordinator->assignment);
}

/* A piece for a waiting worker. The first one comes with the parameters to evaluate; the root has these. */
static tr_status give_piece(struct ps *self, int worker)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_peer *peer = &self->server->peer[worker];
    struct ps_command order = {.kind = PS_SHOW, .worker = worker, .give = -1};
    struct ps_down text = {
        .kind = PS_PIECE,
        .number = ps_assignment_draw(coordinator->assignment, worker),
        .fresh = worker > 0 && !peer->shown,
        .evaluation = coordinator->evaluation,
    };
    struct ps_report result;
    if (text.fresh) TR_TRY(ps_coordinator_command(self, &order, &result));
    peer->shown = true;
    return ps_coordinator_tell(self, worker, &text, "piece of an evaluation");
}

/* Messages that the root waits for: results of others, then a piece of its own, then the end. */
static tr_status answer_root(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_down text = {.kind = PS_FOUND};
    int worker;
    if (ps_assignment_tell(coordinator->assignment, &worker, &text.number)) {
        text.worker = worker;
    } else if (ps_assignment_is_open(coordinator->assignment)) {
        coordinator->root_evaluates = false;
        return give_piece(self, 0);
    } else if (ps_assignment_is_over(coordinator->assignment)) {
        text.kind = PS_EVALUATED_ALL;
        ps_assignment_destroy(&coordinator->assignment);
    } else {
        return TR_OK;
    }
    coordinator->root_evaluates = false;
    return ps_coordinator_tell(self, 0, &text, "evaluation");
}

tr_status ps_coordinator_hear_evaluated(struct ps *self, int worker)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    /* The root also sends this for results that it received from others. */
    bool had = coordinator->assignment && ps_assignment_found(coordinator->assignment, worker);
    if (!coordinator->assignment || (worker > 0 && !had))
        return tr_fail(TR_EMISMATCH, "worker %d has evaluated what it was not given", worker);
    if (worker > 0)
        ps_schedule_ask(coordinator->schedule, worker);
    else
        coordinator->root_evaluates = true;
    return TR_OK;
}

tr_status ps_coordinator_evaluate(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    for (int w = 1; w < self->workers && ps_assignment_is_open(coordinator->assignment); w++) {
        if (!ps_schedule_waits(coordinator->schedule, w)) continue;
        ps_schedule_withdraw(coordinator->schedule, w);
        TR_TRY(give_piece(self, w));
    }
    return coordinator->assignment && coordinator->root_evaluates ? answer_root(self) : TR_OK;
}
