/* How a judge finds the first step in which two receipts differ, and its batch: by their boundaries, by what
 * the runs come to when they are repeated, by the order of the examples.
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
        sides_begin_forged(side, forger);
        side[forger].repeats_honestly = true;
        snprintf(text, sizeof text,
                 "%s does not come again to what its receipt says of step 4, but to what the other's says",
                 names[forger]);
        sides_expect(side, forger == A ? TR_DISPUTE_B : TR_DISPUTE_A, 4, "", text, NULL);
    }
    sides_begin_forged(side, B);
    side[A].change[0] = side[B].change[0] = (struct change){"replay", 1, NO_DIGEST};
    sides_expect(side, TR_DISPUTE_OPEN, 4, "", "neither comes again to what its receipt says of step 4",
                 NULL);
    sides_begin_forged(side, B); /* both receipts are said to differ, but the steps do not */
    side[B].from = 0;
    side[B].change[0] = (struct change){"boundary 3", 2, NO_DIGEST};
    side[B].change[1] = (struct change){"replay", 1, NO_DIGEST};
    sides_expect(side, TR_DISPUTE_OPEN, RUN_STEPS, "", "both make step 6 alike when asked for it", NULL);
}

static void receipts_that_are_equal(void **state)
{
    (void)state;
    sides_begin_forged(side, B);
    side[B].from = 0;
    sides_expect(side, TR_DISPUTE_EQUAL, 0, "", "the receipts are equal up to step 6", NULL);
    for (int shorter = A; shorter <= B; shorter++) { /* only as far as both have boundaries */
        sides_begin_forged(side, B);
        side[B].from = 5;
        side[shorter].change[0] = (struct change){"hello", 7, "3"};
        sides_expect(side, TR_DISPUTE_EQUAL, 0, "", "the receipts are equal up to step 4", NULL);
        sides_begin_forged(side, B);
        side[shorter].change[0] = (struct change){"hello", 7, "1"};
        sides_expect(side, TR_DISPUTE_EQUAL, 0, "", "the receipts are equal up to step 0", NULL);
    }
}

/* Batches are in the order of the seed. */
static void other_examples(void **state)
{
    (void)state;
    for (int liar = A; liar <= B; liar++)
        for (int row = 0; row < 10; row += 9) {
            char text[256];
            sides_begin_forged(side, liar);
            char *said = side_says(&side[liar], "batch 3");
            side[liar].other_batch = STEP;
            side[liar].change[0] = (struct change){"batch 3", 1 + row, "4711"};
            snprintf(text, sizeof text,
                     "step 3: the batch of %s is not in the order of the seed; example %d of it is number "
                     "4711, and must be %s",
                     names[liar], row, word_of(said, 1 + row));
            tr_free(said);
            sides_expect(side, liar == A ? TR_DISPUTE_B : TR_DISPUTE_A, STEP, row ? "batch [9]" : "batch [0]",
                         text, NULL);
        }
    sides_begin_forged(side, B);
    side[A].other_batch = side[B].other_batch = STEP;
    side[A].batch = NO_DIGEST;
    sides_expect(side, TR_DISPUTE_NEITHER, STEP, "batch", "step 3: neither batch is in the order of the seed",
                 NULL);
    sides_begin_forged(side, B); /* a number that is none */
    side[B].other_batch = STEP;
    side[B].change[0] = (struct change){"batch 3", 1, "x"};
    sides_expect(side, TR_DISPUTE_A, STEP, "batch", "the batch of B is not in the order of the seed", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_is_found),
        cmocka_unit_test(a_run_that_comes_otherwise),
        cmocka_unit_test(receipts_that_are_equal),
        cmocka_unit_test(other_examples),
    };
    return cmocka_run_group_tests(tests, run_make, run_remove);
}
