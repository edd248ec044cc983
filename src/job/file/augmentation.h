/* The augmentation options of a model file, checked against the images. */
#ifndef TR_JOB_AUGMENTATION_H
#define TR_JOB_AUGMENTATION_H

#include "job/job.h"

/* Whether images are changed beyond shifts and mirrors; whether two of them are mixed. */
bool tr_augmentation_is_any(const struct tr_augment_options *options);
bool tr_augmentation_mixes(const struct tr_augment_options *options);
/* Whether any colour changes. */
bool tr_augmentation_tints(const struct tr_augment_options *options);

/* Takes the range of images of numbers from the training data, which must be open, where colours change and
   the file leaves it open. TR_ENOMEM. */
tr_status tr_augmentation_resolve(struct tr_job *job);
/* Checks the options of a job whose network is built, and notes mixed labels in its loss. TR_EINVAL with
   file and line. */
tr_status tr_augmentation_settle(struct tr_job *job);

#endif
