/* How messages, bytes and memory grow with the number of ranks: counted, on up to 256 ranks that are threads,
 * apart and on hosts that share memory. Laws of growth, and sums to the bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/numbers/tree.h"
#include "comm/check.h"
#include "comm/class.h"
#include "sanitized.h"
#include "comm/scenarios/scenarios.h"
#include "support/comm_thread/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MOST  (SANITIZED ? 64 : 256)
#define COUNT (16 * 1024) /* floats of a bucket */

static const struct tr_comm_settings settings = {.timeout = 300, .patience = 300};

static int log_of(int64_t ranks)
{
    int log = 0;
    while ((int64_t)1 << log < ranks) log++;
    return log;
}

/* What a kind of operation took on a rank. */
struct taken {
    int64_t messages, bytes, received;
};

enum { REDUCE, GATHER, WORDS, COMBINE, APPLY, KINDS };

struct member {
    tr_comm *comm;
    bool windows;
    int64_t leaves;
    pthread_t thread;
    struct taken taken[KINDS];
    char wrong[1600];
};

static struct member member[256];

static void add(void *into, const void *from)
{
    *(int64_t *)into += *(const int64_t *)from;
}

/* ---- what a rank does ---- */

struct work {
    tr_comm *comm;
    int64_t leaves, *bound, *shard, *bytes;
    tr_reduction *reduction;
    tr_window *window; /* of nodes, then of data; NULL: messages only */
    float *nodes, *data, *own;
    struct tr_comm_statistics before;
};

static void begin(struct work *work)
{
    tr_comm_statistics(work->comm, &work->before);
}

static void end(struct work *work, struct taken *out)
{
    struct tr_comm_statistics after;
    tr_comm_statistics(work->comm, &after);
    *out = (struct taken){.messages = after.messages_sent - work->before.messages_sent,
                          .bytes = after.bytes_sent - work->before.bytes_sent,
                          .received = after.bytes_received - work->before.bytes_received};
}

static const char *check_sums(const struct work *work, const float *out, int64_t begin_, int64_t end_)
{
    for (int64_t e = begin_; e < end_; e += 509) {
        float right = scenario_sum(work->leaves, e);
        CHECK(memcmp(&out[e], &right, sizeof right) == 0);
    }
    return NULL;
}

/* Leaves by the definition of the tree. */
static float node_of(int64_t first, int64_t last, int64_t element)
{
    if (last - first == 1) return scenario_leaf(first, element);
    int64_t left = 1;
    while (left * 2 < last - first) left *= 2;
    return node_of(first, first + left, element) + node_of(first + left, last, element);
}

static const char *bring(struct work *work)
{
    int64_t cut[2 * TR_TREE_DEPTH + 1];
    int me = tr_comm_rank(work->comm);
    int nodes = tr_tree_cover(work->leaves, work->bound[me], work->bound[me + 1], cut);
    for (int i = 0; i < nodes; i++)
        for (int64_t e = 0; e < COUNT; e++) work->nodes[i * COUNT + e] = node_of(cut[i], cut[i + 1], e);
    return NULL;
}

