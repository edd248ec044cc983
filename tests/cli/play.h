/* A test program that takes the place of the program which it starts: started with arguments, it notes them
 * and does what the environment says.
 */
#ifndef TESTS_CLI_PLAY_H
#define TESTS_CLI_PLAY_H

#include <stdbool.h>

/* PLAY_FILE: where arguments are added, a line for each; PLAY_TEXT: what is said, of an evaluation PLAY_EVAL,
   by a launcher PLAY_LAUNCH and, once the file is there, PLAY_LATER, where these are set; PLAY_ERROR: what is
   said on standard error, if set; PLAY_CODE: the exit code, or "wait": until it is asked to end. */
bool is_played(int argc);
int play(char **argv);

/* What the next programs do, with no error; their arguments go to this file, which is removed. */
void play_with(const char *file, const char *text, const char *code);

/* The arguments of all programs since then, in static storage until the next call; "" if none was started. */
const char *play_arguments(void);
/* Fails the test unless `part` stands so many times in them. */
void play_expect(const char *part, int count);

#endif
