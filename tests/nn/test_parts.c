/* Inputs with names: each is a part of the vector that the network takes, under its own shape; what cannot be
 * one is refused, and so is what memory does not suffice for.
 */
#include "support/networks.h"

#include "base/alloc.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* An image of 2 x 1 pixels with 3 channels, and two numbers. */
static const struct tr_named_shape two[] = {{"picture", {3, {2, 1, 3}, false}}, {"numbers", {1, {2}, false}}};

static const char layers[] = "layers:\n"
                             "- conv: {name: seen, from: picture, filters: 4, kernel: 1}\n"
                             "- flatten\n"
                             "- concat: {from: [flatten1, numbers]}\n"
                             "- dense: 2\n";

static tr_status build_layers(const char *text, const struct tr_named_shape *part, int count, int64_t size,
                              struct tr_model **out)
{
    tr_config *root;
    const struct tr_model_input input = {.shape = {1, {size}, false}, .part_count = count, .part = part};
    *out = NULL;
    must(tr_config_parse(text, strlen(text), "test.yaml", &root));
    tr_status status = tr_model_build(root, &input, out);
    tr_config_destroy(&root);
    return status;
}

static tr_status build(const struct tr_named_shape *part, int count, int64_t size, struct tr_model **out)
{
    return build_layers(layers, part, count, size, out);
}

static void expect_shape(const struct tr_model *model, const char *name, const char *shape)
{
    char text[TR_SHAPE_TEXT];
    for (int i = 0; i < model->layer_count; i++) {
        if (strcmp(model->layers[i].name, name) != 0) continue;
        assert_string_equal(tr_shape_text(&model->layers[i].out, text), shape);
        return;
    }
    fail_msg("there is no layer \"%s\"", name);
}

static void a_part_has_a_name_and_a_shape(void **state)
{
    (void)state;
    struct tr_model *model;
    if (build(two, 2, 8, &model) != TR_OK) fail_msg("%s", tr_error_message());
    assert_int_equal(model->part_layers, 3); /* an image is cut out, and shaped */
    expect_shape(model, "picture", "2x1x3");
    expect_shape(model, "numbers", "2");
    expect_shape(model, "seen", "2x1x4");
    expect_shape(model, "concat1", "10");
    tr_model_destroy(&model);
}

static void expect_refusal(const struct tr_named_shape *part, int count, int64_t size, const char *says)
{
    struct tr_model *model;
    assert_int_equal(build(part, count, size, &model), TR_EINVAL);
    assert_null(model);
    if (!strstr(tr_error_message(), says)) fail_msg("\"%s\" does not say \"%s\"", tr_error_message(), says);
}

static void what_is_no_part_is_refused(void **state)
{
    (void)state;
    struct tr_named_shape many[TR_MODEL_PARTS + 1];
    for (int i = 0; i <= TR_MODEL_PARTS; i++) {
        many[i] = two[1];
        many[i].name[0] = (char)('a' + i);
    }
    expect_refusal(many, TR_MODEL_PARTS + 1, 10, "5 inputs have names, at most 4 can have");
    expect_refusal(two, 2, 7, "input: "); /* the second would reach beyond the vector */
    expect_refusal(two + 1, 1, 8, "picture");
    struct tr_model *model;
    assert_int_equal(build_layers("layers: [{dense: 2}]", two, 2, 8, &model), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "\"from: numbers\"")); /* the last one */
}

static void without_memory_nothing_stays(void **state)
{
    (void)state;
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        struct tr_model *model;
        tr_config *root;
        const struct tr_model_input input = {.shape = {1, {8}, false}, .part_count = 2, .part = two};
        must(tr_config_parse(layers, strlen(layers), "test.yaml", &root));
        int64_t live = tr_alloc_live();
        model = NULL;
        refuse_begin(at);
        tr_status status = tr_model_build(root, &input, &model);
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM))
            fail_msg("allocation %lld refused gives %s: %s", (long long)at, tr_status_name(status),
                     tr_error_message());
        tr_model_destroy(&model);
        assert_int_equal(tr_alloc_live(), live);
        tr_config_destroy(&root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_has_a_name_and_a_shape),
        cmocka_unit_test(what_is_no_part_is_refused),
        cmocka_unit_test(without_memory_nothing_stays),
    };
    return cmocka_run_group_tests_name("nn.parts", tests, NULL, NULL);
}
