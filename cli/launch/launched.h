/* How the processes of a job and the `trireme launch` that started them understand each other.
 *
 * Exit codes say too little, that of mpirun least of all: it is 0 after a worker died whom an asynchronous
 * job could do without, and none names steps and checkpoints. So the processes write notes: lines on stderr,
 * which mpirun brings to the launcher from any host. A note begins with a control character and the
 * launcher's token, so that nothing else is taken for one; the launcher takes notes out and lets everything
 * else pass.
 */
#ifndef CLI_LAUNCHED_H
#define CLI_LAUNCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_NOTE_MARK '\036' /* ASCII's record separator: no message begins with it */

enum cli_note_kind {
    CLI_NOTE_STARTED,  /* a process runs; number: its id, as it sees it itself */
    CLI_NOTE_STOPPING, /* a process has heard that it is to stop; number: its id */
    CLI_NOTE_BEGUN,    /* the root is about to train, its directory holds this run's checkpoints only; number:
                          steps done */
    CLI_NOTE_STEP,     /* the root goes on; number: steps done */
    CLI_NOTE_SAVED,    /* the root saved; number: the checkpoint's step */
    CLI_NOTE_FEWER,    /* likewise, and some ranks have died since the job began; number: those that go on */
    CLI_NOTE_LOST,    /* a process found that the job cannot go on, since another is gone; number: its rank */
    CLI_NOTE_UNHEARD, /* what the root printed could not be written; number: 0 */
    CLI_NOTE_ENDED,   /* the root's run is over; number: its exit code */
    CLI_NOTE_KINDS
};

struct cli_note {
    enum cli_note_kind kind;
    int64_t number;
};

/* Whether `line`, without its newline, is a note for the launcher of this token; only then *note is filled.
 */
bool cli_note_read(const char *line, const char *token, struct cli_note *note);

/* In a process of the job, as the first of these: from now on notes go to the launcher of this token, and the
   process dies with the program that started it, the launcher itself or mpirun. NULL: no launcher is there,
   and notes go nowhere. The token is borrowed for good. */
void cli_launched_begin(const char *token);
/* Writes a note. */
void cli_launched_note(enum cli_note_kind kind, int64_t number);
/* Writes STOPPING; for handlers of signals. */
void cli_launched_stopping(void);
/* The same for STEP, unless the last one is less than a second old. */
void cli_launched_step(int64_t step);

#endif
