/* Messages through rings between processes: sizes around every limit, floods that nobody waits for, senders
 * that die in the middle, ranks that write nonsense, and memory that cannot be had.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/check.h"
#include "comm/local/peer.h"
#include "comm/local/launch.h"
#include "comm/process_ranks.h"
#include "refuse.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct launch launch;

static void begin(void)
{
    memset(&launch, 0, sizeof launch);
    launch.timeout = 60;
}

static unsigned char mark(int rank, int64_t at, int salt)
{
    return (unsigned char)(rank * 37 + at * 11 + at / 251 + salt * 101 + 1);
}

/* The group's memory once more, to look at it or to damage it. */
static const char *look_inside(const tr_comm *comm, struct local_area *area)
{
    CHECK_OK(tr_local_area_open(dup(tr_local_group_descriptor(launch.group)), tr_comm_size(comm), area));
    return NULL;
}

/* ---- sizes ---- */

/* Both send each other all sizes at once; receives are there before, or after the messages. */
static const char *sizes(tr_comm *comm, const char *what)
{
    (void)what;
    enum { SIZES = 24 };
    struct local_area area;
    CHECK_RUN(look_inside(comm, &area));
    int64_t ring = (int64_t)(area.ring_bytes - sizeof(struct local_ring));
    int64_t piece = (int64_t)tr_local_ring_piece((size_t)ring), credit = 16 * (int64_t)area.ring_bytes;
    tr_local_area_close(&area);
    const int64_t size[SIZES] = {0,
                                 1,
                                 7,
                                 8,
                                 63,
                                 64,
                                 65,
                                 4095,
                                 piece - 1,
                                 piece,
                                 piece + 1,
                                 2 * piece,
                                 ring - 33,
                                 ring - 32,
                                 ring,
                                 ring + 1,
                                 3 * ring + 5,
                                 credit - 65,
                                 credit - 64,
                                 credit - 63,
                                 0,
                                 credit + 1,
                                 2 * credit + 12345,
                                 1};
    int me = tr_comm_rank(comm), other = 1 - me;
    unsigned char *out[SIZES], *in[SIZES];
    tr_ticket *send[SIZES], *receive[SIZES], *barrier;
    for (int k = 0; k < SIZES; k++) {
        out[k] = tr_alloc((size_t)size[k], 1);
        in[k] = tr_alloc_zero((size_t)size[k], 1);
        CHECK(out[k] && in[k]);
        for (int64_t i = 0; i < size[k]; i++) out[k][i] = mark(me, i, k);
    }
    for (int late = 0; late < 3; late++) {
        for (int k = 0; k < SIZES && !late; k++)
            CHECK_OK(tr_comm_receive(comm, other, k, in[k], (size_t)size[k], "size", &receive[k]));
        for (int k = 0; k < SIZES; k++)
            CHECK_OK(tr_comm_send(comm, other, k, out[k], (size_t)size[k], "size", &send[k]));
        CHECK_DONE(comm, &barrier, tr_comm_barrier(comm, &barrier));
        for (int k = SIZES - 1; k >= 0 && late; k--)
            CHECK_OK(tr_comm_receive(comm, other, k, in[k], (size_t)size[k], "size", &receive[k]));
        for (int k = 0; k < SIZES; k++) CHECK_OK(tr_comm_wait(comm, &receive[k]));
        for (int k = 0; k < SIZES; k++) CHECK_OK(tr_comm_wait(comm, &send[k]));
        for (int k = 0; k < SIZES; k++) {
            for (int64_t i = 0; i < size[k]; i++) CHECK(in[k][i] == mark(other, i, k));
            memset(in[k], 0, (size_t)size[k]);
        }
    }
    /* All credit came back: what the other does not ask for leaves again. Without credit this would wait for
     * a receive, which comes after the barrier only. */
    enum { HALF = 13 };
    CHECK_DONE(comm, &barrier, tr_comm_barrier(comm, &barrier));
    CHECK_OK(tr_comm_send(comm, other, 1, out[HALF], (size_t)ring / 2, "eager", &send[0]));
    CHECK_OK(tr_comm_wait(comm, &send[0]));
    CHECK_DONE(comm, &barrier, tr_comm_barrier(comm, &barrier));
    CHECK_DONE(comm, &receive[0],
               tr_comm_receive(comm, other, 1, in[HALF], (size_t)ring / 2, "eager", &receive[0]));
    for (int k = 0; k < SIZES; k++) tr_free(out[k]), tr_free(in[k]);
    return NULL;
}

