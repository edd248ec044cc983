/* Matches sends and receives by sender, receiver and tag, in order. */
#include "plan/world/messages.h"

#include "base/alloc.h"
#include "comm/operation.h"

#include <math.h>
#include <string.h>

enum { SENDER, RECEIVER };

#define PIECES      8 /* of a message at most, */
#define PIECE_LEAST ((size_t)64 << 10)
#define WHOLE       ((size_t)128 << 10) /* bytes that Open MPI sends at once over TCP */
#define NEAR        1e-3                /* seconds: the longest nap */
#define SETTLED                                                                                              \
    3e-3 /* seconds after which ranks that were kept waiting by a large message are in step                  \
            again */

static const struct tr_path *path_of(const tr_sim *sim, int from, int to)
{
    return tr_cluster_path(sim->cluster, sim->host[from], sim->host[to]);
}

/* ---- memory ---- */

static struct message *make(tr_sim *sim)
{
    struct message *message = tr_alloc_zero(1, sizeof *message);
    if (!message) return NULL;
    message->sim = sim;
    message->older = sim->messages;
    message->younger = &sim->messages;
    if (message->older) message->older->younger = &message->older;
    sim->messages = message;
    return message;
}

static void forget(struct message *message)
{
    *message->younger = message->older;
    if (message->older) message->older->younger = message->younger;
    tr_free(message->copy);
    tr_free(message);
}

/* One of its ends has finished with it. */
static void drop(struct message *message)
{
    if (--message->holders == 0) forget(message);
}

void tr_sim_forget_all(tr_sim *sim)
{
    while (sim->messages) forget(sim->messages);
}

/* ---- processors ---- */

/* Where only the processors carry bytes, their time is before sending and after arrival; else during the
   transfer. */
static bool is_carried(const struct message *message)
{
    return message->sim->host[message->from] != message->sim->host[message->to];
}

/* A message's work for the processor of the running rank. Of the work during the transfer, only the part
   that did not fit between other work. */
static void handle(struct message *message, int side, bool hides)
{
    tr_sim *sim = message->sim;
    const struct tr_path *path = path_of(sim, message->from, message->to);
    int rank = side == SENDER ? message->from : message->to;
    double seconds = (double)message->bytes / path->copying, idled = tr_world_idled(sim->world, rank);
    if (hides) {
        struct end *end = &sim->end[rank];
        double since = message->idle[side] > end->used ? message->idle[side] : end->used;
        double hidden = seconds < idled - since ? seconds : idled - since;
        end->used = since + hidden;
        seconds -= hidden;
    }
    tr_world_spend(sim->world, path->overhead + seconds);
}

/* ---- on its way ---- */

/* Its sender, if that still waits, is through. */
static void end_sending(struct message *message)
{
    if (!message->send) return;
    message->send->state = COMPLETE;
    message->send = NULL;
    tr_world_wake(message->sim->world, message->from);
}

/* Receiver and contents are there. */
static void deliver(struct message *message)
{
    const struct tr_transfer *send = message->send;
    struct tr_transfer *receive = message->receive;
    bool fits = receive->bytes == message->bytes;
    const void *data = message->copy ? message->copy : send ? send->data : NULL;
    if (fits && data && !message->hollow && message->bytes > 0) memcpy(receive->data, data, message->bytes);
    if (!fits) receive->came = message->bytes;
    receive->state = fits ? COMPLETE : MISMATCH;
    tr_world_wake(message->sim->world, message->to);
    end_sending(message);
}

static void arrive(void *user, void *what, double time)
{
    struct message *message = what;
    (void)user, (void)time;
    message->arrived = true;
    if (!message->flies)
        message->sim->end[message->to].landed = -INFINITY; /* small messages also bring
                                                              ranks in step */
    if (message->lost) {
        end_sending(message);
        drop(message);
    } else if (message->receive) {
        deliver(message);
    }
}

/* A piece from byte `at` on. */
static size_t piece_of(const struct message *message, size_t at)
{
    size_t piece = message->bytes / PIECES, rest = message->bytes - at;
    if (piece < PIECE_LEAST) piece = PIECE_LEAST;
    if (message->bytes <= WHOLE) return rest;
    return is_carried(message) && piece < rest ? piece : rest;
}

static void begin_to_arrive(void *user, void *what, double time)
{
    tr_sim *sim = user;
    struct message *message = what;
    size_t piece = piece_of(message, message->come);
    double end = tr_network_arrive(&sim->network, sim->host[message->from], sim->host[message->to], time,
                                   (double)piece);
    if (message->come == 0) message->idle[RECEIVER] = tr_world_idled(sim->world, message->to);
    message->come += piece;
    if (message->come == message->bytes) tr_world_at(sim->world, end, arrive, sim, message);
}

