/* Turns by hand: who gets work, room or a piece of an evaluation next, and what becomes of what was given
 * back. */
#include "strategy/parameter_server/credits.h"
#include "strategy/parameter_server/evaluation/assignment.h"
#include "strategy/parameter_server/next.h"
#include "strategy/parameter_server/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* ---- work ---- */

static ps_schedule *make(int workers, int64_t first, int64_t end, int parts, int64_t staleness, bool drops)
{
    ps_schedule *schedule;
    const struct ps_schedule_settings settings = {.workers = workers,
                                                  .first = first,
                                                  .end = end,
                                                  .parts = parts,
                                                  .staleness = staleness,
                                                  .drops = drops};
    assert_int_equal(ps_schedule_create(&settings, &schedule), 0);
    return schedule;
}

static void expect_none(ps_schedule *schedule)
{
    struct ps_work work = {-1, -1, -1};
    assert_false(ps_schedule_next(schedule, true, &work));
    assert_int_equal(work.worker, -1);
}

static void expect_taken(ps_schedule *schedule, int worker, struct ps_taken expected)
{
    struct ps_taken taken = ps_schedule_take(schedule, worker);
    assert_int_equal(taken.number, expected.number);
    assert_int_equal(taken.missed, expected.missed);
    assert_int_equal(taken.late, expected.late);
    assert_int_equal(taken.completes, expected.completes);
    assert_int_equal(taken.first, expected.first);
    assert_false(ps_schedule_works(schedule, worker));
    assert_false(ps_schedule_waits(schedule, worker));
}

/* Two updates of two parts each are left: contributions 6 to 9. */
static void work_goes_to_who_asked_first(void **state)
{
    (void)state;
    ps_schedule *schedule = make(3, 3, 5, 2, PS_STALENESS_ANY, false);
    assert_int_equal(ps_schedule_count(schedule), 3);
    expect_none(schedule);
    for (int w = 2; w >= 0; w--) ps_schedule_ask(schedule, w);
    for (int w = 0; w < 3; w++)
        assert_true(ps_schedule_waits(schedule, w) && !ps_schedule_works(schedule, w));
    expect_next(schedule, 2, 6, 3);
    ps_schedule_withdraw(schedule, 1);
    assert_false(ps_schedule_waits(schedule, 1));
    expect_next(schedule, 0, 7, 3);
    expect_none(schedule);
    expect_taken(schedule, 0, (struct ps_taken){.number = 7, .first = true});
    assert_int_equal(ps_schedule_count(schedule), 3);
    ps_schedule_ask(schedule, 1);
    ps_schedule_ask(schedule, 0);
    expect_next(schedule, 1, 8, 3);
    expect_taken(schedule, 2, (struct ps_taken){.number = 6, .completes = true});
    assert_int_equal(ps_schedule_count(schedule), 4);
    assert_false(ps_schedule_is_exhausted(schedule));
    expect_next(schedule, 0, 9, 4);
    assert_true(ps_schedule_is_exhausted(schedule)); /* but not over */
    assert_false(ps_schedule_is_over(schedule));
    ps_schedule_ask(schedule, 2);
    expect_none(schedule);
    expect_taken(schedule, 1, (struct ps_taken){.number = 8, .missed = 1, .first = true});
    expect_taken(schedule, 0, (struct ps_taken){.number = 9, .completes = true});
    assert_true(ps_schedule_is_over(schedule) && ps_schedule_is_exhausted(schedule));
    expect_none(schedule);
    ps_schedule_destroy(&schedule);
    assert_null(schedule);
    ps_schedule_destroy(&schedule);

    schedule = make(1, 7, 7, 1, 0, false);
    assert_true(ps_schedule_is_over(schedule));
    ps_schedule_ask(schedule, 0);
    expect_none(schedule);
    ps_schedule_destroy(&schedule);
}

/* What lost workers had is done by others, the lowest first. */
static void lost_work_comes_first(void **state)
{
    (void)state;
    ps_schedule *schedule = make(5, 0, 9, 1, PS_STALENESS_ANY, false);
    for (int w = 0; w < 4; w++) ps_schedule_ask(schedule, w);
    for (int w = 0; w < 3; w++) expect_next(schedule, w, w, 0);
    assert_int_equal(ps_schedule_lose(schedule, 4), -1); /* idle */
    assert_int_equal(ps_schedule_lose(schedule, 3), -1); /* waiting */
    assert_false(ps_schedule_waits(schedule, 3));
    expect_none(schedule);
    assert_int_equal(ps_schedule_lose(schedule, 2), 2);
    assert_int_equal(ps_schedule_lose(schedule, 1), 1);
    assert_false(ps_schedule_works(schedule, 1));
    expect_taken(schedule, 0, (struct ps_taken){.number = 0, .completes = true, .first = true});
    for (int64_t number = 1; number < 5; number++) {
        ps_schedule_ask(schedule, 0);
        expect_next(schedule, 0, number, number);
        expect_taken(schedule, 0, (struct ps_taken){.number = number, .completes = true, .first = true});
    }
    ps_schedule_destroy(&schedule);
}

