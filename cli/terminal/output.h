/* Standard output: written through stdio and checked once, so that a closed pipe or a full disk is
 * noticed.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "base/text/json.h"
#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Called first in main(): makes sure that descriptors 0 to 2 are taken, so that no file of ours becomes
   "standard output", ignores SIGPIPE, gives stdout a buffer for a whole screen, and prints warnings of the
   library. */
void cli_output_begin(void);
/* Writes what is buffered. Returns false once anything could not be written, now or earlier. */
bool cli_output_flush(void);
/* Closes stdout. TR_EIO with a message if anything could not be written. */
tr_status cli_output_end(void);

/* Control characters except line feeds and tabs, and bytes that are not UTF-8, become '?': names of files
   and jobs, and texts of data sets, may contain anything. May be called in a signal handler. */
void cli_output_tame(char *text, size_t size);
/* Writes a text to stdout or stderr, tamed. All output of commands is written by this function, which a
   test in tests/architecture checks. No memory is needed. */
void cli_output_put(FILE *stream, const char *text, size_t size);
/* Writes bytes to stdout unchanged: for programs that asked for them. */
void cli_output_raw(const char *bytes, size_t size);
/* The number of bytes at the end of a text that begin an unfinished character, 0 to 3: consecutive pieces
   may be whole only when they are joined. */
size_t cli_output_unfinished(const char *text, size_t size);
/* printf() and fprintf(), tamed. */
void cli_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_fprintf(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints a text of the library, tamed, and frees it with tr_free(). */
void cli_print(char *text);
/* The same with lines for people: on a terminal they are folded to its width (wrap.h). */
void cli_print_lines(char *text);
/* Ends an object of JSON and prints it as a line. Without memory, TR_ENOMEM, there is none. */
tr_status cli_print_json(struct tr_json_writer *json);
/* Writes a text of the library to a file, whole or not at all, and frees it with tr_free(). TR_EIO. */
tr_status cli_output_file(const char *path, char *text);
/* Called before anything is written to stderr, so that a progress line is removed; NULL for none. */
void cli_output_before_message(void (*hook)(void *user), void *user);
/* A line on stderr, "trireme NAME: message", tamed; NAME is that of the running command. The buffer of
   stdout is written first. */
void cli_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A message "warning: ..." for each of these lines; "" for none. */
void cli_warnings(const char *lines);
/* Names the running command ("train") for messages; borrowed for good. */
void cli_output_name(const char *command);
/* "trireme train: ", static storage. */
const char *cli_output_prefix(void);

/* After this the program ends by _exit(), without the exit handlers of libraries: MPI's may wait for ever
 * once another process has ended.
 */
void cli_output_leave_at_once(void);
/* After this the program, if all goes well, ends with an exit code from another program. */
void cli_output_leave_with(int code);
/* Ends the program with `code`, with the two exceptions above. */
int cli_output_leave(int code);

#endif
