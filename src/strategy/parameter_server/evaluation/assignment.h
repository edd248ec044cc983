/* An evaluation that all workers share: who has which piece of the examples, apart from all communication.
 *
 * Invariant: every piece is always in exactly one place: not yet handed out, with one worker, given back (its
 * worker was lost), found and the root not yet told, or with the root for good.
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
/* What a worker has was found. False: it has nothing. */
bool ps_assignment_found(ps_assignment *assignment, int worker);
/* Something that was found and the root was not told of: where it is to be had. False: there is none. Of its
   own pieces the root knows. */
bool ps_assignment_tell(ps_assignment *assignment, int *worker, int64_t *piece);
/* A worker is lost: what it has is given back; what it had found the root will look for, or find itself. */
void ps_assignment_lose(ps_assignment *assignment, int worker);
/* Whether all pieces are with the root. */
bool ps_assignment_is_over(const ps_assignment *assignment);

#endif
