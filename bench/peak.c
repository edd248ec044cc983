/* The roof: fused multiply-adds on registers alone, once per instruction set. */
#include "kernels.h"

#include "device/cpu/kernels.h"
#include "device/cpu/vec.h"

double CPU_KERNEL(peak)(void);

/* Chains enough to hide the latency of an fma on any known core. */
#define CHAINS 12

double CPU_KERNEL(peak)(void)
{
    const int rounds = 200000;
    volatile float factor = 0.5f;
    const vf a = v_set1(factor), b = v_set1(factor);
    double best = 0.0;
    for (double end = seconds() + 0.3; seconds() < end;) {
        vf sum[CHAINS];
        /* Different values, or the compiler sees that all chains are one. */
        for (int i = 0; i < CHAINS; i++) sum[i] = v_set1((float)i);
        const double begin = seconds();
        for (int round = 0; round < rounds; round++)
            _Pragma("GCC unroll 16") for (int i = 0; i < CHAINS; i++) sum[i] = v_fma(a, b, sum[i]);
        const double rate = 2.0 * VW * CHAINS * rounds / (seconds() - begin) * 1e-9;
        for (int i = 1; i < CHAINS; i++) sum[0] = v_add(sum[0], sum[i]);
        float out[VW];
        v_store(out, sum[0]);
        volatile float kept = out[0];
        (void)kept;
        if (rate > best) best = rate;
    }
    return best;
}
