/* Checks of the gradients of ref, by family. Each fails the running cmocka test when a gradient is wrong.
 *
 * The scalar that is differentiated is the sum of outputs times fixed weights, so the weights are `dy`.
 */
#ifndef TESTS_DEVICE_GRADIENTS_H
#define TESTS_DEVICE_GRADIENTS_H

#include "device/ops.h"

/* Three uneven microbatches of five rows in all, combined into one node. */
#define GRADIENTS_ROWS 5
extern const struct tr_cut gradients_cut;

void gradients_dense(void);
void gradients_conv(void);
void gradients_winograd(void);
void gradients_grouped_conv(void);
void gradients_activation(void);
void gradients_multiply(void);
void gradients_dropout(void);
void gradients_drop_examples(void);
void gradients_pool(void);
void gradients_softmax(void);
void gradients_layer_norm(void);
void gradients_rms_norm(void);
void gradients_group_norm(void);
void gradients_batch_norm(void);
void gradients_batch_norm_activation(void);
void gradients_embedding(void);
void gradients_lstm(void);
void gradients_lstm_truncated(void);
void gradients_sequence_last(void);
void gradients_pool_rows(void);
void gradients_sequence_fold(void);
void gradients_gru(void);
void gradients_attention(void);
void gradients_position(void);
void gradients_rotary(void);
void gradients_softmax_cross_entropy(void);
void gradients_mean_squared_error(void);
void gradients_binary_cross_entropy(void);
void gradients_soft_cross_entropy(void);
void gradients_focal_cross_entropy(void);
void gradients_quantile_error(void);
void gradients_poisson_error(void);
void gradients_contrastive_error(void);
void gradients_triplet_error(void);
void gradients_huber_error(void);
void gradients_weigh_rows(void);
void gradients_mean_labelled(void);

#endif
