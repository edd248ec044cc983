/* Trees of digests: the roots that others compute over the leaves of RFC 6962's examples, and proofs that
 * lead to the root from their own leaf and from nothing else. */
#include "receipt/merkle.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define MOST 40

/* The leaves that implementations of certificate transparency test with, and the roots over the first ones.
 */
static const struct {
    const char *bytes;
    size_t size;
    const char *root;
} example[] = {
    {"", 0, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"},
    {"\x00", 1, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"},
    {"\x10", 1, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"},
    {"\x20\x21", 2, "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"},
    {"\x30\x31", 2, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"},
    {"\x40\x41\x42\x43", 4, "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"},
    {"\x50\x51\x52\x53\x54\x55\x56\x57", 8,
     "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"},
    {"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f", 16,
     "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"},
};
#define EXAMPLES ((int64_t)(sizeof example / sizeof example[0]))

static struct tr_sha256_sum leaf[MOST];

static void make_leaves(void)
{
    tr_sha256 *hash;
    assert_int_equal(tr_sha256_begin(&hash), TR_OK);
    for (int64_t i = 0; i < MOST; i++) {
        int64_t number = i;
        assert_int_equal(i < EXAMPLES ? tr_merkle_leaf(hash, example[i].bytes, example[i].size, &leaf[i])
                                      : tr_merkle_leaf(hash, &number, sizeof number, &leaf[i]),
                         TR_OK);
    }
    tr_sha256_destroy(&hash);
}

static void roots_are_those_that_others_compute(void **state)
{
    (void)state;
    struct tr_sha256_sum root;
    char hex[TR_SHA256_TEXT];
    assert_int_equal(tr_merkle_root(leaf, 0, &root), TR_OK);
    assert_string_equal(tr_sha256_text(&root, hex),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    for (int64_t i = 0; i < EXAMPLES; i++) {
        assert_int_equal(tr_merkle_root(leaf, i + 1, &root), TR_OK);
        assert_string_equal(tr_sha256_text(&root, hex), example[i].root);
    }
}

static bool leads(const struct tr_merkle_proof *proof, const struct tr_sha256_sum *from,
                  const struct tr_sha256_sum *root)
{
    struct tr_sha256_sum found;
    return tr_merkle_follow(proof, from, &found) == TR_OK && memcmp(&found, root, sizeof found) == 0;
}

static void every_proof_leads_to_the_root(void **state)
{
    (void)state;
    struct tr_sha256_sum root;
    struct tr_merkle_proof proof;
    for (int64_t count = 1; count <= MOST; count++) {
        assert_int_equal(tr_merkle_root(leaf, count, &root), TR_OK);
        for (int64_t i = 0; i < count; i++) {
            assert_int_equal(tr_merkle_prove(leaf, count, i, &proof), TR_OK);
            assert_true(leads(&proof, &leaf[i], &root));
        }
    }
}

static void no_proof_leads_from_anything_else(void **state)
{
    (void)state;
    struct tr_sha256_sum root;
    for (int64_t count = 2; count <= MOST; count++) {
        assert_int_equal(tr_merkle_root(leaf, count, &root), TR_OK);
        for (int64_t i = 0; i < count; i++) {
            struct tr_merkle_proof proof, other;
            assert_int_equal(tr_merkle_prove(leaf, count, i, &proof), TR_OK);
            for (int64_t j = 0; j < count; j++) {
                if (j == i) continue;
                assert_false(leads(&proof, &leaf[j], &root));
                other = proof;
                other.leaf = j;
                assert_false(leads(&other, &leaf[i], &root));
            }
            for (int b = 0; b < proof.length; b++) {
                other = proof;
                other.beside[b].byte[7] ^= 1;
                assert_false(leads(&other, &leaf[i], &root));
            }
        }
    }
}

static void what_is_no_proof_is_refused(void **state)
{
    (void)state;
    struct tr_sha256_sum root;
    struct tr_merkle_proof proof, bad;
    assert_int_equal(tr_merkle_prove(leaf, 11, 4, &proof), TR_OK);
    bad = proof, bad.leaf = 11;
    assert_int_equal(tr_merkle_follow(&bad, &leaf[4], &root), TR_EFORMAT);
    bad = proof, bad.leaf = -1;
    assert_int_equal(tr_merkle_follow(&bad, &leaf[4], &root), TR_EFORMAT);
    bad = proof, bad.length--;
    assert_int_equal(tr_merkle_follow(&bad, &leaf[4], &root), TR_EFORMAT);
    bad = proof, bad.length = 1000000;
    assert_int_equal(tr_merkle_follow(&bad, &leaf[4], &root), TR_EFORMAT);
    bad = proof, bad.leaves = INT64_MAX;
    assert_int_equal(tr_merkle_follow(&bad, &leaf[4], &root), TR_EFORMAT);
    bad = proof, bad.leaves = 0;
    assert_int_equal(tr_merkle_follow(&bad, &leaf[4], &root), TR_EFORMAT);
    assert_string_equal(tr_error_message(), "a proof for leaf 4 of 0");
    bad = proof, bad.length++;
    assert_int_equal(tr_merkle_follow(&bad, &leaf[4], &root), TR_EFORMAT);
    assert_string_equal(tr_error_message(), "a proof of 5 digests for leaf 4 of 11, which takes 4");
}

/* The first leaf of as many as there can be: 63 digests stand beside it, all to its right. */
static void the_deepest_tree_has_a_proof(void **state)
{
    (void)state;
    struct tr_merkle_proof proof = {.leaf = 0, .leaves = INT64_MAX, .length = TR_MERKLE_DEPTH};
    struct tr_sha256_sum expected = leaf[0], found;
    tr_sha256 *hash;
    assert_int_equal(tr_sha256_begin(&hash), TR_OK);
    for (int i = 0; i < TR_MERKLE_DEPTH; i++) {
        proof.beside[i] = leaf[i % MOST];
        tr_sha256_add(hash, "\1", 1);
        tr_sha256_add(hash, expected.byte, sizeof expected.byte);
        tr_sha256_add(hash, proof.beside[i].byte, sizeof proof.beside[i].byte);
        assert_int_equal(tr_sha256_take(hash, &expected), TR_OK);
    }
    tr_sha256_destroy(&hash);
    assert_int_equal(tr_merkle_follow(&proof, &leaf[0], &found), TR_OK);
    assert_memory_equal(&found, &expected, sizeof found);
    proof.length--;
    assert_int_equal(tr_merkle_follow(&proof, &leaf[0], &found), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "which takes 63"));
}

static tr_status make_all(struct tr_sha256_sum *root)
{
    struct tr_merkle_proof proof;
    tr_status status = tr_merkle_root(leaf, 11, root);
    if (status == TR_OK) status = tr_merkle_prove(leaf, 11, 4, &proof);
    return status == TR_OK ? tr_merkle_follow(&proof, &leaf[4], root) : status;
}

static void lack_of_memory_is_told(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct tr_sha256_sum root;
        refuse_begin(at);
        tr_status status = make_all(&root);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots_are_those_that_others_compute),
        cmocka_unit_test(every_proof_leads_to_the_root),
        cmocka_unit_test(no_proof_leads_from_anything_else),
        cmocka_unit_test(what_is_no_proof_is_refused),
        cmocka_unit_test(the_deepest_tree_has_a_proof),
        cmocka_unit_test(lack_of_memory_is_told),
    };
    make_leaves();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
