/* One attempt at a job: its processes, from their start until none of them is left on this host. A launcher
 * starts them, asks them to stop and ends them: local.c forks them itself, mpi.c leaves it to mpirun.
 *
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
    const char *token;  /* of the notes, see launched.h */
    int processes, threads;
    const char *hosts, *hostfile; /* NULL: this host */
    bool tolerant;                /* the others go on when a process dies */
    bool outlives;                /* and are to be told so, since the strategy is synchronous */
    bool grows;                   /* is stopped once it has saved with fewer processes, to go on with all */
};

/* How it went. */
struct cli_job_end {
    bool started; /* a process came so far as to say so */
    bool begun;   /* rank 0 was about to train: what its directory holds is this run's */
    bool ended;   /* rank 0 said how its run ended, with `code` */
    int code;     /* of the program's exit codes; FAILED where nobody says more than that something failed */
    int signal;   /* that ended a process or mpirun, 0: none is known */
    char whose[32];  /* which that was: "rank 1" */
    int64_t step;    /* steps done, as far as is known; -1: unknown */
    int64_t saved;   /* step of the newest checkpoint, or -1 */
    bool unheard;    /* what the root prints could not be written: others would fare no better */
    bool grows;      /* was stopped since it had saved with fewer processes */
    int stop_signal; /* the user's first signal, 0: none came */
    bool stop_twice; /* the user did not want to wait */
};

struct cli_launcher;

/* An attempt under way, as its launcher sees it. */
struct cli_job {
    const struct cli_launcher *launcher;
    const struct cli_job_orders *orders;
    struct cli_job_end *end;
    struct cli_said said;
    struct cli_lines *output; /* [outputs] what the processes write on stderr; descriptor -1: has ended */
    int outputs;
    double stop_came; /* when the user's first signal came */
    double over;      /* when the job was known to be over; 0: it is not */
    double
        look_at; /* when `look` is to be called again at the latest; INFINITY unless it says so each time */
    void *state; /* the launcher's own */
};

struct cli_launcher {
    const char *name; /* "local" */
    /* Whether jobs can be started in this way here at all; says what to do where not. */
    tr_status (*check)(const struct cli_job_orders *orders);
    /* Starts the processes; each output is made by cli_job_output(). After a failure nothing is left but
     * outputs. */
    tr_status (*start)(struct cli_job *job);
    /* Asks all processes to finish the step, save and leave. */
    void (*stop)(struct cli_job *job);
    /* Ends all of them; called once more where the user insists. */
    void (*quit)(struct cli_job *job);
    /* Is told each note; may be NULL. */
    void (*hear)(struct cli_job *job, const struct cli_note *note);
    /* Takes what has ended, and does what is due by the clock. False: nothing is left. */
    bool (*look)(struct cli_job *job);
    /* Fills what the ends of its processes say, and frees `state`. */
    void (*finish)(struct cli_job *job);
};

extern const struct cli_launcher cli_launcher_local, cli_launcher_mpi;

/* Takes the signals of this process into the hands of the functions below, for good: SIGINT, SIGTERM, SIGHUP
   and SIGUSR1, unless they are ignored. Once. */
tr_status cli_job_prepare(void);

/* Runs the job. A first signal asks it to save and end, a second one ends it. The failures of the launcher's
   `start`; TR_ENOMEM. */
tr_status cli_job_run(const struct cli_launcher *launcher, const struct cli_job_orders *orders,
                      struct cli_job_end *end);

/* Waits; returns the signal that came meanwhile, or 0. */
int cli_job_pause(double seconds);

/* ---- for launchers ---- */

/* Makes a pipe for what processes write on stderr; *writer is the end for them, to be closed after they were
 * started. */
tr_status cli_job_output(struct cli_job *job, int *writer);
/* In a child, between fork() and exec(): no input, `writer` as stderr, the signals that this program got, and
   death with `parent`, by this signal. SIGUSR1 is held where `holds` says so, so that one that comes early
   waits. Exits where that fails. */
void cli_job_become_child(pid_t parent, int death, int writer, bool holds);
/* The exit code of a child that could not be what it should. */
#define CLI_JOB_NOT_STARTED 127

#endif
