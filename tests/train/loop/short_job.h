/* A job of twelve steps with dropout, moments and a moving average, in which a test does something between
 * steps. */
#ifndef TESTS_TRAIN_SHORT_JOB_H
#define TESTS_TRAIN_SHORT_JOB_H

#include "support/training.h"

void short_job_begin(struct job *job);
void short_job_steps(tr_trainer *trainer, int64_t count);
/* Runs to the end, and destroys the trainer. */
void short_job_finish(tr_trainer **trainer, char hash[65]);
/* The hash that it has where nobody does anything. */
void short_job_hash(char hash[65]);

/* Fails the test unless the calling thread's message has that part. */
void assert_said(const char *part);

#endif
