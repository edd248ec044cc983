/* One number of a step in which two parties differ, of every region of every entry and of the state: the one
 * whose number follows from its inputs is right, both numbers and the computed one are named, and the referee
 * says the same.
 */
#include "dispute/referee.h"
#include "dispute/two_sides.h"

#include "device/device.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { STEP = 3 };

static uint32_t number_at(const struct dispute_step *step, int64_t at, int size)
{
    uint32_t word = 0;
    must_train(tr_evidence_read(&step->evidence, at, size, &word));
    return word;
}

/* The party `forger` claims what is in `forged`: `its` in place of `right`, at a place that begins so. */
static void expect_right(struct dispute_step *forged, int forger, const char *place, uint32_t right,
                         uint32_t its)
{
    struct side side[2];
    struct tr_dispute_result result;
    char text[sizeof result.place + 128];
    sides_begin(side);
    side[forger].from = STEP;
    side[forger].step = forged;
    must_train(sides_settle(side, NULL, &result));
    if (result.outcome != (forger == 0 ? TR_DISPUTE_B : TR_DISPUTE_A) || result.step != STEP ||
        strncmp(result.place, place, strlen(place)) != 0)
        fail_msg("%s: outcome %d, step %" PRId64 ", %s: %s", place, (int)result.outcome, result.step,
                 result.place, result.text);
    snprintf(text, sizeof text,
             "step %d, %s: A has %08" PRIx32 ", B has %08" PRIx32
             "; computed out of the inputs it is %08" PRIx32 " (",
             STEP, result.place, forger == 0 ? its : right, forger == 0 ? right : its, right);
    if (strncmp(result.text, text, strlen(text)) != 0) fail_msg("%s\ninstead of %s", result.text, text);
    assert_non_null(strstr(result.text, forger == 0 ? ": B is right" : ": A is right"));
    assert_non_null(result.referee);
    if (referee_on(run_path, result.referee) != (forger == 0 ? 1 : 0)) fail_msg("the referee on %s", place);
    /* Each leaf is opened once, whatever the number of its numbers that are taken. */
    if (!strstr(place, "scalars") && result.opened > 30)
        fail_msg("%s: %" PRId64 " openings", place, result.opened);
    tr_dispute_release(&result);
    sides_end(side);
}

/* Claims another number of a region, sees to it, and takes it back. */
static void forge(struct dispute_step *step, int64_t entry, int64_t number, int64_t byte)
{
    static int turn;
    const struct tr_evidence_region *region = &step->evidence.region[number];
    const uint32_t right = number_at(step, region->at + byte, region->size), its = right ^ 1;
    char place[128];
    snprintf(place, sizeof place, "%s %" PRId64 " %s[%" PRId64 "]", step->evidence.entry[entry].name, entry,
             region->name, byte / region->size);
    claim_number(step, number, byte, &its, region->size);
    expect_right(step, turn++ % 2, place, right, its);
    claim_number(step, number, byte, &right, region->size);
}

static void each_entry(void **state)
{
    (void)state;
    struct dispute_step step;
    bool met[4] = {false};
    true_step(&step, STEP);
    for (int64_t i = 0; i < step.evidence.entries; i++) {
        const struct tr_evidence_entry *entry = &step.evidence.entry[i];
        met[entry->kind] = true;
        for (int64_t k = entry->first; k < entry->first + entry->regions; k++) {
            const struct tr_evidence_region *region = &step.evidence.region[k];
            const int64_t numbers = tr_evidence_bytes(region) / region->size;
            for (int64_t at = 0; at<numbers; at += numbers> 3 ? numbers / 3 : 1)
                forge(&step, i, k, at * region->size);
            if (numbers > 1) forge(&step, i, k, (numbers - 1) * region->size);
        }
    }
    for (int i = 0; i < 4; i++) assert_true(met[i]);
    dispute_step_release(&step);
}

/* Parameters before the step, each with its tensor's name; between tensors are zeros. */
static void each_tensor_before_the_step(void **state)
{
    (void)state;
    struct dispute_step step;
    int named = 0, unnamed = 0;
    true_step(&step, STEP);
    const struct tr_evidence_region *region = &step.evidence.region[0];
    assert_int_equal(step.evidence.entry[0].kind, TR_EVIDENCE_INITIAL);
    for (int64_t byte = 0; byte < tr_evidence_bytes(region); byte += 4) {
        const char *address = tr_evidence_address(region, byte), *tensor = NULL;
        bool is_end = false;
        for (int64_t i = 0; i < step.before.count; i++) {
            const struct dispute_leaf *leaf = &step.before.leaf[i];
            const char *begin = (const char *)leaf->device;
            if (!begin || address < begin || address >= begin + leaf->size) continue;
            tensor = leaf->name;
            is_end = address == begin || address + 4 == begin + leaf->size;
        }
        if (tensor ? !is_end : unnamed++ > 1) continue;
        named += tensor != NULL;
        const uint32_t right = number_at(&step, region->at + byte, 4), its = right ^ 0x100;
        char place[384];
        snprintf(place, sizeof place, "%s 0 bytes[%" PRId64 "]%s%s", step.evidence.entry[0].name, byte / 4,
                 tensor ? " of " : "", tensor ? tensor : "");
        if (!tensor) assert_int_equal(right, 0);
        claim_number(&step, 0, byte, &its, 4);
        expect_right(&step, named % 2, place, right, its);
        claim_number(&step, 0, byte, &right, 4);
    }
    assert_true(named >= 4 && unnamed > 0);
    dispute_step_release(&step);
}

