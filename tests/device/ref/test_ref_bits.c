/* The very bits of ref, over all cases of every operation: the same on every machine, with every compiler,
 * next year. Whoever changes the arithmetic or the cases on purpose puts the new numbers into the table.
 */
#include "device/cases/cases.h"
#include "device/operation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

static const uint64_t bits[CASE_LISTS] = {
    [TR_OPERATION_dense_forward] = 0xf21138417035d52au,
    [TR_OPERATION_dense_backward_data] = 0x11efdfe704e00bd7u,
    [TR_OPERATION_dense_backward_weights] = 0x9613d23cee779fddu,
    [TR_OPERATION_conv_forward] = 0x593b60c156deafc1u,
    [TR_OPERATION_conv_backward_data] = 0x96232bab898eb9e2u,
    [TR_OPERATION_conv_backward_weights] = 0x9a1c42abb3b74209u,
    [TR_OPERATION_winograd_forward] = 0xcd315114ad930995u,
    [TR_OPERATION_winograd_backward_data] = 0x67c6fbb7a61e45f7u,
    [TR_OPERATION_winograd_backward_weights] = 0xecd7896f285104aeu,
    [TR_OPERATION_activation_forward] = 0x7850e9f87869cdadu,
    [TR_OPERATION_activation_backward] = 0x4bb07ae19b506fd4u,
    [TR_OPERATION_add] = 0x32822aa69032dbb6u,
    [TR_OPERATION_multiply] = 0xa3c8a314137b16d5u,
    [TR_OPERATION_multiply_sum] = 0xd047884a53989595u,
    [TR_OPERATION_join_columns] = 0x4e53954ba364346du,
    [TR_OPERATION_split_columns] = 0xc8a3479d2f9d5cd7u,
    [TR_OPERATION_scale] = 0x78164d0401951b28u,
    [TR_OPERATION_fill] = 0xe46271f23977732au,
    [TR_OPERATION_dropout] = 0x3a9c0203b1015478u,
    [TR_OPERATION_drop_examples] = 0xe4c0cbd767502211u,
    [TR_OPERATION_pool_forward] = 0x918914fff0544ddau,
    [TR_OPERATION_pool_backward] = 0xf4228cc559768aabu,
    [TR_OPERATION_pool_rows_forward] = 0x3b7d1cef7f5b0d4bu,
    [TR_OPERATION_pool_rows_backward] = 0x1e267a3df75233f2u,
    [TR_OPERATION_softmax_forward] = 0x87c0121f102ebc06u,
    [TR_OPERATION_softmax_backward] = 0x6d3271523c1f62c5u,
    [TR_OPERATION_layer_norm_forward] = 0xa0141217afe8a6b4u,
    [TR_OPERATION_layer_norm_backward] = 0x158847d16402291eu,
    [TR_OPERATION_rms_norm_forward] = 0x401e3c1a5a7e2d6fu,
    [TR_OPERATION_rms_norm_backward] = 0x07b0e17a505c9351u,
    [TR_OPERATION_grouped_conv_forward] = 0xb2f5959955ea9a47u,
    [TR_OPERATION_grouped_conv_backward_data] = 0x52ec748e2cf5222fu,
    [TR_OPERATION_grouped_conv_backward_weights] = 0xb3b8326e7169dd25u,
    [TR_OPERATION_group_norm_forward] = 0xca5c104ff452d7bdu,
    [TR_OPERATION_group_norm_backward] = 0x5916bc4c5c9882c1u,
    [TR_OPERATION_batch_norm_forward] = 0x91320d003b407ee2u,
    [TR_OPERATION_batch_norm_backward] = 0x4934b83fb98f9020u,
    [TR_OPERATION_batch_norm_infer] = 0x92ff62efb6980381u,
    [TR_OPERATION_batch_norm_activation_forward] = 0xbd6bd606b69a4fc8u,
    [TR_OPERATION_batch_norm_activation_backward] = 0x5e7c6764e2046279u,
    [TR_OPERATION_winograd_backward] = 0x2b0afa19664194fcu,
    [TR_OPERATION_conv_pool_forward] = 0x775ffec09a851811u,
    [TR_OPERATION_conv_pool_backward_data] = 0x10049256cbed78ceu,
    [TR_OPERATION_conv_pool_backward_weights] = 0xc8f043dcb0c8f476u,
    [TR_OPERATION_dense_gelu_forward] = 0x8fa1255ef52d39eau,
    [TR_OPERATION_dense_gelu_backward_data] = 0xd528df047b169cebu,
    [TR_OPERATION_dense_backward_update] = 0xd29a7a1414cf4e1fu,
    [TR_OPERATION_embedding_forward] = 0x05204ad31964c7e4u,
    [TR_OPERATION_embedding_backward] = 0x3a84929f18590da9u,
    [TR_OPERATION_lstm_forward] = 0x0b36f3ece2058633u,
    [TR_OPERATION_lstm_backward] = 0x857da18e0915ef28u,
    [TR_OPERATION_lstm_backward_weights] = 0x8aa9dccbfd1fe42cu,
    [TR_OPERATION_sequence_last_forward] = 0xdc2e013f7d3cfd72u,
    [TR_OPERATION_sequence_last_backward] = 0xec1a10e324c4b589u,
    [TR_OPERATION_sequence_unfold] = 0xc47303895e6c4a5cu,
    [TR_OPERATION_sequence_fold] = 0x633d3f603623ca1eu,
    [TR_OPERATION_sequence_copy] = 0xfcb42a2670fecaf2u,
    [TR_OPERATION_gru_forward] = 0x058ffec0ac4b9912u,
    [TR_OPERATION_gru_backward] = 0x42bc03a11fb37bceu,
    [TR_OPERATION_gru_backward_weights] = 0x7db88c90e12e2cedu,
    [TR_OPERATION_attention_forward] = 0xc10fc04b5bc4c06au,
    [TR_OPERATION_attention_backward] = 0x8c31899db74e2ed8u,
    [TR_OPERATION_position_forward] = 0xa08d8a972a760ae1u,
    [TR_OPERATION_position_backward] = 0x7b75593f226dee69u,
    [TR_OPERATION_rotary] = 0x33e8e60ecec4f1eau,
    [TR_OPERATION_softmax_cross_entropy] = 0x60746d6935449663u,
    [TR_OPERATION_mean_squared_error] = 0x90701ceeaa26251eu,
    [TR_OPERATION_binary_cross_entropy] = 0xb2b7d30f81dcfcb1u,
    [TR_OPERATION_soft_cross_entropy] = 0xac2178ab4fb2ebe2u,
    [TR_OPERATION_focal_cross_entropy] = 0xd66e617f1e71da51u,
    [TR_OPERATION_quantile_error] = 0x1800a8b90450c474u,
    [TR_OPERATION_poisson_error] = 0x26cca3a0f6d80b09u,
    [TR_OPERATION_contrastive_error] = 0x4c694b4494a39717u,
    [TR_OPERATION_triplet_error] = 0x4bf350d9d6d22444u,
    [TR_OPERATION_huber_error] = 0x5ddfe73469fc40e2u,
    [TR_OPERATION_weigh_rows] = 0x0f7ccb3ba8faf3bau,
    [TR_OPERATION_mean_labelled] = 0xa924893a52ed1c87u,
    [TR_OPERATION_load_labels] = 0x350bb4943a05d02cu,
    [TR_OPERATION_augment_images] = 0x9af76ee1903b2be7u,
    [TR_OPERATION_augment_labels] = 0xff9f987703101ca2u,
    [TR_OPERATION_mix_images] = 0x1051e3c9be30d496u,
    [TR_OPERATION_to_labels] = 0xa9cb552b9adcb95bu,
    [TR_OPERATION_sum_rows] = 0x2f6e99fd00bb10a7u,
    [TR_OPERATION_load_images] = 0xd673a3daa3b8b56fu,
    [TR_OPERATION_gather_rows] = 0x35436ed3418fd127u,
    [TR_OPERATION_update] = 0xcb0c00a885db907fu,
    [TR_OPERATION_sum_squares] = 0x04497898ca8cb10bu,
    [TR_OPERATION_clip_scale] = 0x762a58ccd058f49cu,
    [TR_OPERATION_hold] = 0xb17722021918252bu,
    [TR_OPERATION_advance] = 0x87e5fbb874636bbdu,
};

