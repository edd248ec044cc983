/* The floats of an arena that belong to no frozen parameter, range by range. */
#include "nn/model.h"

#include "support/networks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { LAYERS = 4 };

/* Every choice of frozen layers, each of which has a matrix and a bias. */
static void ranges_leave_frozen_layers_out(void **state)
{
    (void)state;
    for (unsigned frozen = 0; frozen < 1u << LAYERS; frozen++) {
        char text[512] = "layers:\n";
        struct tr_model *model;
        int64_t begin = 0, end = 0, at = 0;
        for (int i = 0; i < LAYERS; i++) {
            char line[64];
            snprintf(line, sizeof line, "- dense: {units: %d, frozen: %s}\n", 3 + 14 * i,
                     frozen >> i & 1 ? "true" : "false");
            strcat(text, line);
        }
        must(network_build(text, "5", 0, &model));
        assert_int_equal(model->parameter_count, 2 * LAYERS);
        for (int i = 0; i < LAYERS;) {
            int next = i;
            while (next < LAYERS && (frozen >> next & 1) == (frozen >> i & 1)) next++;
            const int64_t first = model->parameters[2 * i].offset,
                          last = next < LAYERS ? model->parameters[2 * next].offset : model->arena_floats;
            if (!(frozen >> i & 1)) {
                assert_true(tr_model_trained_range(model, end, &begin, &end));
                if (begin != first || end != last)
                    fail_msg("frozen %x: %d to %d, not %d to %d", frozen, (int)begin, (int)end, (int)first,
                             (int)last);
                at = last;
            }
            i = next;
        }
        assert_false(tr_model_trained_range(model, at, &begin, &end));
        tr_model_destroy(&model);
    }
}

/* What a layer learns beside its statistics. */
static void statistics_are_not_learned(void **state)
{
    struct tr_model *model;
    (void)state;
    must(network_build("layers: [dense: 3, batch_norm, relu, dense: {units: 2, use_bias: false}]", "5", 0,
                       &model));
    static const int64_t learned[] = {5 * 3 + 3, 2 * 3, 0, 3 * 2};
    for (int i = 0; i < LAYERS; i++) assert_int_equal(tr_model_learned(model, i), learned[i]);
    tr_model_destroy(&model);
}

/* The shortest of the limits that layers set; 0 where none does. */
static void layers_limit_the_length(void **state)
{
    static const struct {
        const char *layers;
        int64_t longest;
    } cases[] = {
        {"[embedding: 4, last]", 0},
        {"[embedding: 4, position: 30, last]", 30},
        {"[embedding: 4, position: 30, position: 20, position: 25, last]", 20},
        {"[embedding: 4, position: 20, attention: {heads: 2, context: 15}, last]", 15},
        {"[embedding: 4, attention: {heads: 2, context: 15}, position: 12, last]", 12},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        struct tr_model *model;
        snprintf(text, sizeof text, "layers: %s", cases[i].layers);
        must(network_build(text, "tokens", 9, &model));
        assert_int_equal(tr_model_longest(model), cases[i].longest);
        tr_model_destroy(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_leave_frozen_layers_out),
        cmocka_unit_test(statistics_are_not_learned),
        cmocka_unit_test(layers_limit_the_length),
    };
    return cmocka_run_group_tests_name("nn.trained", tests, NULL, NULL);
}
