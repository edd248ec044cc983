/* Whether figures of a comparison can be: on a busy machine they may not. */
#ifndef CLI_COMPARE_JUDGE_H
#define CLI_COMPARE_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a run on so many workers can be `speedup` times as fast as one process (NaN: not known) with
   processes that wait the share `waiting` of their time: at most as often as there are workers, with some
   room for caches, and never more than all of it. */
bool cli_compare_can_be(double speedup, int workers, double waiting);
/* Whether two speeds of one run, at the begin and at the end, are near enough to compare others with. NaN or
   0: not measured, and nothing speaks against it. */
bool cli_compare_steady(double first, double again);
/* Examples a second after the first reported step: of a run that made `steps` in `seconds`, at
   `examples_per_second`, and had made `first_step` of them after `first_seconds`. That of the whole run where
   nothing came after it. */
double cli_compare_later_speed(double examples_per_second, int64_t steps, double seconds, int64_t first_step,
                               double first_seconds);

#endif
