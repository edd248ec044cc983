/* The receipt that a trainer keeps (receipt/receipt.h): boundaries are taken at checkpoints, every so many
 * steps, and where the follower of a run asks for them.
 *
 * Between boundaries nothing is hashed: steps are noted, and their part of the chain is made at the next one.
 * All ranks keep the whole receipt, so that any may become the root. A checkpoint keeps the receipt up to its
 * own step, with which a run that goes on from it goes on; so whatever is killed when, the newest checkpoint
 * and its receipt belong together.
 *
 * What a program changes between steps (parameters, the learning rate) follows from no model file: then the
 * receipt begins anew with the state that it left.
 */
#ifndef TR_TRAIN_RECEIPT_KEEPER_H
#define TR_TRAIN_RECEIPT_KEEPER_H

#include "data/order/order.h"
#include "receipt/receipt.h"
#include "strategy/strategy.h"
#include "trireme/train.h"

/* Told of each boundary, also of the first one, on all ranks; its failure fails the run. */
typedef tr_status (*trainer_boundary_listener)(void *user, const struct tr_receipt_boundary *boundary);

struct trainer_receipt {
    bool kept;
    struct tr_receipt content;
    bool
        opened; /* the last boundary of `content` has been held against the state that the run goes on from */
    bool fresh; /* the last boundary is of the present state */
    struct tr_chain_link *link;   /* [links] steps since the last boundary, without their batches' digests */
    int64_t links, taken;         /* taken: that led to the last boundary; they stay until the next step */
    struct tr_order_reader order; /* of the batches; made for the first */
    /* Of the follower of the run: */
    const int64_t *at; /* [at_count] steps done at boundaries that it wants, ascending; borrowed */
    int64_t at_count;
    bool only;                          /* no others are taken */
    trainer_boundary_listener listener; /* or NULL */
    void *user;
};

void trainer_receipt_release(struct trainer_receipt *receipt);

/* Begins one where the job wants it, or the checkpoint (NULL: there is none) has one, once all else is there:
   that of the checkpoint goes on where settings, data and step are the same. TR_EINVAL for an asynchronous
   strategy, unless it replays a log. Local. */
tr_status trainer_receipt_begin(tr_trainer *trainer, const tr_checkpoint *checkpoint);
/* For a job that is run again: keeps a receipt even if the job asks for none, which goes on from `begin`, or,
   with NULL, begins with the first state; with boundaries after these steps only. Before the first step.
   Borrowed until the trainer is destroyed. TR_EINVAL as above. Local. */
tr_status trainer_receipt_follow(tr_trainer *trainer, const struct tr_receipt_boundary *begin,
                                 const int64_t *at, int64_t count, trainer_boundary_listener listener,
                                 void *user);

/* What it keeps so far; borrowed. */
const struct tr_receipt *trainer_receipt(const tr_trainer *trainer);

/* The steps between its last two boundaries, with their batches' digests; borrowed until the next step. */
const struct tr_chain_link *trainer_receipt_links(const tr_trainer *trainer, int64_t *count);

/* Before a step: the first boundary, where there is none yet. Collective. */
tr_status trainer_receipt_open(tr_trainer *trainer);
/* A step was made. Local. TR_ENOMEM. */
tr_status trainer_receipt_note(tr_trainer *trainer, const struct tr_step_figures *figures);
/* What was settled of the present state is to be settled anew: ranks were lost. Local. */
void trainer_receipt_repeat(tr_trainer *trainer);
/* A program has changed the state: the receipt begins anew. Local. */
void trainer_receipt_renew(tr_trainer *trainer);

/* Whether a boundary is due after step number `step`, and after the last one. Local. */
bool trainer_receipt_comes(const tr_trainer *trainer, int64_t step);
bool trainer_receipt_is_due(const tr_trainer *trainer);
/* A boundary of the present state, unless there is one. Collective. */
tr_status trainer_receipt_take(tr_trainer *trainer);

/* The text, with the hash of the parameters ("": not known). Returned, free with tr_free(). TR_ENOMEM. Local.
 */
tr_status trainer_receipt_text(tr_trainer *trainer, const char *parameters, char **text);
/* SHA-256 over all that decides a state but the data: what decides the weights, when the run is evaluated,
   and the strategy where it has an arithmetic of its own, which of a run that replays a log the log says.
   Local. TR_ENOMEM. */
tr_status trainer_receipt_settings(const struct tr_job *job, bool replays, struct tr_sha256_sum *out);

#endif
