/* Parameters that move by rho along the gradient, as sharpness-aware minimization wants it, and return. */
#include "support/networks.h"

#include "base/alloc.h"
#include "job/step/variables.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define RHO 0.25f

/* Running statistics and frozen weights between others. */
static const char text[] =
    "layers: [{dense: {units: 5, frozen: true}}, {dense: 4}, batch_norm, relu, {dense: 3}]\n";

static float gradient_at(int64_t i)
{
    return (float)(i % 7) - 2.5f;
}

/* What float i of the arena belongs to. */
enum place { GAP, STILL, MOVES };
static enum place place_of(const struct tr_model *model, int64_t i)
{
    for (int k = 0; k < model->parameter_count; k++) {
        const struct tr_parameter *parameter = &model->parameters[k];
        if (i >= parameter->offset && i < parameter->offset + parameter->count)
            return parameter->kind == TR_PARAMETER_STATISTIC || parameter->pace.frozen ? STILL : MOVES;
    }
    return GAP;
}

/* Each range moves alone, and returns to the same bits. A gradient of 0 moves nothing. */
static void parameters_move_and_return(void **state)
{
    (void)state;
    for (int zero = 0; zero < 2; zero++) {
        tr_device *device;
        struct tr_model *model;
        tr_variables *variables;
        const struct tr_optimizer optimizer = {.rule = TR_RULE_SGD, .rate = 0.1, .sam = RHO};
        double squares = 0;
        float norm;
        must(tr_device_create("cpu", 1, NULL, &device));
        must(network_build(text, "6", 0, &model));
        must(tr_variables_create(device, model, &optimizer, NULL, &variables));
        must(tr_variables_initialize(variables, 3));
        must(tr_variables_begin_step(variables, 0));
        must(tr_device_wait(device));
        const int64_t floats = model->arena_floats;
        float *parameters = tr_variables_arena(variables, TR_ARENA_PARAMETERS);
        float *before = tr_alloc((size_t)floats, sizeof *before),
              *gradient = tr_alloc_aligned((size_t)floats, sizeof *gradient);
        assert_true(before && gradient);
        memcpy(before, parameters, (size_t)floats * sizeof *before);
        for (int64_t i = 0; i < floats; i++) {
            gradient[i] = zero || place_of(model, i) == GAP ? 0 : gradient_at(i);
            if (place_of(model, i) == MOVES) squares += (double)gradient[i] * (double)gradient[i];
        }
        must(tr_variables_measure(variables, gradient));
        must(tr_variables_norm(variables, &norm));
        assert_true(fabs((double)norm - sqrt(squares)) <= 1e-5 * sqrt(squares));
        for (int64_t begin = 0; begin < floats; begin += 3 * TR_MODEL_GRAIN)
            for (int64_t end = begin; end <= floats; end += 2 * TR_MODEL_GRAIN) {
                must(tr_variables_perturb(variables, gradient, begin, end));
                must(tr_device_wait(device));
                for (int64_t i = 0; i < floats; i++) {
                    const bool moved = i >= begin && i < end && place_of(model, i) == MOVES && !zero;
                    const double expected =
                        moved ? (double)before[i] + (double)RHO * (double)gradient[i] / sqrt(squares)
                              : (double)before[i];
                    if (!(fabs((double)parameters[i] - expected) <= (moved ? 1e-6 : 0)))
                        fail_msg("%d to %d: float %d is %g, not %g", (int)begin, (int)end, (int)i,
                                 (double)parameters[i], expected);
                }
                must(tr_variables_restore(variables, begin, end));
                must(tr_device_wait(device));
                assert_memory_equal(parameters, before, (size_t)floats * sizeof *before);
            }
        tr_free(before);
        tr_free(gradient);
        tr_variables_destroy(&variables);
        tr_model_destroy(&model);
        tr_device_destroy(&device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parameters_move_and_return)};
    return cmocka_run_group_tests_name("job.around", tests, NULL, NULL);
}
