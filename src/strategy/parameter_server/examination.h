/* An evaluation that all workers share: who has which piece of the examples, apart from all communication.
 *
 * Invariant: every piece is always in exactly one place: not yet handed out, with one worker, given back (its
 * worker was lost), found and the root not yet told, or with the root for good.
 */
#ifndef TR_STRATEGY_PARAMETER_SERVER_EXAMINATION_H
#define TR_STRATEGY_PARAMETER_SERVER_EXAMINATION_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct ps_examination ps_examination;

/* Of `pieces` pieces, for `workers` workers, the root included. Returned, destroy with
   ps_examination_destroy(). TR_ENOMEM. */
tr_status ps_examination_create(int workers, int64_t pieces, ps_examination **out);
/* Accepts NULL, nulls the handle. */
void ps_examination_destroy(ps_examination **examination);

/* Whether a piece is left that nobody has. NULL: none is. */
bool ps_examination_is_open(const ps_examination *examination);
/* Hands a piece that nobody has to a worker without one, the lowest first; there must be one. */
int64_t ps_examination_draw(ps_examination *examination, int worker);
/* What a worker has was found. False: it has nothing. */
bool ps_examination_found(ps_examination *examination, int worker);
/* Something that was found and the root was not told of: where it is to be had. False: there is none. Of its
   own pieces the root knows. */
bool ps_examination_tell(ps_examination *examination, int *worker, int64_t *piece);
/* A worker is lost: what it has is given back; what it had found the root will look for, or find itself. */
void ps_examination_lose(ps_examination *examination, int worker);
/* Whether all pieces are with the root. */
bool ps_examination_is_over(const ps_examination *examination);

#endif
