/* Layouts: every kind of layer has its place, what is packed unpacks to the same numbers, and PyTorch's
 * layout is on record element by element. */
#include "export/layout.h"

#include "base/alloc.h"
#include "refuse.h"
#include "support/networks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

/* An arena in which every number is that of its place, so that none is like another. */
static float *count_up(const struct tr_model *model)
{
    float *arena = tr_alloc_zero((size_t)model->arena_floats + 1, sizeof *arena);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        for (int64_t k = 0; k < parameter->count; k++)
            arena[parameter->offset + k] = (float)(1000 * (i + 1) + k);
    }
    return arena;
}

static struct tr_model *build(const char *layers, const char *input, int64_t vocabulary)
{
    struct tr_model *model;
    if (network_build(layers, input, vocabulary, &model) != TR_OK) fail_msg("%s", tr_error_message());
    return model;
}

static const struct tr_stored_tensor *find(const struct tr_layout_packed *packed, const char *name)
{
    for (int i = 0; i < packed->list.count; i++)
        if (strcmp(packed->tensor[i].name, name) == 0) return &packed->tensor[i];
    fail_msg("there is no tensor \"%s\"", name);
    return NULL;
}

/* Fails unless the tensor has this shape ("F32[2,3]") and begins with these numbers. */
static void expect_tensor(const struct tr_layout_packed *packed, const char *name, const char *shape,
                          int count, const float *numbers)
{
    const struct tr_stored_tensor *tensor = find(packed, name);
    char text[TR_STORED_TEXT];
    assert_string_equal(tr_stored_describe(tensor, text), shape);
    for (int i = 0; i < count; i++)
        if (((const float *)tensor->data)[i] != numbers[i])
            fail_msg("%s[%d] is %g instead of %g", name, i, (double)((const float *)tensor->data)[i],
                     (double)numbers[i]);
}

/* PyTorch may have no counterpart of a new layer, but of these. */
static void expect_refusal_of_a_new_layer(const char *network)
{
    static const char *const known[] = {"add",
                                        "attention",
                                        "average_pool",
                                        "batch_norm",
                                        "bidirectional",
                                        "conv",
                                        "conv1d",
                                        "cross_attention",
                                        "dense",
                                        "dropout",
                                        "embedding",
                                        "first",
                                        "flatten",
                                        "gelu",
                                        "group_norm",
                                        "gru",
                                        "hard_swish",
                                        "multiply",
                                        "instance_norm",
                                        "relu6",
                                        "stochastic_depth",
                                        "silu",
                                        "last",
                                        "layer_norm",
                                        "leaky_relu",
                                        "lstm",
                                        "max_pool",
                                        "position",
                                        "relu",
                                        "rms_norm",
                                        "sigmoid",
                                        "softmax",
                                        "tanh"};
    char lost[128];
    if (!strstr(tr_error_message(), "layer \"") ||
        !strstr(tr_error_message(), "has no counterpart in PyTorch"))
        fail_msg("%s: %s", network, tr_error_message());
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        snprintf(lost, sizeof lost, ": %s has no counterpart", known[i]);
        if (strstr(tr_error_message(), lost)) fail_msg("%s: %s", network, tr_error_message());
    }
}

/* The numbers of each parameter stand in one tensor, or in one of each layer that shares them. */
static void expect_each_once(const struct tr_layout_list *list, const struct tr_model *model)
{
    for (int p = 0; p < model->parameter_count; p++) {
        int tensors = 0;
        for (int i = 0; i < list->count; i++)
            tensors += list->tensor[i].role == TR_LAYOUT_VALUES && list->tensor[i].parameter == p;
        if (tensors != 1) fail_msg("%d tensors have %s", tensors, model->parameters[p].name);
    }
}

