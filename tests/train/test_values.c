/* Every update rule fits two smooth functions of two numbers: regression from end to end, in a second.
 *
 * Runs have the same bits on every machine, so the errors do not scatter; bounds are about three times what
 * was measured.
 */
#include "support/training.h"

#include "base/alloc.h"
#include "base/text/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Two smooth functions of two numbers, on a grid that the test data lie between. */
static void write_functions(const char *name, int side, double offset)
{
    struct tr_text text = TR_TEXT_INIT;
    char *bytes;
    for (int i = 0; i < side; i++)
        for (int k = 0; k < side; k++) {
            double x = 2 * (i + offset) / side - 1, y = 2 * (k + offset) / side - 1;
            tr_text_addf(&text, "%.6f,%.6f,%.6f,%.6f\n", x, y, 3 * x * y - 2 * x * x * x * y, x * x - y);
        }
    must_train(tr_text_finish(&text, &bytes));
    scratch_write_text(name, bytes);
    tr_free(bytes);
}

/* Every rule fits the functions, whose variance is about 0.5, to a mean squared error below its bound, which
   is some three times what was measured. */
static void test_every_rule_on_values(void **state)
{
    (void)state;
    static const struct {
        const char *optimizer;
        double most;
    } rules[] = {
        {"optimizer={rule: sgd, rate: 0.5}", 0.025},
        {"optimizer={rule: momentum, rate: 0.1}", 0.0012},
        {"optimizer={rule: momentum, rate: 0.1, nesterov: true, clip_value: 0.5}", 0.003},
        {"optimizer={rule: adam, rate: 0.01, schedule: cosine}", 0.0005},
        {"optimizer={rule: adamw, rate: 0.01, weight_decay: 1e-4, schedule: one_cycle}", 0.0006},
        {"optimizer={rule: adam, rate: 0.01, ema: 0.99, schedule: {kind: step, milestones: [1000, 1500], "
         "factor: 0.2}}",
         0.0005},
        {"optimizer={rule: rmsprop, rate: 0.003, schedule: {kind: one_cycle, form: pytorch}}", 0.003},
        {"optimizer={rule: rmsprop, rate: 0.001, momentum: 0.9, schedule: cosine}", 0.0002},
        {"optimizer={rule: adagrad, rate: 0.1}", 0.0021},
        {"optimizer={rule: lion, rate: 0.001, schedule: cosine}", 0.0003},
        {"optimizer={rule: lamb, rate: 0.01, schedule: cosine}", 0.00045},
        {"optimizer={rule: muon, rate: 0.01, adam_rate: 0.01, schedule: cosine}", 0.00003},
        {"optimizer={rule: adam, rate: 0.01, amsgrad: true, schedule: cosine}", 0.0005},
    };
    write_functions("values.csv", 25, 0.5);
    write_functions("between.csv", 12, 0.37);
    scratch_write_text("values.yaml",
                       "name: values\n"
                       "data:\n"
                       "  train: {csv: {path: values.csv, label: value, label_columns: [\"2\", \"3\"]}}\n"
                       "  test: {csv: {path: between.csv, label: value, label_columns: [\"2\", \"3\"]}}\n"
                       "layers: [{dense: {units: 32, activation: tanh}}, "
                       "{dense: {units: 32, activation: tanh}}, {dense: 2}]\n"
                       "loss: mean_squared_error\n"
                       "optimizer: {rule: sgd, rate: 1}\n"
                       "train: {batch: 50, steps: 2000}\n");
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct job job;
        struct outcome outcome;
        job_begin(&job, scratch_in("values.yaml"));
        job_set(&job, rules[i].optimizer);
        job_outcome(&job, &outcome);
        if (outcome.status != TR_OK) fail_msg("%s: %s", rules[i].optimizer, outcome.message);
        if (!(outcome.evaluated_loss <= rules[i].most))
            fail_msg("%s: mean squared error %g is above %g", rules[i].optimizer, outcome.evaluated_loss,
                     rules[i].most);
        assert_true(outcome.evaluated_accuracy == 0); /* there are no classes */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rule_on_values),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
