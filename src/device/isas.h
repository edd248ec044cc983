/* The instruction sets that kernels can be compiled for, best first, whether or not this machine and build
 * have them.
 *
 *   _(name, help)
 */
#ifndef TR_DEVICE_ISAS_H
#define TR_DEVICE_ISAS_H

#define TR_ISAS(_)                                                                                           \
    _(avx512, "16 floats at a time")                                                                         \
    _(avx2, "8 floats at a time")                                                                            \
    _(neon, "4 floats at a time")                                                                            \
    _(plain, "vectors by the compiler")                                                                      \
    _(sse2, "vectors by the compiler, FMA computed in double")

/* For arrays of their names: const char *const names[] = {TR_ISAS(TR_ISA_NAME)}; */
#define TR_ISA_NAME(name, help) #name,

#endif
