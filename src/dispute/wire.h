/* The lines of a dispute: questions and answers, of words with a blank between them. Answers come from a
 * party that may be hostile, and questions from anybody: a line has at most TR_WIRE_MOST bytes, and a word
 * that is not of the expected form is refused.
 *
 *     question                answer
 *     hello 1                 hello 1 NUMERICS SETTINGS DATA SEED STEPS BOUNDARIES
 *     model                   model HEX                           the model file of the receipt
 *     boundary I              boundary STEP ROOT CHAIN            number I of the receipt
 *     replay I                replay ROOT CHAIN                   at boundary I + 1, repeated from I
 *     step N                  step ROOT CHAIN STEPS SKIPPED LOSS BATCH
 *                                                                 after N steps of the last replay
 *     batch N                 batch INDEX...                      the examples of step N
 *     record N                record ENTRIES ROOT LEAVES ROOT LEAVES ROOT
 *                                                                 evidence of that step, and the states
 *                                                                 before and after it
 *     node TREE FIRST COUNT   node DIGEST DIGEST                  both halves of these leaves
 *     entry K                 entry NAME COUNT ROOT... DIGEST...  with the path to the root
 *     leaf TREE I             leaf HEX DIGEST...                  likewise
 *
 * TREE is `entries`, `before`, `after`, or the number of a region. Digests are in hexadecimal, numbers in
 * decimal, the loss by its bits in hexadecimal. A party that cannot answer sends `sorry` and the reason.
 */
#ifndef TR_DISPUTE_WIRE_H
#define TR_DISPUTE_WIRE_H

#include "base/text/text.h"
#include "receipt/merkle.h"

#define TR_WIRE_VERSION 1
#define TR_WIRE_MOST    ((size_t)1 << 20)

/* A line, read word by word. */
struct tr_wire {
    const char *at;
    bool bad;         /* a word was not the expected one */
    tr_status status; /* a digest could not be computed: TR_ENOMEM, which is nobody's fault */
};

/* The line begins with `word`. */
bool tr_wire_begins(struct tr_wire *wire, const char *word);
/* The next word, at most `size` - 1 bytes. */
void tr_wire_word(struct tr_wire *wire, char *out, size_t size);
/* A number in [0, most]. */
int64_t tr_wire_number(struct tr_wire *wire, int64_t most);
uint64_t tr_wire_seed(struct tr_wire *wire);
uint32_t tr_wire_bits(struct tr_wire *wire); /* eight hexadecimal digits */
void tr_wire_digest(struct tr_wire *wire, struct tr_sha256_sum *out);
/* Bytes in hexadecimals, at most `most`; returns their number. */
size_t tr_wire_bytes(struct tr_wire *wire, void *out, size_t most);
/* The path from leaf `leaf` of `leaves`, whose digest is *sum: *sum becomes the root it leads to, and
   `proof`, unless NULL, the path. */
void tr_wire_way(struct tr_wire *wire, int64_t leaf, int64_t leaves, struct tr_sha256_sum *sum,
                 struct tr_merkle_proof *proof);
/* Whether all words were valid, and there are no more. */
bool tr_wire_ends(struct tr_wire *wire);

void tr_wire_add_digest(struct tr_text *text, const struct tr_sha256_sum *sum);
void tr_wire_add_bytes(struct tr_text *text, const void *bytes, size_t size);
void tr_wire_add_way(struct tr_text *text, const struct tr_merkle_proof *proof);

#endif
