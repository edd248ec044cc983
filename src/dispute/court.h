/* The structure of a judge (dispute/judge.h): asking, concluding, and the known facts of both parties. */
#ifndef TR_DISPUTE_COURT_H
#define TR_DISPUTE_COURT_H

#include "dispute/judge.h"
#include "dispute/step.h"
#include "receipt/chain.h"
#include "receipt/receipt.h"

enum { A, B, SIDES };

/* A party's answer about a step that was repeated. */
struct court_step {
    int64_t step;
    struct tr_sha256_sum root, chain;
    struct tr_chain_link link;
};

/* An entry of both parties, as they opened it. */
struct court_entry {
    int64_t number;
    int record[SIDES]; /* number in the case; entries that are equal have the same one */
    struct tr_sha256_sum root[SIDES][TR_UNIT_REGIONS];
};

/* A leaf that was opened. */
struct court_leaf {
    int64_t region, leaf;
    int id; /* number in the case */
    int64_t size;
    unsigned char bytes[TR_EVIDENCE_LEAF];
};

struct court {
    const struct tr_party_settings *settings;
    const struct tr_dispute_side *side;
    struct tr_dispute_result *result;
    bool over;        /* there is an outcome */
    tr_status status; /* or a failure */
    char *answer[SIDES];
    struct tr_receipt hello[SIDES]; /* their answers about their receipts, without boundaries */
    int64_t boundaries[SIDES];
    /* The judge's own step. */
    char *model; /* text of the model file, or NULL */
    tr_trainer *trainer;
    tr_device *witness;
    struct dispute_step own;
    /* Their evidence. */
    int64_t first; /* steps done before the disputed step */
    struct court_step before[SIDES], after[SIDES];
    struct tr_sha256_sum root[SIDES], state_before[SIDES], state_after[SIDES];
    /* Opened entries and leaves. */
    struct court_entry *entry; /* [entries] */
    int64_t entries;
    struct court_leaf *leaf; /* [leaves] */
    int64_t leaves;
    int records, cased; /* records and leaves in the case */
    struct tr_text record_text, leaf_text;
};

/* Whether it continues. */
static inline bool court_goes_on(const struct court *court)
{
    return !court->over && court->status == TR_OK;
}

void court_conclude(struct court *court, enum tr_dispute_outcome outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A party loses; the reason is the rest of a sentence that begins with its name. */
void court_forfeit(struct court *court, int side, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Asks a party. True: `wire` is after the first word of the answer, which equals that of the question. */
bool court_ask(struct court *court, int side, struct tr_wire *wire, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Whether the answer was valid to its end; else the party loses. */
bool court_took(struct court *court, int side, struct tr_wire *wire);
static inline bool court_equal(const struct tr_sha256_sum *a, const struct tr_sha256_sum *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* Makes the judge's own trainer, and checks whether it is of the parties' job. */
bool court_open(struct court *court);
/* Descends trees of `count` leaves whose roots differ: *leaf becomes the first leaf that differs, and node
   its digests. */
bool court_descend(struct court *court, const char *tree, int64_t count, struct tr_sha256_sum node[SIDES],
                   int64_t *leaf);
/* The first step that differs is known: settles it. */
void court_settle_step(struct court *court);
/* Bytes of a leaf of a region, as opened by a party, checked against the region's root. */
bool court_leaf_of(struct court *court, int side, int64_t region, int64_t leaf,
                   const struct tr_sha256_sum *root, unsigned char bytes[TR_EVIDENCE_LEAF],
                   struct tr_merkle_proof *proof);
/* The entry, opened by both; NULL where it does not continue. */
const struct court_entry *court_entry_of(struct court *court, int64_t number);
/* They differ in a number of a region of an entry: computes it. */
void court_settle_number(struct court *court, int64_t entry, int64_t region, int64_t byte);
/* Their evidence is equal, but the states after it differ. */
void court_settle_state(struct court *court);

#endif
