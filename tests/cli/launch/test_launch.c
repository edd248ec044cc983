/* Several processes: same hash as one, and what is said when they cannot start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files/file.h"
#include "cli/launch/mpi.h"
#include "cli/session.h"

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

static void expect_hash(const char *transport, const char *processes, const char *hash)
{
    struct session session;
    char out[32];
    snprintf(out, sizeof out, "launch-%s-%s", transport, processes);
    int code = run(&session, "launch", "--transport", transport, "-n", processes, "train", "tiny.yaml", "-o",
                   out, "--steps", "12", MICROBATCHES, NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    assert_string_equal(hash_in(session.text[0]), hash);
    assert_null(strchr(session.text[0], '\033'));
    session_release(&session);
}

static void test_processes_share_one_hash(void **state)
{
    (void)state;
    char hash[65];
    alone(hash);
    expect_hash("local", "1", hash);
    expect_hash("auto", "2", hash);
    expect_hash("local", "3", hash);
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

static void test_processes_under_mpi_share_it_too(void **state)
{
    (void)state;
    char hash[65];
    skip_without_mpi();
    alone(hash);
    expect_hash("mpi", "2", hash);
}

static void test_more_processes_than_microbatches_are_refused(void **state)
{
    (void)state;
    struct session session;
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
    int code = run_with(&session, (struct setup){.environment = environment}, "launch", "--transport", "mpi",
                        "-n", "2", "train", "tiny.yaml", NULL);
    expect_error(2, "install Open MPI (Debian: openmpi-bin and libopenmpi-dev)", &session, code);
    session_release(&session);
    /* One host needs none. */
    code = run_with(&session, (struct setup){.environment = environment}, "launch", "-n", "2", "train",
                    "tiny.yaml", "-o", "pathless", "--steps", "1", NULL);
    assert_int_equal(code, 0);
    session_release(&session);
}

/* Also as root, who may write nearly everywhere. */
static void test_outputs_that_cannot_be_written_are_refused_first(void **state)
{
    (void)state;
    static const char *const places[] = {"tiny.yaml/below", "/proc/none/at-all"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct session session;
        int code = run(&session, "launch", "-n", "2", "train", "tiny.yaml", "-o", places[i], NULL);
        expect_error(2, "trireme launch: nothing can be written to the output directory", &session, code);
        session_release(&session);
        code = run(&session, "train", "tiny.yaml", "-o", places[i], NULL);
        expect_error(2, "trireme train: nothing can be written to the output directory", &session, code);
        session_release(&session);
    }
    struct session session;
    int code = run(&session, "launch", "-n", "2", "train", "tiny.yaml", "-o", "tiny.yaml", NULL);
    expect_error(2, "trireme launch: \"tiny.yaml\" is not a directory", &session, code);
    session_release(&session);
    /* What was tried leaves nothing. */
    expect_exit(2, "launch", "-n", "2", "train", "tiny.yaml", "-o", "new/place", "--strategy", "none-such");
    assert_int_equal(access("new", F_OK), -1);
}

/* What is wrong with the command line or the model file is said once, before processes are started. */
static void test_wrong_commands_are_refused_first(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[6], *message;
    } cases[] = {
        {{"eval", "tiny.yaml"}, "only `train` shares its work"},
        {{"tiny.yaml"}, "as in `trireme launch -n 2 train tiny.yaml`"},
        {{"train", "tiny.yaml", "--no-such-option"}, "no-such-option"},
        {{"train", "absent.yaml"}, "absent.yaml"},
        {{"train", "tiny.yaml", "--strategy", "parameter-sever"}, "did you mean \"parameter-server\"?"},
        {{"train", "tiny.yaml", "--timeout", "0"}, "--timeout"},
        {{"train"}, "nothing to train"},
        {{"--strategy", "gossip", "train", "tiny.yaml"},
         "--strategy is an option of `train`; write it after that word: `trireme launch train ... "
         "--strategy`"},
        {{"--no-quiet", "train", "tiny.yaml"}, "--no-quiet is an option of `train`"},
        {{"-s", "name=x", "train", "tiny.yaml"}, "-s is an option of `train`"},
        {{"--strategi", "gossip", "train", "tiny.yaml"}, "unknown option --strategi;"},
        {{"-n", "--quiet", "train", "tiny.yaml"}, "-n: \"--quiet\" is not an integer"}, /* it is the value */
        {{"train", "tiny.yaml", "--transport", "mpi"}, "give --transport to launch"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const *a = cases[i].arguments;
        struct session session;
        int code = run(&session, "launch", "-n", "2", a[0], a[1], a[2], a[3], NULL);
        expect_error(2, cases[i].message, &session, code);
        session_release(&session);
    }
    struct session session;
    int code = run(&session, "launch", "--transport", "local", "--hosts", "a:2", "-n", "2", "train",
                   "tiny.yaml", NULL);
    expect_error(2, "--transport local is for processes of this host", &session, code);
    session_release(&session);
    code = run(&session, "train", "tiny.yaml", "--transport", "local", NULL);
    expect_error(2, "is for processes that `trireme launch` starts", &session, code);
    session_release(&session);
    assert_int_equal(run(&session, "launch", "-n", "2", "train", "--help", NULL), 0);
    assert_non_null(strstr(session.text[0], "trireme train [options]"));
    session_release(&session);
}

