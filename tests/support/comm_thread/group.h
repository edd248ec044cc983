/* Shared by the ranks of a group of threads. */
#ifndef TESTS_SUPPORT_COMM_THREAD_GROUP_H
#define TESTS_SUPPORT_COMM_THREAD_GROUP_H

#include "comm/class.h"

#define GROUP_WHY 512

/* A message that is delayed on purpose. */
struct group_fault {
    int to; /* -1: no fault is set */
    int64_t left;
    double seconds;
    const struct tr_transfer *held; /* the message, once it was sent */
    double due;
};

/* One rank, as the others see it. */
struct group_member {
    pthread_cond_t changed;
    uint64_t moment;                      /* counts events that may advance its operations */
    struct tr_transfer *receives, *sends; /* to this rank, not yet matched; oldest first */
    bool left, gave_up, killed;
    double frozen; /* since this time; 0: it is not */
    char why[GROUP_WHY];
    struct group_fault fault;
};

/* The buffers of a rank for a collective of the transport. */
struct group_share {
    struct tr_transfer *transfer; /* NULL: it has not arrived, or has left */
    const int64_t *bound;
    const struct tr_sum *sum;
};

enum group_collective { GROUP_BROADCAST, GROUP_ALL_GATHER, GROUP_REDUCE_SCATTER };

/* A collective in progress; done by the last rank to arrive. */
struct group_meeting {
    enum group_collective kind;
    int tag, root, came;
    struct group_meeting *next;
    struct group_share share[];
};

struct group {
    pthread_mutex_t lock; /* guards all; taken after the lock of a communicator */
    int handles;          /* communicators not yet destroyed */
    int size;
    int first_to_give_up; /* -1: none */
    struct group_meeting *meetings;
    struct group_member member[];
};

struct thread_comm {
    tr_comm base; /* first, so that a tr_comm is one of these */
    struct group *group;
};

/* ---- collective.c ---- */

extern const struct tr_comm_class group_collective_class; /* only the slots of collectives */
/* With the lock of the group held: gives up a transfer of a collective. */
void group_leave_meeting(struct group *group, int rank, struct tr_transfer *transfer);
void group_free_meetings(struct group *group);

enum { GROUP_WAITING, GROUP_COPYING, GROUP_COMPLETE, GROUP_MISMATCH }; /* states of a transfer */

/* With the lock of the group held: makes the rank check its waiting operations again. */
void group_wake(struct group *group, int rank);

#endif
