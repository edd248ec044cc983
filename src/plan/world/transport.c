/* The slots of the transport; messages go their way in messages.c. */
#include "plan/world/transport.h"

#include "plan/world/messages.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "comm/operation.h"
#include "comm/transport.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* A waiting rank is woken by all news that it waits for: polls in between would only cost turns. */
#define LOOK_SECONDS 0.05
/* A nap is too long by so much: the system's timers have some slack, and waking takes time. */
#define NAP_LATE 60e-6

struct sim_comm {
    tr_comm base; /* first, so that a tr_comm is one of these */
    tr_sim *sim;
};

static tr_sim *sim_of(tr_comm *comm)
{
    return ((struct sim_comm *)comm)->sim;
}

static bool sim_naps(const tr_sim *sim)
{
    return sim->cluster->naps && sim->cluster->hosts > 1;
}

/* ---- slots ---- */

static tr_status sim_start(tr_comm *comm, struct tr_transfer *transfer)
{
    tr_sim *sim = sim_of(comm);
    const struct tr_sim_listener *listener = &sim->listener;
    if (!transfer->sends) {
        if (listener->receives)
            listener->receives(listener->user, comm->rank, transfer->peer, transfer->tag, transfer->bytes);
        tr_sim_expect(sim, comm->rank, transfer);
        return TR_OK;
    }
    TR_TRY(tr_sim_announce(sim, comm->rank, transfer));
    if (listener->sends)
        listener->sends(listener->user, comm->rank, transfer->peer, transfer->tag, transfer->bytes);
    return TR_OK;
}

static tr_status sim_poll(tr_comm *comm, uint64_t *moment)
{
    tr_sim *sim = sim_of(comm);
    tr_world_pass(sim->world);
    tr_sim_look(sim, comm->rank);
    sim->end[comm->rank].looked = tr_world_moment(sim->world, comm->rank);
    /* A rank that naps does not notice news, so its whole wait counts as quiet. */
    *moment = sim_naps(sim) ? 0 : sim->end[comm->rank].looked;
    return TR_OK;
}

static tr_status sim_test(tr_comm *comm, struct tr_transfer *transfer)
{
    tr_sim *sim = sim_of(comm);
    if (transfer->state == WAITING) return TR_OK;
    transfer->done = true;
    tr_sim_take(sim, transfer);
    if (transfer->sends) return TR_OK;
    if (sim->listener.received)
        sim->listener.received(sim->listener.user, comm->rank, transfer->peer, transfer->tag);
    return transfer->state == MISMATCH ? tr_comm_wrong_size(transfer) : TR_OK;
}

static bool sim_withdraw(tr_comm *comm, struct tr_transfer *transfer)
{
    tr_sim_withdraw(sim_of(comm), comm->rank, transfer);
    transfer->done = true;
    return true;
}

/* Seconds without news after which ranks of one host sleep. */
static double patience_of(const tr_sim *sim)
{
    const struct tr_cluster *cluster = sim->cluster;
    return cluster->processors == 0 || sim->ranks <= cluster->processors ? TR_LOCAL_YIELD_SECONDS : 0;
}

/* Seconds until a rank that has waited for so long, and yields or naps for at most `longest`, polls again
   after `more` seconds. */
static double until_look(double waited, double more, double longest)
{
    double news = waited + more, look = waited < TR_MPI_YIELD_SECONDS ? TR_MPI_YIELD_SECONDS : waited;
    if (news <= TR_MPI_YIELD_SECONDS) return 0;
    while (look < news) {
        double nap = tr_mpi_nap(look, longest) + NAP_LATE;
        /* From here on all naps are equally long. */
        bool last = tr_mpi_nap(look, longest) == tr_mpi_nap(INFINITY, longest);
        look += last ? nap * ceil((news - look) / nap) : nap;
    }
    return look - news;
}

/* Sleeps until there is news, and to the end of the nap in which it arrived. */
static void doze(tr_sim *sim, int rank, double waited, double longest)
{
    double began = tr_world_now(sim->world);
    tr_world_sleep(sim->world, sim->end[rank].looked, LOOK_SECONDS);
    tr_world_rest(sim->world, until_look(waited, tr_world_now(sim->world) - began, longest));
}

