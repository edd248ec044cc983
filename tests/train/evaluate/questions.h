/* Networks that were trained for two steps, and what can be asked of their predictors: for tests that let the
 * answers fail.
 */
#ifndef TESTS_TRAIN_QUESTIONS_H
#define TESTS_TRAIN_QUESTIONS_H

#include "support/training.h"

struct question {
    const char *name;
    int model;
    tr_status (*ask)(tr_predictor *predictor, int64_t *got); /* *got: how much came of it */
    int64_t expected;                                        /* -1: whatever comes without failures */
};
extern const struct question questions[];
extern const int question_count;

/* Trains the networks, in scratch_place; for the setup of a group. */
int questions_make(void **state);
/* The job of network `i`, of which 0 takes two numbers. */
void question_job(struct job *job, int i);
/* Its predictor, of one thread. */
tr_status question_create(int i, const char *device, tr_predictor **out);
tr_predictor *question_load(int i, const char *device);

#endif