static void every_network_goes_out_and_in(void **state)
{
    (void)state;
    networks_have_every_layer();
    for (int n = 0; n < network_count; n++) {
        struct tr_model *model = build(networks[n].text, networks[n].input, networks[n].vocabulary);
        float *arena = count_up(model), *back = tr_alloc_zero((size_t)model->arena_floats + 1, sizeof *back);
        for (int layout = TR_LAYOUT_TRIREME; layout <= TR_LAYOUT_TORCH; layout++) {
            struct tr_layout_packed packed;
            tr_status status = tr_layout_pack(model, (enum tr_layout)layout, arena, 7, &packed);
            if (status == TR_EUNSUPPORTED && layout == TR_LAYOUT_TORCH) {
                expect_refusal_of_a_new_layer(networks[n].name);
                continue;
            }
            if (status != TR_OK) fail_msg("%s: %s", networks[n].name, tr_error_message());
            memset(back, 0, (size_t)model->arena_floats * sizeof *back);
            for (int i = 0; i < packed.list.count; i++)
                tr_layout_unpack(&packed.list.tensor[i], model, packed.tensor[i].data, back);
            assert_memory_equal(back, arena, (size_t)model->arena_floats * sizeof *back);
            expect_each_once(&packed.list, model);
            /* Equal names would be refused by the writers; a checkpoint's own are the parameters'. */
            for (int i = 0; i < packed.list.count; i++) {
                uint64_t bytes;
                assert_int_equal(tr_stored_bytes(&packed.tensor[i], &bytes), TR_OK);
                if (packed.list.tensor[i].role != TR_LAYOUT_STEPS)
                    assert_int_equal(bytes, 4 * model->parameters[packed.list.tensor[i].parameter].count);
                for (int k = 0; k < i; k++)
                    assert_string_not_equal(packed.tensor[i].name, packed.tensor[k].name);
                if (layout == TR_LAYOUT_TRIREME)
                    assert_string_equal(packed.tensor[i].name, model->parameters[i].name);
            }
            tr_layout_packed_free(&packed);
        }
        tr_free(back);
        tr_free(arena);
        tr_model_destroy(&model);
    }
}

static void torch_layers_of_tokens(void **state)
{
    (void)state;
    struct tr_model *model = build("layers: [embedding: 2, position: 2, attention: 1, last]", "tokens", 3);
    float *arena = count_up(model);
    struct tr_layout_packed packed;
    assert_int_equal(tr_layout_pack(model, TR_LAYOUT_TORCH, arena, 7, &packed), TR_OK);
    expect_tensor(&packed, "position1.weight", "F32[2,2]", 4, (const float[]){2000, 2001, 2002, 2003});
    expect_tensor(&packed, "attention1.in_proj_weight", "F32[6,2]", 4,
                  (const float[]){3000, 3006, 3001, 3007});
    expect_tensor(&packed, "attention1.out_proj.weight", "F32[2,2]", 4,
                  (const float[]){4000, 4002, 4001, 4003});
    expect_tensor(&packed, "attention1.in_proj_bias", "F32[6]", 2, (const float[]){5000, 5001});
    expect_tensor(&packed, "attention1.out_proj.bias", "F32[2]", 2, (const float[]){6000, 6001});
    tr_layout_packed_free(&packed);
    tr_free(arena);
    tr_model_destroy(&model);
    model =
        build("layers: [embedding: 2, conv1d: {filters: 3, kernel: 2}, bidirectional: {units: 1, cell: gru}, "
              "gru: 2, global_max_pool]",
              "tokens", 3);
    arena = count_up(model);
    assert_int_equal(tr_layout_pack(model, TR_LAYOUT_TORCH, arena, 7, &packed), TR_OK);
    expect_tensor(&packed, "conv1d1.weight", "F32[3,2,2]", 5, (const float[]){2000, 2006, 2003, 2009, 2001});
    expect_tensor(&packed, "bidirectional1.weight_ih_l0", "F32[3,3]", 2, (const float[]){4000, 4003});
    expect_tensor(&packed, "bidirectional1.weight_hh_l0_reverse", "F32[3,1]", 2, (const float[]){9000, 9001});
    expect_tensor(&packed, "bidirectional1.bias_hh_l0_reverse", "F32[3]", 2, (const float[]){11000, 11001});
    expect_tensor(&packed, "gru1.weight_ih_l0", "F32[6,2]", 2, (const float[]){12000, 12006});
    expect_tensor(&packed, "gru1.weight_hh_l0", "F32[6,2]", 2, (const float[]){13000, 13006});
    expect_tensor(&packed, "gru1.bias_ih_l0", "F32[6]", 2, (const float[]){14000, 14001});
    expect_tensor(&packed, "gru1.bias_hh_l0", "F32[6]", 2, (const float[]){15000, 15001});
    tr_layout_packed_free(&packed);
    tr_free(arena);
    tr_model_destroy(&model);
    /* A width of its own: [3 width][in] and [in][width]. */
    model =
        build("layers: [embedding: 2, attention: {heads: 1, width: 4, rotary: 10000}, last]", "tokens", 3);
    arena = count_up(model);
    assert_int_equal(tr_layout_pack(model, TR_LAYOUT_TORCH, arena, 7, &packed), TR_OK);
    expect_tensor(&packed, "attention1.in_proj_weight", "F32[12,2]", 3, (const float[]){2000, 2012, 2001});
    expect_tensor(&packed, "attention1.out_proj.weight", "F32[2,4]", 5,
                  (const float[]){3000, 3002, 3004, 3006, 3001});
    tr_layout_packed_free(&packed);
    tr_free(arena);
    tr_model_destroy(&model);
}