static void test_stragglers_are_checked(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"1", "is not a rank and a factor"},
        {"0:", "is not a rank and a factor"},
        {":2", "is not a rank and a factor"},
        {"x:2", "is not a rank and a factor"},
        {"7:2", "there is no rank 7"},
        {"-1:2", "there is no rank -1"},
        {"0:0.5", "cannot be 0.5 times slower"},
        {"0:2:3", "is not a rank and a factor"},
        {"0:1e300", "cannot be 1e+300 times slower; give 1 to 1e+06"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct session session;
        int code = run(&session, "train", "tiny.yaml", "-o", "slow", "--slow", wrong[i][0], NULL);
        expect_error(2, wrong[i][1], &session, code);
        session_release(&session);
    }
}

/* All processes, and all attempts, share the one directory that is made for the launch. */
static void test_a_launch_has_a_number(void **state)
{
    (void)state;
    struct session session;
    skip_without_mpi();
    for (int i = 1; i <= 2; i++) {
        char line[64];
        assert_int_equal(run(&session, "launch", "-n", "2", "train", "tiny.yaml", "-o", "auto", "--steps",
                             "2", "--set", "name=numbered", NULL),
                         0);
        snprintf(line, sizeof line, "\noutput      runs/numbered-%d\n", i);
        assert_non_null(strstr(session.text[0], line));
        session_release(&session);
    }
    assert_false(tr_file_exists("runs/numbered-3"));
    expect_exit(2, "launch", "-n", "2", "train", "tiny.yaml", "-o", "auto", "--set", "name=numbered", "--set",
                "data.train.idx.labels=nowhere");
    assert_false(tr_file_exists("runs/numbered-3"));
    expect_exit(2, "train", "tiny.yaml", "--transport", "mpi", "--out", "auto");
}

static void test_continue_begins_and_goes_on(void **state)
{
    (void)state;
    struct session session;
    char hash[65];
    alone(hash);
    expect_exit(0, "train", "tiny.yaml", "-o", "again", "--steps", "5", MICROBATCHES, "--continue");
    assert_int_equal(
        run(&session, "train", "tiny.yaml", "-o", "again", "--steps", "12", MICROBATCHES, "--continue", NULL),
        0);
    assert_non_null(strstr(session.text[0], "\nresumed "));
    assert_string_equal(hash_in(session.text[0]), hash);
    session_release(&session);
    /* Not even by --overwrite is lost what was found. */
    assert_int_equal(run(&session, "train", "tiny.yaml", "-o", "again", "--steps", "12", MICROBATCHES,
                         "--continue", "--overwrite", NULL),
                     0);
    assert_non_null(strstr(session.text[0], "step 12"));
    assert_string_equal(hash_in(session.text[0]), hash);
    session_release(&session);
}

static void test_a_terminated_job_saves_and_goes_on(void **state)
{
    (void)state;
    struct session session;
    char hash[65];
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
    assert_int_equal(session_end(&session), 3);
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

/* ---- by a stand-in for mpirun ---- */

/* For a program that finds this script as mpirun. */
static struct setup setup_by(const char *mpirun)
{
    static char path[2048];
    static const char *const environment[] = {path, NULL};
    char directory[512];
    assert_non_null(getcwd(directory, sizeof directory));
    snprintf(path, sizeof path, "PATH=%s/stand-in:%s", directory, getenv("PATH"));
    (void)mkdir("stand-in", 0700);
    write_text("stand-in/mpirun", mpirun);
    assert_int_equal(chmod("stand-in/mpirun", 0755), 0);
    return (struct setup){.environment = environment};
}

/* Processes of a job continue without one that dies only where the user asks for it, and an asynchronous
   strategy does by itself. */
static void test_processes_outlive_others_on_demand(void **state)
{
    static const struct {
        const char *on_loss, *strategy;
        bool outlives;
    } jobs[] = {{"stop", "allreduce", false},
                {"shrink", "allreduce", true},
                {"shrink", "parameter-server,mode=async", false}};
    struct session session;
    struct tr_file_content content;
    (void)state;
    skip_without_mpi();
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        (void)run_with(&session, setup_by("#!/bin/sh\nenv > environment\n"), "launch", "--transport", "mpi",
                       "-n", "3", "--on-loss", jobs[i].on_loss, "train", "tiny.yaml", "-o", "outlives",
                       "--strategy", jobs[i].strategy, MICROBATCHES, NULL);
        if (!tr_file_exists("environment")) session_show(&session);
        assert_int_equal(tr_file_read("environment", 1 << 20, &content), TR_OK);
        assert_non_null(strstr(content.data, "TRIREME_TRANSPORT=mpi\n"));
        if ((strstr(content.data, "TRIREME_OUTLIVES=true\n") != NULL) != jobs[i].outlives)
            fail_msg("--on-loss %s, %s: %s", jobs[i].on_loss, jobs[i].strategy, content.data);
        tr_file_content_free(&content);
        session_release(&session);
        assert_int_equal(unlink("environment"), 0);
    }
}

