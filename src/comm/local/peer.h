/* Shared by the files of the mail: the state with respect to each rank. */
#ifndef TR_COMM_LOCAL_PEER_H
#define TR_COMM_LOCAL_PEER_H

#include "comm/local/mail.h"
#include "comm/local/ring.h"

/* Cost of a message in a sender's credit, besides its bytes. */
#define LOCAL_COST 64
/* Messages up to this size are kept without separate memory. */
#define LOCAL_SMALL 64

/* States of a transfer. A send: QUEUED -> (ANNOUNCED ->) MOVING -> COMPLETE, where an eager one may skip
   the states between. A receive: QUEUED -> MOVING, once its message is known -> COMPLETE, or MISMATCH. In
   a send, `came` counts the written bytes. */
enum { LOCAL_QUEUED, LOCAL_ANNOUNCED, LOCAL_MOVING, LOCAL_COMPLETE, LOCAL_MISMATCH };

/* A message whose sender has begun it and that is incomplete or unrequested. */
struct local_inbound {
    struct local_inbound *next;
    uint64_t cookie;
    int tag;
    bool announced, wanted; /* `wanted`: its sender was notified */
    bool dropped;           /* its receive was withdrawn */
    size_t bytes, got;
    struct tr_transfer *receive; /* NULL: no receive requested it yet */
    char *kept;                  /* [bytes] then, if eager: `small`, or owned */
    char small[LOCAL_SMALL];
};

struct local_peer {
    struct local_writer writer;
    struct local_reader reader;
    struct tr_transfer *sends, *receives; /* in order; receives whose message is not known */
    struct local_inbound *first, **last;  /* in order */
    int unasked;                          /* announced messages whose senders must be notified */
    uint64_t spent;                       /* credit that our messages used */
    uint64_t returned;                    /* credit that its messages got back */
    uint64_t held;                        /* credit that its messages hold */
};

struct local_mail {
    const struct local_area *area;
    int rank;
    uint64_t credit; /* of each sender */
    struct local_inbound *spare;
    struct local_peer peer[]; /* [size] */
};

static inline void tr_local_append(struct tr_transfer **list, struct tr_transfer *transfer)
{
    while (*list) list = &(*list)->next;
    transfer->next = NULL;
    *list = transfer;
}

static inline void tr_local_take_out(struct tr_transfer **list, const struct tr_transfer *transfer)
{
    while (*list && *list != transfer) list = &(*list)->next;
    if (*list) *list = transfer->next;
}

tr_status tr_local_nonsense(int peer, const char *what);

/* ---- receiving: inbox.c ---- */

/* Reads all that a rank wrote. */
tr_status tr_local_take_in(struct local_mail *mail, int rank);
/* Gives a receive the message that waits for it, or lets it wait. */
void tr_local_receive(struct local_mail *mail, struct tr_transfer *receive);
void tr_local_withdraw_receive(struct local_mail *mail, struct tr_transfer *receive);
/* Frees what is kept of messages. */
void tr_local_empty(struct local_mail *mail);

/* ---- sending: outbox.c ---- */

/* Writes to a rank as much as there is room for. */
tr_status tr_local_write_out(struct local_mail *mail, int rank);

#endif