static void test_sizes(void **state)
{
    (void)state;
    begin();
    launch_expect_well(&launch, 2, sizes, "sizes");
}

/* A message to oneself that is larger than the ring, before and after its receive. */
static const char *oneself(tr_comm *comm, const char *what)
{
    (void)what;
    enum { BYTES = 9 << 20 };
    unsigned char *out = tr_alloc(BYTES, 1), *in = tr_alloc_zero(BYTES, 1);
    CHECK(out && in);
    for (int i = 0; i < BYTES; i++) out[i] = mark(3, i, 1);
    for (int late = 0; late < 2; late++) {
        tr_ticket *send, *receive;
        if (!late) CHECK_OK(tr_comm_receive(comm, 0, 1, in, BYTES, "own", &receive));
        CHECK_OK(tr_comm_send(comm, 0, 1, out, BYTES, "own", &send));
        if (late) CHECK_OK(tr_comm_receive(comm, 0, 1, in, BYTES, "own", &receive));
        CHECK_OK(tr_comm_wait(comm, &receive));
        CHECK_OK(tr_comm_wait(comm, &send));
        CHECK(memcmp(in, out, BYTES) == 0);
        memset(in, 0, BYTES);
    }
    tr_free(out), tr_free(in);
    return NULL;
}

static void test_oneself(void **state)
{
    (void)state;
    begin();
    launch_expect_well(&launch, 1, oneself, "oneself");
}

/* ---- floods ---- */

static size_t requested;

static int count_bytes(size_t size, void *user)
{
    (void)user;
    requested += size;
    return 0;
}

/* Rank 0 is ahead by far more than anybody would keep; the last message can be had before the first, and what
   rank 1 keeps meanwhile stays within the credit. */
static const char *flood(tr_comm *comm, const char *what)
{
    (void)what;
    enum { MESSAGES = 1500, BYTES = 20011 };
    static unsigned char data[BYTES];
    static tr_ticket *ticket[MESSAGES];
    int32_t last = 77;
    tr_ticket *end;
    CHECK_DONE(comm, &end, tr_comm_barrier(comm, &end));
    if (tr_comm_rank(comm) == 0) {
        unsigned char *all = tr_alloc((size_t)MESSAGES * BYTES, 1);
        CHECK(all);
        for (int k = 0; k < MESSAGES; k++) {
            for (int i = 0; i < BYTES; i++) all[(size_t)k * BYTES + (size_t)i] = mark(0, i, k);
            CHECK_OK(tr_comm_send(comm, 1, 1, all + (size_t)k * BYTES, (size_t)(BYTES - k % 7), "flood",
                                  &ticket[k]));
        }
        CHECK_DONE(comm, &end, tr_comm_send(comm, 1, 2, &last, sizeof last, "end", &end));
        for (int k = 0; k < MESSAGES; k++) CHECK_OK(tr_comm_wait(comm, &ticket[k]));
        tr_free(all);
        return NULL;
    }
    struct local_area area;
    CHECK_RUN(look_inside(comm, &area));
    size_t credit = 16 * area.ring_bytes;
    tr_local_area_close(&area);
    requested = 0;
    last = 0;
    tr_alloc_set_hook(count_bytes, NULL);
    CHECK_DONE(comm, &end, tr_comm_receive(comm, 0, 2, &last, sizeof last, "end", &end));
    tr_alloc_set_hook(NULL, NULL);
    CHECK(last == 77);
    CHECK(requested > credit / 2 && requested < credit + MESSAGES * 2 * sizeof(struct local_inbound));
    for (int k = 0; k < MESSAGES; k++) {
        CHECK_DONE(comm, &end, tr_comm_receive(comm, 0, 1, data, (size_t)(BYTES - k % 7), "flood", &end));
        for (int i = 0; i < BYTES - k % 7; i++) CHECK(data[i] == mark(0, i, k));
    }
    return NULL;
}

