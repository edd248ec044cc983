/* Reads single examples by the columns of the table that a job was trained on. */
#ifndef TR_JOB_COLUMNS_H
#define TR_JOB_COLUMNS_H

#include "job/job.h"

struct tr_job_columns {
    int32_t count; /* of an example as given; 0 where it is not a row of numbers */
    float *fill;   /* [count] replacements of missing numbers, NaN for names, which then count as none;
                      NULL: no replacements */
    struct tr_categories categories; /* the names of columns of names */
    bool unknown_stops;              /* unknown names are errors */
    struct tr_string_list labels;    /* names of the columns to predict; empty where they are not known */
};

/* Empty where the training data are not a table. Returned, free with tr_job_columns_release(), also after a
   failure. TR_ENOMEM, and errors as tr_scaling_read(). */
tr_status tr_job_columns_read(const struct tr_job *job, struct tr_job_columns *out);
void tr_job_columns_release(struct tr_job_columns *columns);

/* The number of a name in a column of names. TR_EINVAL, with the nearest name, for one that the training
   data do not have, where such names are errors. */
tr_status tr_job_columns_find(const struct tr_job_columns *columns, int32_t column, const char *name,
                              float *value);
/* Replaces missing numbers (NaN) in `count` examples [count][columns]. TR_EINVAL where there is no
   replacement, with example and value, counted from 1. */
tr_status tr_job_columns_fill(const struct tr_job *job, const struct tr_job_columns *columns, int64_t count,
                              float *values);

#endif
