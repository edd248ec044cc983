/* Sums along the tree against the definition, to the byte: numbers of leaves, ways to divide them, counts,
 * shares, with and without windows.
 */
#include "comm/scenarios/sums.h"

#include "base/fail.h"
#include "base/numbers/tree.h"
#include "comm/check.h"
#include "comm/operation.h"
#include "comm/scenarios/scenarios.h"

#include <string.h>

/* Of mixed sizes and signs, so that any other order of summation shows. */
float scenario_leaf(int64_t leaf, int64_t element)
{
    uint64_t word = (uint64_t)(leaf * 1000003 + element) * 0x9e3779b97f4a7c15u;
    word ^= word >> 29;
    word *= 0xbf58476d1ce4e5b9u;
    word ^= word >> 32;
    float value = (float)(int32_t)(word & 0xffffff) / 16777216.0f - 0.5f;
    return value * (float)(1u << (word >> 40) % 20);
}

static float sum_of(int64_t first, int64_t last, int64_t element)
{
    if (last - first == 1) return scenario_leaf(first, element);
    int64_t left = 1;
    while (left * 2 < last - first) left *= 2;
    return sum_of(first, first + left, element) + sum_of(first + left, last, element);
}

float scenario_sum(int64_t leaves, int64_t element)
{
    return sum_of(0, leaves, element);
}

/* What a rank brings, at nodes[i * stride + e]. The tree over a node's leaves alone is the node of the whole
 * tree. */
static void bring(int64_t leaves, const int64_t *bound, int rank, float *nodes, int64_t stride, int64_t count)
{
    int64_t cut[2 * TR_TREE_DEPTH + 1];
    int n = tr_tree_cover(leaves, bound[rank], bound[rank + 1], cut);
    for (int i = 0; i < n; i++)
        for (int64_t e = 0; e < count; e++) nodes[i * stride + e] = sum_of(cut[i], cut[i + 1], e);
}

static const char *check_sum(int64_t leaves, const float *out, int64_t begin, int64_t end)
{
    for (int64_t e = begin; e < end; e++) {
        float right = scenario_sum(leaves, e);
        CHECK(memcmp(&out[e - begin], &right, sizeof right) == 0);
    }
    return NULL;
}

/* Ways to divide `leaves` leaves or elements among ranks: even; the first takes all it can; squares, where
   the first gets little or nothing. */
enum { EVEN, FIRST, SQUARE, WAYS };

static void divide(int64_t items, int size, int way, int64_t *bound)
{
    for (int i = 0; i <= size; i++) {
        bound[i] = way == EVEN    ? tr_cut(items, size, i)
                   : way == FIRST ? (i == 0                   ? 0
                                     : items - (size - i) > 0 ? items - (size - i)
                                                              : 0)
                                  : items * i * i / ((int64_t)size * size);
    }
    bound[size] = items;
}

enum { STRIDE = 1040, NODES = 16, OUT = 1200 };

/* One reduce-scatter. `nodes` has room for NODES nodes, in the window if there is one. */
static const char *run_sum(tr_comm *comm, tr_window *window, float *nodes, int64_t leaves, int way,
                           int64_t count, int share_way, bool in_place)
{
    int me = tr_comm_rank(comm), size = tr_comm_size(comm);
    int64_t bound[RANKS + 1], shard[RANKS + 1];
    float out[OUT];
    tr_reduction *reduction;
    tr_ticket *ticket;
    divide(leaves, size, way, bound);
    divide(count, size, share_way, shard);
    CHECK_OK(tr_reduction_create(comm, leaves, bound, window, &reduction));
    CHECK(tr_reduction_nodes(reduction, me) <= NODES);
    bool place = in_place && tr_reduction_nodes(reduction, me) > 0;
    bring(leaves, bound, me, nodes, STRIDE, count);
    float *to = place ? nodes + shard[me] : out;
    CHECK_DONE(comm, &ticket,
               tr_comm_reduce_scatter(comm, reduction, nodes, STRIDE, shard, to, "test", &ticket));
    CHECK_RUN(check_sum(leaves, to, shard[me], shard[me + 1]));
    tr_reduction_destroy(&reduction);
    CHECK(!reduction);
    return NULL;
}