static void test_flood(void **state)
{
    (void)state;
    begin();
    launch_expect_well(&launch, 2, flood, "flood");
}

/* A message of many rings goes on while its sender computes. */
static void test_moves(void **state)
{
    (void)state;
    begin();
    launch_expect_well(&launch, 2, process_run, "compute");
}

/* Receives that are given up before, in and after the middle of their message, with others behind them. */
static const char *gives_up_receives(tr_comm *comm, const char *what)
{
    (void)what;
    enum { BYTES = 6 << 20 };
    unsigned char *data = tr_alloc_zero(BYTES, 1), *kept = tr_alloc_zero(BYTES, 1);
    tr_ticket *first, *second, *barrier, *never;
    int32_t token = 5;
    CHECK(data && kept);
    if (tr_comm_rank(comm) == 0) {
        memset(data, 1, BYTES), memset(kept, 2, BYTES);
        CHECK_OK(tr_comm_send(comm, 1, 1, data, BYTES, "first", &first));
        CHECK_OK(tr_comm_send(comm, 1, 1, kept, BYTES, "second", &second));
        CHECK_DONE(comm, &barrier, tr_comm_barrier(comm, &barrier));
        CHECK_OK(tr_comm_wait(comm, &first));
        CHECK_OK(tr_comm_wait(comm, &second));
        CHECK_DONE(comm, &barrier, tr_comm_send(comm, 1, 2, &token, sizeof token, "token", &barrier));
    } else {
        CHECK_DONE(comm, &barrier, tr_comm_barrier(comm, &barrier));
        CHECK_OK(tr_comm_receive(comm, 0, 1, data, BYTES, "first", &first));
        CHECK_OK(tr_comm_receive(comm, 0, 9, data, 1, "never", &never));
        CHECK(tr_comm_cancel(comm, &never));
        /* It was asked for: what comes is dropped. */
        CHECK(tr_comm_cancel(comm, &first));
        memset(data, 9, BYTES);
        CHECK_DONE(comm, &second, tr_comm_receive(comm, 0, 1, kept, BYTES, "second", &second));
        for (int i = 0; i < BYTES; i++) CHECK(kept[i] == 2 && data[i] == 9);
        token = 0;
        CHECK_DONE(comm, &barrier, tr_comm_receive(comm, 0, 2, &token, sizeof token, "token", &barrier));
        CHECK(token == 5);
    }
    tr_free(data), tr_free(kept);
    return NULL;
}

static void test_gives_up_receives(void **state)
{
    (void)state;
    begin();
    launch_expect_well(&launch, 2, gives_up_receives, "given up receives");
}

