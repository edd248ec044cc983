/* How often a wait asks a transport for its ranks, and how soon it finds one lost: by a transport of this
 * test that counts, at times that the test names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fail.h"
#include "comm/operation.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 3 };

static enum tr_comm_life lives[RANKS];
static double silent[RANKS];
static uint64_t news;
static int asked, first = -1;

static enum tr_comm_life life(tr_comm *comm, int rank, double *silence, char *why, size_t size)
{
    (void)comm;
    asked++;
    *silence = silent[rank];
    if (lives[rank] == TR_COMM_GAVE_UP) snprintf(why, size, "no more rank %d", rank);
    return lives[rank];
}

static uint64_t changes(tr_comm *comm)
{
    (void)comm;
    return news;
}

static int first_to_give_up(tr_comm *comm)
{
    (void)comm;
    return first;
}

/* Time-out 10 s: so signs of life are 2 s apart. */
static const struct tr_comm_settings settings = {.timeout = 10, .patience = 20};
static struct tr_comm_class class;
static tr_comm comm;
static tr_ticket ticket;
static struct tr_patience patience;

static int begin(void **state)
{
    (void)state;
    class = (struct tr_comm_class){.name = "test",
                                   .version = TR_COMM_VERSION,
                                   .grace = 1,
                                   .life = life,
                                   .changes = changes,
                                   .first_to_give_up = first_to_give_up};
    for (int r = 0; r < RANKS; r++) lives[r] = TR_COMM_ALIVE, silent[r] = 0;
    news = 0;
    first = -1;
    /* A collective, of which every rank is a part. */
    ticket = (tr_ticket){.kind = "barrier", .collective = true};
    patience = (struct tr_patience){.began = 100};
    return tr_comm_prepare(&comm, &class, 0, RANKS, &settings) == TR_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    tr_comm_release(&comm);
    return 0;
}

/* Judges at a time, which asks so often. */
static tr_status judge(double now, int times)
{
    asked = 0;
    tr_status status = tr_comm_judge(&comm, &ticket, now, &patience);
    if (asked != times) fail_msg("at %g s the transport was asked %d times, not %d", now, asked, times);
    return status;
}

static void short_waits_ask_nothing(void **state)
{
    (void)state;
    lives[1] = TR_COMM_DEAD;
    assert_int_equal(judge(100, 0), TR_OK);
    assert_int_equal(judge(100.0199, 0), TR_OK);
    assert_int_equal(judge(100.021, 2), TR_OK);
    assert_int_equal(judge(100.04, 0), TR_OK);
    assert_int_equal(judge(100.042, 2), TR_OK);
}

/* All of them at first, then once in an interval, and when something has changed. */
static void ranks_are_asked_in_turns(void **state)
{
    (void)state;
    judge(100, 0);
    judge(100.5, 2);
    judge(101, 0);
    judge(102.4, 0);
    judge(102.5, 2);
    judge(104.4, 0);
    news++;
    judge(104.45, 2);
    judge(106.4, 0); /* an interval after that */
    judge(106.5, 2);
    news += 2;
    judge(106.6, 2);
    judge(106.7, 0);
}

static void who_does_not_tell_is_asked_always(void **state)
{
    (void)state;
    class.changes = NULL;
    judge(100, 0);
    for (int i = 1; i < 10; i++) judge(100 + 0.1 * i, 2);
}

/* A rank in trouble is looked at until its grace is over; what it sent before may still come. */
static void the_lost_have_a_grace(void **state)
{
    (void)state;
    judge(100, 0);
    judge(101, 2);
    lives[2] = TR_COMM_DEAD;
    assert_int_equal(judge(101.1, 0), TR_OK); /* nobody told */
    news++;
    assert_int_equal(judge(101.2, 2), TR_OK);
    assert_int_equal(judge(101.5, 2), TR_OK);
    assert_int_equal(judge(102.15, 2), TR_OK);
    assert_int_equal(judge(102.25, 2), TR_EPEER);
    assert_string_equal(tr_error_message(),
                        "rank 2 on host unknown died; restart the job from its last checkpoint");
    assert_false(comm.lost_member);
}

