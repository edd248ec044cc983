/* Ranks of an asynchronous parameter server that do what a test says: real ones by their functions, others by
 * messages that the test sends in their names. And messages that cannot be cancelled. */
#ifndef TESTS_STRATEGY_PARAMETER_SERVER_SCENE_H
#define TESTS_STRATEGY_PARAMETER_SERVER_SCENE_H

#include "support/ranks.h"

#include "strategy/parameter_server/parameter_server.h"

struct scene {
    const char *strategy, *set[4]; /* of the job, the first family's; of several sets, those before NULL */
    int size, apart;               /* ranks, as for run_ranks() */
    /* What each rank does, NULL: nothing. Nobody ends before all have done their parts. */
    void (*part[RANKS])(struct ps *self, struct scene *scene);
    /* Then, when its strategy was destroyed; or NULL. */
    void (*late[RANKS])(tr_comm *comm, struct scene *scene);
    void *user;
};
void scene_play(struct scene *scene);

/* For parts of ranks: sends, or receives, and waits. */
void scene_send(struct ps *self, int to, int tag, const void *data, size_t bytes);
void scene_receive(struct ps *self, int from, int tag, void *data, size_t bytes);
/* Fails the test unless `status` is the expected one, with this message. */
void scene_expect(tr_status status, tr_status expected, const char *message);

/* From now on messages of this rank that are under way cannot be cancelled, as where a transport is using
   their memory; they are left alone. */
void scene_stuck(tr_comm *comm);
/* They can, and those that could not be are at an end: their memory is the caller's. */
void scene_loose(tr_comm *comm);

#endif
