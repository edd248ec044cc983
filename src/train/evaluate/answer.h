/* Answers: a network's outputs in the form for people. */
#ifndef TR_TRAIN_ANSWER_H
#define TR_TRAIN_ANSWER_H

#include "job/job.h"

/* Turns the outputs of `rows` examples, tokens or pixels into answers, in place: scores of classes into
   probabilities, scores of yes-or-no questions into the probability of yes; values do not change. Any
   thread. */
void tr_answer(const struct tr_job *job, int64_t rows, float *output);

#endif
