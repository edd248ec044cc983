/* Answers: what people get of a network's outputs. */
#ifndef TR_TRAIN_ANSWER_H
#define TR_TRAIN_ANSWER_H

#include "job/job.h"

/* Turns the outputs of `rows` examples, tokens or pixels into answers, in place: scores of classes into
   probabilities, those of questions with yes and no into the probability of yes; values are what they are.
   Any thread. */
void tr_answer(const struct tr_job *job, int64_t rows, float *output);

#endif
