#include "device/cpu/isa.h"

#include "base/fail.h"

#include <stdbool.h>
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
static const struct isa {
    const struct cpu_kernels *kernels;
    bool (*available)(void);
} isas[] = {
#if TR_HAVE_ISA_AVX512
    {&cpu_kernels_avx512, has_avx512},
#endif
#if TR_HAVE_ISA_AVX2
    {&cpu_kernels_avx2, has_avx2},
#endif
#if TR_HAVE_ISA_NEON
    {&cpu_kernels_neon, always},
#endif
    {&cpu_kernels_plain, always},
};

#define ISA_COUNT (sizeof(isas) / sizeof(isas[0]))

const struct cpu_kernels *cpu_isa_find(const char *isa)
{
    char had[128] = "";
    size_t length = 0;
    for (size_t i = 0; i < ISA_COUNT; i++) {
        if (!isas[i].available()) continue;
        const char *name = isas[i].kernels->isa;
        if (!isa || !*isa || !strcmp(isa, name)) return isas[i].kernels;
        length += (size_t)snprintf(had + length, sizeof(had) - length, "%s%s", length ? ", " : "", name);
    }
    tr_fail(TR_EUNSUPPORTED, "instruction set \"%s\": this machine and build have %s; choose one of them",
            isa, had);
    return NULL;
}
