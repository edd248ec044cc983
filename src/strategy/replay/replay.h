/* The structure of a replay, shared by its files:
 *
 *     replay.c     the class: goes through the log, record by record
 *     updates.c    the effect of a gradient on the variables: as on servers, shard by shard
 *     shared.c     which rank computes which gradient, and how all get it
 *     versions.c   old parameters, as long as the log needs them
 *
 * A replay replaces the job's strategy (struct tr_strategy_settings, `log`). Its root steps as that of the
 * run did: a step ends where the run's root got a message, and the state is gathered where it was in the
 * run, so evaluations and checkpoints are of the same moments. Where the log has no such records, a step
 * is an update.
 *
 * Whether a gradient is clipped, an update skipped or the run brought to an end is not in the log: the
 * numbers determine it, as in the run.
 */
#ifndef TR_STRATEGY_REPLAY_H
#define TR_STRATEGY_REPLAY_H

#include "strategy/class.h"
#include "strategy/parameter_server/contribution.h"
#include "strategy/parameter_server/store.h"

/* ---- versions.c ---- */

/* Copies of parameters. */
typedef struct replay_versions replay_versions;

/* For the contributions of a log, borrowed, whose worker is `which` modulo `of`: other ranks compute the
   others. Returned, destroy with replay_versions_destroy(). TR_ENOMEM. */
tr_status replay_versions_create(const struct tr_update_log *log, int which, int of, int64_t floats,
                                 replay_versions **out);
/* Accepts NULL, nulls the handle. */
void replay_versions_destroy(replay_versions **versions);
/* Version `version` is in `variables`: copies it if it will be needed. TR_ENOMEM. */
tr_status replay_versions_keep(replay_versions *versions, tr_variables *variables, int64_t version);
/* The copy of the version that record `record` reads, arena_floats floats, until the next call of a
 * function.
 */
const float *replay_versions_of(const replay_versions *versions, int64_t version);
/* The contribution of record `record` has been computed: frees versions that no later one reads. */
void replay_versions_leave(replay_versions *versions, int64_t version, int64_t record);

/* ---- the strategy ---- */

struct replay {
    struct tr_strategy head;
    const struct tr_update_log *source;
    struct tr_update_walk walk;
    const struct tr_update_session *session; /* the session that shards and gradient are made for; NULL:
                                                none yet */
    int64_t last;                            /* the record that completes the last update; -1: none does */
    bool marked;                             /* the log has records of messages to the root */
    int64_t state;                           /* the next of the log's states */
    tr_variables *reader;                    /* variables from which gradients are computed */
    const struct tr_staging *gradient;
    replay_versions *versions;
    ps_store **store; /* [stores] the shards */
    int stores;
    struct ps_update update;
    struct ps_news news;
    bool halted; /* something is not finite */
    struct tr_update_figures told;
    /* Of several ranks: */
    struct tr_update_walk ahead; /* over this rank's computations, which are ahead of the applied ones */
    struct tr_update_entry next; /* the next one to compute, with `has_next` */
    bool has_next;
    struct replay_waiting *waiting; /* [waitings] */
    int64_t waitings;
};

static inline struct replay *replay_of(tr_strategy *strategy)
{
    return (struct replay *)strategy;
}

/* ---- shared.c ---- */

/* The root's commands to all. */
enum replay_word { REPLAY_GO, REPLAY_STATISTICS, REPLAY_END };
tr_status replay_say(struct replay *self, enum replay_word *word);
/* The gradient of a record to apply, with its figures; borrowed until the next call, and may be changed.
   Collective. */
tr_status replay_obtain(struct replay *self, const struct tr_update_entry *entry, struct ps_figures *figures,
                        float **gradient);
void replay_release_waiting(struct replay *self);

/* ---- updates.c ---- */

/* Makes the shards of the session's servers. */
tr_status replay_make_shards(struct replay *self, const struct tr_update_session *session);
void replay_release_shards(struct replay *self);
/* Applies a gradient, an arena of host memory, which it may change. */
tr_status replay_apply(struct replay *self, const struct tr_update_entry *entry,
                       const struct ps_figures *figures, float *gradient);

#endif
