#include "device/cpu/isa.h"

#include "base/fail.h"
#include "device/ref/loops/chain.h"

#include <stdio.h>
#include <string.h>

/* The build defines TR_HAVE_ISA_<NAME> for each set that it compiled kernels for. */
#if TR_HAVE_ISA_AVX512
extern const struct cpu_kernels cpu_kernels_avx512;
static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("fma");
}
#endif
#if TR_HAVE_ISA_AVX2
extern const struct cpu_kernels cpu_kernels_avx2;
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif
#if TR_HAVE_ISA_NEON
extern const struct cpu_kernels cpu_kernels_neon;
#endif
extern const struct cpu_kernels cpu_kernels_plain;

static bool always(void)
{
    return true;
}

/* Best first. */
static const struct cpu_isa isas[] = {
#if TR_HAVE_ISA_AVX512
    {"avx512", &cpu_kernels_avx512, has_avx512, false},
#endif
#if TR_HAVE_ISA_AVX2
    {"avx2", &cpu_kernels_avx2, has_avx2, false},
#endif
#if TR_HAVE_ISA_NEON
    {"neon", &cpu_kernels_neon, always, false},
#endif
    {"plain", &cpu_kernels_plain, always, false},
#if defined(__x86_64__)
    {"sse2", &cpu_kernels_plain, always, true}, /* like a processor without FMA */
#endif
};

#define ISA_COUNT (sizeof(isas) / sizeof(isas[0]))

bool cpu_isa_leaves_chains(const struct cpu_isa *isa)
{
    return !isa->keeps_chains && !isa->kernels->fuses && ref_chains_fuse();
}

const struct cpu_isa *cpu_isa_find(const char *isa)
{
    char had[128] = "";
    size_t length = 0;
    for (size_t i = 0; i < ISA_COUNT; i++) {
        if (!isas[i].available()) continue;
        if (!isa || !*isa || !strcmp(isa, isas[i].name)) return &isas[i];
        length +=
            (size_t)snprintf(had + length, sizeof(had) - length, "%s%s", length ? ", " : "", isas[i].name);
    }
    tr_fail(TR_EUNSUPPORTED, "instruction set \"%s\": this machine and build have %s; choose one of them",
            isa, had);
    return NULL;
}
