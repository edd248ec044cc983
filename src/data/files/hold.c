#include "data/files/hold.h"

#include "base/threads/clock.h"
#include "base/text/log.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while another process works, each twice as long as the last. */
#define NAP_LEAST 200e-6
#define NAP_MOST  20e-3

#define WORD_FIRST 5.0 /* seconds until the first message that it waits, and then between messages */
#define WORD_EVERY 60.0

static int set(int descriptor, int64_t number, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = number, .l_len = 1};
    int result;
    do result = fcntl(descriptor, F_OFD_SETLK, &lock);
    while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

bool tr_hold_try(int descriptor, int64_t number)
{
    int error = set(descriptor, number, F_WRLCK);
    return error != EAGAIN && error != EACCES;
}

bool tr_hold_take(int descriptor, int64_t number, const char *what, double patience)
{
    double began = tr_clock_seconds(), word = began + WORD_FIRST, nap = NAP_LEAST;
    while (!tr_hold_try(descriptor, number)) {
        double now = tr_clock_seconds();
        if (now - began >= patience) return false;
        if (what && now >= word) {
            tr_log_line(TR_LOG_WARNING, "waiting for another process, which %s (%.0f s so far)", what,
                        now - began);
            word = now + WORD_EVERY;
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)(nap * 1e9)}, NULL);
        nap = 2 * nap < NAP_MOST ? 2 * nap : NAP_MOST;
    }
    return true;
}

void tr_hold_release(int descriptor, int64_t number)
{
    set(descriptor, number, F_UNLCK);
}
