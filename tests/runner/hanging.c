/* Hangs on purpose, in two threads: what tests/runner/hangs.sh shows the watchdog (support/watchdog.c). */
#include "base/threads/thread.h"

#include <unistd.h>

int wait_for_ever(void);
void *wait_beside(void *user);

int wait_for_ever(void)
{
    while (getppid() >= 0) pause();
    return 0;
}

void *wait_beside(void *user)
{
    wait_for_ever();
    return user;
}

int main(void)
{
    pthread_t thread;
    void *result;
    if (tr_thread_start(&thread, wait_beside, NULL) != 0) return 0;
    return pthread_join(thread, &result);
}