/* ---- what plans ask other hosts ---- */

/* One of two processes says in a line how fast they talk: seconds, and bytes a second. */
static void test_processes_tell_how_fast_they_talk(void **state)
{
    (void)state;
    struct session session;
    double latency, rate, overhead, copying;
    int read = 0;
    skip_without_mpi();
    int code = run(&session, "launch", "--transport", "mpi", "-n", "2", "plan", "tiny.yaml", "--probe", NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    assert_int_equal(sscanf(session.text[0],
                            "{\"latency\":%lf,\"rate\":%lf,\"overhead\":%lf,\"copying\":%lf}\n%n", &latency,
                            &rate, &overhead, &copying, &read),
                     4);
    assert_int_equal(read, session.size[0]);
    assert_true(latency > 0 && latency < 1 && overhead >= 0 && overhead < 1 && rate > 1e4 && copying > 1e4);
    session_release(&session);
    code = run(&session, "launch", "--transport", "mpi", "-n", "3", "plan", "tiny.yaml", "--probe", NULL);
    assert_int_equal(code, 2);
    assert_non_null(strstr(session.text[1], "--probe is for two processes"));
    assert_string_equal(session.text[0], "");
    session_release(&session);
}

static int plan_on(struct session *session, const char *hosts, const char *mpirun)
{
    return run_with(session, setup_by(mpirun), "plan", "tiny.yaml", "--hosts", hosts, "--workers", "1",
                    "--strategies", "allreduce", "--seconds", "0", "--json", "hosts.json", NULL);
}

/* A process on each of the first two hosts is asked, and what they answer is the network of the plan. */
static void test_plans_ask_two_hosts(void **state)
{
    static const char mpirun[] =
        "#!/bin/sh\necho \"$*\" > asked\n"
        "echo '{\"latency\":0.00125,\"rate\":5e7,\"overhead\":2.5e-05,\"copying\":4e9}'\n";
    static const char *const parts[] = {"\"hosts\": 3,", "\"ranks_per_host\": 4,",
                                        "\"between_hosts\": {\n"
                                        "      \"latency_seconds\": 0.00125,\n"
                                        "      \"bytes_per_second\": 5e+07,\n"
                                        "      \"overhead_seconds\": 2.5e-05,\n"
                                        "      \"waking_seconds\": 0,\n"
                                        "      \"copied_bytes_per_second\": 4e+09\n"};
    struct session session;
    struct tr_file_content content;
    (void)state;
    skip_without_mpi();
    int code = plan_on(&session, "one:4,two:2,three", mpirun);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    session_release(&session);
    assert_int_equal(tr_file_read("hosts.json", 1 << 20, &content), TR_OK);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!strstr(content.data, parts[i])) fail_msg("no %s in %s", parts[i], content.data);
    tr_file_content_free(&content);
    assert_int_equal(tr_file_read("asked", 1 << 16, &content), TR_OK);
    assert_non_null(strstr(content.data, "one:1,two:1 "));
    assert_non_null(strstr(content.data, " plan tiny.yaml --probe"));
    tr_file_content_free(&content);
    assert_int_equal(unlink("hosts.json"), 0);
    /* An answer without a speed is none. */
    static const char *const answers[] = {"#!/bin/sh\necho '{\"latency\":0.00125,\"rate\":0}'\n",
                                          "#!/bin/sh\nexit 0\n"};
    for (int i = 0; i < 2; i++) {
        code = plan_on(&session, "one:4,two:2", answers[i]);
        expect_error(1, "--hosts one:4,two:2: the network could not be measured", &session, code);
        session_release(&session);
        assert_int_equal(access("hosts.json", F_OK), -1);
    }
    static const char *const lone[] = {"one", "one:4,", "one:0,two"};
    for (int i = 0; i < 3; i++) {
        code = plan_on(&session, lone[i], mpirun);
        expect_error(2, "name at least two hosts", &session, code);
        session_release(&session);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes_share_one_hash),
        cmocka_unit_test(test_processes_under_mpi_share_it_too),
        cmocka_unit_test(test_outputs_that_cannot_be_written_are_refused_first),
        cmocka_unit_test(test_more_processes_than_microbatches_are_refused),
        cmocka_unit_test(test_a_missing_launcher_is_named),
        cmocka_unit_test(test_processes_tell_how_fast_they_talk),
        cmocka_unit_test(test_processes_outlive_others_on_demand),
        cmocka_unit_test(test_plans_ask_two_hosts),
        cmocka_unit_test(test_wrong_commands_are_refused_first),
        cmocka_unit_test(test_stragglers_are_checked),
        cmocka_unit_test(test_a_launch_has_a_number),
        cmocka_unit_test(test_continue_begins_and_goes_on),
        cmocka_unit_test(test_a_terminated_job_saves_and_goes_on),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