static void torch_root_mean_square(void **state)
{
    (void)state;
    struct tr_model *model = build("layers: [rms_norm, flatten, rms_norm, dense: 2]", "1x2x2", 0);
    float *arena = count_up(model);
    struct tr_layout_packed packed;
    assert_int_equal(tr_layout_pack(model, TR_LAYOUT_TORCH, arena, 7, &packed), TR_OK);
    expect_tensor(&packed, "rms_norm1.weight", "F32[2,1,2]", 4, (const float[]){1000, 1002, 1001, 1003});
    expect_tensor(&packed, "rms_norm2.weight", "F32[4]", 4, (const float[]){2000, 2002, 2001, 2003});
    tr_layout_packed_free(&packed);
    tr_free(arena);
    tr_model_destroy(&model);
}

static void torch_convolution_and_dense(void **state)
{
    (void)state;
    struct tr_model *model = build("layers:\n"
                                   "- conv: {filters: 3, kernel: [1, 2]}\n"
                                   "- flatten\n"
                                   "- dense: 2\n",
                                   "2x3x2", 0);
    float *arena = count_up(model);
    struct tr_layout_packed packed;
    assert_int_equal(tr_layout_pack(model, TR_LAYOUT_TORCH, arena, 0, &packed), TR_OK);
    assert_int_equal(packed.list.count, 4);
    /* Here [height 1][width 2][in 2][out 3], there [out][in][height][width]. */
    expect_tensor(&packed, "conv1.weight", "F32[3,2,1,2]", 12,
                  (const float[]){1000, 1006, 1003, 1009, 1001, 1007, 1004, 1010, 1002, 1008, 1005, 1011});
    expect_tensor(&packed, "conv1.bias", "F32[3]", 3, (const float[]){2000, 2001, 2002});
    /* Inputs are a 2x2x3 image: here pixel by pixel, there channel by channel. Here [in 12][out 2]. */
    expect_tensor(&packed, "dense1.weight", "F32[2,12]", 24,
                  (const float[]){3000, 3006, 3012, 3018, 3002, 3008, 3014, 3020, 3004, 3010, 3016, 3022,
                                  3001, 3007, 3013, 3019, 3003, 3009, 3015, 3021, 3005, 3011, 3017, 3023});
    expect_tensor(&packed, "dense1.bias", "F32[2]", 2, (const float[]){4000, 4001});
    tr_layout_packed_free(&packed);
    tr_free(arena);
    tr_model_destroy(&model);
}

static void torch_normalizations(void **state)
{
    (void)state;
    struct tr_model *model = build("layers:\n"
                                   "- layer_norm\n"
                                   "- batch_norm\n"
                                   "- flatten\n"
                                   "- batch_norm\n"
                                   "- layer_norm\n"
                                   "- dense: 2\n"
                                   "- layer_norm\n",
                                   "1x2x2", 0);
    float *arena = count_up(model);
    struct tr_layout_packed packed;
    assert_int_equal(tr_layout_pack(model, TR_LAYOUT_TORCH, arena, 321, &packed), TR_OK);
    expect_tensor(&packed, "layer_norm1.weight", "F32[2,1,2]", 4, (const float[]){1000, 1002, 1001, 1003});
    expect_tensor(&packed, "layer_norm1.bias", "F32[2,1,2]", 4, (const float[]){2000, 2002, 2001, 2003});
    expect_tensor(&packed, "batch_norm1.running_var", "F32[2]", 2, (const float[]){6000, 6001});
    /* Behind the flatten a vector, whose four numbers change places. */
    expect_tensor(&packed, "batch_norm2.running_mean", "F32[4]", 4, (const float[]){9000, 9002, 9001, 9003});
    expect_tensor(&packed, "layer_norm2.weight", "F32[4]", 4, (const float[]){11000, 11002, 11001, 11003});
    expect_tensor(&packed, "dense1.weight", "F32[2,4]", 8,
                  (const float[]){13000, 13004, 13002, 13006, 13001, 13005, 13003, 13007});
    expect_tensor(&packed, "layer_norm3.weight", "F32[2]", 2, (const float[]){15000, 15001});
    const struct tr_stored_tensor *steps = find(&packed, "batch_norm2.num_batches_tracked");
    assert_int_equal(steps->dtype, TR_DTYPE_I64);
    assert_int_equal(steps->rank, 0);
    assert_int_equal(*(const int64_t *)steps->data, 321);
    tr_layout_packed_free(&packed);
    tr_free(arena);
    tr_model_destroy(&model);
}

