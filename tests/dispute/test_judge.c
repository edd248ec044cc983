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

enum { A, B, STEP = FORGED_STEP };
static const char *const names[] = {"A", "B"};

static struct side side[2];

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
            sides_begin_forged(side, 1 - liar);
            side[liar].change[0] = lies[i];
            snprintf(text, sizeof text, "%s answers with what is no answer: \"%.4s", names[liar],
                     lies[i].question);
            sides_expect(side, liar == A ? TR_DISPUTE_B : TR_DISPUTE_A, before ? 0 : STEP, "", text, NULL);
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
            sides_begin_forged(side, 1 - liar);
            side[liar].change[0] = lies[i].change;
            snprintf(text, sizeof text, "%s %s", names[liar], lies[i].text);
            sides_expect(side, liar == A ? TR_DISPUTE_B : TR_DISPUTE_A, lies[i].step, "", text, NULL);
        }
}

/* Lies about the leaves of a state, where B's step has another number in the state before or after it. */
static void lies_about_a_state_lose(void **state)
{
    static const uint32_t its = 0x3f800000;
    static const struct {
        struct change change;
        bool by_both;
        const char *text;
    } lies[] = {
        {{"leaf before", 1, "00"}, false, "answers with what is no answer: \"leaf"},
        {{"leaf before", 1, "*"}, false, "opens a leaf of its state that does not lead to its root"},
        {{"leaf after", 1, "00"}, true, "answers with what is no answer: \"leaf"},
        {{"leaf after", 1, "*"}, true, "opens a leaf of its state that does not lead to its root"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
        for (int liar = A; liar <= (lies[i].by_both ? B : A); liar++) {
            struct tr_dispute_result result;
            struct dispute_step step;
            char text[128];
            true_step(&step, STEP);
            if (lies[i].by_both)
                claim_state(&step, step.after.count - 1, 0, &its, 4);
            else
                claim_number(&step, 0, 0, &its, 4);
            sides_begin(side);
            side[B].from = STEP;
            side[B].step = &step;
            side[liar].change[0] = lies[i].change;
            snprintf(text, sizeof text, "%s %s", names[liar], lies[i].text);
            must_train(sides_settle(side, NULL, &result));
            if (result.outcome != (liar == A ? TR_DISPUTE_B : TR_DISPUTE_A) ||
                strncmp(result.text, text, strlen(text)) != 0)
                fail_msg("%s: %s", text, result.text);
            assert_null(result.referee);
            tr_dispute_release(&result);
            sides_end(side);
            dispute_step_release(&step);
        }
}

/* However much is said, a line ends. */
static void an_answer_that_is_too_long_loses(void **state)
{
    char *line = tr_alloc(TR_WIRE_MOST + 1, 1);
    (void)state;
    assert_non_null(line);
    memset(line, '1', TR_WIRE_MOST);
    memcpy(line, "hello ", 6);
    for (int liar = A; liar <= B; liar++)
        for (size_t length = TR_WIRE_MOST; length >= TR_WIRE_MOST - 1; length--) {
            char text[64];
            sides_begin_forged(side, 1 - liar);
            line[length] = '\0';
            side[liar].change[0] = (struct change){"hello", -1, line};
            snprintf(text, sizeof text, "%s answers with %s", names[liar],
                     length == TR_WIRE_MOST ? "1048576 bytes" : "what is no answer: \"hello 11");
            sides_expect(side, liar == A ? TR_DISPUTE_B : TR_DISPUTE_A, 0, "", text, NULL);
            line[length] = '1';
        }
    tr_free(line);
}

static void a_judge_that_cannot_judge_says_so(void **state)
{
    const struct tr_party_settings judge = {.device = "ref", .model = "/none/there.yaml"};
    const struct tr_party_settings elsewhere = {.device = "ref", .from = "/none/there.yaml"};
    (void)state;
    sides_begin_forged(side, B);
    sides_expect(side, TR_DISPUTE_OPEN, 0, "", "the judge cannot make the step: ", &judge);
    sides_begin_forged(side, B);
    sides_expect(side, TR_DISPUTE_OPEN, 0, "", "the judge cannot make the step: ", &elsewhere);
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
        {{"hello", 6, "1"}, 0, "the receipts are of other seeds or numbers of steps"},
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
            sides_begin_forged(side, 1 - liar);
            side[liar].change[0] = lies[i].change;
            sides_expect(side, TR_DISPUTE_OPEN, lies[i].step, "", lies[i].text, NULL);
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
            sides_begin_forged(side, 1 - liar);
            side[liar].change[0] = changes[i];
            snprintf(text, sizeof text, "the receipts are of other %s: A's are ", what[i]);
            snprintf(end, sizeof end, "; those at hand are %s's", names[1 - liar]);
            must_train(sides_settle(side, &judge, &result));
            assert_non_null(strstr(result.text, end));
            tr_dispute_release(&result);
            sides_expect(side, liar == A ? TR_DISPUTE_B : TR_DISPUTE_A, 0, "", text, &judge);
        }
        sides_begin_forged(side, B);
        side[A].change[0] = side[B].change[0] = changes[i];
        sides_expect(side, TR_DISPUTE_OPEN, 0, "",
                     i ? "the data at hand are not those of the receipts"
                       : "the model file at hand is not that of the receipts",
                     &judge);
        sides_begin_forged(side, B);
        side[A].change[0] = side[B].change[0] = changes[i];
        side[B].change[1] = (struct change){"hello", changes[i].word, NO_DIGEST};
        sides_expect(side, TR_DISPUTE_NEITHER, 0, "", "; those at hand are neither's", &judge);
    }
}

/* The first state follows from the model file. */
static void they_begin_with_other_states(void **state)
{
    const struct change other = {"boundary 0", 2, "*"}, third = {"boundary 0", 2, NO_DIGEST};
    (void)state;
    for (int liar = A; liar <= B; liar++) {
        char text[128];
        sides_begin_forged(side, 1 - liar);
        side[liar].change[0] = other;
        snprintf(text, sizeof text, "they begin with other states, and that of the model file is %s's",
                 names[1 - liar]);
        sides_expect(side, liar == A ? TR_DISPUTE_B : TR_DISPUTE_A, 0, "", text, NULL);
    }
    sides_begin_forged(side, B);
    side[A].change[0] = other;
    side[B].change[0] = third;
    sides_expect(side, TR_DISPUTE_NEITHER, 0, "", "and that of the model file is neither's", NULL);
    sides_begin_forged(side, B); /* which the chain alone says */
    side[B].change[0] = (struct change){"boundary 0", 3, "*"};
    sides_expect(side, TR_DISPUTE_OPEN, 0, "", "they begin with other states", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_no_answer_loses),
        cmocka_unit_test(an_answer_that_contradicts_another_one_loses),
        cmocka_unit_test(lies_about_a_state_lose),
        cmocka_unit_test(an_answer_that_is_too_long_loses),
        cmocka_unit_test(a_judge_that_cannot_judge_says_so),
        cmocka_unit_test(what_nothing_proves_stays_open),
        cmocka_unit_test(facts_at_hand_decide),
        cmocka_unit_test(they_begin_with_other_states),
    };
    return cmocka_run_group_tests(tests, run_make, run_remove);
}
