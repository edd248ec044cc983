/* The mean over the labelled places of examples. Members divide the examples. */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/vec.h"

#define LANES 16

#define NANOSECONDS_PER_VECTOR 1.0

static float total_of(float lane[LANES])
{
    for (int j = 0; j < 8; j++) lane[j] += lane[j + 8];
    for (int j = 0; j < 4; j++) lane[j] += lane[j + 4];
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

static void scale_row(float *x, int64_t count, float factor)
{
    const vf f = v_set1(factor);
    int64_t k = 0;
    for (; k + VW <= count; k += VW) v_store(x + k, v_mul(v_load(x + k), f));
    if (k < count) v_store_part(x + k, v_mul(v_load_part(x + k, count - k), f), count - k);
}

static void mean_of_example(const struct tr_op_mean_labelled *a, int64_t e)
{
    const int64_t first = e * a->places;
    const int32_t *label = a->label + first;
    const float *each_loss = a->each_loss + first, *each_correct = a->each_correct + first;
    float loss[LANES] = {0}, correct[LANES] = {0};
    int64_t labelled = 0;
    for (int64_t p = 0; p < a->places; p++) {
        const float weight = a->weight && label[p] >= 0 ? a->weight[label[p]] : 1;
        labelled += label[p] >= 0;
        loss[p % LANES] += label[p] < 0 ? 0 : each_loss[p] * weight;
        correct[p % LANES] += each_correct[p];
    }
    const float share = labelled > 0 ? 1 / (float)labelled : 0;
    a->loss[e] = total_of(loss) * share;
    a->correct[e] = total_of(correct) * share;
    if (!a->dx) return;
    float *dx = a->dx + first * a->classes;
    if (!a->weight && labelled == a->places) {
        scale_row(dx, a->places * a->classes, share);
        return;
    }
    for (int64_t p = 0; p < a->places; p++)
        if (label[p] >= 0)
            scale_row(dx + p * a->classes, a->classes, a->weight ? a->weight[label[p]] * share : share);
}

static void mean_labelled_part(void *arguments, int member, int size)
{
    const struct tr_op_mean_labelled *a = arguments;
    int64_t begin, end;
    tr_team_chunk(a->rows, 1, member, size, &begin, &end);
    for (int64_t e = begin; e < end; e++) mean_of_example(a, e);
}

tr_status CPU_KERNEL(mean_labelled)(tr_device *device, const struct tr_op_mean_labelled *a)
{
    const double numbers = (double)(a->rows * a->places) * (double)(4 + a->classes);
    cpu_run(cpu_device_of(device), numbers / VW * NANOSECONDS_PER_VECTOR, mean_labelled_part, (void *)a);
    return TR_OK;
}
