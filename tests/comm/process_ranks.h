/* What ranks that are processes do in tests, whatever started them: scenarios, and faults of their own. */
#ifndef TESTS_COMM_PROCESS_RANKS_H
#define TESTS_COMM_PROCESS_RANKS_H

#include "comm/comm.h"

void process_nap(double seconds);
/* Prints a line "rank 2 says: ..." at once and in one piece; `comm` may be NULL. */
void process_say(const tr_comm *comm, const char *text);

/* All that every transport must do. Returns what is wrong, or NULL. */
const char *process_scenarios(tr_comm *comm);
/* Does what is asked for: "scenarios"; "compute", "slow", "hiccups"; "kill", "stop", "exit", "abort" happen
   to the last rank, "words" and "words-killed", too,
   which end a moment after they said why; "work-N" to rank N in the middle of work, and the others say what
   they found; "survive". Returns what is wrong, or NULL; after a fault it does not return. */
const char *process_run(tr_comm *comm, const char *what);

#endif
