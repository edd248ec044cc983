/* A job of five rows in batches of two, of which an epoch has three, with reports every three of eight steps;
 * and what a listener hears of it. */
#ifndef TESTS_TRAIN_TOLD_JOB_H
#define TESTS_TRAIN_TOLD_JOB_H

#include "support/training.h"

/* Writes the files of "tiny.yaml" and of "tags.yaml", whose losses are of tokens, to the scratch directory
   `place`, which is borrowed. */
void told_job_make(const char *place);
void told_job_begin(struct job *job, const char *name);

/* Fails the test unless the numbers are equal but for rounding. */
void near(double got, double expected);

struct heard {
    struct tr_train_event step[16], progress[3], end;
    int steps, progresses, ends, others;
    char hash[65];
};

/* The listener: `user` is a struct heard. The third report of progress ends the run. */
int hear(void *user, const struct tr_train_event *event);

#endif
