/* The two ends of a conversation between programs (dispute/wire.h): a party that answers on standard
 * output, and a command that is started as a party and asked through pipes.
 */
#ifndef CLI_DISPUTE_SPEAKER_H
#define CLI_DISPUTE_SPEAKER_H

#include "base/text/text.h"
#include "dispute/party.h"

#include <sys/types.h>

/* A command that is a party. */
struct cli_speaker {
    const char *command;
    pid_t process; /* 0: not started */
    int to, from;
    struct tr_text line; /* received part of the next answer */
};

/* Starts `command` with sh. TR_EIO. */
tr_status cli_speaker_start(struct cli_speaker *speaker, const char *command);
/* Ends it. Accepts one that was not started. */
void cli_speaker_end(struct cli_speaker *speaker);
/* For struct tr_dispute_side; `user` is a speaker. TR_EIO if the command ends or its answer is too long,
   TR_EINTERRUPTED. */
tr_status cli_speaker_ask(void *user, const char *question, char **answer);

/* Answers the lines of standard input on standard output until the input ends. TR_EIO, TR_ENOMEM,
   TR_EINTERRUPTED. */
tr_status cli_speaker_answer(tr_party *party);

#endif
