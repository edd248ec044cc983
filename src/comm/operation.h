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

#define TR_GATE_LAST 1000 /* of transfers that only the end of the operation waits for */

struct tr_ticket {
    const char *kind, *name; /* "reduce-scatter", and the caller's name or NULL */
    bool collective;         /* all ranks take part: the death of any ends it */
    int tag;                 /* of its messages */
    int phase, last;
    bool done;
    /* Phase `held` does not end before *open is true, unless that is NULL. */
    const bool *open;
    int held;
    /* The phase that only threads which call the communicator enter, since it calls functions of theirs; 0:
       there is none. */
    int callers;
    /* Enters `phase`; NULL if there is but one. */
    tr_status (*enter)(tr_comm *comm, tr_ticket *ticket);
    struct tr_transfer *transfer; /* [capacity] */
    int transfers, capacity;
    /* Arguments and results of the kind of operation. */
    const struct tr_reduction *reduction;
    bool everything, gathers; /* of reductions: every share is the whole; shares are gathered in the end */
    tr_window *window;
    struct tr_comm_apply apply; /* of tr_comm_reduce_apply(); else `take` is NULL */
    const float *nodes;
    float *out;
    int64_t stride;
    int64_t *share; /* [size + 1] */
    char *data;
    size_t bytes;
    int64_t *inbox; /* [size + 1][2]: what each rank announces, and at the end what we do */
    char *scratch;  /* [scratch_bytes], kept from use to use */
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
/* Makes it collective: the next sequence number is its tag. */
void tr_ticket_number(tr_comm *comm, tr_ticket *ticket);
/* Enters phase 0 and puts it among the active ones. On failure the communicator is dead, and keeps the
 * ticket. */
tr_status tr_ticket_start(tr_comm *comm, tr_ticket *ticket);

/* Adds a transfer to an operation and starts it. */
tr_status tr_ticket_send(tr_comm *comm, tr_ticket *ticket, int to, const void *data, size_t bytes, int gate);
tr_status tr_ticket_receive(tr_comm *comm, tr_ticket *ticket, int from, void *data, size_t bytes, int gate);

/* Takes back a transfer that is not done. False: its memory is still in use, the transfer itself too. */
bool tr_transfer_withdraw(tr_comm *comm, struct tr_transfer *transfer);

/* Tells the other members of this rank's island, and waits to be told by them, that what each wrote to the
   island's memory is there and what it read there is no longer needed. */
tr_status tr_ticket_notify(tr_comm *comm, tr_ticket *ticket, const struct tr_islands *islands, int gate);
/* Sends this rank's share of `data` once to every other island, where the agent for it writes it to the
   island's copy: items [share[r], share[r + 1]) of `unit` bytes are rank r's. What is received ends phase
   `gate`. At most 2 * size transfers. */
tr_status tr_ticket_spread(tr_comm *comm, tr_ticket *ticket, const struct tr_islands *islands, char *data,
                           int64_t unit, int gate);

/* Whether the present phase waits for a transfer of the ticket's. */
static inline bool tr_ticket_needs(const tr_ticket *ticket, const struct tr_transfer *transfer)
{
    return transfer->gate <= ticket->phase || ticket->phase == ticket->last;
}

/* What a mover does in the place of tr_comm_progress(): moves operations on up to the phases that are for
   callers, and keeps a failure for the next of these. */
tr_status tr_comm_move(tr_comm *comm);
/* Wakes the mover, if there is one, when there is something for it; mover.c. */
void tr_mover_notice(tr_comm *comm);

/* Refuses when the communicator is dead, with the reason. */
tr_status tr_comm_check(tr_comm *comm);
/* Ends the communicator because of the calling thread's last failure message, tells the others, returns
 * `status`. */
tr_status tr_comm_die(tr_comm *comm, tr_status status);

/* Decides whether a wait has become hopeless; deadline.c. */
struct tr_patience {
    double began;    /* when the wait began */
    double next;     /* when to look again */
    double troubled; /* since when a rank is known to be gone; 0: none is */
    bool warned;
};
/* TR_EPEER when it has; `now` is the present time. */
tr_status tr_comm_judge(tr_comm *comm, const tr_ticket *ticket, double now, struct tr_patience *patience);

#endif
