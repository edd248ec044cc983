/* What a judge hears before it comes to a number: facts of the receipts, states, steps, batches and openings.
 * A party that says what cannot be, or opens what it has not committed itself to, loses, whichever side it is
 * on; where nothing can be proved, nobody does.
 */
#include "dispute/two_sides.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { A, B, STEP = 3 };
static const char *const names[] = {"A", "B"};

/* They differ after STEP, in the first number of an operation; `liar` is the party that has it otherwise. */
static struct dispute_step forged;
static struct side side[2];

/* A digest that nothing has. */
static const char ones[] = "1111111111111111111111111111111111111111111111111111111111111111";

static void begin(int forger)
{
    sides_begin(side);
    side[forger].from = STEP;
    side[forger].step = &forged;
}

static void expect(enum tr_dispute_outcome outcome, int64_t step, const char *place, const char *text,
                   const struct tr_party_settings *judge)
{
    struct tr_dispute_result result;
    must_train(sides_settle(side, judge, &result));
    if (result.outcome != outcome || !strstr(result.text, text) || result.step != step ||
        strcmp(result.place, place) != 0)
        fail_msg("outcome %d, step %" PRId64 ", place \"%s\": %s\ninstead of outcome %d, step %" PRId64
                 ", place \"%s\": %s",
                 (int)result.outcome, result.step, result.place, result.text, (int)outcome, step, place,
                 text);
    assert_null(result.referee);
    assert_int_equal(result.questions + result.opened, side[A].asked + side[B].asked);
    tr_dispute_release(&result);
    assert_null(result.text);
    sides_end(side);
}

