#include "device/cpu/conv_axis.h"

size_t cpu_conv_axis_bytes(int32_t targets, int32_t kernel)
{
    return (size_t)targets * (size_t)kernel * sizeof(struct conv_run) +
           ((size_t)targets + 1) * sizeof(int32_t);
}

static int32_t add(struct conv_axis *axis, int32_t first, int32_t count, int32_t source, int32_t kernel,
                   bool merge)
{
    struct conv_run *last = axis->runs + count - 1;
    if (merge && count > first && source == last->source + last->length &&
        kernel == last->kernel + last->length) {
        last->length++;
        return count;
    }
    axis->runs[count] = (struct conv_run){source, kernel, 1};
    return count + 1;
}

void cpu_conv_axis_build(struct conv_axis *axis, const struct conv_extent *e, bool backward, bool merge,
                         void *memory)
{
    axis->targets = backward ? e->in : e->out;
    axis->runs = memory;
    axis->start = (int32_t *)(axis->runs + (size_t)axis->targets * (size_t)e->kernel);
    int32_t count = 0;
    for (int32_t target = 0; target < axis->targets; target++) {
        const int32_t first = count;
        axis->start[target] = first;
        for (int32_t i = 0; i < e->kernel; i++) {
            /* Kernel places ascend with the sources: forward in order, backward from the last tap. */
            const int32_t tap = backward ? e->kernel - 1 - i : i;
            int64_t source;
            if (!backward) {
                source = (int64_t)target * e->stride + (int64_t)tap * e->dilation - e->pad;
                if (source < 0 || source >= e->in) continue;
            } else {
                source = (int64_t)target + e->pad - (int64_t)tap * e->dilation;
                if (source < 0 || source % e->stride || source / e->stride >= e->out) continue;
                source /= e->stride;
            }
            count = add(axis, first, count, (int32_t)source, i, merge);
        }
    }
    axis->start[axis->targets] = count;
}

void cpu_conv_axis_sources(const struct conv_axis *axis, int32_t begin, int32_t end, int32_t *first,
                           int32_t *last)
{
    *first = INT32_MAX;
    *last = 0;
    for (int32_t i = axis->start[begin]; i < axis->start[end]; i++) {
        const struct conv_run *run = axis->runs + i;
        if (run->source < *first) *first = run->source;
        if (run->source + run->length > *last) *last = run->source + run->length;
    }
    if (*last == 0) *first = 0;
}

/* The shift between the sources of target t and those of target u, if both meet the same taps, 0 if they meet
   none; else -1. */
static int32_t shift_between(const struct conv_axis *axis, int32_t t, int32_t u)
{
    const struct conv_run *a = axis->runs + axis->start[t], *b = axis->runs + axis->start[u];
    const int32_t count = axis->start[t + 1] - axis->start[t];
    if (axis->start[u + 1] - axis->start[u] != count) return -1;
    if (count == 0) return 0;
    const int32_t shift = b->source - a->source;
    for (int32_t i = 0; i < count; i++)
        if (a[i].kernel != b[i].kernel || a[i].length != b[i].length || b[i].source - a[i].source != shift)
            return -1;
    return shift > 0 ? shift : -1;
}

int32_t cpu_conv_axis_alike(const struct conv_axis *axis, int32_t target, int32_t every, int32_t most,
                            int32_t *shift)
{
    int32_t count = 1;
    *shift = most > 1 ? shift_between(axis, target, target + every) : -1;
    if (*shift < 0)
        *shift = 0;
    else
        for (count = 2; count < most; count++)
            if (shift_between(axis, target + (count - 1) * every, target + count * every) != *shift) break;
    return count;
}