static const char *measure(struct work *work, struct taken *taken)
{
    tr_comm *comm = work->comm;
    int me = tr_comm_rank(comm), size = tr_comm_size(comm);
    int64_t word = me;
    float few[2];
    tr_ticket *ticket;
    CHECK_OK(tr_reduction_create(comm, work->leaves, work->bound, work->window, &work->reduction));
    CHECK_RUN(bring(work));
    begin(work);
    CHECK_DONE(comm, &ticket,
               tr_comm_reduce_scatter(comm, work->reduction, work->nodes, COUNT, work->shard,
                                      work->own + work->shard[me], "test", &ticket));
    end(work, &taken[REDUCE]);
    CHECK_RUN(check_sums(work, work->own, work->shard[me], work->shard[me + 1]));
    begin(work);
    CHECK_DONE(comm, &ticket, tr_comm_all_gather(comm, work->own, work->bytes, NULL, "test", &ticket));
    end(work, &taken[GATHER]);
    CHECK_RUN(check_sums(work, work->own, 0, COUNT));
    begin(work);
    CHECK_DONE(comm, &ticket,
               tr_comm_all_reduce(comm, work->reduction, work->nodes, COUNT, 2, few, "loss", &ticket));
    end(work, &taken[WORDS]);
    for (int e = 0; e < 2; e++) CHECK(few[e] == scenario_sum(work->leaves, e));
    begin(work);
    CHECK_DONE(comm, &ticket, tr_comm_combine(comm, &word, sizeof word, add, "test", &ticket));
    end(work, &taken[COMBINE]);
    CHECK(word == (int64_t)size * (size - 1) / 2);
    begin(work);
    CHECK_OK(tr_comm_reduce_start(comm, work->reduction, work->nodes, COUNT, work->shard, work->data,
                                  work->window, "test", &ticket));
    CHECK_OK(tr_comm_wait_ready(comm, ticket));
    tr_comm_reduce_piece(ticket, work->shard[me], work->shard[me + 1], work->data + work->shard[me]);
    CHECK_OK(tr_comm_reduce_gather(comm, ticket));
    CHECK_OK(tr_comm_wait(comm, &ticket));
    end(work, &taken[APPLY]);
    CHECK_RUN(check_sums(work, work->data, 0, COUNT));
    tr_reduction_destroy(&work->reduction);
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    return NULL;
}

/* Memory of a rank: room for `nodes` nodes and the data, in a window or not. */
static const char *run_rank(struct member *rank)
{
    tr_comm *comm = rank->comm;
    int size = tr_comm_size(comm), me = tr_comm_rank(comm), first = tr_comm_local(comm, 0);
    size_t bounds = (size_t)size + 1, floats = 8 * COUNT;
    struct work work = {.comm = comm, .leaves = rank->leaves};
    int64_t *tables = tr_alloc(3 * bounds, sizeof *tables);
    float *own = tr_alloc_zero(COUNT, sizeof *own), *memory = NULL;
    CHECK(tables && own);
    work.bound = tables;
    work.shard = tables + bounds;
    work.bytes = tables + 2 * bounds;
    work.own = own;
    tr_tree_cut(work.leaves, size, work.bound);
    for (int r = 0; r <= size; r++) {
        work.shard[r] = tr_cut(COUNT / 16, size, r) * 16;
        work.bytes[r] = work.shard[r] * (int64_t)sizeof(float);
    }
    if (rank->windows) {
        CHECK_OK(tr_window_create(comm, (floats + COUNT) * sizeof(float), &work.window));
        work.nodes = tr_window_segment(work.window, me, NULL);
        work.data = (float *)tr_window_segment(work.window, first, NULL) + floats;
    } else {
        memory = tr_alloc_zero(floats + COUNT, sizeof *memory);
        CHECK(memory);
        work.nodes = memory;
        work.data = memory + floats;
    }
    CHECK_RUN(measure(&work, rank->taken));
    tr_window_destroy(&work.window);
    tr_free(memory);
    tr_free(own);
    tr_free(tables);
    return NULL;
}

