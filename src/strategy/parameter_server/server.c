/* A server's loop: it receives messages of workers and the coordinator, and sleeps in between. */
#include "strategy/parameter_server/server.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/threads/timeline.h"
#include "comm/program.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

/* ---- making ---- */

/* Arenas that a snapshot has. */
static int count_arenas(const struct ps *self)
{
    int count = 0;
    for (int i = 0; i < TR_ARENAS; i++)
        count += tr_variables_arena(self->head.replicas->variables, (enum tr_arena)i) != NULL;
    return count;
}

static tr_status make(struct ps *self)
{
    struct ps_server *server = self->server;
    int index = ps_server_index(self);
    server->begin = self->shard[index];
    server->end = self->shard[index + 1];
    size_t shard = (size_t)(server->end - server->begin), staged = shard * (size_t)count_arenas(self);
    server->stage = tr_alloc_aligned(staged + 1, sizeof(float));
    if (!server->stage) return TR_ENOMEM;
    TR_TRY(ps_store_create(self->head.job, self->head.replicas->variables, server->begin, server->end,
                           self->parts > 1, &server->store));
    self->head.memory += (staged + (self->parts > 1 ? shard : 0)) * sizeof(float);
    TR_TRY(ps_peers_create(self));
    return index == 0 ? ps_coordinator_create(self) : TR_OK;
}

tr_status ps_server_create(struct ps *self)
{
    self->server = tr_alloc_zero(1, sizeof *self->server);
    return self->server ? make(self) : TR_ENOMEM;
}

void ps_server_cancel(struct ps *self)
{
    struct ps_server *server = self->server;
    if (!server) return;
    tr_comm *comm = self->head.comm;
    server->kept = ps_peers_cancel(self);
    bool staged = true;
    for (int i = 0; i < TR_ARENAS; i++) staged = tr_comm_cancel(comm, &server->staged[i]) && staged;
    if (!staged || server->stage_kept) server->stage = NULL;
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
    ps_peers_destroy(self);
    if (server->kept) tr_free(server);
    self->server = NULL;
}

/* ---- commands ---- */

static tr_status say_given(struct ps *self, int worker)
{
    atomic_thread_fence(memory_order_seq_cst);   /* our writes come before the message */
    if (self->server->coordinator) return TR_OK; /* which announces them with the work */
    struct ps_down given = {.kind = PS_GIVEN};
    return ps_outbox_send(&self->outbox, worker, PS_TAG_DOWN, &given, sizeof given, "parameters are there");
}

/* The parameters are in the peer's buffer: sends them to the worker. */
static tr_status hand_over(struct ps *self, int worker)
{
    TR_TRY(ps_peer_send(self, worker));
    return say_given(self, worker);
}

static tr_status give(struct ps *self, int worker)
{
    struct ps_server *server = self->server;
    TR_TRY(ps_peer_prepare(self, worker));
    TR_TRY(
        ps_store_copy(server->store, TR_ARENA_PARAMETERS, server->peer[worker].parameters + server->begin));
    return hand_over(self, worker);
}

static tr_status update(struct ps *self, const struct ps_command *command, struct ps_report *report)
{
    struct ps_server *server = self->server;
    struct ps_peer *given = command->give >= 0 ? &server->peer[command->give] : NULL;
    bool poisoned;
    tr_timeline_step(command->count);
    if (given) TR_TRY(ps_peer_prepare(self, command->give));
    TR_TRY(ps_store_update(server->store, command->count, command->clip, given ? given->parameters : NULL,
                           &poisoned));
    self->count = command->count + 1;
    if (poisoned) report->kind = PS_POISONED;
    return given ? hand_over(self, command->give) : TR_OK;
}

/* The gradient to apply: a worker's, or the sum. */
static tr_status choose(struct ps_server *server, const struct ps_command *command)
{
    if (command->worker < 0) return ps_store_choose_sum(server->store, command->factor);
    return ps_store_choose(server->store, server->peer[command->worker].gradient);
}

/* All messages from the stage have arrived: their receivers have answered, or are lost. */
static tr_status clear_stage(struct ps *self)
{
    struct ps_server *server = self->server;
    size_t floats = (size_t)(server->end - server->begin) * (size_t)count_arenas(self);
    for (int w = 0; w < self->workers; w++)
        if (server->peer[w].showing) TR_TRY(ps_watch_wait(&self->watch, &server->peer[w].showing));
    if (!server->stage_kept) return TR_OK;
    server->stage = tr_alloc_aligned(floats + 1, sizeof *server->stage);
    server->stage_kept = false;
    return server->stage ? TR_OK : TR_ENOMEM;
}

