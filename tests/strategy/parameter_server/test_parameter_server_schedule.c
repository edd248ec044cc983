/* The rules of the asynchronous parameter server, played through at random: whatever the speeds of the
 * workers and whoever is lost, every contribution counts once, no gradient is staler than allowed, nobody
 * waits for ever. */
#include "strategy/parameter_server/credits.h"
#include "strategy/parameter_server/next.h"
#include "strategy/parameter_server/schedule.h"

#include "base/alloc.h"
#include "base/numbers/rng.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define WORKERS 7
#define UPDATES 60

struct game {
    struct ps_schedule_settings settings;
    ps_schedule *schedule;
    uint32_t chance;
    struct ps_work work[WORKERS]; /* number -1: none */
    bool asked[WORKERS], lost[WORKERS];
    int living;
    int taken[UPDATES * WORKERS]; /* how often each number was */
    int64_t dropped, stalest;
};

static uint32_t draw(struct game *game, uint32_t below)
{
    uint32_t words[4];
    tr_rng_philox(tr_rng_key_make(7, TR_RNG_DELAY), game->chance++, 0, 0, 0, words);
    return words[0] % below;
}

static void begin(struct game *game, struct ps_schedule_settings settings, uint32_t chance)
{
    *game = (struct game){.settings = settings, .chance = chance, .living = settings.workers};
    for (int w = 0; w < WORKERS; w++) game->work[w].number = -1;
    assert_int_equal(ps_schedule_create(&settings, &game->schedule), TR_OK);
}

static int working(const struct game *game)
{
    int count = 0;
    for (int w = 0; w < game->settings.workers; w++) count += game->work[w].number >= 0;
    return count;
}

static void hand_out(struct game *game)
{
    struct ps_work work;
    while (ps_schedule_next(game->schedule, true, &work)) {
        assert_true(game->asked[work.worker]);
        assert_int_equal(work.version, ps_schedule_count(game->schedule));
        game->asked[work.worker] = false;
        game->work[work.worker] = work;
    }
}

static void take(struct game *game, int worker)
{
    const struct ps_schedule_settings *settings = &game->settings;
    int64_t before = ps_schedule_count(game->schedule), number = game->work[worker].number;
    struct ps_taken taken = ps_schedule_take(game->schedule, worker);
    assert_int_equal(taken.number, number);
    assert_int_equal(taken.missed, before - game->work[worker].version);
    assert_int_equal(ps_schedule_count(game->schedule), before + taken.completes);
    game->work[worker].number = -1;
    if (taken.late) {
        assert_true(settings->drops && taken.missed > 0);
        game->dropped++;
        return;
    }
    assert_true(taken.missed <= settings->staleness);
    assert_true(!settings->drops || taken.missed == 0);
    if (taken.missed > game->stalest) game->stalest = taken.missed;
    game->taken[number - settings->first * settings->parts]++;
}

/* Something happens to a worker that lives: it asks, its gradient comes (the sooner the lower its rank), or
   it is lost. */
static void happen(struct game *game, uint32_t losses)
{
    int worker = (int)draw(game, (uint32_t)game->settings.workers);
    if (game->lost[worker]) return;
    if (game->work[worker].number < 0 && !game->asked[worker]) {
        ps_schedule_ask(game->schedule, worker);
        game->asked[worker] = true;
    } else if (game->living > 1 && losses > 0 && draw(game, losses) == 0) {
        int64_t number = ps_schedule_lose(game->schedule, worker);
        assert_int_equal(number, game->work[worker].number);
        game->work[worker].number = -1;
        game->asked[worker] = false;
        game->lost[worker] = true;
        game->living--;
    } else if (game->work[worker].number >= 0 && draw(game, 1u << worker) == 0) {
        take(game, worker);
    }
}

static void play(struct game *game, uint32_t losses)
{
    const struct ps_schedule_settings *settings = &game->settings;
    while (!ps_schedule_is_over(game->schedule)) {
        hand_out(game);
        bool all_asked = true;
        for (int w = 0; w < settings->workers; w++)
            all_asked = all_asked && (game->lost[w] || game->asked[w] || game->work[w].number >= 0);
        /* Where everybody has asked, somebody works. */
        if (all_asked) assert_true(working(game) > 0);
        happen(game, losses);
    }
    assert_int_equal(ps_schedule_count(game->schedule), settings->end);
    for (int64_t i = 0; i < (settings->end - settings->first) * settings->parts; i++)
        if (game->taken[i] != 1)
            fail_msg("contribution %lld of %d workers was taken %d times", (long long)i, settings->workers,
                     game->taken[i]);
    ps_schedule_destroy(&game->schedule);
}

