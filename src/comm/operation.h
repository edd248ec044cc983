/* The engine below messages and collectives: an operation is a list of transfers and a function that is
 * called from phase to phase.
 *
 * Invariant: phase p ends when all transfers whose gate is at most p are done; then the function is called
 * with p + 1. It may add transfers, and says by tr_ticket.last which phase is the last one. The operation is
 * done when its last phase has ended, so transfers that nothing waits for before take the last phase as their
 * gate.
 *
 * All functions are called with the communicator's lock held, unless they say otherwise.
 */
#ifndef TR_COMM_OPERATION_H
#define TR_COMM_OPERATION_H

#include "comm/class.h"

#define TR_OFFSET_ROUNDS 16   /* in which at most 2^16 ranks of a host hear of each other */
#define TR_GATE_LAST     1000 /* of transfers that only the end of the operation waits for */

/* How shards go to all islands. */
struct tr_spread {
    const struct tr_islands *islands;
    const struct tr_route *route; /* round by round; NULL: everybody to everybody */
    int64_t unit;                 /* bytes of an item of the shards */
    size_t at;                    /* of the scratch: where messages are packed */
    int phases, transfers;
    size_t scratch;
};

struct tr_ticket {
    const char *kind, *name; /* "reduce-scatter", and the caller's name or NULL */
    bool numbers;            /* no rank decides by what it moves, see struct tr_transfer */
    bool collective;         /* all ranks take part: the death of any ends it */
    int tag;                 /* of its messages */
    int phase, last;
    int looked; /* the phase waits for no transfer before this one */
    bool done;
    /* The phase that is not entered before the caller has released the ticket, and whether all before it is
       over; 0: there is none. In between, what the ticket gathered is the caller's to read. */
    int held;
    bool ready, released;
    int64_t taken; /* bytes of others' nodes that the caller read meanwhile */
    /* Enters `phase`; NULL if there is but one. */
    tr_status (*enter)(tr_comm *comm, tr_ticket *ticket);
    struct tr_transfer *transfer; /* [capacity] */
    int transfers, capacity;
    /* Arguments and results of the kind of operation. */
    const struct tr_reduction *reduction;
    const struct tr_route *route; /* of sums */
    bool everything, gathers; /* of reductions: every shard is the whole; shards are gathered in the end */
    /* The first phase after offsets are exchanged; in which sums are formed; in which shards go to all; in
       which the ranks of the island confirm the end. */
    int sending, summing, spreading, notifying;
    int64_t came, formed; /* floats of what comes; of sums that are to be sent, so far */
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
    /* [offsets][2]: what the ranks of the host announce, in the order of their indices from this rank on; and
       after that, for each round, what this rank sent of what all announce alike, and what came. */
    int64_t *inbox;
    int offsets;
    char *scratch; /* [scratch_bytes], kept from use to use */
    size_t scratch_bytes;
    tr_ticket *next;
    tr_ticket **previous; /* where the list points to this one */
};

/* Takes a ticket from the pool or makes one, with room for `transfers` transfers and `scratch` bytes (aligned
   to a cache line). It is to be started or dropped. */
tr_status tr_ticket_take(tr_comm *comm, const char *kind, const char *name, int transfers, size_t scratch,
                         tr_ticket **out);
void tr_ticket_drop(tr_comm *comm, tr_ticket *ticket);
/* Frees a ticket of the pool for good. */
void tr_ticket_free(tr_ticket *ticket);
/* As tr_ticket_take() for a collective operation, which gets its number: in one order on all ranks. A failure
   ends the communicator, for the others are about to wait for this rank. */
tr_status tr_ticket_take_collective(tr_comm *comm, const char *kind, const char *name, int transfers,
                                    size_t scratch, tr_ticket **out);
/* Enters phase 0 and puts it among the active ones. On failure the communicator is dead, and keeps the
 * ticket. */
tr_status tr_ticket_start(tr_comm *comm, tr_ticket *ticket);