static tr_status snapshot(struct ps *self)
{
    struct ps_server *server = self->server;
    int64_t shard = server->end - server->begin;
    TR_TRY(clear_stage(self));
    float *stage = server->stage;
    for (int i = 0; i < TR_ARENAS; i++) {
        if (!tr_variables_arena(self->head.replicas->variables, (enum tr_arena)i)) continue;
        if (server->staged[i]) TR_TRY(ps_watch_wait(&self->watch, &server->staged[i]));
        TR_TRY(ps_store_copy(server->store, (enum tr_arena)i, stage));
        TR_TRY(tr_comm_send_numbers(self->head.comm, 0, PS_TAG_STATE + i, stage,
                                    (size_t)shard * sizeof *stage, tr_arena_names[i], &server->staged[i]));
        stage += shard;
    }
    return TR_OK;
}

/* The part of the stage to evaluate: moving averages with the statistics of the parameters, or the
   parameters. */
static const float *evaluated(struct ps *self)
{
    const struct ps_server *server = self->server;
    const struct tr_model *model = self->head.job->model;
    const tr_variables *variables = self->head.replicas->variables;
    int64_t shard = server->end - server->begin;
    if (!tr_variables_arena(variables, TR_ARENA_EMA)) return server->stage;
    float *average = server->stage;
    for (int i = 0; i < TR_ARENA_EMA; i++)
        if (tr_variables_arena(variables, (enum tr_arena)i)) average += shard;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        int64_t from = parameter->offset - server->begin, to = from + parameter->count;
        if (from < 0) from = 0;
        if (to > shard) to = shard;
        if (parameter->kind != TR_PARAMETER_STATISTIC || from >= to) continue;
        memcpy(average + from, server->stage + from, (size_t)(to - from) * sizeof *average);
    }
    return average;
}

static tr_status show(struct ps *self, int worker)
{
    struct ps_server *server = self->server;
    struct ps_peer *peer = &server->peer[worker];
    size_t bytes = (size_t)(server->end - server->begin) * sizeof(float);
    for (int i = 0; i < TR_ARENAS; i++)
        if (server->staged[i]) TR_TRY(ps_watch_wait(&self->watch, &server->staged[i]));
    const float *values = evaluated(self);
    if (peer->near) {
        memcpy(peer->parameters + server->begin, values, bytes);
        tr_program_moved(2 * (server->end - server->begin), server->end - server->begin);
        self->shared += (int64_t)bytes;
    } else {
        if (peer->showing) TR_TRY(ps_watch_wait(&self->watch, &peer->showing));
        TR_TRY(tr_comm_send_numbers(self->head.comm, worker, PS_TAG_PARAMETERS, values, bytes, "parameters",
                                    &peer->showing));
    }
    return say_given(self, worker);
}

/* The gradient of a near worker is read in its memory. */
static void count_shared(struct ps *self)
{
    int64_t floats = self->server->end - self->server->begin;
    self->shared += floats * (int64_t)sizeof(float);
    tr_program_moved(floats, floats);
}

/* Whether the command refers to existing workers, to gradients that are here, and to the sum only where there
   is one. */
static bool makes_sense(const struct ps *self, const struct ps_command *command)
{
    int32_t worker = command->worker, give = command->give;
    bool uses = command->kind == PS_ADD || command->kind == PS_MEASURE || command->kind == PS_UPDATE;
    if (uses && (worker < 0 || command->kind == PS_ADD) && self->parts == 1) return false;
    bool any = command->kind == PS_MEASURE || command->kind == PS_UPDATE || command->kind == PS_SNAPSHOT ||
               command->kind == PS_FINISH; /* -1: the sum, or no rank */
    if (worker >= self->workers || give >= self->workers || (worker < 0 && !any)) return false;
    return worker < 0 || !uses || self->server->peer[worker].gradient;
}

