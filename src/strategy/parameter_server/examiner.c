/* Evaluations that all workers share: the coordinator's part. */
#include "strategy/parameter_server/coordinator.h"

#include "base/fail.h"

tr_status ps_coordinator_begin_examination(struct ps *self, const struct tr_examination *examination)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    if (examination->piece <= 0 || examination->count <= 0)
        return tr_fail(TR_EMISMATCH, "an evaluation of %lld examples, %lld at a time",
                       (long long)examination->count, (long long)examination->piece);
    ps_examination_destroy(&coordinator->pieces);
    coordinator->examination = *examination;
    for (int w = 0; w < self->workers; w++) self->server->seat[w].shown = false;
    return ps_examination_create(self->workers, (examination->count - 1) / examination->piece + 1,
                                 &coordinator->pieces);
}

/* A piece for a worker that waits. The first one comes with what is to be evaluated; the root has that. */
static tr_status give_piece(struct ps *self, int worker)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_seat *seat = &self->server->seat[worker];
    struct ps_command order = {.kind = PS_SHOW, .worker = worker, .give = -1};
    struct ps_down text = {
        .kind = PS_PIECE,
        .number = ps_examination_draw(coordinator->pieces, worker),
        .fresh = worker > 0 && !seat->shown,
        .examination = coordinator->examination,
    };
    struct ps_report result;
    if (text.fresh) TR_TRY(ps_coordinator_command(self, &order, &result));
    seat->shown = true;
    return ps_coordinator_tell(self, worker, &text, "piece of an evaluation");
}

/* What the root waits for: what others found, then a piece of its own, then the end. */
static tr_status answer_root(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_down text = {.kind = PS_FOUND};
    int worker;
    if (ps_examination_tell(coordinator->pieces, &worker, &text.number)) {
        text.worker = worker;
    } else if (ps_examination_is_open(coordinator->pieces)) {
        coordinator->root_examines = false;
        return give_piece(self, 0);
    } else if (ps_examination_is_over(coordinator->pieces)) {
        text.kind = PS_EXAMINED_ALL;
        ps_examination_destroy(&coordinator->pieces);
    } else {
        return TR_OK;
    }
    coordinator->root_examines = false;
    return ps_coordinator_tell(self, 0, &text, "evaluation");
}

tr_status ps_coordinator_hear_examined(struct ps *self, int worker)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    /* The root says so, too, of what it took from others. */
    bool had = coordinator->pieces && ps_examination_found(coordinator->pieces, worker);
    if (!coordinator->pieces || (worker > 0 && !had))
        return tr_fail(TR_EMISMATCH, "worker %d has examined what it was not given", worker);
    if (worker > 0)
        ps_schedule_ask(coordinator->schedule, worker);
    else
        coordinator->root_examines = true;
    return TR_OK;
}

tr_status ps_coordinator_examine(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    for (int w = 1; w < self->workers && ps_examination_is_open(coordinator->pieces); w++) {
        if (!ps_schedule_waits(coordinator->schedule, w)) continue;
        ps_schedule_withdraw(coordinator->schedule, w);
        TR_TRY(give_piece(self, w));
    }
    return coordinator->pieces && coordinator->root_examines ? answer_root(self) : TR_OK;
}
