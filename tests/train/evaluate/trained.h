/* Small networks that were trained for a step, and predictors of them. */
#ifndef TESTS_TRAIN_TRAINED_H
#define TESTS_TRAIN_TRAINED_H

#include "support/training.h"

/* Trains a network; `model` is the data, the layers and the loss of its file, whose paths start at `place`.
   Four examples are evaluated at a time. The run is place/name. */
void trained_run(const char *place, const char *name, const char *model);
/* Its predictor, of one thread. */
tr_predictor *trained_load(const char *place, const char *name);

#endif
