/* The backward operations and losses of ref against finite differences of its forward operations. Every
 * operation of TR_DEVICE_OPS stands in one table, with a check or with the reason why it has none.
 */
#include "device/cases/cases.h"
#include "device/gradients/gradients.h"
#include "device/operation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

static const int64_t rows[] = {0, 2, 3, GRADIENTS_ROWS};
static const int32_t bounds[] = {0, 3};
const struct tr_cut gradients_cut = {.count = 3, .row = rows, .nodes = 1, .bound = bounds, .stride = 1 << 20};

#define BY(backward)                                                                                         \
    {                                                                                                        \
        .reason = "a forward operation, differentiated by " backward                                         \
    }

static const struct gradient {
    void (*check[2])(void);
    const char *reason; /* why there is nothing to check */
} gradients[CASE_LISTS] = {
    [TR_OPERATION_dense_forward] = BY("dense_backward_data and dense_backward_weights"),
    [TR_OPERATION_dense_backward_data] = {{gradients_dense}, NULL},
    [TR_OPERATION_dense_backward_weights] = {{gradients_dense}, NULL},
    [TR_OPERATION_conv_forward] = BY("conv_backward_data and conv_backward_weights"),
    [TR_OPERATION_conv_backward_data] = {{gradients_conv}, NULL},
    [TR_OPERATION_conv_backward_weights] = {{gradients_conv}, NULL},
    [TR_OPERATION_winograd_forward] = BY("winograd_backward_data and winograd_backward_weights"),
    [TR_OPERATION_winograd_backward_data] = {{gradients_winograd}, NULL},
    [TR_OPERATION_winograd_backward_weights] = {{gradients_winograd}, NULL},
    [TR_OPERATION_activation_forward] = BY("activation_backward"),
    [TR_OPERATION_activation_backward] = {{gradients_activation}, NULL},
    [TR_OPERATION_add] = {.reason = "its gradient is dy itself, for both"},
    [TR_OPERATION_multiply] = {{gradients_multiply}, NULL},
    [TR_OPERATION_multiply_sum] = {{gradients_multiply}, NULL},
    [TR_OPERATION_join_columns] =
        {.reason = "copies x; the networks of tests/nn show that dy goes to the right places"},
    [TR_OPERATION_split_columns] = {.reason = "copies x, as join_columns"},
    [TR_OPERATION_scale] = {.reason = "its gradient is the same operation on dy"},
    [TR_OPERATION_fill] = {.reason = "has no inputs"},
    [TR_OPERATION_dropout] = {{gradients_dropout}, NULL},
    [TR_OPERATION_drop_examples] = {{gradients_drop_examples}, NULL},
    [TR_OPERATION_pool_forward] = BY("pool_backward"),
    [TR_OPERATION_pool_backward] = {{gradients_pool}, NULL},
    [TR_OPERATION_pool_rows_forward] = BY("pool_rows_backward"),
    [TR_OPERATION_pool_rows_backward] = {{gradients_pool_rows}, NULL},
    [TR_OPERATION_softmax_forward] = BY("softmax_backward"),
    [TR_OPERATION_softmax_backward] = {{gradients_softmax}, NULL},
    [TR_OPERATION_layer_norm_forward] = BY("layer_norm_backward"),
    [TR_OPERATION_layer_norm_backward] = {{gradients_layer_norm}, NULL},
    [TR_OPERATION_rms_norm_forward] = BY("rms_norm_backward"),
    [TR_OPERATION_rms_norm_backward] = {{gradients_rms_norm}, NULL},
    [TR_OPERATION_grouped_conv_forward] = BY("grouped_conv_backward_data and grouped_conv_backward_weights"),
    [TR_OPERATION_grouped_conv_backward_data] = {{gradients_grouped_conv}, NULL},
    [TR_OPERATION_grouped_conv_backward_weights] = {{gradients_grouped_conv}, NULL},
    [TR_OPERATION_group_norm_forward] = BY("group_norm_backward"),
    [TR_OPERATION_group_norm_backward] = {{gradients_group_norm}, NULL},
    [TR_OPERATION_batch_norm_forward] = BY("batch_norm_backward"),
    [TR_OPERATION_batch_norm_backward] = {{gradients_batch_norm}, NULL},
    [TR_OPERATION_batch_norm_activation_forward] = BY("batch_norm_activation_backward"),
    [TR_OPERATION_batch_norm_activation_backward] = {{gradients_batch_norm_activation}, NULL},
    [TR_OPERATION_winograd_backward] = {.reason = "winograd_backward_weights and winograd_backward_data; "
                                                  "tests/nn/test_fusion.c compares with these"},
    [TR_OPERATION_conv_pool_forward] = BY("conv_pool_backward_data and conv_pool_backward_weights"),
    [TR_OPERATION_conv_pool_backward_data] =
        {.reason = "pool_backward and conv_backward_data; tests/nn/test_fusion.c compares with these"},
    [TR_OPERATION_conv_pool_backward_weights] = {.reason =
                                                     "pool_backward and conv_backward_weights, likewise"},
    [TR_OPERATION_dense_gelu_forward] = BY("dense_gelu_backward_data and dense_backward_weights"),
    [TR_OPERATION_dense_gelu_backward_data] =
        {.reason = "dense_backward_data and activation_backward; tests/nn/test_fusion.c compares with these"},
    [TR_OPERATION_dense_backward_update] =
        {.reason = "dense_backward_weights and update; tests/strategy/all_reduce/test_pieces.c compares with "
                   "these"},
    [TR_OPERATION_batch_norm_infer] = {.reason = "evaluation only"},
    [TR_OPERATION_embedding_forward] = BY("embedding_backward"),
    [TR_OPERATION_embedding_backward] = {{gradients_embedding}, NULL},
    [TR_OPERATION_lstm_forward] = BY("lstm_backward and lstm_backward_weights"),
    [TR_OPERATION_lstm_backward] = {{gradients_lstm, gradients_lstm_truncated}, NULL},
    [TR_OPERATION_lstm_backward_weights] = {{gradients_lstm}, NULL},
    [TR_OPERATION_sequence_last_forward] = BY("sequence_last_backward"),
    [TR_OPERATION_sequence_last_backward] = {{gradients_sequence_last}, NULL},
    [TR_OPERATION_sequence_unfold] = BY("sequence_fold"),
    [TR_OPERATION_sequence_fold] = {{gradients_sequence_fold}, NULL},
    [TR_OPERATION_sequence_copy] = {.reason = "its gradient is the same operation the other way round"},
    [TR_OPERATION_gru_forward] = BY("gru_backward and gru_backward_weights"),
    [TR_OPERATION_gru_backward] = {{gradients_gru}, NULL},
    [TR_OPERATION_gru_backward_weights] = {{gradients_gru}, NULL},
    [TR_OPERATION_attention_forward] = BY("attention_backward"),
    [TR_OPERATION_attention_backward] = {{gradients_attention}, NULL},
    [TR_OPERATION_position_forward] = BY("position_backward, and dy itself"),
    [TR_OPERATION_position_backward] = {{gradients_position}, NULL},
    [TR_OPERATION_rotary] = {{gradients_rotary}, NULL},
    [TR_OPERATION_softmax_cross_entropy] = {{gradients_softmax_cross_entropy}, NULL},
    [TR_OPERATION_mean_squared_error] = {{gradients_mean_squared_error}, NULL},
    [TR_OPERATION_binary_cross_entropy] = {{gradients_binary_cross_entropy}, NULL},
    [TR_OPERATION_soft_cross_entropy] = {{gradients_soft_cross_entropy}, NULL},
    [TR_OPERATION_focal_cross_entropy] = {{gradients_focal_cross_entropy}, NULL},
    [TR_OPERATION_quantile_error] = {{gradients_quantile_error}, NULL},
    [TR_OPERATION_poisson_error] = {{gradients_poisson_error}, NULL},
    [TR_OPERATION_contrastive_error] = {{gradients_contrastive_error}, NULL},
    [TR_OPERATION_triplet_error] = {{gradients_triplet_error}, NULL},
    [TR_OPERATION_huber_error] = {{gradients_huber_error}, NULL},
    [TR_OPERATION_weigh_rows] = {{gradients_weigh_rows}, NULL},
    [TR_OPERATION_mean_labelled] = {{gradients_mean_labelled}, NULL},
    [TR_OPERATION_load_labels] = {.reason = "its inputs are whole numbers"},
    [TR_OPERATION_augment_labels] = {.reason = "its inputs are whole numbers"},
    [TR_OPERATION_augment_images] = {.reason = "its inputs are data"},
    [TR_OPERATION_mix_images] = {.reason = "its inputs are data"},
    [TR_OPERATION_to_labels] = {.reason = "its outputs are whole numbers"},
    [TR_OPERATION_sum_rows] = {.reason = "sums losses for people; no gradient flows through it"},
    [TR_OPERATION_load_images] = {.reason = "its inputs are bytes"},
    [TR_OPERATION_hold] = {.reason = "it decides and computes nothing"},
    [TR_OPERATION_gather_rows] = {.reason = "its inputs are words without a meaning"},
    [TR_OPERATION_update] = {.reason = "comes after the gradients"},
    [TR_OPERATION_sum_squares] = {.reason = "comes after the gradients"},
    [TR_OPERATION_advance] = {.reason = "comes after the gradients"},
    [TR_OPERATION_clip_scale] = {.reason = "comes after the gradients"},
};

static void test_operation(void **state)
{
    const struct gradient *gradient = *state;
    if ((gradient->check[0] != NULL) == (gradient->reason != NULL)) /* one of them, not both */
        fail_msg(
            "operation \"%s\" needs a check by finite differences, or the reason for none, in the table of "
            "tests/device/gradients/test_gradients.c",
            case_lists[gradient - gradients].operation);
    if (gradient->reason) printf("[  NOTE    ] %s\n", gradient->reason);
    for (int i = 0; i < LENGTH(gradient->check); i++)
        if (gradient->check[i]) gradient->check[i]();
}

int main(void)
{
    struct CMUnitTest tests[CASE_LISTS];
    for (int i = 0; i < CASE_LISTS; i++)
        tests[i] =
            (struct CMUnitTest){case_lists[i].operation, test_operation, NULL, NULL, (void *)&gradients[i]};
    return cmocka_run_group_tests_name("gradients of ref agree with finite differences", tests, NULL, NULL);
}
