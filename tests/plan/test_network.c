/* Messages and collectives on a simulated network take what closed forms say. */
#include "plan/world/network.h"
#include "plan/world/transport.h"

#include "base/alloc.h"
#include "base/numbers/tree.h"
#include "comm/class.h"
#include "comm/program.h"

#include <assert.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define L 1e-3 /* seconds of latency, */
#define B 1e6  /* and bytes per second: large numbers, so that everything shows */

/* Nothing but links, unless a test says more. */
static const struct tr_cluster plain = {
    .hosts = 64,
    .per_host = 1,
    .threads = 1,
    .remote = {.latency = L, .rate = B, .overhead = 0, .copying = INFINITY, .eager = INT64_MAX},
    .local = {.latency = 1e-5, .rate = 1e8, .overhead = 0, .copying = INFINITY, .eager = INT64_MAX},
    .memory = INFINITY,
};

static void near(double is, double expected, double share, const char *what)
{
    if (fabs(is - expected) > share * expected + 1e-12) fail_msg("%s: %g, not %g", what, is, expected);
}

/* ---- links ---- */

static double send(struct tr_network *network, int from, int to, double time, double bytes)
{
    double begins;
    tr_network_leave(network, from, to, time, bytes, &begins);
    return tr_network_arrive(network, from, to, begins, bytes);
}

static void links_are_shared(void **state)
{
    (void)state;
    struct tr_network network;
    assert_int_equal(tr_network_make(&plain, &network), TR_OK);
    near(send(&network, 0, 1, 5, 1000), 5 + L + 1000 / B, 1e-9, "a message");
    near(send(&network, 0, 2, 5, 1000), 5 + L + 2000 / B, 1e-9, "a second one of the sender");
    near(send(&network, 3, 2, 5, 1000), 5 + L + 3000 / B, 1e-9, "a second one to the receiver");
    near(send(&network, 1, 0, 5, 1000), 5 + L + 1000 / B, 1e-9, "the other direction is free");
    near(send(&network, 4, 4, 5, 1000), 5 + 1e-5 + 1000 / 1e8, 1e-9, "within a host");
    near(network.up_busy[0], 2000 / B, 1e-9, "the sender's link was busy");
    tr_network_release(&network);
    /* Of the time within a host the processors at both ends have theirs. */
    struct tr_cluster copied = plain;
    copied.local.copying = 4e8;
    assert_int_equal(tr_network_make(&copied, &network), TR_OK);
    near(send(&network, 4, 4, 5, 1000), 5 + 1e-5 + 1000 / 2e8, 1e-9, "within a host, partly copied");
    copied.local.copying = 1e8;
    near(send(&network, 4, 4, 5, 1000), 5 + 1e-5, 1e-9, "within a host, copied");
    tr_network_release(&network);
}

/* ---- ranks ---- */

#define RANKS 16

enum {
    MESSAGE,
    RENDEZVOUS,
    LATE,
    INCAST,
    BARRIER,
    DIRECT,
    HALVING,
    BEHIND,
    EXCHANGE,
    LATE_EXCHANGE,
    TWICE,
    SHARED
};
static struct {
    int kind, ranks;
    int64_t unmarked;
    tr_world *world;
    tr_sim *sim;
    tr_comm *comm[RANKS];
    int64_t bytes;
    double end[RANKS];
    tr_status status[RANKS];
    bool hollow, words; /* contents of numbers are left out; what is sent is not marked as numbers */
} play;

static tr_status one_message(tr_comm *comm, int from, int to)
{
    tr_ticket *ticket = NULL;
    char *data = tr_alloc_zero((size_t)play.bytes, 1);
    int rank = tr_comm_rank(comm);
    if (!data) return TR_ENOMEM;
    if (rank == from) memset(data, 7, (size_t)play.bytes);
    tr_status status = TR_OK;
    if (rank == from)
        status = (play.words ? tr_comm_send : tr_comm_send_numbers)(comm, to, 1, data, (size_t)play.bytes,
                                                                    "test", &ticket);
    if (rank == to) status = tr_comm_receive(comm, from, 1, data, (size_t)play.bytes, "test", &ticket);
    if (status == TR_OK) status = tr_comm_wait(comm, &ticket);
    for (int64_t i = 0; rank == to && i < play.bytes; i++)
        if (data[i] != (play.hollow && !play.words ? 0 : 7)) status = TR_ECORRUPT;
    tr_free(data);
    return status;
}

