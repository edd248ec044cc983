/* Routes of up to 4,096 ranks, each derived as the rank itself would, without anybody to send to: both ends
 * of every message agree about it, a rank sends log2 W of them, and every rank's words reach the root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/numbers/tree.h"
#include "comm/sums/route.h"
#include "comm/sums/spanning.h"
#include "refuse.h"

#define MOST 4096

/* Ranks, so many on a host; their leaves in the tree of a reduction. */
static const struct {
    int ranks, a_host;
    int64_t leaves;
} cases[] = {{4096, 1, 4096}, {4096, 16, 4096}, {4096, 1, 6000}, {3000, 1, 3000}, {1000, 24, 1500}};
#define CASES (sizeof cases / sizeof cases[0])

static struct tr_comm comm;
static int hosts_of[MOST], hosts_place[MOST], hosts_start[MOST + 1], everybody[MOST];
static int alone_of[MOST], alone_place[MOST], alone_start[MOST + 1];
static int64_t bound[MOST + 1];
static struct tr_leaves leaves;

static int log_of(int64_t ranks)
{
    int log = 0;
    while ((int64_t)1 << log < ranks) log++;
    return log;
}

static void arrange(int ranks, int a_host, int64_t count)
{
    int hosts = (ranks + a_host - 1) / a_host;
    for (int r = 0; r < ranks; r++) {
        hosts_of[r] = r / a_host;
        hosts_place[r] = r % a_host;
        alone_of[r] = alone_start[r] = everybody[r] = r;
        alone_place[r] = 0;
    }
    for (int h = 0; h < hosts; h++) hosts_start[h] = h * a_host;
    hosts_start[hosts] = alone_start[ranks] = ranks;
    comm = (struct tr_comm){.size = ranks};
    comm.hosts = (struct tr_islands){hosts, hosts_of, hosts_place, hosts_start, everybody};
    comm.alone = (struct tr_islands){ranks, alone_of, alone_place, alone_start, everybody};
    tr_tree_cut(count, ranks, bound);
    leaves = (struct tr_leaves){.comm = &comm, .islands = &comm.hosts, .count = count, .bound = bound};
}

static void set_up(size_t number)
{
    arrange(cases[number].ranks, cases[number].a_host, cases[number].leaves);
}

enum { SUMS, SHARES, KINDS };

static tr_status attempt(int kind, int rank, struct tr_route *out)
{
    comm.rank = rank;
    return kind == SUMS ? tr_route_halve(&leaves, out) : tr_route_double(&comm, &comm.hosts, out);
}

static void derive(int kind, int rank, struct tr_route *out)
{
    assert_int_equal(attempt(kind, rank, out), TR_OK);
}

/* The number-th message between the route's rank and `peer` in a direction; NULL: there are fewer. */
static const struct tr_hop *find(const struct tr_route *route, int peer, bool sends, int number)
{
    for (int i = 0; i < route->hops; i++)
        if (route->hop[i].peer == peer && route->hop[i].sends == sends && number-- == 0)
            return &route->hop[i];
    return NULL;
}

static void expect_agreement(const struct tr_route *one, const struct tr_route *other, int rank, int peer)
{
    for (int sends = 0; sends < 2; sends++)
        for (int number = 0;; number++) {
            const struct tr_hop *here = find(one, peer, sends, number),
                                *there = find(other, rank, !sends, number);
            assert_int_equal(here != NULL, there != NULL);
            if (!here) break;
            assert_int_equal(here->round, there->round);
            assert_int_equal(here->count, there->count);
            for (int i = 0; i < here->count; i++) {
                const struct tr_piece *a = &one->piece[here->first + i], *b = &other->piece[there->first + i];
                assert_true(a->owner == b->owner && a->from == b->from && a->to == b->to);
            }
        }
}

static void expect_agreement_of(int kind, int rank)
{
    struct tr_route route, other;
    derive(kind, rank, &route);
    for (int i = 0; i < route.hops; i++) {
        int peer = route.hop[i].peer, seen = 0;
        while (route.hop[seen].peer != peer) seen++;
        if (seen < i) continue;
        derive(kind, peer, &other);
        expect_agreement(&route, &other, rank, peer);
        tr_route_release(&other);
    }
    tr_route_release(&route);
}

static void both_ends_agree(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        set_up(c);
        for (int kind = 0; kind < KINDS; kind++) {
            expect_agreement_of(kind, 998);
            expect_agreement_of(kind, comm.size - 1);
        }
    }
}

static void a_rank_sends_as_many_messages_as_there_are_levels(void **state)
{
    (void)state;
    for (size_t c = 0; c < 2; c++) {
        set_up(c);
        for (int kind = 0; kind < KINDS; kind++)
            for (int rank = 5; rank < comm.size; rank += comm.size / 8) {
                struct tr_route route;
                int sent = 0;
                derive(kind, rank, &route);
                for (int i = 0; i < route.hops; i++) sent += route.hop[i].sends;
                assert_int_equal(sent, log_of(comm.hosts.count));
                tr_route_release(&route);
            }
    }
}

static void words_reach_the_root(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        set_up(c);
        assert_int_equal(tr_spanning_parent(&comm, 0), -1);
        for (int rank = 1; rank < comm.size; rank++) {
            int child[TR_SPANNING_MOST], parent = tr_spanning_parent(&comm, rank), depth = 0, times = 0;
            int children = tr_spanning_children(&comm, parent, child);
            for (int i = 0; i < children; i++) times += child[i] == rank;
            assert_int_equal(times, 1);
            for (int at = rank; at > 0; depth++) at = tr_spanning_parent(&comm, at);
            assert_in_range(depth, 1,
                            (uintmax_t)log_of(comm.hosts.count) + (uintmax_t)log_of(cases[c].a_host));
        }
    }
}

/* Whichever allocation fails: the route says so, and leaves nothing behind. */
static void routes_without_memory_leave_nothing(void **state)
{
    (void)state;
    arrange(11, 2, 13);
    for (int kind = 0; kind < KINDS; kind++)
        for (int64_t at = 0, done = 0; !done; at++) {
            struct tr_route route;
            int64_t live = tr_alloc_live();
            refuse_begin(at);
            tr_status status = attempt(kind, 4, &route);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            tr_route_release(&route);
            assert_int_equal(tr_alloc_live(), live);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_agree),
        cmocka_unit_test(a_rank_sends_as_many_messages_as_there_are_levels),
        cmocka_unit_test(words_reach_the_root),
        cmocka_unit_test(routes_without_memory_leave_nothing),
    };
    return cmocka_run_group_tests_name("comm.route", tests, NULL, NULL);
}
