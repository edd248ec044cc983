/* Where a server meets its workers: the memory of those that are near is their own; for the others there is
 * room for a fixed number of gradients that come and of parameters that leave, however many workers there
 * are.
 *
 * Invariant: the coordinator's credits (credits.h) count what is taken here, so there is always room for what
 * it commands; of copies that leave, at most a moment after their receivers have said that they are there.
 */
#include "strategy/parameter_server/server.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"

/* ---- making ---- */

static tr_status make_room(const struct ps *self, int tickets, struct ps_room *room)
{
    /* Of these arenas only the share is touched, and so takes memory. */
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
    size_t share = (size_t)(server->end - server->begin) * sizeof(float);
    server->in = tr_alloc_zero((size_t)rooms + 1, sizeof *server->in);
    server->out = tr_alloc_zero((size_t)rooms + 1, sizeof *server->out);
    if (!server->in || !server->out) return TR_ENOMEM;
    server->rooms = rooms;
    for (int i = 0; i < rooms; i++) {
        TR_TRY(make_room(self, ps_pieces(self, ps_server_index(self)), &server->in[i]));
        TR_TRY(make_room(self, 1, &server->out[i]));
    }
    self->head.memory += 2 * (size_t)rooms * share;
    return TR_OK;
}

tr_status ps_seats_create(struct ps *self)
{
    struct ps_server *server = self->server;
    int far = 0;
    server->seat = tr_alloc_zero((size_t)self->workers, sizeof *server->seat);
    if (!server->seat) return TR_ENOMEM;
    for (int w = 0; w < self->workers; w++) {
        struct ps_seat *seat = &server->seat[w];
        seat->near = ps_is_near(self, w);
        far += !seat->near;
        if (!seat->near) continue;
        seat->gradient = ps_gradient_of(self, w);
        seat->parameters = ps_parameters_of(self, w);
    }
    return make_rooms(self, far);
}

/* ---- gradients that come ---- */

bool ps_seat_is_filled(struct ps *self, int worker)
{
    struct ps_seat *seat = &self->server->seat[worker];
    if (seat->near) return true;
    if (!seat->in) return false; /* the command to expect it is still on its way */
    for (int i = 0; i < ps_pieces(self, ps_server_index(self)); i++)
        if (!tr_comm_is_done(self->head.comm, &seat->in->way[i])) return false;
    return true;
}

tr_status ps_seat_expect(struct ps *self, int worker)
{
    struct ps_server *server = self->server;
    struct ps_seat *seat = &server->seat[worker];
    struct ps_room *room = NULL;
    int index = ps_server_index(self);
    if (seat->near) return TR_OK;
    for (int i = 0; i < server->rooms && !room; i++)
        if (server->in[i].worker < 0) room = &server->in[i];
    if (seat->in || !room)
        return tr_fail(TR_EMISMATCH,
                       "no room for the gradient of worker %d; all ranks must run the same program", worker);
    if (!room->arena) TR_TRY(make_room(self, ps_pieces(self, index), room));
    room->worker = worker;
    seat->in = room;
    seat->gradient = room->arena;
    /* Pieces arrive in order. */
    for (int i = 0; i < ps_pieces(self, index); i++) {
        int64_t begin, end;
        ps_piece(self, index, i, &begin, &end);
        TR_TRY(tr_comm_receive(self->head.comm, worker, PS_TAG_GRADIENT, seat->gradient + begin,
                               (size_t)(end - begin) * sizeof(float), "gradient", &room->way[i]));
    }
    return TR_OK;
}

void ps_seat_release(struct ps *self, int worker)
{
    struct ps_seat *seat = &self->server->seat[worker];
    if (seat->near || !seat->in) return;
    seat->in->worker = -1;
    seat->in = NULL;
    seat->gradient = NULL;
}

/* ---- parameters that leave ---- */

/* A room whose copy has left; NULL: there is none at this moment. */
static struct ps_room *find_room(struct ps *self)
{
    struct ps_server *server = self->server;
    for (int i = 0; i < server->rooms; i++)
        if (tr_comm_is_done(self->head.comm, &server->out[i].way[0])) return &server->out[i];
    return NULL;
}

tr_status ps_seat_prepare(struct ps *self, int worker)
{
    struct ps_seat *seat = &self->server->seat[worker];
    if (seat->near) return TR_OK;
    double began = tr_clock_seconds();
    while (!(seat->out = find_room(self))) {
        TR_TRY(tr_comm_progress(self->head.comm));
        TR_TRY(ps_watch_probe(&self->watch));
        tr_comm_idle(self->head.comm, ps_nap(tr_clock_seconds() - began));
    }
    if (!seat->out->arena) TR_TRY(make_room(self, 1, seat->out));
    seat->out->worker = worker;
    seat->parameters = seat->out->arena;
    return TR_OK;
}

tr_status ps_seat_send(struct ps *self, int worker)
{
    const struct ps_server *server = self->server;
    const struct ps_seat *seat = &server->seat[worker];
    size_t bytes = (size_t)(server->end - server->begin) * sizeof(float);
    if (!seat->near)
        return tr_comm_send(self->head.comm, worker, PS_TAG_PARAMETERS, seat->parameters + server->begin,
                            bytes, "parameters", &seat->out->way[0]);
    self->shared += (int64_t)bytes;
    return TR_OK;
}

/* ---- the end ---- */

/* Gives up what is on the way. Memory in which something may still arrive, or from which it is still sent, is
   left as it is, and other is made in its place when it is needed. */
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

bool ps_seat_forget(struct ps *self, int worker)
{
    struct ps_seat *seat = &self->server->seat[worker];
    bool back = tr_comm_cancel(self->head.comm, &seat->heard);
    if (!tr_comm_cancel(self->head.comm, &seat->showing)) self->server->stage_kept = true;
    clear_all(self, worker);
    seat->in = seat->out = NULL;
    seat->gradient = seat->parameters = NULL;
    return back;
}

bool ps_seats_cancel(struct ps *self)
{
    struct ps_server *server = self->server;
    bool back = true;
    for (int w = 0; server->seat && w < self->workers; w++) {
        back = tr_comm_cancel(self->head.comm, &server->seat[w].heard) && back;
        if (!tr_comm_cancel(self->head.comm, &server->seat[w].showing)) server->stage_kept = true;
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

void ps_seats_destroy(struct ps *self)
{
    struct ps_server *server = self->server;
    free_rooms(server->in, server->rooms);
    free_rooms(server->out, server->rooms);
    if (server->kept) tr_free(server->seat);
}
