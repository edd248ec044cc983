/* Room for messages between workers and servers, shared out fairly.
 *
 * There is room for a fixed number of messages; a worker has one or none. A worker that requests room
 * while there is none waits; workers are served in the order of their requests.
 *
 * The coordinator counts for all servers: each has the same room, and takes and releases it by the same
 * commands in the same order. So room is granted on all servers at once, and two workers can never each
 * hold a part of what both need.
 */
#ifndef TR_STRATEGY_PARAMETER_SERVER_CREDITS_H
#define TR_STRATEGY_PARAMETER_SERVER_CREDITS_H

#include "trireme/status.h"

#include <stdbool.h>

typedef struct ps_credits ps_credits;

/* For `workers` workers, room for `count` (0 where no worker will ask). Returned, destroy with
   ps_credits_destroy(). TR_ENOMEM. */
tr_status ps_credits_create(int workers, int count, ps_credits **out);
/* Accepts NULL, nulls the handle. */
void ps_credits_destroy(ps_credits **credits);

int ps_credits_free(const ps_credits *credits);
bool ps_credits_has(const ps_credits *credits, int worker);
/* A worker that has no room and does not wait for it takes free room, before workers that wait. */
void ps_credits_take(ps_credits *credits, int worker);
/* A worker that has no room and does not wait for it requests some. */
void ps_credits_ask(ps_credits *credits, int worker);
/* Grants room to the worker that has waited longest. False: there is no room, or none waits. */
bool ps_credits_next(ps_credits *credits, int *worker);
/* A worker no longer needs room, whether it has it, waits for it, or neither. */
void ps_credits_leave(ps_credits *credits, int worker);

#endif
