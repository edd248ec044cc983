/* The pieces of a reduction: carried out in their order, with any number of rows per block, they give the
 * fixed tree over the rows. A sum is a number here that tells which rows it has, in which order, and how they
 * were combined.
 */
#include "device/cpu/reduction.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { MOST_LEAVES = 80, MOST_NODES = 8, SLOTS = 16 };

static uint64_t with_row(uint64_t sum, int64_t row)
{
    return sum * 0x9e3779b97f4a7c15 + (uint64_t)row + 1;
}

static uint64_t combined(uint64_t left, uint64_t right)
{
    return (left * 0xbf58476d1ce4e5b9 ^ (right << 7 | right >> 57)) * 0x94d049bb133111eb + 5;
}

struct example {
    struct tr_cut cut;
    int64_t repeat;
    const int32_t *offset;
    int64_t first[MOST_LEAVES + 1]; /* row of each leaf */
};

/* Counts the rows of each leaf as the header describes them. */
static void count_rows(struct example *e)
{
    e->first[0] = 0;
    for (int32_t i = 0; i < e->cut.count; i++) {
        int64_t rows = 0;
        for (int64_t unit = e->cut.row[i]; unit < e->cut.row[i + 1]; unit++) {
            const int64_t tokens = e->offset ? e->offset[unit + 1] - e->offset[unit] : 0;
            rows += !e->offset ? e->repeat : tokens > 0 ? tokens - 1 : 0;
        }
        e->first[i + 1] = e->first[i] + rows;
    }
}

static uint64_t tree(const struct example *e, int32_t begin, int32_t end)
{
    if (begin == end) return 0;
    if (end - begin == 1) {
        uint64_t sum = 0;
        for (int64_t row = e->first[begin]; row < e->first[end]; row++) sum = with_row(sum, row);
        return sum;
    }
    int32_t left = 1;
    while (2 * left < end - begin) left *= 2;
    return combined(tree(e, begin, begin + left), tree(e, begin + left, end));
}

static void expect_tree(struct example *e, int64_t rows_max)
{
    count_rows(e);
    const int slots = cpu_reduction_slots(&e->cut);
    assert_in_range(slots, 1, SLOTS);
    const int64_t all = e->first[e->cut.count];
    assert_int_equal(cpu_reduction_rows(&e->cut, e->repeat, e->offset), all);
    uint64_t slot[SLOTS] = {0}, value[MOST_NODES];
    memset(value, 0x55, sizeof value);
    struct reduction reduction;
    cpu_reduction_begin(&reduction, &e->cut, e->repeat, e->offset);
    struct reduction_piece pieces[REDUCTION_PIECES];
    int64_t done = 0, rows;
    int count, blocks = 0, in_all = 0;
    for (; (count = cpu_reduction_next(&reduction, rows_max, pieces, &rows)) > 0; blocks++) {
        assert_in_range(count, 1, REDUCTION_PIECES);
        assert_in_range(rows, 0, rows_max);
        /* a block that is not full has as many pieces as there may be, or is the last one */
        if (rows < rows_max && count < REDUCTION_PIECES) assert_int_equal(done + rows, all);
        int64_t next = 0;
        for (int i = 0; i < count; i++) {
            const struct reduction_piece *piece = &pieces[i];
            assert_int_equal(piece->row, next);
            assert_in_range(piece->fresh, 0, slots - 1);
            assert_in_range(piece->lefts, 0, piece->fresh);
            uint64_t sum = piece->resume ? slot[piece->fresh] : 0;
            for (int64_t row = 0; row < piece->rows; row++) sum = with_row(sum, done + next + row);
            for (int left = 1; left <= piece->lefts; left++) sum = combined(slot[piece->fresh - left], sum);
            assert_true(piece->slot >= -1 && piece->slot < slots);
            if (piece->slot >= 0)
                slot[piece->slot] = sum;
            else
                value[piece->node] = sum;
            next += piece->rows;
        }
        assert_int_equal(next, rows);
        done += rows;
        in_all += count;
    }
    assert_int_equal(rows, 0);
    assert_int_equal(done, all);
    /* only the end of a block divides a microbatch */
    assert_true(in_all <= e->cut.count + e->cut.nodes + blocks);
    for (int32_t j = 0; j < e->cut.nodes; j++)
        if (value[j] != tree(e, e->cut.bound[j], e->cut.bound[j + 1]))
            fail_msg("node %d of %d, blocks of %lld rows: not its tree", j, e->cut.nodes,
                     (long long)rows_max);
}

