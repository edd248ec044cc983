/* Messages and collectives that move bytes; windows; handshake. Sums are in sums.c. */
#include "comm/scenarios/scenarios.h"

#include "base/threads/clock.h"
#include "base/numbers/tree.h"
#include "comm/check.h"
#include "comm/scenarios/parts.h"
#include "comm/scenarios/sums.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

/* A byte that tells rank, place and purpose. */
static unsigned char mark(int rank, int64_t at, int salt)
{
    return (unsigned char)(rank * 37 + at * 11 + at / 251 + salt * 101 + 1);
}

static void paint(unsigned char *data, int64_t bytes, int rank, int salt)
{
    for (int64_t i = 0; i < bytes; i++) data[i] = mark(rank, i, salt);
}

static const char *check_paint(const unsigned char *data, int64_t bytes, int rank, int salt)
{
    for (int64_t i = 0; i < bytes; i++) CHECK(data[i] == mark(rank, i, salt));
    return NULL;
}

/* ---- messages ---- */

/* Everybody sends everybody (itself, too) messages of several sizes, and receives them in another order of
 * tags. */
static const char *exchange(tr_comm *comm)
{
    enum { SIZES = 5 };
    static const int64_t sizes[SIZES] = {0, 1, 7, 5000, 100003};
    int size = tr_comm_size(comm), me = tr_comm_rank(comm);
    int64_t most = sizes[SIZES - 1];
    unsigned char *out = tr_alloc((size_t)(SIZES * most), 1),
                  *in = tr_alloc((size_t)(size * SIZES * most), 1);
    tr_ticket *send[RANKS * SIZES] = {NULL}, *receive[RANKS * SIZES] = {NULL};
    CHECK(out && in && size <= RANKS);
    for (int k = 0; k < SIZES; k++) paint(out + k * most, sizes[k], me, k);
    for (int peer = 0; peer < size; peer++) {
        for (int k = 0; k < SIZES; k++) {
            int back = SIZES - 1 - k;
            CHECK_OK(tr_comm_send(comm, peer, k, out + k * most, (size_t)sizes[k], "test",
                                  &send[peer * SIZES + k]));
            CHECK_OK(tr_comm_receive(comm, peer, back, in + (peer * SIZES + back) * most, (size_t)sizes[back],
                                     "test", &receive[peer * SIZES + back]));
        }
    }
    for (int i = size * SIZES - 1; i >= 0; i--) CHECK_OK(tr_comm_wait(comm, &receive[i]));
    for (int i = 0; i < size * SIZES; i++) CHECK_OK(tr_comm_wait(comm, &send[i]));
    for (int i = 0; i < size * SIZES; i++)
        CHECK_RUN(check_paint(in + i * most, sizes[i % SIZES], i / SIZES, i % SIZES));
    tr_free(out);
    tr_free(in);
    return NULL;
}

/* Messages of one tag arrive in order, whenever the receives are posted. */
static const char *order(tr_comm *comm)
{
    enum { MESSAGES = 20 };
    int size = tr_comm_size(comm), me = tr_comm_rank(comm), to = (me + 1) % size,
        from = (me + size - 1) % size;
    int32_t sent[MESSAGES], got[MESSAGES];
    tr_ticket *send[MESSAGES], *receive[MESSAGES];
    for (int i = 0; i < MESSAGES; i++) {
        sent[i] = me * 1000 + i;
        CHECK_OK(tr_comm_send(comm, to, 5, &sent[i], sizeof sent[i], NULL, &send[i]));
        if (i % 2)
            CHECK_OK(tr_comm_receive(comm, from, 5, &got[i / 2], sizeof got[0], NULL, &receive[i / 2]));
    }
    for (int i = MESSAGES / 2; i < MESSAGES; i++)
        CHECK_OK(tr_comm_receive(comm, from, 5, &got[i], sizeof got[i], NULL, &receive[i]));
    for (int i = 0; i < MESSAGES; i++) {
        bool done = false;
        while (!done) {
            CHECK_OK(tr_comm_test(comm, &receive[i], &done));
            if (!done) tr_comm_idle(comm, 0.05);
        }
        CHECK_OK(tr_comm_wait(comm, &send[i]));
        CHECK(got[i] == from * 1000 + i);
    }
    return NULL;
}

