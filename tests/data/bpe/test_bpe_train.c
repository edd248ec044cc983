/* Training against plain loops: all pairs are counted anew for each token. And vocabularies that outgrow
 * every table.
 */
#include "base/alloc.h"
#include "data/bpe/bpe.h"
#include "refuse.h"
#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORDS  3000 /* more than half of the first table of pieces, and pairs than that of pairs */
#define LONG   8
#define TOKENS 900 /* more than half of the first table of tokens */

/* Words with a blank before each, as the pattern of GPT-2 cuts them. */
static char text[WORDS * (LONG + 1) + 1];
static struct {
    int32_t symbol[LONG + 1];
    int count;
} word[WORDS];

static uint32_t next(uint32_t *random)
{
    *random = *random * 1664525 + 1013904223;
    return *random >> 8;
}

/* Letters of very different frequency. */
static size_t make_text(uint32_t seed)
{
    size_t length = 0;
    uint32_t random = seed;
    for (int i = 0; i < WORDS; i++) {
        const int letters = 2 + (int)(next(&random) % (LONG - 1));
        text[length++] = ' ';
        for (int k = 0; k < letters; k++) {
            const uint32_t a = next(&random) % 52, b = next(&random) % 52, least = a < b ? a : b;
            text[length++] = (char)(least < 26 ? 'a' + least : 'A' + least - 26);
        }
    }
    return length;
}

/* The symbols of each word: numbers of bytes in the trained vocabulary. */
static void take_words(const tr_bpe *bpe, size_t length)
{
    int at = -1;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == ' ') word[++at].count = 0;
        word[at].symbol[word[at].count++] = tr_bpe_find(bpe, &text[i], 1);
    }
}

/* How often each pair of tokens occurs side by side; one with pairs of the most frequent count. */
static int64_t most_frequent(int32_t size, uint32_t *counts, int32_t *left, int32_t *right)
{
    int64_t most = 0;
    memset(counts, 0, (size_t)size * (size_t)size * sizeof *counts);
    for (int i = 0; i < WORDS; i++)
        for (int k = 0; k + 1 < word[i].count; k++)
            counts[(size_t)word[i].symbol[k] * (size_t)size + (size_t)word[i].symbol[k + 1]]++;
    for (int32_t a = 0; a < size; a++)
        for (int32_t b = 0; b < size; b++) {
            const int64_t count = counts[(size_t)a * (size_t)size + (size_t)b];
            if (count <= most) continue; /* of equal ones the first */
            most = count;
            *left = a;
            *right = b;
        }
    return most;
}

static void merge(int32_t left, int32_t right, int32_t made)
{
    for (int i = 0; i < WORDS; i++) {
        int count = 0;
        for (int k = 0; k < word[i].count; k++) {
            const bool both =
                word[i].symbol[k] == left && k + 1 < word[i].count && word[i].symbol[k + 1] == right;
            word[i].symbol[count++] = both ? made : word[i].symbol[k];
            k += both;
        }
        word[i].count = count;
    }
}

static tr_bpe *train(size_t length, int32_t size, int64_t least)
{
    const char *const special[] = {NULL};
    const struct tr_bpe_training settings = {TR_BPE_GPT2, size, least, special};
    tr_bpe_trainer *trainer;
    tr_bpe *bpe;
    assert_int_equal(tr_bpe_trainer_create(&settings, &trainer), TR_OK);
    /* in two parts, at the beginning of a word */
    size_t half = length / 2;
    while (text[half] != ' ') half++;
    assert_int_equal(tr_bpe_trainer_count(trainer, text, half), TR_OK);
    assert_int_equal(tr_bpe_trainer_count(trainer, text + half, length - half), TR_OK);
    assert_int_equal(tr_bpe_trainer_finish(trainer, &bpe), TR_OK);
    tr_bpe_trainer_destroy(&trainer);
    return bpe;
}

