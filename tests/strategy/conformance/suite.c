/* Every strategy of the table, with every variant, on 1 to 4 ranks, does what all strategies must do. */
#include "strategy/conformance/conformance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void every_class_has_its_data(void **state)
{
    (void)state;
    for (int c = 0; tr_strategy_class_at(c); c++) {
        const struct tr_strategy_class *class = tr_strategy_class_at(c);
        const struct conformance_data *data = conformance_data_of(class->name);
        if (!data) fail_msg("the strategy \"%s\" is not in tests/strategy/conformance/data.c", class->name);
        if (class->own_hash && !data->meet)
            fail_msg("the strategy \"%s\" has a hash of its own and no replay in "
                     "tests/strategy/conformance/data.c",
                     class->name);
    }
}

/* Checks a class in all its variants, and fails with the complaint. */
static void for_all(bool (*check)(struct candidate *))
{
    for (int c = 0; tr_strategy_class_at(c); c++)
        for (int v = 0; v < conformance_variants(tr_strategy_class_at(c)); v++) {
            struct candidate candidate;
            const char *name = tr_strategy_class_at(c)->name;
            if (!conformance_data_of(name)) continue; /* is named above */
            if (conformance.only && strcmp(name, conformance.only) != 0) continue;
            conformance_candidate(tr_strategy_class_at(c), v, &candidate);
            if (!check(&candidate)) fail_msg("%s", candidate.complaint);
        }
}

static bool runs_on_several_ranks(struct candidate *candidate)
{
    int legal = 0;
    for (int ranks = 2; ranks <= CONFORMANCE_RANKS; ranks++) legal += candidate->legal[ranks];
    return legal >= 2 || complain(candidate, "runs on %d numbers of ranks from 2 to 4", legal);
}

static bool all_take_effect(struct candidate *candidate)
{
    for (int i = 0; i < feature_count; i++)
        if (!takes_effect(candidate, &features[i])) return false;
    return true;
}

/* The features themselves show, alone. */
static void features_change_what_they_should(void **state)
{
    (void)state;
    for (int i = 1; i < feature_count; i++) {
        if (features[i].status != TR_OK) continue;
        bool other = strcmp(alone(i)->rank[0].outcome.hash, alone(0)->rank[0].outcome.hash) != 0;
        if (other != features[i].changes)
            fail_msg("%s: %s parameters", features[i].name, other ? "other" : "the same");
    }
    assert_true(alone(3)->rank[0].outcome.evaluated_loss != alone(0)->rank[0].outcome.evaluated_loss);
}

#define CHECK(check)                                                                                         \
    static void all_##check(void **state)                                                                    \
    {                                                                                                        \
        (void)state;                                                                                         \
        for_all(check);                                                                                      \
    }
CHECK(runs_on_several_ranks)
CHECK(repeats_itself)
CHECK(all_take_effect)
CHECK(stops_on_request)
CHECK(resumes)
CHECK(evaluates)
CHECK(shares)
CHECK(hears_requests)
CHECK(survives_failing_allocations)
/* Of ranks that share nothing. */
static void all_announces_memory(void **state)
{
    (void)state;
    if (ranks_are_processes()) skip();
    for_all(announces_memory);
}
CHECK(names_a_dead_rank)

int conformance_run(const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_class_has_its_data),
        cmocka_unit_test(features_change_what_they_should),
        cmocka_unit_test(all_runs_on_several_ranks),
        cmocka_unit_test(all_repeats_itself),
        cmocka_unit_test(all_all_take_effect),
        cmocka_unit_test(all_stops_on_request),
        cmocka_unit_test(all_resumes),
        cmocka_unit_test(all_evaluates),
        cmocka_unit_test(all_shares),
        cmocka_unit_test(all_hears_requests),
        cmocka_unit_test(all_survives_failing_allocations),
        cmocka_unit_test(all_announces_memory),
        cmocka_unit_test(all_names_a_dead_rank),
    };
    return cmocka_run_group_tests_name(name, tests, conformance_set_up, conformance_tear_down);
}
