/* The time of a world: it passes as ranks say, in one order, whatever the machine does. */
#include "plan/world/world.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/threads/clock.h"
#include "sanitized.h"
#include "support/addresses.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
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

static int64_t allowed = INT64_MAX; /* allocations of a world that runs */
static int refuse_others(size_t size, void *user)
{
    (void)size, (void)user;
    return allowed-- <= 0;
}

static tr_status run_refused(int ranks, tr_world_main main)
{
    play.count = 0;
    assert_int_equal(tr_world_create(ranks, &play.world), TR_OK);
    tr_alloc_set_hook(refuse_others, NULL);
    const tr_status status = tr_world_run(play.world, main, NULL);
    tr_alloc_set_hook(NULL, NULL);
    tr_world_destroy(&play.world);
    return status;
}

static void run(int ranks, tr_world_main main)
{
    assert_int_equal(run_refused(ranks, main), TR_OK);
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

/* Ranks 0 to 2 have two processors, rank 3 its own: rank 2 comes to the first of them, which rank 0 has, and
   they go on by turns. */
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

/* `hosts` with ranks from first[h] on and `processors` each, of which a rank that is busy takes `demand`.
   They are through at these times, one after the other. */
static void expect_shared(int hosts, const int *first, int processors, double demand, tr_world_main main,
                          const double *time)
{
    int ranks = first[hosts];
    play.count = 0;
    assert_int_equal(tr_world_create(ranks, &play.world), TR_OK);
    assert_int_equal(tr_world_share(play.world, hosts, first, processors, demand), TR_OK);
    assert_int_equal(tr_world_run(play.world, main, NULL), TR_OK);
    tr_world_destroy(&play.world);
    assert_int_equal(play.count, ranks);
    for (int i = 0; i < ranks; i++)
        if (fabs(play.time[i] - time[i]) > 1e-9) fail_msg("%d: %.6f s, not %.6f", i, play.time[i], time[i]);
}

static void ranks_share_processors(void **state)
{
    (void)state;
    static const double time[] = {1.999, 3, 3, 4}; /* turns of 3 ms; rank 2 has the first one */
    expect_shared(2, (const int[]){0, 3, 4}, 2, 1, crowd, time);
    assert_int_equal(play.order[0], 2);
    assert_int_equal(play.order[3], 0);
    assert_true(fabs(play.time[MOST - 1] - 1) < 1e-9); /* what rank 0 had left when rank 3 was through */
}

/* A rank that is busy takes more than one processor, as its threads beside the one that computes do. */
static void demands_may_be_broken(void **state)
{
    (void)state;
    /* Two at 4/5 of their speed, until rank 1 is through; rank 3 has enough all the time. */
    static const double time[] = {2.498, 3, 3.75, 4.75};
    expect_shared(2, (const int[]){0, 3, 4}, 2, 1.25, crowd, time);
}

/* Rank 2 awakes after a millisecond, and rank 0 makes way for it; when rank 1 is through, rank 0 goes on in
   its place. */
static void awake(void *user, int rank)
{
    static const double seconds[] = {10e-3, 2e-3, 1.5e-3};
    (void)user;
    if (rank == 2) tr_world_rest(play.world, 1e-3);
    tr_world_spend(play.world, seconds[rank]);
    tr_world_pass(play.world);
    note(rank);
}

static void who_awakes_comes_first(void **state)
{
    (void)state;
    static const double time[] = {2e-3, 2.5e-3, 11e-3};
    static const int order[] = {1, 2, 0};
    expect_shared(1, (const int[]){0, 3}, 2, 1, awake, time);
    for (int i = 0; i < 3; i++) assert_int_equal(play.order[i], order[i]);
}

/* On one processor: rank 0 hears of rank 1's news when it has the processor again. */
static void tell(void *user, int rank)
{
    (void)user;
    if (rank == 1) {
        tr_world_rest(play.world, 1e-3);
        tr_world_wake(play.world, 0);
        tr_world_spend(play.world, 2e-3);
        tr_world_pass(play.world);
    } else {
        tr_world_spend(play.world, 10e-3);
        tr_world_pass_until_news(play.world, tr_world_moment(play.world, 0));
        assert_true(fabs(tr_world_debt(play.world) - 9e-3) < 1e-9);
        tr_world_pass(play.world);
    }
    note(rank);
}

static void news_waits_for_a_processor(void **state)
{
    (void)state;
    static const double time[] = {3e-3, 12e-3};
    expect_shared(1, (const int[]){0, 2}, 1, 1, tell, time);
    assert_int_equal(play.order[0], 1);
}

/* On one processor, where rank 2 is through within its turn: the next one has a whole turn from then on. */
static void end_early(void *user, int rank)
{
    static const double seconds[] = {10e-3, 10e-3, 2e-3};
    (void)user;
    tr_world_spend(play.world, seconds[rank]);
    tr_world_pass(play.world);
    note(rank);
}

static void turns_begin_with_their_rank(void **state)
{
    (void)state;
    static const double time[] = {2e-3, 21e-3, 22e-3};
    expect_shared(1, (const int[]){0, 3}, 1, 1, end_early, time);
    for (int i = 0; i < 3; i++) assert_int_equal(play.order[i], (2 + i) % 3);
}

/* Ranks 0 and 2 began on the same one of two processors. */
static void move(void *user, int rank)
{
    (void)user;
    if (rank == 1) return;
    tr_world_spend(play.world, 5e-3);
    tr_world_pass(play.world);
    note(rank);
}

static void nobody_waits_while_one_is_free(void **state)
{
    (void)state;
    play.count = 0;
    assert_int_equal(tr_world_create(3, &play.world), TR_OK);
    assert_int_equal(tr_world_share(play.world, 1, (const int[]){0, 3}, 2, 1), TR_OK);
    assert_int_equal(tr_world_run(play.world, move, NULL), TR_OK);
    tr_world_destroy(&play.world);
    assert_int_equal(play.count, 2);
    for (int i = 0; i < 2; i++) assert_true(fabs(play.time[i] - 5e-3) < 1e-9);
}

/* Rank 2 interrupts rank 0, which goes on when it is through, though rank 1 has waited longer for the other
   processor; that one's ranks part when rank 0 is through, too. */
static void interrupt(void *user, int rank)
{
    static const double seconds[] = {3e-3, 10e-3, 0.5e-3, 10e-3};
    (void)user;
    if (rank == 2) tr_world_rest(play.world, 1e-3);
    tr_world_spend(play.world, seconds[rank]);
    tr_world_pass(play.world);
    note(rank);
}

static void who_was_interrupted_goes_on(void **state)
{
    (void)state;
    static const double time[] = {1.5e-3, 3.5e-3, 10.5e-3, 13e-3};
    static const int order[] = {2, 0, 3, 1};
    expect_shared(1, (const int[]){0, 4}, 2, 1, interrupt, time);
    for (int i = 0; i < 4; i++) assert_int_equal(play.order[i], order[i]);
}

static int began;
static void begin(void *user, int rank)
{
    (void)user, (void)rank;
    began++;
}

/* Where the system has no threads for all ranks, none begins. */
static void all_ranks_begin_or_none(void **state)
{
    enum { MANY = 1000 };
    (void)state;
    if (SANITIZED) skip(); /* their own memory counts, too */
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int started = 0, of = 0;
        tr_world *world;
        if (tr_world_create(MANY, &world) != TR_OK) _exit(1);
        if (!addresses_limit((size_t)20 << 20)) _exit(2);
        if (tr_world_run(world, begin, NULL) != TR_ENOMEM) _exit(3);
        if (sscanf(tr_error_message(), "the system gave threads for %d of %d ranks; simulate fewer", &started,
                   &of) != 2)
            _exit(4);
        if (started < 1 || started >= MANY || of != MANY || began != 0) _exit(5);
        tr_world_destroy(&world);
        _exit(0);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

static void lose(void *user, int rank)
{
    static int first;
    (void)user;
    if (rank == 0) tr_world_at(play.world, 7, wake, NULL, &first);
    tr_world_rest(play.world, 10);
    note(rank);
}

/* Ranks awake in their order where there is no memory to note when; what else would happen is lost, which is
 * told.
 */
static void ranks_awake_without_memory(void **state)
{
    for (int64_t most = 0; most < 10; most++) {
        allowed = most;
        ranks_come_in_the_order_of_their_times(state);
        allowed = most;
        news_interrupts_work(state);
        allowed = most;
        const tr_status status = run_refused(3, lose);
        assert_true(status == TR_OK || (status == TR_ENOMEM && most < 9));
        if (most == 0) assert_int_equal(status, TR_ENOMEM);
        if (status != TR_OK) assert_non_null(strstr(tr_error_message(), "what happens to 3 ranks"));
        assert_int_equal(play.count, 3);
        for (int i = 0; i < 3; i++) assert_true(play.order[i] == i && play.time[i] == 10);
    }
    allowed = INT64_MAX;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_come_in_the_order_of_their_times),
        cmocka_unit_test(news_wakes_sleepers),
        cmocka_unit_test(news_interrupts_work),
        cmocka_unit_test(ranks_share_processors),
        cmocka_unit_test(demands_may_be_broken),
        cmocka_unit_test(who_awakes_comes_first),
        cmocka_unit_test(news_waits_for_a_processor),
        cmocka_unit_test(turns_begin_with_their_rank),
        cmocka_unit_test(who_was_interrupted_goes_on),
        cmocka_unit_test(nobody_waits_while_one_is_free),
        cmocka_unit_test(all_ranks_begin_or_none),
        cmocka_unit_test(ranks_awake_without_memory),
    };
    return cmocka_run_group_tests_name("plan.world", tests, NULL, NULL);
}
