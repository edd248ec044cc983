/* One attempt at a job: what notes make of it, when it has to be over, and what is passed on of its output.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/launch/steps.h"

/* ---- notes ---- */

static void say_started(struct cli_job *job)
{
    assert_false(job->end->started);
    note("started 77");
}

static void say_begun(struct cli_job *job)
{
    assert_true(job->end->started);
    assert_false(job->end->begun);
    assert_int_equal(job->end->step, -1);
    note("begun 0");
}

static void say_step(struct cli_job *job)
{
    assert_true(job->end->begun);
    assert_int_equal(job->end->step, 0);
    assert_int_equal(job->end->saved, -1); /* there is none of step 0 */
    note("step 5");
}

static void say_saved(struct cli_job *job)
{
    assert_int_equal(job->end->step, 5);
    assert_int_equal(job->end->saved, -1);
    note("saved 8");
}

static void say_unheard(struct cli_job *job)
{
    assert_int_equal(job->end->step, 8);
    assert_int_equal(job->end->saved, 8);
    assert_false(job->end->unheard);
    note("unheard 0");
}

static void say_ended(struct cli_job *job)
{
    assert_true(job->end->unheard);
    assert_false(job->end->ended);
    assert_true(job->over == 0);
    note("ended 4");
    attempt_clock = 1234;
}

static void see_ended(struct cli_job *job)
{
    assert_true(job->end->ended);
    assert_int_equal(job->end->code, 4);
    assert_true(job->over == 1234);
    attempt_clock = 1300;
    note("ended 3");
    note("lost 1");
    note("stopping 77");
}

static void see_it_again(struct cli_job *job)
{
    assert_true(job->over == 1234); /* it was over before */
    assert_int_equal(job->end->code, 3);
}

static void notes_say_how_far_it_came(void **state)
{
    static const step steps[] = {say_started, say_begun, say_step,     say_saved, say_unheard,
                                 say_ended,   see_ended, see_it_again, NULL};
    (void)state;
    struct cli_job_end end = run((struct cli_job_orders){.grows = true}, steps);
    assert_int_equal(heard, 9);
    assert_int_equal(looks, 9);
    assert_int_equal(stops + quits, 0);
    assert_int_equal(end.code, 3);
    assert_false(end.grows);
    attempt_expect_said("");
    launcher.hear = NULL; /* it need not listen */
    end = run((struct cli_job_orders){0}, steps);
    assert_int_equal(end.code, 3);
    launcher.hear = fake_hear;
}

static void say_resumed(struct cli_job *job)
{
    (void)job;
    note("begun 7");
}

static void see_resumed(struct cli_job *job)
{
    assert_int_equal(job->end->step, 7);
    assert_int_equal(job->end->saved, 7);
}

static void what_it_begins_with_is_saved(void **state)
{
    static const step steps[] = {say_resumed, see_resumed, NULL};
    (void)state;
    run((struct cli_job_orders){0}, steps);
}

/* ---- deadlines ---- */

static void say_lost(struct cli_job *job)
{
    (void)job;
    note("lost 1");
}

static void see_over(struct cli_job *job)
{
    assert_true(job->over == 1000);
    assert_true(cli_job_last_call(job) == 1010);
    attempt_clock = 1003;
    note("step 9");
}

static void see_over_still(struct cli_job *job)
{
    assert_true(job->over == 1000);
    assert_true(cli_job_last_call(job) == 1010);
}

/* Others of a tolerant job go on, which the root's steps tell, however far apart they are. */
static void say_a_step(struct cli_job *job)
{
    assert_true(job->over == 1000 && job->pause == 0);
    attempt_clock = 1004;
    note("step 9");
}

static void say_a_later_one(struct cli_job *job)
{
    assert_true(job->over == 0 && job->heard == 1004 && job->pause == 0);
    attempt_clock = 1010;
    note("saved 10");
}

static void say_one_soon(struct cli_job *job)
{
    assert_true(job->over == 0 && job->heard == 1010 && job->pause == 6);
    attempt_clock = 1011;
    note("step 11");
}

static void lose_it_again(struct cli_job *job)
{
    assert_true(job->pause == 6); /* the longest */
    note("lost 2");
}

static void end_it(struct cli_job *job)
{
    assert_true(job->over == 1011);
    assert_true(cli_job_last_call(job) == 1011 + 10 + 2 * 6);
    note("ended 0");
    note("step 12");
}

