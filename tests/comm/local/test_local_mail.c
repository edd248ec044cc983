/* Messages of one rank to another of its host, both in this process: which receive gets which message, what a
 * sender may be ahead by, what is taken back; and each kind of nonsense that another process may write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/local/peer.h"

#include <stdio.h>
#include <string.h>

static struct local_area area;
static struct local_mail *mail, *other; /* of ranks 0 and 1 */
static uint64_t credit;
static int64_t live;

static int begin(void **state)
{
    (void)state;
    live = tr_alloc_live();
    if (tr_local_area_create(2, &area) != TR_OK) return -1;
    credit = 16 * area.ring_bytes;
    return tr_local_mail_create(&area, 0, &mail) == TR_OK && tr_local_mail_create(&area, 1, &other) == TR_OK
               ? 0
               : -1;
}

static int end(void **state)
{
    (void)state;
    tr_local_mail_destroy(&mail);
    tr_local_mail_destroy(&other);
    tr_local_area_close(&area);
    return tr_alloc_live() == live && !mail && !other ? 0 : -1;
}

static int again(void)
{
    return end(NULL) == 0 && begin(NULL) == 0 ? 0 : -1;
}

static struct tr_transfer sending(int tag, const void *data, size_t bytes)
{
    return (struct tr_transfer){
        .data = (void *)(uintptr_t)data, .bytes = bytes, .peer = 0, .tag = tag, .sends = true};
}

static struct tr_transfer receiving(int tag, void *data, size_t bytes)
{
    return (struct tr_transfer){.data = data, .bytes = bytes, .peer = 1, .tag = tag};
}

static void poll_both(void)
{
    for (int i = 0; i < 100; i++) {
        assert_int_equal(tr_local_mail_poll(mail), TR_OK);
        assert_int_equal(tr_local_mail_poll(other), TR_OK);
    }
}

static bool is_done(struct tr_transfer *transfer)
{
    assert_int_equal(tr_local_mail_test(transfer), TR_OK);
    return transfer->done;
}

/* Credit that rank 0 has given back to rank 1. */
static uint64_t given_back(void)
{
    return atomic_load(&tr_local_area_ring(&area, 1, 0)->credit);
}

/* ---- matching ---- */

static void messages_of_a_tag_arrive_in_order(void **state)
{
    char got[4] = "";
    struct tr_transfer send[4], receive[4];
    (void)state;
    static const int tags[] = {1, 2, 1, 2};
    for (int i = 0; i < 4; i++) {
        send[i] = sending(tags[i], &"abcd"[i], 1);
        assert_int_equal(tr_local_mail_start(other, &send[i]), TR_OK);
        assert_true(send[i].done); /* it is kept until somebody asks */
    }
    assert_true(tr_local_mail_is_unread(mail, 1));
    assert_int_equal(tr_local_mail_poll(mail), TR_OK);
    assert_false(tr_local_mail_is_unread(mail, 1));
    assert_int_equal(given_back(), 0);
    for (int i = 0; i < 2; i++) { /* the later tag first */
        receive[i] = receiving(2, &got[i], 1);
        assert_int_equal(tr_local_mail_start(mail, &receive[i]), TR_OK);
        assert_true(receive[i].done);
        assert_int_equal(given_back(), (uint64_t)(i + 1) * (1 + LOCAL_COST));
    }
    for (int i = 2; i < 4; i++) {
        receive[i] = receiving(1, &got[i], 1);
        assert_int_equal(tr_local_mail_start(mail, &receive[i]), TR_OK);
        assert_true(is_done(&receive[i]));
    }
    assert_memory_equal(got, "bdac", 4);
    assert_int_equal(given_back(), 4 * (1 + LOCAL_COST));
}

static void receives_that_wait_are_served_in_order(void **state)
{
    char got[3] = "";
    struct tr_transfer send[3], receive[3];
    (void)state;
    static const int tags[] = {5, 6, 5};
    for (int i = 0; i < 3; i++) {
        receive[i] = receiving(tags[i], &got[i], 1);
        assert_int_equal(tr_local_mail_start(mail, &receive[i]), TR_OK);
        assert_false(receive[i].done);
    }
    for (int i = 2; i >= 0; i--) {
        send[i] = sending(tags[i], &"xyz"[i], 1);
        assert_int_equal(tr_local_mail_start(other, &send[i]), TR_OK);
    }
    assert_false(is_done(&receive[0]));
    assert_int_equal(tr_local_mail_poll(mail), TR_OK);
    for (int i = 0; i < 3; i++) assert_true(is_done(&receive[i]));
    assert_memory_equal(got, "zyx", 3);
    assert_int_equal(given_back(), 3 * (1 + LOCAL_COST));
}

