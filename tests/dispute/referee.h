/* The referee of a dispute (src/dispute/referee.c), run as a program. */
#ifndef TESTS_DISPUTE_REFEREE_H
#define TESTS_DISPUTE_REFEREE_H

/* What it says of a case: its exit code. The case is written to a file in `directory`. */
int referee_on(const char *directory, const char *text);
/* The same by the standard input. */
int referee_on_input(const char *directory, const char *text);

#endif
