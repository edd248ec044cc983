/* A dispute that cannot be held to its end: a side that no longer answers, a judge without memory. The
 * failure is returned, with no verdict and nothing left behind, and no party loses by it.
 */
#include "dispute/two_sides.h"
#include "base/fail.h"
#include "refuse.h"
#include "support/operations/failing.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { A, B, STEP = FORGED_STEP };

/* A number of the state after the step is another one. */
static struct dispute_step other_state;
/* A number of the parameters before it is another one. */
static struct dispute_step other_before;
static struct side side[2];

/* One of the sides fails at each of its questions from `first` on; negative: at so many last ones. */
static void expect_ends(int64_t first)
{
    struct tr_dispute_result result;
    int64_t asked[2];
    must_train(sides_settle(side, NULL, &result));
    for (int i = 0; i < 2; i++) asked[i] = side[i].asked;
    tr_dispute_release(&result);
    for (int who = A; who <= B; who++) {
        assert_true(asked[who] > (first > 0 ? 15 : 5));
        for (int64_t at = first < 0 ? asked[who] + 1 + first : first; at <= asked[who]; at++) {
            side[who].fails = at;
            assert_int_equal(sides_settle(side, NULL, &result), TR_EIO);
            assert_true(!result.text && !result.referee && result.questions == 0);
            assert_int_equal(side[who].asked, at);
        }
        side[who].fails = 0;
    }
}

static void a_side_that_fails_ends_it(void **state)
{
    (void)state;
    sides_begin_forged(side, B);
    expect_ends(1);
    side[B].step = &other_before;
    expect_ends(-3);
    side[B].step = &other_state;
    expect_ends(-3);
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

/* ---- parties ---- */

static const char *const questions[] = {
    "hello 1",  "model",          "boundary 1", "replay 2",         "step 6",   "batch 2",
    "record 3", "node after 0 2", "entry 2",    "node entries 0 2", "leaf 0 0", "leaf before 0",
};
#define QUESTIONS ((int)(sizeof questions / sizeof questions[0]))

static tr_party *party_of(const struct tr_party_settings *settings)
{
    tr_party *party;
    must_train(tr_party_create(settings, &party));
    return party;
}

/* What a party answers to all questions; `answer` [QUESTIONS] is released by tr_free(). */
static tr_status ask_all(tr_party *party, char **answer)
{
    tr_status status = TR_OK;
    for (int i = 0; i < QUESTIONS && status == TR_OK; i++)
        status = tr_party_answer(party, questions[i], &answer[i]);
    return status;
}

static void forget(char **answer)
{
    for (int i = 0; i < QUESTIONS; i++) tr_free(answer[i]);
}

/* Most allocations are those of trainers, of which every n-th is refused. */
static void a_party_that_lacks_memory(void **state)
{
    const struct tr_party_settings settings = {.path = run_path, .device = "ref"};
    char *expected[QUESTIONS] = {NULL};
    (void)state;
    tr_party *party = party_of(&settings);
    must_train(ask_all(party, expected));
    tr_party_destroy(&party);
    for (int64_t at = 0, done = 0; !done; at += at < 60 ? 1 : 23) {
        const int64_t live = tr_alloc_live();
        char *answer[QUESTIONS] = {NULL};
        refuse_begin(at);
        tr_status status = tr_party_create(&settings, &party);
        if (status == TR_OK) status = ask_all(party, answer);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        for (int i = 0; i < QUESTIONS; i++)
            if (done || answer[i]) assert_string_equal(answer[i], expected[i]);
        forget(answer);
        tr_party_destroy(&party);
        assert_int_equal(tr_alloc_live(), live);
    }
    forget(expected);
}

static struct tr_device_class failing;
static bool opens;

static tr_status open_failing(void *user, tr_device **out)
{
    (void)user;
    if (!opens) return tr_fail(TR_EIO, "there is\nno device");
    TR_TRY(tr_device_create("ref", 1, NULL, out));
    failing = failing_like(*out);
    (*out)->class = &failing;
    return TR_OK;
}

/* The judge tells it, and neither party loses. */
static void a_judge_whose_device_fails(void **state)
{
    const struct tr_party_settings judge = {.open_device = open_failing};
    struct tr_dispute_result result;
    (void)state;
    failing_operation = -1;
    opens = false;
    sides_begin_forged(side, B);
    sides_expect(side, TR_DISPUTE_OPEN, 0, "", "the judge cannot make the step: there is\nno device", &judge);
    opens = true;
    sides_begin_forged(side, B);
    atomic_store(&operation_calls, 0);
    must_train(sides_settle(side, &judge, &result));
    assert_int_equal(result.outcome, TR_DISPUTE_A);
    tr_dispute_release(&result);
    sides_end(side);
    const int operations = atomic_load(&operation_calls);
    assert_in_range(operations, 10, 1000);
    for (failing_operation = 0; failing_operation < operations; failing_operation += 3) {
        atomic_store(&operation_calls, 0);
        sides_begin_forged(side, B);
        must_train(sides_settle(side, &judge, &result));
        assert_int_equal(result.outcome, TR_DISPUTE_OPEN);
        assert_non_null(strstr(result.text, "the judge cannot make the step: "));
        assert_non_null(strstr(result.text, " fails"));
        assert_null(result.referee);
        tr_dispute_release(&result);
        sides_end(side);
    }
    failing_operation = -1;
}

/* Its answer to the judge says so, in one line. */
static void a_party_whose_device_fails(void **state)
{
    static const char *const asked[] = {"replay 2", "record 3"};
    const struct tr_party_settings settings = {.path = run_path, .open_device = open_failing};
    char *answer;
    (void)state;
    for (int i = 0; i < 2; i++) {
        tr_party *party = party_of(&settings);
        opens = false;
        must_train(tr_party_answer(party, asked[i], &answer));
        assert_string_equal(answer, "sorry there is no device");
        tr_free(answer);
        opens = true;
        failing_operation = -1;
        atomic_store(&operation_calls, 0);
        must_train(tr_party_answer(party, asked[i], &answer));
        assert_int_equal(strncmp(answer, asked[i], 6), 0);
        tr_free(answer);
        const int operations = atomic_load(&operation_calls);
        assert_in_range(operations, 20, 1000);
        for (failing_operation = 0; failing_operation < operations; failing_operation++) {
            atomic_store(&operation_calls, 0);
            must_train(tr_party_answer(party, asked[i], &answer));
            assert_int_equal(strncmp(answer, "sorry ", 6), 0);
            assert_non_null(strstr(answer, " fails"));
            tr_free(answer);
            must_train(tr_party_answer(party, "node entries 0 2", &answer));
            assert_string_equal(answer, "sorry no step has been recorded");
            tr_free(answer);
        }
        failing_operation = -1;
        tr_party_destroy(&party);
    }
}

static int set_up(void **state)
{
    if (run_make(state) != 0) return -1;
    true_step(&other_state, STEP);
    const uint32_t its = 0x3f800000;
    claim_state(&other_state, other_state.after.count - 1, 0, &its, 4);
    true_step(&other_before, STEP);
    claim_number(&other_before, 0, 0, &its, 4);
    return 0;
}

static int tear_down(void **state)
{
    dispute_step_release(&other_before);
    dispute_step_release(&other_state);
    return run_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_side_that_fails_ends_it),  cmocka_unit_test(a_judge_that_lacks_memory),
        cmocka_unit_test(a_party_that_lacks_memory),  cmocka_unit_test(a_judge_whose_device_fails),
        cmocka_unit_test(a_party_whose_device_fails),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
