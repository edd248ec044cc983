/* Philox against published vectors, keys, and the permutation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/numbers/rng.h"

#include <string.h>

/* From the authors' own list of known answers for philox4x32 with 10 rounds. */
static const struct {
    uint32_t counter[4], key[2], answer[4];
} vectors[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void test_known_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const uint32_t *c = vectors[i].counter;
        uint32_t out[4];
        tr_rng_philox((tr_rng_key){vectors[i].key[0], vectors[i].key[1]}, c[0], c[1], c[2], c[3], out);
        assert_memory_equal(out, vectors[i].answer, sizeof out);
    }
}

/* Every purpose and every bit of the seed leads to a key of its own; and keys never change. */
static void test_keys(void **state)
{
    (void)state;
    tr_rng_key keys[5 * 65];
    int count = 0;
    for (uint32_t purpose = TR_RNG_INIT; purpose <= TR_RNG_DELAY; purpose++) {
        keys[count++] = tr_rng_key_make(0, purpose);
        for (int bit = 0; bit < 64; bit++) keys[count++] = tr_rng_key_make((uint64_t)1 << bit, purpose);
    }
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) assert_memory_not_equal(&keys[i], &keys[j], sizeof keys[i]);
    tr_rng_key known = tr_rng_key_make(0x0123456789abcdef, TR_RNG_ORDER);
    assert_int_equal(known.k0, 0xac3078f0);
    assert_int_equal(known.k1, 0x7fbe88a2);
}

static void test_unit(void **state)
{
    (void)state;
    assert_true(tr_rng_unit(0) == 0.0f);
    assert_true(tr_rng_unit(0xff) == 0.0f);
    assert_true(tr_rng_unit(0x100) == 0x1p-24f);
    assert_true(tr_rng_unit(0x80000000) == 0.5f);
    assert_true(tr_rng_unit(0xffffffff) == 1 - 0x1p-24f);
}

static void check_bijection(uint64_t count, uint32_t epoch)
{
    static unsigned char seen[70000];
    tr_rng_key key = tr_rng_key_make(7, TR_RNG_ORDER);
    assert_true(count <= sizeof seen);
    memset(seen, 0, sizeof seen);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = tr_rng_permute(key, epoch, count, i);
        assert_true(at < count);
        assert_int_equal(seen[at]++, 0);
    }
}

static void test_permutation_is_a_bijection(void **state)
{
    (void)state;
    for (uint64_t count = 1; count <= 300; count++) check_bijection(count, (uint32_t)count % 3);
    static const uint64_t counts[] = {1023, 1024, 1025, 4096, 60000, 65535, 65536, 65537};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) check_bijection(counts[i], 5);
}

/* Numbers far beyond 2^32 stay in range, and neighbours do not collide. */
static void test_permutation_of_many(void **state)
{
    (void)state;
    static const uint64_t counts[] = {((uint64_t)1 << 32) + 1, ((uint64_t)1 << 53) - 111, UINT64_MAX};
    tr_rng_key key = tr_rng_key_make(7, TR_RNG_ORDER);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        uint64_t taken[200];
        for (uint64_t i = 0; i < 200; i++) {
            taken[i] = tr_rng_permute(key, 0, counts[c], counts[c] - 1 - i);
            assert_true(taken[i] < counts[c]);
            for (uint64_t j = 0; j < i; j++) assert_true(taken[i] != taken[j]);
        }
    }
}

/* The rounds from a table lead where the rounds themselves do, from one epoch, key and count to the next. */
static void test_table(void **state)
{
    (void)state;
    static const uint64_t counts[] = {
        1, 2, 5, 300, 300, 60000, 64, (uint64_t)1 << 24, ((uint64_t)1 << 24) + 1, 7};
    struct tr_permutation permutation = TR_PERMUTATION_INIT;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        for (uint32_t epoch = 0; epoch < 3; epoch++) {
            tr_rng_key key = tr_rng_key_make(7 + epoch / 2, TR_RNG_ORDER);
            assert_int_equal(tr_permutation_set(&permutation, key, epoch, counts[c]), TR_OK);
            for (uint64_t i = 0; i < 500 && i < counts[c]; i++)
                assert_int_equal(tr_permutation_at(&permutation, counts[c] - 1 - i),
                                 tr_rng_permute(key, epoch, counts[c], counts[c] - 1 - i));
            for (int64_t many = 0; many < 40; many++) {
                int64_t run[41];
                uint64_t first = many % 3;
                if (first + (uint64_t)many > counts[c]) break;
                run[many] = -1; /* nothing is written behind the last one */
                tr_permutation_run(&permutation, first, many, run);
                for (int64_t i = 0; i < many; i++)
                    assert_int_equal(run[i], tr_rng_permute(key, epoch, counts[c], first + (uint64_t)i));
                assert_int_equal(run[many], -1);
            }
        }
    }
    tr_permutation_release(&permutation);
}