static void nobody_begins_who_could_become_stale(void **state)
{
    (void)state;
    for (int64_t staleness = 0; staleness < 3; staleness++) {
        ps_schedule *schedule = make(4, 0, 99, 1, staleness, false);
        for (int w = 0; w < 4; w++) ps_schedule_ask(schedule, w);
        /* Each that is under way may miss all others. */
        for (int w = 0; w <= staleness; w++) expect_next(schedule, w, w, 0);
        expect_none(schedule);
        expect_taken(schedule, 0, (struct ps_taken){.number = 0, .completes = true, .first = true});
        /* The others have missed one. */
        if (staleness == 0)
            expect_next(schedule, 1, 1, 1);
        else
            expect_none(schedule);
        ps_schedule_destroy(&schedule);
    }
}

/* ---- room ---- */

static void room_is_counted(void **state)
{
    (void)state;
    ps_credits *credits;
    int worker = -1;
    assert_int_equal(ps_credits_create(4, 2, &credits), 0);
    assert_int_equal(ps_credits_free(credits), 2);
    assert_false(ps_credits_next(credits, &worker));
    ps_credits_ask(credits, 3);
    ps_credits_take(credits, 1); /* before one that waits */
    assert_true(ps_credits_has(credits, 1));
    assert_false(ps_credits_has(credits, 3));
    assert_int_equal(ps_credits_free(credits), 1);
    ps_credits_ask(credits, 0);
    assert_true(ps_credits_next(credits, &worker));
    assert_int_equal(worker, 3);
    assert_true(ps_credits_has(credits, 3));
    assert_int_equal(ps_credits_free(credits), 0);
    assert_false(ps_credits_next(credits, &worker));
    ps_credits_ask(credits, 2);
    ps_credits_leave(credits, 0); /* it waits no longer, and had none */
    assert_int_equal(ps_credits_free(credits), 0);
    ps_credits_leave(credits, 1);
    assert_false(ps_credits_has(credits, 1));
    assert_int_equal(ps_credits_free(credits), 1);
    ps_credits_leave(credits, 1);
    assert_int_equal(ps_credits_free(credits), 1);
    assert_true(ps_credits_next(credits, &worker));
    assert_int_equal(worker, 2);
    assert_false(ps_credits_next(credits, &worker));
    ps_credits_destroy(&credits);
    assert_null(credits);
    ps_credits_destroy(&credits);
    assert_int_equal(ps_credits_create(3, 0, &credits), 0);
    ps_credits_ask(credits, 1);
    assert_false(ps_credits_next(credits, &worker));
    ps_credits_destroy(&credits);
}

/* ---- pieces of an evaluation ---- */

static void expect_told(ps_assignment *assignment, int worker, int64_t piece)
{
    int who = -1;
    int64_t what = -1;
    assert_true(ps_assignment_tell(assignment, &who, &what));
    assert_int_equal(who, worker);
    assert_int_equal(what, piece);
}

static void pieces_come_to_the_root(void **state)
{
    (void)state;
    ps_assignment *assignment = NULL;
    int who;
    int64_t what;
    assert_false(ps_assignment_is_open(assignment));
    ps_assignment_lose(assignment, 1);
    assert_int_equal(ps_assignment_create(4, 4, &assignment), 0);
    assert_true(ps_assignment_is_open(assignment));
    assert_false(ps_assignment_is_over(assignment));
    assert_false(ps_assignment_found(assignment, 2)); /* it has none */
    for (int w = 3; w >= 0; w--) assert_int_equal(ps_assignment_draw(assignment, w), 3 - w);
    assert_false(ps_assignment_is_open(assignment));
    assert_false(ps_assignment_tell(assignment, &who, &what));
    assert_true(ps_assignment_found(assignment, 2));
    assert_true(ps_assignment_found(assignment, 0)); /* the root's own is not told */
    expect_told(assignment, 2, 1);
    assert_false(ps_assignment_tell(assignment, &who, &what));
    assert_false(ps_assignment_is_over(assignment));
    /* Two are lost with theirs, which were 2 and 0; one that has none changes nothing. */
    ps_assignment_lose(assignment, 1);
    ps_assignment_lose(assignment, 3);
    ps_assignment_lose(assignment, 3);
    assert_true(ps_assignment_is_open(assignment));
    assert_int_equal(ps_assignment_draw(assignment, 2), 0);
    assert_true(ps_assignment_is_open(assignment));
    assert_int_equal(ps_assignment_draw(assignment, 0), 2);
    assert_false(ps_assignment_is_open(assignment));
    assert_true(ps_assignment_found(assignment, 0));
    assert_false(ps_assignment_is_over(assignment));
    assert_true(ps_assignment_found(assignment, 2));
    assert_false(ps_assignment_is_over(assignment)); /* the root does not know yet */
    expect_told(assignment, 2, 0);
    assert_true(ps_assignment_is_over(assignment));
    ps_assignment_destroy(&assignment);
    assert_null(assignment);
    ps_assignment_destroy(&assignment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_goes_to_who_asked_first),
        cmocka_unit_test(lost_work_comes_first),
        cmocka_unit_test(nobody_begins_who_could_become_stale),
        cmocka_unit_test(room_is_counted),
        cmocka_unit_test(pieces_come_to_the_root),
    };
    return cmocka_run_group_tests_name("strategy.turns", tests, NULL, NULL);
}
