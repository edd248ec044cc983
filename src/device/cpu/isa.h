/* The instruction sets that this build has kernels for. */
#ifndef TR_DEVICE_CPU_ISA_H
#define TR_DEVICE_CPU_ISA_H

#include "device/cpu/kernels.h"

#include <stdbool.h>

struct cpu_isa {
    const char *name;
    const struct cpu_kernels *kernels;
    bool (*available)(void);
    bool keeps_chains; /* even where `ref` is faster at them, see cpu_isa_leaves_chains() */
};

/* The set called `isa`, or the best that the machine has when isa is NULL or "". Static storage. NULL and a
   message when this build or machine lacks it. */
const struct cpu_isa *cpu_isa_find(const char *isa);

/* Whether operations made of chains are better left to `ref`: it has instructions for FMA on this machine,
   and the kernels were compiled without. */
bool cpu_isa_leaves_chains(const struct cpu_isa *isa);

#endif
