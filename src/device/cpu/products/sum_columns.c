/* Sums over rows, column by column: the gradients of biases. */
#include "device/cpu/products/gradient.h"

#include "device/cpu/vectors/columns.h"

#define VECTORS COLUMN_VECTORS
#define WIDE    COLUMN_GROUP

/* The sums over the rows [begin, end) of `columns` <= WIDE columns. */
V_INLINE void sum_rows(const float *x, int64_t width, int64_t begin, int64_t end, int64_t columns,
                       vf sum[VECTORS])
{
    for (int v = 0; v < VECTORS; v++) sum[v] = v_zero();
    if (columns == WIDE) {
        for (int64_t r = begin; r < end; r++)
            for (int v = 0; v < VECTORS; v++) sum[v] = v_add(sum[v], v_load(x + r * width + v * VW));
    } else {
        const int64_t whole = columns / VW;
        for (int64_t r = begin; r < end; r++) {
            for (int v = 0; v < VECTORS - 1; v++)
                if (v < whole) sum[v] = v_add(sum[v], v_load(x + r * width + v * VW));
            if (columns % VW)
                sum[VECTORS - 1] =
                    v_add(sum[VECTORS - 1], v_load_part(x + r * width + whole * VW, columns % VW));
        }
        if (columns % VW) sum[whole] = sum[VECTORS - 1];
    }
}

void sum_columns(const struct tr_cut *cut, int64_t repeat, const float *x, int64_t width, int64_t begin,
                 int64_t end, float *to)
{
    struct column_tree tree;
    column_tree_begin(&tree);
    for (int64_t j = begin; j < end; j += WIDE) {
        const int64_t columns = end - j < WIDE ? end - j : WIDE;
        for (int32_t node = 0; node < cut->nodes; node++) {
            for (int32_t i = cut->bound[node]; i < cut->bound[node + 1]; i++) {
                vf sum[VECTORS];
                sum_rows(x + j, width, cut->row[i] * repeat, cut->row[i + 1] * repeat, columns, sum);
                column_tree_push(&tree, VECTORS, sum);
            }
            column_tree_finish(&tree, VECTORS);
            float *out = to + node * cut->stride + j;
            for (int v = 0; v * VW < columns; v++) column_store(out, v, tree.sum[0][v], columns);
        }
    }
}