/* Each of two receives from the other, and sends to it. */
static tr_status exchange(tr_comm *comm)
{
    tr_ticket *receive = NULL, *send = NULL;
    char *data = tr_alloc_zero(2 * (size_t)play.bytes, 1);
    int other = 1 - tr_comm_rank(comm);
    if (!data) return TR_ENOMEM;
    tr_status status = tr_comm_receive(comm, other, 1, data, (size_t)play.bytes, "test", &receive);
    if (status == TR_OK)
        status = tr_comm_send(comm, other, 1, data + play.bytes, (size_t)play.bytes, "test", &send);
    if (status == TR_OK) status = tr_comm_wait(comm, &receive);
    if (status == TR_OK) status = tr_comm_wait(comm, &send);
    tr_free(data);
    return status;
}

/* Rank 0 sends two others a message each, at the same time. */
static tr_status share_link(tr_comm *comm)
{
    tr_ticket *ticket[2] = {NULL, NULL};
    char *data = tr_alloc_zero((size_t)play.bytes, 1);
    int rank = tr_comm_rank(comm);
    size_t bytes = (size_t)play.bytes;
    if (!data) return TR_ENOMEM;
    tr_status status = TR_OK;
    for (int to = 1; to <= 2 && rank == 0 && status == TR_OK; to++)
        status = tr_comm_send(comm, to, 1, data, bytes, "test", &ticket[to - 1]);
    if (rank > 0) status = tr_comm_receive(comm, 0, 1, data, bytes, "test", &ticket[0]);
    for (int i = 0; i < 2; i++)
        if (status == TR_OK && ticket[i]) status = tr_comm_wait(comm, &ticket[i]);
    tr_free(data);
    return status;
}

static tr_status sum_all(tr_comm *comm)
{
    int64_t bound[RANKS + 1], share[RANKS + 1], floats = play.bytes / (int64_t)sizeof(float);
    float *nodes = tr_sim_reserve((size_t)play.bytes), *data = tr_sim_reserve((size_t)play.bytes);
    tr_reduction *reduction = NULL;
    tr_ticket *ticket = NULL;
    for (int r = 0; r <= play.ranks; r++) {
        bound[r] = r;
        share[r] = tr_cut(floats / 16, play.ranks, r) * 16;
    }
    comm->routing = play.kind == DIRECT ? TR_ROUTING_DIRECT : TR_ROUTING_TREE;
    tr_status status = tr_reduction_create(comm, play.ranks, bound, NULL, &reduction);
    if (status == TR_OK)
        status = tr_comm_reduce_start(comm, reduction, nodes, floats, share, data, NULL, "test", &ticket);
    if (status == TR_OK) status = tr_comm_wait_ready(comm, ticket);
    if (status == TR_OK) status = tr_comm_reduce_gather(comm, ticket);
    if (status == TR_OK) status = tr_comm_wait(comm, &ticket);
    tr_reduction_destroy(&reduction);
    tr_sim_unreserve(nodes, (size_t)play.bytes);
    tr_sim_unreserve(data, (size_t)play.bytes);
    return status;
}

/* A message comes while its receiver computes for a second: then it has moved on by itself, and one whose
   sender waits to be asked for it has been. */