static const char *run_sums(tr_comm *comm, tr_window *window, float *nodes)
{
    static const int64_t counts[] = {0, 1, 5, 65, 1037};
    int size = tr_comm_size(comm);
    int64_t leaves[] = {1, size, size + 1, 2 * size, 2 * size + 3, 16, 29};
    int turn = 0;
    for (size_t l = 0; l < sizeof leaves / sizeof leaves[0]; l++)
        for (int way = 0; way < WAYS; way++)
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++, turn++)
                CHECK_RUN(run_sum(comm, window, nodes, leaves[l], way, counts[c], turn % WAYS, turn % 2));
    return NULL;
}

const char *scenario_sums(tr_comm *comm)
{
    float *nodes = tr_alloc(NODES * STRIDE, sizeof *nodes);
    CHECK(nodes);
    CHECK_RUN(run_sums(comm, NULL, nodes));
    tr_free(nodes);
    return NULL;
}

/* Nodes begin somewhere inside of the parts, at one place on all ranks, or at another on each. */
const char *scenario_sums_in_window(tr_comm *comm)
{
    int me = tr_comm_rank(comm), size = tr_comm_size(comm);
    tr_window *window;
    size_t floats = NODES * STRIDE + 16 * RANKS;
    CHECK_OK(tr_window_create(comm, floats * sizeof(float), &window));
    float *part = tr_window_segment(window, me, NULL);
    CHECK_RUN(run_sums(comm, window, part + 16));
    CHECK_RUN(run_sums(comm, window, part + 16 * me));
    /* Nodes outside of the part are refused. */
    int64_t bound[RANKS + 1], shard[RANKS + 1];
    float out[OUT];
    tr_reduction *reduction;
    tr_ticket *ticket;
    divide(size, size, EVEN, bound);
    divide(64, size, EVEN, shard);
    CHECK_OK(tr_reduction_create(comm, size, bound, window, &reduction));
    CHECK(tr_comm_reduce_scatter(comm, reduction, out, 64, shard, out, "test", &ticket) == TR_EINVAL &&
          !ticket);
    CHECK(tr_comm_reduce_scatter(comm, reduction, part + floats - 63, 64, shard, out, "test", &ticket) ==
          TR_EINVAL);
    tr_reduction_destroy(&reduction);
    bound[size] = size + 1; /* not the number of leaves */
    CHECK(tr_reduction_create(comm, size, bound, window, &reduction) == TR_EINVAL && !reduction);
    bound[size] = size; /* some leaves would be nobody's */
    CHECK(tr_reduction_create(comm, size + 1, bound, window, &reduction) == TR_EINVAL && !reduction);
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    tr_window_destroy(&window);
    return NULL;
}

const char *scenario_all_reduce(tr_comm *comm)
{
    enum { MOST = 5003 };
    static const int64_t counts[] = {0, 1, 31, 1023, 1024, 1025, MOST}; /* around the limit of small ones */
    int me = tr_comm_rank(comm), size = tr_comm_size(comm);
    int64_t bound[RANKS + 1], leaves = size + 2;
    float *nodes = tr_alloc(NODES * MOST, sizeof *nodes), *out = tr_alloc(MOST, sizeof *out);
    tr_reduction *reduction;
    tr_ticket *ticket;
    CHECK(nodes && out);
    for (int way = 0; way < WAYS; way++) {
        divide(leaves, size, way, bound);
        CHECK_OK(tr_reduction_create(comm, leaves, bound, NULL, &reduction));
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            float *to =
                c % 2 && tr_reduction_nodes(reduction, me) > 0 ? nodes : out; /* in place now and then */
            bring(leaves, bound, me, nodes, MOST, counts[c]);
            CHECK_DONE(comm, &ticket,
                       tr_comm_all_reduce(comm, reduction, nodes, MOST, counts[c], to, "test", &ticket));
            CHECK_RUN(check_sum(leaves, to, 0, counts[c]));
        }
        tr_reduction_destroy(&reduction);
    }
    tr_free(nodes);
    tr_free(out);
    return NULL;
}

/* As in a training step: buckets start one after the other while other work goes on, all reductions are under
   way at once, and each is followed by its all-gather as soon as it is done. */
