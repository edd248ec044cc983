/* The network between two hosts: which processes measure it, and what is heard of them. The program that is
 * started is this one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fail.h"
#include "cli/plan/plan.h"
#include "cli/play.h"
#include "scratch.h"

static const struct tr_path usual = {.latency = 1, .rate = 2, .overhead = 3, .copying = 4, .waking = 5};

#define FOUND "{\"latency\":0.25,\"rate\":8,\"overhead\":0.5,\"copying\":16}\n"

/* The first two hosts have a process each, whatever they have in the end. */
static void two_hosts_are_measured(void **state)
{
    static const struct {
        const char *hosts, *two;
        int count, each;
    } cases[] = {
        {"a:2,b:2", "a:1,b:1", 2, 2},
        {"a,b", "a:1,b:1", 2, 1},
        {"a:4,b:4,c:4", "a:1,b:1", 3, 4},
        {"ant:1,bee:3", "ant:1,bee:1", 2, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_path path = usual;
        struct tr_file_content content;
        char expected[256];
        int count = 0, each = 0;
        play_with(scratch_in("arguments"), "no line of JSON\n{\"rate\":0}\n" FOUND, "0");
        if (cli_plan_probe_hosts("job.yaml", cases[i].hosts, &count, &each, &path) != TR_OK)
            fail_msg("%s: %s", cases[i].hosts, tr_error_message());
        assert_int_equal(count, cases[i].count);
        assert_int_equal(each, cases[i].each);
        assert_true(path.latency == 0.25 && path.rate == 8 && path.overhead == 0.5 && path.copying == 16);
        assert_true(path.waking == 5); /* of which nothing was said */
        snprintf(expected, sizeof expected, "launch\n--hosts=%s\n--processes=2\nplan\njob.yaml\n--probe\n",
                 cases[i].two);
        assert_int_equal(tr_file_read(scratch_in("arguments"), 4096, &content), TR_OK);
        assert_string_equal(content.data, expected);
        tr_file_content_free(&content);
    }
}

/* Without an answer the path stays, and the last words say why. */
static void without_an_answer_there_is_a_reason(void **state)
{
    (void)state;
    for (int said = 0; said < 2; said++) {
        struct tr_path path = usual;
        int count, each;
        play_with(scratch_in("arguments"), "{\"rate\":0}\n", "7");
        if (said) setenv("PLAY_ERROR", "first\nno way to b\n", 1);
        assert_int_equal(cli_plan_probe_hosts("job.yaml", "a,b", &count, &each, &path), TR_EIO);
        unsetenv("PLAY_ERROR");
        assert_string_equal(tr_error_message(),
                            said ? "--hosts a,b: the network could not be measured: no way to b"
                                 : "--hosts a,b: the network could not be measured: exit code 7");
        assert_memory_equal(&path, &usual, sizeof path);
    }
}

static void one_host_has_no_network(void **state)
{
    struct tr_path path = usual;
    int count, each;
    (void)state;
    play_with(scratch_in("arguments"), FOUND, "0");
    assert_int_equal(cli_plan_probe_hosts("job.yaml", "a:4", &count, &each, &path), TR_EINVAL);
    assert_false(tr_file_exists(scratch_in("arguments")));
    assert_memory_equal(&path, &usual, sizeof path);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_hosts_are_measured),
        cmocka_unit_test(without_an_answer_there_is_a_reason),
        cmocka_unit_test(one_host_has_no_network),
    };
    if (is_played(argc)) return play(argv);
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