/* Sizes that disagree, of messages that are kept, move in pieces or were announced. */
static const char *disagree(tr_comm *comm, const char *what)
{
    size_t bytes = (size_t)atoll(what);
    unsigned char *data = tr_alloc_zero(bytes + 1, 1);
    tr_ticket *ticket;
    CHECK(data);
    CHECK_OK(tr_comm_rank(comm) == 0 ? tr_comm_send(comm, 1, 1, data, bytes, "size", &ticket)
                                     : tr_comm_receive(comm, 0, 1, data, bytes + 1, "size", &ticket));
    tr_status status = tr_comm_wait(comm, &ticket);
    if (tr_comm_rank(comm) == 1) {
        char expected[60];
        snprintf(expected, sizeof expected, "%zu bytes where %zu were expected", bytes, bytes + 1);
        CHECK(status == TR_EMISMATCH && strstr(tr_error_message(), expected));
    } else if (status == TR_OK) {
        status = tr_comm_barrier(comm, &ticket);
        if (status == TR_OK) status = tr_comm_wait(comm, &ticket);
    }
    CHECK(tr_comm_rank(comm) == 1 || (status == TR_EPEER && strstr(tr_error_message(), "rank 1 on host ")));
    tr_comm_end_operations(comm, "sizes disagree");
    tr_free(data);
    return NULL;
}

static void test_disagree(void **state)
{
    (void)state;
    static const char *const bytes[] = {"0", "10", "5000", "300000", "6000000"};
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        begin();
        launch_expect_well(&launch, 2, disagree, bytes[i]);
    }
}

/* ---- faults ---- */

/* Rank 1 sends large messages without end and is killed by rank 0, which got the first half of some. */
static const char *half_a_message(tr_comm *comm, const char *what)
{
    enum { BYTES = 48 << 20 };
    unsigned char *data = tr_alloc_zero(BYTES, 1);
    pid_t pid[2];
    tr_ticket *ticket;
    CHECK(data);
    pid[tr_comm_rank(comm)] = getpid();
    CHECK_OK(tr_comm_exchange(comm, pid, sizeof pid[0], "pids"));
    if (tr_comm_rank(comm) == 1) {
        memset(data, 1, BYTES);
        for (;;) CHECK_DONE(comm, &ticket, tr_comm_send(comm, 0, 1, data, BYTES, "large", &ticket));
    }
    CHECK_OK(tr_comm_receive(comm, 1, 1, data, BYTES, "large", &ticket));
    int64_t middle = (int64_t)BYTES / 100 * atoi(what);
    bool done = false;
    while (data[middle] == 0) {
        CHECK_OK(tr_comm_test(comm, &ticket, &done));
        CHECK(!done);
    }
    CHECK(kill(pid[1], SIGKILL) == 0);
    CHECK(tr_comm_wait(comm, &ticket) == TR_EPEER);
    process_say(comm, tr_error_message());
    CHECK(tr_comm_end_operations(comm, "it was killed"));
    tr_free(data);
    return NULL;
}

static void test_half_a_message(void **state)
{
    (void)state;
    static const char *const percent[] = {"1", "40", "70"};
    for (size_t i = 0; i < sizeof percent / sizeof percent[0]; i++) {
        begin();
        launch_run(&launch, 2, half_a_message, percent[i]);
        launch_expect_loss(launch.output, 1, 2, "half a message", "died");
        assert_int_equal(launch.code[0], 0);
    }
}

/* What a rank sent before it was killed is there, for receives that wait for it and for later ones. */
static const char *testament(tr_comm *comm, const char *what)
{
    enum { MESSAGES = 6 };
    static const size_t bytes[MESSAGES] = {0, 10, 70, 5000, 60000, 120000};
    static unsigned char data[MESSAGES][120000];
    bool early = strcmp(what, "early") == 0;
    tr_ticket *ticket[MESSAGES], *barrier;
    int me = tr_comm_rank(comm);
    for (int k = 0; k < MESSAGES && early && me == 0; k++)
        CHECK_OK(tr_comm_receive(comm, 1, k, data[k], bytes[k], "testament", &ticket[k]));
    CHECK_DONE(comm, &barrier, tr_comm_barrier(comm, &barrier));
    if (me == 1) {
        memset(data, 3, sizeof data);
        for (int k = 0; k < MESSAGES; k++)
            CHECK_DONE(comm, &ticket[k],
                       tr_comm_send(comm, 0, k, data[k], bytes[k], "testament", &ticket[k]));
        raise(SIGKILL);
    }
    /* Who hears of the loss may give up its receives: what came before must be in them by then. */
    while (tr_comm_life(comm, 1, NULL, 0) != TR_COMM_DEAD) process_nap(0.001);
    for (int k = 1; k < MESSAGES && early; k++) CHECK(data[k][bytes[k] - 1] == 3);
    for (int k = 0; k < MESSAGES && !early; k++)
        CHECK_OK(tr_comm_receive(comm, 1, k, data[k], bytes[k], "testament", &ticket[k]));
    for (int k = MESSAGES - 1; k >= 0; k--) CHECK_OK(tr_comm_wait(comm, &ticket[k]));
    for (int k = 0; k < MESSAGES; k++)
        for (size_t i = 0; i < bytes[k]; i++) CHECK(data[k][i] == 3);
    return NULL;
}

