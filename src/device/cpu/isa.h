/* The instruction sets that this build has kernels for. */
#ifndef TR_DEVICE_CPU_ISA_H
#define TR_DEVICE_CPU_ISA_H

#include "device/cpu/kernels.h"

/* The kernels of the set called `isa`, or the best that the machine has when isa is NULL or "". Static
   storage. NULL and a message when this build or machine lacks it. */
const struct cpu_kernels *cpu_isa_find(const char *isa);

#endif