const char *scenario_buckets(tr_comm *comm)
{
    enum { BUCKETS = 5, COUNT = 801 };
    int me = tr_comm_rank(comm), size = tr_comm_size(comm);
    int64_t leaves = 2 * size + 1, bound[RANKS + 1], shard[RANKS + 1], bytes[RANKS + 1];
    float *nodes = tr_alloc(NODES * COUNT, sizeof *nodes);
    float(*result)[COUNT] = tr_alloc(BUCKETS, sizeof *result);
    tr_ticket *ticket[BUCKETS] = {NULL};
    tr_reduction *reduction;
    CHECK(nodes && result);
    divide(leaves, size, EVEN, bound);
    divide(COUNT, size, EVEN, shard);
    for (int i = 0; i <= size; i++) bytes[i] = shard[i] * (int64_t)sizeof(float);
    CHECK_OK(tr_reduction_create(comm, leaves, bound, NULL, &reduction));
    bring(leaves, bound, me, nodes, COUNT, COUNT);
    for (int step = 0; step < 4; step++) {
        memset(result, 0, BUCKETS * sizeof *result);
        for (int b = 0; b < BUCKETS; b++) {
            CHECK_OK(tr_comm_reduce_scatter(comm, reduction, nodes, COUNT, shard, result[b] + shard[me],
                                            "bucket", &ticket[b]));
            CHECK_OK(tr_comm_progress(comm));
        }
        for (int b = 0; b < BUCKETS; b++) {
            CHECK_OK(tr_comm_wait(comm, &ticket[b]));
            CHECK_OK(tr_comm_all_gather(comm, result[b], bytes, NULL, "bucket", &ticket[b]));
        }
        for (int b = BUCKETS - 1; b >= 0; b--) CHECK_OK(tr_comm_wait(comm, &ticket[b]));
        for (int b = 0; b < BUCKETS; b++) CHECK_RUN(check_sum(leaves, result[b], 0, COUNT));
    }
    tr_reduction_destroy(&reduction);
    tr_free(nodes);
    tr_free(result);
    return NULL;
}

enum { APPLIED = 1037, LATER = 3 };

/* Takes the sums of a share, `most` elements at a time, or has them from elsewhere, and changes the data by
   them: data[e] becomes the sum minus what it was. */
static void apply_sums(tr_ticket *ticket, const int64_t *shard, int64_t most, float *sum, float *data,
                       int64_t leaves, bool forms)
{
    for (int64_t begin = shard[0], end; begin < shard[1]; begin = end) {
        end = shard[1] - begin < most ? shard[1] : begin + most;
        for (int64_t e = begin; forms && e < end; e++) sum[e] = scenario_sum(leaves, e);
        if (!forms) tr_comm_reduce_piece(ticket, begin, end, sum + begin);
        for (int64_t e = begin; e < end; e++) data[e] = sum[e] - data[e];
    }
}

/* Operations under way at once on data of this rank or of its host, handed on in another order than they were
   started; none is over before. */
static const char *run_apply(tr_comm *comm, tr_window *nodes_window, float *nodes, tr_window *data_window,
                             float (*data)[APPLIED], int way, bool forms)
{
    int me = tr_comm_rank(comm), size = tr_comm_size(comm);
    int64_t leaves = 2 * size + 3, bound[RANKS + 1], shard[RANKS + 1];
    float own[APPLIED];
    bool done;
    tr_ticket *ticket[LATER], *barrier;
    tr_reduction *reduction;
    divide(leaves, size, EVEN, bound);
    divide(APPLIED, size, way, shard);
    CHECK_OK(tr_reduction_create(comm, leaves, bound, nodes_window, &reduction));
    bring(leaves, bound, me, nodes, STRIDE, APPLIED);
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < LATER; i++)
            CHECK_OK(tr_comm_reduce_start(comm, reduction, nodes, STRIDE, shard, data[i], data_window, "test",
                                          &ticket[i]));
        for (int i = LATER - 1; i >= 0; i--) {
            CHECK_OK(tr_comm_wait_ready(comm, ticket[i]));
            CHECK(tr_comm_is_ready(comm, ticket[i]));
            apply_sums(ticket[i], shard + me, 7 + i, own, data[i], leaves, forms);
            CHECK_OK(tr_comm_test(comm, &ticket[i], &done));
            CHECK(!done && ticket[i]);
            CHECK_OK(tr_comm_reduce_gather(comm, ticket[i]));
        }
        for (int i = 0; i < LATER; i++) {
            CHECK_OK(tr_comm_wait(comm, &ticket[i]));
            for (int64_t e = 0; e < APPLIED; e++)
                CHECK(data[i][e] == (step == 0 ? scenario_sum(leaves, e) : 0.0f));
        }
        /* Whoever goes on would change what others still look at. */
        CHECK_DONE(comm, &barrier, tr_comm_barrier(comm, &barrier));
    }
    tr_reduction_destroy(&reduction);
    return NULL;
}

