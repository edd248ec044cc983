/* Small messages of the parameter server: an outbox that keeps messages until they are sent, and waits
 * that watch the ranks whose loss ends the job.
 */
#ifndef TR_STRATEGY_PARAMETER_SERVER_MAIL_H
#define TR_STRATEGY_PARAMETER_SERVER_MAIL_H

#include "comm/comm.h"

struct ps_letter;

/* All zeros except the communicator: an empty one. */
struct ps_outbox {
    tr_comm *comm;
    struct ps_letter *letters;
};

/* Sends a copy of `data` and does not wait; a rank that is lost never gets it. `name` is a literal.
   TR_ENOMEM, or a failure of the communicator. */
tr_status ps_outbox_send(struct ps_outbox *outbox, int to, int tag, const void *data, size_t bytes,
                         const char *name);
/* Waits until everything is sent, except messages for lost ranks. */
tr_status ps_outbox_flush(struct ps_outbox *outbox);
/* Cancels messages that were not sent. Before the communicator ends. */
void ps_outbox_release(struct ps_outbox *outbox);

/* The ranks whose loss ends the job. */
struct ps_watch {
    tr_comm *comm;
    const int *ranks; /* [count], borrowed */
    int count;
    double next;     /* when to look again */
    double troubled; /* since when one is lost; 0: none is */
    double waited;   /* seconds in ps_watch_wait() */
};

/* TR_EPEER once one of them has been lost for a moment. Checks only at intervals, so call it often. */
tr_status ps_watch_probe(struct ps_watch *watch);
/* tr_comm_wait() that fails for the loss of these ranks, and of no others. */
tr_status ps_watch_wait(struct ps_watch *watch, tr_ticket **ticket);

/* How long to sleep after `quiet` seconds without news: shortly at first. */
double ps_nap(double quiet);

#endif