/* A receive that is given up takes nothing, and its memory is free. */
static const char *cancel(tr_comm *comm)
{
    int size = tr_comm_size(comm), me = tr_comm_rank(comm);
    int32_t never = -1, value = me, got = -1;
    tr_ticket *given_up, *send, *receive;
    CHECK_OK(tr_comm_receive(comm, (me + 1) % size, 9, &never, sizeof never, NULL, &given_up));
    CHECK(tr_comm_cancel(comm, &given_up) && !given_up);
    CHECK(tr_comm_cancel(comm, &given_up));
    CHECK_DONE(comm, &send, tr_comm_barrier(comm, &send)); /* else a message for it may come before */
    CHECK_OK(tr_comm_send(comm, (me + size - 1) % size, 9, &value, sizeof value, NULL, &send));
    CHECK_OK(tr_comm_receive(comm, (me + 1) % size, 9, &got, sizeof got, NULL, &receive));
    CHECK_OK(tr_comm_wait(comm, &send));
    CHECK_OK(tr_comm_wait(comm, &receive));
    CHECK(never == -1 && got == (me + 1) % size);
    return NULL;
}

static const char *refusals(tr_comm *comm)
{
    tr_ticket *ticket;
    char byte = 0;
    CHECK(tr_comm_send(comm, tr_comm_size(comm), 0, &byte, 1, NULL, &ticket) == TR_EINVAL && !ticket);
    CHECK(tr_comm_receive(comm, -1, 0, &byte, 1, NULL, &ticket) == TR_EINVAL && !ticket);
    CHECK(tr_comm_send(comm, 0, -1, &byte, 1, NULL, &ticket) == TR_EINVAL && !ticket);
    CHECK(tr_comm_send(comm, 0, TR_COMM_TAG_MOST + 1, &byte, 1, NULL, &ticket) == TR_EINVAL && !ticket);
    CHECK(tr_comm_broadcast(comm, tr_comm_size(comm), &byte, 1, NULL, &ticket) == TR_EINVAL && !ticket);
    int64_t falling[RANKS + 1] = {0};
    falling[0] = 1;
    CHECK(tr_comm_all_gather(comm, &byte, falling, NULL, NULL, &ticket) == TR_EINVAL && !ticket);
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket)); /* and is still well */
    return NULL;
}

/* ---- collectives ---- */

/* Nobody leaves before the last came. */
static const char *barrier(tr_comm *comm)
{
    double at[RANKS][2]; /* enters, leaves; one host, one clock */
    int64_t bound[RANKS + 1];
    int size = tr_comm_size(comm), me = tr_comm_rank(comm);
    tr_ticket *ticket;
    for (int late = 0; late < size; late++) {
        if (me == late) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        at[me][0] = tr_clock_seconds();
        CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
        at[me][1] = tr_clock_seconds();
        for (int i = 0; i <= size; i++) bound[i] = i * (int64_t)sizeof at[0];
        CHECK_DONE(comm, &ticket, tr_comm_all_gather(comm, at, bound, NULL, "times", &ticket));
        for (int i = 0; i < size; i++)
            for (int j = 0; j < size; j++) CHECK(at[i][1] >= at[j][0]);
    }
    return NULL;
}

static const char *broadcast(tr_comm *comm)
{
    static const int64_t sizes[] = {0, 1, 13, 4099, 262143, 262144, 700001};
    int me = tr_comm_rank(comm);
    unsigned char *data = tr_alloc(700001, 1);
    CHECK(data);
    for (int root = 0; root < tr_comm_size(comm); root++) {
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            tr_ticket *ticket;
            memset(data, 0, 700001);
            if (me == root) paint(data, sizes[k], root, (int)k);
            CHECK_DONE(comm, &ticket, tr_comm_broadcast(comm, root, data, (size_t)sizes[k], "test", &ticket));
            CHECK_RUN(check_paint(data, sizes[k], root, (int)k));
        }
    }
    tr_free(data);
    return NULL;
}

/* What ranks have comes to the first, and stays with the others. */
static const char *gather(tr_comm *comm)
{
    int size = tr_comm_size(comm), me = tr_comm_rank(comm);
    unsigned char data[64 * RANKS + 1];
    int64_t bound[RANKS + 1];
    for (int uneven = 0; uneven < 2; uneven++) {
        tr_ticket *ticket;
        for (int i = 0; i <= size; i++) bound[i] = uneven ? 3 * i * i : 64 * i;
        memset(data, 0, sizeof data);
        paint(data + bound[me], bound[me + 1] - bound[me], me, uneven);
        CHECK_DONE(comm, &ticket, tr_comm_gather(comm, data, bound, "test", &ticket));
        for (int i = 0; i < size; i++)
            if (me == 0 || i == me)
                CHECK_RUN(check_paint(data + bound[i], bound[i + 1] - bound[i], i, uneven));
    }
    return NULL;
}

