/* Learned positions, added and collected; rotary positions. */
#include "base/fail.h"
#include "device/cpu/vectors/columns.h"
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/sizes.h"
#include "device/rotary.h"

#define NANOSECONDS_PER_FLOAT 0.2
#define NANOSECONDS_PER_ANGLE 40.0

/* The example that row r belongs to, from `example` on. */
static int64_t example_of(const int32_t *offset, int64_t example, int64_t r)
{
    while (r >= offset[example + 1]) example++;
    return example;
}

/* ---- learned ---- */

static void forward_part(void *arguments, int member, int size)
{
    const struct tr_op_position_forward *a = arguments;
    const int64_t first = a->offset[0];
    int64_t begin, end;
    tr_team_chunk(a->offset[a->examples] - first, 1, member, size, &begin, &end);
    for (int64_t r = first + begin, e = 0; r < first + end; r++) {
        e = example_of(a->offset, e, r);
        const float *row = a->table + smaller(r - a->offset[e], a->length - 1) * a->width;
        const float *x = a->x + r * a->width;
        float *y = a->y + r * a->width;
        int64_t k = 0;
        for (; k + VW <= a->width; k += VW) v_store(y + k, v_add(v_load(x + k), v_load(row + k)));
        if (k < a->width) {
            const int64_t n = a->width - k;
            v_store_part(y + k, v_add(v_load_part(x + k, n), v_load_part(row + k, n)), n);
        }
    }
}

tr_status CPU_KERNEL(position_forward)(tr_device *device, const struct tr_op_position_forward *a)
{
    if (a->examples == 0) return TR_OK;
    const double floats = (double)(a->offset[a->examples] - a->offset[0]) * (double)a->width;
    cpu_run(cpu_device_of(device), floats * NANOSECONDS_PER_FLOAT, forward_part, (void *)a);
    return TR_OK;
}

/* A row of the table while its columns are summed. */
struct table_row {
    const struct tr_op_position_backward *a;
    int64_t t;
};

V_INLINE void table_columns(const struct table_row *row, const int vectors, int64_t column, int64_t columns)
{
    const struct tr_op_position_backward *a = row->a;
    struct column_tree tree;
    column_tree_begin(&tree);
    for (int32_t node = 0; node < a->cut.nodes; node++) {
        for (int32_t i = a->cut.bound[node]; i < a->cut.bound[node + 1]; i++) {
            vf sum[COLUMN_VECTORS];
            for (int v = 0; v < vectors; v++) sum[v] = v_zero();
            for (int64_t e = a->cut.row[i]; e < a->cut.row[i + 1]; e++) {
                const int64_t first = a->offset[e] + row->t, past = a->offset[e + 1];
                /* The last row of the table serves all later tokens. */
                const int64_t end = row->t == a->length - 1 ? past : smaller(first + 1, past);
                for (int64_t r = first; r < end; r++)
                    for (int v = 0; v < vectors; v++)
                        sum[v] = v_add(sum[v], column_load(a->dy + r * a->width + column, v, columns));
            }
            column_tree_push(&tree, vectors, sum);
        }
        float *to = a->dtable + node * a->cut.stride + row->t * a->width + column;
        column_tree_store(&tree, vectors, to, columns);
    }
}

static void backward_part(void *arguments, int member, int size)
{
    struct table_row row = {arguments, 0};
    int64_t end;
    tr_team_chunk(row.a->length, 1, member, size, &row.t, &end);
    for (; row.t < end; row.t++) COLUMN_GROUPS(table_columns, &row, 0, row.a->width);
}

tr_status CPU_KERNEL(position_backward)(tr_device *device, const struct tr_op_position_backward *a)
{
    if (a->cut.count == 0) return TR_OK;
    const double rows = (double)a->length * (double)(a->cut.row[a->cut.count] + a->cut.count);
    cpu_run(cpu_device_of(device), rows * (double)a->width * NANOSECONDS_PER_FLOAT, backward_part, (void *)a);
    return TR_OK;
}

/* ---- rotary ---- */

struct rotary {
    const struct tr_op_rotary *a;
    int64_t longest;
    float *cosine, *sine; /* [longest][size / 2]; with pairs [longest][size], each twice */
};

