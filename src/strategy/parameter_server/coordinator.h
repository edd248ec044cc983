/* The structure of the coordinator, shared by its files (listed in parameter_server.h). */
#ifndef TR_STRATEGY_PARAMETER_SERVER_COORDINATOR_H
#define TR_STRATEGY_PARAMETER_SERVER_COORDINATOR_H

#include "strategy/parameter_server/credits.h"
#include "strategy/parameter_server/evaluation/assignment.h"
#include "strategy/parameter_server/schedule.h"
#include "strategy/parameter_server/server.h"

struct ps_coordinator {
    ps_schedule *schedule;
    ps_credits *incoming, *outgoing; /* of distant workers: gradients, and parameters under way */
    struct ps_colleague *colleague;  /* [servers]; the first, ourselves, unused */
    struct ps_update update;         /* the update that is being collected, or was last */
    /* The root. */
    bool root_asks, root_waits; /* for work; for news */
    struct ps_news news;        /* since the last message to it */
    bool halted;                /* something is not finite: no more work until the root knows */
    bool settling;              /* the root wants all workers to stop */
    bool settled;               /* and has been notified that all have */
    bool ending;                /* the root has ended the run */
    double next_look;
    /* An evaluation, or NULL; and whether the root waits for its next piece. */
    ps_assignment *assignment;
    struct tr_shared_evaluation evaluation;
    bool root_evaluates;
    int lost; /* workers */
    struct ps_table table;
    struct tr_update_log updates;    /* records that the root does not have yet */
    int64_t logged;                  /* updates, including those that it has */
    struct tr_rank_statistics *rank; /* [size], to be sent */
    /* Answers to MEASURE received. */
    int measured;
};

/* ---- coordinator.c ---- */

/* Makes all servers carry out `order`; the results of this one are in `result`. */
tr_status ps_coordinator_command(struct ps *self, const struct ps_command *order, struct ps_report *result);
tr_status ps_coordinator_tell(struct ps *self, int worker, const struct ps_down *text, const char *name);
/* Draws work for a worker that may begin now. False: none may. */
bool ps_coordinator_draw(struct ps *self, struct ps_work *work);
/* Sends parameters, unless the worker has them, and then the work. */
tr_status ps_coordinator_give(struct ps *self, const struct ps_work *work, bool given);
/* Whether the root gets news rather than work: it waits for news, or there is no work left for it. */
void ps_coordinator_recall_root(struct ps_coordinator *coordinator);
/* Receives messages of the other servers. */
tr_status ps_coordinator_hear_servers(struct ps *self, bool *quiet);
/* Answers the root with the steps since its last message; their figures come with the next news. */
tr_status ps_coordinator_answer(struct ps *self, enum ps_down_kind kind);

/* ---- updates.c ---- */

/* Logs the outcome of a gradient that has arrived, or the loss of a worker with this contribution under
   way (-1: none). */
tr_status ps_coordinator_note_work(struct ps *self, int worker, const struct ps_taken *taken);
tr_status ps_coordinator_note_lost(struct ps *self, int worker, int64_t number);
/* ps_coordinator_tell() to the root, with the records that it does not have; the last one has this kind. */
tr_status ps_coordinator_tell_root(struct ps *self, struct ps_down *text, enum tr_update_kind kind,
                                   const char *name);

/* ---- gradients.c ---- */

/* All servers have the gradient of a worker: takes it, or drops it. */
tr_status ps_coordinator_take(struct ps *self, int worker);

/* ---- evaluation/coordinator.c ---- */

/* The root requests an evaluation of the last snapshot. */
tr_status ps_coordinator_begin_evaluation(struct ps *self, const struct tr_shared_evaluation *evaluation);
/* A worker has finished a piece, or the root has received one. */
tr_status ps_coordinator_hear_evaluated(struct ps *self, int worker);
/* Hands out pieces, and notifies the root of results. */
tr_status ps_coordinator_evaluate(struct ps *self);

/* ---- shutdown.c ---- */

/* Continues without workers that are lost; checks at intervals. */
tr_status ps_coordinator_look_after(struct ps *self);
/* Notifies the root when all workers have stopped, if it requested that. */
tr_status ps_coordinator_settle(struct ps *self);
/* Releases the workers as they finish, then the servers and the root. */
tr_status ps_coordinator_finish(struct ps *self);

#endif
