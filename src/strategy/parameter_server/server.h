/* What the coordinator needs of the server that it is. */
#ifndef TR_STRATEGY_PARAMETER_SERVER_SERVER_H
#define TR_STRATEGY_PARAMETER_SERVER_SERVER_H

#include "strategy/parameter_server/parameter_server.h"
#include "strategy/parameter_server/store.h"

/* A worker, as a server sees it. */
struct ps_seat {
    struct ps_up up;     /* the last message, or the one that is awaited */
    tr_ticket *heard;    /* the message that is awaited */
    tr_ticket **filling; /* [ps_pieces()] of its gradient on the way, if it is far; else NULL */
    tr_ticket *giving;   /* parameters on the way to it, if it is far */
    float *gradient;     /* arena: the worker's own if it is near */
    float *parameters;   /* likewise; else copies that are sent */
    bool near, gone;
    bool pushes; /* it said that its gradient is there, but some of it is still on the way */
    /* Of the coordinator: */
    struct ps_up pushed; /* about its gradient */
    struct tr_rank_statistics done;
    int haves;       /* servers that have its gradient */
    bool ended;      /* it was told that the run is over */
    double troubled; /* since when it is known to be lost; 0: it is not */
    int64_t applied; /* its gradients that were */
};

/* Another server, as the coordinator sees it. */
struct ps_colleague {
    struct ps_report report;
    tr_ticket *heard;
    struct tr_rank_statistics done;
};

struct ps_coordinator;

struct ps_server {
    ps_store *store;
    int64_t begin, end;   /* its share */
    struct ps_seat *seat; /* [workers] */
    float *gradient;      /* what was measured or is to be applied */
    float *stage;         /* a snapshot on its way: the share of each arena after another */
    tr_ticket *staged[TR_ARENAS];
    struct ps_command command; /* of others than the coordinator */
    tr_ticket *commanded;
    struct ps_coordinator *coordinator; /* of the first server */
    bool finished;
    bool kept; /* in the end: nothing can arrive any more in this structure and the seats */
    int lost;  /* ranks, known at the end */
};

/* Does what the command says, here; the results of MEASURE and UPDATE go to `report`. */
tr_status ps_server_execute(struct ps *self, const struct ps_command *command, struct ps_report *report);

/* ---- coordinator.c ---- */

tr_status ps_coordinator_create(struct ps *self);
/* Gives up what is on its way to it. */
void ps_coordinator_cancel(struct ps *self);
void ps_coordinator_destroy(struct ps *self);
/* Begins to listen to the other servers. */
tr_status ps_coordinator_begin(struct ps *self);
/* A message of a worker is in its seat; of a gradient only once this server has it. */
tr_status ps_coordinator_hear(struct ps *self, int worker);
/* Listens to the other servers, looks after the workers, and acts on what was heard; `wish`: what this rank
   wishes for. *quiet becomes false if there was something. */
tr_status ps_coordinator_turn(struct ps *self, int32_t wish, bool *quiet);

#endif