/* Sums that are applied, with nodes and data in windows or not. */
const char *scenario_apply(tr_comm *comm)
{
    int first = tr_comm_local(comm, 0), me = tr_comm_rank(comm);
    tr_window *nodes, *data;
    CHECK_OK(tr_window_create(comm, NODES * STRIDE * sizeof(float), &nodes));
    CHECK_OK(tr_window_create(comm, first == me ? LATER * APPLIED * sizeof(float) : 0, &data));
    float(*shared)[APPLIED] = tr_window_segment(data, first, NULL), (*own)[APPLIED];
    own = tr_alloc_zero(LATER, sizeof *own);
    float *part = tr_window_segment(nodes, me, NULL);
    CHECK(own);
    for (int way = 0; way < WAYS; way++) {
        CHECK_RUN(run_apply(comm, NULL, part, NULL, own, way, false));
        CHECK_RUN(run_apply(comm, nodes, part, NULL, own, way, false));
        CHECK_RUN(run_apply(comm, nodes, part, data, shared, way, false));
        CHECK_RUN(run_apply(comm, NULL, part, data, shared, way, false));
        if (tr_comm_hosts(comm) > 1) continue;
        CHECK_RUN(run_apply(comm, nodes, part, NULL, own, way, true));
        CHECK_RUN(run_apply(comm, nodes, part, data, shared, way, true));
    }
    tr_free(own);
    tr_window_destroy(&data);
    tr_window_destroy(&nodes);
    return NULL;
}

/* A reduce-scatter sends and an all-gather receives (W - 1) / W of the data where ranges are even, directly
   or not, and with windows on one host nothing but words of order move. */
const char *scenario_bytes(tr_comm *comm)
{
    enum { COUNT = 16 * 840 }; /* every number of ranks up to 8 divides it */
    int me = tr_comm_rank(comm), size = tr_comm_size(comm);
    int64_t bound[RANKS + 1], shard[RANKS + 1], bytes[RANKS + 1];
    struct tr_comm_statistics before, middle, after;
    tr_reduction *reduction;
    tr_window *window;
    tr_ticket *ticket;
    float *out = tr_alloc_zero(COUNT, sizeof *out);
    CHECK(out);
    CHECK_OK(tr_window_create(comm, COUNT * sizeof(float), &window));
    float *nodes = tr_window_segment(window, me, NULL);
    divide(size, size, EVEN, bound);
    divide(COUNT, size, EVEN, shard);
    for (int i = 0; i <= size; i++) bytes[i] = shard[i] * (int64_t)sizeof(float);
    for (int with = 0; with < 2; with++) {
        CHECK_OK(tr_reduction_create(comm, size, bound, with ? window : NULL, &reduction));
        tr_comm_statistics(comm, &before);
        CHECK_DONE(
            comm, &ticket,
            tr_comm_reduce_scatter(comm, reduction, nodes, COUNT, shard, out + shard[me], "test", &ticket));
        tr_comm_statistics(comm, &middle);
        if (!with) CHECK_DONE(comm, &ticket, tr_comm_all_gather(comm, out, bytes, NULL, "test", &ticket));
        tr_comm_statistics(comm, &after);
        int64_t data = COUNT * (int64_t)sizeof(float), sent = middle.bytes_sent - before.bytes_sent;
        if (!with) {
            bool few = tr_comm_is_few(comm, size);
            int64_t messages = after.messages_sent - before.messages_sent;
            CHECK(sent == data * (size - 1) / size);
            CHECK(after.bytes_received - middle.bytes_received == data * (size - 1) / size);
            CHECK(few ? messages == 2 * (size - 1) : messages <= 2 * (size - 1)); /* nodes, shares */
            CHECK(after.bytes_shared == before.bytes_shared);
        } else if (tr_comm_hosts(comm) == 1) {
            int rounds = 0; /* where the nodes are: alike, in rounds; of few, each */
            while (1 << rounds < size) rounds++;
            CHECK(sent == 16 * (tr_comm_is_few(comm, size) ? size - 1 : rounds));
            CHECK(after.bytes_shared - before.bytes_shared == data * (size - 1) / size);
        }
        CHECK(after.operations - before.operations == (with ? 1 : 2));
        /* Each host reads all its nodes once, for its own shares and for those of others; a rank's own is
           none of another. */
        int64_t shared[RANKS], all = 0;
        shared[me] = after.bytes_shared - before.bytes_shared;
        CHECK_OK(tr_comm_exchange(comm, shared, sizeof shared[0], "bytes"));
        for (int i = 0; i < size; i++) all += shared[i];
        CHECK(all == (with ? data * (size - tr_comm_hosts(comm)) : 0));
        CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
        tr_reduction_destroy(&reduction);
    }
    tr_window_destroy(&window);
    tr_free(out);
    return NULL;
}