/* The flight from one rank to another that began last; NULL: none. */
static struct message *flight_of(const tr_sim *sim, int from, int to)
{
    struct message *flight = sim->end[from].flying;
    while (flight && flight->to != to) flight = flight->flying;
    return flight;
}

/* It was sent entirely: the messages after it continue. */
static void end_leaving(void *user, void *what, double time)
{
    tr_sim *sim = user;
    struct message *message = what, **at = &sim->end[message->from].flying;
    while (*at != message) at = &(*at)->flying;
    *at = message->flying;
    sim->end[message->from].landed = sim->end[message->to].landed = time;
    double latency = path_of(sim, message->from, message->to)->latency;
    for (struct message *held = message->held; held; held = held->held_next)
        tr_world_at(sim->world, time + latency, held->next_event, sim, held);
    message->held = NULL;
}

/* Calls `happen` for the message when the flight is over and a latency has passed. */
static void hold(struct message *flight, struct message *message, tr_world_event happen)
{
    struct message **last = &flight->held;
    while (*last) last = &(*last)->held_next;
    message->next_event = happen;
    message->held_next = NULL;
    *last = message;
}

static bool goes_one_way(const struct message *message)
{
    const struct tr_path *path = path_of(message->sim, message->from, message->to);
    return path->one_way > 0 && (int64_t)message->bytes > path->one_way;
}

static void leave_piece(void *user, void *what, double time)
{
    tr_sim *sim = user;
    struct message *message = what;
    const struct tr_path *path = path_of(sim, message->from, message->to);
    size_t piece = piece_of(message, message->gone);
    double begins;
    tr_network_leave(&sim->network, sim->host[message->from], sim->host[message->to], time, (double)piece,
                     &begins);
    message->gone += piece;
    tr_world_at(sim->world, begins, begin_to_arrive, sim, message);
    double left = fmax(begins - path->latency, time) + (double)piece / path->rate; /* for rounding errors */
    if (message->gone < message->bytes)
        tr_world_at(sim->world, left, leave_piece, sim, message);
    else if (message->flies)
        tr_world_at(sim->world, left, end_leaving, sim, message);
}

static void leave(struct message *message, double time)
{
    tr_sim *sim = message->sim;
    message->left = true;
    message->idle[SENDER] = tr_world_idled(sim->world, message->from);
    leave_piece(sim, message, time);
}

/* ---- those that wait for their receiver ---- */

static bool waits_for_receiver(const struct message *message)
{
    return (int64_t)message->bytes > path_of(message->sim, message->from, message->to)->eager;
}

/* An end must look at it. */
static void give_task(struct message *message, int rank)
{
    struct message **last = &message->sim->end[rank].tasks;
    while (*last) last = &(*last)->task;
    message->task = NULL;
    *last = message;
    tr_world_wake(message->sim->world, rank);
}

static void notice(void *user, void *what, double time)
{
    struct message *message = what;
    (void)user, (void)time;
    message->noticed = true;
    if (message->receive || message->lost) give_task(message, message->to);
}

static void be_asked(void *user, void *what, double time)
{
    struct message *message = what;
    (void)user, (void)time;
    message->asked = true;
    give_task(message, message->from);
}

/* A control message about a message goes from one of its ends to the other, after flights in that
   direction. */
static void send_word(struct message *message, int from, tr_world_event comes)
{
    tr_sim *sim = message->sim;
    struct message *flight = flight_of(sim, from, from == message->from ? message->to : message->from);
    double latency = path_of(sim, message->from, message->to)->latency;
    if (flight)
        hold(flight, message, comes);
    else
        tr_world_at(sim->world, tr_world_now(sim->world) + latency, comes, sim, message);
}

static void fly(struct message *message, double time)
{
    struct end *from = &message->sim->end[message->from];
    if (goes_one_way(message)) {
        message->flies = true;
        message->flying = from->flying;
        from->flying = message;
    }
    leave(message, time);
}

static void fly_at(void *user, void *what, double time)
{
    (void)user;
    fly(what, time);
}

/* For two messages announced at nearly the same time, both of which were requested before either was sent:
   whether that happens in reality, where ranks are never as much in step as here. */
static bool cross(const struct message *one, const struct message *other)
{
    struct end *first = &one->sim->end[one->from < one->to ? one->from : one->to];
    double landed = fmax(one->sim->end[one->from].landed, one->sim->end[one->to].landed);
    if (fabs(one->announced - other->announced) >= NEAR) return true;
    return one->announced - landed > SETTLED && first->met++ % 2 == 1;
}

/* Starts it when it was requested. */
static void set_off(struct message *message, double time)
{
    struct message *other = flight_of(message->sim, message->to, message->from);
    if (other && goes_one_way(message) && !cross(message, other))
        hold(other, message, fly_at);
    else
        fly(message, time);
}