static void every_contribution_counts_once(void **state)
{
    (void)state;
    struct game game;
    uint32_t chance = 0;
    for (int workers = 1; workers <= WORKERS; workers++)
        for (int64_t staleness = -1; staleness <= 8; staleness++)
            for (uint32_t losses = 0; losses <= 40; losses += 20) {
                begin(
                    &game,
                    (struct ps_schedule_settings){.workers = workers,
                                                  .first = 5,
                                                  .end = 5 + UPDATES,
                                                  .parts = 1,
                                                  .staleness = staleness < 0 ? PS_STALENESS_ANY : staleness},
                    chance);
                play(&game, losses);
                chance = game.chance;
                if (staleness >= 0) assert_true(game.stalest <= staleness);
                assert_int_equal(game.dropped, 0);
            }
}

static void backups_drop_what_is_late(void **state)
{
    (void)state;
    struct game game;
    uint32_t chance = 1000000;
    for (int workers = 1; workers <= WORKERS; workers++)
        for (int backup = 0; backup < workers; backup++)
            for (uint32_t losses = 0; losses <= 40; losses += 20) {
                begin(&game,
                      (struct ps_schedule_settings){.workers = workers,
                                                    .first = 3,
                                                    .end = 3 + UPDATES,
                                                    .parts = workers - backup,
                                                    .staleness = PS_STALENESS_ANY,
                                                    .drops = true},
                      chance);
                play(&game, losses);
                chance = game.chance;
                /* The highest worker is up to 64 times slower than the lowest. */
                if (losses == 0 && backup > 0) assert_true(game.dropped > 0);
            }
}

/* Without a bound, the slowest worker's gradients miss many updates: the bound is what kept them fresh above.
 */
static void staleness_is_what_it_is(void **state)
{
    (void)state;
    struct game game;
    begin(&game,
          (struct ps_schedule_settings){
              .workers = WORKERS, .end = UPDATES, .parts = 1, .staleness = PS_STALENESS_ANY},
          5);
    play(&game, 0);
    assert_true(game.stalest > 8);
}

/* Two workers and a bound of 2, by hand. */
static void a_worker_waits_for_a_slower_one(void **state)
{
    (void)state;
    ps_schedule *schedule;
    struct ps_work work;
    struct ps_schedule_settings settings = {.workers = 2, .end = 100, .parts = 1, .staleness = 2};
    assert_int_equal(ps_schedule_create(&settings, &schedule), TR_OK);
    ps_schedule_ask(schedule, 0);
    ps_schedule_ask(schedule, 1);
    assert_true(ps_schedule_next(schedule, true, &work) && work.worker == 0 && work.number == 0);
    assert_true(ps_schedule_next(schedule, true, &work) && work.worker == 1 && work.number == 1);
    for (int64_t round = 1; round <= 2; round++) {
        assert_int_equal(ps_schedule_take(schedule, 0).missed, 0);
        ps_schedule_ask(schedule, 0);
        /* Worker 1 has missed `round` updates, and would miss another one with this. */
        if (round == 1)
            assert_true(ps_schedule_next(schedule, true, &work) && work.worker == 0 && work.version == 1);
    }
    assert_false(ps_schedule_next(schedule, true, &work));
    assert_int_equal(ps_schedule_take(schedule, 1).missed, 2);
    assert_true(ps_schedule_next(schedule, true, &work) && work.worker == 0 && work.number == 3);
    ps_schedule_destroy(&schedule);
}

/* Three workers of which one is a backup, by hand: nobody gives twice in an update while others can complete
   it, and somebody does where they cannot. */
static void a_backup_gives_twice_in_need_alone(void **state)
{
    (void)state;
    ps_schedule *schedule;
    struct ps_work work;
    struct ps_schedule_settings settings = {
        .workers = 3, .end = 100, .parts = 2, .staleness = PS_STALENESS_ANY, .drops = true};
    assert_int_equal(ps_schedule_create(&settings, &schedule), TR_OK);
    for (int w = 0; w < 3; w++) ps_schedule_ask(schedule, w);
    for (int w = 0; w < 3; w++) expect_next(schedule, w, w, 0);
    assert_true(ps_schedule_take(schedule, 0).first);
    ps_schedule_ask(schedule, 0);
    assert_false(ps_schedule_next(schedule, true, &work)); /* two others are at it */
    assert_true(ps_schedule_take(schedule, 1).completes);
    /* Worker 2 is late: what it works at counts for no update to come. */
    expect_next(schedule, 0, 3, 1);
    assert_false(ps_schedule_take(schedule, 0).completes);
    ps_schedule_ask(schedule, 0);
    expect_next(schedule, 0, 4, 1);
    ps_schedule_ask(schedule, 1);
    expect_next(schedule, 1, 5, 1);
    /* The number of what came too late is handed out again. */
    assert_true(ps_schedule_take(schedule, 2).late);
    ps_schedule_ask(schedule, 2);
    expect_next(schedule, 2, 2, 1);
    assert_true(ps_schedule_take(schedule, 0).completes);
    ps_schedule_destroy(&schedule);

    /* Others are lost one after the other. */
    assert_int_equal(ps_schedule_create(&settings, &schedule), TR_OK);
    for (int w = 0; w < 3; w++) ps_schedule_ask(schedule, w);
    for (int w = 0; w < 3; w++) expect_next(schedule, w, w, 0);
    ps_schedule_take(schedule, 0);
    ps_schedule_ask(schedule, 0);
    assert_int_equal(ps_schedule_lose(schedule, 1), 1);
    assert_false(ps_schedule_next(schedule, true, &work)); /* the backup completes it */
    assert_int_equal(ps_schedule_lose(schedule, 2), 2);
    expect_next(schedule, 0, 1, 0);
    assert_true(ps_schedule_take(schedule, 0).completes);
    ps_schedule_destroy(&schedule);
}