/* The bytes of the merged tokens together are those of the one they make. */
static void check_bytes(const tr_bpe *bpe, int32_t left, int32_t right, int32_t made)
{
    size_t a, b, both;
    const char *first = tr_bpe_token(bpe, left, &a), *second = tr_bpe_token(bpe, right, &b);
    const char *bytes = tr_bpe_token(bpe, made, &both);
    assert_int_equal(both, a + b);
    assert_memory_equal(bytes, first, a);
    assert_memory_equal(bytes + a, second, b);
    assert_int_equal(tr_bpe_find(bpe, bytes, both), made);
}

/* Each merge takes the most frequent pair of what the merges before it left. */
static void check_merges(uint32_t seed)
{
    const size_t length = make_text(seed);
    tr_bpe *bpe = train(length, TOKENS, 1);
    uint32_t *counts = malloc((size_t)TOKENS * TOKENS * sizeof *counts);
    assert_non_null(counts);
    assert_int_equal(tr_bpe_size(bpe), TOKENS);
    assert_true(tr_bpe_merges(bpe) >= TOKENS - 256);
    take_words(bpe, length);
    /* Not all: a table of all pairs is looked through for each. */
    for (int32_t rank = 0, known = 256; rank < 400; rank++) {
        int32_t left = 0, right = 0, l, r, made;
        assert_true(most_frequent(known, counts, &left, &right) > 0);
        tr_bpe_merge(bpe, rank, &l, &r, &made);
        assert_int_equal(l, left);
        assert_int_equal(r, right);
        assert_true(made <= known);
        if (made == known) known++;
        check_bytes(bpe, l, r, made);
        merge(left, right, made);
    }
    for (int32_t rank = 0; rank < tr_bpe_merges(bpe); rank++) {
        int32_t l, r, made;
        tr_bpe_merge(bpe, rank, &l, &r, &made);
        check_bytes(bpe, l, r, made);
    }
    free(counts);
    tr_bpe_destroy(&bpe);
}

static void merges_are_those_of_plain_counting(void **unused)
{
    (void)unused;
    for (uint32_t seed = 1; seed <= 6; seed++) check_merges(seed);
}

/* What occurs less often than `least` times is not merged: the counts of all that is left are below it. */
static void rare_pairs_are_left(void **unused)
{
    (void)unused;
    enum { MOST = 1 << 10 };
    const size_t length = make_text(2);
    tr_bpe *bpe = train(length, MOST, 60);
    uint32_t *counts = malloc((size_t)MOST * MOST * sizeof *counts);
    assert_non_null(counts);
    const int32_t size = tr_bpe_size(bpe);
    assert_true(size > 270 && size < MOST);
    take_words(bpe, length);
    for (int32_t rank = 0; rank < tr_bpe_merges(bpe); rank++) {
        int32_t left = 0, right = 0, l, r, made;
        assert_true(most_frequent(size, counts, &left, &right) >= 60);
        tr_bpe_merge(bpe, rank, &l, &r, &made);
        assert_int_equal(l, left);
        assert_int_equal(r, right);
        merge(l, r, made);
    }
    int32_t left, right;
    assert_true(most_frequent(size, counts, &left, &right) < 60);
    free(counts);
    tr_bpe_destroy(&bpe);
}

/* A run of a letter becomes one token, however long. */
static void tokens_may_be_long(void **unused)
{
    int32_t *tokens;
    int64_t count;
    (void)unused;
    memset(text, 'a', 2048);
    text[2048] = ' ';
    text[2049] = '\0';
    tr_bpe *bpe = train(2048, 256 + 11, 1);
    assert_int_equal(tr_bpe_merges(bpe), 11);
    assert_int_equal(tr_bpe_encode(bpe, text, 2047, &tokens, &count), TR_OK);
    assert_int_equal(count, 11); /* all powers of two below */
    assert_int_equal(tokens[0], 256 + 9);
    tr_free(tokens);
    tr_bpe_destroy(&bpe);
}

