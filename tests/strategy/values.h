/* A job whose data have a line that the test chooses: one that makes a loss, a gradient or an update
 * infinite, or that the loss refuses.
 */
#ifndef TESTS_STRATEGY_VALUES_H
#define TESTS_STRATEGY_VALUES_H

#include "support/training.h"

/* Vectors with two values each to come near to, and `line` among them, in the scratch directory `place`; in
   answers.csv there, the other lines' values are 0 or 1. */
void values_job(struct job *job, const char *place, const char *line);

#endif
