#include "base/numbers/sort.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void tr_sort_doubles(double *value, size_t count)
{
    if (count > 0) qsort(value, count, sizeof *value, compare);
}
