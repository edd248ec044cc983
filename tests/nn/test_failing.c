/* Operations that fail: whichever it is of a training step or an evaluation, of any network, the pass tells
 * of it, and computes no further.
 */
#include "support/operations/failing.h"
#include "support/networks.h"

#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static tr_status compute(struct trial *trial, tr_pass *pass, const struct tr_pass_batch *batch,
                         float *gradients)
{
    TR_TRY(tr_pass_forward(pass, batch, trial->parameters, gradients, trial->stride));
    TR_TRY(tr_pass_loss(pass, batch));
    return gradients ? tr_pass_backward(pass, batch, trial->parameters, gradients, trial->stride) : TR_OK;
}

static tr_status look(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    (void)user, (void)layer, (void)output, (void)count;
    return TR_OK;
}

/* In training, and where outputs are observed, which joins no layers. */
enum kind { EVALUATION, TRAINING, OBSERVED, KINDS };

static void fail_each(const struct network *network, enum kind kind)
{
    struct trial trial;
    tr_pass *pass;
    trial_make(&trial, network, "cpu", 5, 2);
    const struct tr_pass_limits limits = trial_limits(&trial, kind != EVALUATION);
    float *gradients = kind != EVALUATION ? trial_arenas(&trial, 1) : NULL;
    must(tr_pass_create(trial.device, trial.model, &limits, &pass));
    if (kind == OBSERVED) tr_pass_observe(pass, look, NULL);
    const struct tr_pass_batch *batch = trial_feed(&trial, pass, 0, 2);
    const struct tr_device_class *const class = trial.device->class;
    const struct tr_device_class failing = failing_like(trial.device);
    trial.device->class = &failing;
    bool done = false;
    for (failing_operation = 0; !done; failing_operation++) {
        operation_calls = 0;
        tr_status status = compute(&trial, pass, batch, gradients);
        done = operation_calls <= failing_operation;
        if (status != (done ? TR_OK : TR_EUNSUPPORTED) || operation_calls > failing_operation + 1)
            fail_msg("%s: operation %d of %d fails, and the pass says %s (%s)", network->name,
                     failing_operation, operation_calls, tr_status_name(status),
                     status == TR_OK ? "" : tr_error_message());
    }
    assert_true(failing_operation > 2);
    trial.device->class = class;
    tr_pass_destroy(&pass);
    if (gradients) tr_device_free(trial.device, gradients);
    trial_release(&trial);
}

static void a_failing_operation_ends_the_pass(void **state)
{
    (void)state;
    for (int i = 0; i < network_count; i++)
        for (enum kind kind = 0; kind < KINDS; kind++) fail_each(&networks[i], kind);
}

/* A loss with a teacher needs its scores, in training. */
static void a_missing_teacher_is_told(void **state)
{
    const struct network network = {"taught", "5", 0, "layers: [dense: 3]\n"};
    (void)state;
    for (int training = 0; training < 2; training++) {
        struct trial trial;
        tr_pass *pass;
        trial_make(&trial, &network, "cpu", 5, 2);
        trial.model->loss.taught = 0.5f, trial.model->loss.temperature = 2;
        const struct tr_pass_limits limits = trial_limits(&trial, training);
        float *gradients = trial_arenas(&trial, 1);
        must(tr_pass_create(trial.device, trial.model, &limits, &pass));
        const struct tr_pass_batch *batch = trial_feed(&trial, pass, 0, 2);
        must(tr_pass_forward(pass, batch, trial.parameters, gradients, trial.stride));
        assert_int_equal(tr_pass_loss(pass, batch), training ? TR_EUNSUPPORTED : TR_OK);
        if (training) {
            assert_string_equal(tr_error_message(),
                                "the loss has a teacher (`distill`), which says nothing here");
            tr_pass_teach(pass, gradients); /* any scores */
            must(tr_pass_loss(pass, batch));
        }
        tr_pass_destroy(&pass);
        tr_device_free(trial.device, gradients);
        trial_release(&trial);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_operation_ends_the_pass),
        cmocka_unit_test(a_missing_teacher_is_told),
    };
    return cmocka_run_group_tests_name("nn.failing", tests, NULL, NULL);
}