/* A number that depends on another one of its operation in which they differ, too: that one is settled. */
static void a_number_that_another_one_explains(void **state)
{
    (void)state;
    struct dispute_step step;
    int met = 0;
    true_step(&step, STEP);
    for (int64_t i = 0; i < step.evidence.entries; i++) {
        const struct tr_evidence_entry *entry = &step.evidence.entry[i];
        if (strcmp(entry->name, "update") != 0) continue;
        const struct tr_op_update *update = entry->arguments;
        int64_t w = -1, m = -1;
        for (int64_t k = entry->first; k < entry->first + entry->regions; k++) {
            const char *begin = step.evidence.region[k].begin;
            if (begin == (const char *)update->w) w = k;
            if (begin == (const char *)update->m) m = k;
        }
        if (w < 0 || m < 0 || w > m) continue;
        const uint32_t w_right = number_at(&step, step.evidence.region[w].at + 4, 4), w_its = w_right ^ 1;
        const uint32_t m_right = number_at(&step, step.evidence.region[m].at + 4, 4), m_its = m_right ^ 1;
        char place[128];
        claim_number(&step, w, 4, &w_its, 4);
        claim_number(&step, m, 4, &m_its, 4);
        snprintf(place, sizeof place, "update %" PRId64 " %s[1]", i, step.evidence.region[m].name);
        expect_right(&step, met++ % 2, place, m_right, m_its);
        claim_number(&step, w, 4, &w_right, 4);
        claim_number(&step, m, 4, &m_right, 4);
    }
    assert_true(met > 0);
    dispute_step_release(&step);
}

static void each_leaf_of_the_state_after_the_step(void **state)
{
    (void)state;
    struct dispute_step step;
    int met = 0;
    true_step(&step, STEP);
    for (int64_t i = 0; i < step.after.count; i++) {
        const struct dispute_leaf *leaf = &step.after.leaf[i];
        const int64_t byte = leaf->size / 4 / 2 * 4;
        const uint32_t right = number_at(&step, leaf->at + byte, 4), its = right ^ 0x10000;
        char place[384];
        claim_state(&step, i, byte, &its, 4);
        if (leaf->device) {
            snprintf(place, sizeof place, "state %s leaf %" PRId64 " byte %" PRId64, leaf->name, i, byte);
            expect_right(&step, met++ % 2, place, right, its);
        } else {
            struct side side[2];
            struct tr_dispute_result result;
            sides_begin(side);
            side[1].from = STEP;
            side[1].step = &step;
            must_train(sides_settle(side, NULL, &result));
            assert_int_equal(result.outcome, TR_DISPUTE_OPEN);
            assert_non_null(strstr(result.text, "step 3: all its numbers are equal"));
            tr_dispute_release(&result);
            sides_end(side);
        }
        claim_state(&step, i, byte, &right, 4);
    }
    assert_true(met > 4);
    dispute_step_release(&step);
}

static void neither_is_right(void **state)
{
    (void)state;
    struct dispute_step step[2];
    struct side side[2];
    struct tr_dispute_result result;
    sides_begin(side);
    for (int i = 0; i < 2; i++) {
        true_step(&step[i], STEP);
        const int64_t last = step[i].evidence.entries - 1;
        const uint32_t its = 0x3f800000 + (uint32_t)i;
        claim_number(&step[i], step[i].evidence.entry[last].first, 0, &its,
                     step[i].evidence.region[step[i].evidence.entry[last].first].size);
        side[i].step = &step[i];
    }
    side[1].from = STEP;
    must_train(sides_settle(side, NULL, &result));
    assert_int_equal(result.outcome, TR_DISPUTE_NEITHER);
    assert_non_null(strstr(result.text, ": neither is right"));
    assert_int_equal(referee_on(run_path, result.referee), 3);
    tr_dispute_release(&result);
    sides_end(side);
    for (int i = 0; i < 2; i++) dispute_step_release(&step[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_entry),
        cmocka_unit_test(each_tensor_before_the_step),
        cmocka_unit_test(a_number_that_another_one_explains),
        cmocka_unit_test(each_leaf_of_the_state_after_the_step),
        cmocka_unit_test(neither_is_right),
    };
    return cmocka_run_group_tests(tests, run_make, run_remove);
}
