/* The kernels of one instruction set, in one table. */
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/vec.h"

extern const struct cpu_kernels CPU_KERNEL(kernels);

#define CPU_ENTRY(op)       .op = CPU_KERNEL(op)
#define CPU_CHAIN_ENTRY(op) CPU_ENTRY(op),

const struct cpu_kernels CPU_KERNEL(kernels) = {
    .fuses = V_FUSES,
    .peak = CPU_KERNEL(peak),
    TR_DEVICE_CHAIN_OPS(CPU_CHAIN_ENTRY)
    /* fused operations */
    TR_DEVICE_CHAIN_FUSIONS(CPU_CHAIN_ENTRY)
    /* operations without long chains */
    CPU_ENTRY(activation_forward),
    CPU_ENTRY(activation_backward),
    CPU_ENTRY(add),
    CPU_ENTRY(multiply),
    CPU_ENTRY(multiply_sum),
    CPU_ENTRY(scale),
    CPU_ENTRY(fill),
    CPU_ENTRY(dropout),
    CPU_ENTRY(drop_examples),
    CPU_ENTRY(pool_forward),
    CPU_ENTRY(pool_backward),
    CPU_ENTRY(pool_rows_forward),
    CPU_ENTRY(pool_rows_backward),
    CPU_ENTRY(softmax_forward),
    CPU_ENTRY(softmax_backward),
    CPU_ENTRY(layer_norm_forward),
    CPU_ENTRY(layer_norm_backward),
    CPU_ENTRY(rms_norm_forward),
    CPU_ENTRY(rms_norm_backward),
    CPU_ENTRY(grouped_conv_forward),
    CPU_ENTRY(grouped_conv_backward_data),
    CPU_ENTRY(grouped_conv_backward_weights),
    CPU_ENTRY(group_norm_forward),
    CPU_ENTRY(group_norm_backward),
    CPU_ENTRY(batch_norm_forward),
    CPU_ENTRY(batch_norm_backward),
    CPU_ENTRY(batch_norm_infer),
    CPU_ENTRY(batch_norm_activation_forward),
    CPU_ENTRY(batch_norm_activation_backward),
    CPU_ENTRY(embedding_forward),
    CPU_ENTRY(embedding_backward),
    CPU_ENTRY(sequence_last_forward),
    CPU_ENTRY(sequence_last_backward),
    CPU_ENTRY(sequence_unfold),
    CPU_ENTRY(sequence_fold),
    CPU_ENTRY(sequence_copy),
    CPU_ENTRY(position_forward),
    CPU_ENTRY(position_backward),
    CPU_ENTRY(rotary),
    CPU_ENTRY(softmax_cross_entropy),
    CPU_ENTRY(soft_cross_entropy),
    CPU_ENTRY(mean_squared_error),
    CPU_ENTRY(mean_labelled),
    CPU_ENTRY(sum_rows),
    CPU_ENTRY(load_images),
    CPU_ENTRY(augment_images),
    CPU_ENTRY(update),
    CPU_ENTRY(advance),
    CPU_ENTRY(sum_squares),
    CPU_ENTRY(clip_scale),
};
