/* Columns of names (categories) as features: the names in the training data, in the order of their bytes,
 * and their one-hot encoding.
 *
 * A row as it is given has a float for each column: a number, or, of a column of names, the number of the
 * name from 0, -1 for a name that the training data do not have, and NaN for one that is missing. For the
 * network a column of names becomes as many numbers as it has names: 1 for the row's name, 0 for all
 * others. All are 0 where the row has none of the names.
 *
 * They follow the state of a table (data/state.h) as a part of the kind "categories": for each column a
 * line with the number of its names, 0 for a column of numbers, and then a line for each name.
 */
#ifndef TR_DATA_CATEGORIES_H
#define TR_DATA_CATEGORIES_H

#include "data/images/class_names.h"

/* Begins as {0}. */
struct tr_categories {
    int32_t columns;              /* of a row as given; 0: all are numbers */
    struct tr_class_names *names; /* [columns]; empty for a column of numbers */
};

/* Room for columns of numbers. TR_ENOMEM. Release with tr_categories_release(). */
tr_status tr_categories_create(int32_t columns, struct tr_categories *out);
void tr_categories_release(struct tr_categories *categories);
tr_status tr_categories_copy(const struct tr_categories *categories, struct tr_categories *out);

/* How many numbers a column becomes, or all columns together. */
static inline int32_t tr_category_width(const struct tr_categories *categories, int32_t column)
{
    int32_t names = categories->names[column].count;
    return names > 0 ? names : 1;
}
int64_t tr_categories_width(const struct tr_categories *categories);
/* The number of a name, -1 where it is unknown. */
float tr_category_find(const struct tr_categories *categories, int32_t column, const char *at, size_t length);
/* Expands the row as given to that for the network; `to` is not `from`. */
void tr_categories_expand(const struct tr_categories *categories, const float *from, float *to);

/* Adds the part to a complete state; adds nothing where all columns are numbers. */
void tr_categories_write(const struct tr_categories *categories, struct tr_text *state);
/* Reads the part from a state, which may be hostile; without it all columns are numbers. Release also
   after a failure. TR_EFORMAT, TR_ENOMEM. */
tr_status tr_categories_read(const char *state, struct tr_categories *categories);

#endif