static void sim_idle(tr_comm *comm, uint64_t moment, double waited, double seconds)
{
    tr_sim *sim = sim_of(comm);
    if (sim_naps(sim)) {
        doze(sim, comm->rank, waited, seconds);
        return;
    }
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
    struct block *gone; /* the next of those without users */
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
    *(struct block *)(void *)head = (struct block){bytes + BLOCK_HEAD, 1, NULL};
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
    void *shared;
    (void)comm, (void)bytes;
    memcpy(&shared, key, sizeof shared);
    if (block_of(shared)->users == 0) return tr_fail(TR_EPEER, "the rank with the memory has left");
    block_of(shared)->users++;
    *memory = shared;
    return TR_OK;
}

static void sim_unmap(tr_comm *comm, size_t bytes, void *memory)
{
    struct block *block = block_of(memory);
    if (--block->users > 0) return;
    /* A rank that failed leaves while others have the key: the addresses stay, without what was there. */
    madvise(memory, bytes, MADV_DONTNEED);
    block->gone = sim_of(comm)->gone;
    sim_of(comm)->gone = block;
}

static void release_gone(tr_sim *sim)
{
    for (struct block *block = sim->gone, *next; block; block = next) {
        next = block->gone;
        tr_sim_unreserve(block, block->bytes);
    }
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
    .share_memory = sim_share,
    .map = sim_map,
    .unmap = sim_unmap,
    .destroy = sim_destroy,
};

/* ---- for the rank that runs ---- */

void tr_sim_hollow(tr_sim *sim, size_t least)
{
    sim->hollow = least;
}

int64_t tr_sim_unmarked(const tr_sim *sim)
{
    return sim->unmarked;
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
        const double rest = tr_world_put_off(world);
        pthread_mutex_lock(&comm->lock);
        tr_status status = comm->dead ? TR_OK : tr_comm_move(comm);
        pthread_mutex_unlock(&comm->lock);
        tr_world_resume(world, rest);
        if (status != TR_OK) return status;
    }
    return TR_OK;
}

/* Data in another rank's cache arrive like messages within a host, which are copied from there. */
void tr_sim_touch(void *user, enum tr_program_motion motion, int64_t floats)
{
    tr_sim *sim = user;
    const double bytes = (double)floats * sizeof(float), memory = bytes / sim->cluster->memory;
    const double seconds =
        motion == TR_MOTION_ALL ? memory : fmax(bytes / sim->cluster->local.copying - memory, 0);
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
        snprintf(location->host, sizeof location->host, "host-%d", sim->host[i]);
        snprintf(location->machine, sizeof location->machine, "%d", sim->host[i]);
        location->process = i;
    }
    tr_comm_find_hosts(&comm->base);
    return TR_OK;
}

static tr_status make(tr_sim *sim, tr_comm **comm)
{
    TR_TRY(tr_network_make(sim->cluster, &sim->network));
    sim->end = tr_alloc_zero((size_t)sim->ranks, sizeof *sim->end);
    sim->host = tr_alloc((size_t)sim->ranks, sizeof *sim->host);
    if (!sim->end || !sim->host) return TR_ENOMEM;
    for (int h = 0, rank = 0; h < sim->cluster->hosts; h++)
        for (int end = tr_cluster_first_rank(sim->cluster, sim->ranks, h + 1); rank < end; rank++)
            sim->host[rank] = h;
    for (int rank = 0; rank < sim->ranks; rank++) {
        sim->end[rank].sim = sim;
        sim->end[rank].landed = -INFINITY;
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
        if (!end->comm) continue;
        tr_comm_release(end->comm);
        tr_free(end->comm);
    }
    tr_sim_forget_all(sim);
    release_gone(sim);
    tr_network_release(&sim->network);
    tr_free(sim->host);
    tr_free(sim->end);
    tr_free(sim);
    *handle = NULL;
}
