/* The kernels of one instruction set, in one table. */
#include "device/cpu/kernels.h"

extern const struct cpu_kernels CPU_KERNEL(kernels);

#define CPU_STRING_(isa) #isa
#define CPU_STRING(isa)  CPU_STRING_(isa)
#define CPU_ENTRY(op)    .op = CPU_KERNEL(op)

const struct cpu_kernels CPU_KERNEL(kernels) = {
    .isa = CPU_STRING(TR_ISA),
    /* matrix products */
    CPU_ENTRY(dense_forward),
    CPU_ENTRY(dense_backward_data),
    CPU_ENTRY(dense_backward_weights),
    /* everything else */
};