/* Without room, those who need none go first, and the one that had asked before gets the next room. */
static void whoever_needs_room_waits_for_it(void **state)
{
    (void)state;
    static const bool distant[] = {true, false, true};
    ps_schedule *schedule;
    struct ps_work work;
    struct ps_schedule_settings settings = {
        .workers = 3, .end = 100, .parts = 1, .staleness = PS_STALENESS_ANY, .distant = distant};
    assert_int_equal(ps_schedule_create(&settings, &schedule), TR_OK);
    for (int w = 0; w < 3; w++) ps_schedule_ask(schedule, w);
    assert_true(ps_schedule_next(schedule, false, &work) && work.worker == 1 && work.number == 0);
    assert_false(ps_schedule_next(schedule, false, &work));
    assert_true(ps_schedule_next(schedule, true, &work) && work.worker == 0);
    assert_true(ps_schedule_next(schedule, true, &work) && work.worker == 2);
    ps_schedule_destroy(&schedule);
}

/* ---- room for what goes by messages ---- */

/* Workers ask, are given room, give it back and are lost, at random: never more have room than there is, none
   is idle while somebody waits, and nobody who asked later is served before. */
static void room_goes_around_in_the_order_of_asking(void **state)
{
    (void)state;
    struct game game = {.chance = 77};
    for (int count = 1; count <= 4; count++) {
        ps_credits *credits;
        int queue[WORKERS], waiting = 0, having = 0;
        bool has[WORKERS] = {false}, waits[WORKERS] = {false};
        int64_t served[WORKERS] = {0};
        assert_int_equal(ps_credits_create(WORKERS, count, &credits), TR_OK);
        for (int turn = 0; turn < 4000; turn++) {
            int worker = (int)draw(&game, WORKERS), next;
            if (!has[worker] && !waits[worker]) {
                ps_credits_ask(credits, worker);
                waits[worker] = true;
                queue[waiting++] = worker;
            } else if (has[worker] || draw(&game, 8) == 0) {
                ps_credits_leave(credits, worker);
                having -= has[worker];
                int kept = 0;
                for (int i = 0; i < waiting; i++)
                    if (queue[i] != worker) queue[kept++] = queue[i];
                waiting = kept;
                has[worker] = waits[worker] = false;
            }
            while (ps_credits_next(credits, &next)) {
                assert_true(waiting > 0 && next == queue[0]);
                for (int i = 1; i < waiting; i++) queue[i - 1] = queue[i];
                waiting--;
                waits[next] = false;
                has[next] = true;
                served[next]++;
                having++;
            }
            assert_int_equal(ps_credits_free(credits), count - having);
            assert_true(waiting == 0 || having == count);
        }
        for (int w = 0; w < WORKERS; w++) assert_true(served[w] > 4000 / WORKERS / 8);
        ps_credits_destroy(&credits);
    }
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    struct ps_schedule_settings settings = {.workers = 2, .end = 1, .parts = 1};
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        ps_schedule *schedule;
        refuse_begin(at);
        tr_status status = ps_schedule_create(&settings, &schedule);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        ps_schedule_destroy(&schedule);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_contribution_counts_once),
        cmocka_unit_test(backups_drop_what_is_late),
        cmocka_unit_test(staleness_is_what_it_is),
        cmocka_unit_test(a_worker_waits_for_a_slower_one),
        cmocka_unit_test(a_backup_gives_twice_in_need_alone),
        cmocka_unit_test(whoever_needs_room_waits_for_it),
        cmocka_unit_test(room_goes_around_in_the_order_of_asking),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("strategy.parameter_server_schedule", tests, NULL, NULL);
}
