/* How long another rank of this host has been silent, as a rank counts it whose clock this test turns: its
 * own pauses are nobody's silence. Whose end it finds. */
#include "comm/local/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "comm/location.h"
#include "support/files/descriptors.h"

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

/* A process that shows in the record of rank 1 where it is, and waits. */
static pid_t start_rank_1(const struct local_area *area)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        tr_location_here(&area->record[1].location);
        if (write(ends[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return child;
}

static void wait_for_end(const struct local_area *area, int rank)
{
    double deadline = __real_tr_clock_seconds() + 300;
    while (atomic_load(&area->record[rank].ended) == 0) {
        if (__real_tr_clock_seconds() > deadline) fail_msg("the end of rank %d is not found", rank);
        sched_yield();
    }
}

/* The end of a process is found while it is watched, or at the start; a later process with its number is
   another one. What cannot be looked at, on other machines or by numbers that are none, counts as alive. */
static void ends_are_found(void **state)
{
    enum { SIZE = 6 };
    static const int64_t none[] = {0, (int64_t)INT32_MAX + 1};
    (void)state;
    struct local_area area;
    struct local_watch *watch;
    const int before = descriptors_open();
    assert_int_equal(tr_local_area_create(SIZE, &area), TR_OK);
    for (int r = 0; r < SIZE; r++) {
        tr_location_here(&area.record[r].location);
        if (r > 0) area.record[r].location.began++;
    }
    const pid_t child = start_rank_1(&area);
    area.record[3].location.machine[0] ^= 1;
    for (int i = 0; i < 2; i++) area.record[4 + i].location.process = none[i];
    assert_int_equal(tr_local_watch_start(&area, 0, INTERVAL, &watch), TR_OK);
    for (int r = 0; r < SIZE; r++) assert_int_equal(atomic_load(&area.record[r].ended), r == 2);
    assert_int_equal(kill(child, SIGKILL), 0);
    wait_for_end(&area, 1);
    assert_int_equal(waitpid(child, NULL, 0), child);
    for (int r = 0; r < SIZE; r++) assert_int_equal(atomic_load(&area.record[r].ended), r == 1 || r == 2);
    tr_local_watch_stop(&watch);
    tr_local_area_close(&area);
    assert_int_equal(descriptors_open(), before);
}

/* Of the descriptors that a process may have, an eighth is for this; the next ranks are watched then. */
static void few_descriptors_watch_few(void **state)
{
    enum { SIZE = 6, RANK = 3 };
    (void)state;
    struct local_area area;
    struct local_watch *watch;
    struct rlimit whole, limit;
    const int before = descriptors_open();
    const int64_t live = tr_alloc_live();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &whole), 0);
    for (int count = 3; count <= 5; count++) {
        assert_int_equal(tr_local_area_create(SIZE, &area), TR_OK);
        for (int r = 0; r < SIZE; r++) {
            tr_location_here(&area.record[r].location);
            if (r != RANK) area.record[r].location.began++; /* ended before */
        }
        limit = whole;
        limit.rlim_cur = (rlim_t)(8 * count);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        const tr_status status = tr_local_watch_start(&area, RANK, INTERVAL, &watch);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &whole), 0);
        assert_int_equal(status, TR_OK);
        for (int i = 0; i < SIZE; i++)
            assert_int_equal(atomic_load(&area.record[(RANK + i) % SIZE].ended), i > 0 && i <= count);
        tr_local_watch_stop(&watch);
        tr_local_area_close(&area);
    }
    assert_int_equal(tr_local_area_create(SIZE, &area), TR_OK);
    limit.rlim_cur = descriptors_limit(0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const tr_status status = tr_local_watch_start(&area, RANK, INTERVAL, &watch);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &whole), 0);
    assert_int_equal(status, TR_ENOMEM);
    assert_null(watch);
    assert_string_equal(tr_error_message(),
                        "cannot have a descriptor to watch other ranks by: Too many open files");
    tr_local_area_close(&area);
    assert_int_equal(descriptors_open(), before);
    assert_int_equal(tr_alloc_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_counted),
        cmocka_unit_test(a_pause_of_its_own_blames_nobody),
        cmocka_unit_test(ends_are_found),
        cmocka_unit_test(few_descriptors_watch_few),
    };
    return cmocka_run_group_tests_name("comm.local_watch", tests, NULL, NULL);
}