static tr_device *device;

static int make_device(void **state)
{
    (void)state;
    return tr_device_create("ref", 1, NULL, &device) == TR_OK ? 0 : -1;
}

static int destroy_device(void **state)
{
    (void)state;
    tr_device_destroy(&device);
    return 0;
}

static void test_operation(void **state)
{
    const struct case_list *list = *state;
    uint64_t hash = 0xcbf29ce484222325u;
    case_must_exist(list);
    for (int flavor = 0; flavor < SCENE_FLAVORS; flavor++) {
        for (int index = 0;; index++) {
            struct scene scene;
            /* Operation 0 for all: numbers must not change when the list of operations does. */
            scene_begin(&scene, device, (enum scene_flavor)flavor, 0, (uint32_t)index);
            if (!list->run(&scene, index)) break;
            hash = scene_hash(&scene, hash);
            scene_release(&scene);
        }
    }
    if (bits[list - case_lists] == 0)
        fail_msg("operation \"%s\" has no bits to keep; add [TR_OPERATION_%s] = 0x%016llxu to the table in "
                 "tests/device/ref/test_ref_bits.c",
                 list->operation, list->operation, (unsigned long long)hash);
    if (hash != bits[list - case_lists])
        fail_msg("the bits are %016llx, not %016llx; if that was on purpose, change the table",
                 (unsigned long long)hash, (unsigned long long)bits[list - case_lists]);
}

int main(void)
{
    struct CMUnitTest tests[CASE_LISTS];
    for (int i = 0; i < CASE_LISTS; i++)
        tests[i] =
            (struct CMUnitTest){case_lists[i].operation, test_operation, NULL, NULL, (void *)&case_lists[i]};
    return cmocka_run_group_tests_name("the bits of ref", tests, make_device, destroy_device);
}
