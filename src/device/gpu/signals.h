/* What drivers may change of how this process takes signals, kept and put back. */
#ifndef TR_DEVICE_GPU_SIGNALS_H
#define TR_DEVICE_GPU_SIGNALS_H

#include <signal.h>

/* Drivers start threads and some, when they compile, put handlers in place of the program's (LLVM does):
   around calls that may do so all signals are blocked, so that threads start with that, and handlers are put
   back. */
#define GPU_SIGNALS 14
struct gpu_signals {
    sigset_t mask;
    struct sigaction action[GPU_SIGNALS];
};
void gpu_keep_signals(struct gpu_signals *signals);
void gpu_restore_signals(const struct gpu_signals *signals);

#endif
