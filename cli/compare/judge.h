/* Whether figures of a comparison are possible; on a busy machine they may not be. */
#ifndef CLI_COMPARE_JUDGE_H
#define CLI_COMPARE_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a run with so many workers can be `speedup` times as fast as one process (NaN: unknown), if its
   processes wait the fraction `waiting` of their time. The speedup is at most the number of workers, with
   some room for caches, and the fraction at most 1. */
bool cli_compare_can_be(double speedup, int workers, double waiting);
/* Whether two speeds of one run, at the beginning and at the end, are near enough for comparing others
   with it. NaN or 0: not measured, which counts as near. */
bool cli_compare_steady(double first, double again);
/* Examples per second after the first reported step. The run made `steps` in `seconds`, at
   `examples_per_second`, and `first_step` of them in `first_seconds`. The speed of the whole run if no
   step came after the first. */
double cli_compare_later_speed(double examples_per_second, int64_t steps, double seconds, int64_t first_step,
                               double first_seconds);

#endif
