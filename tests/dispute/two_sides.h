/* Two parties to one small run, either of which may say something else than its run: words of its answers,
 * the states from some step on, and the numbers of the disputed step, to which it then commits itself as if
 * they were its own. So every lie costs some milliseconds, and no run has to be forged for it.
 */
#ifndef TESTS_DISPUTE_TWO_SIDES_H
#define TESTS_DISPUTE_TWO_SIDES_H

#include "support/training.h"

#include "dispute/judge.h"
#include "dispute/step.h"
#include "receipt/receipt.h"

#define RUN_STEPS 6
#define RUN_EVERY 2 /* steps between its boundaries: 0, 2, 4 and 6 */
#define CHANGES   3

/* In answers to questions that begin with `question`: the word of that number becomes `with`, that behind the
   last one is added; "*": its last digit becomes another. Word -1: the whole answer. */
struct change {
    const char *question;
    int word;
    const char *with;
};

struct side {
    tr_party *party;
    int64_t from;              /* states after so many steps are other ones; 0: none */
    bool repeats_honestly;     /* only its receipt has these */
    int64_t other_batch;       /* the step whose batch is another one, according to its chain; 0: none */
    const char *batch;         /* that batch's digest; NULL: nearly that of the true one */
    struct dispute_step *step; /* what it says of the disputed step; NULL: what its run has */
    struct change change[CHANGES];
    int64_t asked, fails;  /* questions; the one that fails, from 1 */
    int64_t opened, bytes; /* those for entries and leaves; of all lines, with their ends */
};

/* A digest that nothing has. */
#define NO_DIGEST "1111111111111111111111111111111111111111111111111111111111111111"

extern char run_path[SCRATCH_PATH], run_model[SCRATCH_PATH]; /* its directory, and its model file */

/* The step after which FORGED_STEP steps are done, but for a number of its first operation. */
#define FORGED_STEP 3
extern struct dispute_step run_forged;
extern struct tr_receipt run_receipt; /* as the run wrote it */

/* Makes the run in a directory of its own, and the forged step; for setup and teardown of a group. */
int run_make(void **state);
int run_remove(void **state);
/* A party to the run on "ref", with this receipt in the place of its own; destroy it. */
tr_party *party_with(const struct tr_receipt *receipt);

void sides_begin(struct side side[2]);
/* And one of them, 0 or 1, has the forged step. */
void sides_begin_forged(struct side side[2], int forger);
void sides_end(struct side side[2]);
/* Asks for the judgement; the result is released by the caller. */
tr_status sides_settle(struct side side[2], const struct tr_party_settings *judge,
                       struct tr_dispute_result *out);
/* Settles without a case, to this outcome, and ends the sides; `text` is part of what is said. */
void sides_expect(struct side side[2], enum tr_dispute_outcome outcome, int64_t step, const char *place,
                  const char *text, const struct tr_party_settings *judge);
/* Its answer to a judge; `user` is the side. */
tr_status side_ask(void *user, const char *question, char **answer);
/* The party's own answer, to be released. */
char *side_says(struct side *side, const char *question);
/* The word of that number, in memory of the function. */
const char *word_of(const char *line, int number);

/* The step after which `step` steps are done, as it is. */
void true_step(struct dispute_step *out, int64_t step);
/* A number of a region, or of a leaf of the state after the step, becomes another one, with all digests over
   it. */
void claim_number(struct dispute_step *step, int64_t region, int64_t byte, const void *bytes, int size);
void claim_state(struct dispute_step *step, int64_t leaf, int64_t byte, const void *bytes, int size);
#endif
