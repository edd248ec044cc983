/* A simulated network, and who listens to what happens on it. */
#ifndef TR_PLAN_LISTENER_H
#define TR_PLAN_LISTENER_H

#include <stddef.h>
#include <stdint.h>

typedef struct tr_sim tr_sim;

/* What a rank hears of its own doings, in the order in which they happen; all may be NULL. `number` tells
   messages with one sender and one receiver apart, on both sides alike. */
struct tr_sim_listener {
    void (*computes)(void *user, int rank, double seconds);
    void (*sends)(void *user, int rank, int to, int64_t number, size_t bytes);
    void (*receives)(void *user, int rank, int from, int64_t number, size_t bytes); /* it began to wait */
    void (*received)(void *user, int rank, int from, int64_t number);
    void *user;
};

#endif
