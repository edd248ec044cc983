#include "device/cpu/grid.h"

#include "base/threads/team.h"

struct cpu_part cpu_part(int parts_rows, int64_t rows, int64_t columns, int64_t grain, int member, int size)
{
    if (size == 1) parts_rows = 1;
    const int parts_columns = size / parts_rows;
    struct cpu_part part;
    tr_team_chunk(rows, 1, member / parts_columns, parts_rows, &part.row, &part.row_end);
    tr_team_chunk(columns, grain, member % parts_columns, parts_columns, &part.column, &part.column_end);
    return part;
}
