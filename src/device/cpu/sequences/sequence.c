/* Operations that turn the rows of a sequence into vectors or wider rows, and back. */
#include "device/cpu/vectors/columns.h"
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/lanes.h"

#include <string.h>

#define NANOSECONDS_PER_FLOAT 0.1

static void last_forward_part(void *arguments, int member, int size)
{
    const struct tr_op_sequence_last_forward *a = arguments;
    size_t bytes = (size_t)a->width * sizeof(float);
    int64_t begin, end;
    tr_team_chunk(a->examples, 1, member, size, &begin, &end);
    for (int64_t e = begin; e < end; e++) {
        if (a->offset[e] == a->offset[e + 1])
            memset(a->y + e * a->width, 0, bytes);
        else
            memcpy(a->y + e * a->width, a->x + (a->offset[e + 1] - 1) * a->width, bytes);
    }
}

tr_status CPU_KERNEL(sequence_last_forward)(tr_device *device, const struct tr_op_sequence_last_forward *a)
{
    double nanoseconds = (double)a->examples * (double)a->width * NANOSECONDS_PER_FLOAT;
    cpu_run(cpu_device_of(device), nanoseconds, last_forward_part, (void *)a);
    return TR_OK;
}

static void last_backward_part(void *arguments, int member, int size)
{
    const struct tr_op_sequence_last_backward *a = arguments;
    size_t bytes = (size_t)a->width * sizeof(float);
    int64_t begin, end;
    tr_team_chunk(a->examples, 1, member, size, &begin, &end);
    for (int64_t e = begin; e < end; e++) {
        int64_t first = a->offset[e], last = a->offset[e + 1] - 1;
        if (first > last) continue;
        memset(a->dx + first * a->width, 0, (size_t)(last - first) * bytes);
        memcpy(a->dx + last * a->width, a->dy + e * a->width, bytes);
    }
}

tr_status CPU_KERNEL(sequence_last_backward)(tr_device *device, const struct tr_op_sequence_last_backward *a)
{
    if (a->examples == 0) return TR_OK;
    double nanoseconds = (double)a->offset[a->examples] * (double)a->width * NANOSECONDS_PER_FLOAT;
    cpu_run(cpu_device_of(device), nanoseconds, last_backward_part, (void *)a);
    return TR_OK;
}

/* ---- neighbours ---- */

static void unfold_part(void *arguments, int member, int size)
{
    const struct tr_op_sequence_unfold *a = arguments;
    const size_t bytes = (size_t)a->width * sizeof(float);
    int64_t begin, end;
    tr_team_chunk(a->examples, 1, member, size, &begin, &end);
    for (int64_t e = begin; e < end; e++) {
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++) {
            for (int64_t tap = 0; tap < a->taps; tap++) {
                const int64_t from = r + tap * a->dilation - a->before;
                float *to = a->y + (r * a->taps + tap) * a->width;
                if (from < a->offset[e] || from >= a->offset[e + 1])
                    memset(to, 0, bytes);
                else
                    memcpy(to, a->x + from * a->width, bytes);
            }
        }
    }
}

tr_status CPU_KERNEL(sequence_unfold)(tr_device *device, const struct tr_op_sequence_unfold *a)
{
    if (a->examples == 0) return TR_OK;
    const double floats = (double)a->offset[a->examples] * (double)(a->width * a->taps);
    cpu_run(cpu_device_of(device), floats * NANOSECONDS_PER_FLOAT, unfold_part, (void *)a);
    return TR_OK;
}

static void fold_part(void *arguments, int member, int size)
{
    const struct tr_op_sequence_fold *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->examples, 1, member, size, &begin, &end);
    for (int64_t e = begin; e < end; e++) {
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++) {
            for (int64_t k = 0; k < a->width; k += VW) {
                const int64_t n = a->width - k < VW ? a->width - k : VW;
                vf sum = v_zero();
                for (int64_t tap = 0; tap < a->taps; tap++) {
                    const int64_t from = r - tap * a->dilation + a->before;
                    if (from < a->offset[e] || from >= a->offset[e + 1]) continue;
                    sum = v_add(sum, v_load_part(a->dy + (from * a->taps + tap) * a->width + k, n));
                }
                v_store_part(a->dx + r * a->width + k, sum, n);
            }
        }
    }
}

tr_status CPU_KERNEL(sequence_fold)(tr_device *device, const struct tr_op_sequence_fold *a)
{
    if (a->examples == 0) return TR_OK;
    const double floats = (double)a->offset[a->examples] * (double)(a->width * a->taps);
    cpu_run(cpu_device_of(device), floats * NANOSECONDS_PER_FLOAT, fold_part, (void *)a);
    return TR_OK;
}

static void copy_part(void *arguments, int member, int size)
{
    const struct tr_op_sequence_copy *a = arguments;
    const size_t bytes = (size_t)a->width * sizeof(float);
    int64_t begin, end;
    tr_team_chunk(a->examples, 1, member, size, &begin, &end);
    for (int64_t e = begin; e < end; e++) {
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++) {
            const int64_t from = a->reverse ? a->offset[e] + a->offset[e + 1] - 1 - r : r;
            memcpy(a->y + r * a->y_step, a->x + from * a->x_step, bytes);
        }
    }
}

tr_status CPU_KERNEL(sequence_copy)(tr_device *device, const struct tr_op_sequence_copy *a)
{
    if (a->examples == 0) return TR_OK;
    const double floats = (double)a->offset[a->examples] * (double)a->width;
    cpu_run(cpu_device_of(device), floats * NANOSECONDS_PER_FLOAT, copy_part, (void *)a);
    return TR_OK;
}
