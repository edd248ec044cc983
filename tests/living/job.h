/* A job of several processes under `trireme launch`, and what happens to it from outside. Everything that
 * belongs to it is found by a mark in its environment.
 */
#ifndef TESTS_LIVING_JOB_H
#define TESTS_LIVING_JOB_H

#include "cli/session.h"

#include <stdbool.h>
#include <stdint.h>

#define JOB_ARGUMENTS 48
#define JOB_RANKS     16

struct job {
    struct session session;
    char mark[64]; /* "TRIREME_TEST_MARK=..." */
    const char *arguments[JOB_ARGUMENTS + 1];
    int argument_count;
};

/* How jobs are started: "local", or "mpi" after --mpi among the arguments of the test, which then runs a
 * smaller set. */
extern const char *job_transport;
/* > 0: jobs write to a terminal of so many columns. */
extern int job_columns;
/* Reads the test's arguments; whether `option` is one of them. */
bool job_argument(int count, char **arguments, const char *option);

/* What tests need to choose at random; the seed is printed, and set by the variable TRIREME_TEST_SEED. */
void chance_begin(void);
/* From 0 to below `limit`. */
int chance(int limit);

/* A job of `steps` steps whose every step takes about a millisecond, in the working directory: job.yaml. */
void job_write(int steps);
/* The hash of the job as one process ends with it; runs it once. */
const char *job_hash(void);

/* Starts `trireme launch` by the transport with these arguments, which end with NULL. */
void job_start(struct job *job, ...) __attribute__((sentinel));
/* The same from a shell that did something before: `prelude` is its code. */
void job_start_after(struct job *job, const char *prelude, ...) __attribute__((sentinel));
/* A running job, started by a program with children, dies of the signal that `hit` sends it, and the children
   live on: one of the launcher's own, which it inherited, and one whose parent dies while it runs. */
void job_expect_strangers_alive(void (*hit)(struct job *job));
/* Ends it as session_end(), releases nothing. */
int job_end(struct job *job);
void job_release(struct job *job);

/* The living process with this rank, 0 if there is none. */
pid_t job_rank(const struct job *job, int rank);
/* The living mpirun, 0 if there is none. */
pid_t job_mpirun(const struct job *job);
/* The value of a variable in the environment of a process; fails the test if it has none. */
void process_variable(pid_t process, const char *name, char *out, size_t size);
/* Processes of the job that are there in any form but as zombies. */
int job_processes(const struct job *job);
/* Waits until none is left; fails the test after `seconds`, with their names. */
void job_expect_gone(const struct job *job, double seconds);
/* Waits until a process of this rank is there, and then for milliseconds more; 0 where the job ended first.
 */
pid_t job_wait_for_rank(struct job *job, int rank, int milliseconds);

/* Skips the test, visibly, where Open MPI is missing and jobs would be started by it. */
void skip_without_transport(void);
/* Skips it, visibly, where Open MPI is missing. */
void skip_without_mpi(void);

#endif
