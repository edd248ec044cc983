/* The choice of a model file: a class and its options. */
#ifndef TR_STRATEGY_CHOICE_H
#define TR_STRATEGY_CHOICE_H

#include "strategy/class.h"

struct tr_strategy_choice {
    const struct tr_strategy_class *class;
    void *options; /* of class->options_size; owned */
    struct tr_strategy_traits traits;
};

/* Reads the `strategy:` of a model file; NULL: the default. Release with tr_strategy_choice_release(). Local.
   TR_EINVAL with file and line, TR_EMISMATCH for a class of another version, TR_ENOMEM. */
tr_status tr_strategy_choose(const tr_config *choice, struct tr_strategy_choice *out);
/* TR_EMISMATCH for a class made for another version of the interface. */
tr_status tr_strategy_check_version(const struct tr_strategy_class *class);
/* Accepts one that was not made, all zeros. */
void tr_strategy_choice_release(struct tr_strategy_choice *choice);
/* Whether so many ranks can share the job with this strategy. TR_EINVAL. */
tr_status tr_strategy_choice_check(const struct tr_strategy_choice *choice, const struct tr_job *job,
                                   int ranks);
/* The same; also replaces the choice by the class that does the work on so many ranks. TR_EINVAL. */
tr_status tr_strategy_choice_settle(struct tr_strategy_choice *choice, const struct tr_job *job, int ranks);
/* The job's choice, settled; or a replay, whatever the job says. Errors as above. */
tr_status tr_strategy_choose_for(const struct tr_job *job, bool replays, int ranks,
                                 struct tr_strategy_choice *out);

#endif
