/* Sums over rows, column by column: the gradients of biases. */
#include "device/cpu/gradient.h"

#include "base/tree.h"
#include "device/cpu/vec.h"

/* Columns at a time: enough vectors that their additions overlap. */
#define VECTORS 4
#define WIDE    (VECTORS * VW)

/* The sums over the rows [begin, end) of `columns` <= WIDE columns. */
static void sum_rows(const float *x, int64_t width, int64_t begin, int64_t end, int64_t columns, float *to)
{
    vf sum[VECTORS];
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
    for (int v = 0; v < VECTORS; v++) v_store(to + v * VW, sum[v]);
}

static void add(float *left, const float *right)
{
    for (int v = 0; v < VECTORS; v++)
        v_store(left + v * VW, v_add(v_load(left + v * VW), v_load(right + v * VW)));
}

void sum_columns(const struct tr_cut *cut, const float *x, int64_t width, int64_t begin, int64_t end,
                 float *to)
{
    float stack[TR_TREE_DEPTH + 1][WIDE];
    for (int64_t j = begin; j < end; j += WIDE) {
        const int64_t columns = end - j < WIDE ? end - j : WIDE;
        for (int32_t node = 0; node < cut->nodes; node++) {
            const int32_t first = cut->bound[node], last = cut->bound[node + 1];
            int top = -1;
            for (int64_t i = 0; i < WIDE; i++) stack[0][i] = 0.0f;
            for (int32_t i = first; i < last; i++) {
                sum_rows(x + j, width, cut->row[i], cut->row[i + 1], columns, stack[++top]);
                for (int due = tr_tree_combines_after(i - first); due > 0; due--, top--)
                    add(stack[top - 1], stack[top]);
            }
            for (; top > 0; top--) add(stack[top - 1], stack[top]);
            float *out = to + node * cut->stride + j;
            for (int64_t i = 0; i < columns; i++) out[i] = stack[0][i];
        }
    }
}
