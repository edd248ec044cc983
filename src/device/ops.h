/* The operations of devices: their arguments, shapes and exact arithmetic, and their list.
 *
 * The headers of device/ops/, one for each family, are the specification that `ref` spells out as plain
 * loops; every other device gives the same bytes. Below the arguments of each operation stands its
 * description (device/operation.h), which plans, profiles, exports and tests read.
 *
 * Conventions
 *   - float32, row-major, images NHWC, convolution weights [kernel_h][kernel_w][in_c][out_c]. All tensor
 *     pointers are device memory, borrowed until the next tr_device_wait(). Outputs are overwritten and
 *     do not overlap inputs, unless stated otherwise.
 *   - "chain": acc = fma(a[k], b[k], acc), k ascending, from acc = +0. "sum chain": acc = acc + x[k]
 *     from acc = +0.
 *   - "lane sum" of n values: lane j (0..15) is the sum chain (or fma chain) over elements j, j+16, ...;
 *     then lanes combine as l[j] += l[j+8] (j<8), l[j] += l[j+4] (j<4), l[j] += l[j+2] (j<2), l[0] +
 *     l[1].
 *   - exp, log, tanh, sigmoid, erf are those of base/numbers/mathf.h. Division and square root are IEEE.
 *   - `fma(a,b,c)` is one rounding; everything else written here rounds after each operation, in the
 *     order of C.
 *   - Microbatches: operations that reduce over rows take a `struct tr_cut`. One leaf per microbatch is
 *     formed by chains over its rows; leaves combine in the tree of base/numbers/tree.h; each node goes
 *     to its own place in the output.
 *   - An operation with rows == 0 does nothing (gradients of such a call are +0). A microbatch without
 *     rows is a leaf of +0.
 *   - flush(x) = |x| < 2^-100 ? +0 : x. Saturated outputs have gradients, and unused moments decay, down
 *     to subnormal numbers. These change no parameter, but cost some processors a hundred cycles per
 *     operation.
 *   - Fusions are several operations in one pass over memory, with the bits of running them in turn.
 *   - Counts, widths and microbatch sizes enter arithmetic as float32. The sign and payload of a NaN
 *     result are not defined, and only NaNs depend on them.
 */
#ifndef TR_DEVICE_OPS_H
#define TR_DEVICE_OPS_H

#include "device/ops/attention.h"
#include "device/ops/convolution.h"
#include "device/ops/dense.h"
#include "device/ops/elementwise.h"
#include "device/ops/input.h"
#include "device/ops/loss.h"
#include "device/ops/norm.h"
#include "device/ops/pool.h"
#include "device/ops/recurrent.h"
#include "device/ops/sequence.h"
#include "device/ops/update.h"

/* Core operations that spend their time in long chains of multiply-adds. */
#define TR_DEVICE_CHAIN_OPS(X)                                                                               \
    X(dense_forward)                                                                                         \
    X(dense_backward_data)                                                                                   \
    X(dense_backward_weights)                                                                                \
    X(conv_forward)                                                                                          \
    X(conv_backward_data)                                                                                    \
    X(conv_backward_weights)                                                                                 \
    X(winograd_forward)                                                                                      \
    X(winograd_backward_data)                                                                                \
    X(winograd_backward_weights)                                                                             \
    X(lstm_forward)                                                                                          \
    X(lstm_backward)                                                                                         \
    X(lstm_backward_weights)                                                                                 \
    X(gru_forward)                                                                                           \
    X(gru_backward)                                                                                          \
    X(gru_backward_weights)                                                                                  \
    X(attention_forward)                                                                                     \
    X(attention_backward)

