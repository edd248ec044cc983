/* The standardization of columns of numbers: the state that tables leave beside a model (kind "scaling" of
 * data/state.h), one line for each column, `<mean> <deviation>`,
 * or `<mean> <deviation> <fill>` where a missing number is filled in with the mean of those that there are.
 *
 * A number x of the data becomes (x - mean) / deviation, computed in double and rounded once. Programs
 * that feed the network compute the same, with the same bits.
 */
#ifndef TR_DATA_SCALING_H
#define TR_DATA_SCALING_H

#include "data/tables/categories.h"

#include <stdbool.h>
#include <stdint.h>

struct tr_scaling {
    int32_t count; /* numbers for the network; 0: nothing is scaled */
    double *mean, *deviation;
    double *fill;                    /* [count], or NULL: gaps are not filled */
    struct tr_categories categories; /* expansion of columns of names, which comes first */
};

/* The number of columns of a row as given. */
static inline int32_t tr_scaling_columns(const struct tr_scaling *scaling)
{
    return scaling->categories.columns > 0 ? scaling->categories.columns : scaling->count;
}

/* Room for `count` columns that scaling leaves unchanged. Returned, free with tr_scaling_release().
   TR_ENOMEM. */
tr_status tr_scaling_create(int32_t count, struct tr_scaling *out);
/* Reads the state, categories included; *classes is the number in its head. Returned likewise.
   TR_EMISMATCH for the state of another kind of data, TR_EFORMAT, TR_ENOMEM. */
tr_status tr_scaling_read(const char *state, struct tr_scaling *out, int32_t *classes);
/* The state as text, without categories. Returned, free with tr_free(). TR_ENOMEM. */
tr_status tr_scaling_write(const struct tr_scaling *scaling, int32_t classes, char **out);
/* Room for fill values, all zero. TR_ENOMEM. */
tr_status tr_scaling_add_fill(struct tr_scaling *scaling);
/* Accepts an empty scaling; empties it. */
void tr_scaling_release(struct tr_scaling *scaling);

/* Writes row `index`, of `count` numbers, to `to`. */
typedef tr_status (*tr_scaling_row)(void *user, int64_t index, float *to);
/* Sets the fill value of each column to the mean of its numbers that are not NaN: chains in double over
   ascending rows. TR_EFORMAT, with the `name` of the data, where a column has none; errors of `row`;
   TR_ENOMEM. */
tr_status tr_scaling_measure_present(struct tr_scaling *scaling, int64_t rows, tr_scaling_row row, void *user,
                                     const char *name);
/* Sets mean and deviation of each column over rows without NaN: chains in double over ascending rows, so
   that results are the same everywhere. A constant column keeps deviation 1. Errors of `row`; TR_ENOMEM. */
tr_status tr_scaling_measure(struct tr_scaling *scaling, int64_t rows, tr_scaling_row row, void *user);

/* Whether scaling leaves all columns unchanged. */
bool tr_scaling_is_plain(const struct tr_scaling *scaling);
/* Sets mean and deviation of expanded names so that they stay unchanged. */
void tr_scaling_keep_names(struct tr_scaling *scaling);
/* Scales rows [rows][columns] to [rows][count]; `to` may be `from` where no columns are names. */
void tr_scaling_apply(const struct tr_scaling *scaling, int64_t rows, const float *from, float *to);

#endif
