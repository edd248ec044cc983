/* The arithmetic of contributions, for the servers and workers of a run, and for replays of its log
 * (strategy/replay). */
#ifndef TR_STRATEGY_PARAMETER_SERVER_CONTRIBUTION_H
#define TR_STRATEGY_PARAMETER_SERVER_CONTRIBUTION_H

#include "strategy/class.h"

/* Sums of a gradient over its examples. */
struct ps_figures {
    int64_t examples;
    float loss, correct;
};

/* Figures of an update. The root gets them when it is complete. */
struct ps_update {
    int64_t examples;
    double loss, correct;
    bool spoiled; /* a loss in it is not finite */
};

/* News since the last message to the root. */
struct ps_news {
    int64_t steps, examples;
    double loss, correct, norms;
    int64_t measured; /* updates whose norm is in `norms` */
    int32_t skipped, bad_loss, poisoned, request;
};

/* Computes contribution `number`, where each batch has so many parts, with the gradient of the first
   replica, which reads `variables`; without examples the gradient is 0. */
tr_status ps_contribution_compute(tr_strategy *strategy, tr_variables *variables, int parts, int64_t number,
                                  struct ps_figures *out);

/* Adds a contribution to the figures of its update, of which it is the `first` or the one that `completes`
   it, and these to the news once they are complete. A loss that is not finite spoils the update, or ends
   the run as if the update were complete: true. */
bool ps_update_note(const struct tr_job *job, struct ps_update *update, struct ps_news *news,
                    const struct ps_figures *contribution, bool first, bool completes);
/* The factor of a sum of gradients, each of which was multiplied by its examples. */
float ps_update_factor(const struct ps_update *update);
/* The judgement of an update whose gradient has this norm (0: not measured); skipped updates are news. */
struct tr_verdict ps_update_judge(const struct tr_job *job, struct ps_news *news, double norm);
/* The figures for the root. */
void ps_news_tell(const struct ps_news *news, struct tr_step_figures *figures);

#endif