static const char *all_gather(tr_comm *comm)
{
    static const int64_t sizes[] = {0, 1, 3, 17, 1001, 300007};
    int size = tr_comm_size(comm), me = tr_comm_rank(comm);
    unsigned char *data = tr_alloc(300007, 1);
    int64_t bound[RANKS + 1];
    CHECK(data);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        for (int uneven = 0; uneven < 2; uneven++) {
            /* Even shares; or shares that grow with the square of the rank, so that the first is empty. */
            for (int i = 0; i <= size; i++)
                bound[i] = uneven ? sizes[k] * i * i / ((int64_t)size * size) : tr_cut(sizes[k], size, i);
            memset(data, 0, (size_t)sizes[k]);
            paint(data + bound[me], bound[me + 1] - bound[me], me, uneven);
            tr_ticket *ticket;
            CHECK_DONE(comm, &ticket, tr_comm_all_gather(comm, data, bound, NULL, "test", &ticket));
            for (int i = 0; i < size; i++)
                CHECK_RUN(check_paint(data + bound[i], bound[i + 1] - bound[i], i, uneven));
        }
    }
    tr_free(data);
    return NULL;
}

/* ---- windows ---- */

/* Parts of different sizes, one of them empty; what one writes, the others read. */
static const char *window(tr_comm *comm)
{
    int me = tr_comm_rank(comm), locals = tr_comm_local_size(comm);
    tr_window *memory;
    tr_ticket *ticket;
    size_t bytes, own = me == 1 ? 0 : 5000 + 100 * (size_t)me;
    CHECK(tr_comm_local(comm, tr_comm_local_rank(comm)) == me);
    CHECK_OK(tr_window_create(comm, own, &memory));
    unsigned char *part = tr_window_segment(memory, me, &bytes);
    CHECK(bytes == own && (part || own == 0) && (uintptr_t)part % TR_CACHE_LINE == 0);
    for (size_t i = 0; i < bytes; i++) CHECK(part[i] == 0);
    paint(part, (int64_t)bytes, me, 3);
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    for (int i = 0; i < locals; i++) {
        int rank = tr_comm_local(comm, i);
        CHECK(tr_comm_host_of(comm, rank) == tr_comm_host_of(comm, me));
        part = tr_window_segment(memory, rank, &bytes);
        CHECK(bytes == (rank == 1 ? 0 : 5000 + 100 * (size_t)rank));
        CHECK_RUN(check_paint(part, (int64_t)bytes, rank, 3));
    }
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    tr_window_destroy(&memory);
    CHECK(!memory);
    return NULL;
}

/* One copy of the data a host: only shares from other hosts move. */
static const char *window_gather(tr_comm *comm)
{
    enum { BYTES = 100003 };
    int size = tr_comm_size(comm), me = tr_comm_rank(comm), owner = tr_comm_local(comm, 0);
    int64_t bound[RANKS + 1];
    tr_window *memory;
    tr_ticket *ticket;
    struct tr_comm_statistics before, after;
    CHECK_OK(tr_window_create(comm, me == owner ? BYTES : 0, &memory));
    unsigned char *data = tr_window_segment(memory, owner, NULL);
    for (int i = 0; i <= size; i++) bound[i] = tr_cut(BYTES, size, i);
    for (int round = 0; round < 3; round++) {
        tr_comm_statistics(comm, &before);
        paint(data + bound[me], bound[me + 1] - bound[me], me, round);
        CHECK_DONE(comm, &ticket, tr_comm_all_gather(comm, data, bound, memory, "test", &ticket));
        for (int i = 0; i < size; i++)
            CHECK_RUN(check_paint(data + bound[i], bound[i + 1] - bound[i], i, round));
        tr_comm_statistics(comm, &after);
        int64_t sent[RANKS], all = 0; /* each share once to each other host, whoever sends it */
        sent[me] = after.bytes_sent - before.bytes_sent;
        CHECK_OK(tr_comm_exchange(comm, sent, sizeof sent[0], "bytes"));
        for (int i = 0; i < size; i++) all += sent[i];
        CHECK(all == (int64_t)BYTES * (tr_comm_hosts(comm) - 1));
        CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket)); /* all have read */
    }
    unsigned char elsewhere[4] = {0};
    for (int i = 0; i <= size; i++) bound[i] = i == 0 ? 0 : 4;
    CHECK(tr_comm_all_gather(comm, elsewhere, bound, memory, "test", &ticket) == TR_EINVAL);
    tr_window_destroy(&memory);
    return NULL;
}

/* ---- handshake ---- */

