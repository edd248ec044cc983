/* The outbox of the parameter server: letters arrive in order, their memory is used again, and nobody waits
 * for a rank that is gone, once it had a moment. */
#include "strategy/parameter_server/mail.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/threads/clock.h"
#include "refuse.h"
#include "strategy/parameter_server/scene.h"
#include "support/comm_thread/thread.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SIZE = 3, TAG = 7, LETTERS = 5, LARGE = 1 << 20 };

static const struct tr_comm_settings settings = {.timeout = 300, .patience = 300};
static tr_comm *comm[SIZE];
static char large[LARGE], arrived[LETTERS][LARGE];

static int make(void **state)
{
    (void)state;
    for (int i = 0; i < LARGE; i++) large[i] = (char)(i * 7 % 251);
    return tr_comm_thread_create(SIZE, (const int[]){0, 1, 2}, &settings, comm) == TR_OK ? 0 : -1;
}

static void *destroy(void *rank)
{
    tr_comm_destroy(rank);
    return NULL;
}

/* Each by a thread of its own: they wait for each other. */
static int drop(void **state)
{
    (void)state;
    pthread_t thread[SIZE];
    for (int r = 0; r < SIZE; r++)
        if (pthread_create(&thread[r], NULL, destroy, &comm[r]) != 0) return -1;
    for (int r = 0; r < SIZE; r++) pthread_join(thread[r], NULL);
    return 0;
}

static size_t bytes_of(int letter)
{
    return letter % 2 ? LARGE : (size_t)letter + 1;
}

/* Rank 1 gets them all. */
static void *receive(void *user)
{
    tr_status *status = user;
    for (int i = 0; i < LETTERS && *status == TR_OK; i++) {
        tr_ticket *ticket = NULL;
        *status = tr_comm_receive(comm[1], 0, TAG, arrived[i], bytes_of(i), "letter", &ticket);
        if (*status == TR_OK) *status = tr_comm_wait(comm[1], &ticket);
    }
    return NULL;
}

static void letters_arrive_and_are_used_again(void **state)
{
    (void)state;
    struct ps_outbox outbox = {.comm = comm[0]};
    pthread_t thread;
    tr_status status = TR_OK;
    assert_int_equal(pthread_create(&thread, NULL, receive, &status), 0);
    for (int i = 0; i < LETTERS; i++) {
        char copy[LETTERS];
        memset(copy, 'a' + i, sizeof copy);
        const void *data = bytes_of(i) == LARGE ? (const void *)large : copy;
        assert_int_equal(ps_outbox_send(&outbox, 1, TAG, data, bytes_of(i), "letter"), TR_OK);
        memset(copy, 0, sizeof copy); /* the caller's again */
        if (i >= 2) assert_int_equal(ps_outbox_flush(&outbox), TR_OK);
    }
    pthread_join(thread, NULL);
    assert_int_equal(status, TR_OK);
    for (int i = 0; i < LETTERS; i++) {
        char copy[LETTERS];
        memset(copy, 'a' + i, sizeof copy);
        assert_memory_equal(arrived[i], bytes_of(i) == LARGE ? large : copy, bytes_of(i));
    }
    /* A letter at the head is a new one: none for what fits an old one. */
    struct ps_letter *head = outbox.letters;
    tr_ticket *ticket = NULL;
    assert_int_equal(ps_outbox_send(&outbox, 1, TAG, large, LARGE, "letter"), TR_OK);
    assert_ptr_equal(outbox.letters, head);
    assert_int_equal(tr_comm_receive(comm[1], 0, TAG, arrived[0], LARGE, "letter", &ticket), TR_OK);
    assert_int_equal(tr_comm_wait(comm[1], &ticket), TR_OK);
    assert_memory_equal(arrived[0], large, LARGE);
    ps_outbox_release(&outbox);
    assert_null(outbox.letters);
}

static void nobody_waits_for_the_dead(void **state)
{
    (void)state;
    struct ps_outbox outbox = {.comm = comm[0]};
    for (int i = 0; i < 3; i++)
        assert_int_equal(ps_outbox_send(&outbox, 2, TAG, large, LARGE, "letter"), TR_OK);
    tr_comm_thread_kill(comm[2]);
    assert_int_equal(ps_outbox_flush(&outbox), TR_OK);
    ps_outbox_release(&outbox);
}

