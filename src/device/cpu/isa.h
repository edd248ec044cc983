/* The instruction sets that this build has kernels for. */
#ifndef TR_DEVICE_CPU_ISA_H
#define TR_DEVICE_CPU_ISA_H

#include "device/cpu/kernels.h"

#include <stdbool.h>

struct cpu_isa {
    const char *name;
    const struct cpu_kernels *kernels;
    bool (*available)(void);
    /* Whether the operations of CPU_CHAIN_OPS are better left to `ref`: it has instructions for FMA on this
       machine, and the kernels were compiled without. NULL: never. */
    bool (*leaves_chains)(void);
};

/* The set called `isa`, or the best that the machine has when isa is NULL or "". Static storage. NULL and a
   message when this build or machine lacks it. */
const struct cpu_isa *cpu_isa_find(const char *isa);

#endif
