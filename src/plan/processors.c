/* Processors of a host that its ranks share, as a system's fair scheduler has them do (Linux's: EEVDF, before
 * it CFS).
 *
 * A host has places, each with the processors that a rank takes. A rank that begins to work takes a free
 * place, else the one where it ran last, and whoever runs there waits: those who sleep much come first. Ranks
 * of one place run by turns of TURN seconds. A place that becomes free takes who waits at another.
 *
 * Invariant: nobody waits while a place is free.
 */
#include "plan/world/internal.h"

#include "base/alloc.h"

#include <math.h>

#define TURN 3e-3 /* Linux: 2.8 ms, cut off by ticks */

struct place {
    struct host *host;
    int running;  /* rank; -1: it is free */
    double since; /* when that began to run */
    bool timed;   /* the end of a turn is announced */
};

struct host {
    tr_world *world;
    int first, end; /* ranks */
    struct place *place;
    int places, running; /* running: places that are not free */
    double processors, demand;
    double since; /* when what is left of work was last counted */
};

/* ---- time ---- */

/* Seconds of work in a second, of those who run: where they want more than there is, all get an even part. */
static double speed_of(const struct host *host)
{
    double demand = host->demand * host->running;
    return demand > host->processors ? host->processors / demand : 1;
}

static bool runs(const struct member *member)
{
    return member->busy && member->host->place[member->place].running == member->rank;
}

bool world_waits(const struct member *member)
{
    return member->busy && !runs(member);
}

/* Counts what was done since the last change. */
static void count_work(struct host *host)
{
    double passed = host->world->now - host->since, speed = speed_of(host);
    host->since = host->world->now;
    for (int i = 0; i < host->places && passed > 0; i++) {
        if (host->place[i].running < 0) continue;
        struct member *member = &host->world->member[host->place[i].running];
        member->left -= passed * speed;
        if (member->left < 0) member->left = 0;
    }
}

/* Whoever runs is through with his work by then. */
static void set_alarms(struct host *host)
{
    double speed = speed_of(host);
    for (int i = 0; i < host->places; i++) {
        if (host->place[i].running < 0) continue;
        struct member *member = &host->world->member[host->place[i].running];
        if (member->sleeps)
            world_set_alarm(member, host->world->now + (member->told ? 0 : member->left / speed));
    }
}

/* ---- places ---- */

/* Who has waited longest, for this place or, with NULL, for any; -1: nobody. */
static int first_waiting(const struct host *host, const struct place *place)
{
    int first = -1;
    for (int rank = host->first; rank < host->end; rank++) {
        const struct member *member = &host->world->member[rank];
        if (!member->busy || runs(member) || (place && &host->place[member->place] != place)) continue;
        if (first < 0 || member->since < host->world->member[first].since) first = rank;
    }
    return first;
}

static void end_turn(void *user, void *what, double time);

/* Announces the end of the turn, where somebody waits for it. */
static void time_turn(struct place *place)
{
    struct host *host = place->host;
    if (place->timed || place->running < 0 || first_waiting(host, place) < 0) return;
    double end = place->since + TURN, now = host->world->now;
    place->timed = tr_world_at(host->world, end > now ? end : now, end_turn, host->world, place);
}

static void run(struct place *place, int rank)
{
    struct host *host = place->host;
    struct member *member = &host->world->member[rank];
    if (place->running < 0) host->running++;
    place->running = rank;
    place->since = host->world->now;
    member->place = (int)(place - host->place);
    time_turn(place);
}

/* Who ran there waits from now on. */
static void set_aside(struct place *place)
{
    struct member *member = &place->host->world->member[place->running];
    member->since = place->host->world->now;
    member->sleep++; /* no alarm of his holds */
}

static void end_turn(void *user, void *what, double time)
{
    struct place *place = what;
    struct host *host = place->host;
    (void)user;
    place->timed = false;
    if (place->running < 0 || place->since + TURN > time + 1e-12) {
        time_turn(place);
        return;
    }
    int next = first_waiting(host, place);
    if (next < 0) return;
    count_work(host);
    set_aside(place);
    run(place, next);
    set_alarms(host);
}

static struct place *place_for(const struct member *member)
{
    struct host *host = member->host;
    struct place *own = &host->place[member->place];
    if (own->running < 0) return own;
    for (int i = 0; i < host->places; i++)
        if (host->place[i].running < 0) return &host->place[i];
    return own;
}

/* ---- a rank's work ---- */

void world_begin_work(struct member *member, double seconds)
{
    struct host *host = member->host;
    count_work(host);
    member->left = seconds;
    member->told = false;
    if (!member->busy) {
        struct place *place = place_for(member);
        if (place->running >= 0) set_aside(place);
        member->busy = true;
        run(place, member->rank);
    }
    set_alarms(host);
}

double world_end_work(struct member *member)
{
    count_work(member->host);
    return member->left > 1e-12 ? member->left : 0;
}

void world_leave_place(struct member *member)
{
    struct host *host = member->host;
    if (!host || !member->busy) return;
    count_work(host);
    struct place *place = &host->place[member->place];
    member->busy = false;
    place->running = -1;
    host->running--;
    int next = first_waiting(host, place);
    if (next < 0) next = first_waiting(host, NULL);
    if (next >= 0) run(place, next);
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
    int places = (int)ceil(processors / demand - 1e-9);
    if (places > most) places = most;
    world->host = tr_alloc_zero((size_t)hosts, sizeof *world->host);
    if (!world->host) return TR_ENOMEM;
    world->hosts = hosts;
    for (int h = 0; h < hosts; h++) {
        struct host *host = &world->host[h];
        *host =
            (struct host){.world = world, .first = first[h], .end = first[h + 1], .processors = processors};
        host->demand = demand;
        host->place = tr_alloc_zero((size_t)places, sizeof *host->place);
        if (!host->place) return TR_ENOMEM;
        host->places = places;
        for (int i = 0; i < places; i++) host->place[i] = (struct place){.host = host, .running = -1};
        for (int rank = host->first; rank < host->end; rank++) {
            world->member[rank].host = host;
            world->member[rank].place = (rank - host->first) % places;
        }
    }
    return TR_OK;
}

void world_release_hosts(tr_world *world)
{
    for (int h = 0; h < world->hosts; h++) tr_free(world->host[h].place);
    tr_free(world->host);
}
