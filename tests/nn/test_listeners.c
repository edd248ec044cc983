/* Who is told of a pass: the listener of a backward pass, whose gradients are then complete; the companion of
 * both; the observer of outputs. A failure of any ends the pass.
 */
#include "support/networks.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define EXAMPLES     5
#define MICROBATCHES 2
#define LAYERS_MOST  64

struct record {
    const struct trial *trial;
    const float *gradients; /* of the pass, host memory */
    float *seen;            /* what they were when their layer was told */
    int layer[4 * LAYERS_MOST];
    int calls, fail_at; /* -1: none fails */
};

static tr_status count_call(struct record *record, int layer)
{
    assert_true(record->calls < 4 * LAYERS_MOST);
    record->layer[record->calls] = layer;
    return record->calls++ == record->fail_at ? tr_fail(TR_EINTERRUPTED, "enough") : TR_OK;
}

/* Keeps the gradients of the layer's parameters. */
static tr_status listen(void *user, int layer)
{
    struct record *record = user;
    const struct tr_model *model = record->trial->model;
    for (int k = 0; k < model->layers[layer].parameter_count; k++) {
        const struct tr_parameter *parameter = &model->parameters[model->layers[layer].parameter[k]];
        memcpy(record->seen + parameter->offset, record->gradients + parameter->offset,
               (size_t)parameter->count * sizeof(float));
    }
    return count_call(record, layer);
}

static tr_status accompany(void *user)
{
    return count_call(user, 0);
}

static tr_status observe(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    struct record *record = user;
    assert_true(output && count > 0);
    return count_call(record, (int)(layer - record->trial->model->layers));
}

struct fixture {
    struct trial trial;
    tr_pass *pass;
    const struct tr_pass_batch *batch;
    float *gradients;
    struct record record;
};

/* Memory of `ref` is the host's, and its operations are done when they return. */
static void begin(struct fixture *fixture, const struct network *network)
{
    trial_make(&fixture->trial, network, "ref", EXAMPLES, MICROBATCHES);
    const struct tr_pass_limits limits = trial_limits(&fixture->trial, true);
    must(tr_pass_create(fixture->trial.device, fixture->trial.model, &limits, &fixture->pass));
    fixture->batch = trial_feed(&fixture->trial, fixture->pass, 0, MICROBATCHES);
    fixture->gradients = trial_arenas(&fixture->trial, 1);
    fixture->record =
        (struct record){.trial = &fixture->trial,
                        .gradients = fixture->gradients,
                        .seen = tr_alloc_zero((size_t)fixture->trial.model->arena_floats + 1, sizeof(float)),
                        .fail_at = -1};
    assert_non_null(fixture->record.seen);
    assert_in_range(fixture->trial.model->layer_count, 1, LAYERS_MOST);
}

static void end(struct fixture *fixture)
{
    tr_free(fixture->record.seen);
    tr_device_free(fixture->trial.device, fixture->gradients);
    tr_pass_destroy(&fixture->pass);
    trial_release(&fixture->trial);
}

static tr_status run(struct fixture *fixture)
{
    const struct trial *trial = &fixture->trial;
    fixture->record.calls = 0;
    TR_TRY(
        tr_pass_forward(fixture->pass, fixture->batch, trial->parameters, fixture->gradients, trial->stride));
    TR_TRY(tr_pass_loss(fixture->pass, fixture->batch));
    TR_TRY(tr_pass_backward(fixture->pass, fixture->batch, trial->parameters, fixture->gradients,
                            trial->stride));
    return tr_device_wait(trial->device);
}

