#include "base/threads/clock.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

static double read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now); /* cannot fail for these two clocks */
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static _Thread_local struct {
    tr_clock_source source;
    void *user;
} chosen;

void tr_clock_use(tr_clock_source source, void *user)
{
    chosen.source = source;
    chosen.user = user;
}

double tr_clock_seconds(void)
{
    return chosen.source ? chosen.source(chosen.user) : read_clock(CLOCK_MONOTONIC);
}

double tr_clock_wall(void)
{
    return read_clock(CLOCK_REALTIME);
}

const char *tr_clock_text(double wall, char text[TR_CLOCK_TEXT])
{
    time_t seconds = (time_t)floor(wall);
    struct tm parts;
    if (!gmtime_r(&seconds, &parts) || !strftime(text, TR_CLOCK_TEXT, "%Y-%m-%dT%H:%M:%SZ", &parts))
        snprintf(text, TR_CLOCK_TEXT, "%.0f", wall);
    return text;
}
