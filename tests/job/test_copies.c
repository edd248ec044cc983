/* Variables on a device whose memory the host cannot read: they begin with the numbers of the model, have its
 * hash, and come back as they went; and what happens where memory for a copy is missing.
 */
#include "support/networks.h"
#include "support/operations/shadow.h"

#include "base/alloc.h"
#include "job/step/variables.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const char text[] =
    "layers: [{dense: 5}, batch_norm, relu, {dense: {units: 4, bias: 0.5}}, {dense: 3}]\n";

static tr_device *device;
static struct tr_model *model;
static tr_variables *variables;
static float *expected, *got;

static int set_up(void **state)
{
    const struct tr_optimizer optimizer = {.rule = TR_RULE_SGD, .rate = 0.1};
    (void)state;
    must(shadow_create(2, NULL, &device));
    must(network_build(text, "6", 0, &model));
    must(tr_variables_create(device, model, &optimizer, NULL, &variables));
    expected = tr_alloc((size_t)model->arena_floats, sizeof *expected);
    got = tr_alloc((size_t)model->arena_floats, sizeof *got);
    assert_true(expected && got);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tr_free(expected);
    tr_free(got);
    tr_variables_destroy(&variables);
    tr_model_destroy(&model);
    tr_device_destroy(&device);
    return 0;
}

static void expect_values(void)
{
    char is[TR_SHA256_TEXT], should[TR_SHA256_TEXT];
    must(tr_variables_store(variables, TR_ARENA_PARAMETERS, got));
    assert_memory_equal(got, expected, (size_t)model->arena_floats * sizeof *got);
    must(tr_variables_hash(variables, is));
    must(tr_model_hash(model, expected, should));
    assert_string_equal(is, should);
}

static void variables_begin_as_the_model_says(void **state)
{
    (void)state;
    for (uint64_t seed = 3; seed < 5; seed++) {
        tr_model_initialize(model, seed, 0, 1, expected);
        must(tr_variables_initialize(variables, seed));
        expect_values();
    }
}

static void values_come_back(void **state)
{
    (void)state;
    for (int64_t i = 0; i < model->arena_floats; i++) expected[i] = (float)i / 8;
    must(tr_variables_load(variables, TR_ARENA_PARAMETERS, expected));
    expect_values();
}

static void missing_memory_is_told(void **state)
{
    char hex[TR_SHA256_TEXT];
    (void)state;
    for (int hash = 0; hash < 2; hash++) {
        bool done = false;
        int64_t refused = 0;
        for (; !done; refused++) {
            const int64_t live = tr_alloc_live();
            refuse_begin(refused);
            const tr_status status =
                hash ? tr_variables_hash(variables, hex) : tr_variables_initialize(variables, 7);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            must(tr_device_wait(device));
            assert_int_equal(tr_alloc_live(), live);
        }
        assert_true(refused > 1);
        tr_model_initialize(model, 7, 0, 1, expected);
        expect_values();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_begin_as_the_model_says),
        cmocka_unit_test(values_come_back),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("job.copies", tests, set_up, tear_down);
}