/* Adds a transfer to an operation and starts it. */
tr_status tr_ticket_send(tr_comm *comm, tr_ticket *ticket, int to, const void *data, size_t bytes, int gate);
tr_status tr_ticket_receive(tr_comm *comm, tr_ticket *ticket, int from, void *data, size_t bytes, int gate);

/* The same for a collective of the transport's own, whose slot must be there. The bounds and the sum are kept
   by the ticket. */
tr_status tr_ticket_broadcast(tr_comm *comm, tr_ticket *ticket, int root, void *data, size_t bytes, int gate);
tr_status tr_ticket_all_gather(tr_comm *comm, tr_ticket *ticket, void *data, const int64_t *bound, int gate);
tr_status tr_ticket_reduce_scatter(tr_comm *comm, tr_ticket *ticket, int gate);

/* As tr_comm_all_gather() without a window, of what ranks decide by; takes the lock itself. */
tr_status tr_comm_gather_to_all(tr_comm *comm, void *data, const int64_t *bound, const char *name,
                                tr_ticket **out);

/* Takes back a transfer that is not done. False: its memory is still in use, the transfer itself too. */
bool tr_transfer_withdraw(tr_comm *comm, struct tr_transfer *transfer);
/* Takes back what of an operation is under way, and the operation from the active ones. False: the transport
   still uses some of its memory, and the operation stays where it is. With the lock. */
bool tr_ticket_withdraw(tr_comm *comm, tr_ticket *ticket);

/* Whether so many ranks or islands exchange directly. */
bool tr_comm_is_few(const tr_comm *comm, int count);

/* Members of an island tell each other, in rounds, that what each wrote to the island's memory is there and
   what it read there is no longer needed: after the last round, all have said so. */
int tr_notify_rounds(const tr_comm *comm, const struct tr_islands *islands);
int tr_notify_transfers(const tr_comm *comm, const struct tr_islands *islands); /* at most, in all rounds */
/* What the round waits for ends phase `gate`. */
tr_status tr_ticket_notify(tr_comm *comm, tr_ticket *ticket, const struct tr_islands *islands, int round,
                           int gate);

/* Plans how each rank's shard of data goes to every island once, where the agent for it writes it to the
   island's copy: items [shard[r], shard[r + 1]) of `unit` bytes are rank r's. TR_ENOMEM. */
tr_status tr_spread_plan(tr_comm *comm, const struct tr_islands *islands, const int64_t *shard, int64_t unit,
                         struct tr_spread *out);
/* Enters a phase of the ticket's spread, from 0 on, over ticket->data; the last one ends `gate` when all is
   there. */
tr_status tr_ticket_spread(tr_comm *comm, tr_ticket *ticket, int phase, int gate);

/* Whether the present phase waits for a transfer of the ticket's. */
static inline bool tr_ticket_needs(const tr_ticket *ticket, const struct tr_transfer *transfer)
{
    return transfer->gate <= ticket->phase || ticket->phase == ticket->last;
}

/* What a progress thread does in place of tr_comm_progress(): moves operations on up to the phases that
   are for callers, and keeps a failure for the next of these. */
tr_status tr_comm_move(tr_comm *comm);
/* Wakes the progress thread, if there is one, when there is something for it; progress.c. */
void tr_progress_thread_notice(tr_comm *comm);

/* Refuses when the communicator is dead, with the reason. */
tr_status tr_comm_check(tr_comm *comm);
/* Ends the communicator because of the calling thread's last failure message, tells the others, returns
 * `status`. */
tr_status tr_comm_die(tr_comm *comm, tr_status status);

/* Decides whether a wait has become hopeless; deadline.c. */
struct tr_patience {
    double began;     /* when the wait began */
    double next;      /* when to look again */
    double troubled;  /* since when a rank is known to be gone; 0: none is */
    double again;     /* when to ask for all ranks again, even if nothing was heard of any; 0: never asked */
    uint64_t changes; /* of the transport, when that was done last */
    bool warned;
};
/* TR_EPEER when it has; `now` is the present time. */
tr_status tr_comm_judge(tr_comm *comm, const tr_ticket *ticket, double now, struct tr_patience *patience);

#endif
