/* A message: announced -> (the receiver waits for it, where it is large) -> leaves -> its first byte is there
 * -> arrived -> taken. Sender and receiver find each other by sender, receiver and tag, in order.
 */
#include "plan/transport.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "comm/class.h"
#include "comm/operation.h"
#include "comm/program.h"
#include "comm/transport.h"
#include "plan/network.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Whatever a rank waits for is news, which wakes it: looks in between would only cost turns. */
#define LOOK_SECONDS 0.05

enum { WAITING, COMPLETE, MISMATCH }; /* states of a transfer */

struct message {
    struct message *next; /* in the list of those that nobody waits for yet */
    tr_sim *sim;
    int from, to, tag;
    int64_t number;
    size_t bytes;
    void *copy;                         /* of the contents, where the sender goes on; owned */
    struct tr_transfer *send, *receive; /* NULL: gone on, withdrawn, or not there yet */
    bool left, arrived, lost;           /* lost: the receiver does not wait for it any more */
};

struct end {
    tr_sim *sim;
    tr_comm *comm;
    struct message *unmatched, **newest; /* to this rank */
    struct tr_transfer *receives;        /* that found no message yet; oldest first */
    bool left, gave_up;
    char why[256];
};

struct sim_comm {
    tr_comm base; /* first, so that a tr_comm is one of these */
    tr_sim *sim;
};

struct tr_sim {
    tr_world *world;
    const struct tr_cluster *cluster;
    struct tr_network network;
    struct tr_sim_listener listener;
    int ranks;
    struct end *end; /* [ranks] */
    size_t hollow;   /* messages of so many bytes or more have no contents; SIZE_MAX: all have */
    uint64_t changes;
};

static tr_sim *sim_of(tr_comm *comm)
{
    return ((struct sim_comm *)comm)->sim;
}

static int host_of(const tr_sim *sim, int rank)
{
    return rank / sim->cluster->per_host % sim->cluster->hosts;
}

static const struct tr_path *path_of(const tr_sim *sim, int from, int to)
{
    return tr_cluster_path(sim->cluster, host_of(sim, from), host_of(sim, to));
}

/* What a message takes of a processor at either end. */
static void handle(const tr_sim *sim, const struct message *message)
{
    const struct tr_path *path = path_of(sim, message->from, message->to);
    tr_world_spend(sim->world, path->overhead + (double)message->bytes / path->copying);
}

/* ---- the way of a message ---- */

static void forget(struct message *message)
{
    tr_free(message->copy);
    tr_free(message);
}

/* Receiver and contents are there. */
static void deliver(struct message *message)
{
    tr_sim *sim = message->sim;
    struct tr_transfer *send = message->send, *receive = message->receive;
    bool fits = receive->bytes == message->bytes, hollow = message->bytes >= sim->hollow;
    const void *data = message->copy ? message->copy : send ? send->data : NULL;
    if (fits && data && !hollow && message->bytes > 0) memcpy(receive->data, data, message->bytes);
    if (!fits) receive->came = message->bytes;
    receive->state = fits ? COMPLETE : MISMATCH;
    tr_world_wake(sim->world, message->to);
    if (!send) return;
    send->state = COMPLETE;
    send->request = NULL;
    message->send = NULL;
    tr_world_wake(sim->world, message->from);
}

static void arrive(void *user, void *what, double time)
{
    struct message *message = what;
    (void)user, (void)time;
    message->arrived = true;
    if (message->lost)
        forget(message);
    else if (message->receive)
        deliver(message);
}

static void begin_to_arrive(void *user, void *what, double time)
{
    tr_sim *sim = user;
    struct message *message = what;
    double end = tr_network_arrive(&sim->network, host_of(sim, message->from), host_of(sim, message->to),
                                   time, (double)message->bytes);
    tr_world_at(sim->world, end, arrive, sim, message);
}

static void leave(tr_sim *sim, struct message *message, double time)
{
    double begins;
    message->left = true;
    tr_network_leave(&sim->network, host_of(sim, message->from), host_of(sim, message->to), time,
                     (double)message->bytes, &begins);
    tr_world_at(sim->world, begins, begin_to_arrive, sim, message);
}

static bool waits_for_receiver(const tr_sim *sim, const struct message *message)
{
    return (int64_t)message->bytes > path_of(sim, message->from, message->to)->eager;
}

