/* A dispute that cannot be held to its end: a side that no longer answers, a judge without memory. The
 * failure is returned, with no verdict and nothing left behind, and no party loses by it.
 */
#include "dispute/two_sides.h"
#include "refuse.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { A, B, STEP = FORGED_STEP };

/* A number of the state after the step is another one. */
static struct dispute_step other_state;
static struct side side[2];

static void a_side_that_fails_ends_it(void **state)
{
    struct tr_dispute_result result;
    int64_t asked[2];
    (void)state;
    sides_begin_forged(side, B);
    must_train(sides_settle(side, NULL, &result));
    for (int i = 0; i < 2; i++) asked[i] = side[i].asked;
    tr_dispute_release(&result);
    for (int who = A; who <= B; who++) {
        assert_true(asked[who] > 15);
        for (int64_t at = 1; at <= asked[who]; at++) {
            side[who].fails = at;
            assert_int_equal(sides_settle(side, NULL, &result), TR_EIO);
            assert_true(!result.text && !result.referee && result.questions == 0);
            assert_int_equal(side[who].asked, at);
        }
        side[who].fails = 0;
    }
    sides_end(side);
}

static int64_t left_at_replays;

/* Only the judge lacks memory. */
static tr_status ask_at_ease(void *user, const char *question, char **answer)
{
    if (strncmp(question, "replay", 6) == 0) left_at_replays = refuse_left;
    tr_alloc_set_hook(NULL, NULL);
    const tr_status status = side_ask(user, question, answer);
    tr_alloc_set_hook(refuse_count, NULL);
    return status;
}

/* Where the parties differ. */
enum where { NUMBER, BATCH, STATE };

/* Settles with a judge whose allocation `at` fails; whether there are fewer. */
static bool settled_without(enum where where, int64_t at)
{
    static const struct tr_party_settings judge = {.device = "ref"};
    const struct tr_dispute_side sides[2] = {{ask_at_ease, &side[A]}, {ask_at_ease, &side[B]}};
    const int64_t live = tr_alloc_live();
    struct tr_dispute_result result;
    sides_begin_forged(side, B);
    if (where == BATCH) side[B].other_batch = STEP;
    if (where == STATE) side[B].step = &other_state;
    refuse_begin(at);
    const tr_status status = tr_dispute_settle(&judge, sides, &result);
    const bool done = refuse_end();
    if (status != (done ? TR_OK : TR_ENOMEM))
        fail_msg("allocation %" PRId64 ": %s, %s", at, tr_status_name(status),
                 status == TR_OK ? result.text : "");
    if (done)
        assert_true(result.outcome == TR_DISPUTE_A && !result.referee == (where == BATCH));
    else
        assert_true(!result.text && !result.referee);
    tr_dispute_release(&result);
    sides_end(side);
    assert_int_equal(tr_alloc_live(), live);
    return done;
}

/* Some of those that make the trainer, and each one after that. */
static void a_judge_that_lacks_memory(void **state)
{
    const int64_t most = 1000000;
    (void)state;
    for (int where = NUMBER; where <= STATE; where++) {
        assert_true(settled_without((enum where)where, most));
        const int64_t early = most - left_at_replays;
        for (int64_t at = where == NUMBER ? 0 : early; !settled_without((enum where)where, at);)
            at += at < early ? 9 : 1;
    }
}

static int set_up(void **state)
{
    if (run_make(state) != 0) return -1;
    true_step(&other_state, STEP);
    const uint32_t its = 0x3f800000;
    claim_state(&other_state, other_state.after.count - 1, 0, &its, 4);
    return 0;
}

static int tear_down(void **state)
{
    dispute_step_release(&other_state);
    return run_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_side_that_fails_ends_it),
        cmocka_unit_test(a_judge_that_lacks_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
