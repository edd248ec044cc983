/* Preserves this process's signal handling around driver calls. */
#ifndef TR_DEVICE_GPU_SIGNALS_H
#define TR_DEVICE_GPU_SIGNALS_H

#include <signal.h>

/* Drivers start threads, and some replace the program's signal handlers when they compile (LLVM does).
   Around such calls all signals are blocked, so that those threads start with blocked signals, and the
   handlers are restored. */
#define GPU_SIGNALS 14
struct gpu_signals {
    sigset_t mask;
    struct sigaction action[GPU_SIGNALS];
};
void gpu_keep_signals(struct gpu_signals *signals);
void gpu_restore_signals(const struct gpu_signals *signals);

#endif
