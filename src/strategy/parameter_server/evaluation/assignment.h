/* An evaluation that all workers share: which worker has which piece of the examples; without
 * communication.
 *
 * Invariant: every piece is always in exactly one place: not yet handed out, with one worker, given back
 * (its worker was lost), found without the root knowing, or received by the root.
 */
#ifndef TR_STRATEGY_PARAMETER_SERVER_ASSIGNMENT_H
#define TR_STRATEGY_PARAMETER_SERVER_ASSIGNMENT_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct ps_assignment ps_assignment;

/* Of `count` pieces, for `workers` workers, the root included. Returned, destroy with
   ps_assignment_destroy(). TR_ENOMEM. */
tr_status ps_assignment_create(int workers, int64_t count, ps_assignment **out);
/* Accepts NULL, nulls the handle. */
void ps_assignment_destroy(ps_assignment **assignment);

/* Whether a piece is left that no worker has. NULL: none is. */
bool ps_assignment_is_open(const ps_assignment *assignment);
/* Hands a free piece to a worker without one, the lowest first; there must be one. */
int64_t ps_assignment_draw(ps_assignment *assignment, int worker);
/* A worker has found the result of its piece. False: it has none. */
bool ps_assignment_found(ps_assignment *assignment, int worker);
/* A result that was found and is unknown to the root, and its place. False: there is none. The root knows
   its own pieces. */
bool ps_assignment_tell(ps_assignment *assignment, int *worker, int64_t *piece);
/* A worker is lost: its piece is given back; results that it had found the root will receive, or compute
   again. */
void ps_assignment_lose(ps_assignment *assignment, int worker);
/* Whether the root has all pieces. */
bool ps_assignment_is_over(const ps_assignment *assignment);

#endif
