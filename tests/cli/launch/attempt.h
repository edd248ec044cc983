/* Attempts at jobs inside of a test, which turns their clock and reads what they write to stderr. */
#ifndef TESTS_CLI_LAUNCH_ATTEMPT_H
#define TESTS_CLI_LAUNCH_ATTEMPT_H

#include "cli/launch/job.h"

#define ATTEMPT_TOKEN "token"

/* The time that launchers see, and by which it goes on whenever they look: 0, so that it stands still but for
   the test. Begins with 1000. */
extern double attempt_clock, attempt_tick;

/* For cmocka's group: cli_job_prepare(), once; and the end, which shows what failed in an attempt. */
int attempt_prepare(void **state);
int attempt_drop(void **state);

/* Runs the job as cli_job_run(), with the token above; what is written to stderr meanwhile is in
   attempt_said(). */
tr_status attempt_run(const struct cli_launcher *launcher, struct cli_job_orders *orders,
                      struct cli_job_end *end);
/* The same from the time 1000 on, for a launcher that succeeds; expects that no memory and no child is left.
 */
struct cli_job_end attempt_whole(const struct cli_launcher *launcher, struct cli_job_orders orders);
/* What the attempt under way, or else the last one, has written; static storage. */
const char *attempt_said(void);
/* Fails the test unless it was just this. */
void attempt_expect_said(const char *expected);
/* For scripts of the shell: `say` writes a note; `go_on` writes notes until the end. */
#define ATTEMPT_SHELL                                                                                        \
    "say() { printf '\\036" ATTEMPT_TOKEN " %s\\n' \"$*\" >&2; }\n"                                          \
    "go_on() { while :; do say step 1; sleep 0.02; done; }\n"

/* The text of a file that a process wrote; static storage. */
const char *attempt_file(const char *name);
/* Whether the line stands in a text. */
bool attempt_has_line(const char *text, const char *line);

/* For cmocka's group: as the two above, in a scratch directory. */
int attempt_place_make(void **state);
int attempt_place_drop(void **state);

/* How often `part` stands in a text. */
int attempt_count(const char *text, const char *part);
/* Fails the test if this process has a child, running or not. */
void attempt_expect_no_child(void);

#endif
