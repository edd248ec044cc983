/* The team: every member runs once per run, barriers hold, chunks tile their range, and teams larger than the
   machine still make progress. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/threads/team.h"
#include "sanitized.h"
#include "support/addresses.h"

#include <sched.h>
#include <stdatomic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct work {
    tr_team *team;
    int64_t runs[TR_TEAM_MAX]; /* written by its member only */
    atomic_int inside;
    int broken;
};

static void count_run(void *arguments, int member, int size)
{
    struct work *work = arguments;
    if (member < 0 || member >= size) abort();
    work->runs[member]++;
}

static void test_each_member_runs_once(void **state)
{
    (void)state;
    for (int size = 1; size <= 9; size += 2) {
        struct work work = {0};
        assert_int_equal(tr_team_create(size, &work.team), TR_OK);
        assert_int_equal(tr_team_size(work.team), size);
        for (int run = 1; run <= 2000; run++) {
            tr_team_run(work.team, count_run, &work);
            /* The caller sees what members wrote, and a member never runs ahead. */
            for (int i = 0; i < size; i++) assert_int_equal(work.runs[i], run);
        }
        tr_team_destroy(&work.team);
        assert_null(work.team);
    }
}

static _Thread_local int self;

static void count_and_compare(void *arguments, int member, int size)
{
    struct work *work = arguments;
    count_run(arguments, member, size);
    if (self == 0) self = member + 1; /* by the first chunk, whosever it is */
    if (self != member + 1) atomic_fetch_add(&work->inside, 1);
}

/* With many more members than processors some have not begun when others are done. */
static void test_late_members_are_helped(void **state)
{
    (void)state;
    enum { SIZE = 64, RUNS = 200 };
    struct work work = {0};
    assert_int_equal(tr_team_create(SIZE, &work.team), TR_OK);
    for (int run = 1; run <= RUNS; run++) {
        tr_team_run(work.team, count_and_compare, &work);
        for (int i = 0; i < SIZE; i++) assert_int_equal(work.runs[i], run);
    }
    assert_true(atomic_load(&work.inside) > 0);
    tr_team_destroy(&work.team);
}

/* Shares that may wait for each other must not be taken over by a thread that has one of its own to do: each
   runs on its member's thread, and on that alone, however late it is. */
static void test_together_nobody_is_helped(void **state)
{
    (void)state;
    enum { SIZE = 64, RUNS = 200 };
    struct work work = {0};
    assert_int_equal(tr_team_create(SIZE, &work.team), TR_OK);
    self = 0; /* the caller's, of another team */
    for (int run = 1; run <= RUNS; run++) {
        tr_team_run_together(work.team, count_and_compare, &work);
        for (int i = 0; i < SIZE; i++) assert_int_equal(work.runs[i], run);
    }
    assert_int_equal(atomic_load(&work.inside), 0);
    tr_team_destroy(&work.team);
}

static void meet(void *arguments, int member, int size)
{
    struct work *work = arguments;
    for (int round = 1; round <= 200; round++) {
        atomic_fetch_add(&work->inside, 1);
        tr_team_barrier(work->team, member);
        /* Everybody has come and nobody has gone on. */
        if (atomic_load(&work->inside) != round * size) work->broken = 1;
        tr_team_barrier(work->team, member);
    }
}

static void test_barrier(void **state)
{
    (void)state;
    for (int size = 1; size <= 8; size++) {
        struct work work = {0};
        assert_int_equal(tr_team_create(size, &work.team), TR_OK);
        for (int run = 0; run < 3; run++) {
            atomic_store(&work.inside, 0);
            tr_team_run_together(work.team, meet, &work);
            assert_false(work.broken);
        }
        tr_team_destroy(&work.team);
    }
}

static void test_wakes_after_sleep(void **state)
{
    (void)state;
    struct work work = {0};
    assert_int_equal(tr_team_create(3, &work.team), TR_OK);
    for (int run = 1; run <= 20; run++) {
        struct timespec rest = {0, 1000000}; /* long enough for every member to fall asleep */
        nanosleep(&rest, NULL);
        tr_team_run(work.team, count_run, &work);
        for (int i = 0; i < 3; i++) assert_int_equal(work.runs[i], run);
    }
    tr_team_destroy(&work.team);
}

struct idle {
    atomic_int calls, inside;
};

static bool count_idle(void *arguments)
{
    struct idle *idle = arguments;
    atomic_fetch_add(&idle->inside, 1);
    atomic_fetch_add(&idle->calls, 1);
    atomic_fetch_sub(&idle->inside, 1);
    return true;
}

/* Keeps the others waiting until they have done some idle work. */
static void wait_for_idle(void *arguments, int member, int size)
{
    struct idle *idle = arguments;
    (void)size;
    const int enough = atomic_load(&idle->calls) + 10;
    const time_t deadline = time(NULL) + 60;
    while (member == 1 && atomic_load(&idle->calls) < enough && time(NULL) < deadline) sched_yield();
}

