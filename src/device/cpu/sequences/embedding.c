/* Embeddings. The gradient changes only the rows of a table that occur. Rows of the batch are grouped by
 * token first, and the leaves of each token are combined as the tree over all microbatches would combine
 * them.
 */
#include "device/cpu/vectors/columns.h"
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"

#include <string.h>

#define NANOSECONDS_PER_FLOAT 0.1
#define NANOSECONDS_PER_TOKEN 4.0

static void embedding_forward_part(void *arguments, int member, int size)
{
    const struct tr_op_embedding_forward *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->rows, 1, member, size, &begin, &end);
    for (int64_t r = begin; r < end; r++)
        memcpy(a->y + r * a->width, a->table + a->token[r] * a->width, (size_t)a->width * sizeof(float));
}

tr_status CPU_KERNEL(embedding_forward)(tr_device *device, const struct tr_op_embedding_forward *a)
{
    double nanoseconds = (double)a->rows * (NANOSECONDS_PER_TOKEN + (double)a->width * NANOSECONDS_PER_FLOAT);
    cpu_run(cpu_device_of(device), nanoseconds, embedding_forward_part, (void *)a);
    return TR_OK;
}

/* ---- gradient ---- */

/* Rows of the batch by token: those of token v are row[start[v]] up to row[start[v + 1] - 1], ascending. */
struct groups {
    int32_t *start; /* [vocabulary + 1] */
    int32_t *row;   /* [rows] */
};

static struct groups group_rows(const struct tr_op_embedding_backward *a, int64_t rows)
{
    struct groups g = {a->workspace, a->workspace + a->vocabulary + 1};
    memset(g.start, 0, (size_t)(a->vocabulary + 1) * sizeof(*g.start));
    for (int64_t r = 0; r < rows; r++) g.start[a->token[r]]++;
    /* Each start is first the end of its group, and moves down as rows are added from the last to the
       first. */
    int32_t sum = 0;
    for (int64_t v = 0; v < a->vocabulary; v++) g.start[v] = sum += g.start[v];
    g.start[a->vocabulary] = sum;
    for (int64_t r = rows - 1; r >= 0; r--) g.row[--g.start[a->token[r]]] = (int32_t)r;
    return g;
}

struct backward {
    const struct tr_op_embedding_backward *op;
    struct groups groups;
    const int32_t *row, *end; /* the rows of one token in one node; each member has a copy */
    int32_t node;
    float *to;
};

/* The level of the smallest subtree that holds both leaves. */
static int joined_at(int32_t left, int32_t right)
{
    return 32 - __builtin_clz((unsigned)(left ^ right));
}

/* The sum of a token's leaves for a group of columns. Leaves that are +0 because the token does not occur
 * change nothing and are skipped. Two waiting sums are combined as soon as a leaf comes that lies outside
 * the subtree that holds both. `level` descends from the oldest waiting sum to the youngest.
 */
V_INLINE void table_group(const struct backward *b, const int vectors, int64_t column, int64_t valid)
{
    const struct tr_op_embedding_backward *a = b->op;
    vf sum[TR_TREE_DEPTH + 1][COLUMN_VECTORS];
    int level[TR_TREE_DEPTH + 1]; /* level at which sum[i] and sum[i - 1] are combined */
    int top = -1;
    int32_t first = a->cut.bound[b->node], leaf = first;
    const int32_t *row = b->row;
    while (row < b->end) {
        int32_t before = leaf;
        while (*row >= a->cut.row[leaf + 1]) leaf++;
        int meet = top < 0 ? 0 : joined_at(before - first, leaf - first);
        for (; top > 0 && level[top] < meet; top--)
            for (int v = 0; v < vectors; v++) sum[top - 1][v] = v_add(sum[top - 1][v], sum[top][v]);
        level[++top] = meet;
        for (int v = 0; v < vectors; v++) sum[top][v] = v_zero();
        for (; row < b->end && *row < a->cut.row[leaf + 1]; row++) {
            const float *dy = a->dy + *row * a->width + column;
            for (int v = 0; v < vectors; v++) sum[top][v] = v_add(sum[top][v], column_load(dy, v, valid));
        }
    }
    for (; top > 0; top--)
        for (int v = 0; v < vectors; v++) sum[top - 1][v] = v_add(sum[top - 1][v], sum[top][v]);
    for (int v = 0; v < vectors; v++) column_store(b->to + column, v, sum[0][v], valid);
}

/* The first token of a member's chunk. The cost of a token is its row of the table and the batch rows that
 * it reads; frequent tokens are neighbours.
 */
static int64_t chunk_begin(const struct backward *b, int member, int size)
{
    const int32_t *start = b->groups.start;
    int64_t vocabulary = b->op->vocabulary, low = 0, high = vocabulary;
    int64_t target = (vocabulary + start[vocabulary]) / size * member +
                     (vocabulary + start[vocabulary]) % size * member / size;
    if (member == size) return vocabulary;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (middle + start[middle] < target)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The rows [begin, end) of a node's table. */
static void node_part(struct backward *b, int64_t begin, int64_t end)
{
    const struct tr_op_embedding_backward *a = b->op;
    const struct tr_cut *cut = &a->cut;
    int64_t least = cut->row[cut->bound[b->node]], most = cut->row[cut->bound[b->node + 1]];
    float *table = a->dtable + b->node * cut->stride;
    int64_t absent = begin; /* first of the tokens up to v that do not occur */
    for (int64_t v = begin; v < end; v++) {
        const int32_t *row = b->groups.row + b->groups.start[v],
                      *last = b->groups.row + b->groups.start[v + 1];
        while (row < last && *row < least) row++;
        while (row < last && last[-1] >= most) last--;
        if (row == last) continue;
        memset(table + absent * a->width, 0, (size_t)((v - absent) * a->width) * sizeof(float));
        absent = v + 1;
        b->row = row;
        b->end = last;
        b->to = table + v * a->width;
        COLUMN_GROUPS(table_group, b, 0, a->width);
    }
    memset(table + absent * a->width, 0, (size_t)((end - absent) * a->width) * sizeof(float));
}

static void embedding_backward_part(void *arguments, int member, int size)
{
    struct backward b = *(const struct backward *)arguments;
    int64_t begin = chunk_begin(&b, member, size), end = chunk_begin(&b, member + 1, size);
    for (b.node = 0; b.node < b.op->cut.nodes; b.node++) node_part(&b, begin, end);
}

tr_status CPU_KERNEL(embedding_backward)(tr_device *device, const struct tr_op_embedding_backward *a)
{
    if (a->cut.count == 0) return TR_OK;
    int64_t rows = a->cut.row[a->cut.count];
    struct backward b = {.op = a, .groups = group_rows(a, rows)};
    double floats = (double)(rows + a->vocabulary * a->cut.nodes) * (double)a->width;
    cpu_run(cpu_device_of(device), floats * NANOSECONDS_PER_FLOAT, embedding_backward_part, &b);
    return TR_OK;
}
