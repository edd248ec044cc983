/* What layers say of inputs and sizes that do not suit them, and what just suits. */
#include "support/networks.h"

#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct network_case {
    const char *text, *input;
    int64_t vocabulary;
    const char *says; /* NULL: it is good */
} cases[] = {
    {"layers: [flatten, dense: 2]", "tokens x 4", 0,
     "its input is a sequence (tokens x 4), which flatten leaves as it is; leave it out, or end the sequence "
     "with "
     "last, global_average_pool or global_max_pool"},
    {"layers: [last, flatten, dense: 2]", "tokens x 4", 0, NULL},
    {"layers: [tanh: {name: a}, slice: {begin: 0, size: 2}, add: a]", "3", 0,
     "cannot add shapes 2 and 3 (of \"a\"); make them equal"},
    {"layers: [batch_norm, last]", "tokens x 4", 0,
     "wants one vector or image for each example, its input is tokens x 4; use layer_norm"},
    {"layers: [lstm: 3, last]", "4", 0, "needs a sequence, its input is 4; put an embedding in front"},
    {"layers: [gru: 3, last]", "4x4x1", 0, "needs a sequence, its input is 4x4x1; put an embedding in front"},
    {"layers: [last, dense: 2]", "4", 0,
     "needs a sequence, its input is 4; use it after layers over tokens or steps"},
    {"layers: [tokens, last]", "4", 0, "needs an image, its input is 4; use it on images, or after reshape"},
    {"layers: [conv1d: {filters: 2, kernel: 2}, last]", "4x4x1", 0,
     "needs a sequence, its input is 4x4x1; use conv for images"},
    {"layers: [group_norm: 3]", "4x4x4", 0, "4 channels are not a multiple of 3 groups; choose a divisor"},
    {"layers: [group_norm: 4]", "4x4x4", 0, NULL},
    {"layers: [layer_norm: {per: pixel}]", "9", 0,
     "per: pixel wants images (height x width x channels), its input is 9; leave `per` out"},
    {"layers: [layer_norm: {per: pixel}, last]", "tokens x 9", 0, "its input is tokens x 9; leave `per` out"},
    {"layers: [layer_norm: {per: pixel}]", "2x2x9", 0, NULL},
    {"layers: [reshape: [2, 6], dense: 2]", "12", 0,
     "shape has 2 sizes; an image has height, width and channels"},
    {"layers: [reshape: [2, 2, 2], dense: 2]", "12", 0,
     "its input is 12, which has not as many numbers as 2x2x2"},
    {"layers: [reshape: [2, 2, 1], last]", "tokens x 4", 0,
     "its input is tokens x 4, which has not as many numbers as 2x2x1"},
    {"layers: [slice: {begin: 0, size: 2}]", "2x2x2", 0,
     "wants vectors, its input is 2x2x2; flatten images first"},
    {"layers: [slice: {begin: 2, size: 3}]", "4", 0, "takes numbers 2 to 4, its input has 4"},
    {"layers: [slice: {begin: 2, size: 2}]", "4", 0, NULL},
    {"layers: [slice: {begin: 5, size: 1}]", "4", 0, "takes numbers 5 to 5, its input has 4"},
    {"layers: [max_pool: {size: 2, pad: 2}]", "4x4x1", 0,
     "pad 2 is not below the kernel's height of 2; windows would see no pixel"},
    {"layers: [max_pool: {size: 2, stride: 1, pad: 1}]", "4x4x1", 0, NULL},
    {"layers: [conv: {filters: 1, kernel: [1, 2], pad: 1}]", "4x4x1", 0,
     "pad 1 is not below the kernel's height of 1"},
    {"layers: [conv: {filters: 1, kernel: [2, 1], pad: 1}]", "4x4x1", 0,
     "pad 1 is not below the kernel's width of 1"},
    {"layers: [conv: {filters: 1, kernel: [5, 2]}]", "4x4x1", 0,
     "kernel height 5 does not fit the input's height of 4; use padding: same or a smaller kernel"},
    {"layers: [conv: {filters: 1, kernel: 3, dilation: 2}]", "5x4x1", 0,
     "kernel width 5 does not fit the input's width of 4"},
    {"layers: [conv: {filters: 2, kernel: 3, dilation: 2}]", "5x5x1", 0, NULL},
    {"layers: [conv: {filters: 1, kernel: 7, pad: 1}]", "4x5x1", 0,
     "kernel height 7 does not fit the input's height of 6"},
    {"layers: [conv: {filters: 1, kernel: 3}]", "9", 0,
     "needs images (height x width x channels), its input is 9"},
    {"layers: [{tanh: {name: a}}, {add: {from: [a, a, a, a, a, a, a, a]}}]", "3", 0, NULL},
    {"layers: [{tanh: {name: a}}, {add: {from: [a, a, a, a, a, a, a, a, a]}}]", "3", 0,
     "a layer takes at most 8 inputs"},
    {"layers: [dense: 1]\nloss: focal\n", "3", 0, "focal needs at least 2 outputs, the network has 1"},
    {"layers: [dense: 2]\nloss: focal\n", "3", 0, NULL},
    {"layers: [dense: 4]\nloss:\n- {kind: softmax_cross_entropy, outputs: 2, per: pixel}\n- {kind: huber, "
     "outputs: 2}\n",
     "3", 0, "a loss per pixel stands alone, not among others"},
    {"layers: [upsample: [2, 1]]", "9", 0, "needs images (height x width x channels), its input is 9"},
    {"layers: [{upsample: 1}]", "2x2x1", 0, "repeats nothing; give a size above 1, or leave the layer out"},
    {"layers: [{upsample: [1, 2]}]", "2x2x1", 0, NULL},
    {"layers: [{embedding: {width: 3, name: e}}, {unembedding: f}]", "tokens", 7,
     "there is no layer \"f\" before it; name an embedding"},
    {"layers: [{embedding: {width: 3, name: e}}, {dense: {units: 3, name: d}}, {unembedding: d}]", "tokens",
     7, "layer \"d\" is of kind dense, whose weights cannot be shared; name an embedding"},
};

