/* Where a pipeline cuts the network: as the model file says, or so that the slowest stage is as fast as
 * possible.
 */
#ifndef TR_STRATEGY_PIPELINE_CUTS_H
#define TR_STRATEGY_PIPELINE_CUTS_H

#include "base/options/option.h"
#include "job/job.h"

struct pipeline_options {
    int32_t stages;            /* 0: as many as `cut` says, else 2 */
    struct tr_string_list cut; /* layers that begin the stages after the first */
};

/* The number of stages for `ranks` ranks; a single process has one. */
int pipeline_stages(const struct pipeline_options *options, int ranks);
/* Checks that the network can be cut so; names layers. TR_EINVAL. */
tr_status pipeline_check_cuts(const struct tr_model *model, const struct pipeline_options *options,
                              int stages);
/* Writes where the stages begin and end, bound[stages + 1], as `cut` says; it has been checked. */
void pipeline_named_cuts(const struct tr_model *model, const struct pipeline_options *options, int *bound);
/* Groups `count` neighbours with a cost each into `groups` groups, none empty, so that the most expensive
   group is as cheap as possible: group g has those from first[g] to first[g + 1]; first[groups + 1].
   TR_ENOMEM. */
tr_status pipeline_balance(const double *cost, int count, int groups, int *first);

#endif