/* Once it is made for as many, no epoch takes memory; without memory it is as it was. */
static int refuse(size_t size, void *user)
{
    (void)size;
    ++*(int *)user;
    return 1;
}

static void test_table_memory(void **state)
{
    (void)state;
    struct tr_permutation permutation = TR_PERMUTATION_INIT;
    tr_rng_key key = tr_rng_key_make(7, TR_RNG_ORDER);
    int asked = 0;
    assert_int_equal(tr_permutation_set(&permutation, key, 0, 1000), TR_OK);
    tr_alloc_set_hook(refuse, &asked);
    assert_int_equal(tr_permutation_set(&permutation, key, 1, 1000), TR_OK);
    assert_int_equal(asked, 0);
    assert_int_equal(tr_permutation_set(&permutation, key, 1, 100000), TR_ENOMEM);
    tr_alloc_set_hook(NULL, NULL);
    assert_int_equal(asked, 1);
    assert_int_equal(tr_permutation_at(&permutation, 3), tr_rng_permute(key, 1, 1000, 3));
    /* A key is another if either half is. */
    const tr_rng_key others[] = {{key.k0, key.k1 + 1}, {key.k0 + 1, key.k1 + 1}};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(tr_permutation_set(&permutation, others[k], 1, 1000), TR_OK);
        for (uint64_t i = 0; i < 1000; i++)
            assert_int_equal(tr_permutation_at(&permutation, i), tr_rng_permute(others[k], 1, 1000, i));
    }
    tr_permutation_release(&permutation);
    assert_int_equal(tr_alloc_live(), 0);
}

/* Places of a permutation of `count` that epochs 0 and 1 (or seeds) have in common. */
static int common(tr_rng_key a, uint32_t epoch_a, tr_rng_key b, uint32_t epoch_b, uint64_t count)
{
    int same = 0;
    for (uint64_t i = 0; i < count; i++)
        same += tr_rng_permute(a, epoch_a, count, i) == tr_rng_permute(b, epoch_b, count, i);
    return same;
}

static void test_epochs_and_seeds_differ(void **state)
{
    (void)state;
    tr_rng_key key = tr_rng_key_make(7, TR_RNG_ORDER), other = tr_rng_key_make(8, TR_RNG_ORDER);
    /* One place in common is expected of random permutations. */
    for (uint32_t epoch = 0; epoch < 20; epoch++) {
        assert_true(common(key, epoch, key, epoch + 1, 1000) < 10);
        assert_true(common(key, epoch, other, epoch, 1000) < 10);
    }
}

/* Over many epochs each number comes to each place about equally often: 36 cells of 1000 expected, with a
 * standard deviation of 29. */
static void test_permutation_is_even(void **state)
{
    (void)state;
    int cells[6][6] = {{0}};
    tr_rng_key key = tr_rng_key_make(3, TR_RNG_ORDER);
    for (uint32_t epoch = 0; epoch < 6000; epoch++)
        for (uint64_t i = 0; i < 6; i++) cells[i][tr_rng_permute(key, epoch, 6, i)]++;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) assert_in_range(cells[i][j], 1000 - 150, 1000 + 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_unit),
        cmocka_unit_test(test_permutation_is_a_bijection),
        cmocka_unit_test(test_permutation_of_many),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_table_memory),
        cmocka_unit_test(test_epochs_and_seeds_differ),
        cmocka_unit_test(test_permutation_is_even),
    };
    return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
