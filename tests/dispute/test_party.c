/* What a party says of its run: the receipt's facts, replays and their steps, batches, the evidence of a
 * step; and which questions it does not answer. A judge and others ask, so no question may harm it.
 */
#include "dispute/two_sides.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct side side[2];

static int begin(void **state)
{
    (void)state;
    sides_begin(side);
    return 0;
}

static int end(void **state)
{
    (void)state;
    sides_end(side);
    return 0;
}

/* The answer is `format`. */
static void expect(const char *question, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void expect(const char *question, const char *format, ...)
{
    char expected[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(expected, sizeof expected, format, arguments);
    va_end(arguments);
    char *answer = side_says(&side[0], question);
    assert_string_equal(answer, expected);
    tr_free(answer);
}

static void expect_sorry(const char *question, const char *why)
{
    expect(question, "sorry %s", why);
}

static const char *hex(const struct tr_sha256_sum *sum)
{
    static char text[4][TR_SHA256_TEXT];
    static int turn;
    return tr_sha256_text(sum, text[turn++ % 4]);
}

static void the_facts_of_its_receipt(void **state)
{
    (void)state;
    expect("hello 1", "hello 1 %" PRId64 " %s %s 4 %d 4", run_receipt.numerics, hex(&run_receipt.settings),
           hex(&run_receipt.data), RUN_STEPS);
    for (int i = 0; i < 4; i++) {
        char question[32];
        snprintf(question, sizeof question, "boundary %d", i);
        expect(question, "boundary %d %s %s", i * RUN_EVERY, hex(&run_receipt.boundary[i].root),
               hex(&run_receipt.boundary[i].chain));
    }
    char *answer = side_says(&side[0], "model"), *model = tr_alloc_zero(strlen(answer), 1);
    struct tr_wire wire = {.at = answer};
    assert_true(tr_wire_begins(&wire, "model"));
    assert_int_equal(tr_wire_bytes(&wire, model, strlen(answer)), strlen(run_receipt.model));
    assert_string_equal(model, run_receipt.model);
    tr_free(answer);
    tr_free(model);
}

/* Each segment comes again as the receipt has it, also those between whose ends is a checkpoint; and its
   steps are known. */
static void replays_and_their_steps(void **state)
{
    (void)state;
    expect_sorry("step 1", "there is no such step in what was made again last");
    for (int i = 2; i >= 0; i--) {
        char question[32];
        const struct tr_receipt_boundary *after = &run_receipt.boundary[i + 1];
        snprintf(question, sizeof question, "replay %d", i);
        expect(question, "replay %s %s", hex(&after->root), hex(&after->chain));
        snprintf(question, sizeof question, "step %d", 2 * i + 2);
        char *last = side_says(&side[0], question);
        assert_string_equal(word_of(last, 1), hex(&after->root));
        assert_string_equal(word_of(last, 2), hex(&after->chain));
        assert_string_equal(word_of(last, 3), "1");
        assert_string_equal(word_of(last, 4), "0");
        tr_free(last);
    }
    expect_sorry("step 3", "there is no such step in what was made again last");
    expect_sorry("step 6", "there is no such step in what was made again last");
}

/* Three steps see each of the thirty examples once. */
static void batches_are_of_an_epoch(void **state)
{
    (void)state;
    for (int epoch = 0; epoch < 2; epoch++) {
        bool met[30] = {false};
        for (int step = 1; step <= 3; step++) {
            char question[32];
            snprintf(question, sizeof question, "batch %d", 3 * epoch + step);
            char *answer = side_says(&side[0], question);
            for (int i = 1; i <= 10; i++) {
                const int64_t example = strtoll(word_of(answer, i), NULL, 10);
                assert_in_range(example, 0, 29);
                assert_false(met[example]);
                met[example] = true;
            }
            assert_string_equal(word_of(answer, 11), "");
            tr_free(answer);
        }
    }
}

static void the_evidence_of_a_step(void **state)
{
    static const int steps[] = {6, 1, 4, 5};
    (void)state;
    expect_sorry("node entries 0 2", "no step has been recorded");
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const int step = steps[i];
        struct dispute_step expected;
        char question[64];
        true_step(&expected, step);
        snprintf(question, sizeof question, "record %d", step);
        expect(question, "record %" PRId64 " %s %" PRId64 " %s %" PRId64 " %s", expected.evidence.entries,
               hex(&expected.root), expected.before.count, hex(&expected.before.root), expected.after.count,
               hex(&expected.after.root));
        if (step % RUN_EVERY == 0)
            assert_memory_equal(&expected.after.root, &run_receipt.boundary[step / RUN_EVERY].root, 32);
        else
            assert_memory_equal(&expected.before.root, &run_receipt.boundary[step / RUN_EVERY].root, 32);
        /* The first two leaves of each tree. */
        const struct tr_sha256_sum *sum = expected.evidence.leaf;
        expect("node entries 0 2", "node %s %s", hex(&sum[0]), hex(&sum[1]));
        expect("node entries 1 2", "node %s %s", hex(&sum[1]), hex(&sum[2]));
        expect("node before 0 2", "node %s %s", hex(&expected.before.sum[0]), hex(&expected.before.sum[1]));
        expect("node after 1 2", "node %s %s", hex(&expected.after.sum[1]), hex(&expected.after.sum[2]));
        must_train(tr_evidence_leaf_sums(&expected.evidence, 0, &sum));
        expect("node 0 0 2", "node %s %s", hex(&sum[0]), hex(&sum[1]));
        dispute_step_release(&expected);
    }
}

static void questions_that_have_no_answer(void **state)
{
    static const struct {
        const char *question, *why;
    } asked[] = {
        {"hello 2", "there is no such version of these questions"},
        {"hello", "there is no such version of these questions"},
        {"hello 1 1", "there is no such version of these questions"},
        {"model 1", "there is no such model file"},
        {"boundary", "there is no such boundary"},
        {"boundary 4", "there is no such boundary"},
        {"boundary 0 0", "there is no such boundary"},
        {"replay 3", "there is no such segment"},
        {"replay -1", "there is no such segment"},
        {"replay 9223372036854775807", "there is no such segment"},
        {"step 0", "there is no such step"},
        {"step 7", "there is no such step"},
        {"batch 0", "there is no such step"},
        {"batch 7", "there is no such step"},
        {"record 0", "there is no such step"},
        {"record 7", "there is no such step"},
        {"record 1 1", "there is no such step"},
        {"node entries 0 1", "there is no such node"},
        {"node entries 0 9999", "there is no such node"},
        {"node entries 9999 2", "there is no such node"},
        {"node entries 0", "there is no such node"},
        {"node entries 0 2 2", "there is no such node"},
        {"node 9999 0 2", "there is no such tree"},
        {"node later 0 2", "there is no such tree"},
        {"leaf entries 0", "there is no such leaf"},
        {"leaf before 9999", "there is no such leaf"},
        {"leaf 0 9999", "there is no such leaf"},
        {"leaf 0", "there is no such leaf"},
        {"leaf 0 0 0", "there is no such leaf"},
        {"leaf 9999 0", "there is no such tree"},
        {"entry 9999", "there is no such entry"},
        {"entry", "there is no such entry"},
        {"entry 0 0", "there is no such entry"},
        {"nodes entries 0 2", "there is no such question"},
        {"", "there is no such question"},
    };
    (void)state;
    struct dispute_step expected;
    char question[64];
    true_step(&expected, 1);
    tr_free(side_says(&side[0], "record 1"));
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) expect_sorry(asked[i].question, asked[i].why);
    /* The last that there is, and one beyond. */
    const int64_t count = expected.before.count, entries = expected.evidence.entries;
    snprintf(question, sizeof question, "node before %" PRId64 " 2", count - 2);
    expect(question, "node %s %s", hex(&expected.before.sum[count - 2]),
           hex(&expected.before.sum[count - 1]));
    snprintf(question, sizeof question, "node before %" PRId64 " 2", count - 1);
    expect_sorry(question, "there is no such node");
    snprintf(question, sizeof question, "leaf before %" PRId64, count);
    expect_sorry(question, "there is no such leaf");
    snprintf(question, sizeof question, "entry %" PRId64, entries);
    expect_sorry(question, "there is no such entry");
    const int64_t regions = expected.evidence.regions, last = regions - 1,
                  leaves = tr_evidence_leaves(&expected.evidence.region[last]);
    for (int64_t beyond = regions; beyond < regions + 2; beyond++) {
        snprintf(question, sizeof question, "leaf %" PRId64 " 0", beyond);
        expect_sorry(question, "there is no such tree");
        snprintf(question, sizeof question, "node %" PRId64 " 0 2", beyond);
        expect_sorry(question, "there is no such tree");
    }
    snprintf(question, sizeof question, "leaf %" PRId64 " %" PRId64, last, leaves);
    expect_sorry(question, "there is no such leaf");
    snprintf(question, sizeof question, "leaf %" PRId64 " %" PRId64, last, leaves - 1);
    char *opened = side_says(&side[0], question);
    assert_string_equal(word_of(opened, 0), "leaf");
    tr_free(opened);
    snprintf(question, sizeof question, "node entries %" PRId64 " 2", entries - 2);
    expect(question, "node %s %s", hex(&expected.evidence.leaf[entries - 2]),
           hex(&expected.evidence.leaf[entries - 1]));
    snprintf(question, sizeof question, "node entries %" PRId64 " 2", entries - 1);
    expect_sorry(question, "there is no such node");
    snprintf(question, sizeof question, "entry %" PRId64, entries - 1);
    char *answer = side_says(&side[0], question);
    assert_string_equal(word_of(answer, 1), expected.evidence.entry[entries - 1].name);
    tr_free(answer);
    dispute_step_release(&expected);
}

