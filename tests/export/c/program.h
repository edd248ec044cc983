/* Compiling a file of C and calling what it defines, with the compilers of this machine. */
#ifndef TESTS_EXPORT_PROGRAM_H
#define TESTS_EXPORT_PROGRAM_H

#include <stdbool.h>

/* How files are compiled: one entry for each pair of compiler and flags whose compiler is there, NULL at the
   end. All have -Wall -Wextra -Werror -pedantic. Compilers that are missing are named on stderr as skipped.
 */
const char *const *program_compilers(void);

/* Compiles `source` to a shared object beside it and opens it, or fails the test with the compiler's words.
   Returned, close with program_close(). */
void *program_open(const char *compiler, const char *source);
void program_close(void *program);
/* A function by name, or fails the test. */
void (*program_function(void *program, const char *name))(void);

/* Compiles two sources to the program `path` and runs it, or fails the test; so does an exit code that is not
 * 0. */
void program_run(const char *compiler, const char *path, const char *first, const char *second);

#endif