static tr_status compute_beside(tr_comm *comm)
{
    tr_ticket *ticket = NULL;
    char bytes[1000] = {0};
    int rank = tr_comm_rank(comm);
    assert(play.bytes <= (int64_t)sizeof bytes);
    tr_status status = rank == 0 ? tr_comm_send(comm, 1, 1, bytes, (size_t)play.bytes, "test", &ticket)
                                 : tr_comm_receive(comm, 0, 1, bytes, (size_t)play.bytes, "test", &ticket);
    if (status == TR_OK && rank == 1) status = tr_sim_compute(play.sim, 1);
    if (status == TR_OK && rank == 1 && !tr_comm_is_done(comm, &ticket)) status = TR_EPEER;
    return status == TR_OK ? tr_comm_wait(comm, &ticket) : status;
}

static tr_status act(tr_comm *comm)
{
    tr_ticket *ticket = NULL;
    int rank = tr_comm_rank(comm);
    if (play.hollow) tr_sim_hollow(play.sim, (size_t)256 << 10);
    switch (play.kind) {
    case BARRIER: {
        tr_status status = tr_comm_barrier(comm, &ticket);
        return status == TR_OK ? tr_comm_wait(comm, &ticket) : status;
    }
    case INCAST: {
        tr_status status = TR_OK;
        for (int from = 1; from < play.ranks && status == TR_OK; from++)
            if (rank == 0 || rank == from) status = one_message(comm, from, 0);
        return status;
    }
    case DIRECT:
    case HALVING:
        return sum_all(comm);
    case BEHIND:
        return compute_beside(comm);
    case LATE_EXCHANGE:
        if (rank == 1) tr_world_spend(play.world, 0.5);
        if (rank == 1) tr_world_pass(play.world);
        return exchange(comm);
    case EXCHANGE:
        return exchange(comm);
    case TWICE: { /* with words between that make them even */
        tr_status status = exchange(comm);
        if (status == TR_OK) status = tr_comm_barrier(comm, &ticket);
        if (status == TR_OK) status = tr_comm_wait(comm, &ticket);
        return status == TR_OK ? exchange(comm) : status;
    }
    case SHARED:
        return share_link(comm);
    case LATE: /* the sender does */
        if (rank == 0) tr_world_spend(play.world, 1);
        if (rank == 0) tr_world_pass(play.world);
        return one_message(comm, 0, 1);
    case RENDEZVOUS: /* the receiver comes late */
        if (rank == 1) tr_world_spend(play.world, 0.5);
        if (rank == 1) tr_world_pass(play.world);
        return one_message(comm, 0, 1);
    default:
        return one_message(comm, 0, 1);
    }
}

static void rank_main(void *user, int rank)
{
    (void)user;
    tr_program_rehearse(tr_sim_touch, play.sim);
    play.status[rank] = act(play.comm[rank]);
    play.end[rank] = tr_world_now(play.world);
    tr_comm_destroy(&play.comm[rank]);
    tr_program_rehearse(NULL, NULL);
}

/* When the last rank was through. */
static double run(int kind, int ranks, int64_t bytes, const struct tr_cluster *cluster)
{
    double last = 0;
    play.kind = kind;
    play.ranks = ranks;
    play.bytes = bytes;
    assert_int_equal(tr_world_create(ranks, &play.world), TR_OK);
    assert_int_equal(tr_sim_create(play.world, cluster, ranks, NULL, play.comm, &play.sim), TR_OK);
    assert_int_equal(tr_world_run(play.world, rank_main, NULL), TR_OK);
    play.unmarked = tr_sim_unmarked(play.sim);
    tr_sim_destroy(&play.sim);
    tr_world_destroy(&play.world);
    for (int r = 0; r < ranks; r++) {
        if (play.status[r] != TR_OK) fail_msg("rank %d of %d: %d", r, ranks, play.status[r]);
        if (play.end[r] > last) last = play.end[r];
    }
    return last;
}

