/* Signals: the first ends a run in good order and the run goes on to the same hash; the second leaves at
 * once. */
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

#include "base/files/file.h"
#include "cli/session.h"

/* A run that does not end by itself, and reports so rarely that its pipe never fills. */
#define ENDLESS "--set", "train.steps=1000000000", "--set", "train.log_every=100000000"

static void start(struct session *session, struct setup setup, const char *const *arguments)
{
    setup.arguments = arguments;
    session_start(session, &setup);
    session_wait_for(session, 0, "step          1/");
}

/* The step after which the run says that it was stopped. */
static long stopped_after(const struct session *session)
{
    const char *at = strstr(session->text[1], "stopped after step ");
    if (!at) session_show(session);
    assert_non_null(at);
    return strtol(at + 19, NULL, 10);
}

/* Resumes `out` for some steps and demands the hash of an undisturbed run. */
static void expect_undisturbed(const char *out, long step)
{
    struct session session;
    char steps[32], other[64], hash[65];
    snprintf(steps, sizeof steps, "%ld", step + 7);
    snprintf(other, sizeof other, "%s-undisturbed", out);
    assert_int_equal(run(&session, "train", "--resume", out, "--steps", steps, "-t", "1", NULL), 0);
    strcpy(hash, hash_in(session.text[0]));
    session_release(&session);
    assert_int_equal(run(&session, "train", "tiny.yaml", "-o", other, "--steps", steps, NULL), 0);
    assert_string_equal(hash_in(session.text[0]), hash);
    session_release(&session);
}

static void test_a_signal_saves_and_leaves(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    static const char *const outs[] = {"interrupt", "terminate", "hangup"};
    for (int i = 0; i < 3; i++) {
        struct session session;
        const char *const arguments[] = {"train", "tiny.yaml", "--out", outs[i], ENDLESS, NULL};
        start(&session, (struct setup){0}, arguments);
        session_signal(&session, signals[i]);
        assert_int_equal(session_end(&session), 3);
        assert_non_null(strstr(session.text[1], "trireme train: finishing the step, saving"));
        assert_non_null(strstr(session.text[1], "--resume"));
        hash_in(session.text[0]);
        long step = stopped_after(&session);
        session_release(&session);
        expect_undisturbed(outs[i], step);
    }
}

/* timeout(1) and terminals may deliver one request twice. */
static void test_one_request_delivered_twice(void **state)
{
    (void)state;
    struct session session;
    const char *const arguments[] = {"train", "tiny.yaml", "--out", "twice", ENDLESS, NULL};
    start(&session, (struct setup){0}, arguments);
    session_signal(&session, SIGTERM);
    session_signal(&session, SIGTERM);
    assert_int_equal(session_end(&session), 3);
    session_release(&session);
}

/* A step that takes a second or more: the loops of ref over wide layers. */
static void test_a_second_signal_leaves_at_once(void **state)
{
    (void)state;
    struct session session;
    const char *const arguments[] = {"train",    "tiny.yaml",
                                     "--out",    "second",
                                     "--device", "ref",
                                     "--set",    "layers.0.units=6000",
                                     "--set",    "layers.2.dense=6000",
                                     "--set",    "train.batch=64",
                                     "--set",    "train.steps=100",
                                     "--set",    "train.log_every=1",
                                     "--log",    "json",
                                     NULL};
    session_start(&session, &(struct setup){.arguments = arguments});
    session_wait_for(&session, 0, "\"event\":\"start\"");
    usleep(50000);
    session_signal(&session, SIGINT);
    session_wait_for(&session, 1, "finishing the step");
    usleep(400000);
    session_signal(&session, SIGINT);
    assert_int_equal(session_end(&session), 130);
    assert_null(strstr(session.text[0], "\"event\":\"end\""));
    assert_false(tr_file_exists("second/checkpoint-00000001"));
    session_release(&session);
}

/* Whether the process has a handler for the signal. */
static bool catches(pid_t process, int number)
{
    char path[64], line[256];
    unsigned long long caught = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)process);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "SigCgt: %llx", &caught) == 1) break;
    if (file) fclose(file);
    return caught >> (number - 1) & 1;
}

/* Its first step would take days. */
static void test_a_straggler_wakes_up(void **state)
{
    (void)state;
    struct session session;
    const char *const arguments[] = {
        "train", "tiny.yaml",      "--out", "straggler",           "--slow", "0:1e6",
        "--set", "train.batch=60", "--set", "layers.0.units=2000", "--set",  "layers.2.dense=2000",
        NULL};
    session_start(&session, &(struct setup){.arguments = arguments});
    session_wait_for(&session, 0, "output ");
    while (!catches(session.process, SIGTERM)) usleep(10000);
    usleep(200000);
    session_signal(&session, SIGTERM);
    assert_int_equal(session_end(&session), 3);
    assert_int_equal(stopped_after(&session), 1);
    session_release(&session);
}

static void test_an_ignored_signal_stays_ignored(void **state)
{
    (void)state;
    struct session session;
    const char *const arguments[] = {"train", "tiny.yaml", "--out", "ignored", ENDLESS, NULL};
    start(&session, (struct setup){.ignores_interrupt = true}, arguments);
    session_signal(&session, SIGINT);
    usleep(100000);
    session_signal(&session, SIGTERM);
    assert_int_equal(session_end(&session), 3);
    char *first = strstr(session.text[1], "finishing the step");
    assert_non_null(first);
    assert_null(strstr(first + 1, "finishing the step"));
    session_release(&session);
}

static void test_json_says_so_too(void **state)
{
    (void)state;
    struct session session;
    const char *const arguments[] = {"train", "tiny.yaml", "--out", "json", "--log", "json", ENDLESS, NULL};
    session_start(&session, &(struct setup){.arguments = arguments});
    session_wait_for(&session, 0, "\"event\":\"step\"");
    session_signal(&session, SIGINT);
    assert_int_equal(session_end(&session), 3);
    assert_non_null(strstr(session.text[0], "\"event\":\"end\",\"status\":\"interrupted\",\"exit\":3,"));
    session_release(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_signal_saves_and_leaves),
        cmocka_unit_test(test_one_request_delivered_twice),
        cmocka_unit_test(test_a_second_signal_leaves_at_once),
        cmocka_unit_test(test_a_straggler_wakes_up),
        cmocka_unit_test(test_an_ignored_signal_stays_ignored),
        cmocka_unit_test(test_json_says_so_too),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
