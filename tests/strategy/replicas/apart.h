/* Runs of strategies whose replicas are trained apart, for their tests. */
#ifndef TESTS_STRATEGY_REPLICAS_APART_H
#define TESTS_STRATEGY_REPLICAS_APART_H

#include "support/ranks.h"

/* Ranks 1 to `most`, which share memory or do not, end with what one process ends with. */
void apart_expect_one_hash(struct job *job, int most, const char *name);
/* Trains to `steps` steps on `size` ranks, from what is in `out` if it resumes; saves there. */
void apart_train_to(struct job *job, const char *strategy, const char *out, bool resume, int64_t steps,
                    int size, struct outcome *outcome);

#endif