static void match(tr_sim *sim, struct message *message, struct tr_transfer *receive)
{
    message->receive = receive;
    receive->request = message;
    if (message->arrived) {
        deliver(message);
    } else if (!message->left) {
        /* The receiver's word that it waits takes its time, too. */
        double answer = path_of(sim, message->from, message->to)->latency;
        leave(sim, message, tr_world_now(sim->world) + answer);
    }
}

static tr_status announce(tr_sim *sim, tr_comm *comm, struct tr_transfer *send)
{
    struct end *to = &sim->end[send->peer];
    struct message *message = tr_alloc_zero(1, sizeof *message);
    if (!message) return TR_ENOMEM;
    *message = (struct message){
        .sim = sim, .from = comm->rank, .to = send->peer, .tag = send->tag, .bytes = send->bytes};
    handle(sim, message);
    tr_world_pass(sim->world);
    if (waits_for_receiver(sim, message)) {
        message->send = send;
        send->request = message;
        send->state = WAITING;
    } else {
        bool copies = send->bytes > 0 && send->bytes < sim->hollow;
        if (copies && !(message->copy = tr_alloc(send->bytes, 1))) {
            forget(message);
            return TR_ENOMEM;
        }
        if (copies) memcpy(message->copy, send->data, send->bytes);
        send->state = COMPLETE;
        leave(sim, message, tr_world_now(sim->world));
    }
    send->done = send->state == COMPLETE;
    if (sim->listener.sends)
        sim->listener.sends(sim->listener.user, comm->rank, send->peer, send->tag, send->bytes);
    struct tr_transfer **at = &to->receives;
    while (*at && ((*at)->peer != comm->rank || (*at)->tag != send->tag)) at = &(*at)->next;
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

static void wait_for(tr_sim *sim, tr_comm *comm, struct tr_transfer *receive)
{
    struct end *self = &sim->end[comm->rank];
    receive->state = WAITING;
    receive->request = NULL;
    if (sim->listener.receives)
        sim->listener.receives(sim->listener.user, comm->rank, receive->peer, receive->tag, receive->bytes);
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

/* ---- slots ---- */

static tr_status sim_start(tr_comm *comm, struct tr_transfer *transfer)
{
    tr_sim *sim = sim_of(comm);
    if (transfer->sends) return announce(sim, comm, transfer);
    wait_for(sim, comm, transfer);
    return TR_OK;
}

static tr_status sim_poll(tr_comm *comm, uint64_t *moment)
{
    tr_sim *sim = sim_of(comm);
    tr_world_pass(sim->world);
    *moment = tr_world_moment(sim->world, comm->rank);
    return TR_OK;
}

static tr_status sim_test(tr_comm *comm, struct tr_transfer *transfer)
{
    tr_sim *sim = sim_of(comm);
    if (transfer->state == WAITING) return TR_OK;
    transfer->done = true;
    if (transfer->sends) return TR_OK;
    struct message *message = transfer->request;
    handle(sim, message);
    transfer->request = NULL;
    if (sim->listener.received)
        sim->listener.received(sim->listener.user, comm->rank, transfer->peer, transfer->tag);
    forget(message);
    return transfer->state == MISMATCH ? tr_comm_wrong_size(transfer) : TR_OK;
}

static bool sim_withdraw(tr_comm *comm, struct tr_transfer *transfer)
{
    tr_sim *sim = sim_of(comm);
    struct message *message = transfer->request;
    if (transfer->sends && message) message->send = NULL; /* its contents are lost */
    if (!transfer->sends && message) {
        message->receive = NULL;
        message->lost = true;
        if (message->arrived) forget(message);
    }
    struct tr_transfer **at = &sim->end[comm->rank].receives;
    while (*at && *at != transfer) at = &(*at)->next;
    if (*at) *at = transfer->next;
    transfer->done = true;
    return true;
}

/* Seconds without news after which ranks of one host sleep. */
static double patience_of(const tr_sim *sim)
{
    const struct tr_cluster *cluster = sim->cluster;
    return cluster->processors == 0 || sim->ranks <= cluster->processors ? TR_LOCAL_YIELD_SECONDS : 0;
}

static void sim_idle(tr_comm *comm, uint64_t moment, double waited, double seconds)
{
    tr_sim *sim = sim_of(comm);
    double began = tr_world_now(sim->world);
    tr_world_sleep(sim->world, moment, seconds < LOOK_SECONDS ? LOOK_SECONDS : seconds);
    bool slept = waited + tr_world_now(sim->world) - began > patience_of(sim);
    if (slept && sim->cluster->hosts == 1) tr_world_rest(sim->world, sim->cluster->local.waking);
}

static enum tr_comm_life sim_life(tr_comm *comm, int rank, double *silence, char *why, size_t size)
{
    const struct end *end = &sim_of(comm)->end[rank];
    *silence = 0;
    if (end->gave_up) snprintf(why, size, "%s", end->why);
    return end->gave_up ? TR_COMM_GAVE_UP : end->left ? TR_COMM_LEFT : TR_COMM_ALIVE;
}

static uint64_t sim_changes(tr_comm *comm)
{
    return sim_of(comm)->changes;
}

static void tell_all(tr_sim *sim)
{
    sim->changes++;
    for (int rank = 0; rank < sim->ranks; rank++) tr_world_wake(sim->world, rank);
}

static void sim_give_up(tr_comm *comm, const char *why)
{
    tr_sim *sim = sim_of(comm);
    struct end *end = &sim->end[comm->rank];
    end->gave_up = true;
    snprintf(end->why, sizeof end->why, "%s", why);
    tell_all(sim);
}

/* ---- memory: ranks of a host are threads of one process, so that a key is an address ---- */

struct block {
    size_t bytes;
    int users;
};
#define BLOCK_HEAD ((size_t)4096)

void *tr_sim_reserve(size_t bytes)
{
    void *memory = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) return memory;
    tr_fail(TR_ENOMEM, "the system has no addresses for %zu bytes more; simulate fewer ranks", bytes);
    return NULL;
}

void tr_sim_unreserve(void *memory, size_t bytes)
{
    if (memory) munmap(memory, bytes ? bytes : 1);
}

static tr_status sim_share(tr_comm *comm, size_t bytes, size_t begin, size_t end, void **memory,
                           char key[TR_SHARE_KEY])
{
    (void)comm, (void)begin, (void)end;
    char *head = tr_sim_reserve(bytes + BLOCK_HEAD);
    if (!head) return TR_ENOMEM;
    *(struct block *)(void *)head = (struct block){bytes + BLOCK_HEAD, 1};
    *memory = head + BLOCK_HEAD;
    memcpy(key, memory, sizeof *memory);
    return TR_OK;
}

static struct block *block_of(void *memory)
{
    return (struct block *)(void *)((char *)memory - BLOCK_HEAD);
}

static tr_status sim_map(tr_comm *comm, size_t bytes, const char key[TR_SHARE_KEY], void **memory)
{
    (void)comm, (void)bytes;
    memcpy(memory, key, sizeof *memory);
    block_of(*memory)->users++;
    return TR_OK;
}

static void sim_unmap(tr_comm *comm, size_t bytes, void *memory)
{
    struct block *block = block_of(memory);
    (void)comm, (void)bytes;
    if (--block->users == 0) tr_sim_unreserve(block, block->bytes);
}

static void sim_destroy(tr_comm *comm, bool clean)
{
    tr_sim *sim = sim_of(comm);
    (void)clean;
    sim->end[comm->rank].left = true;
    sim->end[comm->rank].comm = NULL;
    tell_all(sim);
    tr_comm_release(comm);
    tr_free(comm);
}

static const struct tr_comm_class sim_class = {
    .name = "simulated",
    .version = TR_COMM_VERSION,
    .start = sim_start,
    .poll = sim_poll,
    .test = sim_test,
    .withdraw = sim_withdraw,
    .idle = sim_idle,
    .life = sim_life,
    .changes = sim_changes,
    .give_up = sim_give_up,
    .share = sim_share,
    .map = sim_map,
    .unmap = sim_unmap,
    .destroy = sim_destroy,
};

/* ---- for the rank that runs ---- */

void tr_sim_hollow(tr_sim *sim, size_t least)
{
    sim->hollow = least;
}

tr_status tr_sim_compute(tr_sim *sim, double seconds)
{
    tr_world *world = sim->world;
    int rank = tr_world_running(world);
    tr_comm *comm = sim->end[rank].comm;
    tr_world_spend(world, seconds);
    if (sim->listener.computes) sim->listener.computes(sim->listener.user, rank, seconds);
    while (comm && comm->active && tr_world_debt(world) > 0) {
        uint64_t moment = tr_world_moment(world, rank);
        tr_world_pass_until_news(world, moment);
        if (tr_world_moment(world, rank) == moment) break;
        pthread_mutex_lock(&comm->lock);
        tr_status status = comm->dead ? TR_OK : tr_comm_move(comm);
        pthread_mutex_unlock(&comm->lock);
        if (status != TR_OK) return status;
    }
    return TR_OK;
}

void tr_sim_touch(void *user, int64_t floats)
{
    tr_sim *sim = user;
    double seconds = (double)floats * sizeof(float) / sim->cluster->memory;
    tr_world_spend(sim->world, seconds);
    if (sim->listener.computes)
        sim->listener.computes(sim->listener.user, tr_world_running(sim->world), seconds);
}

/* ---- life ---- */

static tr_status make_comm(tr_sim *sim, int rank, tr_comm **out)
{
    const struct tr_comm_settings settings = {
        .timeout = TR_COMM_TIMEOUT, .patience = TR_COMM_PATIENCE, .moves = true};
    struct sim_comm *comm = tr_alloc_zero(1, sizeof *comm);
    if (!comm) return TR_ENOMEM;
    *out = &comm->base;
    tr_status status = tr_comm_prepare(&comm->base, &sim_class, rank, sim->ranks, &settings);
    comm->sim = sim;
    sim->end[rank].comm = &comm->base;
    TR_TRY(status);
    for (int i = 0; i < sim->ranks; i++) {
        struct tr_location *location = &comm->base.location[i];
        snprintf(location->host, sizeof location->host, "host-%d", host_of(sim, i));
        snprintf(location->machine, sizeof location->machine, "%d", host_of(sim, i));
        location->process = i;
    }
    tr_comm_find_hosts(&comm->base);
    return TR_OK;
}

static tr_status make(tr_sim *sim, tr_comm **comm)
{
    TR_TRY(tr_network_make(sim->cluster, &sim->network));
    sim->end = tr_alloc_zero((size_t)sim->ranks, sizeof *sim->end);
    if (!sim->end) return TR_ENOMEM;
    for (int rank = 0; rank < sim->ranks; rank++) {
        sim->end[rank].sim = sim;
        sim->end[rank].newest = &sim->end[rank].unmatched;
        TR_TRY(make_comm(sim, rank, &comm[rank]));
    }
    return TR_OK;
}

double tr_sim_busiest(const tr_sim *sim)
{
    const struct tr_network *network = &sim->network;
    double most = 0;
    for (int host = 0; host < sim->cluster->hosts; host++) {
        if (network->up_busy[host] > most) most = network->up_busy[host];
        if (network->down_busy[host] > most) most = network->down_busy[host];
    }
    return most;
}

tr_status tr_sim_create(tr_world *world, const struct tr_cluster *cluster, int ranks,
                        const struct tr_sim_listener *listener, tr_comm **comm, tr_sim **out)
{
    tr_sim *sim = *out = tr_alloc_zero(1, sizeof *sim);
    if (!sim) return TR_ENOMEM;
    *sim = (tr_sim){.world = world, .cluster = cluster, .ranks = ranks, .hollow = SIZE_MAX};
    if (listener) sim->listener = *listener;
    tr_status status = make(sim, comm);
    if (status != TR_OK) tr_sim_destroy(out);
    return status;
}

void tr_sim_destroy(tr_sim **handle)
{
    tr_sim *sim = *handle;
    if (!sim) return;
    for (int rank = 0; sim->end && rank < sim->ranks; rank++) {
        struct end *end = &sim->end[rank];
        for (struct message *next; end->unmatched; end->unmatched = next) {
            next = end->unmatched->next;
            forget(end->unmatched);
        }
        if (!end->comm) continue;
        tr_comm_release(end->comm);
        tr_free(end->comm);
    }
    tr_network_release(&sim->network);
    tr_free(sim->end);
    tr_free(sim);
    *handle = NULL;
}
