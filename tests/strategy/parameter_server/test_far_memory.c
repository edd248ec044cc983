/* An asynchronous parameter server on devices whose memory nobody else can touch: with a single worker
 * nothing is stale, so all numbers are those of one process, whatever goes through messages or memory that is
 * shared.
 */
#include "support/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Gradients that take several messages, and one that takes one; with averages and the statistics of a batch.
 */
static const char *const layers[] = {
    "layers=[{flatten: null}, {dense: {units: 700, activation: relu}}, {dense: {units: 500, activation: "
    "relu}}, "
    "{dense: 10}]",
    "layers=[{flatten: null}, {dense: 30}, batch_norm, {dense: 10}]",
};

static void numbers_are_those_of_one_process(void **state)
{
    (void)state;
    /* The second: where parameters are held and updated. */
    static const char *const devices[][2] = {
        {"shadow", NULL}, {"shadow", "cpu"}, {"cpu", "shadow"}, {"cpu,shadow", NULL}, {"shadow,cpu", NULL}};
    for (int n = 0; n < 2; n++) {
        struct job job;
        struct outcome alone;
        family_job(&job, &families[0], family_place);
        job_set(&job, layers[n]);
        job_set(&job, "optimizer={rule: adam, rate: 1e-3, ema: 0.9}");
        job_set(&job, "train.batch=20");
        job_set(&job, "train.microbatches=4");
        job.settings.steps = 3;
        job.settings.device = "cpu";
        job_outcome(&job, &alone);
        assert_int_equal(alone.status, TR_OK);
        for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++)
            for (int servers = 1; servers <= 2; servers++)
                for (int apart = 0; apart < 2; apart++) {
                    char strategy[80], how[160];
                    struct rank ranks[RANKS];
                    snprintf(strategy, sizeof strategy, "parameter-server,servers=%d,mode=%s", servers,
                             n ? "backup,backup=0" : "async");
                    snprintf(how, sizeof how, "%s on %s, parameters on %s%s", strategy, devices[d][0],
                             devices[d][1] ? devices[d][1] : "it", apart ? ", apart" : "");
                    job.settings.strategy = strategy;
                    job.settings.device = devices[d][0];
                    job.settings.parameters_on = devices[d][1];
                    run_ranks(&job.settings, 1 + servers, apart, ranks);
                    expect_well(ranks, 1 + servers, how);
                    const struct outcome *root = &ranks[0].outcome;
                    if (strcmp(alone.hash, root->hash) != 0)
                        fail_msg("%s: hash %s, one process has %s", how, root->hash, alone.hash);
                    if (alone.evaluated_loss != root->evaluated_loss)
                        fail_msg("%s: evaluates to %.9g instead of %.9g", how, root->evaluated_loss,
                                 alone.evaluated_loss);
                    if (strcmp(alone.losses, root->losses) != 0)
                        fail_msg("%s: losses on the way differ", how);
                }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_one_process),
    };
    return cmocka_run_group_tests_name("strategy.far_memory", tests, family_place_make, family_place_remove);
}
