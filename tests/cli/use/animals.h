/* What the tests of predictions share: a table of animals that is easy to learn, and what is written to
 * files.
 */
#ifndef TESTS_CLI_ANIMALS_H
#define TESTS_CLI_ANIMALS_H

#include "base/files/file.h"
#include "cli/session.h"

enum { ROWS = 120 };

/* The class of a row; its numbers are 4 * (row % 3), which every tenth row misses, and 1 + 3 * (row % 3). */
const char *kind_of(int row);
/* Makes the place, animals.csv and animals.yaml there, and trains runs/animals. */
int animals_make(void **state);

/* A file's text. Free with tr_file_content_free(). */
struct tr_file_content content_of(const char *path);
void expect_content(const char *path, const char *expected);
/* The next line of a text, without its line feed. */
char *next_line(char **at);
/* Fails the test unless the code is 0 and stdout contains `part`; releases the session. */
void expect_output(struct session *session, int code, const char *part);
/* Runs the program, and demands exit code 2 and a message that contains `part`. */
void expect_refusal(const char *part, const char *const arguments[]);

#endif
