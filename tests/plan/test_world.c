/* The time of a world: it passes as ranks say, in one order, whatever the machine does. */
#include "plan/world.h"

#include "base/clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define RANKS 5
#define MOST  64

static struct {
    tr_world *world;
    int order[MOST], count; /* ranks as they come */
    double time[MOST];
    uint64_t seen;
} play;

static void note(int rank)
{
    assert_true(play.count < MOST);
    play.order[play.count] = rank;
    play.time[play.count++] = tr_clock_seconds();
}

static void run(int ranks, tr_world_main main)
{
    play.count = 0;
    assert_int_equal(tr_world_create(ranks, &play.world), TR_OK);
    assert_int_equal(tr_world_run(play.world, main, NULL), TR_OK);
    tr_world_destroy(&play.world);
}

/* Rank r needs r + 1 seconds for a round, of which there are two. */
static void compute(void *user, int rank)
{
    (void)user;
    for (int i = 0; i < 2; i++) {
        tr_world_spend(play.world, rank + 1);
        tr_world_pass(play.world);
        note(rank);
    }
}

static void ranks_come_in_the_order_of_their_times(void **state)
{
    (void)state;
    static const int order[] = {0, 1, 0, 2, 3, 1, 4, 2, 3, 4};
    static const double time[] = {1, 2, 2, 3, 4, 4, 5, 6, 8, 10};
    double before = tr_clock_seconds();
    run(RANKS, compute);
    assert_int_equal(play.count, 10);
    for (int i = 0; i < 10; i++) {
        assert_true(play.time[i] == time[i]);
        /* Who announced its alarm first comes first where times are equal. */
        if (i != 1 && i != 2 && i != 4 && i != 5) assert_int_equal(play.order[i], order[i]);
    }
    assert_true(tr_clock_seconds() - before < 1e6); /* and the thread's clock is the system's again */
}

/* Rank 0 sleeps for up to 100 s; rank 1 has news for it after 3 s, and an event after 7 s. */
static void wake(void *user, void *what, double time)
{
    (void)user;
    assert_true(time == 7);
    tr_world_wake(play.world, *(int *)what);
}

static void listen(void *user, int rank)
{
    static int first;
    (void)user;
    if (rank == 1) {
        assert_true(tr_world_at(play.world, 7, wake, NULL, &first));
        tr_world_spend(play.world, 3);
        assert_true(tr_world_now(play.world) == 3); /* to itself it has passed */
        tr_world_pass(play.world);
        tr_world_wake(play.world, 0);
        return;
    }
    for (int i = 0; i < 2; i++) {
        tr_world_sleep(play.world, tr_world_moment(play.world, 0), 100);
        note(0);
    }
    /* News that came before it asked lets it sleep not at all, and with none it sleeps to the end. */
    tr_world_sleep(play.world, tr_world_moment(play.world, 0) - 1, 100);
    note(0);
    tr_world_sleep(play.world, tr_world_moment(play.world, 0), 100);
    note(0);
}

static void news_wakes_sleepers(void **state)
{
    (void)state;
    static const double time[] = {3, 7, 7, 107};
    run(2, listen);
    assert_int_equal(play.count, 4);
    for (int i = 0; i < 4; i++) assert_true(play.time[i] == time[i]);
}

/* What is spent passes in pieces, as news comes. */
static void work(void *user, int rank)
{
    (void)user;
    if (rank == 1) {
        tr_world_spend(play.world, 2);
        tr_world_pass(play.world);
        tr_world_wake(play.world, 0);
        return;
    }
    tr_world_spend(play.world, 5);
    tr_world_pass_until_news(play.world, tr_world_moment(play.world, 0));
    note(0);
    assert_true(tr_world_debt(play.world) == 3);
    tr_world_pass(play.world);
    note(0);
    assert_true(tr_world_spent(play.world, 0) == 5);
}

static void news_interrupts_work(void **state)
{
    (void)state;
    run(2, work);
    assert_true(play.time[0] == 5 && play.time[1] == 5); /* it looks at its time as if all had passed */
    assert_int_equal(play.count, 2);
}

/* Ranks 0 to 2 have two processors, rank 3 its own: three that work get two thirds of a processor each. */
static void crowd(void *user, int rank)
{
    static const double seconds[] = {3, 3, 1, 3};
    (void)user;
    tr_world_spend(play.world, seconds[rank]);
    if (rank == 0) {
        tr_world_pass_until_news(play.world, tr_world_moment(play.world, 0));
        play.time[MOST - 1] = tr_world_debt(play.world);
    }
    tr_world_pass(play.world);
    if (rank == 3) tr_world_wake(play.world, 0);
    note(rank);
}

/* Each takes `demand` processors while it is busy; they are through at these times, one after the other. */
static void expect_crowd(double demand, const double *time)
{
    play.count = 0;
    assert_int_equal(tr_world_create(4, &play.world), TR_OK);
    assert_int_equal(tr_world_share(play.world, 2, (const int[]){0, 3, 4}, 2, demand), TR_OK);
    assert_int_equal(tr_world_run(play.world, crowd, NULL), TR_OK);
    tr_world_destroy(&play.world);
    assert_int_equal(play.count, 4);
    for (int i = 0; i < 4; i++) assert_true(fabs(play.time[i] - time[i]) < 1e-9);
}

static void ranks_share_processors(void **state)
{
    (void)state;
    static const int order[] = {2, 3, 0, 1};
    static const double time[] = {1.5, 3, 3.5, 3.5};
    expect_crowd(1, time);
    for (int i = 0; i < 2; i++) assert_int_equal(play.order[i], order[i]);
    assert_true(fabs(play.time[MOST - 1] - 0.5) < 1e-9); /* what rank 0 had left when rank 3 was through */
}

/* A rank that is busy takes more than one processor, as its threads beside the one that computes do. */
static void demands_may_be_broken(void **state)
{
    (void)state;
    static const double time[] = {1.875, 3, 4.375, 4.375}; /* three at 8/15, then two at 4/5 */
    expect_crowd(1.25, time);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_come_in_the_order_of_their_times),
        cmocka_unit_test(news_wakes_sleepers),
        cmocka_unit_test(news_interrupts_work),
        cmocka_unit_test(ranks_share_processors),
        cmocka_unit_test(demands_may_be_broken),
    };
    return cmocka_run_group_tests_name("plan.world", tests, NULL, NULL);
}
