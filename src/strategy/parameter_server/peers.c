/* The memory between a server and its workers. Workers of the same host use their own memory. For the others
 * there is room for a fixed number of arriving gradients and departing parameters, however many workers there
 * are.
 *
 * Invariant: the coordinator's credits (credits.h) count the rooms used here, so there is always room for
 * its commands; rooms of parameters may become free slightly after their receivers have confirmed them.
 */
#include "strategy/parameter_server/server.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"

/* ---- making ---- */

static tr_status make_room(const struct ps *self, int tickets, struct ps_room *room)
{
    /* Only the shard of these arenas is touched, and so takes memory. */
    size_t floats = (size_t)self->head.job->model->arena_floats;
    room->worker = -1;
    room->arena = tr_alloc_aligned(floats + 1, sizeof(float));
    room->way = tr_alloc_zero((size_t)tickets + 1, sizeof *room->way);
    return room->arena && room->way ? TR_OK : TR_ENOMEM;
}

static tr_status make_rooms(struct ps *self, int far)
{
    struct ps_server *server = self->server;
    int rooms = far < self->credits ? far : self->credits;
    size_t shard = (size_t)(server->end - server->begin) * sizeof(float);
    server->in = tr_alloc_zero((size_t)rooms + 1, sizeof *server->in);
    server->out = tr_alloc_zero((size_t)rooms + 1, sizeof *server->out);
    if (!server->in || !server->out) return TR_ENOMEM;
    server->rooms = rooms;
    for (int i = 0; i < rooms; i++) {
        TR_TRY(make_room(self, ps_pieces(self, ps_server_index(self)), &server->in[i]));
        TR_TRY(make_room(self, 1, &server->out[i]));
    }
    self->head.memory += 2 * (size_t)rooms * shard;
    return TR_OK;
}

tr_status ps_peers_create(struct ps *self)
{
    struct ps_server *server = self->server;
    int far = 0;
    server->peer = tr_alloc_zero((size_t)self->workers, sizeof *server->peer);
    if (!server->peer) return TR_ENOMEM;
    for (int w = 0; w < self->workers; w++) {
        struct ps_peer *peer = &server->peer[w];
        peer->near = ps_is_near(self, w);
        far += !peer->near;
        if (!peer->near) continue;
        peer->gradient = ps_gradient_of(self, w);
        peer->parameters = ps_parameters_of(self, w);
    }
    return make_rooms(self, far);
}

/* ---- gradients that come ---- */

bool ps_peer_is_filled(struct ps *self, int worker)
{
    struct ps_peer *peer = &self->server->peer[worker];
    if (peer->near) return true;
    if (!peer->in) return false; /* the command to expect it has not arrived */
    for (int i = 0; i < ps_pieces(self, ps_server_index(self)); i++)
        if (!tr_comm_is_done(self->head.comm, &peer->in->way[i])) return false;
    return true;
}

tr_status ps_peer_expect(struct ps *self, int worker)
{
    struct ps_server *server = self->server;
    struct ps_peer *peer = &server->peer[worker];
    struct ps_room *room = NULL;
    int index = ps_server_index(self);
    if (peer->near) return TR_OK;
    for (int i = 0; i < server->rooms && !room; i++)
        if (server->in[i].worker < 0) room = &server->in[i];
    if (peer->in || !room)
        return tr_fail(TR_EMISMATCH,
                       "no room for the gradient of worker %d; all ranks must run the same program", worker);
    if (!room->arena) TR_TRY(make_room(self, ps_pieces(self, index), room));
    room->worker = worker;
    peer->in = room;
    peer->gradient = room->arena;
    /* Pieces arrive in order. */
    for (int i = 0; i < ps_pieces(self, index); i++) {
        int64_t begin, end;
        ps_piece(self, index, i, &begin, &end);
        TR_TRY(tr_comm_receive(self->head.comm, worker, PS_TAG_GRADIENT, peer->gradient + begin,
                               (size_t)(end - begin) * sizeof(float), "gradient", &room->way[i]));
    }
    return TR_OK;
}

