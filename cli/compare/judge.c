#include "cli/compare/judge.h"

#define ROOM   1.25  /* speedup beyond the number of workers: their caches together hold more */
#define STEADY 1.25  /* greatest ratio of the two speeds */
#define ALL    1.005 /* all of the time, with rounding */

bool cli_compare_can_be(double speedup, int workers, double waiting)
{
    return !(speedup > ROOM * workers) && !(waiting > ALL);
}

bool cli_compare_steady(double first, double again)
{
    if (!(first > 0) || !(again > 0)) return true;
    return first <= STEADY * again && again <= STEADY * first;
}

double cli_compare_later_speed(double examples_per_second, int64_t steps, double seconds, int64_t first_step,
                               double first_seconds)
{
    double later = seconds - first_seconds;
    if (steps <= first_step || !(later > 0)) return examples_per_second;
    double examples = examples_per_second * seconds / (double)steps; /* of a step */
    return examples * (double)(steps - first_step) / later;
}