void tr_sim_look(tr_sim *sim, int rank)
{
    struct end *end = &sim->end[rank];
    while (end->tasks) {
        struct message *message = end->tasks;
        end->tasks = message->task;
        tr_world_spend(sim->world, path_of(sim, message->from, message->to)->overhead);
        tr_world_pass(sim->world);
        if (message->asked)
            set_off(message, tr_world_now(sim->world));
        else
            send_word(message, rank, be_asked);
    }
}

/* ---- the ends ---- */

static void match(tr_sim *sim, struct message *message, struct tr_transfer *receive)
{
    message->receive = receive;
    receive->request = message;
    if (message->arrived)
        deliver(message);
    else if (message->noticed) /* its receiver waited only for this */
        send_word(message, message->to, be_asked);
    else if (!message->left && !is_carried(message)) /* the receiver's request takes its time, too */
        leave(message, tr_world_now(sim->world) + path_of(sim, message->from, message->to)->latency);
}

/* A large message stays with its sender until it is over; of a small one a copy is sent at once. */
static tr_status set_out(struct message *message, struct tr_transfer *send)
{
    tr_sim *sim = message->sim;
    send->done = !waits_for_receiver(message);
    if (!send->done) {
        message->holders = 2;
        message->send = send;
        send->request = message;
        send->state = WAITING;
        if (is_carried(message)) send_word(message, message->from, notice);
        return TR_OK;
    }
    bool copies = send->bytes > 0 && !message->hollow;
    if (copies && !(message->copy = tr_alloc(send->bytes, 1))) return TR_ENOMEM;
    if (copies) memcpy(message->copy, send->data, send->bytes);
    message->holders = 1;
    send->state = COMPLETE;
    leave(message, tr_world_now(sim->world));
    return TR_OK;
}

tr_status tr_sim_announce(tr_sim *sim, int rank, struct tr_transfer *send)
{
    struct end *to = &sim->end[send->peer];
    struct message *message = make(sim);
    if (!message) return TR_ENOMEM;
    message->from = rank;
    message->to = send->peer;
    message->tag = send->tag;
    message->bytes = send->bytes;
    message->hollow = send->numbers && send->bytes >= sim->hollow;
    sim->unmarked += !send->numbers && send->bytes >= sim->hollow;
    message->announced = tr_world_now(sim->world);
    if (is_carried(message) && waits_for_receiver(message))
        tr_world_spend(sim->world, path_of(sim, rank, send->peer)->overhead);
    else
        handle(message, SENDER, false);
    tr_world_pass(sim->world);
    if (set_out(message, send) != TR_OK) {
        forget(message);
        return TR_ENOMEM;
    }
    struct tr_transfer **at = &to->receives;
    while (*at && ((*at)->peer != rank || (*at)->tag != send->tag)) at = &(*at)->next;
    if (*at) {
        struct tr_transfer *receive = *at;
        *at = receive->next;
        match(sim, message, receive);
        return TR_OK;
    }
    *to->newest = message;
    to->newest = &message->next;
    return TR_OK;
}

void tr_sim_expect(tr_sim *sim, int rank, struct tr_transfer *receive)
{
    struct end *self = &sim->end[rank];
    receive->state = WAITING;
    receive->request = NULL;
    for (struct message **at = &self->unmatched; *at; at = &(*at)->next) {
        struct message *message = *at;
        if (message->from != receive->peer || message->tag != receive->tag) continue;
        *at = message->next;
        if (self->newest == &message->next) self->newest = at;
        match(sim, message, receive);
        return;
    }
    struct tr_transfer **last = &self->receives;
    while (*last) last = &(*last)->next;
    receive->next = NULL;
    *last = receive;
}

void tr_sim_take(tr_sim *sim, struct tr_transfer *transfer)
{
    struct message *message = transfer->request;
    (void)sim;
    if (!message) return; /* a copy was sent */
    /* Within a host the sender has already done the processors' work for it. */
    if (!transfer->sends || is_carried(message))
        handle(message, transfer->sends ? SENDER : RECEIVER, is_carried(message));
    transfer->request = NULL;
    drop(message);
}

void tr_sim_withdraw(tr_sim *sim, int rank, struct tr_transfer *transfer)
{
    struct message *message = transfer->request;
    transfer->request = NULL;
    if (transfer->sends && message) {
        message->send = NULL; /* its contents are lost */
        drop(message);
    }
    if (!transfer->sends && message) {
        message->receive = NULL;
        message->lost = true;
        if (message->arrived) drop(message);
    }
    struct tr_transfer **at = &sim->end[rank].receives;
    while (*at && *at != transfer) at = &(*at)->next;
    if (*at) *at = transfer->next;
}