static void expect_all_blocks(struct example *e)
{
    for (int64_t rows_max = 1; rows_max <= 40; rows_max++) expect_tree(e, rows_max);
    expect_tree(e, 1000);
}

/* Nodes of one to 80 microbatches of 0 to 4 rows. */
static void any_block_gives_the_tree(void **state)
{
    (void)state;
    int64_t row[MOST_LEAVES + 1] = {0};
    for (int i = 0; i < MOST_LEAVES; i++) row[i + 1] = row[i] + (i * 7 + 3) % 5;
    for (int32_t count = 1; count <= MOST_LEAVES; count++) {
        const int32_t bound[] = {0, count};
        expect_all_blocks(&(struct example){.cut = {count, row, 1, bound, 0}, .repeat = 1});
    }
}

static void each_node_has_its_own_tree(void **state)
{
    (void)state;
    static const int64_t row[] = {0, 1, 3, 6, 6, 7, 9, 12, 14, 14, 15, 16, 17, 19};
    static const int32_t bound[] = {0, 1, 4, 9, 13};
    expect_all_blocks(&(struct example){.cut = {13, row, 4, bound, 0}, .repeat = 1});
    expect_all_blocks(&(struct example){.cut = {13, row, 4, bound, 0}, .repeat = 3});
    static const int32_t with_empty[] = {0, 0, 4, 4, 13, 13};
    expect_all_blocks(&(struct example){.cut = {13, row, 5, with_empty, 0}, .repeat = 2});
}

static void the_first_token_of_an_example_is_no_row(void **state)
{
    (void)state;
    static const int64_t row[] = {0, 2, 3, 5, 5, 8};
    static const int32_t bound[] = {0, 3, 5}, offset[] = {0, 4, 5, 5, 9, 11, 11, 12, 18};
    struct example e = {.cut = {5, row, 2, bound, 0}, .repeat = 7, .offset = offset};
    expect_all_blocks(&e);
    static const int64_t expected[] = {0, 3, 3, 7, 7, 12};
    for (int i = 0; i <= 5; i++) assert_int_equal(e.first[i], expected[i]);
}

static void nothing_has_no_pieces(void **state)
{
    (void)state;
    static const int64_t row[] = {0};
    static const int32_t bound[] = {0};
    expect_tree(&(struct example){.cut = {0, row, 0, bound, 0}, .repeat = 1}, 8);
    assert_int_equal(cpu_reduction_rows(&(struct tr_cut){0}, 1, NULL), 0);
}

static void slots_suffice_for_the_largest_node(void **state)
{
    (void)state;
    static const struct {
        int32_t bound[3];
        int slots;
    } cases[] = {{{0, 1, 2}, 1}, {{0, 1, 3}, 2},   {{0, 3, 4}, 2},   {{0, 4, 5}, 3}, {{0, 7, 8}, 3},
                 {{0, 1, 9}, 4}, {{0, 15, 16}, 4}, {{0, 16, 17}, 5}, {{0, 0, 0}, 1}, {{0, 1, 33}, 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct tr_cut cut = {cases[i].bound[2], NULL, 2, cases[i].bound, 0};
        assert_int_equal(cpu_reduction_slots(&cut), cases[i].slots);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_block_gives_the_tree),
        cmocka_unit_test(each_node_has_its_own_tree),
        cmocka_unit_test(the_first_token_of_an_example_is_no_row),
        cmocka_unit_test(nothing_has_no_pieces),
        cmocka_unit_test(slots_suffice_for_the_largest_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
