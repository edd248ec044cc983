/* Simulates how the ranks of a host share its processors under a fair scheduler (Linux: EEVDF or CFS).
 *
 * A host has cores, each with the processors that a rank takes. A rank that begins to work takes a free
 * core, else the one where it ran last, and the rank running there waits: ranks that sleep much come
 * first. Ranks of one core take turns of TURN seconds. A core that becomes free takes a rank that waits at
 * another.
 *
 * Invariant: no rank waits while a core is free.
 */
#include "plan/world/internal.h"

#include "base/alloc.h"

#include <math.h>

#define TURN 3e-3 /* Linux: 2.8 ms, cut off by ticks */

struct core {
    struct host *host;
    int running;  /* rank; -1: it is free */
    double since; /* when that began to run */
    bool timed;   /* the end of a turn is announced */
};

struct host {
    tr_world *world;
    int first, end; /* ranks */
    struct core *core;
    int cores, running; /* running: cores that are not free */
    double processors, demand;
    double since; /* when remaining work was last updated */
};

/* ---- time ---- */

/* Seconds of work per second, for running ranks: where they want more than there is, all get the same
   fraction. */
static double speed_of(const struct host *host)
{
    double demand = host->demand * host->running;
    return demand > host->processors ? host->processors / demand : 1;
}

static bool runs(const struct member *member)
{
    return member->busy && member->host->core[member->core].running == member->rank;
}

bool world_waits(const struct member *member)
{
    return member->busy && !runs(member);
}

/* Updates remaining work since the last change. */
static void count_work(struct host *host)
{
    double passed = host->world->now - host->since, speed = speed_of(host);
    host->since = host->world->now;
    for (int i = 0; i < host->cores && passed > 0; i++) {
        if (host->core[i].running < 0) continue;
        struct member *member = &host->world->member[host->core[i].running];
        member->left -= passed * speed;
        if (member->left < 0) member->left = 0;
    }
}

/* The running rank finishes its work at that time. */
static void set_alarms(struct host *host)
{
    double speed = speed_of(host);
    for (int i = 0; i < host->cores; i++) {
        if (host->core[i].running < 0) continue;
        struct member *member = &host->world->member[host->core[i].running];
        if (member->sleeps)
            world_set_alarm(member, host->world->now + (member->notified ? 0 : member->left / speed));
    }
}

/* ---- cores ---- */

/* The rank that has waited longest, for this core or, with NULL, for any; -1: none. */
static int first_waiting(const struct host *host, const struct core *core)
{
    int first = -1;
    for (int rank = host->first; rank < host->end; rank++) {
        const struct member *member = &host->world->member[rank];
        if (!member->busy || runs(member) || (core && &host->core[member->core] != core)) continue;
        if (first < 0 || member->since < host->world->member[first].since) first = rank;
    }
    return first;
}

static void end_turn(void *user, void *what, double time);

/* Announces the end of the turn, if a member waits for it. */
static void time_turn(struct core *core)
{
    struct host *host = core->host;
    if (core->timed || core->running < 0 || first_waiting(host, core) < 0) return;
    double end = core->since + TURN, now = host->world->now;
    core->timed = tr_world_at(host->world, end > now ? end : now, end_turn, host->world, core);
}

static void run(struct core *core, int rank)
{
    struct host *host = core->host;
    struct member *member = &host->world->member[rank];
    if (core->running < 0) host->running++;
    core->running = rank;
    core->since = host->world->now;
    member->core = (int)(core - host->core);
    time_turn(core);
}

/* The member that ran there waits. */
static void set_aside(struct core *core)
{
    struct member *member = &core->host->world->member[core->running];
    member->since = core->host->world->now;
    member->sleep++; /* its own alarms become void */
}

static void end_turn(void *user, void *what, double time)
{
    struct core *core = what;
    struct host *host = core->host;
    (void)user;
    core->timed = false;
    if (core->running < 0 || core->since + TURN > time + 1e-12) {
        time_turn(core);
        return;
    }
    int next = first_waiting(host, core);
    if (next < 0) return;
    count_work(host);
    set_aside(core);
    run(core, next);
    set_alarms(host);
}

static struct core *core_for(const struct member *member)
{
    struct host *host = member->host;
    struct core *own = &host->core[member->core];
    if (own->running < 0) return own;
    for (int i = 0; i < host->cores; i++)
        if (host->core[i].running < 0) return &host->core[i];
    return own;
}

/* ---- a rank's work ---- */

void world_begin_work(struct member *member, double seconds)
{
    struct host *host = member->host;
    count_work(host);
    member->left = seconds;
    member->notified = false;
    if (!member->busy) {
        struct core *core = core_for(member);
        if (core->running >= 0) set_aside(core);
        member->busy = true;
        run(core, member->rank);
    }
    set_alarms(host);
}

double world_end_work(struct member *member)
{
    count_work(member->host);
    return member->left > 1e-12 ? member->left : 0;
}

void world_leave_core(struct member *member)
{
    struct host *host = member->host;
    if (!host || !member->busy) return;
    count_work(host);
    struct core *core = &host->core[member->core];
    member->busy = false;
    core->running = -1;
    host->running--;
    int next = first_waiting(host, core);
    if (next < 0) next = first_waiting(host, NULL);
    if (next >= 0) run(core, next);
    set_alarms(host);
}

/* ---- making ---- */

tr_status tr_world_share(tr_world *world, int hosts, const int *first, int processors, double demand)
{
    int most = 0;
    for (int h = 0; h < hosts; h++)
        if (first[h + 1] - first[h] > most) most = first[h + 1] - first[h];
    if (most * demand <= processors) return TR_OK; /* there are enough for all */
    if (demand > processors) demand = processors;
    int cores = (int)ceil(processors / demand - 1e-9);
    if (cores > most) cores = most;
    world->host = tr_alloc_zero((size_t)hosts, sizeof *world->host);
    if (!world->host) return TR_ENOMEM;
    world->hosts = hosts;
    for (int h = 0; h < hosts; h++) {
        struct host *host = &world->host[h];
        *host =
            (struct host){.world = world, .first = first[h], .end = first[h + 1], .processors = processors};
        host->demand = demand;
        host->core = tr_alloc_zero((size_t)cores, sizeof *host->core);
        if (!host->core) return TR_ENOMEM;
        host->cores = cores;
        for (int i = 0; i < cores; i++) host->core[i] = (struct core){.host = host, .running = -1};
        for (int rank = host->first; rank < host->end; rank++) {
            world->member[rank].host = host;
            world->member[rank].core = (rank - host->first) % cores;
        }
    }
    return TR_OK;
}

void world_release_hosts(tr_world *world)
{
    for (int h = 0; h < world->hosts; h++) tr_free(world->host[h].core);
    tr_free(world->host);
}
