/* Whether figures of a comparison can be: on a busy machine they may not. */
#ifndef CLI_COMPARE_JUDGE_H
#define CLI_COMPARE_JUDGE_H

#include <stdbool.h>

/* Whether a run on so many workers can be `speedup` times as fast as one process (NaN: not known) with
   processes that wait the share `waiting` of their time: at most as often as there are workers, with some
   room for caches, and never more than all of it. */
bool cli_compare_can_be(double speedup, int workers, double waiting);
/* Whether two speeds of one run, at the begin and at the end, are near enough to compare others with. NaN or
   0: not measured, and nothing speaks against it. */
bool cli_compare_steady(double first, double again);

#endif
