/* trireme plan: runs that check a plan, and what is said of rows that there are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/plan/plan.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "cli/session.h"

/* A run of some steps is the beginning of the training, whose schedule may be longer than the run. */
static void test_schedules_do_not_end_with_a_run(void **state)
{
    (void)state;
    static const char *const schedules[] = {"optimizer.schedule={kind: cosine, warmup: 150000}",
                                            "optimizer.schedule={kind: plateau, factor: 0.5, patience: 1}"};
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        struct session session;
        int code = run(&session, "plan", "tiny.yaml", "--set", schedules[i], "--set", "train.steps=200000",
                       "--set", "train.evaluate_every=10", "--workers", "1", "--strategies", "allreduce",
                       "--seconds", "0", "--verify", "--runs", "1", NULL);
        if (code != 0 || !strstr(session.text[0], "measured ")) session_show(&session);
        assert_int_equal(code, 0);
        assert_non_null(strstr(session.text[0], "measured "));
        assert_null(strstr(session.text[0], "failed"));
        session_release(&session);
    }
}

/* Rows that are left out for one reason are named in one line. */
static void test_reasons_are_said_once(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, "plan", "tiny.yaml", "--workers", "1", "--seconds", "0", NULL);
    const char *reason = "a single process has nobody to share with", *text = session.text[0];
    const char *first = code == 0 ? strstr(text, reason) : NULL;
    if (!first) session_show(&session);
    assert_non_null(first);
    assert_null(strstr(first + 1, reason));
    assert_non_null(strstr(text, "left out on 1 worker: easgd,replicas=1; "));
    assert_non_null(strstr(text, "gossip,replicas=1; "));
    assert_non_null(strstr(text, "local-sgd,replicas=1; "));
    session_release(&session);
}

/* With --grow two workers compute twice the batch, and what they are compared with is one process and its
 * batch. */
static void test_batches_grow(void **state)
{
    (void)state;
    static const char *const rows[] = {"\"workers\": 1,\n      \"processes\": 1,\n      \"batch\": 10,",
                                       "\"workers\": 2,\n      \"processes\": 2,\n      \"batch\": 20,"};
    for (int grows = 0; grows < 2; grows++) {
        struct session session;
        struct tr_file_content json;
        int code = run(&session, "plan", "tiny.yaml", "--workers", "2", "--strategies", "allreduce",
                       "--seconds", "0", "--json", "grown.json", grows ? "--grow" : NULL, NULL);
        if (code != 0) session_show(&session);
        assert_int_equal(code, 0);
        session_release(&session);
        assert_int_equal(tr_file_read("grown.json", 1 << 20, &json), TR_OK);
        assert_non_null(strstr(json.data, rows[0]));
        assert_int_equal(strstr(json.data, rows[1]) != NULL, grows);
        tr_file_content_free(&json);
    }
}

/* The rows are those of the numbers of workers that are asked for, else of powers of two up to all of the
 * cluster, which --simulate may exceed. */
static void test_numbers_of_workers(void **state)
{
    static const char cluster[] = "hosts: 3\nranks_per_host: 2\nlocal_rate: 5\nlocal_latency: 1\n";
    static const char key[] = "\"workers\":";
    static const struct {
        const char *option, *value;
        int workers[5]; /* then 0 */
    } cases[] = {
        {"--workers", "0", {1, 2, 4, 6}}, {"--workers", "1", {1}},
        {"--workers", "2", {1, 2}}, /* what one process does is always there to compare with */
        {"--workers", "5,3", {1, 5, 3}},  {"--simulate", "1", {1}},
        {"--simulate", "7", {1, 7}},
    };
    struct session session;
    (void)state;
    assert_int_equal(tr_file_write_atomic(NULL, "cluster.yaml", cluster, strlen(cluster)), TR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code =
            run(&session, "plan", "tiny.yaml", cases[i].option, cases[i].value, "--cluster", "cluster.yaml",
                "--strategies", "allreduce", "--seconds", "0", "--json", "rows.json", NULL);
        struct tr_file_content json;
        if (code != 0) session_show(&session);
        assert_int_equal(code, 0);
        session_release(&session);
        assert_int_equal(tr_file_read("rows.json", 1 << 20, &json), TR_OK);
        const char *at = json.data;
        for (int k = 0; k < 5; k++) {
            at = strstr(at, key);
            if ((at ? atoi(at += strlen(key)) : 0) != cases[i].workers[k])
                fail_msg("%s %s: %s", cases[i].option, cases[i].value, (const char *)json.data);
            if (!at) break;
        }
        tr_file_content_free(&json);
    }
    int code = run(&session, "plan", "tiny.yaml", "--workers", "2,0", NULL);
    expect_error(2, "numbers of workers: 0 stands alone for all that there may be", &session, code);
    session_release(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedules_do_not_end_with_a_run),
        cmocka_unit_test(test_reasons_are_said_once),
        cmocka_unit_test(test_batches_grow),
        cmocka_unit_test(test_numbers_of_workers),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