/* Operations of all devices. */
#define TR_DEVICE_CORE_OPS(X)                                                                                \
    TR_DEVICE_CHAIN_OPS(X)                                                                                   \
    X(activation_forward)                                                                                    \
    X(activation_backward)                                                                                   \
    X(add)                                                                                                   \
    X(join_columns)                                                                                          \
    X(split_columns)                                                                                         \
    X(scale)                                                                                                 \
    X(fill)                                                                                                  \
    X(dropout)                                                                                               \
    X(pool_forward)                                                                                          \
    X(pool_backward)                                                                                         \
    X(pool_rows_forward)                                                                                     \
    X(pool_rows_backward)                                                                                    \
    X(softmax_forward)                                                                                       \
    X(softmax_backward)                                                                                      \
    X(layer_norm_forward)                                                                                    \
    X(layer_norm_backward)                                                                                   \
    X(rms_norm_forward)                                                                                      \
    X(rms_norm_backward)                                                                                     \
    X(batch_norm_forward)                                                                                    \
    X(batch_norm_backward)                                                                                   \
    X(batch_norm_infer)                                                                                      \
    X(embedding_forward)                                                                                     \
    X(embedding_backward)                                                                                    \
    X(sequence_last_forward)                                                                                 \
    X(sequence_last_backward)                                                                                \
    X(sequence_unfold)                                                                                       \
    X(sequence_fold)                                                                                         \
    X(sequence_copy)                                                                                         \
    X(position_forward)                                                                                      \
    X(position_backward)                                                                                     \
    X(rotary)                                                                                                \
    X(softmax_cross_entropy)                                                                                 \
    X(soft_cross_entropy)                                                                                    \
    X(mean_squared_error)                                                                                    \
    X(binary_cross_entropy)                                                                                  \
    X(huber_error)                                                                                           \
    X(focal_cross_entropy)                                                                                   \
    X(quantile_error)                                                                                        \
    X(poisson_error)                                                                                         \
    X(weigh_rows)                                                                                            \
    X(to_labels)                                                                                             \
    X(sum_rows)                                                                                              \
    X(load_images)                                                                                           \
    X(gather_rows)                                                                                           \
    X(update)                                                                                                \
    X(sum_squares)                                                                                           \
    X(clip_scale)                                                                                            \
    X(hold)                                                                                                  \
    X(group_norm_forward)                                                                                    \
    X(group_norm_backward)                                                                                   \
    X(multiply)                                                                                              \
    X(multiply_sum)                                                                                          \
    X(grouped_conv_forward)                                                                                  \
    X(grouped_conv_backward_data)                                                                            \
    X(grouped_conv_backward_weights)                                                                         \
    X(drop_examples)                                                                                         \
    X(mean_labelled)                                                                                         \
    X(load_labels)                                                                                           \
    X(advance)                                                                                               \
    X(augment_images)                                                                                        \
    X(augment_labels)                                                                                        \
    X(mix_images)                                                                                            \
    X(contrastive_error)                                                                                     \
    X(triplet_error)

/* Operations of host devices that others may lack; those refuse networks that need them, by name. An
   operation without kernels for GPUs is listed here. */
#define TR_DEVICE_HOST_OPS(X)

/* Fusions that spend their time in such chains. */
#define TR_DEVICE_CHAIN_FUSIONS(X)                                                                           \
    X(winograd_backward)                                                                                     \
    X(conv_pool_forward)                                                                                     \
    X(conv_pool_backward_data)                                                                               \
    X(conv_pool_backward_weights)                                                                            \
    X(dense_gelu_forward)                                                                                    \
    X(dense_gelu_backward_data)                                                                              \
    X(dense_backward_update)

/* Operations that a device may lack; callers ask first (nn/fusion.h). */
#define TR_DEVICE_FUSIONS(X)                                                                                 \
    TR_DEVICE_CHAIN_FUSIONS(X)                                                                               \
    X(batch_norm_activation_forward)                                                                         \
    X(batch_norm_activation_backward)

/* Every operation, once: vtable, wrappers, descriptions and tests are made from this list. */
#define TR_DEVICE_OPS(X)                                                                                     \
    TR_DEVICE_CORE_OPS(X)                                                                                    \
    TR_DEVICE_HOST_OPS(X)                                                                                    \
    TR_DEVICE_FUSIONS(X)

#endif
