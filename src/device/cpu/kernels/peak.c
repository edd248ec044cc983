/* Peak speed: fused multiply-adds on registers only. */
#include "base/threads/clock.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/vec.h"

/* Enough chains to hide the latency of an fma on any known core. */
#define CHAINS 12
/* Of a round. It takes some milliseconds, so that the fastest round was not disturbed. */
#define STEPS 200000

double CPU_KERNEL(peak)(double seconds)
{
    volatile float factor = 0.5f;
    const vf a = v_set1(factor), b = v_set1(factor);
    double best = 0.0;
    for (double end = tr_clock_seconds() + seconds; tr_clock_seconds() < end;) {
        vf sum[CHAINS];
        /* With equal values the compiler would merge the chains. */
        for (int i = 0; i < CHAINS; i++) sum[i] = v_set1((float)i);
        const double begin = tr_clock_seconds();
        for (int step = 0; step < STEPS; step++)
            V_UNROLL for (int i = 0; i < CHAINS; i++) sum[i] = v_fma(a, b, sum[i]);
        const double rate = 2.0 * VW * CHAINS * STEPS / (tr_clock_seconds() - begin);
        for (int i = 1; i < CHAINS; i++) sum[0] = v_add(sum[0], sum[i]);
        float out[VW];
        v_store(out, sum[0]);
        volatile float kept = out[0];
        (void)kept;
        if (rate > best) best = rate;
    }
    return best;
}
