/* The inside of a world: ranks that take turns (world.c), and the processors that those of a host share
 * (processors.c). */
#ifndef TR_PLAN_WORLD_INTERNAL_H
#define TR_PLAN_WORLD_INTERNAL_H

#include "plan/world/world.h"

#include <pthread.h>
#include <semaphore.h>

struct member {
    tr_world *world;
    int rank;
    pthread_t thread;
    sem_t turn;
    bool sleeps, light; /* light: news wakes it */
    uint64_t sleep;     /* counts its sleeps, so that an old alarm is known */
    uint64_t moment;
    double debt, spent, idled;
    double idles;      /* since when it sleeps with nothing to do; below 0: it does not */
    struct host *host; /* NULL: its processors are its own */
    /* On a host: */
    bool busy, notified; /* of news, while it had no processors */
    int core;            /* where it runs, ran last or waits */
    double left, since;  /* seconds of its work as of the host's last change; when it came to its core */
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
    uint64_t announced;
};

/* The member awakes at `time`, and not when it was to do so before. Without memory it awakes as it would
   have. */
void world_set_alarm(struct member *member, double time);

/* ---- processors.c; of a member with a host ---- */

/* It has so many seconds of work, and is about to sleep until that is done. */
void world_begin_work(struct member *member, double seconds);
/* It awoke; returns what is left. It has its core yet, and may go on. */
double world_end_work(struct member *member);
/* It leaves its core to others, if it has one. */
void world_leave_core(struct member *member);
/* It is busy, but others have the processors. */
bool world_waits(const struct member *member);
void world_release_hosts(tr_world *world);

#endif
