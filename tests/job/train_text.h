/* Runs whose checkpoints other jobs begin with. */
#ifndef TESTS_JOB_TRAIN_TEXT_H
#define TESTS_JOB_TRAIN_TEXT_H

#include "support/training.h"

#include <stdio.h>

/* Trains a model file of this text to a directory `name` in the scratch directory; fails the test if it
   cannot. The includer includes cmocka.h before. */
static inline void train_text(const char *name, const char *text)
{
    struct job job;
    struct outcome outcome;
    char model[32], out[SCRATCH_PATH];
    snprintf(model, sizeof model, "%s.yaml", name);
    scratch_write_text(model, text);
    job_begin(&job, scratch_in(model));
    job.settings.journal = "";
    job.settings.out = scratch_join(out, scratch_place, name);
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s: %s", name, outcome.message);
}

#endif
