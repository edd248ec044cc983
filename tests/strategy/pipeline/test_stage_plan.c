/* What a stage of a pipeline plans for its part: units, those in flight, and gradients that wait in the tree.
 */
#include "strategy/pipeline/stage.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define MODEL                                                                                                \
    "name: statistics\ninput: {shape: [2]}\nlayers: [{dense: 40}, {dense: 9}, batch_norm, {dense: 3}]\n"     \
    "optimizer: {rule: sgd, rate: 0.01}\ntrain: {batch: 24, microbatches: 12, steps: 1}\n"

/* Of 12 microbatches, of which the tree has nodes of 8 and of 4. */
static void a_stage_plans_for_its_part(void **state)
{
    static const struct {
        int stage, stages, first_layer, end_layer, first, end, wanted; /* microbatches of a unit */
        int nodes, units, per_unit, depth, flights, extra, early, bound;
    } cases[] = {
        /* In the last stage but one three units are in flight; in the last one one is, and one comes. */
        {0, 2, 0, 1, 0, 12, 1, 1, 12, 1, 3, 3, 3, 0, 12},
        {1, 2, 0, 1, 0, 12, 1, 1, 12, 1, 1, 2, 3, 0, 12},
        {1, 3, 0, 1, 0, 12, 1, 1, 12, 1, 3, 4, 3, 0, 12},
        /* There are not as many. */
        {0, 2, 0, 1, 0, 12, 5, 1, 3, 5, 3, 3, 1, 0, 12},
        {1, 3, 0, 1, 0, 12, 5, 1, 3, 5, 3, 3, 1, 0, 12},
        {0, 3, 0, 1, 0, 12, 6, 1, 2, 6, 2, 2, 1, 0, 12},
        {2, 3, 0, 1, 0, 12, 12, 1, 1, 12, 1, 1, 0, 0, 12},
        /* Two nodes, each with units of its own, of which one is smaller. */
        {0, 2, 0, 1, 6, 12, 3, 2, 3, 3, 3, 3, 1, 0, 8},
        {0, 2, 0, 1, 0, 6, 4, 2, 2, 4, 2, 2, 0, 0, 4},
        {0, 2, 0, 1, 0, 6, 6, 2, 2, 4, 2, 2, 0, 0, 4},
        /* Statistics, which are written forward, so that each unit in flight has its slot: in this stage; in
           the one behind it, and in the one before. */
        {0, 2, 0, 3, 0, 12, 1, 1, 12, 1, 3, 3, 5, 1, 12},
        {0, 2, 0, 3, 0, 12, 6, 1, 2, 6, 2, 2, 2, 1, 12},
        {1, 2, 0, 3, 0, 12, 12, 1, 1, 12, 1, 1, 0, 1, 12},
        {1, 2, 2, 4, 0, 12, 1, 1, 12, 1, 1, 2, 3, 1, 12},
        {0, 2, 0, 2, 0, 12, 1, 1, 12, 1, 3, 3, 3, 0, 12},
        {1, 2, 3, 4, 0, 12, 1, 1, 12, 1, 1, 2, 3, 0, 12},
    };
    const struct tr_job_settings settings = {.outline = true};
    const struct tr_job_text text = {MODEL, sizeof MODEL - 1, "model", NULL};
    struct tr_job *job;
    (void)state;
    must_train(tr_job_open_text(&text, &settings, &job));
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const struct stage_cell cell = {.stage = cases[c].stage,
                                        .stages = cases[c].stages,
                                        .first_layer = cases[c].first_layer,
                                        .end_layer = cases[c].end_layer,
                                        .first = cases[c].first,
                                        .end = cases[c].end,
                                        .per_unit = cases[c].wanted};
        struct stage_plan plan;
        stage_plan(job, &cell, &plan);
        if (plan.nodes != cases[c].nodes || plan.units != cases[c].units || plan.depth != cases[c].depth ||
            plan.flights != cases[c].flights || plan.extra != cases[c].extra ||
            plan.per_unit != cases[c].per_unit || plan.early != cases[c].early)
            fail_msg("case %d: %d nodes, %d units of %d, depth %d, %d flights, %d slots, early %d", (int)c,
                     plan.nodes, (int)plan.units, (int)plan.per_unit, plan.depth, plan.flights, plan.extra,
                     plan.early);
        assert_int_equal(plan.bound[0], cases[c].first);
        assert_int_equal(plan.bound[1], cases[c].bound);
        assert_int_equal(plan.bound[plan.nodes], cases[c].end);
    }
    tr_job_destroy(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_stage_plans_for_its_part)};
    return cmocka_run_group_tests_name("strategy.stage_plan", tests, NULL, NULL);
}
