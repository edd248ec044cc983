/* A receipt: a run's claims, for others to repeat it and compare. A small JSON file:
 *
 *     {
 *       "format": "trireme receipt",
 *       "format_version": 1,
 *       "program": "trireme 0.1.0",
 *       "numerics": 2,                 tr_numerics_version() of the run
 *       "settings": "<digest>",        of all that determines the state, see trainer_receipt_settings()
 *       "data": "<digest>",            of the training data, in the order in which they are stored
 *       "seed": "1",                   a text, since JSON readers differ on large numbers
 *       "steps": 1000,                 that the whole training has
 *       "parameters": "<hash>",        as the run prints it, after the last boundary; "" while unknown
 *       "log": "",                     the digest of the log of updates that a replay was of
 *       "model": "name: ...",          the resolved model file
 *       "boundaries": {
 *         "0": ["<root>", "<chain>"],  of the state after so many steps (receipt/canonical.h),
 *         "100": [...]                 and of the steps up to there (receipt/chain.h)
 *       }
 *     }
 *
 * Invariants of a receipt that was read: it has exactly these members, boundaries ascend and do not exceed
 * the steps, and the chain of the first one follows from settings, data and root. Equal contents give
 * equal bytes.
 */
#ifndef TR_RECEIPT_RECEIPT_H
#define TR_RECEIPT_RECEIPT_H

#include "base/numbers/hash.h"
#include "receipt/chain.h"

/* The file's name in the directory of a run, and in its checkpoints. */
#define TR_RECEIPT_FILE "run.receipt"
/* Bytes that one may have, and boundaries. */
#define TR_RECEIPT_MOST       ((size_t)64 << 20)
#define TR_RECEIPT_BOUNDARIES ((int64_t)100000)

struct tr_receipt_boundary {
    int64_t step; /* steps done */
    struct tr_sha256_sum root, chain;
};

/* Begins as zeros. */
struct tr_receipt {
    char *program, *model; /* owned */
    int64_t numerics;
    struct tr_sha256_sum settings, data;
    uint64_t seed;
    int64_t steps;
    char parameters[TR_SHA256_TEXT];      /* or "" */
    char log[TR_SHA256_TEXT];             /* or "" */
    struct tr_receipt_boundary *boundary; /* [count] */
    int64_t count;
};

void tr_receipt_release(struct tr_receipt *receipt);
/* Adds a boundary, removes those of the same and of later steps, and clears the parameters. TR_ENOMEM;
   TR_EUNSUPPORTED where there are too many. */
tr_status tr_receipt_add(struct tr_receipt *receipt, const struct tr_receipt_boundary *boundary);
/* The boundary after `step` steps, or NULL. */
const struct tr_receipt_boundary *tr_receipt_find(const struct tr_receipt *receipt, int64_t step);

/* Returned, free with tr_free(). TR_ENOMEM. */
tr_status tr_receipt_write(const struct tr_receipt *receipt, char **text);
/* Reads the text of the file `path`, which is borrowed for the call. Release with tr_receipt_release().
   TR_EFORMAT; TR_EUNSUPPORTED for a newer format; TR_ECORRUPT where it contradicts itself; TR_ENOMEM. */
tr_status tr_receipt_read(const char *path, const char *text, size_t size, struct tr_receipt *out);

#endif
