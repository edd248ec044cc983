/* What model parallelism is for: a process of a pipeline holds its own stage, and not the model. Looks at the
 * resident memory of processes that train a network with two heavy layers, each in a stage of its own. */
#include "living/job.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB 1024.0

/* Parameters, gradient and two moments of one of the heavy layers, in KiB: 187 MiB. */
#define UNITS       3500
#define STAGE_KIB   (4.0 * 4.0 * UNITS * UNITS / 1024)
#define TRAIN       "train", "heavy.yaml", "-t", "1", "--set", "train.log_every=1"
#define IN_STAGES   "--strategy", "pipeline,cut=[dense3]"
#define FOR_EVER    "--steps", "1000000"
#define WITHOUT_END "-n", "2", TRAIN, IN_STAGES, FOR_EVER

static void write_model(void)
{
    char text[1024];
    snprintf(text, sizeof text,
             "name: heavy\n"
             "data:\n"
             "  train: {idx: {images: images.idx, labels: labels.idx}}\n"
             "layers:\n"
             "  - dense: {units: %d, activation: relu}\n"
             "  - dense: {units: %d, activation: relu}\n"
             "  - dense: {units: %d, activation: relu}\n"
             "  - dense: 3\n"
             "optimizer: {rule: adam, rate: 0.0001}\n"
             "train: {batch: 2, microbatches: 1, steps: 6}\n",
             UNITS, UNITS, UNITS);
    write_text("heavy.yaml", text);
}

/* A line of /proc/<process>/status in KiB: "VmHWM" is the most that was resident so far, "VmRSS" what is. */
static double memory_of(pid_t process, const char *key)
{
    char path[64], line[256];
    double found = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)process);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':')
            found = strtod(line + strlen(key) + 1, NULL);
    fclose(file);
    assert_true(found > 0);
    return found;
}

static void expect_at_most(double found, double most, const char *what)
{
    print_message("%s: %.0f MiB, at most %.0f MiB expected\n", what, found / MIB, most / MIB);
    assert_true(found <= most);
}

static void stop_job(struct job *job)
{
    session_signal(&job->session, SIGTERM);
    int code = job_end(job);
    if (code != 3) session_show(&job->session);
    assert_int_equal(code, 3);
    job_expect_gone(job, 10);
    job_release(job);
}

static pid_t rank_of(struct job *job, int rank)
{
    pid_t process = job_wait_for_rank(job, rank, 0);
    assert_true(process > 0);
    return process;
}

/* The most that a single process takes until some steps are done. */
static double peak_alone(void)
{
    struct job job;
    job_start(&job, "-n", "1", TRAIN, FOR_EVER, "-o", "alone", NULL);
    session_wait_for(&job.session, 0, " 3/1000000");
    double peak = memory_of(rank_of(&job, 0), "VmHWM");
    stop_job(&job);
    return peak;
}

static void a_stage_takes_half_of_the_memory(void **state)
{
    (void)state;
    struct job job;
    /* A tenth is left for what is not divided. */
    double alone = peak_alone(), most = alone - 0.9 * STAGE_KIB;
    assert_true(alone > 2 * STAGE_KIB);

    job_start(&job, WITHOUT_END, "-o", "staged", NULL);
    session_wait_for(&job.session, 0, " 3/1000000");
    expect_at_most(memory_of(rank_of(&job, 0), "VmHWM"), most, "first stage, from the beginning on");
    expect_at_most(memory_of(rank_of(&job, 1), "VmHWM"), most, "second stage, from the beginning on");
    stop_job(&job); /* and save */

    /* Resuming, evaluating and saving take no more than that. */
    job_start(&job, WITHOUT_END, "--resume", "staged", "-o", "resumed", "--set", "train.checkpoint_every=25",
              "--set", "data.test={idx: {images: images.idx, labels: labels.idx}}", "--set",
              "train.evaluate_every=20", NULL);
    session_wait_for(&job.session, 0, " on test (");
    session_wait_for(&job.session, 0, "checkpoint-");
    job.session.size[0] = 0; /* what comes from here on comes after the checkpoint */
    job.session.text[0][0] = '\0';
    session_wait_for(&job.session, 0, "\nstep ");
    expect_at_most(memory_of(rank_of(&job, 0), "VmHWM"), most, "first stage, all the time");
    expect_at_most(memory_of(rank_of(&job, 1), "VmHWM"), most, "second stage, all the time");
    stop_job(&job);
}

/* The root hashes what others have piece by piece. */
static void the_hash_is_that_of_one_process(void **state)
{
    (void)state;
    struct session session;
    char alone[65];
    int code = run(&session, TRAIN, "-o", "six", NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    memcpy(alone, hash_in(session.text[0]), sizeof alone);
    session_release(&session);
    code = run(&session, "launch", "-n", "2", TRAIN, IN_STAGES, "-o", "six-staged", NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    assert_string_equal(hash_in(session.text[0]), alone);
    session_release(&session);
}

static int make(void **state)
{
    int code = place_make(state);
    write_model();
    return code;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stage_takes_half_of_the_memory),
        cmocka_unit_test(the_hash_is_that_of_one_process),
    };
    return cmocka_run_group_tests_name("living.memory", tests, make, place_remove);
}
