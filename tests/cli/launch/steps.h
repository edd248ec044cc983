/* A launcher of jobs that a test is: what happens at each of its looks are the steps of a list. For one file
 * of a test, which has <cmocka.h>.
 */
#ifndef TESTS_CLI_LAUNCH_STEPS_H
#define TESTS_CLI_LAUNCH_STEPS_H

#include "base/alloc.h"
#include "cli/launch/attempt.h"
#include "cli/program/exit_codes.h"
#include "support/files/descriptors.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Something that happens at a look; the next look comes at once, or as it says. */
typedef void (*step)(struct cli_job *job);

static const step *next;
static int writer = -1; /* the end of the processes */
static int starts, stops, quits, looks, finishes, heard;

static tr_status fake_start(struct cli_job *job)
{
    starts++;
    assert_int_equal(job->end->step, -1);
    assert_int_equal(job->end->saved, -1);
    assert_int_equal(job->end->code, CLI_EXIT_FAILED);
    return cli_job_output(job, &writer);
}

static void fake_stop(struct cli_job *job)
{
    (void)job;
    stops++;
}

static void fake_quit(struct cli_job *job)
{
    (void)job;
    quits++;
}

static void fake_hear(struct cli_job *job, const struct cli_note *note)
{
    (void)job, (void)note;
    heard++;
}

static bool fake_look(struct cli_job *job)
{
    looks++;
    assert_true(isinf(job->look_at) || quits > 0);
    if (!*next) return false;
    job->look_at = attempt_clock;
    (*next++)(job);
    return true;
}

static void fake_finish(struct cli_job *job)
{
    finishes++;
    assert_non_null(job->output);
}

static struct cli_launcher launcher = {.name = "test",
                                       .start = fake_start,
                                       .stop = fake_stop,
                                       .quit = fake_quit,
                                       .hear = fake_hear,
                                       .look = fake_look,
                                       .finish = fake_finish};

static inline struct cli_job_end run(struct cli_job_orders orders, const step *steps)
{
    struct cli_job_end end;
    const int open = descriptors_open();
    const int64_t live = tr_alloc_live();
    starts = stops = quits = looks = finishes = heard = 0;
    attempt_clock = 1000;
    next = steps;
    assert_int_equal(attempt_run(&launcher, &orders, &end), TR_OK);
    assert_int_equal(starts, 1);
    assert_int_equal(finishes, 1);
    assert_int_equal(tr_alloc_live(), live);
    if (writer >= 0) close(writer);
    writer = -1;
    assert_true(descriptors_open() <= open + 1); /* the file of what was said */
    return end;
}

static inline void say(const char *text)
{
    assert_int_equal(write(writer, text, strlen(text)), strlen(text));
}

static inline void note(const char *text)
{
    char line[100];
    snprintf(line, sizeof line, "%c%s %s\n", CLI_NOTE_MARK, ATTEMPT_TOKEN, text);
    say(line);
}

static inline void interrupt(struct cli_job *job)
{
    (void)job;
    raise(SIGINT);
}

#endif
