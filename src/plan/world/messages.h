/* Messages of a simulated network: from transport.c, whose slots start them, look after them and take them.
 *
 * A small one: announced -> leaves -> its first byte is there -> arrived -> taken. A large one leaves later:
 * announced -> noticed by its receiver -> asked for, once the receive is there -> leaves -> ... Between hosts
 * both ends do their part when they look (tr_sim_look()), as processes do that get no notice of news.
 *
 * Two ranks have one connection, on which Open MPI sends all of a large message once it was asked for; what
 * else is to be said comes after. Who announces a message while the other's comes is asked for it only then:
 * mostly one goes after the other. Those whose ranks asked for both before either left go both ways at once.
 * Of two that are announced within a nap, that is so every other time.
 *
 * Between hosts a message goes in pieces, so that those of several ranks share a link evenly, as TCP has it.
 *
 * What a large message takes of the processors at its ends passes while it is on its way, as far as they have
 * nothing to do meanwhile; the rest when an end takes note that it is over.
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
    struct message *next;             /* in the list of those that no receive waits for yet */
    struct message *task;             /* in the list of what the end that it came to is to look at */
    struct message *older, **younger; /* among all */
    tr_sim *sim;
    int from, to, tag;
    size_t bytes;
    void *copy;                         /* of the contents, where the sender goes on; owned */
    struct tr_transfer *send, *receive; /* NULL: gone on, withdrawn, or not there yet */
    bool hollow;                        /* its contents are left out */
    size_t gone, come;                  /* bytes of the pieces that left so far, and that came */
    struct message *flying;             /* in the list of those that go one way from its end */
    struct message *held, *held_next;   /* what comes after it on its connection, a list, oldest first */
    tr_world_event next_event;          /* of one that is held */
    double announced;                   /* when */
    double idle[2];                     /* seconds that sender and receiver had idled when it reached them */
    int holders;                        /* ends that know it */
    bool noticed, asked, left, flies, arrived, lost; /* lost: the receiver does not wait for it any more */
};

struct end {
    tr_sim *sim;
    tr_comm *comm;
    struct message *unmatched, **newest; /* to this rank */
    struct message *tasks;
    struct tr_transfer *receives; /* that found no message yet; oldest first */
    double used;                  /* of its idle seconds, those before are taken by messages */
    struct message *flying;       /* its large messages that have not left as a whole, newest first */
    double landed;                /* when one from or to it last had */
    unsigned met;                 /* counts messages between it and higher ranks that met on their way */
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
    int64_t unmarked; /* messages of as many that have, since they are not marked as numbers */
    uint64_t changes;
};

/* Starts a message of the rank that runs. TR_ENOMEM. */
tr_status tr_sim_announce(tr_sim *sim, int rank, struct tr_transfer *send);
/* The rank that runs waits for one. */
void tr_sim_expect(tr_sim *sim, int rank, struct tr_transfer *receive);
/* It does its part for what came to it. */
void tr_sim_look(tr_sim *sim, int rank);
/* It takes note that a message of its own is over, or takes one that came. */
void tr_sim_take(tr_sim *sim, struct tr_transfer *transfer);
/* It does not wait for the end of a transfer any more. */
void tr_sim_withdraw(tr_sim *sim, int rank, struct tr_transfer *transfer);
/* Frees all that are left. */
void tr_sim_forget_all(tr_sim *sim);

#endif
