/* Columns of names as features: the names that the training data have, in the order of their bytes, and what
 * a row becomes of them.
 *
 * A row as it is given has a float for each column: a number, or, of a column of names, the number of the
 * name from 0, -1 for a name that the training data do not have, and NaN for one that is missing. Towards the
 * network a column of names becomes as many numbers as it has names: 1 for the row's own, 0 for all others,
 * and 0 for all where it has none of them.
 *
 * They are kept after the state of a table (data/state.h) as a part of the kind "categories": for each
 * column the number of its names, 0 for one of numbers, and then the names, on lines of their own.
 */
#ifndef TR_DATA_CATEGORIES_H
#define TR_DATA_CATEGORIES_H

#include "data/images/class_names.h"

/* Begins as {0}. */
struct tr_categories {
    int32_t columns;              /* of a row as it is given; 0: all are numbers */
    struct tr_class_names *names; /* [columns]; none of a column of numbers */
};

/* Room for columns of numbers. TR_ENOMEM. Release with tr_categories_release(). */
tr_status tr_categories_create(int32_t columns, struct tr_categories *out);
void tr_categories_release(struct tr_categories *categories);
tr_status tr_categories_copy(const struct tr_categories *categories, struct tr_categories *out);

/* What a column becomes, or all of them. */
static inline int32_t tr_category_width(const struct tr_categories *categories, int32_t column)
{
    int32_t names = categories->names[column].count;
    return names > 0 ? names : 1;
}
int64_t tr_categories_width(const struct tr_categories *categories);
/* The number of a name, -1 where there is no such. */
float tr_category_find(const struct tr_categories *categories, int32_t column, const char *at, size_t length);
/* The row as it is given becomes that for the network; `to` is not `from`. */
void tr_categories_expand(const struct tr_categories *categories, const float *from, float *to);

/* Adds the part to a state that is complete; nothing where all are numbers. */
void tr_categories_write(const struct tr_categories *categories, struct tr_text *state);
/* Reads it from a state, hostile as it may be; without such a part all are numbers. Release also after a
   failure. TR_EFORMAT, TR_ENOMEM. */
tr_status tr_categories_read(const char *state, struct tr_categories *categories);

#endif
