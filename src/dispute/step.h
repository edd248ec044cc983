/* A step made under a witness: its evidence, and the states before and after it as trees of canonical
 * leaves (receipt/canonical.h). Parties answer from it, and it is all that a judge knows of a step.
 */
#ifndef TR_DISPUTE_STEP_H
#define TR_DISPUTE_STEP_H

#include "dispute/evidence.h"
#include "dispute/wire.h"
#include "dispute/witness.h"
#include "trireme/train.h"

/* A leaf of a state. */
struct dispute_leaf {
    char name[256];      /* of its tensor, "" for the head */
    const float *device; /* NULL for the head */
    int64_t size, at;    /* size, and offset in the evidence's file */
};

struct dispute_state {
    struct dispute_leaf *leaf; /* [count] */
    struct tr_sha256_sum *sum; /* [count] */
    int64_t count;
    struct tr_sha256_sum root;
};

struct dispute_step {
    bool made;
    struct tr_evidence evidence;
    struct dispute_state before, after;
    struct tr_sha256_sum root; /* of the evidence */
};

void dispute_step_begin(struct dispute_step *step);
void dispute_step_release(struct dispute_step *step);

/* Makes the next step of a trainer whose device is `witness`. `keeps`: also keeps the whole memory before
   it. */
tr_status dispute_step_make(struct dispute_step *step, tr_trainer *trainer, tr_device *witness, bool keeps);

/* The answer to `record`, and those to `node`, `entry` and `leaf`. */
void dispute_step_tell(const struct dispute_step *step, struct tr_text *text);
tr_status dispute_step_answer(struct dispute_step *step, struct tr_wire *wire, struct tr_text *text);

#endif
