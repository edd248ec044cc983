/* The receipt that a trainer keeps (receipt/receipt.h): boundaries are taken at checkpoints, every so many
 * steps, and where the follower of a run asks for them.
 *
 * Between boundaries nothing is hashed: steps are noted, and their links of the chain are computed at the
 * next boundary. All ranks keep the whole receipt, so that any may become the root. A checkpoint contains
 * the receipt up to its own step, which a resumed run continues; so after any crash the newest checkpoint
 * and its receipt belong together.
 *
 * Changes by a program between steps (parameters, the learning rate) are not in the model file: after them
 * the receipt begins anew with the present state.
 */
#ifndef TR_TRAIN_RECEIPT_KEEPER_H
#define TR_TRAIN_RECEIPT_KEEPER_H

#include "data/order/order.h"
#include "receipt/receipt.h"
#include "strategy/strategy.h"
#include "trireme/train.h"

/* Called for each boundary, also the first one, on all ranks; its failure fails the run. */
typedef tr_status (*trainer_boundary_listener)(void *user, const struct tr_receipt_boundary *boundary);

struct trainer_receipt {
    bool kept;
    struct tr_receipt content;
    bool opened;                  /* the last boundary of `content` was compared with the resumed state */
    bool fresh;                   /* the last boundary is of the present state */
    struct tr_chain_link *link;   /* [links] steps since the last boundary, without their batches' digests */
    int64_t links, taken;         /* links up to the last boundary; they stay until the next step */
    struct tr_order_reader order; /* of the batches; made for the first */
    /* Of the follower of the run: */
    const int64_t *at; /* [at_count] steps done at wanted boundaries, ascending; borrowed */
    int64_t at_count;
    bool only;                          /* no others are taken */
    trainer_boundary_listener listener; /* or NULL */
    void *user;
};

void trainer_receipt_release(struct trainer_receipt *receipt);

/* Begins a receipt if the job wants one, or the checkpoint (NULL: none) has one; call it last. The
   checkpoint's receipt is continued if settings, data and step are the same. TR_EINVAL for an asynchronous
   strategy, unless it replays a log. Local. */
tr_status trainer_receipt_begin(tr_trainer *trainer, const tr_checkpoint *checkpoint);
/* For a repeated run: keeps a receipt even if the job wants none, which continues from `begin` or, with
   NULL, begins with the first state; with boundaries only after these steps. Before the first step.
   Borrowed until the trainer is destroyed. TR_EINVAL as above. Local. */
tr_status trainer_receipt_follow(tr_trainer *trainer, const struct tr_receipt_boundary *begin,
                                 const int64_t *at, int64_t count, trainer_boundary_listener listener,
                                 void *user);

/* The receipt so far; borrowed. */
const struct tr_receipt *trainer_receipt(const tr_trainer *trainer);

/* The steps between its last two boundaries, with their batches' digests; borrowed until the next step. */
const struct tr_chain_link *trainer_receipt_links(const tr_trainer *trainer, int64_t *count);

/* Before a step: the first boundary, where there is none yet. Collective. */
tr_status trainer_receipt_open(tr_trainer *trainer);
/* A step was made. Local. TR_ENOMEM. */
tr_status trainer_receipt_note(tr_trainer *trainer, const struct tr_step_figures *figures);
/* The results for the present state must be computed again: ranks were lost. Local. */
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
/* SHA-256 over everything that determines a state, except the data: the settings that determine the
   weights, when the run evaluates, and the strategy if it has different arithmetic, or the log if the run
   is a replay. Local. TR_ENOMEM. */
tr_status trainer_receipt_settings(const struct tr_job *job, bool replays, struct tr_sha256_sum *out);

#endif
