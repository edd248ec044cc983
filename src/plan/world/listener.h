/* A simulated network, and listeners to its events. */
#ifndef TR_PLAN_LISTENER_H
#define TR_PLAN_LISTENER_H

#include <stddef.h>
#include <stdint.h>

typedef struct tr_sim tr_sim;

/* A rank's own events, in order of time; all functions may be NULL. `number` distinguishes messages with
   the same sender and receiver, equally on both sides. */
struct tr_sim_listener {
    void (*computes)(void *user, int rank, double seconds);
    void (*sends)(void *user, int rank, int to, int64_t number, size_t bytes);
    void (*receives)(void *user, int rank, int from, int64_t number, size_t bytes); /* it began to wait */
    void (*received)(void *user, int rank, int from, int64_t number);
    void *user;
};

#endif