static const char *agree(tr_comm *comm)
{
    int size = tr_comm_size(comm), me = tr_comm_rank(comm);
    char text[400], value[64];
    CHECK_OK(tr_comm_agree(comm, "model", "0123456789abcdef", "use one model file"));
    CHECK_OK(tr_comm_agree(comm, "data", "", "use one data set"));
    if (size == 1) return NULL;
    /* The last one differs: all must say so, naming it and both values. */
    snprintf(value, sizeof value, me == size - 1 ? "digest-b" : "digest-a");
    CHECK(tr_comm_agree(comm, "model", value, "use one model file") == TR_EMISMATCH);
    snprintf(
        text, sizeof text,
        "model: rank %d on host %s has \"digest-b\", rank %d on host %s has \"digest-a\"; use one model file",
        tr_comm_number(comm, size - 1), tr_comm_host(comm, size - 1), tr_comm_number(comm, 0),
        tr_comm_host(comm, 0));
    CHECK(strcmp(tr_error_message(), text) == 0);
    /* Other lengths, and another key. */
    CHECK(tr_comm_agree(comm, "model", me == 0 ? "short" : "much longer than short", "x") == TR_EMISMATCH);
    snprintf(value, sizeof value, "rank %d ", tr_comm_number(comm, 1));
    CHECK(strstr(tr_error_message(), value));
    CHECK(tr_comm_agree(comm, me == 0 ? "model" : "data", "same", "x") == TR_EMISMATCH);
    CHECK(strstr(tr_error_message(), "\"data\"") && strstr(tr_error_message(), "\"model\""));
    /* The communicator is still well, and long values show where they differ. */
    memset(text, '.', sizeof text);
    text[sizeof text - 1] = 0;
    CHECK_OK(tr_comm_agree(comm, "options", text, "x"));
    if (me == size - 1) text[390] = '!';
    CHECK(tr_comm_agree(comm, "options", text, "x") == TR_EMISMATCH);
    char expected[500];
    snprintf(expected, sizeof expected,
             "options: rank %d on host %s has \"...%.80s!%.8s\", rank %d on host %s has \"...%.89s\"; x",
             tr_comm_number(comm, size - 1), tr_comm_host(comm, size - 1), text, text,
             tr_comm_number(comm, 0), tr_comm_host(comm, 0), text);
    CHECK(strcmp(tr_error_message(), expected) == 0);
    /* From their beginning, where they differ soon. */
    text[390] = '.';
    if (me == size - 1) text[80] = '!';
    CHECK(tr_comm_agree(comm, "options", text, "x") == TR_EMISMATCH);
    text[80] = '.';
    snprintf(expected, sizeof expected,
             "options: rank %d on host %s has \"%.80s!%.79s\", rank %d on host %s has \"%.160s\"; x",
             tr_comm_number(comm, size - 1), tr_comm_host(comm, size - 1), text, text,
             tr_comm_number(comm, 0), tr_comm_host(comm, 0), text);
    CHECK(strcmp(tr_error_message(), expected) == 0);
    return NULL;
}

/* ---- several threads, one communicator ---- */

struct helper {
    tr_comm *comm;
    const char *wrong;
};

static const char *send_from_helper(tr_comm *comm)
{
    int me = tr_comm_rank(comm), size = tr_comm_size(comm);
    for (int i = 0; i < 50; i++) {
        tr_ticket *send, *receive;
        int32_t value = me * 100 + i, got = -1;
        CHECK_OK(tr_comm_receive(comm, (me + 1) % size, 77, &got, sizeof got, NULL, &receive));
        CHECK_OK(tr_comm_send(comm, (me + size - 1) % size, 77, &value, sizeof value, NULL, &send));
        CHECK_OK(tr_comm_wait(comm, &receive));
        CHECK_OK(tr_comm_wait(comm, &send));
        CHECK(got == (me + 1) % size * 100 + i);
    }
    return NULL;
}

static void *helper_main(void *argument)
{
    struct helper *helper = argument;
    const char *wrong = send_from_helper(helper->comm);
    helper->wrong = wrong ? "the helping thread failed" : NULL;
    return NULL;
}

/* Messages by one thread while another runs collectives. */
static const char *threads(tr_comm *comm)
{
    struct helper helper = {comm, NULL};
    pthread_t thread;
    tr_ticket *ticket;
    unsigned char byte = 7;
    CHECK(pthread_create(&thread, NULL, helper_main, &helper) == 0);
    for (int i = 0; i < 50; i++) {
        if (tr_comm_broadcast(comm, i % tr_comm_size(comm), &byte, 1, "test", &ticket) != TR_OK ||
            tr_comm_wait(comm, &ticket) != TR_OK)
            byte = 0;
    }
    pthread_join(thread, NULL);
    CHECK(byte == 7);
    return helper.wrong;
}

const struct scenario scenarios[] = {
    {"exchange", exchange},
    {"order", order},
    {"cancel", cancel},
    {"refusals", refusals},
    {"barrier", barrier},
    {"broadcast", broadcast},
    {"gather", gather},
    {"all_gather", all_gather},
    {"window", window},
    {"window_gather", window_gather},
    {"agree", agree},
    {"threads", threads},
    {"sums", scenario_sums},
    {"sums_in_window", scenario_sums_in_window},
    {"all_reduce", scenario_all_reduce},
    {"buckets", scenario_buckets},
    {"apply", scenario_apply},
    {"bytes", scenario_bytes},
    {"combine", scenario_combine},
    {"parts", scenario_parts},
    {"large", scenario_large},
    {NULL, NULL},
};
