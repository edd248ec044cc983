/* Several processes: same hash as one, and what is said when they cannot start. Skipped where Open MPI is
 * missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "session.h"

#define MICROBATCHES "--set", "train.microbatches=4"

static void alone(char hash[65])
{
    struct session session;
    assert_int_equal(run(&session, "train", "tiny.yaml", "--overwrite", "-o", "alone", "--steps", "12",
                         MICROBATCHES, NULL),
                     0);
    strcpy(hash, hash_in(session.text[0]));
    session_release(&session);
}

static void skip_without_mpi(void)
{
    if (TRIREME_HAS_MPI && access("/usr/bin/mpirun", X_OK) == 0) return;
    fprintf(stderr, "skipped: Open MPI (libopenmpi-dev, openmpi-bin) was not found\n");
    skip();
}

static void test_processes_share_one_hash(void **state)
{
    (void)state;
    static const char *const counts[] = {"1", "2", "3"};
    char hash[65];
    skip_without_mpi();
    alone(hash);
    for (int i = 0; i < 3; i++) {
        struct session session;
        char out[16];
        snprintf(out, sizeof out, "launch%s", counts[i]);
        int code = run(&session, "launch", "-n", counts[i], "train", "tiny.yaml", "-o", out, "--steps", "12",
                       MICROBATCHES, NULL);
        if (code != 0) session_show(&session);
        assert_int_equal(code, 0);
        assert_string_equal(hash_in(session.text[0]), hash);
        assert_null(strchr(session.text[0], '\033'));
        session_release(&session);
    }
    /* What two processes saved, one goes on with. */
    struct session session;
    assert_int_equal(run(&session, "launch", "-n", "2", "train", "tiny.yaml", "-o", "half", "--steps", "5",
                         MICROBATCHES, NULL),
                     0);
    session_release(&session);
    assert_int_equal(run(&session, "train", "--resume", "half", "--steps", "12", NULL), 0);
    assert_string_equal(hash_in(session.text[0]), hash);
    session_release(&session);
}

static void test_more_processes_than_microbatches_are_refused(void **state)
{
    (void)state;
    struct session session;
    skip_without_mpi();
    int code = run(&session, "launch", "-n", "3", "train", "tiny.yaml", "-o", "many", "--set",
                   "train.microbatches=2", NULL);
    assert_int_not_equal(code, 0);
    if (!strstr(session.text[1], "3 ranks share 2 microbatches") &&
        !strstr(session.text[0], "3 ranks share 2 microbatches")) {
        session_show(&session);
        fail();
    }
    session_release(&session);
}

static void test_a_missing_launcher_is_named(void **state)
{
    (void)state;
    static const char *const environment[] = {"PATH=/nonexistent", NULL};
    struct session session;
    int code = run_with(&session, (struct setup){.environment = environment}, "launch", "-n", "2", "train",
                        "tiny.yaml", NULL);
    expect_error(2, "install Open MPI", &session, code);
    session_release(&session);
}

static void test_a_terminated_job_saves_and_goes_on(void **state)
{
    (void)state;
    struct session session;
    char hash[65];
    skip_without_mpi();
    const char *const arguments[] = {"launch",     "-n",
                                     "2",          "train",
                                     "tiny.yaml",  "-o",
                                     "terminated", MICROBATCHES,
                                     "--set",      "train.steps=1000000000",
                                     "--set",      "train.log_every=100000000",
                                     NULL};
    session_start(&session, &(struct setup){.arguments = arguments});
    session_wait_for(&session, 0, "step          1/");
    session_signal(&session, SIGTERM);
    assert_int_not_equal(session_end(&session), 0);
    const char *at = strstr(session.text[1], "stopped after step ");
    if (!at) at = strstr(session.text[0], "stopped after step ");
    if (!at) session_show(&session);
    assert_non_null(at);
    char steps[32];
    snprintf(steps, sizeof steps, "%ld", strtol(at + 19, NULL, 10) + 5);
    session_release(&session);
    assert_int_equal(run(&session, "train", "--resume", "terminated", "--steps", steps, NULL), 0);
    strcpy(hash, hash_in(session.text[0]));
    session_release(&session);
    assert_int_equal(
        run(&session, "train", "tiny.yaml", "-o", "undisturbed", "--steps", steps, MICROBATCHES, NULL), 0);
    assert_string_equal(hash_in(session.text[0]), hash);
    session_release(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes_share_one_hash),
        cmocka_unit_test(test_more_processes_than_microbatches_are_refused),
        cmocka_unit_test(test_a_missing_launcher_is_named),
        cmocka_unit_test(test_a_terminated_job_saves_and_goes_on),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