static void *rank_main(void *argument)
{
    struct member *rank = argument;
    const char *wrong = run_rank(rank);
    snprintf(rank->wrong, sizeof rank->wrong, "%s", wrong ? wrong : "");
    if (wrong) tr_comm_abort(rank->comm, wrong);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* Runs `ranks` ranks, so many on a host; counts are in `member` then. */
static void run(int ranks, int a_host, int64_t leaves)
{
    int host[256] = {0};
    tr_comm *comm[256];
    for (int i = 0; i < ranks; i++) host[i] = i / a_host;
    assert_int_equal(tr_comm_thread_create(ranks, host, &settings, comm), TR_OK);
    for (int i = 0; i < ranks; i++) {
        member[i] = (struct member){.comm = comm[i], .windows = a_host > 1, .leaves = leaves};
        assert_int_equal(pthread_create(&member[i].thread, NULL, rank_main, &member[i]), 0);
    }
    for (int i = 0; i < ranks; i++) pthread_join(member[i].thread, NULL);
    for (int i = 0; i < ranks; i++)
        if (member[i].wrong[0]) fail_msg("rank %d of %d: %s", i, ranks, member[i].wrong);
}

/* Of all ranks, and the most of one. */
static struct taken sum_of(int ranks, int kind, struct taken *most)
{
    struct taken all = {0};
    *most = (struct taken){0};
    for (int i = 0; i < ranks; i++) {
        const struct taken *one = &member[i].taken[kind];
        all.messages += one->messages;
        all.bytes += one->bytes;
        all.received += one->received;
        if (one->messages > most->messages) most->messages = one->messages;
        if (one->bytes > most->bytes) most->bytes = one->bytes;
        if (one->received > most->received) most->received = one->received;
    }
    return all;
}

#define DATA (COUNT * (int64_t)sizeof(float))

static void expect(bool holds, const char *law, int ranks, int64_t is)
{
    if (!holds) fail_msg("%d ranks: %s, but it is %lld", ranks, law, (long long)is);
}

/* Each rank apart, with as many leaves: sums and shares take log2 W messages of each, where it is a power of
   two, and no more bytes than all to all. */
static void test_apart(void **state)
{
    (void)state;
    static const int sizes[] = {4, 6, 8, 12, 16, 48, 64, 100, 256};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0] && sizes[s] <= MOST; s++) {
        int ranks = sizes[s], log = log_of(ranks);
        bool even = (ranks & (ranks - 1)) == 0, few = ranks <= 4;
        struct taken most, all;
        run(ranks, 1, ranks);
        all = sum_of(ranks, REDUCE, &most);
        print_message("%3d ranks: reduce-scatter %lld messages, %lld of one", ranks, (long long)all.messages,
                      (long long)most.messages);
        expect(all.bytes == (ranks - 1) * DATA, "reduce-scatter sends (W - 1) P", ranks, all.bytes);
        expect(even && !few ? most.messages == log : all.messages <= 2 * ranks * log,
               "reduce-scatter takes log2 W messages a rank", ranks, most.messages);
        /* Where sides differ, a larger one meets the same number of others as the smaller one has members. */
        expect(most.received <= 2 * DATA, "reduce-scatter brings no rank more than 2 P", ranks,
               most.received);
        all = sum_of(ranks, GATHER, &most);
        print_message("; all-gather %lld, %lld\n", (long long)all.messages, (long long)most.messages);
        expect(all.received == (ranks - 1) * DATA, "all-gather brings (W - 1) P", ranks, all.received);
        expect(even && !few ? most.messages == log : all.messages <= 2 * ranks * log,
               "all-gather takes log2 W messages a rank", ranks, most.messages);
        expect(most.bytes <= 2 * DATA, "all-gather has no rank send more than 2 P", ranks, most.bytes);
        for (int kind = WORDS; kind <= COMBINE; kind++) {
            all = sum_of(ranks, kind, &most);
            expect(all.messages == (few ? ranks * (ranks - 1) : 2 * (ranks - 1)),
                   "words take 2 (W - 1) messages in all", ranks, all.messages);
            expect(most.messages <= log + 1, "words take log2 W + 1 messages of a rank", ranks,
                   most.messages);
            expect(all.bytes == all.messages * 8, "words are 8 bytes each", ranks, all.bytes);
        }
    }
}

