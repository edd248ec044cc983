/* The inputs of a job's network: the part in the file, and the part that depends on the data. */
#ifndef TR_JOB_INPUT_H
#define TR_JOB_INPUT_H

#include "job/job.h"

/* Takes what the file leaves open from the training data, which must be open. */
tr_status tr_job_input_resolve(struct tr_job *job);
/* Sets features and stored shape from the (resolved) input section. TR_EINVAL with file and line. */
tr_status tr_job_input_read(struct tr_job *job);
/* The shape that reaches the first layer. */
struct tr_shape tr_job_input_shape(const struct tr_job *job);
/* Whether an example is an image of numbers. */
bool tr_job_is_number_image(const struct tr_job *job);
/* The image that an example is, [height, width, channels], as it is stored and as it reaches the first layer.
   Of jobs whose examples are images, of bytes or of numbers. */
void tr_job_image(const struct tr_job *job, struct tr_shape *stored, struct tr_shape *wanted);
/* What multiplies the stored values of channel i % 4 of an image. */
float tr_job_scale(const struct tr_job *job, int i);
/* The same of what is added to them. */
float tr_job_shift(const struct tr_job *job, int i);
/* Whether an image of numbers is cropped or scaled on its way to the network, also outside of training. */
bool tr_job_fits_numbers(const struct tr_job *job);
/* The named parts of that shape, in the network's order: only for joined data. */
void tr_job_input_parts(const struct tr_job *job, struct tr_source_parts *parts);
/* The names of joined sources and, where the file has them, their stored shapes: all that is known without
   data. */
tr_status tr_job_input_names(const struct tr_job *job, const tr_config *train, struct tr_source_parts *parts);
/* Sets an option, which owns the copy, and the tree to a text (see tr_config_put_text()). TR_ENOMEM. */
tr_status tr_job_resolve_text(struct tr_job *job, char **option, const char *section, const char *key,
                              const char *text);

#endif