static void test_testament(void **state)
{
    (void)state;
    for (int round = 0; round < 6; round++) {
        begin();
        launch.silent = round % 2;
        launch_run(&launch, 2, testament, round % 3 ? "early" : "late");
        if (launch.code[0] != 0) fail_msg("round %d: %s", round, launch.output);
    }
}

static uint64_t seed;

static uint64_t draw(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 20;
}

/* Numbers that frames may hold: small ones, limits, anything. */
static uint64_t draw_number(void)
{
    static const uint64_t likely[] = {0,         1,          8,         100,        65536,
                                      INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 31};
    uint64_t kind = draw() % 3;
    return kind == 0 ? draw() % 200 : kind == 1 ? likely[draw() % 10] : draw() << 24 ^ draw();
}

/* Rank 1 writes what it likes to whatever rank 0 reads; that finds an error or waits for what never comes,
   and touches nothing else. */
static const char *nonsense(tr_comm *comm, const char *what)
{
    char data[300];
    tr_ticket *ticket[4];
    tr_status status = TR_OK;
    if (tr_comm_rank(comm) == 0) { /* the last message that makes sense */
        CHECK_OK(tr_comm_send(comm, 1, 5, data, 1, "go", &ticket[0]));
        status = tr_comm_wait(comm, &ticket[0]);
    }
    if (tr_comm_rank(comm) == 1) {
        CHECK_DONE(comm, &ticket[0], tr_comm_receive(comm, 0, 5, data, 1, "go", &ticket[0]));
        struct local_area area;
        CHECK_RUN(look_inside(comm, &area));
        seed = (uint64_t)atoll(what) * 7919 + 1;
        struct local_ring *ring = tr_local_area_ring(&area, 1, 0);
        struct local_writer writer = tr_local_writer(&area, 1, 0);
        writer.head = atomic_load(&ring->head);
        writer.tail = atomic_load(&ring->tail);
        bool done = true;
        for (int i = 0; i < 40 && done; i++) {
            struct local_frame frame = {.kind = (uint32_t)(draw() % 7),
                                        .tag = (int32_t)(draw() % 3),
                                        .bytes = draw_number(),
                                        .cookie = draw() % 4,
                                        .count = draw() % sizeof data};
            if (draw() % 4 == 0) frame.bytes = frame.count + draw() % 50;
            if (tr_local_write(&writer, &frame, data, &done) != TR_OK) break;
        }
        /* And what is not in frames. */
        if (draw() % 3 == 0) atomic_store(&ring->head, writer.head + draw_number());
        if (draw() % 3 == 0) atomic_store(&tr_local_area_ring(&area, 0, 1)->tail, draw_number());
        if (draw() % 3 == 0) atomic_store(&tr_local_area_ring(&area, 0, 1)->credit, draw_number());
        if (draw() % 3 == 0) atomic_store(&area.header->top, draw_number());
        memset(area.record[1].why, 'x', sizeof area.record[1].why);
        for (int i = 0; i < LOCAL_WORDS; i++) atomic_store(&area.record[0].mail[i], draw() << 40 ^ draw());
        atomic_store(&area.record[0].letters, draw() << 40 ^ draw());
        tr_local_knock(&area, 1, 0);
        tr_local_wake(&area, 0);
        process_nap(0.02);
        if (draw() % 2 == 0) atomic_store(&area.record[1].state, LOCAL_GAVE_UP);
        raise(SIGKILL);
    }
    tr_comm_tolerate(comm);
    for (int k = 0; k < 4; k++) ticket[k] = NULL;
    for (int k = 0; k < 3 && status == TR_OK; k++)
        status = tr_comm_receive(comm, 1, k, data, 100, "anything", &ticket[k]);
    char why[600] = "";
    while (status == TR_OK) {
        bool done;
        status = tr_comm_progress(comm);
        for (int k = 0; k < 3 && status == TR_OK; k++)
            if (ticket[k]) status = tr_comm_test(comm, &ticket[k], &done);
        if (status == TR_OK) status = tr_comm_send(comm, 1, 1, data, sizeof data, "answer", &ticket[3]);
        if (status == TR_OK && tr_comm_life(comm, 1, why, sizeof why) != TR_COMM_ALIVE) break;
        tr_comm_idle(comm, 0.01);
    }
    CHECK(status == TR_OK || status == TR_EPEER || status == TR_EMISMATCH);
    tr_window *window;
    if (status == TR_OK) CHECK(tr_window_create(comm, 100, &window) != TR_OK);
    tr_comm_end_operations(comm, "enough");
    return NULL;
}

