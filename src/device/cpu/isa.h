/* The instruction sets that this build has kernels for. */
#ifndef TR_DEVICE_CPU_ISA_H
#define TR_DEVICE_CPU_ISA_H

#include "device/cpu/kernels.h"

#include <stdbool.h>

struct cpu_isa {
    const char *name;
    const struct cpu_kernels *kernels;
    bool (*available)(void);
    bool keeps_chains; /* also for chains, where `ref` may be faster, see cpu_isa_leaves_chains() */
};

/* The instruction set called `isa`, or the best one of the machine when isa is NULL or "". Static storage.
   NULL and a message when this build or machine lacks it. */
const struct cpu_isa *cpu_isa_find(const char *isa);

/* Whether `ref` computes operations made of chains faster: it uses FMA instructions on this machine, for
   which the kernels were not compiled. */
bool cpu_isa_leaves_chains(const struct cpu_isa *isa);

#endif
