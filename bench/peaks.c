/* Chooses the peak of an instruction set by name. */
#include "kernels.h"

#include <string.h>

double cpu_peak_avx512(void);
double cpu_peak_avx2(void);
double cpu_peak_neon(void);
double cpu_peak_plain(void);

double fma_peak(const char *isa)
{
#if TR_HAVE_ISA_AVX512
    if (!strcmp(isa, "avx512")) return cpu_peak_avx512();
#endif
#if TR_HAVE_ISA_AVX2
    if (!strcmp(isa, "avx2")) return cpu_peak_avx2();
#endif
#if TR_HAVE_ISA_NEON
    if (!strcmp(isa, "neon")) return cpu_peak_neon();
#endif
    (void)isa;
    return cpu_peak_plain();
}
