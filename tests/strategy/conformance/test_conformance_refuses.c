/* The conformance suite finds out a strategy that goes past the driver: it gossips as it should, but updates
 * by itself, so that clipping and the skipping of what is not finite come to nothing. */
#include "strategy/conformance/conformance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct tr_strategy_class naive;

/* One replica a rank; alone it is made, to be looked at, but never run. */
static tr_status check_naive(const struct tr_job *job, const void *options, int ranks)
{
    int32_t replicas;
    memcpy(&replicas, options, sizeof replicas); /* the first of gossip's options */
    tr_status status = tr_strategy_gossip.check(job, options, ranks);
    return status == TR_OK && ranks != replicas && ranks != 1 ? TR_EINVAL : status;
}

/* The gradient of its own part, applied at once. */
static tr_status update_naively(tr_strategy *strategy, int64_t step, struct tr_combined *out)
{
    static const float fine[TR_PASS_SUMS] = {1, 1};
    tr_status status = tr_driver_compute_alone(strategy, step, out);
    tr_driver_open(strategy, fine); /* whatever the loss is */
    out->applied = true;
    if (status != TR_OK || out->examples == 0) return status;
    return tr_variables_update(strategy->replicas->variables, out->gradient, 0,
                               strategy->job->model->arena_floats);
}

static int register_naive(void **state)
{
    naive = tr_strategy_gossip;
    naive.name = "naive-gossip";
    naive.check = check_naive;
    naive.gradient = update_naively;
    must_train(tr_strategy_register(&naive));
    return conformance_set_up(state);
}

static void expect_refused(struct candidate *candidate, const char *name)
{
    const struct feature *feature = features;
    while (strcmp(feature->name, name) != 0) feature++;
    if (takes_effect(candidate, feature)) fail_msg("%s: is not found out", name);
    if (!strstr(candidate->complaint, name)) fail_msg("%s: \"%s\"", name, candidate->complaint);
}

static void the_naive_class_is_found_out(void **state)
{
    (void)state;
    struct candidate candidate;
    conformance_candidate(&naive, 0, &candidate);
    assert_null(candidate.data);
    candidate.data = conformance_data_of("gossip");
    assert_non_null(candidate.data);
    assert_true(candidate.legal[4]);
    /* It gossips. */
    if (!takes_effect(&candidate, &features[0])) fail_msg("plain: %s", candidate.complaint);
    expect_refused(&candidate, "clip_norm");
    expect_refused(&candidate, "on_nonfinite: skip");
}

/* Gossip that meets twice. */
static tr_status average_wrongly(tr_strategy *strategy, int64_t step, bool all)
{
    tr_status status = tr_strategy_gossip.average(strategy, step, all);
    return status == TR_OK && !all ? tr_strategy_gossip.average(strategy, step, all) : status;
}

static void wrong_meetings_are_found_out(void **state)
{
    (void)state;
    struct candidate candidate;
    naive.gradient = NULL;
    naive.average = average_wrongly;
    conformance_candidate(&naive, 0, &candidate);
    candidate.data = conformance_data_of("gossip");
    expect_refused(&candidate, "plain");
}

static void registering_is_checked(void **state)
{
    (void)state;
    static struct tr_strategy_class other;
    other = tr_strategy_gossip;
    assert_int_equal(tr_strategy_register(&other), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "\"gossip\" already"));
    other.name = "of-another-time";
    other.version--;
    assert_int_equal(tr_strategy_register(&other), TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "of-another-time"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_naive_class_is_found_out),
        cmocka_unit_test(wrong_meetings_are_found_out),
        cmocka_unit_test(registering_is_checked),
    };
    return cmocka_run_group_tests_name("strategy.conformance_refuses", tests, register_naive,
                                       conformance_tear_down);
}
