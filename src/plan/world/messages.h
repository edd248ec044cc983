/* Messages of a simulated network; the slots of transport.c start, progress and receive them.
 *
 * A small one: announced -> sent -> first byte arrived -> arrived -> taken. A large one is sent later:
 * announced -> noticed by its receiver -> requested, once the receive is there -> sent -> ... Between
 * hosts both ends act only when they poll (tr_sim_look()), like processes that are not notified of news.
 *
 * Two ranks have one connection, on which Open MPI sends a whole large message once it was requested;
 * other messages come after it. A message that is announced while the other's arrives is requested only
 * afterwards, so they usually follow each other. If both were requested before either was sent, they go
 * both ways at once. For two that are announced within a nap, that happens every other time.
 *
 * Between hosts a message goes in pieces, so that several ranks share a link evenly, as with TCP.
 *
 * The processors at both ends do the work for a large message during the transfer, as far as they are idle
 * meanwhile, and the rest when an end notices that it is over.
 */
#ifndef TR_PLAN_MESSAGES_H
#define TR_PLAN_MESSAGES_H

#include "comm/class.h"
#include "plan/cluster.h"
#include "plan/world/listener.h"
#include "plan/world/network.h"
#include "plan/world/world.h"

enum { WAITING, COMPLETE, MISMATCH }; /* states of a transfer */

struct message {
    struct message *next;             /* in the list of those that no receive waits for */
    struct message *task;             /* in the list of messages that the receiving end must look at */
    struct message *older, **younger; /* among all */
    tr_sim *sim;
    int from, to, tag;
    size_t bytes;
    void *copy;                         /* of the contents, where the sender continues; owned */
    struct tr_transfer *send, *receive; /* NULL: the sender continued or withdrew, or has not started */
    bool hollow;                        /* its contents are left out */
    size_t gone, come;                  /* bytes of the pieces sent so far, and arrived */
    struct message *flying;             /* in the list of those in one direction from its end */
    struct message *held, *held_next;   /* messages after it on its connection, a list, oldest first */
    tr_world_event next_event;          /* of one that is held */
    double announced;                   /* when */
    double idle[2];                     /* idle seconds of sender and receiver when it reached them */
    int holders;                        /* ends that refer to it */
    bool noticed, asked, left, flies, arrived, lost; /* lost: the receiver no longer waits for it */
};

struct end {
    tr_sim *sim;
    tr_comm *comm;
    struct message *unmatched, **newest; /* to this rank */
    struct message *tasks;
    struct tr_transfer *receives; /* that found no message yet; oldest first */
    double used;                  /* of its idle seconds, messages have used those before this */
    struct message *flying;       /* its large messages that are not sent entirely, newest first */
    double landed;                /* when it last sent or received one */
    unsigned met;                 /* number of messages between it and higher ranks that crossed */
    uint64_t looked;              /* the moment of its last look */
    bool left, gave_up;
    char why[256];
};

struct tr_sim {
    tr_world *world;
    const struct tr_cluster *cluster;
    struct tr_network network;
    struct tr_sim_listener listener;
    int ranks;
    struct end *end; /* [ranks] */
    int *host;       /* [ranks] */
    struct message *messages;
    size_t hollow;    /* numbers of so many bytes or more have no contents; SIZE_MAX: all have */
    int64_t unmarked; /* messages of at least that size with contents, since they are not marked as numbers */
    uint64_t changes;
    struct block *gone; /* shared memory that nobody uses any more */
};

/* Starts a message of the running rank. TR_ENOMEM. */
tr_status tr_sim_announce(tr_sim *sim, int rank, struct tr_transfer *send);
/* The running rank waits for one. */
void tr_sim_expect(tr_sim *sim, int rank, struct tr_transfer *receive);
/* It does its part for arrived messages. */
void tr_sim_look(tr_sim *sim, int rank);
/* It notices that one of its messages is over, or takes an arrived one. */
void tr_sim_take(tr_sim *sim, struct tr_transfer *transfer);
/* It no longer waits for the end of a transfer. */
void tr_sim_withdraw(tr_sim *sim, int rank, struct tr_transfer *transfer);
/* Frees all that are left. */
void tr_sim_forget_all(tr_sim *sim);

#endif
