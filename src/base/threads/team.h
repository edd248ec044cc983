/* A team of threads that runs one function at a time, divided into as many chunks as there are members.
 *
 * The caller is member 0. Members wait for work by spinning shortly and then sleeping, so that an
 * oversubscribed machine makes progress. A team does not change results: members compute disjoint outputs.
 */
#ifndef TR_BASE_TEAM_H
#define TR_BASE_TEAM_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tr_team tr_team;

#define TR_TEAM_MAX 256

/* Number of processors that the calling thread, and threads that it starts, may use; 1 where the system
   does not say. */
int tr_team_processors(void);

/* Makes a team of `size` members (1..TR_TEAM_MAX), the caller included. Returned, destroy with
 * tr_team_destroy(). */
tr_status tr_team_create(int size, tr_team **out);
/* Accepts NULL, nulls the handle. Not while a run is under way. */
void tr_team_destroy(tr_team **team);
int tr_team_size(const tr_team *team);

typedef void (*tr_team_function)(void *arguments, int member, int size);
/* Calls `function` once for every member and returns when all calls are done. Members that finish early
   take over calls of members that have not begun, since their processors may be busy with other work: so
   calls must not wait for each other. Only from the thread that made the team; not from inside a run. */
void tr_team_run(tr_team *team, tr_team_function function, void *arguments);
/* The same, with every call on its member's own thread, so that calls may wait for each other. */
void tr_team_run_together(tr_team *team, tr_team_function function, void *arguments);
/* Within a run together: waits until every member has called it. */
void tr_team_barrier(tr_team *team, int member);

/* Work that members do while they wait for each other: some microseconds per call. Returns whether there
   may be more. Called by any member, by several at a time. */
typedef bool (*tr_team_idle)(void *arguments);
/* Makes waiting members call `idle`; NULL: when this returns, no member calls it or is in such a call.
   Only from the thread that made the team; not from inside a run. */
void tr_team_set_idle(tr_team *team, tr_team_idle idle, void *arguments);

/* The part [*begin, *end) of `count` items that `member` of `size` takes; parts are contiguous, ascending,
   multiples of `grain` except the last, and differ by at most one grain. */
void tr_team_chunk(int64_t count, int64_t grain, int member, int size, int64_t *begin, int64_t *end);

#endif
