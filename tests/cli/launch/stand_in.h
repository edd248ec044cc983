/* Attempts at jobs by a stand-in for mpirun, a script of the shell. For one file of a test, whose group
 * begins with attempt_place_make().
 */
#ifndef TESTS_CLI_LAUNCH_STAND_IN_H
#define TESTS_CLI_LAUNCH_STAND_IN_H

#include "base/alloc.h"
#include "cli/launch/attempt.h"
#include "cli/program/exit_codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the script the mpirun that is found first. */
static inline void stand_in_write(const char *script)
{
    static char before[8192];
    char path[10000], here[512];
    if (!before[0]) snprintf(before, sizeof before, "%s", getenv("PATH"));
    (void)mkdir("stand-in", 0700);
    FILE *file = fopen("stand-in/mpirun", "w");
    assert_non_null(file);
    assert_true(fprintf(file, "#!/bin/sh\n%s%s\n", ATTEMPT_SHELL, script) > 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod("stand-in/mpirun", 0755), 0);
    assert_non_null(getcwd(here, sizeof here));
    snprintf(path, sizeof path, "%s/stand-in:%s", here, before);
    assert_int_equal(setenv("PATH", path, 1), 0);
}

/* The variables that decide are those that the test sets after this. */
static inline void stand_in_forget(void)
{
    static const char *const beginnings[] = {"OMPI_", "PRTE_", "PMIX_", "HWLOC_", "TRIREME_"};
    char name[256];
    for (char **at = environ; *at;) {
        bool ours = false;
        for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
            ours = ours || strncmp(*at, beginnings[i], strlen(beginnings[i])) == 0;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*at, "="), *at);
        if (!ours || unsetenv(name) != 0) at++;
    }
}

typedef void (*listener)(struct cli_job *job, const struct cli_note *note);
static listener stand_in_listener;

static inline void stand_in_hear(struct cli_job *job, const struct cli_note *note)
{
    cli_launcher_mpi.hear(job, note);
    if (stand_in_listener) stand_in_listener(job, note);
}

/* Runs the job; `hear` (may be NULL) learns of each note, after the launcher. */
static inline struct cli_job_end stand_in_run(struct cli_job_orders orders, const char *script, listener hear)
{
    static char *const words[] = {"/the/program", "train", "a b", NULL};
    struct cli_launcher launcher = cli_launcher_mpi;
    stand_in_write(script);
    orders.words = words;
    if (orders.processes == 0) orders.processes = 2;
    stand_in_listener = hear;
    launcher.hear = stand_in_hear;
    return attempt_whole(&launcher, orders);
}

#endif