static void angles_part(void *arguments, int member, int size)
{
    const struct rotary *rotary = arguments;
    const struct tr_op_rotary *a = rotary->a;
    const int64_t half = a->size / 2, copies = a->pairs ? 2 : 1;
    int64_t begin, end;
    tr_team_chunk(half, 1, member, size, &begin, &end);
    for (int64_t k = begin; k < end; k++) {
        const double turn = tr_rotary_turn(a, k);
        for (int64_t t = 0; t < rotary->longest; t++) {
            const double angle = (double)(a->past + t) * turn;
            const float c = (float)tr_cos(angle), sine = (float)tr_cos(angle - 0x1.921fb54442d18p0);
            const float s = a->inverse ? -sine : sine;
            for (int64_t i = 0; i < copies; i++) {
                const int64_t at = (t * half + k) * copies + i;
                rotary->cosine[at] = c;
                rotary->sine[at] = a->pairs && i == 0 ? -s : s;
            }
        }
    }
}

/* For n numbers of a vector at x and each one's neighbour: fma(-s, b, c * a) and fma(s, a, c * b); `sine`
   contains the sign of s. */
V_INLINE void turn_pairs(float *x, const float *cosine, const float *sine, int64_t n)
{
    float other[VW] = {0};
    for (int64_t i = 0; i < n; i++) other[i] = x[i ^ 1];
    const vf own = v_mul(v_load_part(cosine, n), v_load_part(x, n));
    v_store_part(x, v_fma(v_load_part(sine, n), v_load(other), own), n);
}

static void turn_part(void *arguments, int member, int size)
{
    const struct rotary *rotary = arguments;
    const struct tr_op_rotary *a = rotary->a;
    const int64_t half = a->size / 2, angles = a->pairs ? a->size : half, first = a->offset[0];
    int64_t begin, end;
    tr_team_chunk(a->offset[a->examples] - first, 1, member, size, &begin, &end);
    for (int64_t r = first + begin, e = 0; r < first + end; r++) {
        e = example_of(a->offset, e, r);
        const float *cosine = rotary->cosine + (r - a->offset[e]) * angles;
        const float *sine = rotary->sine + (r - a->offset[e]) * angles;
        for (int64_t h = 0; h < a->heads; h++) {
            float *x = a->x + r * a->step + h * a->size;
            for (int64_t k = 0; a->pairs && k < a->size; k += VW)
                turn_pairs(x + k, cosine + k, sine + k, smaller(VW, a->size - k));
            if (a->pairs) continue;
            for (int64_t k = 0; k < half; k += VW) {
                const int64_t n = smaller(VW, half - k);
                const vf c = v_load_part(cosine + k, n), s = v_load_part(sine + k, n);
                const vf low = v_load_part(x + k, n), high = v_load_part(x + half + k, n);
                v_store_part(x + k, v_fnma(s, high, v_mul(c, low)), n);
                v_store_part(x + half + k, v_fma(s, low, v_mul(c, high)), n);
            }
        }
    }
}

tr_status CPU_KERNEL(rotary)(tr_device *device, const struct tr_op_rotary *a)
{
    struct cpu_device *cpu = cpu_device_of(device);
    struct rotary rotary = {.a = a};
    for (int64_t e = 0; e < a->examples; e++) {
        const int64_t length = a->offset[e + 1] - a->offset[e];
        rotary.longest = length > rotary.longest ? length : rotary.longest;
    }
    if (rotary.longest == 0) return TR_OK;
    const int64_t angles = rotary.longest * (a->pairs ? a->size : a->size / 2);
    TR_TRY(cpu_reserve(cpu, 0, (size_t)(2 * angles) * sizeof(float)));
    rotary.cosine = cpu_shared(cpu);
    rotary.sine = rotary.cosine + angles;
    const double rows = (double)(a->offset[a->examples] - a->offset[0]);
    cpu_run(cpu, (double)angles * NANOSECONDS_PER_ANGLE, angles_part, &rotary);
    cpu_run(cpu, rows * (double)(a->heads * a->size) * NANOSECONDS_PER_FLOAT, turn_part, &rotary);
    return TR_OK;
}
