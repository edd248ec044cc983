/* A result as a grid of rectangles, one for each member of a team. */
#ifndef TR_DEVICE_CPU_GRID_H
#define TR_DEVICE_CPU_GRID_H

#include "device/cpu/balance.h"

#include <stdint.h>

struct cpu_part {
    int64_t row, row_end, column, column_end;
};

/* The rectangle of a member. The grid has `parts_rows` rows, a divisor of the team's size; a team of one has
   all. Columns are divided at multiples of `grain`. Faster members have larger rectangles. */
struct cpu_part cpu_part(struct cpu_balance *balance, int parts_rows, int64_t rows, int64_t columns,
                         int64_t grain, int member, int size);

/* The items [*begin, *end) of a member, likewise. */
void cpu_items(struct cpu_balance *balance, int64_t count, int64_t grain, int member, int size,
               int64_t *begin, int64_t *end);

#endif
