/* Jobs on ranks that are dealt blows, and go on without those who die of them. */
#ifndef TESTS_STRATEGY_SHRINK_H
#define TESTS_STRATEGY_SHRINK_H

#include "support/ranks.h"

#include "trireme/train.h"

#define STEPS  7
#define SHARES sizeof((struct outcome *)NULL)->shares

enum place {
    NOWHERE,
    AT_LAYER,  /* before backward */
    AT_UPDATE, /* in the middle of it: what is updated is torn */
    AT_EVENT   /* told by the root, which kills: of processes itself alone */
};

struct blow {
    enum place place;
    int victim;
    int64_t step; /* AT_LAYER, AT_UPDATE: steps done before; AT_EVENT: as the event says, or later */
    int nth;      /* layer or update of the step, from 0 */
    enum tr_train_event_kind event;
};

#define BLOWS 3
struct plan {
    struct blow blow[BLOWS];
    tr_comm *comm[RANKS]; /* of threads */
    bool dealt[BLOWS];    /* by a root; the next one hears of the event, too */
};

/* Runs the job on `size` ranks that outlive each other and are dealt these blows; `apart` as for run_ranks().
 */
void shrink_run(struct job *job, const struct plan *blows, int size, int apart, struct rank *ranks);
/* The same, and fails the test unless who lives ends with what one process ends with. The shares that were
   told last, "" for none, become `shares`. */
void shrink_expect_of(struct job *job, const struct outcome *alone, const struct plan *blows, int size,
                      int apart, const char *how, char shares[SHARES]);
/* The same on one host. */
void shrink_expect(struct job *job, const struct outcome *alone, const struct plan *blows, int size,
                   const char *how);
/* The job of a family, and what one process ends with. */
void shrink_begin(struct job *job, const struct family *family, struct outcome *alone);

#endif
