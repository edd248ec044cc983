/* How long another rank of this host has been silent, as a rank counts it whose clock this test turns: its
 * own pauses are nobody's silence. */
#include "comm/local/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>

/* Seconds: between beats, of the watch's thread in real time, too; by which time goes on, which is enough for
   a beat and too short for a pause. */
#define INTERVAL 0.01
#define STEP     0.015

/* ---- the clock ---- */

double __real_tr_clock_seconds(void);
double __wrap_tr_clock_seconds(void);

static _Atomic double now = 1000;

double __wrap_tr_clock_seconds(void)
{
    return atomic_load(&now);
}

/* Turns it by `seconds` and waits until the watch has beaten at that time. */
static void pass(const struct local_area *area, double seconds)
{
    atomic_store(&now, atomic_load(&now) + seconds);
    int64_t time = (int64_t)(atomic_load(&now) * 1e9);
    double deadline = __real_tr_clock_seconds() + 300;
    while (atomic_load(&area->record[0].seen) < time) {
        if (__real_tr_clock_seconds() > deadline) fail_msg("the watch does not beat");
        sched_yield();
    }
}

static void go_on(const struct local_area *area, int beats)
{
    for (int i = 0; i < beats; i++) pass(area, STEP);
}

static void others_beat(const struct local_area *area)
{
    atomic_store(&area->record[1].seen, (int64_t)(atomic_load(&now) * 1e9));
}

static void expect_silence(const struct local_watch *watch, double least, double most)
{
    double silence = tr_local_watch_silence(watch, 1);
    if (silence < least || silence > most)
        fail_msg("rank 1 is silent for %g s, which should be %g to %g", silence, least, most);
}

/* ---- tests ---- */

/* Begins when the watch does; ends when the other rank beats. What is known is of the last beat but one, at
   least. */
static void silence_is_counted(void **state)
{
    (void)state;
    struct local_area area;
    struct local_watch *watch;
    assert_int_equal(tr_local_area_create(2, &area), TR_OK);
    assert_int_equal(tr_local_watch_start(&area, 0, INTERVAL, &watch), TR_OK);
    go_on(&area, 20);
    expect_silence(watch, 18 * STEP, 20.5 * STEP);
    others_beat(&area);
    expect_silence(watch, 0, 0);
    go_on(&area, 10);
    expect_silence(watch, 8 * STEP, 10.5 * STEP);
    tr_local_watch_stop(&watch);
    tr_local_area_close(&area);
}

/* A process that was stopped, or whose machine slept, heard nothing meanwhile: it blames nobody for that.
   What comes later counts from then on. */
static void a_pause_of_its_own_blames_nobody(void **state)
{
    (void)state;
    struct local_area area;
    struct local_watch *watch;
    assert_int_equal(tr_local_area_create(2, &area), TR_OK);
    assert_int_equal(tr_local_watch_start(&area, 0, INTERVAL, &watch), TR_OK);
    for (int pause = 1; pause <= 3; pause++) {
        others_beat(&area);
        go_on(&area, 2);
        pass(&area, 1000.0 * pause);
        go_on(&area, 2);
        expect_silence(watch, 0, 2.5 * STEP);
        go_on(&area, 30);
        expect_silence(watch, 30 * STEP, 32.5 * STEP);
    }
    tr_local_watch_stop(&watch);
    tr_local_area_close(&area);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_counted),
        cmocka_unit_test(a_pause_of_its_own_blames_nobody),
    };
    return cmocka_run_group_tests_name("comm.local_watch", tests, NULL, NULL);
}