void ps_peer_release(struct ps *self, int worker)
{
    struct ps_peer *peer = &self->server->peer[worker];
    if (peer->near || !peer->in) return;
    peer->in->worker = -1;
    peer->in = NULL;
    peer->gradient = NULL;
}

/* ---- parameters that leave ---- */

/* A room whose copy was sent, or one that was lost; NULL: there is none now. */
static struct ps_room *find_room(struct ps *self)
{
    struct ps_server *server = self->server;
    for (int i = 0; i < server->rooms; i++) {
        struct ps_room *room = &server->out[i];
        if (!room->way || tr_comm_is_done(self->head.comm, &room->way[0])) return room;
    }
    return NULL;
}

tr_status ps_peer_prepare(struct ps *self, int worker)
{
    struct ps_peer *peer = &self->server->peer[worker];
    if (peer->near) return TR_OK;
    double began = tr_clock_seconds();
    while (!(peer->out = find_room(self))) {
        TR_TRY(tr_comm_progress(self->head.comm));
        TR_TRY(ps_watch_probe(&self->watch));
        tr_comm_idle(self->head.comm, ps_nap(tr_clock_seconds() - began));
    }
    if (!peer->out->arena) TR_TRY(make_room(self, 1, peer->out));
    peer->out->worker = worker;
    peer->parameters = peer->out->arena;
    return TR_OK;
}

tr_status ps_peer_send(struct ps *self, int worker)
{
    const struct ps_server *server = self->server;
    const struct ps_peer *peer = &server->peer[worker];
    size_t bytes = (size_t)(server->end - server->begin) * sizeof(float);
    if (!peer->near)
        return tr_comm_send_numbers(self->head.comm, worker, PS_TAG_PARAMETERS,
                                    peer->parameters + server->begin, bytes, "parameters",
                                    &peer->out->way[0]);
    self->shared += (int64_t)bytes;
    return TR_OK;
}

/* ---- the end ---- */

/* Cancels messages. Memory in which a message may still arrive, or from which it is being sent, is
   abandoned, and replaced when needed. */
static void clear(struct ps *self, struct ps_room *room, int tickets)
{
    bool back = true;
    for (int i = 0; room->way && i < tickets; i++)
        back = tr_comm_cancel(self->head.comm, &room->way[i]) && back;
    if (!back) {
        tr_free(room->way);
        room->arena = NULL;
        room->way = NULL;
    }
    room->worker = -1;
}

static void clear_all(struct ps *self, int worker)
{
    struct ps_server *server = self->server;
    for (int i = 0; i < server->rooms; i++) {
        if (worker < 0 || server->in[i].worker == worker)
            clear(self, &server->in[i], ps_pieces(self, ps_server_index(self)));
        if (worker < 0 || server->out[i].worker == worker) clear(self, &server->out[i], 1);
    }
}

bool ps_peer_forget(struct ps *self, int worker)
{
    struct ps_peer *peer = &self->server->peer[worker];
    bool back = tr_comm_cancel(self->head.comm, &peer->heard);
    if (!tr_comm_cancel(self->head.comm, &peer->showing)) self->server->stage_kept = true;
    clear_all(self, worker);
    peer->in = peer->out = NULL;
    peer->gradient = peer->parameters = NULL;
    return back;
}

bool ps_peers_cancel(struct ps *self)
{
    struct ps_server *server = self->server;
    bool back = true;
    for (int w = 0; server->peer && w < self->workers; w++) {
        back = tr_comm_cancel(self->head.comm, &server->peer[w].heard) && back;
        if (!tr_comm_cancel(self->head.comm, &server->peer[w].showing)) server->stage_kept = true;
    }
    clear_all(self, -1);
    return back;
}

static void free_rooms(struct ps_room *rooms, int count)
{
    for (int i = 0; rooms && i < count; i++) {
        tr_free(rooms[i].arena);
        tr_free(rooms[i].way);
    }
    tr_free(rooms);
}

void ps_peers_destroy(struct ps *self)
{
    struct ps_server *server = self->server;
    free_rooms(server->in, server->rooms);
    free_rooms(server->out, server->rooms);
    if (server->kept) tr_free(server->peer);
}
