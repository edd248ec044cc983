/* The kernels of one instruction set, in one table. */
#include "device/cpu/kernels.h"

extern const struct cpu_kernels CPU_KERNEL(kernels);

#define CPU_STRING_(isa) #isa
#define CPU_STRING(isa)  CPU_STRING_(isa)
#define CPU_ENTRY(op)    .op = CPU_KERNEL(op)

const struct cpu_kernels CPU_KERNEL(kernels) = {
    .isa = CPU_STRING(TR_ISA),
    .peak = CPU_KERNEL(peak),
    /* matrix products */
    CPU_ENTRY(dense_forward),
    CPU_ENTRY(dense_backward_data),
    CPU_ENTRY(dense_backward_weights),
    CPU_ENTRY(conv_forward),
    CPU_ENTRY(conv_backward_data),
    CPU_ENTRY(conv_backward_weights),
    CPU_ENTRY(lstm_forward),
    CPU_ENTRY(lstm_backward),
    CPU_ENTRY(lstm_backward_weights),
    /* everything else */
    CPU_ENTRY(activation_forward),
    CPU_ENTRY(activation_backward),
    CPU_ENTRY(add),
    CPU_ENTRY(scale),
    CPU_ENTRY(fill),
    CPU_ENTRY(dropout),
    CPU_ENTRY(pool_forward),
    CPU_ENTRY(pool_backward),
    CPU_ENTRY(softmax_forward),
    CPU_ENTRY(softmax_backward),
    CPU_ENTRY(layer_norm_forward),
    CPU_ENTRY(layer_norm_backward),
    CPU_ENTRY(batch_norm_forward),
    CPU_ENTRY(batch_norm_backward),
    CPU_ENTRY(batch_norm_infer),
    CPU_ENTRY(embedding_forward),
    CPU_ENTRY(embedding_backward),
    CPU_ENTRY(sequence_last_forward),
    CPU_ENTRY(sequence_last_backward),
    CPU_ENTRY(softmax_cross_entropy),
    CPU_ENTRY(mean_squared_error),
    CPU_ENTRY(sum_rows),
    CPU_ENTRY(load_images),
    CPU_ENTRY(update),
    CPU_ENTRY(sum_squares),
    CPU_ENTRY(clip_scale),
};