static void is_no_answer_loses(void **state)
{
    static const struct change lies[] = {
        {"hello", 1, "2"},      {"hello", 2, "-1"},     {"hello", 3, "12"},      {"hello", 5, "01"},
        {"hello", 6, "0"},      {"hello", 7, "0"},      {"hello", 8, "more"},    {"hello", 7, "100001"},
        {"boundary 0", 1, "x"}, {"boundary 0", 1, "7"}, {"boundary 3", 2, "ab"}, {"boundary 1", 4, "0"},
        {"replay", 1, "0"},     {"replay", 3, "0"},     {"step", 3, "-1"},       {"step", 4, "2"},
        {"step", 5, "0"},       {"step", 7, "0"},       {"record", 1, "x"},      {"record", 7, "0"},
        {"node", 1, "0"},       {"node", 3, "0"},       {"entry", 2, "99"},      {"entry", 3, "0"},
        {"leaf", 1, "0"},       {"leaf", 1, "00"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
        for (int liar = A; liar <= B; liar++) {
            char text[64];
            const bool before =
                strncmp(lies[i].question, "hello", 5) == 0 || strncmp(lies[i].question, "boundary", 8) == 0 ||
                strncmp(lies[i].question, "replay", 6) == 0 || strncmp(lies[i].question, "step", 4) == 0;
            begin(1 - liar);
            side[liar].change[0] = lies[i];
            snprintf(text, sizeof text, "%s answers with what is no answer: \"%.4s", names[liar],
                     lies[i].question);
            expect(liar == A ? TR_DISPUTE_B : TR_DISPUTE_A, before ? 0 : STEP, "", text, NULL);
        }
}

/* What is said of a party, behind its name where it loses. */
struct lie {
    struct change change;
    int64_t step; /* in the result */
    const char *text;
};

static void an_answer_that_contradicts_another_one_loses(void **state)
{
    static const struct lie lies[] = {
        {{"hello", 0, "hallo"}, 0, "answers \"hallo 1 "},
        {{"step", -1, "steps"}, 0, "answers \"steps\" to \"step "},
        {{"replay", 1, "*"}, 4, "does not come again to what its receipt says of step 4"},
        {{"replay", 2, "*"}, 4, "does not come again to what its receipt says of step 4"},
        {{"step", 4, "1"}, STEP, "says what does not lead to its own chain at step 3"},
        {{"step", 5, "00000001"}, STEP, "says what does not lead to its own chain at step 3"},
        {{"record", 1, "3"}, STEP, "makes step 3 of 3 operations and copies; by the model file and the "},
        {{"node", 1, "*"}, STEP, "opens what is not below its own digest"},
        {{"node", 2, "*"}, STEP, "opens what is not below its own digest"},
        {{"entry", 1, "other"}, STEP, "does \"other\" where the model file has \""},
        {{"entry", 3, "*"}, STEP, "opens an entry that does not lead to its root"},
        {{"entry", 4, "*"}, STEP, "opens an entry that does not lead to its root"},
        {{"leaf", 1, "*"}, STEP, "opens a leaf that does not lead to its root"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
        for (int liar = A; liar <= B; liar++) {
            char text[256];
            begin(1 - liar);
            side[liar].change[0] = lies[i].change;
            snprintf(text, sizeof text, "%s %s", names[liar], lies[i].text);
            expect(liar == A ? TR_DISPUTE_B : TR_DISPUTE_A, lies[i].step, "", text, NULL);
        }
}

/* Where there is a cause other than a lie. */
static void what_nothing_proves_stays_open(void **state)
{
    static const struct lie lies[] = {
        {{"hello", -1, "sorry no time"}, 0, "cannot answer \"hello 1\": no time"},
        {{"record", -1, "sorry no disk"}, STEP, "cannot answer \"record 3\": no disk"},
        {{"hello", 2, "77"}, 0, "is 77, this program has "},
        {{"hello", 5, "5"}, 0, "the receipts are of other seeds or numbers of steps"},
        {{"hello", 6, "7"}, 0, "the receipts are of other seeds or numbers of steps"},
        {{"hello", 3, "*"}, 0, "give the model file that counts"},
        {{"boundary 0", 1, "1"}, 0, "boundary 0 is after "},
        {{"boundary 3", 1, "5"}, 0, "make receipts with boundaries at the same steps"},
        {{"step", 3, "2"}, STEP, "makes several steps as one"},
        {{"record", 3, "2"}, STEP, "has 2 leaves before the step and "},
        {{"record", 5, "2"}, STEP, " and 2 after it, here it has "},
        {{"record", 4, "*"}, STEP, "does not come to the same state twice before step 3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
        for (int liar = A; liar <= B; liar++) {
            begin(1 - liar);
            side[liar].change[0] = lies[i].change;
            expect(TR_DISPUTE_OPEN, lies[i].step, "", lies[i].text, NULL);
        }
}

/* Settings and data that differ: those at hand count, the settings only with a model file of the judge's. */
static void facts_at_hand_decide(void **state)
{
    const struct tr_party_settings judge = {.device = "ref", .model = run_model};
    static const struct change changes[] = {{"hello", 3, "*"}, {"hello", 4, "*"}};
    static const char *const what[] = {"settings", "data"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        for (int liar = A; liar <= B; liar++) {
            char text[64], end[64];
            struct tr_dispute_result result;
            begin(1 - liar);
            side[liar].change[0] = changes[i];
            snprintf(text, sizeof text, "the receipts are of other %s: A's are ", what[i]);
            snprintf(end, sizeof end, "; those at hand are %s's", names[1 - liar]);
            must_train(sides_settle(side, &judge, &result));
            assert_non_null(strstr(result.text, end));
            tr_dispute_release(&result);
            expect(liar == A ? TR_DISPUTE_B : TR_DISPUTE_A, 0, "", text, &judge);
        }
        begin(B);
        side[A].change[0] = side[B].change[0] = changes[i];
        expect(TR_DISPUTE_OPEN, 0, "",
               i ? "the data at hand are not those of the receipts"
                 : "the model file at hand is not that of the receipts",
               &judge);
        begin(B);
        side[A].change[0] = side[B].change[0] = changes[i];
        side[B].change[1] = (struct change){"hello", changes[i].word, ones};
        expect(TR_DISPUTE_NEITHER, 0, "", "; those at hand are neither's", &judge);
    }
}

/* The first state follows from the model file. */
static void they_begin_with_other_states(void **state)
{
    const struct change other = {"boundary 0", 2, "*"}, third = {"boundary 0", 2, ones};
    (void)state;
    for (int liar = A; liar <= B; liar++) {
        char text[128];
        begin(1 - liar);
        side[liar].change[0] = other;
        snprintf(text, sizeof text, "they begin with other states, and that of the model file is %s's",
                 names[1 - liar]);
        expect(liar == A ? TR_DISPUTE_B : TR_DISPUTE_A, 0, "", text, NULL);
    }
    begin(B);
    side[A].change[0] = other;
    side[B].change[0] = third;
    expect(TR_DISPUTE_NEITHER, 0, "", "and that of the model file is neither's", NULL);
    begin(B); /* which the chain alone says */
    side[B].change[0] = (struct change){"boundary 0", 3, "*"};
    expect(TR_DISPUTE_OPEN, 0, "", "they begin with other states", NULL);
}

static void each_step_is_found(void **state)
{
    (void)state;
    for (int step = 1; step <= RUN_STEPS; step++)
        for (int forger = A; forger <= B; forger++) {
            struct dispute_step claimed;
            struct tr_dispute_result result;
            true_step(&claimed, step);
            const uint32_t its = 0x40000000;
            claim_number(&claimed, 0, 4, &its, 4);
            sides_begin(side);
            side[forger].from = step;
            side[forger].step = &claimed;
            must_train(sides_settle(side, NULL, &result));
            assert_int_equal(result.step, step);
            assert_int_equal(result.outcome, forger == A ? TR_DISPUTE_B : TR_DISPUTE_A);
            assert_true(result.opened >= 4 && result.opened < result.questions);
            tr_dispute_release(&result);
            sides_end(side);
            dispute_step_release(&claimed);
        }
}

static void a_run_that_comes_otherwise(void **state)
{
    (void)state;
    for (int forger = A; forger <= B; forger++) {
        char text[128];
        begin(forger);
        side[forger].repeats_honestly = true;
        snprintf(text, sizeof text,
                 "%s does not come again to what its receipt says of step 4, but to what the other's says",
                 names[forger]);
        expect(forger == A ? TR_DISPUTE_B : TR_DISPUTE_A, 4, "", text, NULL);
    }
    begin(B);
    side[A].change[0] = side[B].change[0] = (struct change){"replay", 1, ones};
    expect(TR_DISPUTE_OPEN, 4, "", "neither comes again to what its receipt says of step 4", NULL);
    begin(B); /* both receipts are said to differ, but the steps do not */
    side[B].from = 0;
    side[B].change[0] = (struct change){"boundary 3", 2, ones};
    side[B].change[1] = (struct change){"replay", 1, ones};
    expect(TR_DISPUTE_OPEN, RUN_STEPS, "", "both make step 6 alike when asked for it", NULL);
}

static void receipts_that_are_equal(void **state)
{
    (void)state;
    begin(B);
    side[B].from = 0;
    expect(TR_DISPUTE_EQUAL, 0, "", "the receipts are equal up to step 6", NULL);
    for (int shorter = A; shorter <= B; shorter++) { /* only as far as both have boundaries */
        begin(B);
        side[B].from = 5;
        side[shorter].change[0] = (struct change){"hello", 7, "3"};
        expect(TR_DISPUTE_EQUAL, 0, "", "the receipts are equal up to step 4", NULL);
    }
}

/* Batches are in the order of the seed. */
static void other_examples(void **state)
{
    (void)state;
    for (int liar = A; liar <= B; liar++)
        for (int row = 0; row < 10; row += 9) {
            char text[256];
            begin(liar);
            char *said = side_says(&side[liar], "batch 3");
            side[liar].other_batch = STEP;
            side[liar].change[0] = (struct change){"batch 3", 1 + row, "4711"};
            snprintf(text, sizeof text,
                     "step 3: the batch of %s is not in the order of the seed; example %d of it is number "
                     "4711, and must be %s",
                     names[liar], row, word_of(said, 1 + row));
            tr_free(said);
            expect(liar == A ? TR_DISPUTE_B : TR_DISPUTE_A, STEP, row ? "batch [9]" : "batch [0]", text,
                   NULL);
        }
    begin(B); /* a number that is none */
    side[B].other_batch = STEP;
    side[B].change[0] = (struct change){"batch 3", 1, "x"};
    expect(TR_DISPUTE_A, STEP, "batch", "the batch of B is not in the order of the seed", NULL);
}

static int set_up(void **state)
{
    if (run_make(state) != 0) return -1;
    operation_otherwise(&forged, STEP);
    return 0;
}

static int tear_down(void **state)
{
    dispute_step_release(&forged);
    return run_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_no_answer_loses),
        cmocka_unit_test(an_answer_that_contradicts_another_one_loses),
        cmocka_unit_test(what_nothing_proves_stays_open),
        cmocka_unit_test(facts_at_hand_decide),
        cmocka_unit_test(they_begin_with_other_states),
        cmocka_unit_test(each_step_is_found),
        cmocka_unit_test(a_run_that_comes_otherwise),
        cmocka_unit_test(receipts_that_are_equal),
        cmocka_unit_test(other_examples),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
