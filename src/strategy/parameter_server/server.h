/* The coordinator's interface to the server that it is. */
#ifndef TR_STRATEGY_PARAMETER_SERVER_SERVER_H
#define TR_STRATEGY_PARAMETER_SERVER_SERVER_H

#include "strategy/parameter_server/parameter_server.h"
#include "strategy/parameter_server/store.h"

/* Room for messages: an incoming gradient, or outgoing parameters. */
struct ps_room {
    float *arena;    /* NULL: lost to a message that could not be cancelled */
    tr_ticket **way; /* messages of a gradient's pieces; parameters are one */
    int worker;      /* of a gradient: -1: free; of parameters: the worker that got them last */
};

/* A worker, as a server sees it. */
struct ps_peer {
    struct ps_up up;    /* the last message, or the awaited one */
    tr_ticket *heard;   /* the awaited message */
    tr_ticket *showing; /* what it must evaluate, if it is far, from the stage */
    float *gradient;    /* arenas: the worker's own if it is near; else those of its rooms, or NULL */
    float *parameters;
    struct ps_room *in, *out;
    bool near, gone;
    bool pushes; /* it announced its gradient, but some of it is under way */
    /* Of the coordinator: */
    struct ps_up pushed; /* about its gradient */
    struct tr_rank_statistics done;
    bool shown;      /* it has the parameters to evaluate */
    int haves;       /* servers that have its gradient */
    bool ended;      /* it was notified that the run is over */
    double troubled; /* since when it is known to be lost; 0: it is not */
    int64_t applied; /* number of its gradients that were applied */
};

/* Another server, as the coordinator sees it. */
struct ps_colleague {
    struct ps_report report;
    tr_ticket *heard;
    double squares; /* the last that it measured */
    struct tr_rank_statistics done;
};

struct ps_coordinator;

struct ps_server {
    ps_store *store;
    int64_t begin, end;       /* its shard */
    struct ps_peer *peer;     /* [workers] */
    struct ps_room *in, *out; /* [rooms] each, of workers that are far */
    int rooms;
    float *stage;    /* a snapshot being sent: the shard of each arena, one after another */
    bool stage_kept; /* a message that could not be cancelled may be reading it */
    tr_ticket *staged[TR_ARENAS];
    struct ps_command command; /* of servers other than the coordinator */
    tr_ticket *commanded;
    struct ps_coordinator *coordinator; /* of the first server */
    bool finished;
    bool kept; /* at the end: no message can arrive in this structure and the peers' buffers */
    int lost;  /* ranks, known at the end */
};

/* The number of this server. */
static inline int ps_server_index(const struct ps *self)
{
    return self->head.rank - self->workers;
}

/* Carries out the command here; the results of MEASURE and UPDATE go to `report`. */
tr_status ps_server_execute(struct ps *self, const struct ps_command *command, struct ps_report *report);

/* ---- peers.c ---- */

/* Seats and rooms; counts their memory. */
tr_status ps_peers_create(struct ps *self);
/* Cancels messages. False: one may still arrive in a buffer of a peer. */
bool ps_peers_cancel(struct ps *self);
void ps_peers_destroy(struct ps *self);
/* Takes room for the gradient of a worker and starts to receive it; does nothing if it is near. */
tr_status ps_peer_expect(struct ps *self, int worker);
/* Whether the announced gradient has arrived completely. */
bool ps_peer_is_filled(struct ps *self, int worker);
/* The gradient has been used, or is not needed. */
void ps_peer_release(struct ps *self, int worker);
/* Provides `parameters`, to be written and then sent. */
tr_status ps_peer_prepare(struct ps *self, int worker);
tr_status ps_peer_send(struct ps *self, int worker);
/* A worker is lost. False: a message may still arrive in its buffer. */
bool ps_peer_forget(struct ps *self, int worker);

/* ---- coordinator.c ---- */

tr_status ps_coordinator_create(struct ps *self);
/* Cancels messages to it. */
void ps_coordinator_cancel(struct ps *self);
void ps_coordinator_destroy(struct ps *self);
/* Begins to receive from the other servers. */
tr_status ps_coordinator_begin(struct ps *self);
/* A worker's message is in its buffer; for a gradient only once this server has it. */
tr_status ps_coordinator_hear(struct ps *self, int worker);
/* Receives from the other servers, checks the workers, and acts on the messages; `request`: of this rank.
 *quiet becomes false if there was any. */
tr_status ps_coordinator_turn(struct ps *self, int32_t request, bool *quiet);

#endif
