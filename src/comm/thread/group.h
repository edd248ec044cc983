/* What the ranks of a group of threads share. */
#ifndef TR_COMM_THREAD_GROUP_H
#define TR_COMM_THREAD_GROUP_H

#include "comm/class.h"

#define GROUP_WHY 512

/* A message that is delayed on purpose. */
struct group_fault {
    int to; /* -1: none is wanted */
    int64_t left;
    double seconds;
    const struct tr_transfer *held; /* the message, once it was sent */
    double due;
};

/* One rank, seen by the others. */
struct group_member {
    pthread_cond_t changed;
    uint64_t moment;                      /* counts what may move its operations on */
    struct tr_transfer *receives, *sends; /* to this rank, not yet matched; oldest first */
    bool left, gave_up, killed;
    double frozen; /* since when, 0: it is not */
    char why[GROUP_WHY];
    struct group_fault fault;
};

struct group {
    pthread_mutex_t lock; /* guards all; taken after the lock of a communicator */
    int handles;          /* communicators not yet destroyed */
    int size;
    struct group_member member[];
};

struct thread_comm {
    tr_comm base; /* first, so that a tr_comm is one of these */
    struct group *group;
};

/* With the lock of the group held: lets the rank look again at what it waits for. */
void group_wake(struct group *group, int rank);

#endif