/* Over some words; and over one run, whose tokens outgrow the first room for their texts, as a special token
 * nearly does. */
static void a_lack_of_memory_leaves_nothing(void **unused)
{
    static char large[4000];
    static const char *const special[] = {large, NULL};
    (void)unused;
    memset(large, '<', sizeof large - 1);
    for (int run = 0; run < 2; run++) {
        const size_t length = run ? 8192 : make_text(3) / 20;
        const struct tr_bpe_training settings = {TR_BPE_GPT2, run ? 269 : 300, 1, special};
        if (run) memset(text, 'a', length);
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            tr_bpe_trainer *trainer = NULL;
            tr_bpe *bpe = NULL;
            refuse_begin(at);
            tr_status status = tr_bpe_trainer_create(&settings, &trainer);
            if (status == TR_OK) status = tr_bpe_trainer_count(trainer, text, length);
            if (status == TR_OK) status = tr_bpe_trainer_finish(trainer, &bpe);
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("allocation %d: %s", (int)at, tr_status_name(status));
            if (done) assert_int_equal(tr_bpe_size(bpe), settings.size);
            tr_bpe_destroy(&bpe);
            tr_bpe_trainer_destroy(&trainer);
            assert_int_equal(tr_alloc_live(), live);
        }
    }
}

/* A text without pairs, and one without anything. */
static void texts_may_have_no_pairs(void **unused)
{
    (void)unused;
    strcpy(text, " a 1");
    tr_bpe *bpe = train(2, 300, 2);
    assert_int_equal(tr_bpe_size(bpe), 256);
    assert_int_equal(tr_bpe_merges(bpe), 0);
    tr_bpe_destroy(&bpe);
    strcpy(text, " ");
    bpe = train(0, 300, 1);
    assert_int_equal(tr_bpe_size(bpe), 256);
    tr_bpe_destroy(&bpe);
}

/* The very first pair of the text is merged where it stands. */
static void the_first_pair_counts(void **unused)
{
    size_t length;
    (void)unused;
    strcpy(text, "abc ");
    tr_bpe *bpe = train(3, 258, 1);
    const char *bytes = tr_bpe_token(bpe, 257, &length);
    assert_int_equal(length, 3);
    assert_memory_equal(bytes, "abc", 3);
    tr_bpe_destroy(&bpe);
}

/* Runs of one letter, in which pairs overlap: each is cut from its left. */
static void runs_merge_from_the_left(void **unused)
{
    int32_t left, right, made, *tokens;
    int64_t count;
    (void)unused;
    strcpy(text, " aaaaa aaaaa bbb"); /* (a, a) 8 times, then (aa, aa) and (aa, a) 2 times each */
    tr_bpe *bpe = train(strlen(text), 258, 2);
    tr_bpe_merge(bpe, 0, &left, &right, &made);
    assert_int_equal(left, tr_bpe_find(bpe, "a", 1));
    assert_int_equal(right, left);
    assert_int_equal(made, 256);
    tr_bpe_merge(bpe, 1, &left, &right, &made);
    assert_int_equal(left, tr_bpe_find(bpe, "b", 1)); /* (b, b) 2 times, and has the least left token */
    assert_int_equal(tr_bpe_encode(bpe, "aaaaa", 5, &tokens, &count), TR_OK);
    assert_int_equal(count, 3);
    assert_int_equal(tokens[0], 256);
    assert_int_equal(tokens[1], 256);
    tr_free(tokens);
    tr_bpe_destroy(&bpe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_are_those_of_plain_counting),
        cmocka_unit_test(rare_pairs_are_left),
        cmocka_unit_test(tokens_may_be_long),
        cmocka_unit_test(a_lack_of_memory_leaves_nothing),
        cmocka_unit_test(texts_may_have_no_pairs),
        cmocka_unit_test(the_first_pair_counts),
        cmocka_unit_test(runs_merge_from_the_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
