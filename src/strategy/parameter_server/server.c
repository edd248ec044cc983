/* A server's loop: it hears workers and the coordinator, and sleeps in between. */
#include "strategy/parameter_server/server.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/timeline.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

/* The number of this server. */
static int index_of(const struct ps *self)
{
    return self->head.rank - self->workers;
}

/* ---- making ---- */

static tr_status make_seats(struct ps *self)
{
    struct ps_server *server = self->server;
    size_t floats = (size_t)self->head.job->model->arena_floats;
    server->seat = tr_alloc_zero((size_t)self->workers, sizeof *server->seat);
    if (!server->seat) return TR_ENOMEM;
    for (int w = 0; w < self->workers; w++) {
        struct ps_seat *seat = &server->seat[w];
        seat->near = ps_is_near(self, w);
        if (seat->near) {
            seat->gradient = ps_gradient_of(self, w);
            seat->parameters = ps_parameters_of(self, w);
            continue;
        }
        /* Of these arenas only the share is touched, and so takes memory. */
        seat->gradient = tr_alloc_aligned(floats + 1, sizeof(float));
        seat->parameters = tr_alloc_aligned(floats + 1, sizeof(float));
        seat->filling = tr_alloc_zero((size_t)ps_pieces(self, index_of(self)) + 1, sizeof *seat->filling);
        if (!seat->gradient || !seat->parameters || !seat->filling) return TR_ENOMEM;
    }
    return TR_OK;
}

static tr_status make(struct ps *self)
{
    struct ps_server *server = self->server;
    int index = index_of(self);
    server->begin = self->share[index];
    server->end = self->share[index + 1];
    server->stage = tr_alloc_aligned((size_t)(server->end - server->begin) * TR_ARENAS + 1, sizeof(float));
    if (!server->stage) return TR_ENOMEM;
    TR_TRY(ps_store_create(self->head.holder, self->head.job, self->head.variables, server->begin,
                           server->end, self->parts > 1, &server->store));
    TR_TRY(make_seats(self));
    return index == 0 ? ps_coordinator_create(self) : TR_OK;
}

tr_status ps_server_create(struct ps *self)
{
    self->server = tr_alloc_zero(1, sizeof *self->server);
    return self->server ? make(self) : TR_ENOMEM;
}

/* Gives up what goes between a worker that is far and its seat. The memory is freed if nothing can arrive in
   it, and else left. Of a near one it is the worker's. */
static void empty(struct ps *self, struct ps_seat *seat)
{
    tr_comm *comm = self->head.comm;
    bool filled = true;
    for (int i = 0; seat->filling && i < ps_pieces(self, index_of(self)); i++)
        filled = tr_comm_cancel(comm, &seat->filling[i]) && filled;
    bool given = tr_comm_cancel(comm, &seat->giving);
    if (!seat->near && filled) tr_free(seat->gradient);
    if (!seat->near && given) tr_free(seat->parameters);
    tr_free(seat->filling);
    seat->gradient = seat->parameters = NULL;
    seat->filling = NULL;
}

void ps_server_cancel(struct ps *self)
{
    struct ps_server *server = self->server;
    if (!server) return;
    tr_comm *comm = self->head.comm;
    server->kept = true;
    for (int w = 0; server->seat && w < self->workers; w++) {
        struct ps_seat *seat = &server->seat[w];
        server->kept = tr_comm_cancel(comm, &seat->heard) && server->kept;
        empty(self, seat);
    }
    bool staged = true;
    for (int i = 0; i < TR_ARENAS; i++) staged = tr_comm_cancel(comm, &server->staged[i]) && staged;
    if (!staged) server->stage = NULL;
    server->kept = tr_comm_cancel(comm, &server->commanded) && server->kept;
    ps_coordinator_cancel(self);
}

void ps_server_destroy(struct ps *self)
{
    struct ps_server *server = self->server;
    if (!server) return;
    tr_free(server->stage);
    ps_store_destroy(&server->store);
    ps_coordinator_destroy(self);
    if (server->kept) {
        tr_free(server->seat);
        tr_free(server);
    }
    self->server = NULL;
}

/* ---- commands ---- */

/* Keeps the seat ready for the gradient of what the worker is about to compute; that of its last work has
   been used. Pieces arrive in order. */
static tr_status expect_gradient(struct ps *self, int worker)
{
    struct ps_seat *seat = &self->server->seat[worker];
    int server = index_of(self);
    for (int i = 0; i < ps_pieces(self, server); i++) {
        int64_t begin, end;
        if (seat->filling[i])
            return tr_fail(TR_EMISMATCH, "worker %d is given work before its last gradient came", worker);
        ps_piece(self, server, i, &begin, &end);
        TR_TRY(tr_comm_receive(self->head.comm, worker, PS_TAG_GRADIENT, seat->gradient + begin,
                               (size_t)(end - begin) * sizeof(float), "gradient", &seat->filling[i]));
    }
    return TR_OK;
}