/* A silence that ends begins no grace for the next one. */
static void who_comes_back_is_not_lost(void **state)
{
    (void)state;
    judge(100, 0);
    silent[1] = 10; /* the time-out, and not more */
    assert_int_equal(judge(103, 2), TR_OK);
    assert_int_equal(judge(103.5, 0), TR_OK);
    silent[1] = 10.5;
    assert_int_equal(judge(105, 2), TR_OK);
    assert_int_equal(judge(105.9, 2), TR_OK);
    silent[1] = 0;
    assert_int_equal(judge(106.1, 2), TR_OK);
    silent[1] = 10.6;
    news++;
    assert_int_equal(judge(106.2, 2), TR_OK);
    assert_int_equal(judge(107.1, 2), TR_OK);
    assert_int_equal(judge(107.3, 2), TR_EPEER);
    assert_string_equal(
        tr_error_message(),
        "rank 1 on host unknown has not been heard of for 10.6 s (time-out 10 s): it hangs, or its host or "
        "network is down; restart the job from its last checkpoint");
}

/* Who only followed is not named. */
static void the_first_to_give_up_is_named(void **state)
{
    (void)state;
    class.grace = 0;
    lives[1] = lives[2] = TR_COMM_GAVE_UP;
    first = 2;
    judge(100, 0);
    assert_int_equal(judge(101, 3), TR_OK);
    assert_int_equal(judge(102, 3), TR_EPEER);
    assert_string_equal(tr_error_message(), "rank 2 on host unknown gave up: no more rank 2");
    first = 0; /* that is this one */
    assert_int_equal(judge(103, 2), TR_EPEER);
    assert_string_equal(tr_error_message(), "rank 1 on host unknown gave up: no more rank 1");
    first = -1;
    assert_int_equal(judge(104, 2), TR_EPEER);
    assert_string_equal(tr_error_message(), "rank 1 on host unknown gave up: no more rank 1");
    class.first_to_give_up = NULL;
    assert_int_equal(judge(105, 2), TR_EPEER);
    assert_string_equal(tr_error_message(), "rank 1 on host unknown gave up: no more rank 1");
    lives[2] = TR_COMM_DEAD; /* the cause, more likely */
    assert_int_equal(judge(106, 2), TR_EPEER);
    assert_string_equal(tr_error_message(),
                        "rank 2 on host unknown died; restart the job from its last checkpoint");
}

/* Also where only one that followed it is waited for, and where it is the root. */
static void the_root_may_be_the_first(void **state)
{
    struct tr_transfer transfer = {.peer = 1};
    (void)state;
    class.grace = 0;
    tr_comm_release(&comm);
    assert_int_equal(tr_comm_prepare(&comm, &class, 2, RANKS, &settings), TR_OK);
    ticket = (tr_ticket){.kind = "receive", .transfer = &transfer, .transfers = 1};
    lives[0] = lives[1] = TR_COMM_GAVE_UP;
    judge(100, 0);
    for (first = -1; first < 2; first++) {
        char text[100];
        patience = (struct tr_patience){.began = 100};
        judge(100, 0);
        judge(101, first < 0 ? 1 : 2);
        assert_int_equal(judge(102, first < 0 ? 1 : 2), TR_EPEER);
        snprintf(text, sizeof text, "rank %d on host unknown gave up: no more rank %d", first == 0 ? 0 : 1,
                 first == 0 ? 0 : 1);
        assert_string_equal(tr_error_message(), text);
    }
}

static void patience_ends(void **state)
{
    (void)state;
    struct tr_transfer transfer[] = {{.peer = 1, .done = true}, {.peer = 2}};
    ticket.transfer = transfer;
    ticket.transfers = 2;
    judge(100, 0);
    assert_int_equal(judge(120, 2), TR_OK);
    assert_int_equal(judge(120.1, 0), TR_EPEER);
    assert_string_equal(tr_error_message(),
                        "missing after 20.1 s (patience 20 s), although alive: rank 2 on host unknown; all "
                        "ranks must run the same program on the same job, or else raise the patience");
    transfer[1].done = true;
    assert_int_equal(judge(120.2, 0), TR_EPEER);
    assert_non_null(strstr(tr_error_message(), "although alive: some rank; "));
}

/* A message needs only its peer; in a crew all members are asked, and a member's death is told apart. */
static void who_is_not_needed_is_not_asked(void **state)
{
    (void)state;
    struct tr_transfer transfer = {.peer = 2};
    ticket = (tr_ticket){.kind = "receive", .transfer = &transfer, .transfers = 1};
    lives[1] = TR_COMM_DEAD;
    class.grace = 0;
    judge(100, 0);
    assert_int_equal(judge(101, 1), TR_OK);
    assert_int_equal(judge(104, 1), TR_OK);
    comm.outlives = true;
    assert_int_equal(judge(107, 2), TR_OK);
    assert_int_equal(judge(108, 2), TR_EPEER);
    assert_true(comm.lost_member);
    lives[1] = TR_COMM_SILENT;
    assert_int_equal(judge(109, 2), TR_EPEER);
    assert_false(comm.lost_member);
}