/* Layers from the last one down, each when what its parameters get is final. */
static void listeners_hear_of_complete_gradients(void **state)
{
    (void)state;
    for (int n = 0; n < network_count; n++) {
        struct fixture fixture;
        begin(&fixture, &networks[n]);
        const struct tr_model *model = fixture.trial.model;
        const struct record *record = &fixture.record;
        tr_pass_listen(fixture.pass, listen, &fixture.record);
        must(run(&fixture));
        /* Those that compute nothing, or that nothing is learned behind, are left out. */
        for (int i = 0, last = model->layer_count; i < record->calls; last = record->layer[i++])
            assert_true(record->layer[i] < last);
        for (int i = 0; i < model->layer_count; i++) {
            bool told = model->layers[i].parameter_count == 0;
            for (int k = 0; k < record->calls; k++) told |= record->layer[k] == i;
            if (!told) fail_msg("%s: nobody was told of layer %d", networks[n].name, i);
        }
        for (int i = 0; i < model->layer_count; i++)
            for (int k = 0; k < model->layers[i].parameter_count; k++) {
                const struct tr_parameter *parameter = &model->parameters[model->layers[i].parameter[k]];
                if (memcmp(record->seen + parameter->offset, fixture.gradients + parameter->offset,
                           (size_t)parameter->count * sizeof(float)) != 0)
                    fail_msg("%s: the gradient of %s changes after its layer was told", networks[n].name,
                             parameter->name);
            }
        tr_pass_listen(fixture.pass, NULL, NULL);
        must(run(&fixture));
        assert_int_equal(record->calls, 0);
        end(&fixture);
    }
}

/* The pass ends with the failure, and nobody is told of more. */
static void failures_end_the_pass(struct fixture *fixture, int calls)
{
    assert_true(calls > 2);
    for (fixture->record.fail_at = 0; fixture->record.fail_at < calls; fixture->record.fail_at++) {
        assert_int_equal(run(fixture), TR_EINTERRUPTED);
        assert_string_equal(tr_error_message(), "enough");
        assert_int_equal(fixture->record.calls, fixture->record.fail_at + 1);
    }
    fixture->record.fail_at = -1;
    must(run(fixture));
    assert_int_equal(fixture->record.calls, calls);
}

static const struct network *network_called(const char *name)
{
    for (int n = 0; n < network_count; n++)
        if (strcmp(networks[n].name, name) == 0) return &networks[n];
    fail_msg("there is no network \"%s\"", name);
    return NULL;
}

/* Also where it is told of a layer that a fusion computes: those get a call each, the fusion has one. */
static void failures_of_listeners_end_the_pass(void **state)
{
    struct fixture fixture;
    (void)state;
    begin(&fixture, network_called("residual blocks with batch norm"));
    tr_pass_accompany(fixture.pass, accompany, &fixture.record);
    must(run(&fixture));
    const int fusions = fixture.record.calls / 2; /* forward, and backward */
    tr_pass_accompany(fixture.pass, NULL, NULL);
    tr_pass_listen(fixture.pass, listen, &fixture.record);
    must(run(&fixture));
    assert_true(fixture.record.calls > fusions);
    failures_end_the_pass(&fixture, fixture.record.calls);
    end(&fixture);
}

/* After each layer or fusion of them, forward and backward. */
static void companions_go_with_both_directions(void **state)
{
    struct fixture fixture;
    (void)state;
    begin(&fixture, &networks[0]);
    tr_pass_accompany(fixture.pass, accompany, &fixture.record);
    must(run(&fixture));
    const int calls = fixture.record.calls;
    assert_in_range(calls, 4, 2 * fixture.trial.model->layer_count);
    failures_end_the_pass(&fixture, calls);
    tr_pass_accompany(fixture.pass, NULL, NULL);
    must(run(&fixture));
    assert_int_equal(fixture.record.calls, 0);
    end(&fixture);
}

static void observers_see_outputs_in_order(void **state)
{
    struct fixture fixture;
    (void)state;
    begin(&fixture, &networks[0]);
    tr_pass_observe(fixture.pass, observe, &fixture.record);
    must(run(&fixture));
    const int calls = fixture.record.calls;
    assert_in_range(calls, 3, fixture.trial.model->layer_count);
    for (int i = 1; i < calls; i++) assert_true(fixture.record.layer[i] > fixture.record.layer[i - 1]);
    assert_int_equal(fixture.record.layer[calls - 1], fixture.trial.model->layer_count - 1);
    failures_end_the_pass(&fixture, calls);
    tr_pass_observe(fixture.pass, NULL, NULL);
    must(run(&fixture));
    assert_int_equal(fixture.record.calls, 0);
    end(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listeners_hear_of_complete_gradients),
        cmocka_unit_test(failures_of_listeners_end_the_pass),
        cmocka_unit_test(companions_go_with_both_directions),
        cmocka_unit_test(observers_see_outputs_in_order),
    };
    return cmocka_run_group_tests_name("nn.listeners", tests, NULL, NULL);
}