static void see_the_end(struct cli_job *job)
{
    assert_true(job->over == 1011); /* no step begins it anew */
}

static void the_last_call_has_a_time(void **state)
{
    static const step strict[] = {say_lost, see_over, see_over_still, NULL};
    static const step tolerant[] = {say_lost,      say_a_step, say_a_later_one, say_one_soon,
                                    lose_it_again, end_it,     see_the_end,     NULL};
    (void)state;
    run((struct cli_job_orders){0}, strict);
    run((struct cli_job_orders){.tolerant = true}, tolerant);
}

/* ---- fewer processes ---- */

static void say_fewer(struct cli_job *job)
{
    (void)job;
    note("fewer 2");
}

static void a_job_that_grows_is_stopped_once(void **state)
{
    static const step steps[] = {say_fewer, say_fewer, NULL};
    static const step stopped[] = {interrupt, say_fewer, NULL};
    (void)state;
    assert_true(run((struct cli_job_orders){.grows = true}, steps).grows);
    assert_int_equal(stops, 1);
    assert_false(run((struct cli_job_orders){0}, steps).grows);
    assert_int_equal(stops, 0);
    run((struct cli_job_orders){.grows = true}, stopped); /* it was asked already */
    assert_int_equal(stops, 1);
}

/* ---- output ---- */

static void say_a_half(struct cli_job *job)
{
    (void)job;
    say("one\nha");
}

static void see_one(struct cli_job *job)
{
    attempt_expect_said("one\n");
    job->look_at = INFINITY; /* what has no end is shown when nothing more comes */
}

static void see_a_half(struct cli_job *job)
{
    (void)job;
    attempt_expect_said("one\nha");
    say("lf\nrest");
}

static void close_it(struct cli_job *job)
{
    attempt_expect_said("one\nhalf\n");
    close(writer);
    writer = -1;
    assert_true(job->output[0].descriptor >= 0);
}

static void see_it_closed(struct cli_job *job)
{
    attempt_expect_said("one\nhalf\nrest");
    assert_int_equal(job->output[0].descriptor, -1);
}

static void say_o(struct cli_job *job)
{
    (void)job;
    say("o");
}

static void say_k(struct cli_job *job)
{
    assert_int_equal(job->output[0].length, 1); /* a single byte was read */
    say("k\n");
}

static void see_ok(struct cli_job *job)
{
    (void)job;
    attempt_expect_said("ok\n");
}

static void bytes_come_one_by_one(void **state)
{
    static const step steps[] = {say_o, say_k, see_ok, NULL};
    (void)state;
    run((struct cli_job_orders){0}, steps);
    attempt_expect_said("ok\n");
}

static void lines_are_passed_on(void **state)
{
    static const step steps[] = {say_a_half, see_one, see_a_half, close_it, see_it_closed, NULL};
    (void)state;
    run((struct cli_job_orders){0}, steps);
    attempt_expect_said("one\nhalf\nrest");
}

/* More than is read at once, and what comes at the very end. */
static void say_much(struct cli_job *job)
{
    static char line[20001];
    (void)job;
    memset(line, 'y', sizeof line - 2);
    line[sizeof line - 2] = '\n';
    say(line);
}

static tr_status start_with_last_words(struct cli_job *job)
{
    tr_status status = fake_start(job);
    if (status == TR_OK) say("last words");
    return status;
}

static void all_is_read_to_its_end(void **state)
{
    static const step steps[] = {say_much, NULL}, none[] = {NULL};
    (void)state;
    run((struct cli_job_orders){0}, steps);
    assert_int_equal(strlen(attempt_said()), 20000);
    launcher.start = start_with_last_words;
    run((struct cli_job_orders){0}, none);
    launcher.start = fake_start;
    attempt_expect_said("last words");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_say_how_far_it_came), cmocka_unit_test(what_it_begins_with_is_saved),
        cmocka_unit_test(the_last_call_has_a_time),  cmocka_unit_test(a_job_that_grows_is_stopped_once),
        cmocka_unit_test(lines_are_passed_on),       cmocka_unit_test(bytes_come_one_by_one),
        cmocka_unit_test(all_is_read_to_its_end),
    };
    return cmocka_run_group_tests_name("cli.job", tests, attempt_prepare, attempt_drop);
}
