/* What programs read about networks: every member of the object, held against the model files, and the sums
 * against what the summary counts. */
#include "support/training.h"

#include "train/describe/inspect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void expect_text(const json_t *object, const char *key, const char *expected)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (!text || strcmp(text, expected) != 0)
        fail_msg("%s is %s, not %s", key, text ? text : "none", expected);
}

static void expect_sizes(const json_t *array, int count, int first, int second)
{
    assert_true(json_is_array(array));
    assert_int_equal(json_array_size(array), count);
    if (count > 0) assert_int_equal(json_integer_value(json_array_get(array, 0)), first);
    if (count > 1) assert_int_equal(json_integer_value(json_array_get(array, 1)), second);
}

static void every_member_of_the_object(void **state)
{
    (void)state;
    static const char *const set[] = {"layers.one.frozen=true"};
    struct tr_summary summary;
    json_t *root = inspect_json("plain.yaml", NULL, 0);
    const struct tr_inspect_settings settings = inspect_asked("plain.yaml", NULL, 0);
    must_train(tr_summary_make(&settings, &summary));
    expect_text(root, "name", "plain");
    expect_text(root, "file", "plain.yaml");
    expect_sizes(json_object_get(root, "input"), 1, 2, 0);
    expect_text(root, "loss", "softmax_cross_entropy");
    expect_text(root, "optimizer", "adam");
    assert_true(json_real_value(json_object_get(root, "rate")) == 0.01);
    expect_text(root, "settings", summary.job->digest);
    expect_number(root, "batch", 2);
    expect_number(root, "microbatches", 1);
    expect_number(root, "steps", 10);
    expect_number(root, "parameters", 47);
    expect_number(root, "base_memory", 0);
    expect_number(root, "trained_parameters", 47);
    expect_number(root, "parameter_memory", summary.parameter_bytes);
    expect_number(root, "optimizer_memory", summary.state_bytes);
    expect_number(root, "tokens", 0);
    expect_number(root, "example_operations", 76);
    expect_number(root, "step_operations", 416);
    expect_number(root, "recomputed_operations", 0);
    expect_number(root, "example_memory", summary.inference_bytes);
    expect_number(root, "gradient_memory", summary.gradient_bytes);
    expect_number(root, "layer_memory", summary.pass_bytes);
    expect_number(root, "teacher_memory", 0);
    const json_t *layers = json_object_get(root, "layers"), *add = json_array_get(layers, 2),
                 *last = json_array_get(layers, 3), *from = json_object_get(add, "from");
    assert_int_equal(json_array_size(layers), 4);
    expect_text(add, "name", "add1");
    expect_text(add, "kind", "add");
    assert_int_equal(json_array_size(from), 2);
    assert_string_equal(json_string_value(json_array_get(from, 0)), "two");
    assert_string_equal(json_string_value(json_array_get(from, 1)), "one");
    assert_int_equal(json_object_size(json_object_get(add, "parameters")), 0);
    expect_sizes(json_object_get(last, "output"), 1, 3, 0);
    expect_flag(last, "sequence", false);
    expect_flag(last, "per_token", false);
    expect_flag(last, "frozen", false);
    expect_flag(last, "recomputed", false);
    expect_number(last, "memory", 12);
    expect_number(last, "operations", 24);
    assert_null(json_object_get(last, "algorithm"));
    const json_t *parameters = json_object_get(last, "parameters");
    assert_int_equal(json_object_size(parameters), 2);
    expect_sizes(json_object_get(parameters, "dense3.weights"), 2, 4, 3);
    expect_sizes(json_object_get(parameters, "dense3.bias"), 1, 3, 0);
    from = json_object_get(json_array_get(layers, 0), "from");
    assert_string_equal(json_string_value(json_array_get(from, 0)), "input");
    tr_summary_release(&summary);
    json_decref(root);

    root = inspect_json("plain.yaml", set, 1);
    expect_flag(json_array_get(json_object_get(root, "layers"), 0), "frozen", true);
    expect_number(root, "trained_parameters", 35);
    json_decref(root);
    root = inspect_json("words.yaml", NULL, 0);
    layers = json_object_get(root, "layers");
    expect_number(root, "tokens", 5);
    expect_flag(json_array_get(layers, 1), "sequence", true);
    expect_flag(json_array_get(layers, 1), "per_token", true);
    expect_flag(json_array_get(layers, 2), "sequence", false);
    expect_flag(json_array_get(layers, 2), "per_token", true);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_of_the_object),
    };
    return cmocka_run_group_tests(tests, inspect_make, inspect_clean);
}