static void expect(const struct network_case *c)
{
    struct tr_model *model = NULL;
    const tr_status status = network_build(c->text, c->input, c->vocabulary, &model);
    if (!c->says && status != TR_OK) fail_msg("%s over %s: %s", c->text, c->input, tr_error_message());
    if (c->says && status == TR_OK) fail_msg("%s over %s is taken", c->text, c->input);
    if (c->says && !strstr(tr_error_message(), c->says))
        fail_msg("%s over %s: \"%s\"", c->text, c->input, tr_error_message());
    tr_model_destroy(&model);
}

static void layers_say_what_does_not_suit_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) expect(&cases[i]);
}

/* Layers that use the parameters of another must have the same. */
static void sharers_are_alike(void **state)
{
    static const struct {
        const char *first, *second, *input, *says;
    } pairs[] = {
        {"dense: {units: 4, name: a}", "dense: {units: 4, share: a}", "4", NULL},
        {"dense: {units: 4, name: a}", "dense: {units: 4, share: b}", "4",
         "layer \"dense2\": there is no layer \"b\" before it whose parameters it could share"},
        {"layer_norm: {name: a}", "rms_norm: {share: a}", "4",
         "layer \"rms_norm1\": shares the parameters of \"a\", which is of kind layer_norm and not rms_norm"},
        {"tanh: {name: a}", "tanh: {share: a}", "4",
         "layer \"tanh2\": shares the parameters of \"a\", which has none; leave out `share`"},
        {"dense: {units: 4, name: a}", "dense: {units: 4, use_bias: false, share: a}", "4",
         "layer \"dense2\": has 1 parameters, \"a\" has 2; give both the same options"},
        {"dense: {units: 4, use_bias: false, name: a}", "dense: {units: 4, share: a}", "4",
         "layer \"dense2\": has a parameter \"bias\" that \"a\" lacks; give both the same options"},
        {"dense: {units: 5, name: a}", "dense: {units: 5, share: a}", "4",
         "layer \"dense2\": its \"weights\" are 5x5, those of \"a\" are 4x5; layers that share parameters "
         "take "
         "inputs of one size"},
        {"batch_norm: {name: a}", "batch_norm: {share: a}", "4",
         "layer \"batch_norm2\": has running statistics, which follow the data of one layer; leave out "
         "`share`"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "layers: [{%s}, {%s}, {dense: 2}]", pairs[i].first, pairs[i].second);
        expect(&(struct network_case){text, pairs[i].input, 0, pairs[i].says});
    }
    /* Without biases, and with those of queries alone: another name at the same place. */
    expect(&(struct network_case){
        "layers: [{attention: {heads: 1, use_bias: false, name: a}}, {attention: {heads: 1, share: a, "
        "use_output_bias: false}}, last]",
        "tokens x 4", 0, "give both the same options"});
}

static void networks_have_a_limit_of_layers(void **state)
{
    enum { MOST = 4096 };
    static const char layer[] = "relu, ", head[] = "layers: [";
    (void)state;
    for (int count = MOST; count <= MOST + 1; count++) {
        const size_t room = sizeof head + sizeof layer * (size_t)count;
        char *text = malloc(room);
        assert_non_null(text);
        char *at = text + sprintf(text, "%s", head);
        for (int i = 0; i < count; i++) at += sprintf(at, "%s", layer);
        strcpy(at - 2, "]");
        expect(&(struct network_case){text, "4", 0,
                                      count > MOST ? "4097 layers; at most 4096 are allowed" : NULL});
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_say_what_does_not_suit_them),
        cmocka_unit_test(sharers_are_alike),
        cmocka_unit_test(networks_have_a_limit_of_layers),
    };
    return cmocka_run_group_tests_name("nn.refused", tests, NULL, NULL);
}
