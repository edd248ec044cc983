/* Which worker computes what, and which gradients count: the rules of the asynchronous modes, without
 * communication, so that tests can simulate them.
 *
 * The unit of work is a contribution, known by its number: contribution n is part n % parts of batch n /
 * parts. Each `parts` gradients that are taken make an update; updates are counted from the first step of the
 * run, and the count is the version of the parameters. With one part every contribution is a whole batch.
 *
 * Invariants: every number from first * parts to end * parts - 1 is always in exactly one place: not yet
 * handed out, with one worker, given back (its worker was lost or too late), or taken; so none is taken
 * twice, and at the end all have been taken once. No gradient is taken that missed more updates than
 * `staleness`.
 *
 * Not for several threads at once.
 */
#ifndef TR_STRATEGY_PARAMETER_SERVER_SCHEDULE_H
#define TR_STRATEGY_PARAMETER_SERVER_SCHEDULE_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stdint.h>

#define PS_STALENESS_ANY INT64_MAX

struct ps_schedule_settings {
    int workers;
    int64_t first, end; /* updates done, and the total to do */
    int parts;          /* gradients that make an update */
    /* Most updates that a gradient may miss. A worker must wait before it begins if its gradient, or one
       under way, could miss more; PS_STALENESS_ANY: no worker waits. */
    int64_t staleness;
    /* Backup workers: all begin at once, and gradients that missed an update are given back. */
    bool drops;
    const bool *distant; /* [workers], borrowed: whether each needs room to begin, see ps_schedule_next();
                            NULL: none does */
};

/* Work for a worker. */
struct ps_work {
    int worker;
    int64_t number;  /* of the contribution */
    int64_t version; /* updates done when it was handed out */
};

/* The outcome of a gradient that has arrived. */
struct ps_taken {
    int64_t number;
    int64_t missed; /* updates since its parameters were handed out */
    bool late;      /* not taken */
    bool completes; /* it completes an update, which then counts */
    bool first;     /* it is the first of its update */
};

typedef struct ps_schedule ps_schedule;

/* Returned, destroy with ps_schedule_destroy(). TR_ENOMEM. */
tr_status ps_schedule_create(const struct ps_schedule_settings *settings, ps_schedule **out);
/* Accepts NULL, nulls the handle. */
void ps_schedule_destroy(ps_schedule **schedule);

/* A worker without work requests some. */
void ps_schedule_ask(ps_schedule *schedule, int worker);
/* It withdraws the request. */
void ps_schedule_withdraw(ps_schedule *schedule, int worker);
/* Hands out work to the worker that has waited longest; without `room`, to one that needs none. False:
   none can begin now. */
bool ps_schedule_next(ps_schedule *schedule, bool room, struct ps_work *out);
/* The gradient of a worker's work has arrived. */
struct ps_taken ps_schedule_take(ps_schedule *schedule, int worker);
/* A worker is lost: its work is given back, and it takes no further part. Its number, or -1. */
int64_t ps_schedule_lose(ps_schedule *schedule, int worker);

int64_t ps_schedule_count(const ps_schedule *schedule); /* updates done */
bool ps_schedule_is_over(const ps_schedule *schedule);  /* all are done */
/* Whether a worker has asked, and has no work yet. */
bool ps_schedule_waits(const ps_schedule *schedule, int worker);
/* Whether a worker has work. */
bool ps_schedule_works(const ps_schedule *schedule, int worker);
/* Whether no number is left to hand out, so that new requests wait for others. */
bool ps_schedule_is_exhausted(const ps_schedule *schedule);

#endif
