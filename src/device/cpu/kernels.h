/* The interface between the kernels of one instruction set and the cpu device.
 *
 * Every kernel source is compiled once per instruction set with TR_ISA set to its name (avx512, avx2,
 * neon, plain) and defines its functions through CPU_KERNEL(), so that the copies have different symbols.
 * kernels/table.c collects them; a NULL slot means that the device takes `ref`'s function.
 */
#ifndef TR_DEVICE_CPU_KERNELS_H
#define TR_DEVICE_CPU_KERNELS_H

#include "device/device.h"

#include <stdbool.h>

struct cpu_kernels {
    bool fuses;                     /* has an instruction to multiply and add */
    double (*peak)(double seconds); /* float operations per second of one thread, measured for `seconds` */
#define CPU_SLOT(op) tr_status (*op)(tr_device * device, const struct tr_op_##op *arguments);
    TR_DEVICE_OPS(CPU_SLOT)
#undef CPU_SLOT
};

#ifdef TR_ISA
#define CPU_JOIN_(name, isa) cpu_##name##_##isa
#define CPU_JOIN(name, isa)  CPU_JOIN_(name, isa)
/* cpu_<name>_<isa> */
#define CPU_KERNEL(name) CPU_JOIN(name, TR_ISA)

double CPU_KERNEL(peak)(double seconds);
#define CPU_DECLARE(op) tr_status CPU_KERNEL(op)(tr_device * device, const struct tr_op_##op *arguments);
TR_DEVICE_OPS(CPU_DECLARE)
#undef CPU_DECLARE
#endif

#endif
