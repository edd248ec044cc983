/* Notes from the processes of a job to the `trireme launch` that started them.
 *
 * Exit codes carry too little, mpirun's least of all. It is 0 after the death of a worker that an
 * asynchronous job did not need, and no exit code names steps and checkpoints. So the processes write
 * notes: lines on stderr, which mpirun forwards to the launcher from any host. A note begins with a
 * control character and the launcher's token, so that no other line is taken for one; the launcher removes
 * notes and forwards all other lines.
 */
#ifndef CLI_LAUNCHED_H
#define CLI_LAUNCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_NOTE_MARK '\036' /* ASCII's record separator: no message begins with it */

enum cli_note_kind {
    CLI_NOTE_STARTED,  /* a process runs; number: its id in its own name space */
    CLI_NOTE_STOPPING, /* a process was asked to stop; number: its id */
    CLI_NOTE_BEGUN,    /* the root is about to train, its directory holds only this run's checkpoints;
                          number: steps done */
    CLI_NOTE_STEP,     /* the root has done steps; number: how many */
    CLI_NOTE_SAVED,    /* the root saved; number: the checkpoint's step */
    CLI_NOTE_FEWER,    /* likewise, and some ranks have died since the job began; number: those that are
                          left */
    CLI_NOTE_LOST,     /* a process found that the job cannot continue, since another has died; number: its
                          rank */
    CLI_NOTE_UNHEARD,  /* the root's output could not be written; number: 0 */
    CLI_NOTE_ENDED,    /* the root's run is over; number: its exit code */
    CLI_NOTE_KINDS
};

struct cli_note {
    enum cli_note_kind kind;
    int64_t number;
};

/* Whether `line`, without its newline, is a note for the launcher with this token; only then *note is
   filled. */
bool cli_note_read(const char *line, const char *token, struct cli_note *note);

/* Called first in a process of the job: notes go to the launcher with this token, and the process dies
   with the program that started it, the launcher itself or mpirun. NULL: there is no launcher, and notes
   are dropped. The token is borrowed for good. */
void cli_launched_begin(const char *token);
/* Writes a note. */
void cli_launched_note(enum cli_note_kind kind, int64_t number);
/* Writes STOPPING; for handlers of signals. */
void cli_launched_stopping(void);
/* The same for STEP, unless the last one is less than a second old. */
void cli_launched_step(int64_t step);

#endif
