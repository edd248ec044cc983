/* The chain of steps: the digests that another program computes, and that every part of a link counts. */
#include "receipt/chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

static struct tr_chain_link sample(void)
{
    struct tr_chain_link link = {.step = 300, .steps = 2, .loss = 1.5f, .skipped = true};
    memset(&link.batch, 0x44, sizeof link.batch);
    return link;
}

static void add(const struct tr_chain_link *link, struct tr_sha256_sum *chain)
{
    tr_sha256 *hash;
    memset(chain, 0x11, sizeof *chain);
    assert_int_equal(tr_sha256_begin(&hash), TR_OK);
    assert_int_equal(tr_chain_add(hash, link, chain), TR_OK);
    tr_sha256_destroy(&hash);
}

/* Both by Python's hashlib from what receipt/chain.h says. */
static void chains_are_as_they_are_written_down(void **state)
{
    (void)state;
    struct tr_chain_begin begin;
    struct tr_chain_link link = sample();
    struct tr_sha256_sum chain;
    char hex[TR_SHA256_TEXT];
    memset(&begin.settings, 0x21, sizeof begin.settings);
    memset(&begin.data, 0x22, sizeof begin.data);
    memset(&begin.root, 0x23, sizeof begin.root);
    assert_int_equal(tr_chain_begin(&begin, &chain), TR_OK);
    assert_string_equal(tr_sha256_text(&chain, hex),
                        "f2f05053a69fb78744c55e5e48595bf02119736ed51a027414ce1c4a3306dc24");
    add(&link, &chain);
    assert_string_equal(tr_sha256_text(&chain, hex),
                        "6392671c5420372b6447f9564a0ae768ddde7645638c412fcbfa600f89bba964");
}

static void every_part_of_a_link_counts(void **state)
{
    (void)state;
    struct tr_chain_link link[6];
    struct tr_sha256_sum chain[6];
    for (int i = 0; i < 6; i++) link[i] = sample();
    link[1].step++;
    link[2].steps++;
    link[3].loss = nextafterf(1.5f, 2);
    link[4].skipped = false;
    link[5].batch.byte[31] ^= 1;
    for (int i = 0; i < 6; i++) {
        add(&link[i], &chain[i]);
        for (int j = 0; j < i; j++) assert_memory_not_equal(&chain[i], &chain[j], sizeof chain[i]);
    }
}

static void one_nan_is_as_good_as_another(void **state)
{
    (void)state;
    struct tr_chain_link a = sample(), b = sample();
    struct tr_sha256_sum of_a, of_b;
    uint32_t bits = 0xffc01234;
    a.loss = NAN;
    memcpy(&b.loss, &bits, sizeof bits);
    add(&a, &of_a);
    add(&b, &of_b);
    assert_memory_equal(&of_a, &of_b, sizeof of_a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_are_as_they_are_written_down),
        cmocka_unit_test(every_part_of_a_link_counts),
        cmocka_unit_test(one_nan_is_as_good_as_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