/* The parameters are in the seat: off to the worker. */
static tr_status hand_over(struct ps *self, int worker)
{
    struct ps_server *server = self->server;
    struct ps_seat *seat = &server->seat[worker];
    size_t bytes = (size_t)(server->end - server->begin) * sizeof(float);
    atomic_thread_fence(memory_order_seq_cst); /* what was written comes before the message */
    if (!seat->near) TR_TRY(expect_gradient(self, worker));
    if (seat->near)
        self->shared += (int64_t)bytes;
    else
        TR_TRY(tr_comm_send(self->head.comm, worker, PS_TAG_PARAMETERS, seat->parameters + server->begin,
                            bytes, "parameters", &seat->giving));
    if (server->coordinator) return TR_OK; /* which says so with the work */
    struct ps_down given = {.kind = PS_GIVEN};
    return ps_outbox_send(&self->outbox, worker, PS_TAG_DOWN, &given, sizeof given, "parameters are there");
}

/* The copy that was sent last has left: its receiver has answered since. */
static tr_status reuse(struct ps *self, struct ps_seat *seat)
{
    return seat->giving ? ps_watch_wait(&self->watch, &seat->giving) : TR_OK;
}

static tr_status give(struct ps *self, int worker)
{
    struct ps_seat *seat = &self->server->seat[worker];
    TR_TRY(reuse(self, seat));
    ps_store_copy(self->server->store, TR_ARENA_PARAMETERS, seat->parameters);
    return hand_over(self, worker);
}

static tr_status update(struct ps *self, const struct ps_command *command, struct ps_report *report)
{
    struct ps_server *server = self->server;
    struct ps_seat *given = command->give >= 0 ? &server->seat[command->give] : NULL;
    bool poisoned;
    tr_timeline_step(command->count);
    if (given) TR_TRY(reuse(self, given));
    TR_TRY(ps_store_update(server->store, command->count, server->gradient, command->clip,
                           given ? given->parameters : NULL, &poisoned));
    self->count = command->count + 1;
    if (poisoned) report->kind = PS_POISONED;
    return given ? hand_over(self, command->give) : TR_OK;
}

/* What is to be applied: a worker's gradient, or the sum. */
static tr_status choose(struct ps_server *server, const struct ps_command *command)
{
    if (command->worker < 0) return ps_store_finish_sum(server->store, command->factor, &server->gradient);
    server->gradient = server->seat[command->worker].gradient;
    return TR_OK;
}

static tr_status snapshot(struct ps *self)
{
    struct ps_server *server = self->server;
    int64_t share = server->end - server->begin;
    for (int i = 0; i < TR_ARENAS; i++) {
        if (!tr_variables_arena(self->head.variables, (enum tr_arena)i)) continue;
        if (server->staged[i]) TR_TRY(ps_watch_wait(&self->watch, &server->staged[i]));
        float *stage = server->stage + i * share;
        const float *arena = tr_variables_arena(self->head.variables, (enum tr_arena)i);
        memcpy(stage, arena + server->begin, (size_t)share * sizeof *stage);
        TR_TRY(tr_comm_send(self->head.comm, 0, PS_TAG_STATE + i, stage, (size_t)share * sizeof *stage,
                            tr_arena_names[i], &server->staged[i]));
    }
    return TR_OK;
}

/* A worker is lost: nothing is expected of it any more. */
static void forget(struct ps *self, int worker)
{
    struct ps_seat *seat = &self->server->seat[worker];
    seat->gone = true;
    tr_comm_cancel(self->head.comm, &seat->heard);
    empty(self, seat);
}

tr_status ps_server_execute(struct ps *self, const struct ps_command *command, struct ps_report *report)
{
    struct ps_server *server = self->server;
    const struct ps_seat *seat = command->worker >= 0 ? &server->seat[command->worker] : NULL;
    if (command->worker >= self->workers || command->give >= self->workers)
        return tr_fail(TR_EMISMATCH, "a command about worker %d of %d", command->worker, self->workers);
    switch ((enum ps_command_kind)command->kind) {
    case PS_GIVE:
        return give(self, command->worker);
    case PS_ADD:
        if (seat->near) self->shared += (server->end - server->begin) * (int64_t)sizeof(float);
        return ps_store_add(server->store, seat->gradient, command->factor, command->first);
    case PS_MEASURE:
        TR_TRY(choose(server, command));
        report->kind = PS_MEASURED;
        report->squares = ps_store_squares(server->store, server->gradient);
        return TR_OK;
    case PS_UPDATE:
        if (seat && seat->near) self->shared += (server->end - server->begin) * (int64_t)sizeof(float);
        if (!command->chosen) TR_TRY(choose(server, command));
        return update(self, command, report);
    case PS_SNAPSHOT:
        return snapshot(self);
    case PS_DROP:
        forget(self, command->worker);
        return TR_OK;
    case PS_FINISH:
        server->finished = true;
        server->lost = command->lost;
        return TR_OK;
    }
    return tr_fail(TR_EMISMATCH, "a command of unknown kind %d", command->kind);
}

