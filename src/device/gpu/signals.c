#include "device/gpu/signals.h"

#include <pthread.h>

static const int handled[] = {SIGINT,  SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGPIPE,
                              SIGSEGV, SIGBUS,  SIGILL, SIGFPE,  SIGABRT, SIGTRAP, SIGSYS};
_Static_assert(sizeof handled / sizeof handled[0] == GPU_SIGNALS, "as many are kept");

void gpu_keep_signals(struct gpu_signals *signals)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &signals->mask);
    for (int i = 0; i < GPU_SIGNALS; i++) sigaction(handled[i], NULL, &signals->action[i]);
}

void gpu_restore_signals(const struct gpu_signals *signals)
{
    for (int i = 0; i < GPU_SIGNALS; i++) sigaction(handled[i], &signals->action[i], NULL);
    pthread_sigmask(SIG_SETMASK, &signals->mask, NULL);
}
