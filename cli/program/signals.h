/* Ctrl-C and similar signals during long work: the first asks it to end in good order, the second ends it
 * at once.
 *
 * SIGINT, SIGTERM and SIGHUP are caught, except those that were ignored when the program began (nohup,
 * background jobs). A second one counts only a moment after the first, and a SIGHUP or SIGUSR1 never
 * does.
 */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include "trireme/train.h"

/* Blocks SIGUSR1 until cli_signals_catch(), so that an early one does not end the process: a launcher may
   forward it at any moment. */
void cli_signals_hold(void);

/* SIGUSR1 means the same as a first SIGTERM: mpirun forwards it at once.

   A first signal then stops `trainer` (NULL if the work asks cli_signals_received() itself) and prints
   "trireme NAME: <notice> (once more: leave at once)" on stderr, nothing where `notice` is NULL. The
   trainer is borrowed until cli_signals_release(). */
void cli_signals_catch(tr_trainer *trainer, const char *notice);
/* A signal then also sets `stop`; one that came since cli_signals_catch() does so now. Borrowed until
   cli_signals_release(). */
void cli_signals_stop(tr_stop *stop);
/* Signals act as before cli_signals_catch() again. */
void cli_signals_release(void);
/* Instead of that, when the work is done and the process is about to leave by itself: signals are ignored,
   so that it keeps its exit code. SLURM sends SIGTERM to all ranks as soon as one has left with a code
   that is not 0. */
void cli_signals_ignore(void);
/* The number of the first signal since then, 0 if none. */
int cli_signals_received(void);

#endif