static void messages_take_their_time(void **state)
{
    (void)state;
    struct tr_cluster cluster = plain;
    near(run(MESSAGE, 2, 1000, &plain), L + 1000 / B, 1e-6, "a message");
    play.hollow = true;
    near(run(MESSAGE, 2, 1 << 20, &plain), L + (1 << 20) / B, 1e-6, "a large one without contents");
    assert_int_equal(play.unmarked, 0);
    play.words = true;
    near(run(MESSAGE, 2, 1 << 20, &plain), L + (1 << 20) / B, 1e-6, "a large one by which ranks decide");
    assert_int_equal(play.unmarked, 1);
    play.hollow = play.words = false;
    cluster.remote.eager = 100;
    near(run(RENDEZVOUS, 2, 1000, &cluster), 0.5 + 2 * L + 1000 / B, 1e-6, "one that waits for its receiver");
    near(run(RENDEZVOUS, 2, 100, &cluster), 0.5, 1e-6, "one that does not");
    cluster = plain;
    cluster.remote.overhead = 0.01;
    cluster.remote.copying = 1e5;
    /* What its receiver does for a message is over but for what did not fit into the time in which it came.
     */
    near(run(MESSAGE, 2, 1000, &cluster), L + 2 * (0.01 + 1000 / 1e5), 1e-6, "processors' part");
    cluster.remote.copying = 2e6;
    near(run(MESSAGE, 2, 1000, &cluster), L + 1000 / B + 2 * 0.01 + 1000 / 2e6, 1e-6,
         "fast processors' part");
    cluster.remote.eager = 100;
    near(run(MESSAGE, 2, 1000, &cluster), 3 * L + 1000 / B + 4 * 0.01, 1e-6,
         "that of one that waits for its receiver");
    cluster = plain;
    cluster.remote.copying = B / 1.5;
    /* The time in which a receiver did nothing hides work for one message only: 1 ms and 0.5 ms. */
    near(run(INCAST, 3, 1000, &cluster), L + 4.5 * 1000 / B, 1e-6, "two that come together");
    near(run(INCAST, 9, 1000, &plain), L + 8 * 1000 / B, 1e-6, "eight to one");
    near(run(BEHIND, 2, 1, &plain), 1, 1e-6, "one that comes while its receiver computes");
    cluster = plain;
    cluster.remote.eager = 100;
    near(run(BEHIND, 2, 1000, &cluster), 1, 1e-6, "a large one");
    near(play.end[0], 3 * L + 1000 / B, 1e-6, "its sender");
}

/* Two exchange messages of which one goes after the other; one that is late has asked for the other's before
   it announces its own. */
static void large_messages_go_one_way(void **state)
{
    (void)state;
    struct tr_cluster cluster = plain;
    cluster.remote.eager = 100;
    cluster.remote.one_way = 50000;
    near(run(EXCHANGE, 2, 50000, &cluster), 3 * L + 50000 / B, 1e-6, "both ways at once");
    cluster.remote.one_way = 49999;
    near(run(EXCHANGE, 2, 50000, &cluster), 4 * L + 2 * 50000 / B, 1e-6, "one after the other");
    near(run(TWICE, 2, 50000, &cluster), 8 * L + 3 * 50000 / B, 1e-6, "every other time both at once");
    near(run(LATE_EXCHANGE, 2, 50000, &cluster), 0.5 + 3 * L + 2 * 50000 / B, 1e-6, "with one that is late");
    cluster.remote.eager = INT64_MAX;
    near(run(LATE_EXCHANGE, 2, 50000, &cluster), 0.5 + L + 50000 / B, 1e-6, "small ones");
}

/* Large messages that leave at the same time arrive at nearly the same time, and keep small ones waiting for
   a piece at most. */
static void messages_share_links(void **state)
{
    (void)state;
    const int64_t bytes = 1 << 20;
    near(run(SHARED, 3, bytes, &plain), L + 2.0 * (double)bytes / B, 1e-6, "the last of two");
    near(play.end[1], L + 1.875 * (double)bytes / B, 1e-6, "the first of two");
    near(play.end[2], L + 2.0 * (double)bytes / B, 1e-6, "the second of two");
}