/* Members that wait do idle work, again after it was taken away, and then nobody does any more. */
static void test_idle_work(void **state)
{
    (void)state;
    struct work work = {0};
    struct idle idle = {0};
    assert_int_equal(tr_team_create(3, &work.team), TR_OK);
    for (int round = 1; round <= 100; round++) {
        const int before = atomic_load(&idle.calls);
        tr_team_set_idle(work.team, count_idle, &idle);
        tr_team_run_together(work.team, wait_for_idle, &idle);
        tr_team_set_idle(work.team, NULL, NULL);
        const int calls = atomic_load(&idle.calls);
        assert_int_equal(atomic_load(&idle.inside), 0);
        assert_true(calls >= before + 10);
        for (int i = 0; i < 20; i++) tr_team_run(work.team, count_run, &work);
        assert_int_equal(atomic_load(&idle.calls), calls);
        for (int i = 0; i < 3; i++) assert_int_equal(work.runs[i], 20 * round);
    }
    tr_team_destroy(&work.team);
}

/* Of the last run a member may learn as late as of the end: it leaves, and does the run's work no more. */
static void test_ends_while_members_are_late(void **state)
{
    (void)state;
    enum { SIZE = 4, RUNS = 3 };
    for (int round = 0; round < 20000; round++) {
        struct work work = {0};
        assert_int_equal(tr_team_create(SIZE, &work.team), TR_OK);
        for (int run = 0; run < RUNS; run++) tr_team_run(work.team, count_run, &work);
        tr_team_destroy(&work.team);
        for (int i = 0; i < SIZE; i++) assert_int_equal(work.runs[i], RUNS);
    }
}

static void test_size_is_checked(void **state)
{
    (void)state;
    tr_team *team = NULL;
    assert_int_equal(tr_team_create(0, &team), TR_EINVAL);
    assert_int_equal(tr_team_create(TR_TEAM_MAX + 1, &team), TR_EINVAL);
    assert_null(team);
    tr_team_destroy(&team);
    int64_t live = tr_alloc_live();
    assert_int_equal(tr_team_create(TR_TEAM_MAX, &team), TR_OK);
    tr_team_destroy(&team);
    assert_int_equal(tr_alloc_live(), live);
}

/* Where the system has no room for a thread, those that have started leave again. */
static void test_threads_that_do_not_start(void **state)
{
    (void)state;
    if (SANITIZED) skip(); /* their own memory counts, too */
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tr_team *team = (tr_team *)1;
        const int64_t live = tr_alloc_live();
        pthread_attr_t attributes;
        size_t stack = 0;
        pthread_attr_init(&attributes);
        pthread_attr_getstacksize(&attributes, &stack);
        if (!addresses_limit(9 * stack / 2)) _exit(2);
        if (tr_team_create(TR_TEAM_MAX, &team) != TR_ENOMEM) _exit(3);
        if (team || tr_alloc_live() != live) _exit(4);
        if (!strstr(tr_error_message(), " of 256 could not start: ")) _exit(5);
        if (!strstr(tr_error_message(), "; use fewer threads")) _exit(6);
        if (tr_team_create(2, &team) != TR_OK) _exit(7);
        tr_team_destroy(&team);
        _exit(0);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

static void test_chunks_tile_the_range(void **state)
{
    (void)state;
    const int64_t counts[] = {0, 1, 2, 5, 16, 31, 97, 1000, INT64_C(3000000007)};
    const int64_t grains[] = {1, 3, 16, 64};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
        for (size_t g = 0; g < sizeof(grains) / sizeof(grains[0]); g++)
            for (int size = 1; size <= 9; size++) {
                int64_t next = 0, least = INT64_MAX, most = 0;
                for (int member = 0; member < size; member++) {
                    int64_t begin, end;
                    tr_team_chunk(counts[c], grains[g], member, size, &begin, &end);
                    assert_int_equal(begin, next);
                    assert_true(end >= begin && end <= counts[c]);
                    if (end < counts[c]) assert_int_equal(end % grains[g], 0);
                    int64_t taken = (end - begin + grains[g] - 1) / grains[g];
                    if (taken < least) least = taken;
                    if (taken > most) most = taken;
                    next = end;
                }
                assert_int_equal(next, counts[c]);
                assert_true(most - least <= 1);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_member_runs_once),       cmocka_unit_test(test_late_members_are_helped),
        cmocka_unit_test(test_together_nobody_is_helped),   cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_wakes_after_sleep),           cmocka_unit_test(test_idle_work),
        cmocka_unit_test(test_ends_while_members_are_late), cmocka_unit_test(test_size_is_checked),
        cmocka_unit_test(test_threads_that_do_not_start),   cmocka_unit_test(test_chunks_tile_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
