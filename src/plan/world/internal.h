/* The structure of a world: ranks that take turns (world.c), and processors that the ranks of a host share
 * (processors.c).
 */
#ifndef TR_PLAN_WORLD_INTERNAL_H
#define TR_PLAN_WORLD_INTERNAL_H

#include "plan/world/world.h"

#include <pthread.h>
#include <semaphore.h>

/* What comes at a time, in the order in which it was announced. */
struct entry {
    double time;
    uint64_t order;
    int rank; /* that awakes; -1: an event */
    uint64_t sleep;
    tr_world_event happen;
    void *user, *what;
};

struct member {
    tr_world *world;
    int rank;
    pthread_t thread;
    sem_t turn;
    bool sleeps, light; /* light: news wakes it */
    uint64_t sleep;     /* number of its sleeps, to recognize outdated alarms */
    struct entry kept;  /* its awakening, where the heap had no memory for that */
    bool keeps;
    uint64_t moment;
    double debt, spent, idled;
    double idles;      /* since when it sleeps without work; below 0: it does not */
    struct host *host; /* NULL: it has its own processors */
    /* On a host: */
    bool busy, notified; /* of news, while it had no processor */
    int core;            /* core where it runs, ran last or waits */
    double left, since;  /* seconds of its work at the host's last change; when it got its core */
};

struct tr_world {
    sem_t over;
    double now;
    int ranks, alive;
    struct member *member; /* [ranks] */
    int running;           /* -1: none */
    struct host *host;     /* NULL: no processors are shared */
    int hosts;
    tr_world_main main;
    void *user;
    /* A heap, the earliest first. */
    struct entry *entry;
    int64_t entries;
    int kept;  /* entries of members */
    bool lost; /* an event, for which there was no memory */
    uint64_t announced;
};

/* Wakes the member at `time`, and no longer at the earlier time. */
void world_set_alarm(struct member *member, double time);

/* ---- processors.c; of a member with a host ---- */

/* It has so many seconds of work, and sleeps until that is done. */
void world_begin_work(struct member *member, double seconds);
/* It woke up; returns its remaining work. It keeps its core, and may continue. */
double world_end_work(struct member *member);
/* It leaves its core to others, if it has one. */
void world_leave_core(struct member *member);
/* It is busy, but others have the processors. */
bool world_waits(const struct member *member);
void world_release_hosts(tr_world *world);

#endif
