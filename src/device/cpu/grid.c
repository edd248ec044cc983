#include "device/cpu/grid.h"

struct cpu_part cpu_part(struct cpu_balance *balance, int parts_rows, int64_t rows, int64_t columns,
                         int64_t grain, int member, int size)
{
    if (size == 1) return (struct cpu_part){0, rows, 0, columns};
    const int parts_columns = size / parts_rows, first = member / parts_columns * parts_columns;
    struct cpu_part part;
    cpu_balance_part(balance, rows, 1, first, parts_columns, 0, size, &part.row, &part.row_end);
    cpu_balance_part(balance, columns, grain, member, 1, first, parts_columns, &part.column,
                     &part.column_end);
    if (rows > 0 && columns > 0)
        cpu_balance_note(balance, member,
                         (double)(part.row_end - part.row) / (double)rows *
                             (double)(part.column_end - part.column) / (double)columns);
    return part;
}

void cpu_items(struct cpu_balance *balance, int64_t count, int64_t grain, int member, int size,
               int64_t *begin, int64_t *end)
{
    const struct cpu_part part = cpu_part(balance, 1, 1, count, grain, member, size);
    *begin = part.column;
    *end = part.column_end;
}