/* Between hosts nobody is woken: who has waited long looks again within a nap. */
static void naps_are_slept_out(void **state)
{
    (void)state;
    struct tr_cluster cluster = plain;
    cluster.naps = true;
    double late = run(LATE, 2, 1000, &cluster) - (1 + L + 1000 / B);
    assert_true(late > 1e-6 && late < 1.1e-3);
    near(run(LATE, 2, 0, &plain), 1 + L, 1e-6, "without naps");
    cluster.remote.latency = 1e-4;
    near(run(MESSAGE, 2, 100, &cluster), 2e-4, 1e-6, "one that comes soon");
}

/* Ranks fill hosts one after the other; those that are too many are shared out from the first on. */
static void ranks_fill_hosts(void **state)
{
    (void)state;
    struct tr_cluster cluster = {.hosts = 2, .per_host = 2};
    static const int first[][4] = {{3, 0, 2, 3}, {4, 0, 2, 4}, {5, 0, 3, 5}, {6, 0, 3, 6}, {7, 0, 4, 7}};
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
        for (int host = 0; host <= 2; host++)
            assert_int_equal(tr_cluster_first_rank(&cluster, first[i][0], host), first[i][1 + host]);
}

/* Who has waited long sleeps, and takes the time to wake; all do at once where processors are few. */
static void sleepers_are_woken(void **state)
{
    (void)state;
    struct tr_cluster host = plain;
    host.hosts = 1;
    host.per_host = 2;
    host.local.waking = 0.01;
    near(run(LATE, 2, 1000, &host), 1 + 2e-5 + 0.01, 1e-6, "a message to one that sleeps");
    near(run(MESSAGE, 2, 1000, &host), 2e-5, 1e-6, "to one that gives way");
    host.processors = 1;
    near(run(MESSAGE, 2, 1000, &host), 2e-5 + 0.01, 1e-6, "to one that must sleep at once");
    host.hosts = 2;
    host.per_host = 1;
    near(run(LATE, 2, 1000, &host), 1 + L + 1000 / B, 1e-6, "between hosts latency has that");
}

static int log_of(int ranks)
{
    int log = 0;
    while (1 << log < ranks) log++;
    return log;
}

/* Reduce-scatter and all-gather: each rank sends and receives 2 (W - 1)/W of the bytes; directly with the
   latency of two messages, by halving of 2 log2 W, in rounds whose parts are halves of halves. */
static void collectives_take_what_their_forms_say(void **state)
{
    (void)state;
    for (int ranks = 4; ranks <= RANKS; ranks *= 2) {
        double bytes = 64000 * ranks, moved = 2 * bytes * (ranks - 1) / ranks / B;
        char what[64];
        snprintf(what, sizeof what, "direct among %d", ranks);
        near(run(DIRECT, ranks, (int64_t)bytes, &plain), moved + 2 * L, 0.03, what);
        snprintf(what, sizeof what, "halving among %d", ranks);
        near(run(HALVING, ranks, (int64_t)bytes, &plain), moved + 2 * log_of(ranks) * L, 0.03, what);
    }
    /* With small messages it is the latency that counts, and rounds lose against one round. */
    assert_true(run(DIRECT, 16, 1024, &plain) < run(HALVING, 16, 1024, &plain));
}

static void barriers_take_rounds(void **state)
{
    (void)state;
    near(run(BARRIER, 4, 0, &plain), 2 * L, 0.05, "a barrier of 4");
    near(run(BARRIER, 16, 0, &plain), 4 * L, 0.05, "a barrier of 16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_shared),     cmocka_unit_test(messages_take_their_time),
        cmocka_unit_test(sleepers_are_woken),   cmocka_unit_test(collectives_take_what_their_forms_say),
        cmocka_unit_test(barriers_take_rounds), cmocka_unit_test(large_messages_go_one_way),
        cmocka_unit_test(naps_are_slept_out),   cmocka_unit_test(ranks_fill_hosts),
        cmocka_unit_test(messages_share_links),
    };
    return cmocka_run_group_tests_name("plan.network", tests, NULL, NULL);
}
