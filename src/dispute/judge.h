/* The judge of a dispute: finds the first number in which two parties differ, by short questions, and has
 * it computed. It has neither party's state. It has the program, the model file and the data, and makes
 * one step with its own numbers, only to know the step's operations, what they read and write, and what
 * the host sends them.
 *
 * All answers of parties are hostile: a digest counts as a commitment, and data opened later are compared
 * with it. A party that breaks the protocol, or opens data that do not match its commitment, loses.
 */
#ifndef TR_DISPUTE_JUDGE_H
#define TR_DISPUTE_JUDGE_H

#include "dispute/party.h"

/* Sends a question to a party. *answer is returned, free with tr_free(). A failure ends the dispute. */
struct tr_dispute_side {
    tr_status (*ask)(void *user, const char *question, char **answer);
    void *user;
};

enum tr_dispute_outcome {
    TR_DISPUTE_EQUAL, /* they do not differ */
    TR_DISPUTE_A,     /* A is right */
    TR_DISPUTE_B,
    TR_DISPUTE_BOTH,    /* both are right: NaN, whose bits are not defined */
    TR_DISPUTE_NEITHER, /* neither is right */
    TR_DISPUTE_OPEN     /* undecided, with the reason */
};

/* Begins as zeros. */
struct tr_dispute_result {
    enum tr_dispute_outcome outcome;
    int64_t step;      /* steps done after the first that differs; 0: none was found */
    char place[512];   /* of the number: "dense_forward y[17]"; "" where none was found */
    char *text;        /* a sentence; owned */
    char *referee;     /* the case for referee.c, or NULL; owned */
    int64_t questions; /* questions to both together */
    int64_t opened;    /* entries and leaves that they opened */
    int64_t bytes;     /* of questions and answers */
};
void tr_dispute_release(struct tr_dispute_result *result);

/* Settles a dispute. `settings` are those of the judge's own step; without `model`, the model file is that
   of the first party. TR_OK whatever the outcome; failures of sides; TR_ENOMEM, TR_EIO, TR_EINTERRUPTED. */
tr_status tr_dispute_settle(const struct tr_party_settings *settings, const struct tr_dispute_side side[2],
                            struct tr_dispute_result *out);

#endif