static void test_nonsense(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        char text[12];
        begin();
        snprintf(text, sizeof text, "%d", round);
        launch_run(&launch, 2, nonsense, text);
        if (launch.code[0] != 0) fail_msg("round %d ended with %d: %s", round, launch.code[0], launch.output);
    }
}

/* Rank 1 gives back what it never had. */
static const char *gives_too_much_back(tr_comm *comm, const char *what)
{
    (void)what;
    char data[8] = "";
    tr_ticket *ticket;
    if (tr_comm_rank(comm) == 1) {
        struct local_area area;
        CHECK_RUN(look_inside(comm, &area));
        atomic_store(&tr_local_area_ring(&area, 0, 1)->credit, (uint64_t)1 << 40);
        CHECK_DONE(comm, &ticket, tr_comm_send(comm, 0, 5, data, 1, "there", &ticket));
        return NULL;
    }
    CHECK_DONE(comm, &ticket, tr_comm_receive(comm, 1, 5, data, 1, "there", &ticket));
    tr_status status = tr_comm_send(comm, 1, 6, data, 1, "mail", &ticket);
    if (status == TR_OK) status = tr_comm_wait(comm, &ticket);
    CHECK(status == TR_EPEER);
    CHECK(strstr(tr_error_message(), "more credit than there is"));
    tr_comm_end_operations(comm, "enough");
    return NULL;
}

static void test_gives_too_much_back(void **state)
{
    (void)state;
    begin();
    launch_run(&launch, 2, gives_too_much_back, "");
    for (int rank = 0; rank < 2; rank++)
        if (launch.code[rank] != 0)
            fail_msg("rank %d ended with %d: %s", rank, launch.code[rank], launch.output);
}

/* ---- memory ---- */

enum { WELL = 0, ALL_GRANTED = 100 };

