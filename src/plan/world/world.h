/* A world with simulated time, in which ranks that are threads take turns.
 *
 * One rank runs at a time: the one with the earliest time. It runs, in zero time, until it sleeps; then
 * the clock jumps to the next event: another rank wakes up, or an announced event. A rank's processor work
 * is spent (tr_world_spend()) and passes when it next sleeps. So a run is the same every time, however
 * busy the machine is, and takes as long as its ranks' code does.
 *
 * Invariants: time never goes back. One rank or event runs at a time, so what they share needs no lock.
 * Events of equal times happen in the order in which they were announced.
 */
#ifndef TR_PLAN_WORLD_H
#define TR_PLAN_WORLD_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tr_world tr_world;

/* Returned, destroy with tr_world_destroy(). TR_ENOMEM. */
tr_status tr_world_create(int ranks, tr_world **out);
/* Ranks share the processors of hosts: the ranks from first[h] up to first[h + 1] those of host h; `first`
   has hosts + 1 numbers, covering all ranks. A busy rank takes `demand` of them; where all want more than
   there are, they take turns, see processors.c. Call it once, before the run; without it each rank has its
   own processors. TR_ENOMEM. */
tr_status tr_world_share(tr_world *world, int hosts, const int *first, int processors, double demand);
/* Accepts NULL, nulls the handle. No rank may be running. */
void tr_world_destroy(tr_world **world);

/* Runs `main` for each rank, on threads whose tr_clock_seconds() is the world's, and returns when all have
   returned. Once per world. TR_ENOMEM when the system has no thread for a rank, or an event was lost. */
typedef void (*tr_world_main)(void *user, int rank);
tr_status tr_world_run(tr_world *world, tr_world_main main, void *user);

/* ---- for the rank that runs ---- */

/* The running rank. */
int tr_world_running(const tr_world *world);
/* Its time, in seconds from 0: the world's, plus the time spent since it last slept. */
double tr_world_now(const tr_world *world);
/* Its processor is busy for so many more seconds. */
void tr_world_spend(tr_world *world, double seconds);
/* Lets the spent time pass. */
void tr_world_pass(tr_world *world);
/* The same, but news wakes it, as in tr_world_sleep(); the rest must still pass. */
void tr_world_pass_until_news(tr_world *world, uint64_t moment);
/* Lets spent time pass, and then sleeps at most so many seconds, until there is news since the moment. */
void tr_world_sleep(tr_world *world, uint64_t moment, double seconds);
/* Sleeps for so many seconds, in which nothing wakes it and its processor is idle. */
void tr_world_rest(tr_world *world, double seconds);
/* The time that it has yet to let pass. */
double tr_world_debt(const tr_world *world);
/* Puts that time off, and returns it: other work comes first, as another thread's does; and goes on with it.
 */
double tr_world_put_off(tr_world *world);
void tr_world_resume(tr_world *world, double seconds);
/* All seconds that it spent so far. */
double tr_world_spent(const tr_world *world, int rank);
/* All seconds so far in which it slept and its processor had nothing to do; of any rank. */
double tr_world_idled(const tr_world *world, int rank);

/* ---- for ranks and events ---- */

/* Counts the news of a rank. */
uint64_t tr_world_moment(const tr_world *world, int rank);
/* There is news for a rank: it awakes. */
void tr_world_wake(tr_world *world, int rank);
/* Calls `happen` at `time`, which is not past, on any thread. `user` and `what` are borrowed until then.
   False: no memory; then the world's run fails in the end. */
typedef void (*tr_world_event)(void *user, void *what, double time);
bool tr_world_at(tr_world *world, double time, tr_world_event happen, void *user, void *what);

#endif
