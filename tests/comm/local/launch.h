/* Ranks as processes that are joined by memory they share (comm/local), with the test as their launcher. */
#ifndef TESTS_COMM_LAUNCH_H
#define TESTS_COMM_LAUNCH_H

#include "comm/transport.h"

#include <sys/types.h>

#define LAUNCH_MOST   64
#define LAUNCH_OUTPUT (1 << 16)

/* What a process does once it has joined; returns what is wrong, or NULL. */
typedef const char *(*launch_function)(tr_comm *comm, const char *what);

struct launch {
    double timeout;
    bool silent;     /* the launcher does not tell that a process ended */
    bool stays_away; /* the last rank never joins: it ends at once */
    /* What a process does with its ticket in the place of joining and calling the function, or NULL; returns
       its exit code. */
    int (*be_rank)(const struct launch *launch, const char *ticket, int rank);
    int number;    /* for that function */
    bool outlived; /* ranks go on when the launcher is killed */
    /* Of the last run. */
    tr_local_group *group;
    char output[LAUNCH_OUTPUT]; /* what ranks said, see process_say() */
    int code[LAUNCH_MOST];      /* exit code of each, or minus its signal */
};

/* Runs `function` on `size` processes. Fails the test when that takes too long, after killing them. */
void launch_run(struct launch *launch, int size, launch_function function, const char *what);
/* As launch_run(); fails the test unless all ended with 0, without leaving memory behind. */
void launch_expect_well(struct launch *launch, int size, launch_function function, const char *what);

/* Fails the test unless every rank but the victim said that it was lost, and how. */
void launch_expect_loss(const char *output, int victim, int ranks, const char *what, const char *how);

#endif