/* A run that has been stopped has fewer boundaries than steps; the steps after the last one can be made, too.
 */
static void a_receipt_of_a_part_of_the_steps(void **state)
{
    struct tr_receipt part = run_receipt;
    struct dispute_step expected;
    (void)state;
    part.count = 2;
    part.parameters[0] = '\0';
    side[0].party = party_with(&part);
    for (int step = 2; step <= RUN_STEPS; step += 4) {
        char question[32];
        true_step(&expected, step);
        snprintf(question, sizeof question, "record %d", step);
        char *answer = side_says(&side[0], question);
        assert_string_equal(word_of(answer, 2), hex(&expected.root));
        tr_free(answer);
        dispute_step_release(&expected);
    }
    expect_sorry("replay 1", "there is no such segment");
    tr_party_destroy(&side[0].party);
}

static void a_party_needs_a_receipt(void **state)
{
    char path[SCRATCH_PATH];
    const struct tr_party_settings settings = {.path = scratch_join(path, run_path, "none")};
    tr_party *party = (tr_party *)&side;
    (void)state;
    assert_int_not_equal(tr_party_create(&settings, &party), TR_OK);
    assert_null(party);
    tr_party_destroy(&party);
}

static int set_up(void **state)
{
    if (run_make(state) != 0) return -1;
    assert_int_equal(run_receipt.count, 4);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_facts_of_its_receipt, begin, end),
        cmocka_unit_test_setup_teardown(replays_and_their_steps, begin, end),
        cmocka_unit_test_setup_teardown(batches_are_of_an_epoch, begin, end),
        cmocka_unit_test_setup_teardown(the_evidence_of_a_step, begin, end),
        cmocka_unit_test_setup_teardown(questions_that_have_no_answer, begin, end),
        cmocka_unit_test(a_receipt_of_a_part_of_the_steps),
        cmocka_unit_test(a_party_needs_a_receipt),
    };
    return cmocka_run_group_tests(tests, set_up, run_remove);
}
