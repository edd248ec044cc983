/* Evaluations that all workers share: a worker's part, and the root's. A worker sends its results to the
 * root, and then the coordinator notifies the root. The root evaluates, too, and receives the others'
 * results in between; results lost with their worker it computes itself.
 */
#include "strategy/parameter_server/parameter_server.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"

/* A rank that has died may have sent something just before. */
#define GRACE_SECONDS 0.2

static void bounds_of(const struct tr_shared_evaluation *evaluation, int64_t number, int64_t *first,
                      int64_t *end)
{
    *first = number * evaluation->piece;
    *end = evaluation->count - *first < evaluation->piece ? evaluation->count : *first + evaluation->piece;
}

static size_t bytes_of(const struct tr_shared_evaluation *evaluation, int64_t number)
{
    int64_t first, end;
    bounds_of(evaluation, number, &first, &end);
    return (size_t)((end - first) * evaluation->bytes);
}

static tr_status evaluate(struct ps *self, const struct tr_shared_evaluation *evaluation, int64_t number,
                          void *found)
{
    const struct tr_evaluation_hooks *hooks = &self->head.hooks;
    int64_t first, end;
    bounds_of(evaluation, number, &first, &end);
    return hooks->evaluate(hooks->user, evaluation, first, end, found);
}

/* Checks a message of the coordinator. */
static tr_status check(const struct tr_shared_evaluation *evaluation, int64_t number)
{
    bool sense = evaluation->piece > 0 && evaluation->bytes > 0 && evaluation->count > 0 && number >= 0 &&
                 number < (evaluation->count + evaluation->piece - 1) / evaluation->piece;
    return sense ? TR_OK : tr_fail(TR_EMISMATCH, "an evaluation has no piece %lld", (long long)number);
}

tr_status ps_worker_evaluate(struct ps *self)
{
    const struct ps_down *down = ps_worker_word(self);
    struct tr_shared_evaluation evaluation = down->evaluation;
    struct ps_up up = {.kind = PS_EVALUATED};
    int64_t number = down->number;
    TR_TRY(check(&evaluation, number));
    if (down->fresh) TR_TRY(ps_worker_take_parameters(self));
    size_t bytes = bytes_of(&evaluation, number);
    void *found = tr_alloc(bytes, 1);
    if (!found) return TR_ENOMEM;
    tr_status status = evaluate(self, &evaluation, number, found);
    if (status == TR_OK)
        status = ps_outbox_send(&self->outbox, 0, PS_TAG_FOUND, found, bytes, "part of an evaluation");
    tr_free(found);
    if (status != TR_OK) return status;
    TR_TRY(ps_worker_say(self, 0, &up));
    return ps_worker_hear(self, 0);
}

/* ---- the root ---- */

static tr_status make_room(struct ps *self, size_t bytes)
{
    self->found = tr_alloc(bytes, 1);
    self->found_bytes = self->found ? bytes : 0;
    return self->found ? TR_OK : TR_ENOMEM;
}

/* Waits for results that a worker announced. *lost: they were never sent. */
static tr_status fetch(struct ps *self, int worker, size_t bytes, bool *lost)
{
    tr_comm *comm = self->head.comm;
    double began = tr_clock_seconds(), troubled = 0, now = began;
    bool done = false;
    *lost = false;
    TR_TRY(tr_comm_receive(comm, worker, PS_TAG_FOUND, self->found, bytes, "part of an evaluation",
                           &self->finding));
    for (;;) {
        TR_TRY(tr_comm_test(comm, &self->finding, &done));
        if (done) break;
        TR_TRY(ps_watch_probe(&self->watch));
        now = tr_clock_seconds();
        if (tr_comm_life(comm, worker, NULL, 0) == TR_COMM_ALIVE)
            troubled = 0;
        else if (troubled == 0)
            troubled = now;
        else if (now - troubled > GRACE_SECONDS)
            break;
        tr_comm_idle(comm, ps_nap(now - began));
    }
    self->watch.waited += tr_clock_seconds() - began;
    if (done) return TR_OK;
    *lost = true;
    if (tr_comm_cancel(comm, &self->finding)) return TR_OK;
    return make_room(self, self->found_bytes); /* a message may still arrive in the old one */
}

/* The subject of the coordinator's last message: a piece, or a worker's results. */
static tr_status answer(struct ps *self, const struct tr_shared_evaluation *evaluation)
{
    const struct ps_down *down = ps_worker_word(self);
    const struct tr_evaluation_hooks *hooks = &self->head.hooks;
    bool lost = false, own = down->kind == PS_PIECE;
    int64_t number = down->number, first, end;
    TR_TRY(check(evaluation, number));
    if (!own) {
        if (down->worker < 1 || down->worker >= self->workers) return ps_worker_refuse(down->kind);
        TR_TRY(fetch(self, down->worker, bytes_of(evaluation, number), &lost));
    }
    if (own || lost) TR_TRY(evaluate(self, evaluation, number, self->found));
    bounds_of(evaluation, number, &first, &end);
    return hooks->take(hooks->user, evaluation, first, end, self->found);
}

static tr_status lead(struct ps *self, const struct tr_shared_evaluation *evaluation)
{
    struct ps_up up = {.kind = PS_EVALUATE, .evaluation = *evaluation};
    const struct ps_down *down = ps_worker_word(self);
    for (;;) {
        TR_TRY(ps_worker_say(self, 0, &up));
        TR_TRY(ps_worker_hear(self, 0));
        if (down->kind == PS_EVALUATED_ALL) return TR_OK;
        if (down->kind != PS_PIECE && down->kind != PS_FOUND) return ps_worker_refuse(down->kind);
        TR_TRY(answer(self, evaluation));
        up.kind = PS_EVALUATED;
    }
}

tr_status ps_root_evaluate(struct ps *self, const struct tr_shared_evaluation *evaluation)
{
    if (evaluation->count == 0) return TR_OK;
    size_t bytes = (size_t)(evaluation->piece * evaluation->bytes);
    if (bytes > self->found_bytes) {
        tr_free(self->found);
        TR_TRY(make_room(self, bytes));
    }
    return lead(self, evaluation);
}
