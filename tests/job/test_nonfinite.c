/* Where a step stopped to be finite: the first parameter, else the first layer's output, in whichever row and
 * pass it is, else the loss.
 */
#include "support/training.h"

#include "base/alloc.h"
#include "job/step/gradient.h"
#include "refuse.h"
#include "train/loop/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 8, PARAMETERS = 4 };

static const char model[] = "name: n\ndata: {train: {csv: {path: rows.csv, label: value}}}\n"
                            "layers: [{dense: {units: 3, weights: 1, name: a}}, "
                            "{dense: {units: 1, weights: 1, name: b}}]\n"
                            "loss: mean_squared_error\noptimizer: {rule: sgd, rate: 0.1}\n"
                            "train: {batch: 8, microbatches: 4, steps: 2, shuffle: false}\n";

/* Rows of small numbers, of which one is these. */
static void write_rows(int bad, const char *row)
{
    char text[ROWS * 32] = "";
    for (int i = 0; i < ROWS; i++) snprintf(text + strlen(text), 32, "%s\n", i == bad ? row : "1,2,3");
    scratch_write_text("rows.csv", text);
}

/* A step's gradient on the processor, over parameters of which one number may be set. */
struct step {
    tr_trainer *trainer; /* which has the job */
    tr_device *device;
    tr_variables *variables;
    tr_gradient *gradient;
};

static void begin(struct step *step, const char *set, const char *pass)
{
    struct job job;
    job_begin(&job, scratch_in("model.yaml"));
    job_set(&job, set);
    job_set(&job, pass);
    job.settings.journal = "";
    step->trainer = job_trainer(&job);
    const struct tr_job *own = trainer_job(step->trainer);
    const struct tr_gradient_part part = {.end = own->train.microbatches, .end_step = own->train.steps};
    must_train(tr_device_create("cpu", 1, NULL, &step->device));
    must_train(tr_variables_create(step->device, own->model, &own->optimizer, NULL, &step->variables));
    must_train(tr_variables_initialize(step->variables, 1));
    must_train(tr_variables_begin_step(step->variables, 0));
    must_train(tr_gradient_create(step->device, own, step->variables, &part, NULL, &step->gradient));
}

static void end(struct step *step)
{
    tr_gradient_destroy(&step->gradient);
    tr_variables_destroy(&step->variables);
    tr_device_destroy(&step->device);
    tr_trainer_destroy(&step->trainer);
}

static void expect(struct step *step, const char *wanted)
{
    char name[128] = "";
    must_train(tr_gradient_locate_nonfinite(step->gradient, 0, name, sizeof name));
    assert_string_equal(name, wanted);
}

static void the_first_tensor_is_named(void **state)
{
    static const struct {
        const char *set, *row, *name;
    } cases[] = {
        {"layers.a.weights=1e20", "1e30,2,3", "output of layer \"a\""},
        {"layers.b.weights=1e20", "1e30,2,3", "output of layer \"b\""},
        {"seed=1", "1,2,3e38", "loss"},
        {"seed=1", "1,2,3", "loss"}, /* nothing else is left */
    };
    static const char *const passes[] = {"train.pass=0", "train.pass=1", "train.pass=2"};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int p = 0; p < 3; p++)
            for (int bad = 0; bad < ROWS; bad += ROWS - 1) {
                struct step step;
                write_rows(bad, cases[c].row);
                begin(&step, cases[c].set, passes[p]);
                expect(&step, cases[c].name);
                end(&step);
            }
}

static void parameters_come_first(void **state)
{
    static const char *const names[PARAMETERS] = {"a.weights", "a.bias", "b.weights", "b.bias"};
    (void)state;
    write_rows(0, "1e30,2,3");
    for (int k = PARAMETERS - 1; k >= 0; k--)
        for (int last = 0; last < 2; last++) {
            struct step step;
            char name[64];
            begin(&step, "layers.a.weights=1e20", "train.pass=1");
            const struct tr_parameter *parameter = &trainer_job(step.trainer)->model->parameters[k];
            float *values = tr_variables_arena(step.variables, TR_ARENA_PARAMETERS) + parameter->offset;
            values[last ? parameter->count - 1 : 0] = last ? NAN : INFINITY;
            snprintf(name, sizeof name, "parameter \"%s\"", names[k]);
            expect(&step, name);
            end(&step);
        }
}

/* Looking is told of missing memory, and changes nothing: the step goes on afterwards. */
static void looking_leaves_no_traces(void **state)
{
    struct step step;
    char name[128];
    int64_t examples;
    (void)state;
    write_rows(0, "1,2,3");
    begin(&step, "seed=1", "train.pass=1");
    expect(&step, "loss"); /* which makes room for the batch */
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_gradient_locate_nonfinite(step.gradient, 0, name, sizeof name);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
    }
    const int64_t live = tr_alloc_live();
    must_train(tr_gradient_step(step.gradient, 0, &examples));
    assert_int_equal(examples, ROWS);
    /* The output is 9 where 3 is wanted. */
    assert_true(tr_gradient_sums(step.gradient)[0] == ROWS * 36);
    assert_int_equal(tr_alloc_live(), live);
    end(&step);
}

static int set_up(void **state)
{
    scratch_place_make(state);
    scratch_write_text("model.yaml", model);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_tensor_is_named),
        cmocka_unit_test(parameters_come_first),
        cmocka_unit_test(looking_leaves_no_traces),
    };
    return cmocka_run_group_tests_name("job.nonfinite", tests, set_up, scratch_place_remove);
}