static void torch_sequences(void **state)
{
    (void)state;
    struct tr_model *model = build("layers:\n"
                                   "- embedding: {width: 3}\n"
                                   "- lstm: 1\n"
                                   "- last\n"
                                   "loss: mean_squared_error\n",
                                   "tokens", 2);
    float *arena = count_up(model);
    struct tr_layout_packed packed;
    assert_int_equal(tr_layout_pack(model, TR_LAYOUT_TORCH, arena, 0, &packed), TR_OK);
    assert_int_equal(packed.list.count, 5);
    expect_tensor(&packed, "embedding1.weight", "F32[2,3]", 6,
                  (const float[]){1000, 1001, 1002, 1003, 1004, 1005});
    /* Here [in 3][gates 4], there [gates][in]; the gates stay in their order. */
    expect_tensor(&packed, "lstm1.weight_ih_l0", "F32[4,3]", 12,
                  (const float[]){2000, 2004, 2008, 2001, 2005, 2009, 2002, 2006, 2010, 2003, 2007, 2011});
    expect_tensor(&packed, "lstm1.weight_hh_l0", "F32[4,1]", 4, (const float[]){3000, 3001, 3002, 3003});
    expect_tensor(&packed, "lstm1.bias_ih_l0", "F32[4]", 4, (const float[]){4000, 4001, 4002, 4003});
    expect_tensor(&packed, "lstm1.bias_hh_l0", "F32[4]", 4, (const float[]){0, 0, 0, 0});
    /* A second bias is added to the first. */
    const float second[4] = {0.5f, 1, 2, -4000};
    tr_layout_unpack(&packed.list.tensor[4], model, second, arena);
    const float *bias = arena + model->parameters[3].offset;
    assert_true(bias[0] == 4000.5f && bias[1] == 4002 && bias[2] == 4004 && bias[3] == 3);
    tr_layout_packed_free(&packed);
    tr_free(arena);
    tr_model_destroy(&model);
}

/* What has no order that PyTorch could follow is refused by the name of the layer. */
static void mixed_orders_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *input, *layers;
        bool fits;
    } cases[] = {
        {"2x2x3", "layers:\n- flatten: {name: f}\n- dense: 12\n- add: {with: f, name: sum}\n- dense: 2\n",
         false},
        {"3x2x2",
         "layers:\n- conv: {filters: 3, kernel: [2, 1], name: a}\n- flatten: {name: f}\n- dense: 12\n"
         "- add: {with: f, name: sum}\n",
         false},
        {"2x2x1", "layers:\n- flatten: {name: f}\n- dense: 4\n- add: {with: f, name: sum}\n- dense: 2\n",
         true},
        {"1x1x5", "layers:\n- flatten: {name: f}\n- dense: 5\n- add: {with: f, name: sum}\n- dense: 2\n",
         true},
        {"2x2x3", "layers:\n- flatten: {name: f}\n- tanh\n- add: {with: f, name: sum}\n- dense: 2\n", true},
        {"2x2x4",
         "layers:\n- conv: {filters: 1, kernel: 1}\n- conv: {filters: 2, kernel: [1, 2]}\n- flatten\n"
         "- multiply: {with: input, name: sum}\n",
         false},
        {"2x2x4", "layers:\n- global_average_pool\n- multiply: {with: input, name: sum}\n", true},
        {"12", "layers:\n- tanh: {name: f}\n- dense: 12\n- add: {with: f, name: sum}\n- dense: 2\n", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_model *model = build(cases[i].layers, cases[i].input, 0);
        struct tr_layout_list list;
        tr_status status = tr_layout_list_make(model, TR_LAYOUT_TORCH, &list);
        assert_int_equal(status, cases[i].fits ? TR_OK : TR_EUNSUPPORTED);
        if (!cases[i].fits)
            assert_true(strstr(tr_error_message(), "layer \"sum\" adds vectors") ||
                        strstr(tr_error_message(), "layer \"sum\" multiplies vectors"));
        tr_layout_list_free(&list);
        assert_int_equal(tr_layout_list_make(model, TR_LAYOUT_TRIREME, &list), TR_OK);
        tr_layout_list_free(&list);
        tr_model_destroy(&model);
    }
}

static void failing_allocations_are_survived(void **state)
{
    (void)state;
    struct tr_model *model = build(networks[0].text, networks[0].input, networks[0].vocabulary);
    float *arena = count_up(model);
    for (int64_t at = 0, done = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        struct tr_layout_packed packed;
        refuse_begin(at);
        tr_status status = tr_layout_pack(model, TR_LAYOUT_TORCH, arena, 0, &packed);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_layout_packed_free(&packed);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_free(arena);
    tr_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_network_goes_out_and_in), cmocka_unit_test(torch_layers_of_tokens),
        cmocka_unit_test(torch_root_mean_square),        cmocka_unit_test(torch_convolution_and_dense),
        cmocka_unit_test(torch_normalizations),          cmocka_unit_test(torch_sequences),
        cmocka_unit_test(mixed_orders_are_refused),      cmocka_unit_test(failing_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
