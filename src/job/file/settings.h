/* The settings of a job that determine its weights, as a text, and the differences of two such texts.
 *
 * Settings of speed, logging and length are left out: a longer run passes through the same states, unless
 * the schedule depends on the end, which is then part of the schedule. Names of classes and the vocabulary
 * follow from the data, which have a separate digest.
 */
#ifndef TR_JOB_SETTINGS_H
#define TR_JOB_SETTINGS_H

#include "job/job.h"

/* The text, in YAML; its SHA-256 is the job's digest. The job's network and optimizer must be built.
   Returned, free with tr_free(). TR_ENOMEM. */
tr_status tr_settings_text(const struct tr_job *job, char **out);

/* The settings in which two texts, or two mappings in YAML, differ: at most `most` as "optimizer.rate 0.01,
   here 0.1", with the value of `there` first and `between` (", here ") between the two, joined by "; ", and
   then "; and 3 more". "" where they are equal. Returned, free with tr_free(). TR_ENOMEM, TR_EFORMAT for
   other texts. */
tr_status tr_settings_compare(const char *there, const char *here, const char *between, int most, char **out);

#endif