/* What ranks have in common, in whatever order it is found. */
struct word {
    int64_t sum, most;
    uint32_t bits;
};

static void combine_words(void *into_, const void *from_)
{
    struct word *into = into_;
    const struct word *from = from_;
    into->sum += from->sum;
    into->most = from->most > into->most ? from->most : into->most;
    into->bits |= from->bits;
}

const char *scenario_combine(tr_comm *comm)
{
    enum { TIMES = 5 };
    int me = tr_comm_rank(comm), size = tr_comm_size(comm);
    struct word word[TIMES];
    tr_ticket *ticket[TIMES];
    char large[TR_COMM_COMBINE_MOST + 1] = {0};
    CHECK(tr_comm_combine(comm, large, sizeof large, combine_words, "test", &ticket[0]) == TR_EINVAL);
    for (int i = 0; i < TIMES; i++) { /* several at once, over in another order */
        word[i] = (struct word){.sum = me + i, .most = (me * 5 + i) % size, .bits = 1u << (me + i) % 32};
        CHECK_OK(tr_comm_combine(comm, &word[i], sizeof word[i], combine_words, "test", &ticket[i]));
    }
    for (int i = TIMES - 1; i >= 0; i--) CHECK_OK(tr_comm_wait(comm, &ticket[i]));
    for (int i = 0; i < TIMES; i++) {
        struct word right = {0};
        for (int r = 0; r < size; r++) {
            struct word other = {.sum = r + i, .most = (r * 5 + i) % size, .bits = 1u << (r + i) % 32};
            combine_words(&right, &other);
        }
        CHECK(word[i].sum == right.sum && word[i].most == right.most && word[i].bits == right.bits);
    }
    return NULL;
}

/* A million elements; each rank checks its share and a sample of the rest. */
const char *scenario_large(tr_comm *comm)
{
    enum { COUNT = 1000003 };
    int me = tr_comm_rank(comm), size = tr_comm_size(comm);
    int64_t bound[RANKS + 1], shard[RANKS + 1], bytes[RANKS + 1];
    float *node = tr_alloc(COUNT, sizeof *node), *out = tr_alloc(COUNT, sizeof *out);
    tr_reduction *reduction;
    tr_ticket *ticket;
    CHECK(node && out);
    divide(size, size, EVEN, bound);
    divide(COUNT, size, EVEN, shard);
    for (int i = 0; i <= size; i++) bytes[i] = shard[i] * (int64_t)sizeof(float);
    CHECK_OK(tr_reduction_create(comm, size, bound, NULL, &reduction));
    bring(size, bound, me, node, COUNT, COUNT);
    CHECK_DONE(comm, &ticket,
               tr_comm_reduce_scatter(comm, reduction, node, COUNT, shard, out + shard[me], "test", &ticket));
    CHECK_RUN(check_sum(size, out + shard[me], shard[me], shard[me + 1]));
    CHECK_DONE(comm, &ticket, tr_comm_all_gather(comm, out, bytes, NULL, "test", &ticket));
    for (int64_t e = me; e < COUNT; e += 997) CHECK_RUN(check_sum(size, out + e, e, e + 1));
    tr_reduction_destroy(&reduction);
    tr_free(node);
    tr_free(out);
    return NULL;
}
