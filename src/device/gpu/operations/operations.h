/* The operations that have kernels, by group: all there are, which device.opencl requires. */
#ifndef TR_DEVICE_GPU_OPERATIONS_H
#define TR_DEVICE_GPU_OPERATIONS_H

#include "device/device.h"

/* ops_product.c */
#define GPU_PRODUCT_OPS(X)                                                                                   \
    X(dense_forward)                                                                                         \
    X(dense_backward_data)                                                                                   \
    X(dense_backward_weights)                                                                                \
    X(sum_rows)
/* ops_convolution.c */
#define GPU_CONVOLUTION_OPS(X)                                                                               \
    X(conv_forward)                                                                                          \
    X(conv_backward_data)                                                                                    \
    X(conv_backward_weights)
/* ops_winograd.c */
#define GPU_WINOGRAD_OPS(X)                                                                                  \
    X(winograd_forward)                                                                                      \
    X(winograd_backward_data)                                                                                \
    X(winograd_backward_weights)
/* ops_elementwise.c */
#define GPU_ELEMENTWISE_OPS(X)                                                                               \
    X(activation_forward)                                                                                    \
    X(activation_backward)                                                                                   \
    X(add)                                                                                                   \
    X(scale)                                                                                                 \
    X(fill)                                                                                                  \
    X(join_columns)                                                                                          \
    X(split_columns)                                                                                         \
    X(to_labels)
/* ops_pool.c */
#define GPU_POOL_OPS(X)                                                                                      \
    X(pool_forward)                                                                                          \
    X(pool_backward)
/* ops_norm.c */
#define GPU_NORM_OPS(X)                                                                                      \
    X(layer_norm_forward)                                                                                    \
    X(layer_norm_backward)                                                                                   \
    X(rms_norm_forward)                                                                                      \
    X(rms_norm_backward)                                                                                     \
    X(batch_norm_forward)                                                                                    \
    X(batch_norm_backward)                                                                                   \
    X(batch_norm_infer)
/* ops_softmax.c: softmax and losses */
#define GPU_SOFTMAX_OPS(X)                                                                                   \
    X(softmax_forward)                                                                                       \
    X(softmax_backward)                                                                                      \
    X(softmax_cross_entropy)                                                                                 \
    X(mean_squared_error)                                                                                    \
    X(binary_cross_entropy)                                                                                  \
    X(huber_error)                                                                                           \
    X(weigh_rows)
/* ops_sequence.c: embeddings, learned positions, the rows of sequences */
#define GPU_SEQUENCE_OPS(X)                                                                                  \
    X(embedding_forward)                                                                                     \
    X(embedding_backward)                                                                                    \
    X(sequence_last_forward)                                                                                 \
    X(sequence_last_backward)                                                                                \
    X(sequence_unfold)                                                                                       \
    X(sequence_fold)                                                                                         \
    X(sequence_copy)                                                                                         \
    X(pool_rows_forward)                                                                                     \
    X(pool_rows_backward)                                                                                    \
    X(position_forward)                                                                                      \
    X(position_backward)
/* ops_recurrent.c */
#define GPU_RECURRENT_OPS(X)                                                                                 \
    X(lstm_forward)                                                                                          \
    X(lstm_backward)                                                                                         \
    X(lstm_backward_weights)                                                                                 \
    X(gru_forward)                                                                                           \
    X(gru_backward)                                                                                          \
    X(gru_backward_weights)
/* ops_attention.c */
#define GPU_ATTENTION_OPS(X)                                                                                 \
    X(attention_forward)                                                                                     \
    X(attention_backward)                                                                                    \
    X(rotary)
/* ops_input.c: images and other examples that are kept, dropout */
#define GPU_INPUT_OPS(X)                                                                                     \
    X(load_images)                                                                                           \
    X(gather_rows)                                                                                           \
    X(dropout)
/* ops_update.c: update rules, clipping, what holds updates back */
#define GPU_UPDATE_OPS(X)                                                                                    \
    X(update)                                                                                                \
    X(sum_squares)                                                                                           \
    X(clip_scale)                                                                                            \
    X(hold)

#define GPU_OPS(X)                                                                                           \
    GPU_PRODUCT_OPS(X)                                                                                       \
    GPU_CONVOLUTION_OPS(X)                                                                                   \
    GPU_WINOGRAD_OPS(X)                                                                                      \
    GPU_ELEMENTWISE_OPS(X)                                                                                   \
    GPU_POOL_OPS(X)                                                                                          \
    GPU_NORM_OPS(X)                                                                                          \
    GPU_SOFTMAX_OPS(X)                                                                                       \
    GPU_SEQUENCE_OPS(X)                                                                                      \
    GPU_RECURRENT_OPS(X)                                                                                     \
    GPU_ATTENTION_OPS(X)                                                                                     \
    GPU_INPUT_OPS(X)                                                                                         \
    GPU_UPDATE_OPS(X)

#define GPU_OPERATION(op) tr_status gpu_##op(tr_device *device, const struct tr_op_##op *arguments);
GPU_OPS(GPU_OPERATION)
#undef GPU_OPERATION

#endif
