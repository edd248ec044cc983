/* The ranks that take part in a trainer's job, and all original ranks where the job continues after deaths
 * (shrink.c).
 */
#ifndef TR_TRAIN_CREW_H
#define TR_TRAIN_CREW_H

#include "comm/comm.h"
#include "strategy/strategy.h"
#include "trireme/train.h"

/* Zeroed to begin with. */
struct trainer_crew {
    tr_comm *comm;  /* of the present ranks; NULL: a single process. Borrowed, or the last of `part` */
    tr_comm *own;   /* that the trainer joined by itself, else NULL */
    tr_comm *whole; /* if the job continues after deaths: of all ranks, else NULL. Borrowed */
    tr_comm *part[TR_COMM_SUBGROUPS]; /* subgroups of `whole`: the ranks that took part, one after the
                                         other */
    int parts;
    bool is_root; /* this rank is the root of the run under way, with the root's resources */
};

static inline bool trainer_crew_is_root(const struct trainer_crew *crew)
{
    return tr_strategy_is_root(crew->comm);
}
static inline int trainer_crew_rank(const struct trainer_crew *crew)
{
    return crew->comm ? tr_comm_rank(crew->comm) : 0;
}
static inline int trainer_crew_size(const struct trainer_crew *crew)
{
    return crew->comm ? tr_comm_size(crew->comm) : 1;
}

/* The ranks of `comm` (may be NULL) take part from the beginning; where the settings say that the job
   continues after deaths, as a subgroup of it. TR_EINVAL for settings that do not allow this, TR_EPEER.
   Collective. */
tr_status trainer_crew_form(struct trainer_crew *crew, const struct tr_train_settings *settings,
                            tr_comm *comm);
/* The subgroup of the living ranks; they take part once crew->comm is set to it. Owned by the crew.
   TR_EPEER. Collective among the living ranks. */
tr_status trainer_crew_survivors(struct trainer_crew *crew, tr_comm **part);
/* TR_EPEER where the root left normally, which ends the run. Local. */
tr_status trainer_crew_check_root(const struct trainer_crew *crew);
/* Writes to `text`, of `size` bytes, which ranks take part and are not in `part`, and which is the root
   there. Local. */
void trainer_crew_name_lost(const struct trainer_crew *crew, const tr_comm *part, char *text, size_t size);
/* Whether the others continue without dead ranks, after a failure with `status`. Local. */
bool trainer_crew_may_shrink(const struct trainer_crew *crew, tr_status status);
/* Before a failure ends this rank: sends the thread's message to the others, also those of other
   subgroups. */
void trainer_crew_tell_others(const struct trainer_crew *crew);
/* Leaves all subgroups, after everything that uses the communicators. */
void trainer_crew_release(struct trainer_crew *crew);

#endif
