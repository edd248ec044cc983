/* Passes where memory fails, while they are made and when they are first observed: it is told, and nothing
 * stays; and why a network cannot be cut at a place.
 */
#include "support/networks.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "nn/cut.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void memory_may_fail_while_a_pass_is_made(void **state)
{
    (void)state;
    for (int n = 0; n < network_count; n++)
        for (int training = 0; training < 2; training++) {
            struct trial trial;
            trial_make(&trial, &networks[n], "ref", 5, 2);
            const struct tr_pass_limits limits = trial_limits(&trial, training);
            for (int64_t at = 0, done = 0; !done; at++) {
                const int64_t live = tr_alloc_live();
                tr_pass *pass = NULL;
                bool again[64];
                assert_true(trial.model->layer_count <= 64);
                refuse_begin(at);
                tr_status status = tr_pass_create(trial.device, trial.model, &limits, &pass);
                if (status == TR_OK) status = tr_pass_recomputed(trial.device, trial.model, &limits, again);
                done = refuse_end();
                if (status != (done ? TR_OK : TR_ENOMEM))
                    fail_msg("%s: allocation %d: %s", networks[n].name, (int)at, tr_status_name(status));
                tr_pass_destroy(&pass);
                assert_int_equal(tr_alloc_live(), live);
            }
            trial_release(&trial);
        }
}

static tr_status observe(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    (void)layer, (void)output, (void)count;
    ++*(int *)user;
    return TR_OK;
}

/* Outputs within fusions take memory when they are first asked for, once. */
static void memory_may_fail_when_a_pass_is_observed(void **state)
{
    const struct network *network = networks;
    struct trial trial;
    tr_pass *pass;
    int seen = 0;
    (void)state;
    while (strcmp(network->name, "residual blocks with batch norm") != 0) network++;
    trial_make(&trial, network, "ref", 5, 2);
    const struct tr_pass_limits limits = trial_limits(&trial, true);
    must(tr_pass_create(trial.device, trial.model, &limits, &pass));
    float *gradients = trial_arenas(&trial, 1);
    const struct tr_pass_batch *batch = trial_feed(&trial, pass, 0, 2);
    tr_pass_observe(pass, observe, &seen);
    refuse_begin(0);
    assert_int_equal(tr_pass_forward(pass, batch, trial.parameters, gradients, trial.stride), TR_ENOMEM);
    assert_false(refuse_end());
    assert_int_equal(seen, 0);
    const int64_t live = tr_alloc_live();
    must(tr_pass_forward(pass, batch, trial.parameters, gradients, trial.stride));
    assert_int_equal(tr_alloc_live(), live + 1);
    assert_true(seen > 2);
    const int once = seen;
    must(tr_pass_forward(pass, batch, trial.parameters, gradients, trial.stride));
    assert_int_equal(seen, 2 * once);
    assert_int_equal(tr_alloc_live(), live + 1);
    tr_device_free(trial.device, gradients);
    tr_pass_destroy(&pass);
    trial_release(&trial);
}

static void refused_cuts_say_why(void **state)
{
    static const struct {
        const char *text, *input;
        int64_t vocabulary;
        int cut;
        const char *message;
    } cases[] = {
        {"layers: [flatten, dense: 2]", "2x2x1", 0, 1, "nothing is computed before layer \"dense1\""},
        {"layers: [dense: 3, dense: {units: 3, from: input}, add: dense1, dense: 2]", "5", 0, 1,
         "layer \"dense2\" after \"dense2\" takes the network's input"},
        {"layers: [dense: 3, tanh, dense: 3, add: dense1, dense: 2]", "5", 0, 2,
         "layer \"add1\" also takes the output of \"dense1\" before layer \"dense2\""},
        {"layers: [tokens, conv1d: {filters: 4, kernel: 3}, global_average_pool, dense: 2]", "12x1x3", 0, 2,
         "tokens of an image, of layer \"conv1d1\", do not go from one process to another"},
        {"layers: [dense: {units: 4, name: a}, tanh, dense: {units: 4, share: a}]", "4", 0, 1,
         "layer \"dense2\" shares the parameters of \"a\", which stay on one process"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_model *model;
        must(network_build(cases[i].text, cases[i].input, cases[i].vocabulary, &model));
        assert_int_equal(tr_model_check_cut(model, cases[i].cut), TR_EINVAL);
        assert_string_equal(tr_error_message(), cases[i].message);
        tr_model_destroy(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_may_fail_while_a_pass_is_made),
        cmocka_unit_test(memory_may_fail_when_a_pass_is_observed),
        cmocka_unit_test(refused_cuts_say_why),
    };
    return cmocka_run_group_tests_name("nn.pass_made", tests, NULL, NULL);
}
