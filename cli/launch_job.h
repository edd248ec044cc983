/* One attempt at a job: mpirun, from its start until nothing of it is left on this host. */
#ifndef CLI_LAUNCH_JOB_H
#define CLI_LAUNCH_JOB_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stdint.h>

struct cli_job {
    char *const *arguments; /* of mpirun, with its name, ends with NULL; borrowed for the call */
    const char *token;      /* of the notes, see launched.h; borrowed for the call */
    bool tolerant;          /* mpirun lets the others go on when a process dies */
};

/* How it went. */
struct cli_job_end {
    bool started;    /* a process came so far as to say so */
    bool begun;      /* the chief was about to train: what its directory holds is this run's */
    bool ended;      /* the chief said how its run ended, with `code` */
    int code;        /* of the program's exit codes; FAILED where only mpirun says that something failed */
    int signal;      /* that ended a process or mpirun, 0: none is known */
    bool by_mpirun;  /* it was mpirun that it ended */
    int64_t step;    /* steps done, as far as is known; -1: unknown */
    int64_t saved;   /* step of the newest checkpoint, or -1 */
    int stop_signal; /* the user's first signal, 0: none came */
    bool stop_twice; /* the user did not want to wait */
};

/* Takes the signals of this process into the hands of the functions below, for good: SIGINT, SIGTERM, SIGHUP
   and SIGUSR1, unless they are ignored. Processes that lose their parent become children of this one. Once.
 */
tr_status cli_job_prepare(void);

/* Runs the job. A first signal asks it to save and end, a second one ends it; the processes that are left
   behind then, or by an mpirun that was killed, are killed. TR_EUNSUPPORTED without mpirun; TR_ENOMEM,
   TR_EIO.
 */
tr_status cli_job_run(const struct cli_job *job, struct cli_job_end *end);

/* Waits; returns the signal that came meanwhile, or 0. */
int cli_job_pause(double seconds);

#endif
