/* One attempt at a job: its processes, from their start until none of them is left on this host. A
 * launcher starts them, asks them to stop and ends them: local.c forks them itself, mpi.c uses mpirun.
 */
#ifndef CLI_LAUNCH_JOB_H
#define CLI_LAUNCH_JOB_H

#include "cli/launch/lines.h"

#include "trireme/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The job to start; all of it borrowed for the call. */
struct cli_job_orders {
    char *const *words; /* the program, by its path, and its arguments; ends with NULL */
    const char *token;  /* for the notes, see launched.h */
    int processes, threads;
    const char *hosts, *hostfile; /* NULL: this host */
    bool tolerant;                /* the others continue when a process dies */
    bool outlives;                /* and expect notice of it, since the strategy is synchronous */
    bool grows;                   /* stop it once it has saved with fewer processes, to resume with all */
};

/* How it ended. */
struct cli_job_end {
    bool started;    /* a process wrote the note that it runs */
    bool begun;      /* rank 0 was about to train: its directory holds this run */
    bool ended;      /* rank 0 reported the end of its run, with `code` */
    int code;        /* of the program's exit codes; FAILED if only a failure is known */
    int signal;      /* that ended a process or mpirun, 0: none known */
    char whose[32];  /* the process that it ended: "rank 1" */
    int64_t step;    /* steps done, if known; -1: unknown */
    int64_t saved;   /* step of the newest checkpoint, or -1 */
    bool unheard;    /* the root's output could not be written: another attempt would fail, too */
    bool grows;      /* was stopped since it had saved with fewer processes */
    int stop_signal; /* the user's first signal, 0: none */
    bool stop_twice; /* the user asked twice */
};

struct cli_launcher;

/* An attempt under way, as its launcher sees it. */
struct cli_job {
    const struct cli_launcher *launcher;
    const struct cli_job_orders *orders;
    struct cli_job_end *end;
    struct cli_said said;
    struct cli_lines *output; /* [outputs] the stderr of the processes; descriptor -1: has ended */
    int outputs;
    double stop_came; /* the time of the user's first signal */
    double over;      /* the time at which the job was known to be over; 0: it is not */
    double heard;     /* the time of the root's last news of steps; 0: none */
    double pause;     /* the longest between two of these */
    double
        look_at; /* the time of the next call of `look` at the latest; INFINITY unless it sets it each time */
    void *state; /* the launcher's private state */
};

struct cli_launcher {
    const char *name; /* "local" */
    /* Whether jobs can be started in this way here; if not, the message says what to do. */
    tr_status (*check)(const struct cli_job_orders *orders);
    /* Starts the processes; each output is made by cli_job_output(). After a failure only outputs remain. */
    tr_status (*start)(struct cli_job *job);
    /* Asks all processes to finish the step, save and leave. */
    void (*stop)(struct cli_job *job);
    /* Ends all of them; called again if the user insists. */
    void (*quit)(struct cli_job *job);
    /* Called with each note; may be NULL. */
    void (*hear)(struct cli_job *job, const struct cli_note *note);
    /* Takes notice of ended processes, and acts on deadlines. False: no process is left. */
    bool (*look)(struct cli_job *job);
    /* Fills in how its processes ended, and frees `state`. */
    void (*finish)(struct cli_job *job);
};

extern const struct cli_launcher cli_launcher_local, cli_launcher_mpi;

/* Gives SIGINT, SIGTERM, SIGHUP and SIGUSR1 of this process to the functions below, for good, unless they
   are ignored. Once. */
tr_status cli_job_prepare(void);

/* Runs the job. A first signal asks it to save and end, a second one ends it. Failures of the launcher's
   `start`; TR_ENOMEM. */
tr_status cli_job_run(const struct cli_launcher *launcher, const struct cli_job_orders *orders,
                      struct cli_job_end *end);

/* Waits; returns the signal that arrived meanwhile, or 0. */
int cli_job_pause(double seconds);

/* ---- for launchers ---- */

/* Makes a pipe for the stderr of processes; *writer is their end, to be closed after they were started. */
tr_status cli_job_output(struct cli_job *job, int *writer);
/* In a child, between fork() and exec(): sets no input, `writer` as stderr, the original signals of this
   program, and death with `parent`, by this signal. With `holds`, SIGUSR1 is blocked, so that an early one
   waits. Exits on failure. */
void cli_job_become_child(pid_t parent, int death, int writer, bool holds);
/* The time until which processes may run after the job was known to be over. */
double cli_job_last_call(const struct cli_job *job);
/* The exit code of a child that could not start. */
#define CLI_JOB_NOT_STARTED 127

#endif