/* A wait ends with the loss of a rank that the job needs, and with that of no other. */
static void waits_end_with_who_is_watched(void **state)
{
    (void)state;
    static const int watched[] = {2};
    struct ps_watch watch = {.comm = comm[0], .ranks = watched, .count = 1};
    tr_ticket *ticket = NULL;
    char byte = 0;
    assert_int_equal(ps_watch_probe(&watch), TR_OK);
    assert_int_equal(tr_comm_receive(comm[0], 1, TAG, &byte, 1, "letter", &ticket), TR_OK);
    tr_comm_thread_kill(comm[2]);
    assert_int_equal(ps_watch_wait(&watch, &ticket), TR_EPEER);
    assert_true(tr_comm_cancel(comm[0], &ticket));

    tr_ticket *sent = NULL;
    struct ps_watch other = {.comm = comm[0], .ranks = (const int[]){1}, .count = 1};
    assert_int_equal(tr_comm_send(comm[1], 0, TAG, "x", 1, "letter", &sent), TR_OK);
    assert_int_equal(tr_comm_receive(comm[0], 1, TAG, &byte, 1, "letter", &ticket), TR_OK);
    assert_int_equal(ps_watch_wait(&other, &ticket), TR_OK);
    assert_int_equal(byte, 'x');
    assert_null(ticket);
    assert_int_equal(tr_comm_wait(comm[1], &sent), TR_OK);
}

/* ---- memory ---- */

/* A letter that a transport still reads stays as it is. */
static void letters_under_way_are_left_alone(void **state)
{
    (void)state;
    struct ps_outbox outbox = {.comm = comm[0]};
    int64_t live = tr_alloc_live();
    assert_int_equal(ps_outbox_send(&outbox, 1, TAG, large, LARGE, "letter"), TR_OK);
    void *letter = outbox.letters;
    scene_stuck(comm[0]);
    ps_outbox_release(&outbox);
    assert_null(outbox.letters);
    tr_ticket *ticket = NULL;
    memset(arrived[0], 0, LARGE);
    assert_int_equal(tr_comm_receive(comm[1], 0, TAG, arrived[0], LARGE, "letter", &ticket), TR_OK);
    assert_int_equal(tr_comm_wait(comm[1], &ticket), TR_OK);
    assert_memory_equal(arrived[0], large, LARGE);
    scene_loose(comm[0]);
    tr_free(letter);
    /* One that nobody has taken is taken back. */
    assert_int_equal(ps_outbox_send(&outbox, 1, TAG, large, LARGE, "letter"), TR_OK);
    ps_outbox_release(&outbox);
    assert_in_range(tr_alloc_live(), live, live + 8); /* tickets */
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    struct ps_outbox outbox = {.comm = comm[0]};
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        refuse_begin(at);
        tr_status status = ps_outbox_send(&outbox, 1, TAG, "x", 1, "letter");
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_true(at < 20);
    }
    ps_outbox_release(&outbox);
    assert_null(outbox.letters);
}

/* ---- time ---- */

static double now;

static double tell_time(void *user)
{
    (void)user;
    return now;
}

/* What a lost rank sent just before may still be on its way. Nor are ranks looked at all the time. */
static void a_lost_rank_is_given_a_moment(void **state)
{
    (void)state;
    static const int watched[] = {1, 2};
    struct ps_watch watch = {.comm = comm[0], .ranks = watched, .count = 2};
    now = 1000;
    tr_clock_use(tell_time, NULL);
    assert_int_equal(ps_watch_probe(&watch), TR_OK);
    tr_comm_thread_kill(comm[2]);
    now += 0.01;
    assert_int_equal(ps_watch_probe(&watch), TR_OK);
    assert_true(watch.troubled == 0);
    now += 0.02;
    assert_int_equal(ps_watch_probe(&watch), TR_OK);
    assert_true(watch.troubled == now);
    for (int i = 0; i < 9; i++) {
        now += 0.02;
        assert_int_equal(ps_watch_probe(&watch), TR_OK);
    }
    now += 0.05;
    tr_status status = ps_watch_probe(&watch);
    tr_clock_use(NULL, NULL);
    assert_int_equal(status, TR_EPEER);
    assert_non_null(strstr(tr_error_message(), "rank 2 on host thread-host-2 died"));
    assert_true(ps_nap(0) == 0);
    assert_true(ps_nap(0.001) == 0.001);
    assert_true(ps_nap(0.5) == 0.002);
    /* Others than those are of no interest. */
    struct ps_watch other = {.comm = comm[0], .ranks = watched, .count = 1};
    tr_clock_use(tell_time, NULL);
    status = TR_OK;
    for (int i = 0; i < 9 && status == TR_OK; i++, now += 1) status = ps_watch_probe(&other);
    tr_clock_use(NULL, NULL);
    assert_int_equal(status, TR_OK);
    assert_true(other.troubled == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(letters_arrive_and_are_used_again, make, drop),
        cmocka_unit_test_setup_teardown(nobody_waits_for_the_dead, make, drop),
        cmocka_unit_test_setup_teardown(waits_end_with_who_is_watched, make, drop),
        cmocka_unit_test_setup_teardown(letters_under_way_are_left_alone, make, drop),
        cmocka_unit_test_setup_teardown(missing_memory_is_told, make, drop),
        cmocka_unit_test_setup_teardown(a_lost_rank_is_given_a_moment, make, drop),
    };
    return cmocka_run_group_tests_name("strategy.mail", tests, NULL, NULL);
}
