/* The last row of each sequence, and back. */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"

#include <string.h>

#define NANOSECONDS_PER_FLOAT 0.1

static void last_forward_part(void *arguments, int member, int size)
{
    const struct tr_op_sequence_last_forward *a = arguments;
    size_t bytes = (size_t)a->width * sizeof(float);
    int64_t begin, end;
    tr_team_share(a->examples, 1, member, size, &begin, &end);
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
    tr_team_share(a->examples, 1, member, size, &begin, &end);
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
