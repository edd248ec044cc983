/* The inside of a replay, shared by its files:
 *
 *     replay.c     the class: goes through the log, record by record
 *     updates.c    what a gradient does to the variables: as servers do it, shard by shard
 *     shared.c     who computes which gradient, and how it comes to all
 *     versions.c   old parameters, as long as the log needs them
 *
 * A replay takes the place of the job's strategy (struct tr_strategy_settings, `log`). Its root steps as that
 * of the run did: a step ends where the run's root was told, and the state is gathered where that got it, so
 * evaluations and checkpoints are of the same moments as in the run. Where the log says nothing of it, a step
 * is an update.
 *
 * Whether a gradient is clipped, an update skipped or the run brought to an end is not in the log: it follows
 * from the numbers, as in the run.
 */
#ifndef TR_STRATEGY_REPLAY_H
#define TR_STRATEGY_REPLAY_H

#include "strategy/class.h"
#include "strategy/parameter_server/contribution.h"
#include "strategy/parameter_server/store.h"

/* ---- versions.c ---- */

/* Copies of parameters. */
typedef struct replay_versions replay_versions;

/* For the contributions of a log, borrowed, whose worker is `which` modulo `of`: the others' are computed
   elsewhere. Returned, destroy with replay_versions_destroy(). TR_ENOMEM. */
tr_status replay_versions_create(const struct tr_update_log *log, int which, int of, int64_t floats,
                                 replay_versions **out);
/* Accepts NULL, nulls the handle. */
void replay_versions_destroy(replay_versions **versions);
/* Version `version` is in `variables`: keeps a copy if it will be wanted. TR_ENOMEM. */
tr_status replay_versions_keep(replay_versions *versions, tr_variables *variables, int64_t version);
/* The copy of a version that is wanted by record `record`, arena_floats floats, until the next call of a
 * function. */
const float *replay_versions_of(const replay_versions *versions, int64_t version);
/* The contribution of record `record` has been computed: versions that no later one wants go. */
void replay_versions_leave(replay_versions *versions, int64_t version, int64_t record);
/* The most copies that there were at a time. */
int64_t replay_versions_most(const replay_versions *versions);

/* ---- the strategy ---- */

struct replay {
    struct tr_strategy head;
    const struct tr_update_log *source;
    struct tr_update_walk walk;
    const struct tr_update_session *session; /* that shards and gradient are made for; NULL: none yet */
    int64_t last;                            /* the record that completes the last update; -1: none does */
    bool marked;                             /* the log says when the root was told */
    int64_t state;                           /* the next of the log's states */
    tr_variables *reader;                    /* of which gradients are computed */
    const struct tr_staging *gradient;
    replay_versions *versions;
    ps_store **store; /* [stores] the shards */
    int stores;
    struct ps_update update;
    struct ps_news news;
    bool halted; /* something is not finite */
    struct tr_update_figures told;
    /* Of several ranks: */
    struct tr_update_walk ahead; /* over what this rank computes, which is ahead of what is applied */
    struct tr_update_entry next; /* the next one that it computes, with `has_next` */
    bool has_next;
    struct replay_waiting *waiting; /* [waitings] */
    int64_t waitings;
};

static inline struct replay *replay_of(tr_strategy *strategy)
{
    return (struct replay *)strategy;
}

/* ---- shared.c ---- */

/* What the root says, to all. */
enum replay_word { REPLAY_GO, REPLAY_STATISTICS, REPLAY_END };
tr_status replay_say(struct replay *self, enum replay_word *word);
/* The gradient of a record that is applied, with its figures; borrowed until the next call, and may be
   changed. Collective. */
tr_status replay_obtain(struct replay *self, const struct tr_update_entry *entry, struct ps_figures *figures,
                        float **gradient);
void replay_release_waiting(struct replay *self);

/* ---- updates.c ---- */

/* Shards as the session's servers have them. */
tr_status replay_make_shards(struct replay *self, const struct tr_update_session *session);
void replay_release_shards(struct replay *self);
/* What a gradient that is applied does, an arena of host memory, which it may change. */
tr_status replay_apply(struct replay *self, const struct tr_update_entry *entry,
                       const struct ps_figures *figures, float *gradient);

#endif
