/* The inputs of a job's network: the file's part, and the part that is left to the data. */
#ifndef TR_JOB_INPUT_H
#define TR_JOB_INPUT_H

#include "job/job.h"

/* Takes what the training data, which are open, say, where the file leaves it open. */
tr_status tr_job_input_resolve(struct tr_job *job);
/* Sets features and stored shape from the (resolved) input section. TR_EINVAL with file and line. */
tr_status tr_job_input_read(struct tr_job *job);
/* The shape that reaches the first layer. */
struct tr_shape tr_job_input_shape(const struct tr_job *job);
/* The parts of it that have names, as the network takes them: none but of joined data. */
void tr_job_input_parts(const struct tr_job *job, struct tr_source_parts *parts);
/* The names, and where the file has them the stored shapes, of what is joined: what needs no data. */
tr_status tr_job_input_names(const struct tr_job *job, const tr_config *train, struct tr_source_parts *parts);
/* Gives a text to an option, which owns the copy, and to the tree (see tr_config_put_text()). TR_ENOMEM. */
tr_status tr_job_resolve_text(struct tr_job *job, char **option, const char *section, const char *key,
                              const char *text);

#endif