/* ---- the loop ---- */

static tr_status listen_to_worker(struct ps *self, int worker)
{
    struct ps_seat *seat = &self->server->seat[worker];
    return tr_comm_receive(self->head.comm, worker, PS_TAG_UP, &seat->up, sizeof seat->up, "word of a worker",
                           &seat->heard);
}

static tr_status listen_to_coordinator(struct ps *self)
{
    struct ps_server *server = self->server;
    return tr_comm_receive(self->head.comm, ps_server_rank(self, 0), PS_TAG_COMMAND, &server->command,
                           sizeof server->command, "command", &server->commanded);
}

static tr_status report(struct ps *self, struct ps_report *text)
{
    ps_own_statistics(self, &text->done);
    return ps_outbox_send(&self->outbox, ps_server_rank(self, 0), PS_TAG_REPORT, text, sizeof *text,
                          "report");
}

/* The gradient of a worker, if it said that there is one, is all here. */
static tr_status heard(struct ps *self, int worker)
{
    struct ps_report have = {.kind = PS_HAVE, .worker = worker};
    atomic_thread_fence(memory_order_seq_cst); /* what was written before the message is there */
    TR_TRY(self->server->coordinator ? ps_coordinator_hear(self, worker) : report(self, &have));
    return self->server->seat[worker].gone ? TR_OK : listen_to_worker(self, worker);
}

static tr_status hear_worker(struct ps *self, int worker, bool *quiet)
{
    struct ps_seat *seat = &self->server->seat[worker];
    tr_comm *comm = self->head.comm;
    if (seat->gone) return TR_OK;
    if (!seat->pushes) {
        if (!tr_comm_is_done(comm, &seat->heard)) return TR_OK;
        *quiet = false;
        if (seat->up.kind != PS_PUSH || seat->near) return heard(self, worker);
        seat->pushes = true;
    }
    for (int i = 0; i < ps_pieces(self, index_of(self)); i++)
        if (!tr_comm_is_done(comm, &seat->filling[i])) return TR_OK;
    *quiet = false;
    seat->pushes = false;
    return heard(self, worker);
}

static tr_status hear_coordinator(struct ps *self, bool *quiet)
{
    struct ps_server *server = self->server;
    if (!tr_comm_is_done(self->head.comm, &server->commanded)) return TR_OK;
    *quiet = false;
    struct ps_report result = {.kind = -1};
    TR_TRY(ps_server_execute(self, &server->command, &result));
    if (result.kind >= 0) TR_TRY(report(self, &result));
    return server->finished ? TR_OK : listen_to_coordinator(self);
}

/* One look at everybody, which tests each message once however many workers there are. */
static tr_status turn(struct ps *self, int32_t *wish, bool *quiet)
{
    TR_TRY(ps_watch_look(&self->watch));
    TR_TRY(tr_comm_progress(self->head.comm));
    for (int w = 0; w < self->workers && !self->server->finished; w++) TR_TRY(hear_worker(self, w, quiet));
    if (self->server->finished) return TR_OK;
    if (self->server->coordinator) return ps_coordinator_turn(self, *wish, quiet);
    if (*wish) {
        struct ps_report text = {.kind = PS_WISH, .wish = *wish};
        TR_TRY(report(self, &text));
        *wish = 0; /* said once */
    }
    return hear_coordinator(self, quiet);
}

tr_status ps_server_run(struct ps *self, const volatile sig_atomic_t *stop, int32_t wish)
{
    struct ps_server *server = self->server;
    for (int w = 0; w < self->workers; w++) TR_TRY(listen_to_worker(self, w));
    TR_TRY(server->coordinator ? ps_coordinator_begin(self) : listen_to_coordinator(self));
    int32_t wishes = 0;
    bool wished = false;
    for (double last = tr_clock_seconds(); !server->finished;) {
        bool quiet = true;
        if (*stop && !wished) {
            wished = true;
            wishes = wish;
        }
        TR_TRY(turn(self, &wishes, &quiet));
        double now = tr_clock_seconds();
        if (!quiet) last = now;
        if (quiet && !server->finished) tr_comm_idle(self->head.comm, ps_nap(now - last));
        if (quiet) self->watch.waited += tr_clock_seconds() - now;
    }
    TR_TRY(ps_outbox_flush(&self->outbox));
    if (server->lost > 0) tr_comm_disband(self->head.comm);
    return TR_OK;
}