/* Messages that rank 0 must keep, and ones that it waits for, while one allocation of it fails. */
static int lacks_memory(const struct launch *run, const char *text, int rank)
{
    static const struct tr_comm_settings settings = {.timeout = 60, .patience = 100};
    enum { BYTES = 5 << 20 };
    static unsigned char out[BYTES], in[BYTES];
    tr_ticket *send = NULL, *receive = NULL, *kept = NULL, *end = NULL;
    tr_comm *comm;
    int64_t live = tr_alloc_live();
    tr_status status = tr_comm_local_create(text, &settings, &comm);
    /* Rank 0 may be that fast. */
    if (status != TR_OK) return rank == 1 && strstr(tr_error_message(), "out of memory") ? WELL : 1;
    if (rank == 0) refuse_begin(run->number);
    status = tr_comm_send(comm, 1 - rank, 1, out, BYTES, "large", &send);
    if (status == TR_OK) status = tr_comm_send(comm, 1 - rank, 2, out, 1000, "kept", &kept);
    if (status == TR_OK) status = tr_comm_barrier(comm, &end);
    if (status == TR_OK) status = tr_comm_wait(comm, &end);
    if (status == TR_OK) status = tr_comm_receive(comm, 1 - rank, 1, in, BYTES, "large", &receive);
    if (status == TR_OK) status = tr_comm_wait(comm, &receive);
    if (status == TR_OK) status = tr_comm_receive(comm, 1 - rank, 2, in, 1000, "kept", &receive);
    if (status == TR_OK) status = tr_comm_wait(comm, &receive);
    if (status == TR_OK) status = tr_comm_wait(comm, &send);
    if (status == TR_OK) status = tr_comm_wait(comm, &kept);
    bool granted = rank == 0 && refuse_end();
    if (status != TR_OK) tr_comm_abort(comm, tr_error_message());
    if (rank == 0 && status != (granted ? TR_OK : TR_ENOMEM)) return 2;
    if (rank == 1 && status != TR_OK && (status != TR_EPEER || !strstr(tr_error_message(), "out of memory")))
        return 3;
    tr_comm_destroy(&comm);
    if (tr_alloc_live() != live) return 4;
    return granted ? ALL_GRANTED : WELL;
}

static void test_lacks_memory(void **state)
{
    (void)state;
    for (int at = 0, done = 0; !done; at++) {
        begin();
        launch.be_rank = lacks_memory;
        launch.number = at;
        launch_run(&launch, 2, NULL, "lacks memory");
        done = launch.code[0] == ALL_GRANTED;
        if ((launch.code[0] != WELL && !done) || launch.code[1] != WELL)
            fail_msg("allocation %d: the ranks ended with %d and %d", at, launch.code[0], launch.code[1]);
        assert_true(!done || at > 5);
    }
}

/* Windows give their memory back, as often as they are made. */
static const char *windows(tr_comm *comm, const char *what)
{
    (void)what;
    enum { BYTES = 1 << 20 };
    struct stat facts;
    int64_t most = 0;
    for (int i = 0; i < 30; i++) {
        tr_window *window;
        CHECK_OK(tr_window_create(comm, BYTES, &window));
        unsigned char *own = tr_window_segment(window, tr_comm_rank(comm), NULL);
        for (int k = 0; k < BYTES; k += 4096) CHECK(own[k] == 0);
        memset(own, 1 + i, BYTES);
        tr_ticket *ticket;
        CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
        const unsigned char *other = tr_window_segment(window, 1 - tr_comm_rank(comm), NULL);
        CHECK(other[BYTES - 1] == 1 + i);
        CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
        tr_window_destroy(&window);
        CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
        CHECK(fstat(tr_local_group_descriptor(launch.group), &facts) == 0);
        most = facts.st_blocks * 512 > most ? facts.st_blocks * 512 : most;
    }
    CHECK(most < 4 * BYTES);
    return NULL;
}

static void test_windows(void **state)
{
    (void)state;
    begin();
    launch_expect_well(&launch, 2, windows, "windows");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_oneself),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_gives_up_receives),
        cmocka_unit_test(test_disagree),
        cmocka_unit_test(test_half_a_message),
        cmocka_unit_test(test_testament),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_gives_too_much_back),
        cmocka_unit_test(test_lacks_memory),
        cmocka_unit_test(test_windows),
    };
    return cmocka_run_group_tests_name("comm.local_messages", tests, NULL, NULL);
}