/* ---- sizes that disagree ---- */

static unsigned char large[6 << 20], place[6 << 20];

static void sizes_that_disagree_are_told(void **state)
{
    static const struct {
        size_t sent, wanted;
        const char *message;
    } cases[] = {
        {5, 6, "the message from rank 1 has 5 bytes where 6 were expected; "},
        {0, 1, "the message from rank 1 has 0 bytes where 1 were expected; "},
        {70000, 69999, "the message from rank 1 has 70000 bytes where 69999 were expected; "},
        {300000, 300001, "the message from rank 1 has 300000 bytes where 300001 were expected; "},
        {6 << 20, 5, "the message from rank 1 has 6291456 bytes where 5 were expected; "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int late = 0; late < 2; late++) {
            struct tr_transfer send = sending(1, large, cases[i].sent), next = sending(1, "n", 1),
                               receive = receiving(1, place, cases[i].wanted), after;
            char byte = 0;
            assert_int_equal(again(), 0);
            if (!late) assert_int_equal(tr_local_mail_start(mail, &receive), TR_OK);
            assert_int_equal(tr_local_mail_start(other, &send), TR_OK);
            poll_both();
            if (late) assert_int_equal(tr_local_mail_start(mail, &receive), TR_OK);
            poll_both();
            assert_false(receive.done);
            assert_int_equal(tr_local_mail_test(&receive), TR_EMISMATCH);
            assert_false(receive.done);
            assert_non_null(strstr(tr_error_message(), cases[i].message));
            /* The next one is not meant. */
            after = receiving(1, &byte, 1);
            assert_int_equal(tr_local_mail_start(mail, &after), TR_OK);
            assert_int_equal(tr_local_mail_start(other, &next), TR_OK);
            poll_both();
            assert_true(is_done(&after));
            assert_int_equal(byte, 'n');
            if (cases[i].sent < credit) assert_int_equal(given_back(), cases[i].sent + 1 + 2 * LOCAL_COST);
        }
}

/* ---- credit ---- */

static void a_sender_is_ahead_by_its_credit(void **state)
{
    struct tr_transfer first, second, third, fourth, receive;
    (void)state;
    for (int beyond = 0; beyond < 2; beyond++) {
        assert_int_equal(again(), 0);
        first = sending(1, large, 1000);
        second = sending(2, large, (size_t)credit - 1000 - 2 * LOCAL_COST + (size_t)beyond);
        third = sending(3, large, 0);
        assert_int_equal(tr_local_mail_start(other, &first), TR_OK);
        assert_int_equal(tr_local_mail_start(other, &second), TR_OK);
        assert_int_equal(tr_local_mail_start(other, &third), TR_OK);
        poll_both();
        assert_true(is_done(&first));
        assert_int_equal(is_done(&second), !beyond); /* else it is announced, and waits for its receive */
        assert_int_equal(is_done(&third), beyond);
        if (beyond) continue;
        /* Once the first has its receive there is room for the third. */
        receive = receiving(1, place, 1000);
        assert_int_equal(tr_local_mail_start(mail, &receive), TR_OK);
        assert_true(receive.done);
        fourth = sending(4, large, 1000);
        assert_int_equal(tr_local_mail_start(other, &fourth), TR_OK);
        poll_both();
        assert_true(is_done(&fourth));
    }
}

static void who_is_announced_waits_for_its_receive(void **state)
{
    const size_t bytes = (size_t)credit + 1;
    struct tr_transfer send = sending(1, large, bytes), receive = receiving(1, place, bytes);
    (void)state;
    for (size_t i = 0; i < bytes; i++) large[i] = (unsigned char)(i * 7 + i / 255);
    memset(place, 0, bytes);
    assert_int_equal(tr_local_mail_start(other, &send), TR_OK);
    poll_both();
    assert_false(is_done(&send));
    assert_int_equal(tr_local_mail_start(mail, &receive), TR_OK);
    assert_false(receive.done);
    poll_both();
    assert_true(is_done(&send));
    assert_true(is_done(&receive));
    assert_memory_equal(place, large, bytes);
    assert_int_equal(given_back(), 0); /* it took none */
}

/* ---- taking back ---- */

static void sends_are_taken_back_until_they_are_relied_on(void **state)
{
    struct tr_transfer send = sending(1, large, sizeof large), next = sending(1, "n", 1), receive;
    char byte = 0;
    (void)state;
    assert_int_equal(tr_local_mail_start(other, &send), TR_OK);
    assert_false(tr_local_mail_withdraw(other, &send, false)); /* it was announced */
    assert_false(send.done);
    assert_true(tr_local_mail_withdraw(other, &send, true)); /* nobody reads any more */
    assert_true(send.done);
    assert_int_equal(tr_local_mail_start(other, &next), TR_OK);
    assert_true(tr_local_mail_withdraw(other, &next, false)); /* it has left */
    /* One for which there was no room has not begun. */
    assert_int_equal(again(), 0);
    struct tr_transfer full[16];
    int queued = -1;
    for (int i = 0; i < 16 && queued < 0; i++) {
        full[i] = sending(2, large, 40000);
        assert_int_equal(tr_local_mail_start(other, &full[i]), TR_OK);
        if (!full[i].done) queued = i;
    }
    assert_true(queued > 0);
    full[queued + 1] = sending(3, "q", 1);
    assert_int_equal(tr_local_mail_start(other, &full[queued + 1]), TR_OK);
    assert_false(full[queued + 1].done);
    assert_true(tr_local_mail_withdraw(other, &full[queued + 1], false));
    poll_both();
    receive = receiving(3, &byte, 1);
    assert_int_equal(tr_local_mail_start(mail, &receive), TR_OK);
    poll_both();
    assert_false(is_done(&receive));
    assert_int_equal(byte, 0);
}

static void receives_are_taken_back(void **state)
{
    struct tr_transfer first = sending(1, large, sizeof large), second = sending(1, "s", 1),
                       receive = receiving(1, place, sizeof place), next;
    char byte = 0;
    (void)state;
    /* One that waits. */
    assert_int_equal(tr_local_mail_start(mail, &receive), TR_OK);
    assert_true(tr_local_mail_withdraw(mail, &receive, false));
    assert_true(receive.done);
    next = receiving(1, &byte, 1);
    assert_int_equal(tr_local_mail_start(mail, &next), TR_OK);
    assert_int_equal(tr_local_mail_start(other, &second), TR_OK);
    poll_both();
    assert_true(is_done(&next));
    assert_int_equal(byte, 's');
    /* One whose message was announced and asked for: that is dropped when it comes. */
    memset(place, 0, sizeof place);
    receive = receiving(1, place, sizeof place);
    assert_int_equal(tr_local_mail_start(mail, &receive), TR_OK);
    assert_int_equal(tr_local_mail_start(other, &first), TR_OK);
    assert_int_equal(tr_local_mail_poll(mail), TR_OK);
    assert_true(tr_local_mail_withdraw(mail, &receive, false));
    byte = 0;
    next = receiving(1, &byte, 1);
    second = sending(1, "t", 1);
    assert_int_equal(tr_local_mail_start(mail, &next), TR_OK);
    assert_int_equal(tr_local_mail_start(other, &second), TR_OK);
    poll_both();
    assert_true(is_done(&first));
    assert_true(is_done(&next));
    assert_int_equal(byte, 't');
    for (size_t i = 0; i < sizeof place; i++) assert_int_equal(place[i], 0);
}

/* Of an announced message that could not be asked for yet, since there is no room to ask: the next receive
 * gets it. */
static void receives_that_did_not_ask_leave_it_to_others(void **state)
{
    enum { MOST = 10000 };
    static struct tr_transfer full[MOST], taken[MOST];
    struct tr_transfer send = sending(1, large, sizeof large), receive = receiving(1, place, sizeof place),
                       next;
    int count = 0;
    (void)state;
    do { /* until not even a message of nothing has room */
        full[count] = (struct tr_transfer){.data = large, .peer = 1, .tag = 9, .sends = true};
        assert_int_equal(tr_local_mail_start(mail, &full[count]), TR_OK);
    } while (full[count++].done && count < MOST);
    assert_true(count < MOST);
    for (size_t i = 0; i < sizeof large; i++) large[i] = (unsigned char)(i * 3 + i / 253);
    memset(place, 0, sizeof place);
    assert_int_equal(tr_local_mail_start(other, &send), TR_OK);
    assert_int_equal(tr_local_mail_poll(mail), TR_OK);
    next = receive;
    assert_int_equal(tr_local_mail_start(mail, &receive), TR_OK);
    assert_int_equal(tr_local_mail_start(mail, &next), TR_OK);
    assert_true(tr_local_mail_withdraw(mail, &receive, false));
    for (int i = 0; i < count; i++) { /* now rank 1 takes what it was sent */
        taken[i] = (struct tr_transfer){.data = large, .peer = 0, .tag = 9};
        assert_int_equal(tr_local_mail_start(other, &taken[i]), TR_OK);
    }
    poll_both();
    assert_true(is_done(&taken[count - 1]));
    assert_true(is_done(&send));
    assert_true(is_done(&next));
    assert_memory_equal(place, large, sizeof large);
}

/* ---- nonsense ---- */

static struct local_writer writer; /* of rank 1, instead of its mail */

static tr_status write_frame(uint32_t kind, int32_t tag, uint64_t bytes, uint64_t cookie, uint64_t count)
{
    struct local_frame frame = {.kind = kind, .tag = tag, .bytes = bytes, .cookie = cookie, .count = count};
    bool done;
    assert_int_equal(tr_local_write(&writer, &frame, large, &done), TR_OK);
    assert_true(done);
    tr_local_knock(&area, 1, 0);
    return tr_local_mail_poll(mail);
}

static void start_over(void)
{
    assert_int_equal(again(), 0);
    writer = tr_local_writer(&area, 1, 0);
}

static void expect_nonsense(const char *what, tr_status status)
{
    char text[200];
    assert_int_equal(status, TR_EPEER);
    snprintf(
        text, sizeof text,
        "rank 1 sent an invalid message (%s); all ranks must run the same program on the same job, or else "
        "the memory that they share is damaged",
        what);
    assert_string_equal(tr_error_message(), text);
    start_over();
}

static void beginnings_are_checked(void **state)
{
    (void)state;
    start_over();
    assert_int_equal(write_frame(LOCAL_BEGIN, 0, 8, 1, 8), TR_OK);
    expect_nonsense("a beginning", write_frame(LOCAL_BEGIN, 0, 8, 2, 9));
    expect_nonsense("a beginning", write_frame(LOCAL_BEGIN, -1, 8, 1, 8));
    assert_int_equal(write_frame(LOCAL_BEGIN, 0, credit - LOCAL_COST, 1, 0), TR_OK);
    expect_nonsense("more than its credit", write_frame(LOCAL_BEGIN, 1, 0, 2, 0));
    expect_nonsense("more than its credit", write_frame(LOCAL_BEGIN, 0, credit - LOCAL_COST + 1, 1, 0));
    expect_nonsense("more than its credit", write_frame(LOCAL_BEGIN, 0, credit + 1, 1, 0));
    expect_nonsense("more than its credit", write_frame(LOCAL_BEGIN, 0, UINT64_MAX, 1, 0));
    expect_nonsense("more than its credit", write_frame(LOCAL_BEGIN, 0, UINT64_MAX - LOCAL_COST + 1, 1, 0));
    assert_int_equal(write_frame(LOCAL_BEGIN, 0, credit - 1000 - 2 * LOCAL_COST, 1, 0), TR_OK);
    assert_int_equal(write_frame(LOCAL_BEGIN, 0, 1000, 2, 1000), TR_OK);
    start_over();
    assert_int_equal(write_frame(LOCAL_BEGIN, 0, credit - 1000 - 2 * LOCAL_COST, 1, 0), TR_OK);
    expect_nonsense("more than its credit", write_frame(LOCAL_BEGIN, 0, 1001, 2, 1001));
}

static void announcements_are_checked(void **state)
{
    (void)state;
    start_over();
    assert_int_equal(write_frame(LOCAL_ANNOUNCE, 0, UINT64_MAX, 1, 0), TR_OK);
    expect_nonsense("an announcement", write_frame(LOCAL_ANNOUNCE, 0, 8, 1, 1));
    expect_nonsense("an announcement", write_frame(LOCAL_ANNOUNCE, -1, 8, 1, 0));
}

static void continuations_are_checked(void **state)
{
    (void)state;
    start_over();
    expect_nonsense("a continuation", write_frame(LOCAL_MORE, 0, 0, 1, 0));
    assert_int_equal(write_frame(LOCAL_BEGIN, 0, 10, 1, 4), TR_OK);
    assert_int_equal(write_frame(LOCAL_MORE, 0, 0, 1, 5), TR_OK);
    expect_nonsense("a continuation", write_frame(LOCAL_MORE, 0, 0, 2, 1)); /* of another one */
    assert_int_equal(write_frame(LOCAL_BEGIN, 0, 10, 1, 4), TR_OK);
    expect_nonsense("a continuation", write_frame(LOCAL_MORE, 0, 0, 1, 7)); /* too much */
    assert_int_equal(write_frame(LOCAL_BEGIN, 0, 10, 1, 4), TR_OK);
    assert_int_equal(write_frame(LOCAL_MORE, 0, 0, 1, 6), TR_OK);
    expect_nonsense("a continuation", write_frame(LOCAL_MORE, 0, 0, 1, 0)); /* it is complete */
    assert_int_equal(write_frame(LOCAL_ANNOUNCE, 0, 10, 1, 0), TR_OK);
    expect_nonsense("a continuation", write_frame(LOCAL_MORE, 0, 0, 1, 1)); /* nobody asked for it */
    /* A cookie serves again once its message is complete. */
    struct tr_transfer receive = receiving(7, place, 4);
    assert_int_equal(write_frame(LOCAL_BEGIN, 3, 2, 1, 2), TR_OK);
    assert_int_equal(write_frame(LOCAL_BEGIN, 7, 4, 1, 1), TR_OK);
    assert_int_equal(write_frame(LOCAL_MORE, 0, 0, 1, 3), TR_OK);
    assert_int_equal(tr_local_mail_start(mail, &receive), TR_OK);
    assert_true(receive.done);
}

static void requests_are_checked(void **state)
{
    struct tr_transfer send = {.data = large, .bytes = sizeof large, .peer = 1, .tag = 1, .sends = true};
    const uint64_t cookie = (uint64_t)(uintptr_t)&send;
    (void)state;
    start_over();
    expect_nonsense("a request", write_frame(LOCAL_WANT, 0, 0, cookie, 0));
    assert_int_equal(tr_local_mail_start(mail, &send), TR_OK);
    expect_nonsense("a request", write_frame(LOCAL_WANT, 0, 0, cookie, 1));
    assert_int_equal(tr_local_mail_start(mail, &send), TR_OK);
    expect_nonsense("a request", write_frame(LOCAL_WANT, 0, 0, cookie + 1, 0));
    assert_int_equal(tr_local_mail_start(mail, &send), TR_OK);
    assert_int_equal(write_frame(LOCAL_WANT, 0, 0, cookie, 0), TR_OK);
    expect_nonsense("a request", write_frame(LOCAL_WANT, 0, 0, cookie, 0)); /* once */
    expect_nonsense("an unknown kind", write_frame(0, 0, 0, 0, 0));
    expect_nonsense("an unknown kind", write_frame(LOCAL_SKIP + 1, 0, 0, 0, 0));
}

/* Bits for ranks that there are not, and credit that there was not. */
static void what_is_not_in_frames_is_checked(void **state)
{
    struct tr_transfer send = {.data = large, .bytes = 1, .peer = 1, .tag = 1, .sends = true};
    (void)state;
    start_over();
    for (int w = 0; w < LOCAL_WORDS; w++)
        atomic_store(&area.record[0].mail[w], w ? UINT64_MAX : UINT64_MAX - 3);
    atomic_store(&area.record[0].letters, UINT64_MAX);
    assert_int_equal(tr_local_mail_poll(mail), TR_OK);
    atomic_store(&tr_local_area_ring(&area, 0, 1)->credit, 1);
    tr_status status = tr_local_mail_start(mail, &send);
    expect_nonsense("more credit than there is", status);
    atomic_store(&tr_local_area_ring(&area, 0, 1)->credit, UINT64_MAX - credit + 1); /* all of it is used */
    send.state = 0;
    assert_int_equal(tr_local_mail_start(mail, &send), TR_OK);
    assert_false(send.done);
    assert_true(tr_local_mail_withdraw(mail, &send, true));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(messages_of_a_tag_arrive_in_order),
        TEST(receives_that_wait_are_served_in_order),
        TEST(sizes_that_disagree_are_told),
        TEST(a_sender_is_ahead_by_its_credit),
        TEST(who_is_announced_waits_for_its_receive),
        TEST(sends_are_taken_back_until_they_are_relied_on),
        TEST(receives_are_taken_back),
        TEST(receives_that_did_not_ask_leave_it_to_others),
        TEST(beginnings_are_checked),
        TEST(announcements_are_checked),
        TEST(continuations_are_checked),
        TEST(requests_are_checked),
        TEST(what_is_not_in_frames_is_checked),
    };
    return cmocka_run_group_tests_name("comm.local_mail", tests, NULL, NULL);
}
