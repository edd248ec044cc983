/* The engine below messages and collectives: an operation is a list of transfers and a function that is
 * called from phase to phase.
 *
 * Invariant: phase p ends when all transfers whose gate is at most p are done; then the function is called
 * with p + 1. It may add transfers, and sets tr_ticket.last to the last phase. The operation is done when
 * its last phase has ended, so transfers that no earlier phase needs have the last phase as their gate.
 *
 * All functions are called with the communicator's lock held, unless stated otherwise.
 */
#ifndef TR_COMM_OPERATION_H
#define TR_COMM_OPERATION_H

#include "comm/class.h"

#define TR_OFFSET_ROUNDS 16   /* rounds in which at most 2^16 ranks of a host notify each other */
#define TR_GATE_LAST     1000 /* gate of transfers that only the end of the operation waits for */

/* How shards go to all islands. */
struct tr_spread {
    const struct tr_islands *islands;
    const struct tr_route *route; /* round by round; NULL: directly to all */
    int64_t unit;                 /* bytes of an item of the shards */
    size_t at;                    /* offset in the scratch where messages are packed */
    int phases, transfers;
    size_t scratch;
};

struct tr_ticket {
    const char *kind, *name; /* "reduce-scatter", and the caller's name or NULL */
    bool numbers;            /* no rank's decisions depend on its data, see struct tr_transfer */
    bool collective;         /* all ranks take part: the death of any ends it */
    int tag;                 /* of its messages */
    int phase, last;
    int looked; /* the phase needs no transfer before this one */
    bool done;
    /* The phase that is entered only after the caller has released the ticket, and whether all phases
       before it are over; 0: there is none. In between, the caller reads the data that the ticket
       gathered. */
    int held;
    bool ready, released;
    int64_t taken; /* bytes of others' nodes that the caller read meanwhile */
    /* Enters `phase`; NULL if there is only one. */
    tr_status (*enter)(tr_comm *comm, tr_ticket *ticket);
    struct tr_transfer *transfer; /* [capacity] */
    int transfers, capacity;
    /* Arguments and results of the kind of operation. */
    const struct tr_reduction *reduction;
    const struct tr_route *route; /* of sums */
    bool everything, gathers; /* for reductions: every shard is the whole; shards are gathered in the end */
    /* Phases: the first one after offsets are exchanged; those in which sums are computed, and in which
       shards go to all; and the one in which the ranks of the island confirm the end. */
    int sending, summing, spreading, notifying;
    int64_t came, formed; /* floats that arrive; floats computed so far for sending */
    struct tr_spread spread;
    tr_combine combine;
    tr_window *window;
    const float *nodes;
    float *out;
    int64_t stride;
    int64_t *shard; /* [size + 1] */
    struct tr_sum sum;
    char *data;
    size_t bytes;
    /* [offsets][2]: announcements of the host's ranks, in the order of their indices from this rank on;
       after that, for each round, the announcement common to all that this rank sent, and the one it
       received. */
    int64_t *inbox;
    int offsets;
    char *scratch; /* [scratch_bytes], kept between uses */
    size_t scratch_bytes;
    tr_ticket *next;
    tr_ticket **previous; /* the pointer to this one in the list */
};

/* Takes a ticket from the pool or makes one, with room for `transfers` transfers and `scratch` bytes
   (aligned to a cache line). It must be started or dropped. */
tr_status tr_ticket_take(tr_comm *comm, const char *kind, const char *name, int transfers, size_t scratch,
                         tr_ticket **out);
void tr_ticket_drop(tr_comm *comm, tr_ticket *ticket);
/* Frees a ticket of the pool for good. */
void tr_ticket_free(tr_ticket *ticket);
/* As tr_ticket_take() for a collective operation, which is numbered: in the same order on all ranks. A
   failure ends the communicator, since the others will wait for this rank. */
tr_status tr_ticket_take_collective(tr_comm *comm, const char *kind, const char *name, int transfers,
                                    size_t scratch, tr_ticket **out);
/* Enters phase 0 and puts it among the active ones. On failure the communicator is dead, and keeps the
 * ticket. */
tr_status tr_ticket_start(tr_comm *comm, tr_ticket *ticket);