/* Leaves that are no multiple of the ranks: several nodes a rank cost bytes in proportion, not messages. */
static void test_ragged(void **state)
{
    (void)state;
    static const struct {
        int ranks, leaves;
    } cases[] = {{6, 16}, {7, 23}, {12, 32}, {24, 64}, {48, 100}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int ranks = cases[i].ranks, leaves = cases[i].leaves, log = log_of(leaves);
        int64_t bound[256], cut[2 * TR_TREE_DEPTH + 1], nodes = 0;
        struct taken most, all;
        tr_tree_cut(leaves, ranks, bound);
        for (int r = 0; r < ranks; r++) nodes += tr_tree_cover(leaves, bound[r], bound[r + 1], cut);
        run(ranks, 1, leaves);
        all = sum_of(ranks, REDUCE, &most);
        expect(all.bytes <= nodes * DATA, "reduce-scatter sends P for each node at most", ranks, all.bytes);
        expect(all.messages <= 2 * nodes * log, "reduce-scatter takes 2 log2 messages a node", ranks,
               all.messages);
    }
}

/* Hosts whose ranks share memory: what goes between hosts is what one rank would send for each, divided among
   its ranks; within a host, words in a number of rounds. */
static void test_hosts(void **state)
{
    (void)state;
    static const struct {
        int ranks, a_host;
    } cases[] = {{8, 8}, {16, 2}, {32, 32}, {64, 8}, {64, 4}, {256, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0] && cases[i].ranks <= MOST; i++) {
        int ranks = cases[i].ranks, a_host = cases[i].a_host, hosts = ranks / a_host;
        struct taken most, all;
        run(ranks, a_host, ranks);
        /* The place that all nodes have, 16 bytes in each round; that all is over, without any. */
        int rounds = a_host <= 4 ? a_host - 1 : log_of(a_host);
        int64_t words = ranks * 16 * (int64_t)rounds;
        int between = hosts <= 4 ? hosts - 1 : log_of(hosts);
        all = sum_of(ranks, REDUCE, &most);
        expect(all.bytes == (hosts - 1) * DATA + words, "reduce-scatter sends (H - 1) P between hosts", ranks,
               all.bytes);
        expect(most.messages <= between + 2 * rounds, "a rank sends log2 H sums and 2 log2 L words", ranks,
               most.messages);
        all = sum_of(ranks, APPLY, &most);
        expect(all.bytes == 2 * (hosts - 1) * DATA + words, "a bucket sends 2 (H - 1) P between hosts", ranks,
               all.bytes);
        expect(most.messages <= 2 * between + 2 * rounds, "a rank sends 2 log2 H parts and 2 log2 L words",
               ranks, most.messages);
        all = sum_of(ranks, COMBINE, &most);
        expect(all.messages == 2 * (ranks - 1), "words take 2 (W - 1) messages in all", ranks, all.messages);
    }
}

/* ---- memory ---- */

static atomic_llong allocated;

static int count_bytes(size_t size, void *user)
{
    (void)user;
    allocated += (long long)size;
    return 0;
}

/* What a rank allocates to exchange buckets, its nodes and data included, is as much as these a few times
   over, and tables: places, islands, bounds, and plans of routes while they are made. */
#define TABLE_BYTES 2560 /* for each rank */

static void test_memory(void **state)
{
    (void)state;
    static const int sizes[] = {8, 64, 256};
    long long least = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0] && sizes[s] <= MOST; s++) {
        int ranks = sizes[s];
        allocated = 0;
        tr_alloc_set_hook(count_bytes, NULL);
        run(ranks, 1, ranks);
        tr_alloc_set_hook(NULL, NULL);
        long long one = (long long)allocated / ranks, tables = (long long)ranks * TABLE_BYTES;
        print_message("%3d ranks: %lld KiB allocated by each, %lld beside tables\n", ranks, one >> 10,
                      (one - tables) >> 10);
        if (least == 0) least = one - tables;
        expect(one - tables <= least, "memory but for tables does not grow", ranks, one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_ragged),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests_name("comm.scale", tests, NULL, NULL);
}