tr_status ps_server_execute(struct ps *self, const struct ps_command *command, struct ps_report *report)
{
    struct ps_server *server = self->server;
    if (!makes_sense(self, command))
        return tr_fail(TR_EMISMATCH, "a command of kind %d about worker %d of %d", command->kind,
                       command->worker, self->workers);
    const struct ps_peer *peer = command->worker >= 0 ? &server->peer[command->worker] : NULL;
    switch ((enum ps_command_kind)command->kind) {
    case PS_GIVE:
        return give(self, command->worker);
    case PS_EXPECT:
        return ps_peer_expect(self, command->worker);
    case PS_RELEASE:
        ps_peer_release(self, command->worker);
        return TR_OK;
    case PS_ADD:
        if (peer->near) count_shared(self);
        return ps_store_add(server->store, peer->gradient, command->factor, command->first);
    case PS_MEASURE:
        TR_TRY(choose(server, command));
        report->kind = PS_MEASURED;
        return ps_store_squares(server->store, &report->squares);
    case PS_UPDATE:
        if (peer && peer->near) count_shared(self);
        if (!command->chosen) TR_TRY(choose(server, command));
        return update(self, command, report);
    case PS_SNAPSHOT:
        return snapshot(self);
    case PS_SHOW:
        return show(self, command->worker);
    case PS_DROP:
        server->peer[command->worker].gone = true;
        ps_peer_forget(self, command->worker);
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
    struct ps_peer *peer = &self->server->peer[worker];
    return tr_comm_receive(self->head.comm, worker, PS_TAG_UP, &peer->up, sizeof peer->up, "word of a worker",
                           &peer->heard);
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

/* Whether a worker's announced gradient is completely here. */
static tr_status heard(struct ps *self, int worker)
{
    struct ps_report have = {.kind = PS_HAVE, .worker = worker};
    atomic_thread_fence(memory_order_seq_cst); /* writes before the message are visible */
    TR_TRY(self->server->coordinator ? ps_coordinator_hear(self, worker) : report(self, &have));
    return self->server->peer[worker].gone ? TR_OK : listen_to_worker(self, worker);
}

static tr_status hear_worker(struct ps *self, int worker, bool *quiet)
{
    struct ps_peer *peer = &self->server->peer[worker];
    tr_comm *comm = self->head.comm;
    if (peer->gone) return TR_OK;
    if (!peer->pushes) {
        if (!tr_comm_is_done(comm, &peer->heard)) return TR_OK;
        *quiet = false;
        if (peer->up.kind != PS_PUSH || peer->near) return heard(self, worker);
        peer->pushes = true;
    }
    if (!ps_peer_is_filled(self, worker)) return TR_OK;
    *quiet = false;
    peer->pushes = false;
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

/* Polls all workers, and tests each message once however many workers there are. */
static tr_status turn(struct ps *self, int32_t *request, bool *quiet)
{
    TR_TRY(ps_watch_probe(&self->watch));
    TR_TRY(tr_comm_progress(self->head.comm));
    for (int w = 0; w < self->workers && !self->server->finished; w++) TR_TRY(hear_worker(self, w, quiet));
    if (self->server->finished) return TR_OK;
    if (self->server->coordinator) return ps_coordinator_turn(self, *request, quiet);
    if (*request) {
        struct ps_report text = {.kind = PS_REQUEST, .request = *request};
        TR_TRY(report(self, &text));
        *request = 0; /* reported once */
    }
    return hear_coordinator(self, quiet);
}

tr_status ps_server_run(struct ps *self, const atomic_int *stop, int32_t request)
{
    struct ps_server *server = self->server;
    for (int w = 0; w < self->workers; w++) TR_TRY(listen_to_worker(self, w));
    TR_TRY(server->coordinator ? ps_coordinator_begin(self) : listen_to_coordinator(self));
    int32_t requests = 0;
    bool requested = false;
    for (double last = tr_clock_seconds(); !server->finished;) {
        bool quiet = true;
        if (*stop && !requested) {
            requested = true;
            requests = request;
        }
        TR_TRY(turn(self, &requests, &quiet));
        double now = tr_clock_seconds();
        if (!quiet) last = now;
        if (quiet && !server->finished) tr_comm_idle(self->head.comm, ps_nap(now - last));
        if (quiet) self->watch.waited += tr_clock_seconds() - now;
    }
    TR_TRY(ps_outbox_flush(&self->outbox));
    if (server->lost > 0) tr_comm_dissolve(self->head.comm);
    return TR_OK;
}