/* Adds a transfer to an operation and starts it. */
tr_status tr_ticket_send(tr_comm *comm, tr_ticket *ticket, int to, const void *data, size_t bytes, int gate);
tr_status tr_ticket_receive(tr_comm *comm, tr_ticket *ticket, int from, void *data, size_t bytes, int gate);

/* The same for a collective of the transport, which must have that slot. The ticket keeps the bounds and
   the sum. */
tr_status tr_ticket_broadcast(tr_comm *comm, tr_ticket *ticket, int root, void *data, size_t bytes, int gate);
tr_status tr_ticket_all_gather(tr_comm *comm, tr_ticket *ticket, void *data, const int64_t *bound, int gate);
tr_status tr_ticket_reduce_scatter(tr_comm *comm, tr_ticket *ticket, int gate);

/* As tr_comm_all_gather() without a window, for data on which ranks' decisions depend; takes the lock
   itself. */
tr_status tr_comm_gather_to_all(tr_comm *comm, void *data, const int64_t *bound, const char *name,
                                tr_ticket **out);

/* Withdraws a transfer that is not done. False: its memory is in use, the transfer itself too. */
bool tr_transfer_withdraw(tr_comm *comm, struct tr_transfer *transfer);
/* Withdraws the transfers of an operation, and removes it from the active ones. False: the transport uses
   some of its memory, and the operation stays. With the lock. */
bool tr_ticket_withdraw(tr_comm *comm, tr_ticket *ticket);

/* Whether so many ranks or islands exchange directly. */
bool tr_comm_is_few(const tr_comm *comm, int count);

/* Members of an island notify each other, in rounds, that their writes to the island's memory are complete
   and that they no longer read it: after the last round, all have done so. */
int tr_notify_rounds(const tr_comm *comm, const struct tr_islands *islands);
int tr_notify_transfers(const tr_comm *comm, const struct tr_islands *islands); /* most messages in all
                                                                                   rounds */
/* The messages that the round waits for end phase `gate`. */
tr_status tr_ticket_notify(tr_comm *comm, tr_ticket *ticket, const struct tr_islands *islands, int round,
                           int gate);

/* Plans how each rank's shard of data goes to every island once, where its agent writes it to the island's
   copy: items [shard[r], shard[r + 1]) of `unit` bytes are rank r's. TR_ENOMEM. */
tr_status tr_spread_plan(tr_comm *comm, const struct tr_islands *islands, const int64_t *shard, int64_t unit,
                         struct tr_spread *out);
/* Enters a phase of the ticket's spread, from 0 on, over ticket->data; its last one ends `gate` when all
   have arrived. */
tr_status tr_ticket_spread(tr_comm *comm, tr_ticket *ticket, int phase, int gate);

/* Whether the present phase waits for a transfer of the ticket's. */
static inline bool tr_ticket_needs(const tr_ticket *ticket, const struct tr_transfer *transfer)
{
    return transfer->gate <= ticket->phase || ticket->phase == ticket->last;
}

/* The progress thread's form of tr_comm_progress(): advances operations up to the phases that are for
   callers, and keeps a failure for the next caller. */
tr_status tr_comm_move(tr_comm *comm);
/* Wakes the progress thread, if there is one, when there is something for it; progress.c. */
void tr_progress_thread_notice(tr_comm *comm);

/* Refuses when the communicator is dead, with the reason. */
tr_status tr_comm_check(tr_comm *comm);
/* Ends the communicator with the calling thread's last failure message, notifies the others, returns
 * `status`.
 */
tr_status tr_comm_die(tr_comm *comm, tr_status status);

/* Decides whether a wait has become hopeless; deadline.c. */
struct tr_patience {
    double began;     /* when the wait began */
    double next;      /* when to look again */
    double troubled;  /* since when a rank is known to be lost; 0: none is */
    double again;     /* when to check all ranks again, even without changes; 0: never checked */
    uint64_t changes; /* the transport's number at the last check */
    bool warned;
};
/* TR_EPEER when it has; `now` is the present time. */
tr_status tr_comm_judge(tr_comm *comm, const tr_ticket *ticket, double now, struct tr_patience *patience);

#endif
