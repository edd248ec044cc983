/* Sorting of numbers. */
#ifndef TR_BASE_SORT_H
#define TR_BASE_SORT_H

#include <stddef.h>

/* Sorts `count` numbers, none of them NaN, in place: ascending. Any thread. */
void tr_sort_doubles(double *value, size_t count);

#endif