static void a_stop_is_heeded(void **state)
{
    (void)state;
    atomic_int stop = 0;
    comm.settings.stop = &stop;
    judge(100, 0);
    assert_int_equal(judge(101, 2), TR_OK);
    stop = 1;
    assert_int_equal(judge(101.01, 0), TR_OK);
    assert_int_equal(judge(101.1, 0), TR_EINTERRUPTED);
}

static void signs_of_life_have_limits(void **state)
{
    static const double cases[][2] = {{10, 2},     {9, 1.8},      {11, 2},      {1000, 2},    {1, 0.2},
                                      {0.1, 0.02}, {0.11, 0.022}, {0.09, 0.02}, {1e-9, 0.02}, {5, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_comm_settings some = {.timeout = cases[i][0], .patience = 2000};
        double interval = tr_comm_interval(&some);
        if (interval < cases[i][1] * 0.999999 || interval > cases[i][1] * 1.000001)
            fail_msg("a time-out of %g s: %g s", cases[i][0], interval);
    }
}

/* In words, for those who ask for one rank; a text that is too long is cut. */
static void lives_have_words(void **state)
{
    char why[100], small[8];
    (void)state;
    assert_int_equal(tr_comm_life(&comm, 1, why, sizeof why), TR_COMM_ALIVE);
    assert_string_equal(why, "is alive");
    assert_int_equal(tr_comm_life(&comm, 0, why, sizeof why), TR_COMM_ALIVE);
    silent[1] = 10;
    assert_int_equal(tr_comm_life(&comm, 1, why, sizeof why), TR_COMM_ALIVE);
    silent[1] = 10.25;
    assert_int_equal(tr_comm_life(&comm, 1, why, sizeof why), TR_COMM_SILENT);
    assert_string_equal(why, "has not been heard of for 10.2 s");
    lives[1] = TR_COMM_DEAD;
    assert_int_equal(tr_comm_life(&comm, 1, why, sizeof why), TR_COMM_DEAD);
    assert_string_equal(why, "died: its process is gone");
    lives[1] = TR_COMM_LEFT;
    assert_int_equal(tr_comm_life(&comm, 1, why, sizeof why), TR_COMM_LEFT);
    assert_string_equal(why, "has left");
    lives[1] = TR_COMM_GAVE_UP;
    assert_int_equal(tr_comm_life(&comm, 1, why, sizeof why), TR_COMM_GAVE_UP);
    assert_string_equal(why, "gave up: no more rank 1");
    assert_int_equal(tr_comm_life(&comm, 1, small, sizeof small), TR_COMM_GAVE_UP);
    assert_string_equal(small, "gave up");
    assert_int_equal(tr_comm_life(&comm, 1, NULL, 0), TR_COMM_GAVE_UP);
    comm.dead = true;
    assert_int_equal(tr_comm_life(&comm, 0, why, sizeof why), TR_COMM_GAVE_UP);
    assert_string_equal(why, "gave up");
    /* For all that are needed, and for one. */
    static const int ranks[] = {0, 2, 1};
    assert_int_equal(tr_comm_require(&comm, ranks, 2), TR_OK);
    assert_int_equal(tr_comm_require(&comm, ranks, 3), TR_EPEER);
    assert_string_equal(tr_error_message(), "rank 1 on host unknown gave up: no more rank 1");
    assert_int_equal(tr_comm_check_rank(&comm, 2), TR_OK);
    lives[2] = TR_COMM_LEFT;
    assert_int_equal(tr_comm_check_rank(&comm, 2), TR_EPEER);
    assert_string_equal(
        tr_error_message(),
        "rank 2 on host unknown has left without taking part; restart the job from its last checkpoint");
    assert_int_equal(tr_comm_check_rank(&comm, 0), TR_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(short_waits_ask_nothing),           TEST(ranks_are_asked_in_turns),
        TEST(who_does_not_tell_is_asked_always), TEST(the_lost_have_a_grace),
        TEST(who_comes_back_is_not_lost),        TEST(the_first_to_give_up_is_named),
        TEST(the_root_may_be_the_first),         TEST(patience_ends),
        TEST(who_is_not_needed_is_not_asked),    TEST(a_stop_is_heeded),
        TEST(signs_of_life_have_limits),         TEST(lives_have_words),
    };
    return cmocka_run_group_tests_name("comm.patience", tests, NULL, NULL);
}
