/* Small checkpoints whose every byte follows from their step. */
#ifndef TESTS_TRAIN_SAMPLE_H
#define TESTS_TRAIN_SAMPLE_H

#include "checkpoint/checkpoint.h"

/* Saves the sample of a step. */
tr_status sample_save(const tr_file_system *files, const char *run, int64_t keep, int64_t step);

/* Opens `path` and returns the step of what loads. -1 if nothing does (the status and message stand as the
   open left them). Fails the test if anything that loads is not what was saved for that step. `status` and
   `skipped` (whether newer ones were passed over) may be NULL. */
int64_t sample_load(const char *path, tr_status *status, bool *skipped);

/* Packs the sample of a step. */
tr_status sample_pack(const struct tr_stored_sink *sink, int64_t step);
/* Returns the step of an open checkpoint, which it closes. Fails the test if it is not what was saved for
 * that step. */
int64_t sample_check(tr_checkpoint **checkpoint);

/* The number of entries in `directory` whose name ends so; "" counts all. 0 where there is no directory. */
int64_t sample_count(const char *directory, const char *end);

#define SAMPLE_TENSORS 4
extern const char *const sample_tensor_name[SAMPLE_TENSORS];

#endif
